package engine

import (
	"errors"
	"fmt"
	"sync/atomic"
	"time"
	"unsafe"

	"mayfly/commands/access"
	"mayfly/commands/scripts"
	"mayfly/redisfmt"
)

// A script is a transaction, like EXEC:
//
//  1. It begins without locks, so while it only computes it holds up nobody. Its first command locks the
//     partitions of the keys that its call names, and freezes one time for all its commands. What it changes
//     is one group in the journal.
//  2. When a command needs anything else, the changes are rolled back, and the script runs again and locks
//     all partitions at its first command. The cache remembers that. Events and messages wait for the end of
//     the script, so no effect comes twice.
//  3. A script that takes longer than a ms runs again, too, with a turn (Session.Paced). Its locks are marked
//     as long: no loop waits for them. So a loop runs scripts itself, and those that take long leave it.
//  4. After lua-time-limit all clients get BUSY, but for a few commands. SCRIPT KILL ends a script that has
//     not written. After a harder limit a script ends anyway. Its changes are rolled back.
//  5. As in Redis, an error of the script leaves what it has written. The veto of a container on hold, a
//     panic and too much work roll it back.

// scriptRun is one run of a script. It belongs to the session's goroutine, but for state and ended.
type scriptRun struct {
	engine *Engine
	x      *Context
	script *scripts.Script
	began  time.Duration // as clock.Monotonic says
	now    time.Duration // the last look at the clock

	queued   bool // it runs within EXEC
	readOnly bool
	denies   bool          // commands that may grow memory are refused until it has written
	all      bool          // it locks all partitions, or has
	called   bool          // it has run a command
	long     bool          // it takes longer than longScript
	effort   int           // commands that it has run; other work counts as several
	lines    int           // that it has logged
	busy     bool          // it has exceeded the time limit; protected by the mutex of Scripts
	proto    int           // see SetProtocol
	held     int           // bytes that the client is charged for the values
	reply    int           // bytes that it is charged for the reply of the last command
	yields   time.Duration // when it gives way, as clock.Monotonic says

	state atomic.Int32           // scriptReads, scriptWrites or scriptKilled
	ended atomic.Pointer[string] // the format of the error with which others end it; nil: they do not

	in     Input    // of the running command
	ids    []string // of the running command; reused
	calls  []scriptCall
	events []Event
}

// The states of a script.
const (
	scriptReads int32 = iota
	scriptWrites
	scriptKilled // by SCRIPT KILL
)

// scriptCall is a command that a script has run, for the statistics.
type scriptCall struct {
	row    *Row
	took   time.Duration
	failed bool
}

// mostCalls is how many calls a run remembers before it counts them.
const mostCalls = 1 << 10

// The bounds of a script's values in bytes. One that needs more than loopMemory leaves its loop.
const (
	scriptMemory = 64 << 20
	loopMemory   = 1 << 20
)

// Reasons why a run of a script ends.
var (
	errAgain       = errors.New("the script is to run again")
	errScriptVeto  = errors.New("a container on hold vetoes")
	errScriptPanic = errors.New("a command has panicked")
)

// rolledBack is an error that takes the changes of a script back.
type rolledBack struct{ error }

// end ends the script from outside with an error, which names it.
func (r *scriptRun) end(format string) { r.ended.CompareAndSwap(nil, &format) }

// fail returns an error of the script that names it.
func (r *scriptRun) fail(format string, parts ...any) error {
	return Error(fmt.Sprintf(format, append(parts, r.script.SHA1())...))
}

// lasts is called from time to time while the script runs for longer than longScript. The error ends the
// script.
func (r *scriptRun) lasts() error {
	ss, s := &r.engine.Scripts, r.x.Session
	if !r.long {
		if (s.Paced || s.OnLoop) && !r.queued {
			return r.takesLong()
		}
		r.long = true
		r.x.Tx.MarkLong(true)
		ss.add(r)
		switch { // what has happened before it was added
		case ss.stopping.Load():
			r.end(ErrScriptStopped)
		case s.Service == serveLeads && !r.engine.Cluster.View().Leads():
			r.end(errScriptDeposed)
		}
	}
	if err := r.endedByOthers(); err != nil {
		return err
	}
	elapsed := r.now - r.began
	if limit := time.Duration(ss.timeLimit.Load()); limit > 0 && elapsed >= limit && !r.busy {
		ss.exceeded(r)
		r.engine.Log.Warn().Int64("client", s.ID).Str("addr", s.Addr).Str("script", r.script.SHA1()).Dur("elapsed", elapsed).
			Msg("a script exceeds lua-time-limit: other commands are answered with BUSY; SCRIPT KILL ends it if it has not written")
	}
	if hard := r.hardLimit(); elapsed >= hard {
		return rolledBack{r.fail(errScriptTime, hard)}
	}
	return nil
}

