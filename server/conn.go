package server

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/commands"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/resp"
)

// stallBytes is how much of a command that it has begun a client must send, unless it ends it, in the
// time that timeouts.stall gives, whether or not idle clients are tolerated.
const stallBytes = 64 << 10

// bulkSlack is how many bytes longer than a value any other argument may be.
const bulkSlack = 1 << 10

// Why a connection ends from our side.
var (
	errQuit     = errors.New("client quits")
	errStopping = errors.New("server stops")
	errKilled   = errors.New("killed by CLIENT KILL")
	errAttack   = errors.New("request in HTTP")
	errDenied   = errors.New("protected mode")
)

// conn serves one connection, in a [loop] with others or in a goroutine of its own: it reads what the
// client has sent, carries out the whole commands in it, waits until what their replies report is
// committed and writes them with one system call.
type conn struct {
	server  *Server
	loop    *loop  // that it is in; nil: it has a goroutine of its own
	socket  socket // for that goroutine
	guard   resp.Guard
	session *commands.Session

	outbox     *outbox     // while the client subscribes to something, nil otherwise
	committing bool        // in the keyspace, waiting for the disk
	killed     atomic.Bool // the socket is closed

	gone chan struct{} // closed when killed

	mu sync.Mutex // protects fd, and against others also socket.Conn
	fd int        // the descriptor while the connection is in a loop, noFD otherwise

	// For the read deadline.
	received int           // bytes
	executed int           // commands
	progress int           // what had been received and executed when the deadline was set
	stalling atomic.Bool   // the deadline is that of a half-read command
	deadline bool          // there is a deadline
	since    time.Duration // in a loop: when it was set, as clock.Monotonic says
}

const noFD = -1

// run serves the connection, in a goroutine of its own, to its end. serve says why that has come.
func (c *conn) run(serve func() error) {
	defer c.server.remove(c)
	defer func() {
		p := recover()
		if p == nil {
			return
		}
		if c.committing {
			panic(p)
		}
		c.server.log.Error().Int64("client", c.session.ID).Str("panic", fmt.Sprint(p)).Bytes("stack", debug.Stack()).
			Msg("a connection failed inside")
	}()
	c.over(serve())
}

// over sees to it that the client learns why its connection ends. What it learns may have to be waited
// for: see [conn.lingers].
func (c *conn) over(err error) {
	c.server.log.Debug().Int64("client", c.session.ID).Str("addr", c.session.Addr).AnErr("why", err).Msg("connection ends")
	c.server.notice(c, err)
	switch {
	case err == errAttack:
		if ok, _ := c.server.attackLog.Allow(); ok {
			c.server.log.Warn().Str("addr", c.session.Addr).
				Msg("possible attack: somebody sends POST or Host: as a command, as a web page does that makes a browser talk to us; connection closed")
		}
	case lingers(err):
		c.socket.hangUp()
	}
}

// lingers tells whether a connection that ends for this reason ends with a reply that the client must
// get.
func lingers(err error) bool {
	var violation resp.ProtocolError
	return err == errQuit || err == errStopping || err == errDenied || err == resp.ErrClientMemory || errors.As(err, &violation)
}

// begin serves a connection that is in no loop from its beginning.
func (c *conn) begin() error {
	if err := c.greet(); err != nil {
		return err
	}
	return c.serve()
}

// greet does what comes before the first command: the TLS handshake, and turning away clients from
// other machines while there is no password (protected mode).
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
	if c.server.denies(c.socket.Conn) {
		c.server.rejected.Add(1)
		return cmp.Or(c.socket.send([]byte(denied)), errDenied)
	}
	c.server.total.Add(1)
	return nil
}

// serve serves commands until the connection ends, and returns why it did.
func (c *conn) serve() error {
	defer c.end()
	return c.circle()
}

// goOn is serve for a connection that has left its loop with replies that are not sent yet. First comes
// what it has left the loop for.
func (c *conn) goOn(b *batch, first func(*batch) error) error {
	defer c.end()
	if err := c.finish(b, first); err != nil {
		return err
	}
	return c.circle()
}

