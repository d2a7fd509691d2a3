package engine

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/access"
	"mayfly/commands/latency"
	"mayfly/commands/waiting"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/redisfmt"

	"github.com/rs/zerolog"
)

// LoadProgress is how far the load of a data folder is.
type LoadProgress struct {
	Loaded, Total int64 // bytes
}

// Engine executes commands. Safe for concurrent use by many sessions.
type Engine struct {
	Host    Host
	Broker  Broker // its OnDeath must be that of the keyspace
	Log     zerolog.Logger
	Slowlog latency.Slowlog
	Latency latency.Monitor

	// Loading returns how far the load of the data folder is, for INFO before a keyspace is open. It is set
	// before the first command; nil: not known.
	Loading func() LoadProgress

	// Clock is the clock of the keyspace if clients move it, nil with the system's. Ephemeral says that
	// nothing is kept on disk. Both are set before the first command.
	Clock     *clock.Manual
	Ephemeral bool

	// Cluster is the cluster that this node belongs to; nil: the node is alone. Set it before the first
	// command.
	Cluster Cluster

	proxy      atomic.Bool                       // see SetProxy
	keyspace   atomic.Pointer[keyspace.Keyspace] // see SetKeyspace
	suspended  atomic.Bool                       // see Suspend
	Leadership leadership
	Stuck      atomic.Bool // commits of the cluster take long; see commitBriefly

	// QueryBudget is the number of documents that a DOC.QUERY may examine (query-budget); 0 means
	// [DefaultQueryBudget].
	QueryBudget atomic.Int64

	encodings atomic.Pointer[redisfmt.Encodings]

	ConfigLog clock.LogLimiter // limits the lines about CONFIG SET

	Scripts Scripts

	Stats   statistics
	Queries queryStats
	Backups backupStats
	Waiters waiting.Lines
	Pause   pause
	Auth    access.Guesses
	Memory  memoryLimit
}

// SetEncodings sets the bounds.
func (e *Engine) SetEncodings(to redisfmt.Encodings) { e.encodings.Store(&to) }

// Encodings returns what SetEncodings has set.
func (e *Engine) Encodings() redisfmt.Encodings { return *e.encodings.Load() }

// NewEngine returns an engine of a node that is alone, with a keyspace.
func NewEngine(ks *keyspace.Keyspace, host Host, log zerolog.Logger) *Engine {
	e := &Engine{Host: host, Log: log}
	e.SetEncodings(redisfmt.DefaultEncodings)
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
	if _, prefixes := e.Broker.Trackers(); prefixes > 0 && ks != nil {
		ks.SetBroadcast(true)
	}
	e.Broker.TellAll()
	e.Leadership.wake(nil)
}

// wallClock is the time while no keyspace is open.
var wallClock = clock.NewSystem(0)

// Now returns the time in ms.
func (e *Engine) Now() int64 {
	if ks := e.Keyspace(); ks != nil {
		return ks.Now()
	}
	if e.Clock != nil {
		return e.Clock.Now()
	}
	return wallClock.Now()
}

// Micros is Now in microseconds.
func (e *Engine) Micros() int64 {
	if ks := e.Keyspace(); ks != nil {
		return ks.Micros()
	}
	if e.Clock != nil {
		return e.Clock.Micros()
	}
	return wallClock.Micros()
}

