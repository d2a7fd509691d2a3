package server

import (
	"cmp"
	"container/list"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/forward"
	"mayfly/server/resp"
)

// Why a connection ends from our side.
var (
	errQuit     = errors.New("client quits")
	errStopping = errors.New("server stops")
	errKilled   = errors.New("killed by CLIENT KILL")
	errHTTP     = errors.New("request in HTTP")
	errAttack   = errors.New("header of HTTP as a command")
	errDenied   = errors.New("protected mode")
	errPanic    = errors.New("failed inside")
	errTimeout  = os.ErrDeadlineExceeded // silent for too long
)

// A conn is one connection. It is served in a [loop] with others, or by a goroutine of its own. This file
// has what such a goroutine does: wait for the client, for the disk, and for the end of a pause.
type conn struct {
	server  *Server
	loop    *loop  // that serves it; nil: a goroutine of its own does
	socket  socket // for that goroutine
	guard   resp.Guard
	session *engine.Session
	proxy   *forward.Proxy // for commands that the leader runs; nil: there were none
	pipe    *pipeline      // of its loop, or one of its own while its client has something under way

	lastWait commitWait // in a goroutine of its own

	outbox *outbox       // while the client receives messages, else nil
	killed atomic.Bool   // the socket is shut down
	gone   chan struct{} // closed when killed

	asked    time.Duration // when the client had to give the password, see authDeadline; 0: it had not
	unread   bool          // CLIENT LIST shows what is read ahead
	waiting  *list.Element // in Server.waiting; protected by the server's mutex, like what follows
	madeRoom bool

	mu sync.Mutex // protects fd, and against others also socket.Conn
	fd int        // the descriptor while the connection is in a loop, else noFD

	// For commands that compute for long: see fairness.go.
	turn   *longTurn     // of the running command, or nil
	longAt time.Duration // when the last one began, as clock.Monotonic says

	stall
}

// stall is what a connection knows for the stall rule: see renewDeadline.
type stall struct {
	received int           // bytes
	executed int           // commands
	progress int           // of received and executed when the deadline began
	stalling atomic.Bool   // a half-read command is waited for
	rested   bool          // in a loop: commands are left for the next turn
	served   uint64        // in a loop: the number of the last turn that served it
	deadline bool          // the socket has a read deadline; the mutex protects it
	since    time.Duration // in a loop: when the deadline began, as clock.Monotonic says
}

const noFD = -1

// run serves the connection in a goroutine of its own, to its end. serve returns why it ends.
func (c *conn) run(serve func() error) {
	defer c.server.remove(c)
	c.session.Paced = true
	err := errPanic
	c.contain(func() { err = serve() })
	c.contain(func() {
		c.close()
		c.logClose(err)
		if lingers(err) {
			c.socket.lingerClose()
		}
	})
}

// close releases what the session and the connection hold.
func (c *conn) close() {
	c.session.Disconnected.Store(true)
	c.server.engine.CloseSession(c.session)
	_ = c.closeOutbox() // the connection ends in any case
	if c.proxy != nil {
		c.proxy.Close()
	}
	c.guard.Close()
}

// logClose logs why the connection ends.
func (c *conn) logClose(err error) {
	c.server.log.Debug().Int64("client", c.session.ID).Str("addr", c.session.Addr).AnErr("why", err).Msg("connection ends")
	c.server.warnClose(c, err)
}

// lingers reports whether a connection that ends for this reason ends with a reply that must arrive.
func lingers(err error) bool {
	var violation resp.ProtocolError
	return err == errQuit || err == errHTTP || err == errStopping || err == errDenied || err == resp.ErrClientMemory || errors.As(err, &violation)
}

// serve greets a client and serves it to its end.
func (c *conn) serve() error {
	if err := c.greet(); err != nil {
		return err
	}
	return c.serveLoop()
}

// resume serves a connection that has left its loop, with replies that are not sent yet. first is what it
// has left the loop for, if not nil.
func (c *conn) resume(first handOff) error {
	if first != nil {
		if err := first(); err != nil {
			return err
		}
	}
	// Others may have disconnected the client since.
	if err := c.finish(c.pipe.after(c, false)); err != nil {
		return err
	}
	if err := c.executeAll(); err != nil {
		return err
	}
	c.returnPipeline()
	return c.serveLoop()
}

