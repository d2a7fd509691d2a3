package commands

import (
	"fmt"
	"runtime/debug"

	"mayfly/keyspace"

	"github.com/rs/zerolog"
)

// Engine executes commands. Safe for concurrent use by many sessions.
type Engine struct {
	Keyspace *keyspace.Keyspace
	Host     Host
	Broker   Broker // its Died is to be the OnDeath of the keyspace
	Log      zerolog.Logger
	Slowlog  Slowlog
	Latency  LatencyMonitor

	passwordLog, configLog LogLimiter // what of these is logged

	stats  statistics
	pause  pause
	memory memoryLimit
}

// Host is what the engine needs of the server around it. Safe for concurrent use.
type Host interface {
	// ConfigGet gives name and value of every option whose name matches one of the glob patterns.
	ConfigGet(patterns []string) [][2]string
	// ConfigSet changes options, all or none; the error is worded as in Redis.
	ConfigSet(pairs [][2]string) error
	// PasswordSet tells whether clients must authenticate; CheckPassword whether they may.
	PasswordSet() bool
	CheckPassword(password string) bool
	// MaxValueSize is the largest value and document in bytes.
	MaxValueSize() int
	// Sessions gives the sessions that are connected now, by ascending ID.
	Sessions() []*Session
	// Disconnect cuts off the connections of the sessions that pick picks, and says how many they
	// are. Commands that they still send, or have sent, are not carried out.
	Disconnect(pick func(*Session) bool) int
	// ConfigRewrite writes the options as they are now into the config file; the error is worded as in
	// Redis.
	ConfigRewrite() error
	// Shutdown asks for the process to be ended in good order, and returns at once.
	Shutdown()
	// Info gives the figures the server keeps.
	Info() ServerInfo
}

// ServerInfo are the figures of the server for INFO.
type ServerInfo struct {
	Version          string
	StartedAt        int64 // ms
	TCPPort          int
	ConfigFile       string
	Connected        int // clients
	MaxClients       int
	PausedClients    int   // clients that CLIENT PAUSE holds back
	TotalConnections int64 // accepted since the start
	Rejected         int64 // connections refused
	SlowSubscribers  int64 // subscribers disconnected because they did not keep up
	ClientMemory     int64 // what clients make the server keep besides items, bytes
	EvictedClients   int64 // disconnected because that was too much
	NetInput         int64 // bytes read
	NetOutput        int64 // bytes written
}

// Execute carries one command out and returns its reply, which must not leave before the session's
// Ticket has been waited for. args are as described at [Input]; there is at least the name. It
// never panics: a panic in a handler is logged and answered as an error.
//
// The checks come in Redis' order, so that the first of several mistakes is the one Redis reports.
func (e *Engine) Execute(s *Session, args []string) (reply Reply) {
	start, mode := s.startTime(), s.replies
	s.current = nil
	e.execute(s, args, &reply)
	if s.Deferred {
		return reply
	}
	s.in = Input{} // it has views of the read buffer, which may be big
	if s.current != nil {
		e.recordCall(s, s.current, args, start, &reply)
	} else {
		s.ResetTimer()
	}
	e.stats.countReply(s, &reply)
	if s.current != nil && s.current.Scope == ScopeQueue {
		s.replies.filterQueue(mode, &reply)
	} else {
		s.replies.filter(&reply)
	}
	return reply
}

// execute is the same up to the reply, which it writes in its place: a reply is large enough that it
// would be copied from each function to the one that has called it.
func (e *Engine) execute(s *Session, args []string, reply *Reply) {
	defer e.recoverPanic(s, args, reply)
	r, err := s.resolve(args)
	if s.OnLoop && err == nil && s.isSlow(r, args) {
		s.Deferred = true
		return
	}
	if err == nil {
		err = e.admit(s, r)
	}
	if err == nil {
		err = e.checkMemory(s, r, args)
	}
	if err != nil {
		*reply = e.reject(s, r, args, err)
		return
	}
	if s.multi.open && r.Flags&Immediate == 0 {
		*reply = e.enqueue(s, r, args)
		return
	}
	s.current = r
	s.in = Input{Args: args, MaxValue: e.Host.MaxValueSize()}
	run, err := r.Parse(&s.in)
	if err == nil {
		err = e.run(s, r, args, run, reply)
	}
	if err != nil {
		*reply = Fail(err)
	}
}