// endedByOthers returns the error with which another ends the script.
func (r *scriptRun) endedByOthers() error {
	if why := r.ended.Load(); why != nil {
		if *why == errScriptDeposed && !r.queued {
			return errAgain // at the leader
		}
		return rolledBack{r.fail(*why)}
	}
	if r.state.Load() == scriptKilled {
		return r.fail(errScriptKilled)
	}
	return nil
}

// takesLong ends this run, so that the script runs again with a turn, and beside the loop.
func (r *scriptRun) takesLong() error {
	note(r.script, scriptTakesLong, true)
	r.x.Session.script.leaves = r.x.Session.OnLoop
	return errAgain
}

// Eval runs the script of EVAL or a relative in the transaction that has begun.
func (x *Context) Eval(readOnly bool) Reply {
	e, s, args := x.Engine, x.Session, x.Input.Args
	script := x.Input.script
	if script == nil { // EXEC: an earlier command may have loaded it
		var err error
		if script, err = e.loadScript(args); err != nil {
			return Fail(err)
		}
	}
	r := &scriptRun{engine: e, x: x, script: script, queued: x.Queued, proto: 2}
	r.all = r.queued || s.script.all
	s.script.all = false
	limit := e.Memory.Bytes.Load()
	r.denies = limit > 0 && e.Keyspace().Used() > limit && (r.queued || s.script.oom)
	if err := r.admit(readOnly); err != nil {
		return Fail(err)
	}
	if s.script.shown = e.Broker.MonitoringSessions.Load() > 0; s.script.shown { // before what it calls, as in Redis
		e.Broker.showCommand(s, e.Micros(), args)
	}
	return r.run(args)
}

// admit checks the flags in the first line of the script. The errors come in Redis' order.
func (r *scriptRun) admit(readOnly bool) error {
	flags := r.script.Flags()
	r.readOnly = readOnly
	if !flags.Declared {
		return nil
	}
	if flags.NoCluster && r.engine.Cluster != nil {
		return errScriptNoCluster
	}
	if !flags.NoWrites {
		if r.x.Session.Service != serveStale {
			if err := r.engine.Keyspace().Writable(); err != nil {
				return Errorf(errScriptRefused, err)
			}
		}
		if readOnly {
			return errScriptWriteFlag
		}
	}
	if flags.AllowOOM || flags.NoWrites {
		r.denies = false
	}
	if r.denies {
		return errScriptOOM
	}
	r.readOnly = readOnly || flags.NoWrites
	return nil
}

// run runs the script. It restores what the script changes in the session.
func (r *scriptRun) run(args []string) Reply {
	x, s := r.x, r.x.Session
	input, database, number, queued, work, mostWork := x.Input, s.Database, s.DatabaseNumber, x.Queued, x.Work, x.mostWork
	if !queued {
		x.Queued, x.Work, x.mostWork, x.Examined = true, 0, MaxExecWork(r.engine.Host.MaxValueSize()), 0
	}
	x.script = r
	defer func() {
		s.Memory.Release(r.held + r.reply)
		x.script, x.Input, x.Queued = nil, input, queued
		if !queued {
			x.Work, x.mostWork = work, mostWork
		}
		if s.Database != database || s.DatabaseNumber != number {
			s.Update(func() { s.Database, s.DatabaseNumber = database, number })
		}
		if r.long {
			r.engine.Scripts.remove(r)
		}
	}()
	maxValue := int64(r.engine.Host.MaxValueSize())
	n := len(scriptKeys(args))
	keys, rest := args[NumkeysAt+1:][:n], args[NumkeysAt+1+n:]
	r.began = r.engine.Scripts.monotonic()
	r.now = r.began
	limits := scripts.Limits{Memory: scriptMemory, Result: maxValue, Arg: maxValue}
	if s.OnLoop {
		limits.Memory = loopMemory
	}
	v, err := scripts.Run(r.script, r, r, keys, rest, limits)
	return r.finish(v, r.endOf(err))
}

