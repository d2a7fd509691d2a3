package engine

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/streamid"
)

// A command with BLOCK that has nothing to return waits:
//
//  1. It joins the lines of its streams, then looks again, so that it misses nothing. Its outcome is
//     deferred.
//  2. [Engine.OnLogged] says that a log has new entries. A goroutine, which exists only while there are such
//     logs, wakes all readers of the log, and the first in the line of each group.
//  3. A command that is woken runs again. If there is still nothing it goes on waiting, in its old place.
//  4. The wait ends with a reply, after its time, by CLIENT UNBLOCK, or with the connection. The next in the
//     lines of groups is woken if the log may hold something for it.
//
// So a burial pays nothing if no client waits, and else for noting a name. A clock that clients move waits
// until those that it has woken have their replies, or wait again: see waiters_steps.go.
type waiters struct {
	Waiting atomic.Int64 // clients
	steps   steps

	mu       sync.Mutex // protects what follows, and the waits
	lines    map[LineKey]*line
	groups   map[string]map[LineKey]*line // the lines of groups by container
	sessions map[int64]*wait

	signalMu sync.Mutex          // protects what follows; never held for long
	signaled map[string]struct{} // containers with new entries
	running  bool                // the goroutine that wakes
}

// LineKey names a line: that of all readers of a container's log, or of a group of consumers.
type LineKey struct {
	Container string
	Group     string
	Grouped   bool // group is set, although it may be empty
}

// line is a line of clients that wait, in the order in which they came.
type line struct {
	first, last *place
}

// place is the place of a client in a line.
type place struct {
	wait       *wait
	key        LineKey
	prev, next *place
}

// wait is a client that waits in a command.
type wait struct {
	session *Session
	after   []streamid.ID // of XREAD: what its ids stand for
	places  []place
	memory  int           // reserved for it
	wake    chan struct{} // closed to run the command again
	woken   bool          // wake is closed
	stirred bool          // it was woken, and has neither its reply nor waits again
	until   int64         // ms, by a clock that clients move; 0: no limit
	runs    int           // how often the command has run since it began to wait
	over    waitEnd       // why it ends, if not by a reply
	timer   *time.Timer   // nil: no limit
	deposed atomic.Bool   // the node does not lead any more: see deposeAll
}

// waitEnd is why a command ends that waits.
type waitEnd uint8

const (
	waitGoesOn waitEnd = iota
	WaitTimeout
	WaitError // CLIENT UNBLOCK with ERROR
)

// errUnblocked is the reply of a command that CLIENT UNBLOCK ends with ERROR.
const errUnblocked = Error("UNBLOCKED client unblocked via CLIENT UNBLOCK")

// waitSize is about the number of bytes of a wait, and PlaceSize those of a place in a line besides the
// names.
const (
	waitSize  = 300
	PlaceSize = 200
)

// Block ends the run of a command that has nothing to return: it waits in lines for a time in ms, 0 for ever.
// after is what its ids stand for when it runs again. The lines keep nothing of the arguments.
func (x *Context) Block(ms int64, after []streamid.ID, lines func() []LineKey) Reply {
	s, ws := x.Session, &x.Engine.Waiters
	if s.Wait == nil {
		w := newWait(s, lines(), after)
		if !s.Memory.Reserve(w.memory) {
			return Fail(ErrClientMemory)
		}
		ws.join(w, ms, x.Engine.Clock)
		s.Wait = w
		s.Update(func() { s.blocked = true })
		x.Outside = func() (Reply, bool) { return Reply{}, true } // look again
		return Reply{}
	}
	x.resume = s.Wait.wake
	ws.calm(s.Wait)
	return Reply{}
}

// newWait returns the wait of a command that is in no line yet.
func newWait(s *Session, lines []LineKey, after []streamid.ID) *wait {
	w := &wait{session: s, after: after, wake: make(chan struct{}), memory: waitSize + 16*len(after)}
	for _, key := range lines {
		w.places = append(w.places, place{wait: w, key: key})
		w.memory += PlaceSize + len(key.Container) + len(key.Group)
	}
	return w
}

// HasWaited reports whether the command runs again after it has waited.
func (x *Context) HasWaited() bool { return x.Session.Wait != nil && x.Session.Wait.runs > 1 }

// WaitsAfter returns what the ids of a command stand for that runs again, else nil.
func (x *Context) WaitsAfter() []streamid.ID {
	if w := x.Session.Wait; w != nil {
		return w.after
	}
	return nil
}

// WaitEnded begins another run of a command that waits. It returns the reply if the wait is over.
func (x *Context) WaitEnded() (reply Reply, over bool) {
	w := x.Session.Wait
	if w == nil || x.Queued {
		return Reply{}, false
	}
	switch x.Engine.Waiters.again(w) {
	case WaitTimeout:
		return NullArray, true
	case WaitError:
		return Fail(errUnblocked), true
	}
	return Reply{}, false
}

// endWait ends the wait of a session's command. served reports that it has returned entries.
func (e *Engine) endWait(s *Session, served bool) {
	w := s.Wait
	s.Wait = nil
	e.Waiters.leave(w, served)
	s.Memory.Release(w.memory)
	s.Update(func() { s.blocked = false })
}

// OnLogged notes that the log of a container has new entries, or is gone. The keyspace calls it with locks
// held; it returns soon. The name must not be overwritten.
func (e *Engine) OnLogged(container string) {
	if e.Waiters.Waiting.Load() > 0 {
		e.Waiters.signal(container)
	}
}

