package commands

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// Engine executes commands. Safe for concurrent use by many sessions.
type Engine struct {
	Host    Host
	Broker  Broker // its OnDeath must be that of the keyspace
	Log     zerolog.Logger
	Slowlog Slowlog
	Latency LatencyMonitor

	// Loading returns how far the load of the data folder is, for INFO before a keyspace is open. It is set before the first
	// command; nil: not known.
	Loading func() LoadProgress

	// Cluster is the cluster that this node belongs to; nil: the node is alone. Set it before the first command.
	Cluster Cluster

	proxy      atomic.Bool                       // see SetProxy
	keyspace   atomic.Pointer[keyspace.Keyspace] // see SetKeyspace
	suspended  atomic.Bool                       // see Suspend
	leadership leadership
	stuck      atomic.Bool // commits of the cluster take long; see commitBriefly

	// QueryBudget is the number of documents that a DOC.QUERY may examine (query-budget); 0 means
	// [DefaultQueryBudget].
	QueryBudget atomic.Int64

	configLog LogLimiter // limits the lines about CONFIG SET

	Scripts Scripts

	stats   statistics
	queries queryStats
	backups backupStats
	waiters waiters
	pause   pause
	auth    authThrottle
	memory  memoryLimit
}

// NewEngine returns an engine of a node that is alone, with a keyspace.
func NewEngine(ks *keyspace.Keyspace, host Host, log zerolog.Logger) *Engine {
	e := &Engine{Host: host, Log: log}
	e.SetKeyspace(ks)
	return e
}

// Keyspace returns the keyspace that commands which begin now work on; nil: none is open yet.
func (e *Engine) Keyspace() *keyspace.Keyspace { return e.keyspace.Load() }

// SetKeyspace sets the keyspace. A node that is alone sets it once, before the first command. A node of a
// cluster that sets another one calls [Engine.Suspend] first: a session stays with the keyspace of its
// first command. SetKeyspace ends the suspension.
func (e *Engine) SetKeyspace(ks *keyspace.Keyspace) {
	e.keyspace.Store(ks)
	e.suspended.Store(false)
	e.leadership.wake(nil)
}

// wallClock is the time while no keyspace is open.
var wallClock = clock.NewSystem(0)

// Now returns the time in ms.
func (e *Engine) Now() int64 {
	if ks := e.Keyspace(); ks != nil {
		return ks.Now()
	}
	return wallClock.Now()
}

// Micros is Now in microseconds.
func (e *Engine) Micros() int64 {
	if ks := e.Keyspace(); ks != nil {
		return ks.Micros()
	}
	return wallClock.Micros()
}

// Host is the server around the engine, as the engine needs it. Safe for concurrent use.
type Host interface {
	// ConfigGet returns name and value of every option whose name matches one of the glob patterns.
	ConfigGet(patterns []string) [][2]string
	// ConfigSet changes options, all or none. The error has the words of Redis.
	ConfigSet(pairs [][2]string) error
	// PasswordSet reports whether clients must authenticate.
	PasswordSet() bool
	// CheckPassword reports whether the password is right.
	CheckPassword(password string) bool
	// MaxValueSize returns the size in bytes of the largest legal value and document.
	MaxValueSize() int
	// Sessions returns the connected sessions by ascending ID.
	Sessions() []*Session
	// Disconnect disconnects the sessions that pick accepts, and returns their number. None of their
	// commands runs any more, not even one that has arrived.
	Disconnect(pick func(*Session) bool) int
	// ConfigRewrite writes the current options to the config file. The error has the words of Redis.
	ConfigRewrite() error
	// Shutdown starts an orderly end of the process, and returns at once.
	Shutdown()
	// Info returns the figures of the server.
	Info() ServerInfo
}

// ServerInfo holds the figures of the server for INFO.
type ServerInfo struct {
	Version          string
	StartedAt        int64 // ms
	TCPPort          int
	ConfigFile       string
	Connected        int // clients
	MaxClients       int
	PausedClients    int   // clients with a command that CLIENT PAUSE or a delay holds back
	TotalConnections int64 // accepted since the start
	Rejected         int64 // connections refused
	SlowSubscribers  int64 // subscribers disconnected for a full backlog
	ClientMemory     int64 // bytes held for clients, besides items
	EvictedClients   int64 // clients disconnected over the limit of ClientMemory
	NetInput         int64 // bytes read
	NetOutput        int64 // bytes written
}