// endOf marks the errors with which a limit or a fault of the interpreter ends a script: they take its
// changes back.
func (r *scriptRun) endOf(err error) error {
	var internal *scripts.InternalError
	var memory *scripts.MemoryError
	var result *scripts.ResultError
	var arg *scripts.ArgError
	switch {
	case errors.As(err, &internal):
		r.engine.Log.Error().Int64("client", r.x.Session.ID).Str("script", r.script.SHA1()).
			Str("panic", fmt.Sprint(internal.Cause)).Bytes("stack", internal.Stack).Msg("a script failed inside")
		return rolledBack{r.fail(errScriptInternal)}
	case errors.As(err, &memory), errors.As(err, &result), errors.As(err, &arg):
		if r.x.Session.OnLoop {
			return r.takesLong()
		}
		return rolledBack{Error(err.Error())}
	}
	return err
}

// finish ends a run with the script's reply, or with the error that has ended it.
func (r *scriptRun) finish(v scripts.Value, err error) Reply {
	x := r.x
	if err == errAgain {
		x.aborted, x.Session.script.logged = true, max(x.Session.script.logged, r.lines)
		x.Outside = func() (Reply, bool) { return Reply{}, true }
		return Reply{}
	}
	r.countCalls()
	var back rolledBack
	switch {
	case err == nil:
	case err == errScriptVeto, err == errScriptPanic: // see Engine.run
		return Fail(ErrInternal)
	case errors.As(err, &back):
		x.aborted, x.undone = true, back.error
		return Fail(back.error)
	default: // it was killed before it wrote
		v = scripts.ErrorValue(err.Error())
	}
	x.script = nil
	for i := range r.events {
		x.Publish(r.events[i])
	}
	if took := r.engine.Scripts.monotonic() - r.began; took < briefScript {
		note(r.script, scriptTakesLong, false)
	}
	x.counted = v.Kind == scripts.Error && v.Int == 1
	return replyOfValue(&v)
}

// Call implements [scripts.Caller]: it runs a command of the script as EXEC would.
func (r *scriptRun) Call(args []string) (scripts.Value, error) {
	r.effort++
	if err := r.ask(); err != nil {
		return scripts.Value{}, err
	}
	row, refusal := r.resolve(args)
	if refusal == nil {
		refusal = r.admitCall(row)
	}
	if s := r.x.Session; refusal == nil && !s.rights.Open() {
		refusal = r.engine.mayStillRun(s, row, args, access.InScript, r.x.Session.Database)
	}
	if refusal == nil {
		r.ids = row.ids(r.ids[:0], args)
		if err := r.lock(row); err != nil {
			return scripts.Value{}, err
		}
		if !r.covers(row) {
			note(r.script, ScriptNeedsAll, true)
			r.x.Session.script.all = true
			return scripts.Value{}, errAgain
		}
		if row.Flags&Write != 0 && !r.state.CompareAndSwap(scriptReads, scriptWrites) && r.state.Load() == scriptKilled {
			return scripts.Value{}, r.fail(errScriptKilled)
		}
	}
	if refusal != nil {
		if row != nil {
			r.engine.Stats.countRejected(r.x.Session, row)
		}
		reply := Fail(refusal)
		r.engine.Stats.countReply(r.x.Session, &reply)
		return scripts.ErrorValue(reply.Str), nil
	}
	reply, err := r.execute(row, args)
	if err != nil {
		return scripts.Value{}, err
	}
	return r.valueOf(&reply), nil
}