// join puts a client in its lines, for a time in ms; 0: for ever. That is over by the clock that clients
// move, if there is one, or by the time that they wait for, whichever is first.
func (ws *waiters) join(w *wait, ms int64, by *clock.Manual) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.sessions == nil {
		ws.sessions, ws.lines = map[int64]*wait{}, map[LineKey]*line{}
		ws.groups = map[string]map[LineKey]*line{}
	}
	ws.sessions[w.session.ID] = w
	ws.Waiting.Add(1)
	for i := range w.places {
		ws.appendLocked(&w.places[i])
	}
	if ms > 0 {
		if by != nil {
			w.until = by.Now() + min(ms, clock.End)
			ws.steps.noteLocked(w.until)
		}
		const longest = math.MaxInt64 / int64(time.Millisecond)
		w.timer = time.AfterFunc(time.Duration(min(ms, longest))*time.Millisecond, func() { ws.end(w, WaitTimeout) })
	}
}

// appendLocked puts a client at the end of a line.
func (ws *waiters) appendLocked(p *place) {
	l := ws.lines[p.key]
	if l == nil {
		l = new(line)
		ws.lines[p.key] = l
		if p.key.Grouped {
			of := ws.groups[p.key.Container]
			if of == nil {
				of = map[LineKey]*line{}
				ws.groups[p.key.Container] = of
			}
			of[p.key] = l
		}
	}
	if p.prev = l.last; p.prev != nil {
		p.prev.next = p
	} else {
		l.first = p
	}
	l.last = p
}

// removeLocked takes a client out of a line.
func (ws *waiters) removeLocked(p *place) {
	l := ws.lines[p.key]
	if p.prev != nil {
		p.prev.next = p.next
	} else {
		l.first = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	} else {
		l.last = p.prev
	}
	if l.first != nil {
		return
	}
	delete(ws.lines, p.key)
	if of := ws.groups[p.key.Container]; p.key.Grouped {
		if delete(of, p.key); len(of) == 0 {
			delete(ws.groups, p.key.Container)
		}
	}
}

// again notes that the command of a wait runs again, and returns why it ends, if it does.
func (ws *waiters) again(w *wait) waitEnd {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.runs++
	if w.woken && w.over == waitGoesOn { // else leave hands a signal on that came at the same time
		w.wake, w.woken = make(chan struct{}), false
	}
	return w.over
}

// leave ends a wait. The next in the lines of groups is woken if there may be something for it: the client
// was woken and has not looked since, or it was served and may have left some entries.
func (ws *waiters) leave(w *wait, served bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	defer ws.calmLocked(w) // after it has woken others
	delete(ws.sessions, w.session.ID)
	ws.Waiting.Add(-1)
	for i := range w.places {
		p := &w.places[i]
		next := p.next
		first := p.prev == nil
		ws.removeLocked(p)
		if p.key.Grouped && first && next != nil && (w.woken || served) {
			ws.wakeLocked(next.wait)
		}
	}
}

// end ends a wait from outside, and reports whether it was going on.
func (ws *waiters) end(w *wait, why waitEnd) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.endLocked(w, why)
}

func (ws *waiters) endLocked(w *wait, why waitEnd) bool {
	if w == nil || w.over != waitGoesOn || ws.sessions[w.session.ID] != w {
		return false
	}
	w.over = why
	ws.wakeLocked(w)
	return true
}

// Unblock ends the wait of the session with an id, and reports whether it was waiting.
func (ws *waiters) Unblock(session int64, why waitEnd) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.endLocked(ws.sessions[session], why)
}

// deposeAll ends all waits: the node does not lead any more.
func (ws *waiters) deposeAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.sessions {
		w.deposed.Store(true)
		ws.wakeLocked(w)
	}
}

// wakeLocked makes the command of a wait run again.
func (ws *waiters) wakeLocked(w *wait) {
	if !w.woken {
		w.woken = true
		close(w.wake)
	}
	if !w.stirred {
		w.stirred = true
		ws.steps.stirred++
	}
}

// signal wakes those who wait for a log, soon.
func (ws *waiters) signal(container string) {
	ws.signalMu.Lock()
	defer ws.signalMu.Unlock()
	if ws.signaled == nil {
		ws.signaled = map[string]struct{}{}
	}
	ws.signaled[container] = struct{}{}
	if !ws.running && ws.steps.quiet.Load() == nil {
		ws.running = true
		go ws.wakeAll()
	}
}

// wakeAll wakes those who wait for the logs that were signaled. It returns when there are no more.
func (ws *waiters) wakeAll() {
	for {
		ws.signalMu.Lock()
		signaled := ws.signaled
		if ws.signaled = nil; len(signaled) == 0 {
			ws.running = false
			ws.signalMu.Unlock()
			ws.steps.poke()
			return
		}
		ws.signalMu.Unlock()
		for container := range signaled {
			ws.wake(container)
		}
	}
}

// wake wakes all readers of a log, and the first in the line of each group.
func (ws *waiters) wake(container string) {
	const atOnce = 64 // while the lock is held
	ws.mu.Lock()
	for _, l := range ws.groups[container] {
		ws.wakeLocked(l.first.wait)
	}
	var readers []*wait
	if l := ws.lines[LineKey{Container: container}]; l != nil {
		for p := l.first; p != nil; p = p.next {
			readers = append(readers, p.wait)
		}
	}
	for i, w := range readers {
		if i%atOnce == atOnce-1 {
			ws.mu.Unlock()
			ws.mu.Lock()
		}
		ws.wakeLocked(w)
	}
	ws.mu.Unlock()
}