// finish does what a connection has left its loop for, and carries out what has been read.
func (c *conn) finish(b *batch, first func(*batch) error) error {
	defer b.release()
	if err := first(b); err != nil {
		return err
	}
	if err := c.between(b); err != nil {
		return err
	}
	return c.pipeline(b)
}

func (c *conn) circle() error {
	for {
		if err := c.await(); err != nil {
			return err
		}
		if err := c.oncePipeline(); err != nil {
			return err
		}
	}
}

// await waits for more from the client.
func (c *conn) await() error {
	c.session.ResetTimer()
	if err := c.setDeadline(); err != nil {
		return err
	}
	if c.server.stopping.Load() {
		return os.ErrDeadlineExceeded // as if interrupted while waiting
	}
	n, err := c.socket.fill(&c.guard)
	c.received += n
	if err == resp.ErrClientMemory {
		b := newBatch()
		defer b.release()
		return c.reject(b, err)
	}
	if err == nil && c.killed.Load() {
		return errKilled // what it has sent before can still be read
	}
	return err
}

// setDeadline sets how long the next read may take.
func (c *conn) setDeadline() error {
	limit := c.server.Settings().Timeout
	if c.session.ReceivesMessages() {
		limit = 0 // it waits for messages
	}
	stalling := c.guard.HalfRead()
	if stalling {
		limit = c.server.timeouts.stall
		progress := c.executed + c.received/stallBytes
		if c.stalling.Load() && progress == c.progress {
			return nil // the deadline stands
		}
		c.progress = progress
	}
	if stalling != c.stalling.Load() {
		c.stalling.Store(stalling)
	}
	if limit == 0 && !c.deadline {
		return nil
	}
	c.deadline = limit > 0
	return c.socket.readWithin(limit)
}

// limitIdle applies a new timeout to a client that is idle. Any goroutine may call it. Those in a loop
// are the loop's concern.
func (c *conn) limitIdle(timeout time.Duration) {
	if c.stalling.Load() || c.session.ReceivesMessages() {
		return
	}
	c.waiting(func() { _ = c.socket.readWithin(timeout) }) // if it fails the connection is gone
	if c.server.stopping.Load() {
		c.interrupt()
	}
}

// interrupt ends the wait for a client. Any goroutine may call it.
func (c *conn) interrupt() {
	c.waiting(func() { _ = c.socket.SetReadDeadline(past) }) // if it fails the connection is gone
}

// giveUp ends all that the connection waits for. Any goroutine may call it.
func (c *conn) giveUp() {
	c.waiting(func() { _ = c.socket.SetDeadline(past) }) // if it fails the connection is gone
}

// waiting calls f if the connection has a goroutine of its own, which may be waiting.
func (c *conn) waiting(f func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd == noFD && c.socket.Conn != nil {
		f()
	}
}

// kill cuts the client off. Any goroutine may call it.
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
		cutOff(c.fd) // the loop sees it and closes the descriptor
	case c.socket.Conn != nil:
		c.socket.cutOff()
	}
}

func (c *conn) oncePipeline() error {
	b := newBatch()
	defer b.release()
	return c.pipeline(b)
}

// pipeline carries out the whole commands that have been read and sends their replies.
func (c *conn) pipeline(b *batch) error {
	for {
		command, err := b.Next(&c.guard, c.limits())
		switch {
		case err != nil:
			return c.reject(b, err)
		case command.Args == nil:
			return c.flush(b)
		}
		if err := c.execute(b, command.Args); err != nil {
			return err
		}
		if err := c.between(b); err != nil {
			return err
		}
	}
}

// between does what is due between two commands. The error says why the second is not to be carried
// out.
func (c *conn) between(b *batch) error {
	switch {
	case c.session.Closing:
		return cmp.Or(c.flush(b), errQuit)
	case c.server.stopping.Load():
		return cmp.Or(c.flush(b), errStopping)
	case c.killed.Load():
		return cmp.Or(c.flush(b), errKilled) // what has been done is committed
	case b.full():
		return c.flush(b)
	}
	return nil
}