// resolve finds the command that a script calls. The error has the words of Redis.
func (r *scriptRun) resolve(args []string) (*Row, error) {
	row := Table.Find(args[0])
	if row == nil || row.Flags&OnlyInCluster != 0 && r.engine.Cluster == nil {
		return nil, errScriptCommand
	}
	if row.Subcommands != nil && len(args) > 1 {
		if row = row.Subcommands.Find(args[1]); row == nil {
			return nil, errScriptCommand
		}
	}
	if row.Arity >= 0 && len(args) != row.Arity || len(args) < -row.Arity || row.Parse == nil {
		return row, errScriptArity
	}
	return row, nil
}

// admitCall returns the error of a command that the script must not run. As in Redis, once the script has
// written it may go on whatever the state of memory and disk.
func (r *scriptRun) admitCall(row *Row) error {
	switch {
	case row.Flags&(NoScript|NoMulti|Immediate) != 0 || row.Scope == ScopeScript || row.Scope == ScopeQueue:
		return errScriptNoScript
	case r.readOnly && row.Flags&(Write|Publishes) != 0:
		return errScriptReadOnly
	case r.state.Load() == scriptWrites:
		return nil
	case row.Flags&Write != 0:
		if err := r.engine.DiskRefusal(row.Flags&Frees != 0); err != nil {
			return err
		}
	}
	if r.denies && row.Flags&DenyOOM != 0 {
		return ErrOOM
	}
	return nil
}

// lock takes the locks of the script before its first command. A script that names no keys takes all of them
// once a command needs any. The error ends the script.
func (r *scriptRun) lock(row *Row) error {
	s, called := r.x.Session, r.called
	r.called = true
	if !s.script.late.due || called {
		return nil
	}
	if !s.script.late.all && len(s.script.late.keys) == 0 {
		if row.Scope == ScopeNone && len(r.ids) == 0 {
			return nil
		}
		note(r.script, ScriptNeedsAll, true)
		r.all = true
	}
	began := r.engine.Scripts.monotonic()
	locked, err := r.engine.lockLate(s, r.all, func() error {
		if err := r.endedByOthers(); err != nil || r.busy {
			return err
		}
		if err := r.engine.busyError(); err != nil {
			return rolledBack{err}
		}
		return nil
	})
	r.now = r.engine.Scripts.monotonic()
	r.began += r.now - began // the time limit is for the script, not for others
	switch {
	case err != nil:
		return err
	case !locked:
		s.script.leaves = true
		return errAgain
	case r.long:
		r.x.Tx.MarkLong(true)
	}
	return nil
}

// covers reports whether the transaction has locked what a command with the ids r.ids needs.
func (r *scriptRun) covers(row *Row) bool {
	if r.all {
		return true
	}
	if row.Scope != ScopeNone {
		return false
	}
	for _, id := range r.ids {
		if !r.x.Tx.Covers(id) {
			return false
		}
	}
	return true
}

// execute runs a command of the script. The error ends the script.
func (r *scriptRun) execute(row *Row, args []string) (Reply, error) {
	e, x, start := r.engine, r.x, r.now
	if s := x.Session; s.OnLoop && (row.isSlow(args) || row.Flags&Publishes != 0 || row.walks(args) && s.weigh(row, args, r.ids) >= SlowBytes) {
		return Reply{}, r.takesLong()
	}
	if !r.long && row.computes(args) {
		r.effort += longEffort
		x.Tx.MarkLong(true)
	}
	reply := r.perform(row, args)
	x.withhold(row, &reply)
	took := e.Scripts.monotonic() - start
	r.calls = append(r.calls, scriptCall{row, took, reply.Kind == KindError})
	if len(r.calls) == mostCalls {
		r.countCalls()
	}
	e.Stats.countReply(x.Session, &reply)
	if e.Slowlog.Exceeds(took) && row.Flags&SkipSlowlog == 0 {
		e.Slowlog.Record(x.Session.Addr, x.Session.Name, e.Now(), took, redacted(row, args))
	}
	if x.Session.script.shown && row.Flags&Admin == 0 {
		e.Broker.showScriptCommand(x.Session, e.Micros(), redacted(row, args))
	}
	switch {
	case x.panicked:
		return Reply{}, errScriptPanic
	case x.Tx.Veto() != nil:
		return Reply{}, errScriptVeto
	case x.undone != nil:
		return Reply{}, rolledBack{x.undone}
	case x.Work > x.mostWork:
		return Reply{}, rolledBack{r.fail(errScriptWork, x.mostWork)}
	}
	size := ReplySize(&reply)
	if row.Flags&Write == 0 && size > scriptMemory {
		reply, size = Fail(Errorf(errScriptLongReply, row.FullName, scriptMemory)), 0
	}
	return reply, r.holdReply(2 * size) // with the value that it becomes
}