// Host is the server around the engine, as the engine needs it. Safe for concurrent use.
type Host interface {
	// ConfigGet returns name and value of every option whose name matches one of the glob patterns.
	ConfigGet(patterns []string) [][2]string
	// ConfigSet changes options, all or none. The error has the words of Redis.
	ConfigSet(pairs [][2]string) error
	// Users returns the users of the server, always the same.
	Users() *access.Users
	// LoadUsers replaces the users by those of the file of users; the error has the words of Redis. SaveUsers
	// writes the file. Without one the error is ErrNoUserFile.
	LoadUsers() error
	SaveUsers() error
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
	ReportedVersion  string // of Redis
	StartedAt        int64  // ms
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

	// Changed says that the command has changed something, which is or is not kept if LSN cannot be
	// committed.
	Changed bool

	// Deferred means that the command has not run, as if it had not come, and has no reply. Resume is closed
	// when it is time to try again: after CLIENT PAUSE, a delay, or when there may be what BLOCK waits for.
	// If Resume is nil the command may take long: it is to run where no other session waits (see
	// Session.OnLoop), and when the session has a turn (see Session.Paced).
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
	if g := e.Pause.gate.Load(); g != nil && e.heldBack(s, args, g, &out) {
		return out
	}
	start, mode := s.StartTime(), s.Replies
	s.Current = nil
	e.execute(s, args, &out)
	if out.Deferred {
		return out
	}
	if out.Forward != nil {
		if s.Tracking.Caching {
			s.endCaching(args)
		}
		return out
	}
	s.script.logged = 0
	if s.Tracking.Caching {
		s.endCaching(args)
	}
	if s.Awaits|s.waited != 0 {
		out.Waited = s.endWaits()
	}
	if s.Wait != nil {
		kind := out.Reply.Kind
		e.endWait(s, kind != KindNull && kind != KindNullArray) // an error may be that of the next, too
	}
	s.In = Input{} // it has views of the read buffer, which may be large
	reply := &out.Reply
	if s.Current != nil {
		e.recordCall(s, s.Current, args, start, reply)
	} else {
		s.ResetTimer()
	}
	if reply.Kind == KindError && (s.Current == nil || s.Current.Scope != ScopeScript || !s.Ctx.counted) {
		e.Stats.countReply(s, reply)
	}
	if s.Current != nil && s.Current.Scope == ScopeQueue {
		s.Replies.filterExec(mode, reply)
	} else {
		s.Replies.filter(reply)
	}
	return out
}