// A handOff is the work for which a connection leaves its loop.
type handOff func() error

// greet does what precedes the first command: the TLS handshake, and refusing clients from other machines
// while there is no password (protected mode).
func (c *conn) greet() error {
	if t, ok := c.socket.Conn.(*tls.Conn); ok {
		if err := c.socket.SetDeadline(clock.Deadline(c.server.timeouts.handshake)); err != nil {
			return err
		}
		if c.server.stopping.Load() {
			return errStopping
		}
		if err := t.Handshake(); err != nil {
			return handshakeError{err}
		}
		if err := c.socket.SetDeadline(time.Time{}); err != nil {
			return err
		}
	}
	if c.server.denies(c.socket.Conn.RemoteAddr()) {
		c.server.rejected.Add(1)
		return cmp.Or(c.socket.send([]byte(denied)), errDenied)
	}
	c.server.total.Add(1)
	return nil
}

// serveLoop waits for the client and executes what it sends, until the connection ends. It returns why.
func (c *conn) serveLoop() error {
	for {
		err := c.receive()
		if err != nil && err != resp.ErrClientMemory {
			return err
		}
		c.pipe = newPipeline()
		if err != nil {
			return c.reject(err)
		}
		c.session.NoteWait(c.lastWait.before(clock.Monotonic()))
		if err := c.executeAll(); err != nil {
			return err
		}
		c.returnPipeline()
	}
}

// returnPipeline ends the use of the pipeline before the connection waits for its client. A connection that
// ends keeps it.
func (c *conn) returnPipeline() {
	c.pipe.release()
	c.pipe = nil
}

// receive waits for more from the client and reads it.
func (c *conn) receive() error {
	c.session.ResetTimer()
	if err := c.setDeadline(); err != nil {
		return err
	}
	if c.server.stopping.Load() {
		return os.ErrDeadlineExceeded // as if interrupted while waiting
	}
	c.showUnread(nil)
	n, err := c.socket.fill(&c.guard)
	c.received += n
	if err != nil && c.authTimedOut() {
		return errAuthTimeout
	}
	if err == nil && c.killed.Load() {
		return errKilled // what arrived before can still be read
	}
	return err
}

// showUnread notes what is read ahead for CLIENT LIST, while the connection waits. args are those of a
// command that waits.
func (c *conn) showUnread(args []string) {
	half := c.guard.HalfRead()
	if !half && !c.unread && args == nil {
		return
	}
	unread, room, size := c.guard.Usage()
	for _, arg := range args {
		size += len(arg)
	}
	c.session.SetUnread(unread, room, size)
	c.unread = half || args != nil
}