// Outcome is what became of one command.
type Outcome struct {
	Reply Reply

	// LSN must be committed before the reply leaves, because the reply reports or reveals what it covers;
	// 0: nothing.
	LSN keyspace.LSN

	// Changed says that the command has changed something, which is or is not kept if LSN cannot be committed.
	Changed bool

	// Deferred means that the command has not run, as if it had not come, and has no reply. Resume is
	// closed when it is time to try again: after CLIENT PAUSE, a delay, or when there may be what BLOCK waits for. If Resume is nil the command may take
	// long: it is to run where no other session waits (see Session.OnLoop), and when the session has a turn
	// (see Session.Paced).
	Deferred bool
	Resume   <-chan struct{}

	Close bool // close the connection once the reply is sent (QUIT)

	Waited time.Duration // for the cluster; see Engine.Deadline

	// Forward is what the leader is to run instead; nil: nothing. The command has no reply then.
	Forward *Forward
	// Relay, with Deferred, asks for the replies of what was passed on before: the command runs after it.
	Relay bool
}

// Execute runs one command and returns its outcome. args are as described at [Input] and hold at least the
// name. Execute never panics: it logs a panic of a handler and returns an error.
//
// The checks come in Redis' order, so a command with several mistakes gets the error that Redis reports.
func (e *Engine) Execute(s *Session, args []string) (out Outcome) {
	if g := e.pause.gate.Load(); g != nil && e.heldBack(s, args, g, &out) {
		return out
	}
	start, mode := s.startTime(), s.replies
	s.current = nil
	e.execute(s, args, &out)
	if out.Deferred || out.Forward != nil {
		return out
	}
	if s.awaits|s.waited != 0 {
		out.Waited = s.endWaits()
	}
	if s.wait != nil {
		kind := out.Reply.Kind
		e.endWait(s, kind == KindArray || kind == KindMap || kind == KindError) // an error may be that of the next, too
	}
	s.in = Input{} // it has views of the read buffer, which may be large
	reply := &out.Reply
	if s.current != nil {
		e.recordCall(s, s.current, args, start, reply)
	} else {
		s.ResetTimer()
	}
	if reply.Kind == KindError && (s.current == nil || s.current.Scope != ScopeScript || !s.ctx.counted) {
		e.stats.countReply(s, reply)
	}
	if s.current != nil && s.current.Scope == ScopeQueue {
		s.replies.filterExec(mode, reply)
	} else {
		s.replies.filter(reply)
	}
	return out
}

// execute is Execute without statistics and CLIENT REPLY. It writes the outcome in place: an Outcome is large,
// and returning it copies it at every level.
func (e *Engine) execute(s *Session, args []string, out *Outcome) {
	defer e.recoverPanic(s, args, &out.Reply)
	if s.wait != nil && s.wait.deposed.Load() {
		out.Reply, out.Close = Fail(errDeposed), true
		return
	}
	r, err := s.resolve(args)
	if e.Cluster == nil && (err != nil || r.Flags&OnlyInCluster != 0) && isOnlyInCluster(args[0]) {
		r, err = nil, unknownCommand(args)
	}
	if err == nil && (s.OnLoop || s.Paced) && (s.OnLoop && s.isSlow(r, args) || s.Paced && s.needsTurn(r, args) || e.matchesSlowly(r, args)) {
		out.Deferred = true
		return
	}
	if err == nil {
		err = e.admit(s, r, args)
		if s.Proxied && (s.multi.elsewhere && r.Scope == ScopeQueue || err != nil && (isRedirection(err) || isLoading(err))) {
			err, s.multi.elsewhere = errElsewhere, s.multi.open
		} else if err != nil && e.queuesFor(s, r, err) {
			err = nil
		} else if err != nil && e.Cluster != nil {
			if out.Resume = e.awaitsLeader(s, err); out.Resume != nil {
				out.Deferred = true
				return
			}
		}
	}
	if e.proxy.Load() && r != nil && !s.Proxied {
		var done bool
		if err, done = e.forward(s, r, args, err, out); done {
			return
		}
	}
	if s.ForwardsPending {
		out.Deferred, out.Relay = true, true
		return
	}
	if err == nil && r.Flags&NoAuth != 0 {
		if out.Resume = e.awaitsDelay(s, r, args); out.Resume != nil {
			out.Deferred = true
			return
		}
	}
	if err == nil {
		err = e.checkMemory(s, r, args, out)
	}
	if err != nil {
		out.Reply = e.reject(s, r, err)
		return
	}
	if s.multi.open && r.Flags&Immediate == 0 {
		out.Reply = e.enqueue(s, r, args)
		return
	}
	s.current = r
	s.in = Input{Args: args, MaxValue: e.Host.MaxValueSize()}
	run, err := r.Parse(&s.in)
	if err == nil {
		err = e.run(s, r, args, run, out)
	}
	for err == nil && s.ctx.outside != nil {
		outside, again := s.ctx.outside, false
		s.ctx.outside = nil
		if out.Reply, again = outside(); again {
			s.giveWay()
			err = e.run(s, r, args, run, out)
		}
	}
	if err == errNotLeading {
		if err = e.notBegun(s, r, args, out); err != nil {
			out.Reply = e.reject(s, r, err)
		}
		return
	}
	if err != nil {
		out.Reply = Fail(err)
	} else if s.ctx.resume != nil {
		out.Deferred, out.Resume = true, s.ctx.resume
		s.ctx.resume = nil
	}
}

