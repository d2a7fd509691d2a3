package server

import (
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/forward"
	"mayfly/server/resp"
)

// A pipeline executes commands and renders their replies, in the same way for both kinds of connection. A
// loop has one for all its connections. A connection with a goroutine of its own borrows one while its
// client has something under way.
type pipeline struct {
	resp.Parser
	replies
	limit      int  // bytes of replies from which on they should leave
	committing bool // the keyspace waits for the disk

	until time.Duration // of the commit under way; see engine.Engine.Deadline
}

var pipelines = sync.Pool{New: func() any { return &pipeline{limit: fullReplies} }}

func newPipeline() *pipeline { return pipelines.Get().(*pipeline) }

// release ends the use of a borrowed pipeline. Unusually large memory is dropped.
func (p *pipeline) release() {
	p.reset()
	if cap(p.out) > keptReplies {
		p.out = nil
	}
	p.Forget(0)
	pipelines.Put(p)
}

// What a connection needs after [pipeline.execute], other than its next command.
var (
	errDeferred = errors.New("the command waits, or must not keep a loop waiting")
	errLarge    = errors.New("the reply is large")
	errFull     = errors.New("the replies should leave")
	errForward  = errors.New("the leader of the cluster runs the command")
	errLeft     = errors.New("the connection has left its loop")
	errMore     = errors.New("there may be more commands")
	errTurn     = errors.New("the connection has used up its part of the turn")
)

// execute runs one command of c and adds its reply. The error says what else is due before the next one:
//
//   - errDeferred: the command has not run. Pending tells when to try again.
//   - errForward: the leader of the cluster runs it, as pending says.
//   - errLarge: pending has the reply, which is to be streamed.
//   - errFull: the replies should leave.
//   - errQuit, errStopping, errKilled, errHTTP: the connection ends after the replies.
//   - errAttack: the connection ends at once.
func (p *pipeline) execute(c *conn, args []string) (pending *engine.Outcome, err error) {
	if c.executed == 0 && resp.IsHTTPRequest(args) {
		p.addText(resp.HTTPAnswer)
		return nil, errHTTP
	}
	if resp.IsHTTP(args[0]) {
		return nil, errAttack
	}
	if c.session.Proxied && args[0] == "" {
		c.session.NoteWait(forward.Waited(args))
		return nil, nil
	}
	c.session.Received()
	out := c.server.engine.Execute(c.session, args)
	switch {
	case out.Deferred:
		return &engine.Outcome{Resume: out.Resume, Relay: out.Relay}, errDeferred
	case out.Forward != nil:
		return &engine.Outcome{Forward: out.Forward}, errForward
	case resp.Exceeds(&out.Reply, largeReply):
		c.executed++
		return &engine.Outcome{Reply: out.Reply, LSN: out.LSN, Changed: out.Changed, Close: out.Close, Waited: out.Waited}, errLarge
	}
	c.executed++
	p.waited = max(p.waited, out.Waited)
	p.add(c.session.Proto, &out.Reply, out.LSN, out.Changed)
	return nil, p.after(c, out.Close)
}

// after returns what is due after a command, as execute does. quit reports whether the command ends the
// connection.
func (p *pipeline) after(c *conn, quit bool) error {
	switch {
	case quit:
		return errQuit
	case c.server.stopping.Load():
		return errStopping
	case c.killed.Load():
		return errKilled
	case len(p.out) >= p.limit, len(p.marks) >= fullMarks:
		return errFull
	}
	return nil
}

// longBlock is when a commit counts as a wait of the commands that come meanwhile, and for how long after its
// end commands are taken for such: a client that connects meanwhile introduces itself first.
const longBlock = 100 * time.Millisecond

// A commitWait remembers the last commit of the cluster that took long. What is read soon after it has waited
// as long.
type commitWait struct {
	took  time.Duration // 0: there was none
	ended time.Duration // as clock.Monotonic says
}

// note notes a commit that ends. It returns how long it took if that is long, else 0.
func (w *commitWait) note(began time.Duration) time.Duration {
	now := clock.Monotonic()
	if now-began <= longBlock {
		return 0
	}
	w.took, w.ended = now-began, now
	return w.took
}

// before returns how long the commands that are read at a time have waited.
func (w *commitWait) before(now time.Duration) time.Duration {
	if now-w.ended > longBlock {
		return 0
	}
	return w.took
}

// waitCommit waits with one of the engine's methods until an LSN is committed. A panic in it ends the
// process: see [conn.contain].
func (p *pipeline) waitCommit(wait func(keyspace.LSN, time.Duration) error, lsn keyspace.LSN) error {
	p.committing = true
	err := wait(lsn, p.until)
	p.committing = false
	return err
}

// contain runs f, which works for the connection, and reports whether it returned. A panic in it is logged
// and costs only this connection. During a commit it ends the process, because the store is in an
// unknown state.
func (c *conn) contain(f func()) (ok bool) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if c.pipe != nil && c.pipe.committing {
			panic(cause)
		}
		c.server.log.Error().Int64("client", c.session.ID).Str("panic", fmt.Sprint(cause)).Bytes("stack", debug.Stack()).
			Msg("a connection failed inside")
	}()
	f()
	return true
}

// stallBytes is how much of a half-read command a client must send within timeouts.stall, unless it ends the
// command. That rules whether or not idle clients are tolerated.
const stallBytes = 64 << 10

// renewDeadline applies the stall rule before the connection waits for its client. It reports whether the
// time that the client has starts anew: not while a half-read command makes no progress.
func (c *conn) renewDeadline() bool {
	half := c.guard.HalfRead()
	was := c.stalling.Load()
	if half != was {
		c.stalling.Store(half)
	}
	if !half {
		return true
	}
	progress := c.executed + c.received/stallBytes
	if was && progress == c.progress {
		return false
	}
	c.progress = progress
	return true
}

// bulkSlack is how many bytes longer than a value any other argument may be.
const bulkSlack = 1 << 10

// limits bound the next command of the client. A command may change them for the next one.
func (c *conn) limits() resp.Limits {
	settings := c.server.Settings()
	bulk := settings.MaxValueSize + bulkSlack
	return resp.Limits{
		Bulk:            bulk,
		Command:         min(4*bulk+resp.LargeBuffer, settings.QueryBufferLimit),
		Unauthenticated: c.unauthenticated(),
	}
}