// leastHeld is the size of a reply in bytes from which on the client is charged for it.
const leastHeld = 64 << 10

// holdReply charges the client for a reply instead of the one before. The error ends the script.
func (r *scriptRun) holdReply(bytes int) error {
	memory := r.x.Session.Memory
	memory.Release(r.reply)
	if r.reply = bytes; bytes < leastHeld {
		r.reply = 0
	} else if !memory.Reserve(bytes) {
		r.reply = 0
		return rolledBack{ErrClientMemory}
	}
	return nil
}

// countCalls counts the calls so far in the statistics.
func (r *scriptRun) countCalls() {
	for _, c := range r.calls {
		r.engine.Stats.countCall(r.x.Session, c.row, c.took, c.failed)
	}
	r.calls = r.calls[:0]
}

// callWork is the work of a call besides that on values: what it leaves in memory until the script ends.
const callWork = 64

// perform parses and runs a command, all of it under the locks of the transaction.
func (r *scriptRun) perform(row *Row, args []string) (reply Reply) {
	x := r.x
	defer r.engine.recoverPanic(x.Session, args, &reply)
	if err := checkIDs(r.ids); err != nil {
		return Fail(err)
	}
	r.in = Input{Args: args, MaxValue: r.engine.Host.MaxValueSize()}
	run, err := row.Parse(&r.in)
	if err != nil {
		return Fail(err)
	}
	if row.Flags&Write != 0 {
		x.Work += callWork
		for _, id := range r.ids {
			x.Work += int64(len(id))
		}
		if row.walks(args) {
			x.Work += x.Session.weigh(row, args, r.ids)
		}
	}
	x.Input = &r.in
	if x.Session.tracks(row) {
		x.track(row, args, r.ids)
	}
	reply = run(x)
	for x.Outside != nil {
		outside, again := x.Outside, false
		x.Outside = nil
		if reply, again = outside(); again {
			reply = run(x)
		}
	}
	x.resume = nil // no command of a script waits
	return reply
}

// Allowed implements [scripts.Caller].
func (r *scriptRun) Allowed(args []string) (allowed, known bool) {
	row, _ := r.resolve(args) // as in Redis, their number does not matter
	if s := r.x.Session; row != nil && !s.rights.Open() {
		u, identified := s.rights.Refresh(r.engine.Host.Users(), s.Authenticated.Load())
		return identified && r.engine.Dryrun(s, u, row, row.filled(args)).Reason == access.Allowed, true
	}
	return row != nil, row != nil
}

// Log implements [scripts.Caller]. A script that runs again does not log its lines again.
func (r *scriptRun) Log(level int, text string) {
	if r.lines++; r.lines <= r.x.Session.script.logged {
		return
	}
	log := &r.engine.Log
	event := log.Debug()
	switch level {
	case 2:
		event = log.Info()
	case 3:
		event = log.Warn()
	}
	if !event.Enabled() || !r.engine.Scripts.log.Allow(r.script.SHA1()) {
		return
	}
	const longest = 1 << 10 // as in Redis
	event.Int64("client", r.x.Session.ID).Str("script", r.script.SHA1()).Msg(text[:min(len(text), longest)])
}

// SetProtocol implements [scripts.Caller].
func (r *scriptRun) SetProtocol(proto int) { r.proto = proto }

// Proto returns the protocol for whose clients the command replies: that of the script which runs it, or of
// the session.
func (x *Context) Proto() int {
	if x.script != nil {
		return x.script.proto
	}
	return x.Session.Proto
}

// hold keeps an event until the script has ended.
func (r *scriptRun) hold(ev Event) {
	r.x.Work += int64(len(ev.Channel)+len(ev.Text)+len(ev.id)) + int64(unsafe.Sizeof(ev))
	r.events = append(r.events, ev)
}

