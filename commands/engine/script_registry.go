package engine

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/scripts"
	"mayfly/expiry/clock"
)

// Scripts holds the scripts of an engine: those that are cached, and those that run for long. The zero value
// is ready. Safe for concurrent use.
type Scripts struct {
	Cache     scripts.Cache
	Off       atomic.Bool  // see SetEnabled
	timeLimit atomic.Int64 // see SetTimeLimit
	used      atomic.Bool  // a script has run
	stopping  atomic.Bool  // see Stop
	log       scripts.Log

	LeastHard time.Duration        // instead of leastHardLimit; 0: that
	Monotonic func() time.Duration // instead of clock.Monotonic; nil: that

	Mu      sync.Mutex   // protects what follows
	Running []*scriptRun // those that run for long, the longest first
	Busy    int          // of them, those that have exceeded the time limit
}

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
func (ss *Scripts) SetEnabled(on bool) { ss.Off.Store(!on) }

// SetTimeLimit sets for how long a script may run before other commands are answered with BUSY
// (lua-time-limit); 0: for any time.
func (ss *Scripts) SetTimeLimit(limit time.Duration) { ss.timeLimit.Store(int64(max(limit, 0))) }

// Stats returns the figures of the cached scripts.
func (ss *Scripts) Stats() scripts.Stats { return ss.Cache.Stats() }

func (ss *Scripts) monotonic() time.Duration {
	if ss.Monotonic != nil {
		return ss.Monotonic()
	}
	return clock.Monotonic()
}

// Stop ends all scripts. They change nothing. No script runs for long afterwards.
func (ss *Scripts) Stop() {
	ss.stopping.Store(true)
	ss.EndAll(ErrScriptStopped)
}

// EndAll ends the scripts that run for long with an error, which names the script.
func (ss *Scripts) EndAll(format string) {
	ss.Mu.Lock()
	defer ss.Mu.Unlock()
	for _, r := range ss.Running {
		r.end(format)
	}
}

// add notes that a script runs for long.
func (ss *Scripts) add(r *scriptRun) {
	ss.Mu.Lock()
	defer ss.Mu.Unlock()
	ss.Running = append(ss.Running, r)
}

// remove notes that a script that has run for long is over.
func (ss *Scripts) remove(r *scriptRun) {
	ss.Mu.Lock()
	defer ss.Mu.Unlock()
	ss.Running = slices.DeleteFunc(ss.Running, func(other *scriptRun) bool { return other == r })
	if r.busy {
		ss.Busy--
		r.engine.Pause.setBusy(ss.Busy > 0)
	}
}

// exceeded notes that a script has exceeded the time limit.
func (ss *Scripts) exceeded(r *scriptRun) {
	ss.Mu.Lock()
	defer ss.Mu.Unlock()
	r.busy = true
	ss.Busy++
	r.engine.Pause.setBusy(true)
}

// Kill ends the scripts that have exceeded the time limit, or else the one that has run for longest, unless
// they have written. The error says why none has ended.
func (ss *Scripts) Kill() error {
	ss.Mu.Lock()
	defer ss.Mu.Unlock()
	list := ss.Running
	if len(list) == 0 {
		return ErrNotBusy
	}
	if list = slices.DeleteFunc(slices.Clone(list), func(r *scriptRun) bool { return !r.busy }); len(list) == 0 {
		list = ss.Running[:1]
	}
	killed := false
	for _, r := range list {
		killed = r.state.CompareAndSwap(scriptReads, scriptKilled) || r.state.Load() == scriptKilled || killed
	}
	if !killed {
		return ErrUnkillable
	}
	return nil
}

// IsBusy reports whether a script has exceeded the time limit.
func (p *pause) IsBusy() bool {
	g := p.gate.Load()
	return g != nil && g.busy
}

// refuseBusy answers a command with BUSY if it must not run beside a script that has exceeded the time limit.
// It reports whether it has. Other errors of the command come first.
func (e *Engine) refuseBusy(s *Session, args []string, out *Outcome) bool {
	if s.Wait != nil || s.ForwardsPending {
		return false
	}
	r, err := s.Resolve(args)
	if err != nil || r.Flags&AllowBusy != 0 || e.Cluster == nil && r.Flags&OnlyInCluster != 0 || e.Admit(s, r, args) != nil {
		return false
	}
	mode := s.Replies
	out.Reply = e.reject(s, r, ErrBusy)
	s.ResetTimer()
	e.Stats.countReply(s, &out.Reply)
	if r.Scope == ScopeQueue {
		s.Replies.filterExec(mode, &out.Reply)
	} else {
		s.Replies.filter(&out.Reply)
	}
	return true
}

// beginWaiting begins the session's transaction with try, which returns false while a holder of the locks
// takes long. The error is that of ended, which says why to wait no longer.
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

// busyError returns ErrBusy once a script has exceeded the time limit.
func (e *Engine) busyError() error {
	if e.Pause.IsBusy() {
		return ErrBusy
	}
	return nil
}