// setDeadline limits the time of the next read.
func (c *conn) setDeadline() error {
	if !c.renewDeadline() {
		return nil
	}
	limit := c.server.Settings().Timeout
	switch {
	case c.stalling.Load():
		limit = c.server.timeouts.stall
	case c.session.MayBeSilent(), c.session.Proxied:
		limit = 0
	}
	limit, err := c.limitAuth(limit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil || limit == 0 && !c.deadline {
		return err
	}
	return c.readWithinLocked(limit)
}

// readWithinLocked limits the time of the next read, 0 for no limit. It holds until another limit is set.
func (c *conn) readWithinLocked(limit time.Duration) error {
	c.deadline = limit > 0
	return c.socket.readWithin(limit)
}

// limitIdle applies a new timeout to an idle client, unless a loop serves it. Any goroutine may call it.
func (c *conn) limitIdle(timeout time.Duration) {
	if c.stalling.Load() || c.session.MayBeSilent() || c.session.Proxied || c.unauthenticated() {
		return
	}
	c.whileWaiting(func() { _ = c.readWithinLocked(timeout) }) // if it fails the connection is gone
	if c.server.stopping.Load() {
		c.interrupt()
	}
}

// limitUnauthenticated applies a new time to give the password to a client that waits without it, from now
// on, unless a loop serves it. Any goroutine may call it.
func (c *conn) limitUnauthenticated(timeout time.Duration) {
	if timeout > 0 && c.unauthenticated() {
		c.whileWaiting(func() { _ = c.readWithinLocked(timeout) }) // if it fails the connection is gone
	}
	if c.server.stopping.Load() {
		c.interrupt()
	}
}

// abandoned reports whether the running command has no receiver any more: the client has left or the server
// stops. Only the goroutine that runs the command may call it.
func (c *conn) abandoned() bool {
	return c.killed.Load() || c.server.stopping.Load() || c.socket.Conn != nil && c.socket.ended()
}

// interrupt ends the wait for a client. Any goroutine may call it.
func (c *conn) interrupt() {
	c.whileWaiting(func() { _ = c.socket.SetReadDeadline(past) }) // if it fails the connection is gone
}

// giveUp ends all waits of the connection. Any goroutine may call it.
func (c *conn) giveUp() {
	c.whileWaiting(func() { _ = c.socket.SetDeadline(past) }) // if it fails the connection is gone
}

// whileWaiting calls f if the connection has a goroutine of its own, which may be waiting.
func (c *conn) whileWaiting(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd == noFD && c.socket.Conn != nil {
		f()
	}
}

// hasUnread reports whether something has arrived that was not read. Any goroutine may call it.
func (c *conn) hasUnread() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd != noFD {
		return hasUnread(c.fd)
	}
	return c.socket.ask(hasUnread)
}

// kill disconnects the client. Any goroutine may call it.
func (c *conn) kill() {
	if !c.killed.CompareAndSwap(false, true) {
		return
	}
	c.session.Disconnected.Store(true)
	close(c.gone)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.fd != noFD:
		shutDown(c.fd) // the loop sees it and closes the descriptor
	case c.socket.Conn != nil:
		c.socket.shutDown()
	}
}

// executeAll executes the whole commands that have been read and sends their replies.
func (c *conn) executeAll() error {
	for {
		command, err := c.pipe.Next(&c.guard, c.limits())
		switch {
		case err != nil:
			return c.reject(err)
		case command.Args == nil:
			return c.flush()
		}
		err = c.execute(command.Args)
		c.pipe.Forget(0)
		if err != nil {
			return err
		}
	}
}

// execute executes one command, as soon as clients are not paused and it has the turn that it may need. The
// error says why the connection ends.
func (c *conn) execute(args []string) error {
	pending, err := c.pipe.execute(c, args)
	for err == errDeferred {
		if pending.Relay {
			if err = c.flush(); err != nil {
				return err
			}
			pending, err = c.pipe.execute(c, args)
			continue
		}
		if pending.Resume == nil {
			pending, err = c.executeLong(args)
			continue
		}
		c.showUnread(args)
		if args, err = c.awaitResume(args, pending.Resume); err != nil {
			return err
		}
		pending, err = c.pipe.execute(c, args)
	}
	switch err {
	case errLarge:
		return c.stream(pending)
	case errForward:
		return c.forward(pending.Forward)
	}
	return c.finish(err)
}

// finish does what is due after a command, as [pipeline.execute] says.
func (c *conn) finish(err error) error {
	if c.outbox != nil && err != errAttack {
		if err := c.interleave(); err != nil {
			return err
		}
	}
	switch err {
	case nil, errAttack:
		return err
	case errFull:
		return c.flush()
	}
	return cmp.Or(c.flush(), err)
}

// awaitResume waits while a command cannot run: clients are paused, or it has nothing to return yet. The
// replies so far have left. It returns the arguments, which may be copies. The error says why the command
// must not run at all.
func (c *conn) awaitResume(args []string, resume <-chan struct{}) ([]string, error) {
	if err := c.flush(); err != nil {
		return nil, err
	}
	if c.outbox != nil { // the command has not begun
		c.outbox.unhold(c.session.Proto)
	}
	args = c.shrink(args)
	c.server.paused.Add(1)
	defer c.server.paused.Add(-1)
	defer c.session.ResetTimer()
	return args, c.await(resume, c.socket.ended)
}