// recoverPanic, deferred, turns the panic of a command's handler into an error reply and logs it. It
// marks the session's context as panicked.
func (e *Engine) recoverPanic(s *Session, args []string, reply *Reply) {
	if p := recover(); p != nil {
		s.ctx.panicked = true
		e.Log.Error().Str("command", truncate(args[0])).Int64("client", s.ID).
			Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("a command panicked")
		*reply = Fail(errInternal)
	}
}

// admit returns the error of a command that may not run now, whatever its arguments.
func (e *Engine) admit(s *Session, r *row, args []string) error {
	if r.Flags&NoAuth == 0 && !s.Authenticated.Load() && e.Host.PasswordSet() {
		return errNoAuth
	}
	if e.Cluster != nil {
		if err := e.admitInCluster(s, r, args); err != nil {
			return err
		}
	}
	if s.multi.open && r.Flags&NoMulti != 0 {
		return errNotInMulti
	}
	if r.Flags&Write != 0 {
		if err := e.diskRefusal(r.Flags&Frees != 0); err != nil {
			return err
		}
	}
	return s.admitMode(r)
}

// admitMode returns the error of a command that may not run in the mode that the connection is in, or nil.
func (s *Session) admitMode(r *row) error {
	if s.inSubscribedMode() && r.Flags&AllowSubscribed == 0 {
		return errorf(errOnlySubscribed, r.full)
	}
	if s.monitoring && r.Flags&(Write|MayWrite|ReadOnly|Publishes) != 0 {
		return errMonitoring
	}
	return nil
}

// diskRefusal returns the error of a write that the disk does not admit now, or nil. frees says that the write frees space.
func (e *Engine) diskRefusal(frees bool) error {
	err := e.Keyspace().Writable()
	if err != nil && frees {
		err = e.Keyspace().Freeing()
	}
	switch {
	case err == nil:
		return nil
	case e.Cluster != nil && e.Keyspace().DiskFull() && !e.Cluster.View().NoHeir:
		return errHandsOver
	}
	return CommitFailure(err, false)
}