// valueOf returns a reply as the script sees it, in its protocol.
func (r *scriptRun) valueOf(reply *Reply) scripts.Value {
	v := scripts.Value{Str: reply.Str, Int: reply.Int}
	resp3 := r.proto >= 3
	switch reply.Kind {
	case KindStatus:
		v.Kind = scripts.Status
	case KindError:
		return scripts.ErrorValue(reply.Str)
	case KindInteger:
		v.Kind = scripts.Int
	case KindBulk:
		v.Kind = scripts.Bulk
	case KindElement:
		return scripts.Value{Kind: scripts.Bulk, Str: "[" + reply.Str + "]"}
	case KindText:
		return scripts.Value{Kind: scripts.Bulk, Str: reply.Text.String()}
	case KindNullArray:
		if !resp3 {
			v.Kind = scripts.NullArray
		}
	case KindDouble:
		v.Kind, v.Double = scripts.Double, reply.Float()
		if !resp3 {
			v = scripts.Value{Kind: scripts.Bulk, Str: string(redisfmt.AppendDouble(nil, reply.Float()))}
		}
	case KindBool:
		v.Kind = scripts.Int
		if resp3 {
			v.Kind = scripts.Bool
		}
	case KindVerbatim:
		v.Kind = scripts.Bulk
		if resp3 {
			v = scripts.Value{Kind: scripts.Verbatim, Str: "txt:" + reply.Str}
		}
	case KindArray, KindPush, KindSeveral:
		v.Kind = scripts.Array
	case KindMap, KindSet:
		v.Kind = scripts.Array
		if resp3 && reply.Kind == KindMap {
			v.Kind = scripts.Map
		} else if resp3 {
			v.Kind = scripts.Set
		}
	}
	if len(reply.Elems) == 0 {
		return v
	}
	blocks := []Reply{*reply}
	v.Elems = make([]scripts.Value, 0, len(reply.Elems))
	if reply.Int > 0 { // of a List
		blocks = reply.Elems
		v.Int, v.Elems = 0, make([]scripts.Value, 0, reply.Int)
	}
	for b := range blocks {
		if blocks[b].Kind == KindElements {
			for _, text := range blocks[b].Strings {
				v.Elems = append(v.Elems, scripts.Value{Kind: scripts.Bulk, Str: text})
			}
		}
		for i := range blocks[b].Elems {
			v.Elems = append(v.Elems, r.valueOf(&blocks[b].Elems[i]))
		}
	}
	return v
}

// replyOfValue returns the reply of a script to its client.
func replyOfValue(v *scripts.Value) Reply {
	r := Reply{Str: v.Str}
	switch v.Kind {
	case scripts.Nil:
		return Null
	case scripts.NullArray:
		return NullArray
	case scripts.Bool:
		r.Kind, r.Int = KindBool, v.Int
	case scripts.Int:
		return Integer(v.Int)
	case scripts.Double:
		return Double(v.Double)
	case scripts.Big:
		r.Kind = KindBigNumber
	case scripts.Verbatim:
		const format = len("txt:")
		if r.Kind = KindVerbatim; len(v.Str) >= format {
			if v.Str[:format] == "txt:" {
				r.Str = v.Str[format:]
			} else {
				r.Int = 1
			}
		}
	case scripts.Bulk:
		r.Kind = KindBulk
	case scripts.Status:
		r.Kind, r.Str = KindStatus, OneLine.Replace(v.Str)
	case scripts.Error:
		r.Kind, r.Str = KindError, OneLine.Replace(v.Str)
	case scripts.Array:
		var list List
		for i := range v.Elems {
			if e := &v.Elems[i]; e.Kind == scripts.Block {
				for k := range e.Elems {
					list.Add(replyOfValue(&e.Elems[k]))
				}
			} else {
				list.Add(replyOfValue(e))
			}
		}
		return list.Array()
	case scripts.Map:
		r.Kind = KindMap
	case scripts.Set:
		r.Kind = KindSet
	}
	if len(v.Elems) > 0 {
		r.Elems = make([]Reply, len(v.Elems))
		for i := range v.Elems {
			r.Elems[i] = replyOfValue(&v.Elems[i])
		}
	}
	return r
}
