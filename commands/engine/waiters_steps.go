package engine

import (
	"cmp"
	"math"
	"sync/atomic"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
)

// steps is what the waits of clients have for a clock that clients move: it waits for those that it has
// woken. The mutex of the waiters protects what is not atomic.
type steps struct {
	first   int64                         // ms; no wait waits for an earlier moment of the clock; 0: for none
	stirred int                           // waits that were woken, and have neither their replies nor wait again
	over    atomic.Pointer[chan struct{}] // closed when the clock stands again; nil while it does
	quiet   atomic.Pointer[chan struct{}] // has room for one; who waits for the stirred looks again
}

// noteLocked notes that a wait waits for a moment in ms.
func (s *steps) noteLocked(at int64) {
	if s.first == 0 || at < s.first {
		s.first = at
	}
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
func (ws *waiters) BeginSteps() (busy <-chan struct{}) {
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
func (ws *waiters) EndSteps() {
	ws.signalMu.Lock()
	ws.steps.quiet.Store(nil)
	if !ws.running && len(ws.signaled) > 0 {
		ws.running = true
		go ws.wakeAll()
	}
	ws.signalMu.Unlock()
	close(*ws.steps.over.Swap(nil))
}

// HeldByClock reports whether a command that may wait runs again later, because the clock moves.
func (x *Context) HeldByClock() bool {
	over := x.Engine.Waiters.steps.over.Load()
	if over == nil || x.Session.Wait != nil || x.Queued {
		return false
	}
	x.resume = *over
	return true
}

// NextEnd returns the next moment in ms at which a wait ends by the clock, or has something to claim;
// [expiry.NeverDue] if there is none. It may be early.
func (ws *waiters) NextEnd() int64 {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.steps.first == 0 {
		return expiry.NeverDue
	}
	return ws.steps.first
}

// EndUntil does what comes next of what waits wait for up to a moment in ms: one ends, or looks for something
// to claim. It reports false if there is nothing. One at a time, so that it is certain who claims.
func (ws *waiters) EndUntil(now int64) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.steps.first == 0 || ws.steps.first > now {
		return false
	}
	w := ws.firstLocked()
	switch {
	case w == nil:
		ws.steps.first = 0
		return false
	case w.moment() > now:
		ws.steps.first = w.moment()
		return false
	case w.until == w.moment():
		ws.endLocked(w, WaitTimeout)
	default:
		ws.ripenLocked(w)
	}
	return true
}

// firstLocked returns the wait whose moment comes first, nil if no wait has one.
func (ws *waiters) firstLocked() (first *wait) {
	for _, w := range ws.sessions {
		at := w.moment()
		if at != 0 && (first == nil || cmp.Or(cmp.Compare(at, first.moment()), cmp.Compare(w.turn, first.turn)) < 0) {
			first = w
		}
	}
	return first
}

// moment returns the moment in ms of the clock for which a wait waits: its end, or that from which there is
// something to claim. 0: none.
func (w *wait) moment() int64 {
	switch {
	case w.over != waitGoesOn:
		return 0
	case w.claim == 0 || w.until != 0 && w.until <= w.claim:
		return w.until
	}
	return w.claim
}

// Settle wakes those who wait for logs with new entries, and waits until all who were woken have their
// replies or wait again. It reports false if that takes longer than a real time.
func (ws *waiters) Settle(patience time.Duration) bool {
	if ws.Waiting.Load() == 0 {
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
func (ws *waiters) settled() bool {
	ws.signalMu.Lock()
	running := ws.running
	ws.signalMu.Unlock()
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return !running && ws.steps.stirred == 0
}

// calm notes that the command of a wait has run and waits again, unless it was woken meanwhile. oldest is when
// what is pending longest was delivered, in ms; math.MaxInt64: nothing is.
func (ws *waiters) calm(w *wait, oldest int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if oldest != math.MaxInt64 {
		ws.knowLocked(w, oldest)
	}
	if !w.woken {
		ws.calmLocked(w)
	}
}

func (ws *waiters) calmLocked(w *wait) {
	if w.stirred {
		w.stirred = false
		ws.steps.stirred--
		ws.steps.poke()
	}
}