// rescue, deferred, makes an error reply of a panic in a command's handler and logs it. The session's
// context knows of it.
func (e *Engine) recoverPanic(s *Session, args []string, reply *Reply) {
	if p := recover(); p != nil {
		s.ctx.panicked = true
		e.Log.Error().Str("command", truncate(args[0])).Int64("client", s.ID).
			Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).Msg("a command failed inside")
		*reply = Fail(errInternal)
	}
}

// admit tells why a command may not run now, whatever its arguments.
func (e *Engine) admit(s *Session, r *row) error {
	if !s.Authenticated && r.Flags&NoAuth == 0 && e.Host.PasswordSet() {
		return errNoAuth
	}
	if s.multi.open && r.Flags&NoMulti != 0 {
		return errNotInMulti
	}
	if r.Flags&Write != 0 {
		if err := e.Keyspace.Writable(); err != nil {
			return Misconf(err)
		}
	}
	if s.inSubscribedMode() && r.Flags&AllowSubscribed == 0 {
		return onlySubscribed(r.full)
	}
	if s.monitoring && r.Flags&(Write|ReadOnly|Publishes) != 0 {
		return errMonitoring
	}
	return nil
}

// run runs a parsed command in a transaction of its own. Then the transaction is closed, the session
// knows what to wait for and the messages of the command are sent. If it panics, or a command of an
// EXEC does, it has not happened: what it has changed is taken back, and its messages are dropped.
// After an error it has not begun.
func (e *Engine) run(s *Session, r *row, args []string, run Run, reply *Reply) error {
	if err := e.begin(s, r, args); err != nil {
		return err
	}
	s.ctx = Context{Tx: &s.tx, Session: s, Engine: e, Input: &s.in}
	ended := false
	defer func() {
		if ended && !s.ctx.panicked {
			s.LSN = max(s.LSN, s.tx.Close())
		} else {
			s.LSN = max(s.LSN, s.tx.Rollback())
			s.ctx.batch.cancel(&e.Broker)
		}
		s.revealed = max(s.revealed, s.LSN)
		if s.ctx.batch != nil {
			e.Broker.flush(s, s.ctx.batch, s.revealed)
		}
		clear(s.idBuffer) // they are views of the read buffer, which may be big
	}()
	s.noteCommand(r, s.tx.Now())
	*reply = run(&s.ctx)
	ended = true
	return nil
}

// mostIDsKept bounds the list of ids that a session keeps to be used again for its next command.
const maxIDBuffer = 1 << 10

// begin starts the session's transaction with the locks that the command asks for. After an error
// there is no transaction.
func (e *Engine) begin(s *Session, r *row, args []string) error {
	if r.Flags&Write != 0 || r.Scope == ScopeQueue {
		e.Keyspace.Throttle()
	}
	if r.items.First == 0 {
		switch r.Scope {
		case ScopeNone:
			e.Keyspace.BeginNone(&s.tx)
		case ScopeSweep:
			e.Keyspace.BeginSweep(&s.tx)
		case ScopeAll:
			e.Keyspace.BeginAll(&s.tx)
		case ScopeQueue:
			e.beginQueue(s)
		}
		return nil
	}
	if cap(s.idBuffer) > maxIDBuffer {
		s.idBuffer = nil
	}
	s.idBuffer = r.items.ids(s.idBuffer[:0], args)
	if err := checkIDs(s.idBuffer); err != nil {
		return err
	}
	if len(s.idBuffer) == 1 {
		e.Keyspace.BeginKey(&s.tx, s.idBuffer[0])
	} else {
		e.Keyspace.BeginKeys(&s.tx, s.idBuffer)
	}
	return nil
}

// checkIDs refuses ids that are too long.
func checkIDs(ids []string) error {
	for _, id := range ids {
		if len(id) > keyspace.MaxIDLength {
			return tooLong("id", len(id), keyspace.MaxIDLength)
		}
	}
	return nil
}
