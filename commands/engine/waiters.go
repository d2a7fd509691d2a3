package engine

import (
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/streamid"
)

// A command with BLOCK that has nothing to return waits:
//
//  1. It joins the lines of its streams, then looks again, so that it misses nothing. Its outcome is
//     deferred.
//  2. [Engine.OnLogged] says that a log has new entries. A goroutine, which exists only while there are such
//     logs, wakes all readers of the log, and the first in the line of each group.
//  3. A command that is woken runs again. If there is still nothing it goes on waiting, in its old place.
//  4. With CLAIM it also runs again when the first entry that is pending has been so for long enough. It
//     knows that moment from its last run, or from who has made an entry pending since.
//  5. The wait ends with a reply, after its time, by CLIENT UNBLOCK, or with the connection. The next in the
//     lines of groups is woken if the log may hold something for it.
//
// So a burial pays nothing if no client waits, and else for noting a name. A clock that clients move waits
// until those that it has woken have their replies, or wait again: see waiters_steps.go.
type waiters struct {
	Waiting atomic.Int64 // clients
	steps   steps

	mu       sync.Mutex // protects what follows, and the waits
	turn     uint64     // of the last wait
	lines    map[LineKey]*line
	groups   map[string]map[LineKey]*line // the lines of groups by container
	sessions map[int64]*wait

	signalMu sync.Mutex          // protects what follows; never held for long
	signaled map[string]struct{} // containers with new entries
	running  bool                // the goroutine that wakes
}

// LineKey names a line: that of all readers of a container's log, of a group of consumers, or of those who
// wait for a key.
type LineKey struct {
	Container string
	Group     string
	Grouped   bool // group is set, although it may be empty
}

// LineOfKey names the line of those who wait for a collection under a key of a database: a group by itself,
// as one of them is served at a time. The result keeps nothing of the arguments.
func LineOfKey(database, key string) LineKey {
	return LineKey{Container: "\x00" + database + "\x00" + key, Grouped: true} // no container has such a name
}

// Filled says that a key of a container, which was missing, has a collection: who waits for it may take from
// it.
func (x *Context) Filled(c *keyspace.Container, key string) {
	if ws := &x.Engine.Waiters; ws.Waiting.Load() > 0 {
		ws.signal(LineOfKey(c.Name(), key).Container)
	}
}

// FilledAll says that all keys of a database may have collections that were missing.
func (x *Context) FilledAll(database string) {
	ws := &x.Engine.Waiters
	if ws.Waiting.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for name := range ws.groups {
		if strings.HasPrefix(name, LineOfKey(database, "").Container) {
			ws.signal(name)
		}
	}
}