// execute is Execute without statistics and CLIENT REPLY. It writes the outcome in place: an Outcome is
// large, and returning it copies it at every level.
func (e *Engine) execute(s *Session, args []string, out *Outcome) {
	defer e.recoverPanic(s, args, &out.Reply)
	if s.Wait != nil && s.Wait.Deposed() {
		out.Reply, out.Close = Fail(ErrDeposed), true
		return
	}
	r, err := s.Resolve(args)
	if e.Cluster == nil && (err != nil || r.Flags&OnlyInCluster != 0) && isOnlyInCluster(args[0]) {
		r, err = nil, unknownCommand(args)
	}
	if err == nil && (s.OnLoop || s.Paced) && (s.OnLoop && s.isSlow(r, args) || s.Paced && s.needsTurn(r, args) || e.matchesSlowly(r, args)) {
		out.Deferred = true
		return
	}
	if err == nil {
		err = e.Admit(s, r, args)
		if s.Proxied && (s.Multi.elsewhere && r.Scope == ScopeQueue || err != nil && (isRedirection(err) || isLoading(err))) {
			err, s.Multi.elsewhere = ErrElsewhere, s.Multi.Open
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
	if err == nil && r.Flags&NoAuth != 0 && !s.Multi.Open {
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
	if s.Multi.Open && r.Flags&Immediate == 0 {
		out.Reply = e.enqueue(s, r, args)
		return
	}
	s.Current = r
	s.In = Input{Args: args, MaxValue: e.Host.MaxValueSize()}
	run, err := r.Parse(&s.In)
	if err == nil {
		err = e.Run(s, r, args, run, out)
	}
	for err == nil && s.Ctx.Outside != nil {
		outside, again := s.Ctx.Outside, false
		s.Ctx.Outside = nil
		s.unanswered.Or(unansweredOutside)
		if out.Reply, again = outside(); again {
			s.giveWay()
			err = e.Run(s, r, args, run, out)
		}
		out.Close = out.Close || s.Ctx.Abandoned
	}
	if err == errNotLeading {
		if err = e.notBegun(s, r, args, out); err != nil {
			out.Reply = e.reject(s, r, err)
		}
		return
	}
	if err != nil {
		out.Reply = Fail(err)
	} else if s.Ctx.resume != nil {
		out.Deferred, out.Resume = true, s.Ctx.resume
		s.Ctx.resume = nil
	}
}

// recoverPanic, deferred, turns the panic of a command's handler into an error reply and logs it. It
// marks the session's context as panicked.
func (e *Engine) recoverPanic(s *Session, args []string, reply *Reply) {
	if p := recover(); p != nil {
		s.Ctx.panicked = true
		e.Log.Error().Str("command", Truncate(args[0])).Int64("client", s.ID).
			Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("a command panicked")
		*reply = Fail(ErrInternal)
	}
}

// Admit returns the error of a command that may not run now, whatever its arguments.
func (e *Engine) Admit(s *Session, r *Row, args []string) error {
	if !s.rights.Open() {
		if err := e.mayRun(s, r, args); err != nil {
			return err
		}
	}
	if e.Cluster != nil {
		if err := e.admitInCluster(s, r, args); err != nil {
			return err
		}
	}
	if s.Multi.Open && r.Flags&NoMulti != 0 {
		return errNotInMulti
	}
	if r.Flags&Write != 0 {
		if err := e.DiskRefusal(r.Flags&Frees != 0); err != nil {
			return err
		}
	}
	return s.admitMode(r)
}

// admitMode returns the error of a command that may not run in the mode that the connection is in, or nil.
func (s *Session) admitMode(r *Row) error {
	if s.InSubscribedMode() && r.Flags&AllowSubscribed == 0 {
		return Errorf(errOnlySubscribed, r.FullName)
	}
	if s.Monitoring && r.Flags&(Write|MayWrite|ReadOnly|Publishes) != 0 {
		return errMonitoring
	}
	return nil
}

// DiskRefusal returns the error of a write that the disk does not admit now, or nil. frees says that the
// write frees space.
func (e *Engine) DiskRefusal(frees bool) error {
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

// Run runs a parsed command in a transaction of its own. It closes the transaction, sets the outcome's LSN
// and sends the command's events. A panic of the command, or of one within an EXEC, rolls back its changes
// and drops its events. So does the veto of a container on hold, which is the reply, of EXEC too. After an
// error nothing has begun; errNotLeading means that the node follows since the command was admitted.
func (e *Engine) Run(s *Session, r *Row, args []string, run Run, out *Outcome) error {
	if s.Service == serveLeads && s.unanswered.Load()&unansweredLead == 0 {
		s.unanswered.Or(unansweredLead)
	}
	if s.Tracking.On && s.Service != ServeDetached {
		if s.tracks(r) || s.Tracking.reads && r.Scope >= ScopeQueue {
			e.trimNotes(s)
		}
		s.Receiver.Hold()
	}
	switch err := e.begin(s, r, args); {
	case err == errLocked:
		out.Deferred = true
		return nil
	case err != nil:
		out.Close = err == ErrAbandoned || err == ErrReloaded
		return err
	}
	if s.Service == serveLeads && s.Tx.Follows() {
		s.Tx.Rollback()
		return errNotLeading
	}
	s.Ctx = Context{Tx: &s.Tx, Session: s, Engine: e, Input: &s.In}
	completed, told := false, e.Broker.told.Load()
	defer func() {
		s.script.late = lateLocks{}
		if completed && !s.Ctx.panicked && !s.Ctx.aborted {
			out.Changed = s.Tx.Writes()
			out.LSN = max(out.LSN, s.Tx.Close())
		} else {
			out.LSN = max(out.LSN, s.Tx.Rollback())
			s.Ctx.Batch.cancel(&e.Broker.Queue)
		}
		out.LSN = max(out.LSN, s.Ctx.Pieces)
		out.Changed = (out.Changed || s.Ctx.changed) && r.Flags&ReadOnly == 0
		if s.Service != serveAlone {
			var err error
			if out.LSN, err = s.settle(out.LSN); err != nil {
				out.Reply, s.Ctx.Outside = Fail(err), nil
			}
		}
		out.Close = s.Ctx.Close || s.Ctx.Abandoned
		s.Revealed = max(s.Revealed, out.LSN)
		if s.Ctx.Batch != nil {
			e.Broker.flush(s, s.Ctx.Batch, s.Revealed)
		}
		e.shareBroadcast(s)
		switch { // others are told before the reply that it has changed something, its own client directly after it
		case e.Broker.told.Load() == told:
		case s.OnLoop || !s.Tracking.On:
			e.Broker.deliverCheap(e.Broker.Queue.pushed())
		default:
			e.Broker.Drain()
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
	if weight >= SlowBytes && (s.OnLoop || s.Paced) {
		out.Deferred, completed = true, true
		return nil
	}
	if !s.OnLoop && s.LocksLong(r, args, weight) {
		s.Tx.MarkLong(true)
	}
	s.noteCommand(r, s.Tx.Now())
	if s.tracks(r) {
		s.Ctx.track(r, args, s.idBuffer)
	}
	out.Reply = run(&s.Ctx)
	s.Ctx.withhold(r, &out.Reply)
	if veto := s.Tx.Veto(); veto != nil {
		out.Reply, s.Ctx.Outside, s.Ctx.aborted = Fail(e.vetoed(s, r, args, veto)), nil, true
	}
	if s.Ctx.refusal != nil {
		out.Reply, s.Ctx.Outside = Fail(s.Ctx.refusal), nil
	}
	completed = true
	return nil
}

// maxIDBuffer bounds the buffer of ids that a session keeps between commands.
const maxIDBuffer = 1 << 10

// begin starts the session's transaction with the locks that the command needs. After an error there is
// no transaction.
func (e *Engine) begin(s *Session, r *Row, args []string) error {
	if s.Service == ServeDetached {
		s.Tx.BeginDetached(e.Now())
		return nil
	}
	ks := e.Keyspace()
	if ks != s.keyspace {
		if s.keyspace != nil {
			return ErrReloaded
		}
		s.keyspace = ks
	}
	if r.Flags&Write != 0 || r.Scope == ScopeQueue {
		if err := e.throttle(s); err != nil {
			return err
		}
	}
	if r.Items.First == 0 {
		switch r.Scope {
		case ScopeNone:
			ks.BeginNone(&s.Tx)
		case ScopeSweep:
			ks.BeginSweep(&s.Tx)
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
		s.prepare(&s.In)
	}
	if len(s.idBuffer) > SlowArgs && r.Flags&Write != 0 {
		s.Tx.Reserve(len(s.idBuffer))
	}
	return e.beginKeys(s, s.idBuffer)
}

// errLocked means that a transaction has locked an id for long, and that the session must not wait for it on
// its loop.
var errLocked = errors.New("locked")

// beginKeys starts the session's transaction on ids. The error is errLocked or ErrBusy.
func (e *Engine) beginKeys(s *Session, ids []string) error {
	switch {
	case s.OnLoop:
		if !s.keyspace.TryBeginKeys(&s.Tx, ids) {
			return errLocked
		}
	case e.Scripts.used.Load():
		return s.beginWaiting(func() bool { return s.keyspace.TryBeginKeys(&s.Tx, ids) }, e.busyError)
	case len(ids) == 1:
		s.keyspace.BeginKey(&s.Tx, ids[0])
	default:
		s.keyspace.BeginKeys(&s.Tx, ids)
	}
	return nil
}

// prepare prepares the large values that a command may store.
func (s *Session) prepare(in *Input) {
	if json := in.Put.Doc.JSON; json != "" {
		s.Tx.Prepare(json)
		return
	}
	for _, arg := range in.Args {
		s.Tx.Prepare(arg)
	}
}

// checkIDs returns an error if an id is too long.
func checkIDs(ids []string) error {
	for _, id := range ids {
		if len(id) > keyspace.MaxIDLength {
			return Errorf(ErrTooLongName, "id", len(id), keyspace.MaxIDLength)
		}
	}
	return nil
}

// RunID returns the identifier of this run of the server: 40 random hexadecimal digits.
var RunID = sync.OnceValue(func() string {
	var id [20]byte
	_, _ = rand.Read(id[:]) // never fails
	return hex.EncodeToString(id[:])
})
