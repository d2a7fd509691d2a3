package waiting

import (
	"cmp"
	"container/heap"
	"math"
	"sync/atomic"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
)

// steps is what the waits of clients have for a clock that clients move: it waits for those that it has
// woken. The mutex of the waiters protects what is not atomic.
type steps struct {
	moments moments                       // the waits that wait for a moment of the clock
	stirred int                           // waits that were woken, and have neither their replies nor wait again
	over    atomic.Pointer[chan struct{}] // closed when the clock stands again; nil while it does
	quiet   atomic.Pointer[chan struct{}] // has room for one; who waits for the stirred looks again
}

// poke makes who waits for the stirred look again.
func (s *steps) poke() {
	if quiet := s.quiet.Load(); quiet != nil {
		select {
		case *quiet <- struct{}{}:
		default:
		}
	}
}

// BeginSteps holds back commands with BLOCK that come while the clock moves, until EndSteps: who is served at
// one step is back only when the clock stands. Those who wait for logs wake in Settle alone. If the clock
// moves already, BeginSteps returns a channel that is closed when it stands.
func (ws *Lines) BeginSteps() (busy <-chan struct{}) {
	over, quiet := make(chan struct{}), make(chan struct{}, 1)
	for !ws.steps.over.CompareAndSwap(nil, &over) {
		if other := ws.steps.over.Load(); other != nil {
			return *other
		}
	}
	ws.steps.quiet.Store(&quiet)
	return nil
}

// EndSteps lets the commands that were held back run, and the next clock move.
func (ws *Lines) EndSteps() {
	ws.signalMu.Lock()
	ws.steps.quiet.Store(nil)
	if !ws.running && len(ws.signaled) > 0 {
		ws.running = true
		go ws.wakeAll()
	}
	ws.signalMu.Unlock()
	close(*ws.steps.over.Swap(nil))
}

// Standing returns a channel that is closed when the clock stands again; nil while it does.
func (ws *Lines) Standing() <-chan struct{} {
	if over := ws.steps.over.Load(); over != nil {
		return *over
	}
	return nil
}

// NextEnd returns the next moment in ms at which a wait ends by the clock, or has something to claim;
// [expiry.NeverDue] if there is none.
func (ws *Lines) NextEnd() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.steps.moments) == 0 {
		return expiry.NeverDue
	}
	return ws.steps.moments[0].moment()
}

// EndUntil does what comes next of what waits wait for up to a moment in ms: one ends, or looks for something
// to claim. It reports false if there is nothing. One at a time, so that it is certain who claims.
func (ws *Lines) EndUntil(now int64) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if len(ws.steps.moments) == 0 || ws.steps.moments[0].moment() > now {
		return false
	}
	w := ws.steps.moments[0]
	ends := w.until == w.moment()
	if ws.setClaimLocked(w, 0); !ends {
		ws.wakeLocked(w)
		return true
	}
	ws.steps.moments.set(w, 0, 0)
	ws.endLocked(w, Timeout)
	return true
}

// moments is a heap of waits by the moment of the clock for which they wait.
type moments []*Wait

// moment returns the moment in ms of the clock for which a wait waits: its end, or that from which there is
// something to claim. 0: none.
func (w *Wait) moment() int64 {
	if w.claim == 0 || w.until != 0 && w.until <= w.claim {
		return w.until
	}
	return w.claim
}

// set sets both moments of a wait in ms; 0 for none.
func (m *moments) set(w *Wait, until, claim int64) {
	was := w.moment() != 0
	w.until, w.claim = until, claim
	switch is := w.moment() != 0; {
	case is && was:
		heap.Fix(m, w.place)
	case is:
		heap.Push(m, w)
	case was:
		heap.Remove(m, w.place)
	}
}

func (m moments) Len() int { return len(m) }

func (m moments) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(m[i].moment(), m[j].moment()), cmp.Compare(m[i].turn, m[j].turn)) < 0
}

func (m moments) Swap(i, j int) {
	m[i], m[j] = m[j], m[i]
	m[i].place, m[j].place = i, j
}

func (m *moments) Push(w any) {
	w.(*Wait).place = len(*m)
	*m = append(*m, w.(*Wait))
}

func (m *moments) Pop() any {
	last := len(*m) - 1
	w := (*m)[last]
	(*m)[last] = nil
	*m = (*m)[:last]
	return w
}

// Settle wakes those who wait for logs with new entries, and waits until all who were woken have their
// replies or wait again. It reports false if that takes longer than a real time.
func (ws *Lines) Settle(patience time.Duration) bool {
	if ws.Waiting.Load() == 0 && ws.settled() {
		return true
	}
	ws.signalMu.Lock()
	wakes := !ws.running
	ws.running = true
	ws.signalMu.Unlock()
	if wakes {
		ws.wakeAll()
	}
	quiet := *ws.steps.quiet.Load()
	for until := clock.Monotonic() + patience; !ws.settled(); {
		select {
		case <-quiet:
		case <-time.After(until - clock.Monotonic()):
			return false
		}
	}
	return true
}

// settled reports whether nobody is stirred, or is about to be.
func (ws *Lines) settled() bool {
	ws.signalMu.Lock()
	running := ws.running
	ws.signalMu.Unlock()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return !running && ws.steps.stirred == 0
}

// Calm notes that the command of a wait has run and waits again, unless it was woken meanwhile. oldest is
// when what is pending longest was delivered, in ms; math.MaxInt64: nothing is.
func (ws *Lines) Calm(w *Wait, oldest int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if oldest != math.MaxInt64 {
		ws.knowLocked(w, oldest)
	}
	if !w.woken {
		ws.calmLocked(w)
	}
}

// Answered notes that the reply of a wait that has ended has left.
func (ws *Lines) Answered(w *Wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	ws.calmLocked(w)
}

func (ws *Lines) calmLocked(w *Wait) {
	if w.stirred {
		w.stirred = false
		ws.steps.stirred--
		ws.steps.poke()
	}
}