// shrink gives back memory before a wait that may be long, if the arguments of the command are short. It
// returns copies of them then. All replies have left.
func (c *conn) shrink(args []string) []string {
	own, ok := resp.CloneShort(args)
	if ok {
		c.pipe.replies = replies{}
		c.pipe.Forget(0)
		c.guard.Release()
	}
	return own
}

// await waits for a channel. The error says why the connection ends first. A client that has left gets
// nothing more executed, and makes room for others.
func (c *conn) await(ready <-chan struct{}, left func() bool) error {
	poll := time.NewTicker(c.server.timeouts.paused)
	defer poll.Stop()
	for {
		select {
		case <-ready:
			if left() {
				return io.EOF
			}
			return nil
		case <-c.gone:
			return errKilled
		case <-c.server.stop:
			return errStopping
		case <-poll.C:
			if left() {
				return io.EOF
			}
		}
	}
}

// reject answers a violation of the protocol, after the replies to what came before it. The connection ends.
func (c *conn) reject(err error) error {
	c.pipe.add(c.session.Proto, &engine.Reply{Kind: engine.KindError, Str: "ERR " + err.Error()}, 0, false)
	return cmp.Or(c.flush(), err)
}

// flush sends the replies so far once what they report is committed.
func (c *conn) flush() error {
	err := c.sendReplies()
	c.session.Answered()
	return err
}

// sendReplies is flush before a reply that is still to be sent: the client counts as unanswered.
func (c *conn) sendReplies() error {
	if err := c.relay(); err != nil {
		return err
	}
	if c.pipe.lsn != 0 {
		c.pipe.until = c.server.engine.Deadline(c.pipe.waited)
	}
	if c.pipe.lsn == 0 || c.pipe.until == 0 {
		c.pipe.commit(c.waitCommit, c.waitWritten)
	} else {
		began := clock.Monotonic()
		c.pipe.commit(c.waitCommit, c.waitWritten)
		if took := c.lastWait.note(began); took > 0 {
			c.session.NoteWait(c.pipe.waited + took) // what was read together shares one wait
		}
	}
	err := c.send(c.pipe.out)
	c.pipe.reset()
	return err
}

// waitCommit waits until what an LSN covers is committed.
func (c *conn) waitCommit(lsn keyspace.LSN) error {
	c.session.ResetTimer()
	return c.pipe.waitCommit(c.server.engine.Wait, lsn)
}

// waitWritten is waitCommit for the reply to a command that has changed something.
func (c *conn) waitWritten(lsn keyspace.LSN) error {
	return c.pipe.waitCommit(c.server.engine.WaitWritten, lsn)
}

// stream sends a large reply piece by piece, so that it is never in memory twice, after the replies before
// it.
func (c *conn) stream(pending *engine.Outcome) error {
	defer c.session.Memory.Release(c.chargeReply(&pending.Reply))
	if c.outbox != nil {
		c.outbox.hold() // no message comes between the pieces
	}
	if err := c.sendReplies(); err != nil {
		return err
	}
	c.pipe.until = c.server.engine.Deadline(pending.Waited)
	wait := c.waitCommit
	if pending.Changed {
		wait = c.waitWritten
	}
	if err := wait(pending.LSN); err != nil {
		refusal := engine.Reply{Kind: engine.KindError, Str: engine.CommitFailure(err, pending.Changed).Error()}
		c.pipe.add(c.session.Proto, &refusal, 0, false)
	} else if err := resp.Stream(c.pipe.out, c.session.Proto, &pending.Reply, c.send); err != nil {
		return err
	}
	return c.finish(c.pipe.after(c, pending.Close))
}

// send sends bytes after all that is under way to the client.
func (c *conn) send(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	c.session.ResetTimer()
	if c.outbox != nil {
		return c.outbox.write(p)
	}
	// While the client does not take it, this and what has been read ahead stay in memory.
	if len(p) < resp.SmallBuffer {
		return c.socket.send(p)
	}
	held := c.session.Memory.Charge(len(p) + c.guard.Uncharged())
	defer c.session.Memory.Release(held)
	c.session.SetUnsent(1, len(p))
	defer c.session.SetUnsent(0, 0)
	return c.socket.send(p)
}