// run runs a parsed command in a transaction of its own. It closes the transaction, sets the outcome's LSN
// and sends the command's events. A panic of the command, or of one within an EXEC, rolls back its
// changes and drops its events. So does the veto of a container on hold, which is the reply, of EXEC too. After an
// error nothing has begun; errNotLeading means that the node follows since the command was admitted.
func (e *Engine) run(s *Session, r *row, args []string, run Run, out *Outcome) error {
	if s.service == serveLeads && !s.unanswered.Load() {
		s.unanswered.Store(true)
	}
	switch err := e.begin(s, r, args); {
	case err == errLocked:
		out.Deferred = true
		return nil
	case err != nil:
		out.Close = err == errAbandoned || err == errReloaded
		return err
	}
	if s.service == serveLeads && s.tx.Follows() {
		s.tx.Rollback()
		return errNotLeading
	}
	s.ctx = Context{Tx: &s.tx, Session: s, Engine: e, Input: &s.in}
	completed := false
	defer func() {
		s.late = lateLocks{}
		if completed && !s.ctx.panicked && !s.ctx.aborted {
			out.Changed = s.tx.Writes()
			out.LSN = max(out.LSN, s.tx.Close())
		} else {
			out.LSN = max(out.LSN, s.tx.Rollback())
			s.ctx.batch.cancel(&e.Broker.queue)
		}
		out.LSN = max(out.LSN, s.ctx.pieces)
		out.Changed = (out.Changed || s.ctx.changed) && r.Flags&ReadOnly == 0
		if s.service != serveAlone {
			var err error
			if out.LSN, err = s.settle(out.LSN); err != nil {
				out.Reply, s.ctx.outside = Fail(err), nil
			}
		}
		out.Close = s.ctx.close || s.ctx.abandoned
		s.revealed = max(s.revealed, out.LSN)
		if s.ctx.batch != nil {
			e.Broker.flush(s, s.ctx.batch, s.revealed)
		}
		clear(s.idBuffer)        // they are views of the read buffer, which may be large
		if r.Scope == ScopeAll { // a pipeline of them would keep others out
			s.giveWay()
		}
	}()
	weight := int64(0)
	if s.walks(r, args) {
		weight = s.weight(r, args)
	}
	if weight >= slowBytes && (s.OnLoop || s.Paced) {
		out.Deferred, completed = true, true
		return nil
	}
	if !s.OnLoop && s.locksLong(r, args, weight) {
		s.tx.MarkLong(true)
	}
	s.noteCommand(r, s.tx.Now())
	out.Reply = run(&s.ctx)
	if veto := s.tx.Veto(); veto != nil {
		out.Reply, s.ctx.outside, s.ctx.aborted = Fail(e.vetoed(s, r, args, veto)), nil, true
	}
	if s.ctx.refusal != nil {
		out.Reply, s.ctx.outside = Fail(s.ctx.refusal), nil
	}
	completed = true
	return nil
}

// maxIDBuffer bounds the buffer of ids that a session keeps between commands.
const maxIDBuffer = 1 << 10

// begin starts the session's transaction with the locks that the command needs. After an error there is
// no transaction.
func (e *Engine) begin(s *Session, r *row, args []string) error {
	if s.service == serveDetached {
		s.tx.BeginDetached(e.Now())
		return nil
	}
	ks := e.Keyspace()
	if ks != s.keyspace {
		if s.keyspace != nil {
			return errReloaded
		}
		s.keyspace = ks
	}
	if r.Flags&Write != 0 || r.Scope == ScopeQueue {
		if err := e.throttle(s); err != nil {
			return err
		}
	}
	if r.items.First == 0 {
		switch r.Scope {
		case ScopeNone:
			ks.BeginNone(&s.tx)
		case ScopeSweep:
			ks.BeginSweep(&s.tx)
		case ScopeAll:
			return e.beginAll(s)
		case ScopeQueue:
			return e.beginQueue(s)
		case ScopeScript:
			return e.beginScript(s, r, args)
		}
		return nil
	}
	if cap(s.idBuffer) > maxIDBuffer {
		s.idBuffer = nil
	}
	s.idBuffer = r.ids(s.idBuffer[:0], args)
	if err := checkIDs(s.idBuffer); err != nil {
		return err
	}
	if r.Flags&Write != 0 {
		s.prepare(&s.in)
	}
	if len(s.idBuffer) > slowArgs && r.Flags&Write != 0 {
		s.tx.Reserve(len(s.idBuffer))
	}
	return e.beginKeys(s, s.idBuffer)
}

// errLocked means that a transaction has locked an id for long, and that the session must not wait for it on
// its loop.
var errLocked = errors.New("locked")

// beginKeys starts the session's transaction on ids. The error is errLocked or errBusy.
func (e *Engine) beginKeys(s *Session, ids []string) error {
	switch {
	case s.OnLoop:
		if !s.keyspace.TryBeginKeys(&s.tx, ids) {
			return errLocked
		}
	case e.Scripts.used.Load():
		return s.beginWaiting(func() bool { return s.keyspace.TryBeginKeys(&s.tx, ids) }, e.busyError)
	case len(ids) == 1:
		s.keyspace.BeginKey(&s.tx, ids[0])
	default:
		s.keyspace.BeginKeys(&s.tx, ids)
	}
	return nil
}

// prepare prepares the large values that a command may store.
func (s *Session) prepare(in *Input) {
	if json := in.put.doc.JSON; json != "" {
		s.tx.Prepare(json)
		return
	}
	for _, arg := range in.Args {
		s.tx.Prepare(arg)
	}
}

// checkIDs returns an error if an id is too long.
func checkIDs(ids []string) error {
	for _, id := range ids {
		if len(id) > keyspace.MaxIDLength {
			return errorf(errTooLongName, "id", len(id), keyspace.MaxIDLength)
		}
	}
	return nil
}
