package waiting

import (
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"
)

// Lines are the lines of clients that wait. The zero value has none. Its methods may be called by any
// goroutine. A command that has nothing to return waits:
//
//  1. It joins its lines, then looks again, so that it misses nothing. Its outcome is deferred.
//  2. [Lines.Signal] says that a log has new entries, or that a key has a collection. A goroutine, which
//     exists only while there are such, wakes all readers of the log, and the first in each line of a group.
//  3. A command that is woken runs again. If there is still nothing it goes on waiting, in its old place.
//  4. With CLAIM it also runs again when the first entry that is pending has been so for long enough. It
//     knows that moment from its last run, or from who has made an entry pending since.
//  5. The wait ends with a reply, after its time, by CLIENT UNBLOCK, or with the connection. The next in the
//     lines of groups is woken if there may be something for it.
//
// So a burial pays nothing if no client waits, and else for noting a name. A clock that clients move waits
// until those that it has woken have their replies, or wait again: see steps.go.
type Lines struct {
	Waiting atomic.Int64 // clients
	steps   steps

	mu       sync.Mutex // protects what follows, and the waits
	turn     uint64     // of the last wait
	lines    map[Key]*line
	groups   map[string]map[Key]*line // the lines of groups by container
	sessions map[int64]*Wait

	signalMu sync.Mutex          // protects what follows; never held for long
	signaled map[string]struct{} // containers with new entries
	running  bool                // the goroutine that wakes
}

// Key names a line: that of all readers of a container's log, of a group of consumers, or of those who wait
// for a key.
type Key struct {
	Container string
	Group     string
	Grouped   bool // group is set, although it may be empty
}

// LineOfKey names the line of those who wait for a collection of a kind under a key of a database. It is that
// of a group, as one of them is served at a time. The result keeps nothing of the arguments.
func LineOfKey(database, key string, kind keyspace.Kind) Key {
	return Key{Container: lineOf(database) + key, Group: string(rune(kind)), Grouped: true}
}

// lineOf returns how the name of a line of a database begins. No container has such a name.
func lineOf(database string) string { return "\x00" + database + "\x00" }

// line is a line of clients that wait, in the order in which they came.
type line struct {
	first, last *place
	blind       int // clients that would claim, and know of nothing that is pending
}

// place is the place of a client in a line.
type place struct {
	wait       *Wait
	key        Key
	prev, next *place
}

// Wait is a client that waits in a command.
type Wait struct {
	session int64
	places  []place
	wake    chan struct{} // closed to run the command again
	woken   bool          // wake is closed
	stirred bool          // it was woken, and has neither its reply nor waits again
	until   int64         // ms, by a clock that clients move; 0: no limit
	minIdle int64         // ms, of CLAIM; negative: it claims nothing
	claim   int64         // ms; the moment from which there is something to claim; 0: nothing is pending
	turn    uint64        // the order of waits with one moment
	place   int           // among those that wait for a moment of the clock
	ripe    *time.Timer   // runs the command again at claim; nil: no such moment, or clients move the clock
	manual  *clock.Manual // nil: clients do not move the clock
	now     func() int64  // ms
	runs    int           // how often the command has run since it began to wait
	over    End           // why it ends, if not by a reply
	timer   *time.Timer   // nil: no limit
	deposed atomic.Bool
}

// End is why a wait ends, if not by a reply.
type End uint8

const (
	GoesOn  End = iota
	Timeout     // its time is over, or CLIENT UNBLOCK ends it
	Refused     // CLIENT UNBLOCK with ERROR
)

// waitSize is about the number of bytes of a wait, and placeSize those of a place in a line besides the
// names.
const (
	waitSize  = 300
	placeSize = 200
)

// New returns the wait of a session's command, which is in no line yet. minIdle is that of CLAIM in ms;
// negative: it claims nothing.
func New(session int64, lines []Key, minIdle int64) *Wait {
	w := &Wait{session: session, places: make([]place, len(lines)), wake: make(chan struct{}), minIdle: minIdle}
	for i, key := range lines {
		w.places[i] = place{wait: w, key: key}
	}
	return w
}

