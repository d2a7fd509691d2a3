package commands

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/scripts"
	"mayfly/expiry/clock"
)

// Scripts holds the scripts of an engine: those that are cached, and those that run for long. The zero value is ready.
// Safe for concurrent use.
type Scripts struct {
	cache     scripts.Cache
	off       atomic.Bool  // see SetEnabled
	timeLimit atomic.Int64 // see SetTimeLimit
	used      atomic.Bool  // a script has run
	stopping  atomic.Bool  // see Stop
	log       scriptLog

	leastHard time.Duration // instead of leastHardLimit; 0: that

	mu      sync.Mutex   // protects what follows
	running []*scriptRun // those that run for long, the longest first
	busy    int          // of them, those that have exceeded the time limit
}

// DefaultScriptTimeLimit is the default of lua-time-limit.
const DefaultScriptTimeLimit = 5 * time.Second

const (
	longScript     = time.Millisecond       // a script that runs for longer leaves the processors to others
	longEffort     = 64                     // commands that a script runs, at least, before longScript counts
	longPreemption = 20 * time.Millisecond  // a script that runs for longer is long, whatever it has done
	yieldInterval  = 10 * time.Millisecond  // a script without locks gives way to other long commands so often
	briefScript    = 200 * time.Microsecond // a script that takes less is not expected to take long the next time
	leastHardLimit = 10 * time.Second       // a script may take twice the time limit, and at least this
	staleHardLimit = time.Second            // at a follower, which applies no changes meanwhile
)

// SetEnabled switches scripts on or off (scripts).
func (ss *Scripts) SetEnabled(on bool) { ss.off.Store(!on) }

// SetTimeLimit sets for how long a script may run before other commands are answered with BUSY (lua-time-limit); 0: for
// any time.
func (ss *Scripts) SetTimeLimit(limit time.Duration) { ss.timeLimit.Store(int64(max(limit, 0))) }

// Stats returns the figures of the cached scripts.
func (ss *Scripts) Stats() scripts.Stats { return ss.cache.Stats() }

// Stop ends all scripts. They change nothing. No script runs for long afterwards.
func (ss *Scripts) Stop() {
	ss.stopping.Store(true)
	ss.endAll(errScriptStopped)
}

// endAll ends the scripts that run for long with an error, which names the script.
func (ss *Scripts) endAll(format string) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	for _, r := range ss.running {
		r.end(format)
	}
}

// add notes that a script runs for long.
func (ss *Scripts) add(r *scriptRun) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.running = append(ss.running, r)
}

// remove notes that a script that has run for long is over.
func (ss *Scripts) remove(r *scriptRun) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	ss.running = slices.DeleteFunc(ss.running, func(other *scriptRun) bool { return other == r })
	if r.busy {
		ss.busy--
		r.engine.pause.setBusy(ss.busy > 0)
	}
}

// exceeded notes that a script has exceeded the time limit.
func (ss *Scripts) exceeded(r *scriptRun) {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	r.busy = true
	ss.busy++
	r.engine.pause.setBusy(true)
}

// kill ends the scripts that have exceeded the time limit, or else the one that has run for longest, unless they have
// written. The error says why none has ended.
func (ss *Scripts) kill() error {
	ss.mu.Lock()
	defer ss.mu.Unlock()
	list := ss.running
	if len(list) == 0 {
		return errNotBusy
	}
	if list = slices.DeleteFunc(slices.Clone(list), func(r *scriptRun) bool { return !r.busy }); len(list) == 0 {
		list = ss.running[:1]
	}
	killed := false
	for _, r := range list {
		killed = r.state.CompareAndSwap(scriptReads, scriptKilled) || r.state.Load() == scriptKilled || killed
	}
	if !killed {
		return errUnkillable
	}
	return nil
}

// isBusy reports whether a script has exceeded the time limit.
func (p *pause) isBusy() bool {
	g := p.gate.Load()
	return g != nil && g.busy
}

// refuseBusy answers a command with BUSY if it must not run beside a script that has exceeded the time limit. It reports
// whether it has. Other errors of the command come first.
func (e *Engine) refuseBusy(s *Session, args []string, out *Outcome) bool {
	if s.wait != nil || s.ForwardsPending {
		return false
	}
	r, err := s.resolve(args)
	if err != nil || r.Flags&AllowBusy != 0 || e.Cluster == nil && r.Flags&OnlyInCluster != 0 || e.admit(s, r, args) != nil {
		return false
	}
	mode := s.replies
	out.Reply = e.reject(s, r, errBusy)
	s.ResetTimer()
	e.stats.countReply(s, &out.Reply)
	if r.Scope == ScopeQueue {
		s.replies.filterExec(mode, &out.Reply)
	} else {
		s.replies.filter(&out.Reply)
	}
	return true
}