// limits are those that the client is under now: a command may change them for the next.
func (c *conn) limits() resp.Limits {
	settings := c.server.Settings()
	bulk := settings.MaxValueSize + bulkSlack
	return resp.Limits{
		Bulk:            bulk,
		Command:         4*bulk + resp.LargeBuffer,
		Unauthenticated: !c.session.Authenticated && settings.RequirePass != "",
	}
}

// execute carries out one command and adds its reply to the batch.
func (c *conn) execute(b *batch, args []string) error {
	defer b.Forget(0)
	if isHTTP(args[0]) {
		return errAttack
	}
	c.executed++
	if err := c.heldBack(b, args); err != nil {
		return err
	}
	c.session.LSN = 0
	reply := c.server.engine.Execute(c.session, args)
	return c.answer(b, &reply)
}

// answer adds the reply of the command that has been carried out to the batch, or sends it in pieces.
func (c *conn) answer(b *batch, reply *commands.Reply) (err error) {
	if resp.Exceeds(reply, bigReply) {
		err = c.stream(b, reply)
	} else {
		b.add(c.session.Proto, reply, c.session.LSN)
	}
	if err == nil && c.outbox != nil {
		err = c.interleave(b)
	}
	return err
}

// heldBack lets a command wait while clients are paused, after the replies to those before it have
// left. The error says why the command is not to be carried out at all.
func (c *conn) heldBack(b *batch, args []string) error {
	for {
		over := c.server.engine.Paused(c.session, args)
		if over == nil {
			return nil
		}
		if err := c.flush(b); err != nil {
			return err
		}
		c.server.held.Add(1)
		err := c.holdOut(over)
		c.server.held.Add(-1)
		if err != nil {
			return err
		}
	}
}

// holdOut waits until the pause is over. Meanwhile it looks now and then whether the client is still
// there: one that has gone gets no more carried out, and makes room for others.
func (c *conn) holdOut(over <-chan struct{}) error {
	look := time.NewTicker(c.server.timeouts.held)
	defer look.Stop()
	for {
		select {
		case <-over:
			return nil
		case <-c.gone:
			return errKilled
		case <-c.server.stop:
			return errStopping
		case <-look.C:
			if c.socket.ended() {
				return io.EOF
			}
		}
	}
}

// isHTTP recognises the requests by which a web page can make a browser talk to us (cross-protocol
// scripting). Redis closes the connection for them, too.
func isHTTP(name string) bool {
	return len(name) == len("POST") && strings.EqualFold(name, "POST") ||
		len(name) == len("Host:") && strings.EqualFold(name, "Host:")
}

// reject answers what has broken the rules of the protocol, after all that came before it. The
// connection cannot go on.
func (c *conn) reject(b *batch, err error) error {
	b.add(c.session.Proto, &commands.Reply{Kind: commands.KindError, Str: "ERR " + err.Error()}, 0)
	return cmp.Or(c.flush(b), err)
}

// flush sends the replies of the batch once all they report is committed.
func (c *conn) flush(b *batch) error {
	b.commit(c.wait)
	return c.send(b)
}

// send sends what the batch has rendered.
func (c *conn) send(b *batch) error {
	defer b.reset()
	if len(b.out) == 0 {
		return nil
	}
	return c.write(b.out)
}

// stream sends a big reply piece by piece, so that it is never in memory twice. What came before it
// leaves first.
func (c *conn) stream(b *batch, r *commands.Reply) error {
	ticket := c.session.LSN
	defer c.session.Memory.Release(c.holdReply(r))
	if c.outbox != nil {
		c.outbox.hold() // no message comes between the pieces
	}
	if err := c.flush(b); err != nil {
		return err
	}
	if err := c.wait(ticket); err != nil {
		b.add(c.session.Proto, &commands.Reply{Kind: commands.KindError, Str: commands.Misconf(err).Error()}, 0)
		return nil
	}
	return resp.Stream(b.out, c.session.Proto, r, c.write)
}

// wait waits until what a ticket covers is committed. A panic meanwhile is the end of the process:
// the store is in an unknown state.
func (c *conn) wait(ticket keyspace.LSN) error {
	c.session.ResetTimer()
	c.committing = true
	err := c.server.engine.Wait(ticket)
	c.committing = false
	return err
}