// Memory returns about how many bytes the wait takes.
func (w *Wait) Memory() int {
	size := waitSize
	for i := range w.places {
		size += placeSize + len(w.places[i].key.Container) + len(w.places[i].key.Group)
	}
	return size
}

// Runs returns how often the command has run since it began to wait. As Woken, it is for the client's own
// goroutine.
func (w *Wait) Runs() int { return w.runs }

// Woken returns the channel that is closed when the command is to run again. It is another for each run.
func (w *Wait) Woken() <-chan struct{} { return w.wake }

// Deposed reports whether the wait has ended because the node does not lead any more.
func (w *Wait) Deposed() bool { return w.deposed.Load() }

// Turns returns the keys of a database for whose collections the client waits, and is the first to.
func (ws *Lines) Turns(w *Wait, database string) (keys []string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for i := range w.places {
		if p := &w.places[i]; p.prev == nil {
			keys = append(keys, p.key.Container[len(lineOf(database)):])
		}
	}
	return keys
}

// Unawaited returns those of the keys of a database for whose collections of a kind nobody waits.
func (ws *Lines) Unawaited(keys []string, database string, kind keyspace.Kind) []string {
	if ws.Waiting.Load() == 0 {
		return keys
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return ws.lines[LineOfKey(database, key, kind)] != nil })
}

// Join puts a client in its lines, for a time in ms; 0: for ever. That is over by the clock that clients
// move, if there is one, or by the time that they wait for, whichever is first. now returns the time in ms.
func (ws *Lines) Join(w *Wait, ms int64, manual *clock.Manual, now func() int64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.sessions == nil {
		ws.sessions, ws.lines = map[int64]*Wait{}, map[Key]*line{}
		ws.groups = map[string]map[Key]*line{}
	}
	ws.sessions[w.session] = w
	ws.turn++
	w.turn, w.manual, w.now = ws.turn, manual, now
	ws.Waiting.Add(1)
	for i := range w.places {
		ws.appendLocked(&w.places[i])
	}
	if ms > 0 {
		if manual != nil {
			ws.steps.moments.set(w, manual.Now()+min(ms, clock.End), 0)
		}
		w.timer = afterMs(ms, func() { ws.end(w, Timeout) })
	}
}

// afterMs calls f after a time in ms.
func afterMs(ms int64, f func()) *time.Timer {
	const longest = math.MaxInt64 / int64(time.Millisecond)
	return time.AfterFunc(time.Duration(min(ms, longest))*time.Millisecond, f)
}