// beginWaiting begins the session's transaction with try, which returns false while a holder of the locks takes long. The
// error is that of ended, which says why to wait no longer.
func (s *Session) beginWaiting(try func() bool, ended func() error) error {
	if try() {
		return nil
	}
	const longest = 4 * time.Millisecond
	w := s.keyspace.WaitForLocks()
	defer w.End()
	for ; !try(); w.Next(longest) {
		if err := ended(); err != nil {
			return err
		}
	}
	return nil
}

// busyError returns errBusy once a script has exceeded the time limit.
func (e *Engine) busyError() error {
	if e.pause.isBusy() {
		return errBusy
	}
	return nil
}

// beginAll begins the session's transaction with all partitions locked.
func (e *Engine) beginAll(s *Session) error {
	if !e.Scripts.used.Load() {
		s.keyspace.BeginAll(&s.tx)
		return nil
	}
	return s.beginWaiting(func() bool { return s.keyspace.TryBeginAll(&s.tx) }, e.busyError)
}

// lateLocks are the locks that the transaction of a script takes at its first command.
type lateLocks struct {
	due  bool     // they are not taken yet
	all  bool     // all partitions
	keys []string // or those of these keys, views of the read buffer
}

// beginLate begins the session's transaction without locks: see lockLate.
func (s *Session) beginLate(all bool, keys []string) {
	s.keyspace.BeginNone(&s.tx)
	s.late = lateLocks{due: true, all: all, keys: keys}
}

// lockLate begins the session's transaction anew, with the locks of keys or with all. The transaction so far must have seen
// nothing. It returns false if a loop cannot have the locks at once. The error is that of ended.
func (e *Engine) lockLate(s *Session, all bool, ended func() error) (locked bool, err error) {
	keys, tx := s.late.keys, &s.tx
	try := func() bool { return s.keyspace.TryBeginKeys(tx, keys) }
	if all {
		try = func() bool { return s.keyspace.TryBeginAll(tx) }
	}
	tx.Close()
	if s.OnLoop {
		locked = !all && try()
	} else {
		err = s.beginWaiting(try, ended)
		locked = err == nil
	}
	if !locked {
		s.keyspace.BeginNone(tx)
		return false, err
	}
	s.late = lateLocks{}
	tx.MarkLong(false)
	return true, nil
}

// beginScript starts the session's transaction for EVAL or a relative. It locks nothing: the script does, at its first
// command. The error is errLocked if the script is to wait for a turn, or to leave its loop.
func (e *Engine) beginScript(s *Session, r *row, args []string) error {
	if r.Flags&MayWrite != 0 {
		if err := e.throttle(s); err != nil {
			return err
		}
	}
	script, err := e.loadScript(args)
	if err != nil {
		s.scriptAll = false
		return err
	}
	notes := script.Notes.Load()
	watched := e.Broker.monitoringSessions.Load() > 0 // each call is shown once, so no run may be repeated
	long := watched || notes&scriptTakesLong != 0
	all := s.scriptAll || watched || notes&scriptNeedsAll != 0
	if s.Paced && long || s.OnLoop && (long || all || s.scriptLeaves) {
		s.scriptAll = false
		return errLocked
	}
	s.in.script, s.scriptAll, s.scriptLeaves = script, all, false
	e.Scripts.used.Store(true)
	s.beginLate(all, scriptKeys(args))
	return nil
}

// What is known of a script from its earlier runs: bits of [scripts.Script.Notes].
const (
	scriptNeedsAll  uint32 = 1 << iota // it uses keys that its calls do not name
	scriptTakesLong                    // it takes longer than longScript
)

// note sets or clears what is known of a script.
func note(script *scripts.Script, bit uint32, on bool) {
	for {
		old := script.Notes.Load()
		now := old &^ bit
		if on {
			now |= bit
		}
		if now == old || script.Notes.CompareAndSwap(old, now) {
			return
		}
	}
}

// hardLimit returns after how long a script is ended.
func (r *scriptRun) hardLimit() time.Duration {
	if r.x.Session.service == serveStale {
		return staleHardLimit
	}
	return max(2*time.Duration(r.engine.Scripts.timeLimit.Load()), cmp.Or(r.engine.Scripts.leastHard, leastHardLimit))
}

// Stop implements [scripts.Interrupt]. The interpreter calls it after each 20,000 steps.
func (r *scriptRun) Stop() error {
	r.effort += longEffort
	r.giveWay()
	return r.ask()
}

// giveWay lets other long commands have their turn while the script holds no locks.
func (r *scriptRun) giveWay() {
	if s := r.x.Session; r.long && s.late.due && s.Yield != nil && r.now >= r.yields {
		s.Yield()
		r.yields = clock.Monotonic() + yieldInterval
	}
}

// ask returns an error if the script is to end now. A script that has done little does not take long: the system has given
// its processor to others.
func (r *scriptRun) ask() error {
	r.now = clock.Monotonic()
	elapsed := r.now - r.began
	if elapsed < longScript || elapsed < longPreemption && r.effort < longEffort {
		return nil
	}
	return r.lasts()
}