// line is a line of clients that wait, in the order in which they came.
type line struct {
	first, last *place
	blind       int // clients that would claim, and know of nothing that is pending
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
	minIdle int64         // ms, of CLAIM; negative: it claims nothing
	claim   int64         // ms; the moment from which there is something to claim; 0: nothing is pending
	turn    uint64        // the order of waits with one moment
	place   int           // among those that wait for a moment of the clock
	ripe    *time.Timer   // runs the command again at claim; nil: no such moment, or clients move the clock
	engine  *Engine
	runs    int         // how often the command has run since it began to wait
	over    waitEnd     // why it ends, if not by a reply
	timer   *time.Timer // nil: no limit
	deposed atomic.Bool // the node does not lead any more: see deposeAll
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

// Wait says for what a command waits that has nothing to return.
type Wait struct {
	Time    int64            // ms; 0 for ever
	After   []streamid.ID    // what its ids stand for when it runs again
	MinIdle int64            // ms, of CLAIM; negative without
	Oldest  int64            // ms; when what is pending longest was delivered; math.MaxInt64: nothing is
	Lines   func() []LineKey // they keep nothing of the arguments
}

// Block ends the run of a command that has nothing to return: it waits.
func (x *Context) Block(of Wait) Reply {
	s, ws := x.Session, &x.Engine.Waiters
	if s.Wait == nil {
		w := newWait(s, of.Lines(), of.After)
		w.minIdle = of.MinIdle
		if !s.Memory.Reserve(w.memory) {
			return Fail(ErrClientMemory)
		}
		ws.join(w, of.Time, x.Engine)
		s.Wait = w
		s.Update(func() { s.blocked = true })
		x.Outside = func() (Reply, bool) { return Reply{}, true } // look again
		return Reply{}
	}
	x.resume = s.Wait.wake
	ws.calm(s.Wait, of.Oldest)
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
	if e.Waiters.leave(w, served) {
		s.stirred = w
	}
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
func (ws *waiters) join(w *wait, ms int64, e *Engine) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.sessions == nil {
		ws.sessions, ws.lines = map[int64]*wait{}, map[LineKey]*line{}
		ws.groups = map[string]map[LineKey]*line{}
	}
	ws.sessions[w.session.ID] = w
	ws.turn++
	w.turn = ws.turn
	ws.Waiting.Add(1)
	w.engine = e
	for i := range w.places {
		ws.appendLocked(&w.places[i])
	}
	if ms > 0 {
		if e.Clock != nil {
			ws.steps.moments.set(w, e.Clock.Now()+min(ms, clock.End), 0)
		}
		w.timer = afterMs(ms, func() { ws.end(w, WaitTimeout) })
	}
}

// afterMs calls f after a time in ms.
func afterMs(ms int64, f func()) *time.Timer {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.AfterFunc(time.Duration(min(ms, longest))*time.Millisecond, f)
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
	if p.wait.isBlind() {
		l.blind++
	}
}

// isBlind reports whether the client would claim entries, and knows of none that is pending.
func (w *wait) isBlind() bool { return w.minIdle >= 0 && w.claim == 0 }

// removeLocked takes a client out of a line.
func (ws *waiters) removeLocked(p *place) {
	l := ws.lines[p.key]
	if p.wait.isBlind() {
		l.blind--
	}
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
	ws.setClaimLocked(w, 0)              // it looks
	if w.woken && w.over == waitGoesOn { // else leave hands a signal on that came at the same time
		w.wake, w.woken = make(chan struct{}), false
	}
	return w.over
}

// leave ends a wait. The next in the lines of groups is woken if there may be something for it: the client
// was woken and has not looked since, or it was served and may have left some entries. It reports whether the
// wait was stirred, and is so until its reply has left.
func (ws *waiters) leave(w *wait, served bool) (stirred bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	ws.setClaimLocked(w, 0)
	ws.steps.moments.set(w, 0, 0)
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
	return w.stirred
}

// setClaimLocked sets the moment in ms from which there is something for a client to claim; 0: nothing is
// pending.
func (ws *waiters) setClaimLocked(w *wait, at int64) {
	if w.claim == at {
		return
	}
	was := w.isBlind()
	if w.ripe != nil {
		w.ripe.Stop()
		w.ripe = nil
	}
	if w.engine.Clock != nil {
		ws.steps.moments.set(w, w.until, at)
	} else if w.claim = at; at != 0 {
		w.ripe = afterMs(max(at-w.engine.Now(), 0), func() { ws.ripen(w) })
	}
	if is := w.isBlind(); is != was {
		for i := range w.places {
			if l := ws.lines[w.places[i].key]; is {
				l.blind++
			} else {
				l.blind--
			}
		}
	}
}

// ripen runs the command of a wait again: there may be something to claim.
func (ws *waiters) ripen(w *wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.claim != 0 {
		ws.setClaimLocked(w, 0)
		ws.wakeLocked(w)
	}
}

// NotePending tells those who would claim entries of a group that some are pending since a time in ms. older
// says that others may be pending that came later: else who knows of one need not hear of these.
func (ws *waiters) NotePending(group LineKey, since int64, older bool) {
	if ws.Waiting.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	l := ws.lines[group]
	if l == nil || l.blind == 0 && !older {
		return
	}
	for p := l.first; p != nil; p = p.next {
		if p.wait.minIdle >= 0 {
			ws.knowLocked(p.wait, since)
		}
	}
}

// knowLocked notes that something is pending since a time in ms which a client would claim.
func (ws *waiters) knowLocked(w *wait, since int64) {
	if at := since + min(w.minIdle, clock.End); w.claim == 0 || at < w.claim {
		ws.setClaimLocked(w, at)
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