// appendLocked puts a client at the end of a line.
func (ws *Lines) appendLocked(p *place) {
	l := ws.lines[p.key]
	if l == nil {
		l = new(line)
		ws.lines[p.key] = l
		if p.key.Grouped {
			of := ws.groups[p.key.Container]
			if of == nil {
				of = map[Key]*line{}
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
func (w *Wait) isBlind() bool { return w.minIdle >= 0 && w.claim == 0 }

// removeLocked takes a client out of a line.
func (ws *Lines) removeLocked(p *place) {
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

// Again notes that the command of a wait runs again, and returns why it ends, if it does.
func (ws *Lines) Again(w *Wait) End {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	w.runs++
	ws.setClaimLocked(w, 0)          // it looks
	if w.woken && w.over == GoesOn { // else leave hands a signal on that came at the same time
		w.wake, w.woken = make(chan struct{}), false
	}
	return w.over
}

// Leave ends a wait. The next in the lines of groups is woken if there may be something for it: the client
// was woken and has not looked since, or has never looked, or it was served and may have left some entries.
// It reports whether the wait was stirred, and is so until its reply has left.
func (ws *Lines) Leave(w *Wait, served bool) (stirred bool) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.timer != nil {
		w.timer.Stop()
	}
	ws.setClaimLocked(w, 0)
	ws.steps.moments.set(w, 0, 0)
	delete(ws.sessions, w.session)
	ws.Waiting.Add(-1)
	for i := range w.places {
		p := &w.places[i]
		next := p.next
		first := p.prev == nil
		ws.removeLocked(p)
		if p.key.Grouped && first && next != nil && (w.woken || w.runs == 0 || served) {
			ws.wakeLocked(next.wait)
		}
	}
	return w.stirred
}

// setClaimLocked sets the moment in ms from which there is something for a client to claim; 0: nothing is
// pending.
func (ws *Lines) setClaimLocked(w *Wait, at int64) {
	if w.claim == at {
		return
	}
	was := w.isBlind()
	if w.ripe != nil {
		w.ripe.Stop()
		w.ripe = nil
	}
	if w.manual != nil {
		ws.steps.moments.set(w, w.until, at)
	} else if w.claim = at; at != 0 {
		w.ripe = afterMs(max(at-w.now(), 0), func() { ws.ripen(w) })
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
func (ws *Lines) ripen(w *Wait) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.claim != 0 {
		ws.setClaimLocked(w, 0)
		ws.wakeLocked(w)
	}
}

// NotePending tells those who would claim entries of a group that some are pending since a time in ms. older
// says that others may be pending that came later: else who knows of one need not hear of these.
func (ws *Lines) NotePending(group Key, since int64, older bool) {
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
func (ws *Lines) knowLocked(w *Wait, since int64) {
	if at := since + min(w.minIdle, clock.End); w.claim == 0 || at < w.claim {
		ws.setClaimLocked(w, at)
	}
}

// end ends a wait from outside, and reports whether it was going on.
func (ws *Lines) end(w *Wait, why End) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.endLocked(w, why)
}

func (ws *Lines) endLocked(w *Wait, why End) bool {
	if w == nil || w.over != GoesOn || ws.sessions[w.session] != w {
		return false
	}
	w.over = why
	ws.wakeLocked(w)
	return true
}

// Unblock ends the wait of the session with an id, as if its time were over or with an error. It reports
// whether the session was waiting.
func (ws *Lines) Unblock(session int64, withError bool) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	why := Timeout
	if withError {
		why = Refused
	}
	return ws.endLocked(ws.sessions[session], why)
}

// EndAll ends all waits: the node does not lead any more.
func (ws *Lines) EndAll() {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, w := range ws.sessions {
		w.deposed.Store(true)
		ws.wakeLocked(w)
	}
}

// wakeLocked makes the command of a wait run again.
func (ws *Lines) wakeLocked(w *Wait) {
	if !w.woken {
		w.woken = true
		close(w.wake)
	}
	if !w.stirred {
		w.stirred = true
		ws.steps.stirred++
	}
}

// Signal wakes those who wait for a container's log, soon: it has new entries, or is gone. It returns soon,
// and costs little if nobody waits. The name must not be overwritten.
func (ws *Lines) Signal(container string) {
	if ws.Waiting.Load() > 0 {
		ws.signal(container)
	}
}

// Filled wakes those who wait for a key of a database, soon: it was missing, and has a collection.
func (ws *Lines) Filled(database, key string) {
	if ws.Waiting.Load() > 0 {
		ws.signal(lineOf(database) + key)
	}
}

// FilledAll wakes those who wait for any key of a database, soon.
func (ws *Lines) FilledAll(database string) {
	if ws.Waiting.Load() == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for name := range ws.groups {
		if strings.HasPrefix(name, lineOf(database)) {
			ws.signal(name)
		}
	}
}

func (ws *Lines) signal(container string) {
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
func (ws *Lines) wakeAll() {
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
func (ws *Lines) wake(container string) {
	const atOnce = 64 // while the lock is held
	ws.mu.Lock()
	for _, l := range ws.groups[container] {
		ws.wakeLocked(l.first.wait)
	}
	var readers []*Wait
	if l := ws.lines[Key{Container: container}]; l != nil {
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