// beginAll begins the session's transaction with all partitions locked.
func (e *Engine) beginAll(s *Session) error {
	if !e.Scripts.used.Load() {
		s.keyspace.BeginAll(&s.Tx)
		return nil
	}
	return s.beginWaiting(func() bool { return s.keyspace.TryBeginAll(&s.Tx) }, e.busyError)
}

// lateLocks are the locks that the transaction of a script takes at its first command.
type lateLocks struct {
	due  bool     // they are not taken yet
	all  bool     // all partitions
	keys []string // or those of these keys, views of the read buffer
}

// beginLate begins the session's transaction without locks: see lockLate.
func (s *Session) beginLate(all bool, keys []string) {
	s.keyspace.BeginNone(&s.Tx)
	s.script.late = lateLocks{due: true, all: all, keys: keys}
}

// lockLate begins the session's transaction anew, with the locks of keys or with all. The transaction so far
// must have seen nothing. It returns false if a loop cannot have the locks at once. The error is that of
// ended.
func (e *Engine) lockLate(s *Session, all bool, ended func() error) (locked bool, err error) {
	keys, tx := s.script.late.keys, &s.Tx
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
	s.script.late = lateLocks{}
	tx.MarkLong(false)
	return true, nil
}

// beginScript starts the session's transaction for EVAL or a relative. It locks nothing: the script does, at
// its first command. The error is errLocked if the script is to wait for a turn, or to leave its loop.
func (e *Engine) beginScript(s *Session, r *Row, args []string) error {
	if r.Flags&MayWrite != 0 {
		if err := e.throttle(s); err != nil {
			return err
		}
	}
	script, err := e.loadScript(args)
	if err != nil {
		s.script.all = false
		return err
	}
	notes := script.Notes.Load()
	watched := e.Broker.MonitoringSessions.Load() > 0 // each call is shown once, so no run may be repeated
	long := watched || notes&scriptTakesLong != 0
	all := s.script.all || watched || notes&ScriptNeedsAll != 0
	if s.Paced && long || s.OnLoop && (long || all || s.script.leaves) {
		s.script.all = false
		return errLocked
	}
	s.In.script, s.script.all, s.script.leaves = script, all, false
	e.Scripts.used.Store(true)
	s.beginLate(all, scriptKeys(args))
	return nil
}

// What is known of a script from its earlier runs: bits of [scripts.Script.Notes].
const (
	ScriptNeedsAll  uint32 = 1 << iota // it uses keys that its calls do not name
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
	if r.x.Session.Service == serveStale {
		return staleHardLimit
	}
	return max(2*time.Duration(r.engine.Scripts.timeLimit.Load()), cmp.Or(r.engine.Scripts.LeastHard, leastHardLimit))
}

// Stop implements [scripts.Interrupt]. The interpreter calls it after each 20,000 steps.
func (r *scriptRun) Stop() error {
	r.effort += longEffort
	if r.long {
		runtime.Gosched() // else a loop whose clients have sent something may wait for 10 ms
	}
	if r.giveWay(); r.x.Session.Disconnected.Load() && r.x.Session.script.late.due {
		return rolledBack{ErrAbandoned} // nothing has happened yet, and giveWay has not waited for a turn
	}
	return r.ask()
}

// Holds implements [scripts.Interrupt]: the client is charged for what the values of its script take.
func (r *scriptRun) Holds(bytes int64) error {
	more := int(bytes) - r.held
	if more > 0 && !r.x.Session.Memory.Reserve(more) {
		return rolledBack{ErrClientMemory}
	}
	r.x.Session.Memory.Release(max(-more, 0))
	r.held += more
	return nil
}

// giveWay lets other long commands have their turn while the script holds no locks.
func (r *scriptRun) giveWay() {
	if s := r.x.Session; r.long && s.script.late.due && s.Yield != nil && r.now >= r.yields {
		s.Yield()
		r.yields = r.engine.Scripts.monotonic() + yieldInterval
	}
}

// ask returns an error if the script is to end now. A script that has done little does not take long: the
// system has given its processor to others.
func (r *scriptRun) ask() error {
	r.now = r.engine.Scripts.monotonic()
	elapsed := r.now - r.began
	if elapsed < longScript || elapsed < longPreemption && r.effort < longEffort {
		return nil
	}
	return r.lasts()
}

// reportScriptLog logs once a period how many lines of scripts were left out.
func (e *Engine) reportScriptLog(now time.Duration) {
	bySHA, left := e.Scripts.log.Next(now)
	for _, sha := range slices.Sorted(maps.Keys(bySHA)) {
		e.Log.Warn().Str("script", sha).Int("left_out", bySHA[sha]).Msgf("a script has logged more than %d lines in %s", scripts.MostLogged, scripts.LogPeriod)
	}
	if left > 0 {
		e.Log.Warn().Int("left_out", left).Msgf("scripts have logged more than %d lines in %s", scripts.MostLoggedAll, scripts.LogPeriod)
	}
}
