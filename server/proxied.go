package server

import (
	"io"
	"net"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/server/forward"
)

// This file has both ends of cluster-proxy: what a follower does with a command that the leader runs, and the
// session that the leader runs for the client.

// forward has the leader run a command. The replies come with the next flush at the latest.
func (c *conn) forward(f *engine.Forward) error {
	if c.proxy == nil {
		c.proxy = forward.New(forward.Options{
			Leaders: c.server.engine.Leaders(c.session), Send: c.send, Gone: c.goneAway, Stops: c.stops, Finish: shutDownWrites,
			Ended: func(nc net.Conn) bool { return (&socket{Conn: nc}).ended() }, Watch: c.watch,
		})
	}
	if len(c.pipe.out) > 0 || !c.proxy.Takes(f) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	c.executed++
	c.session.ForwardsPending = true
	if c.proxy.Add(f) {
		if err := c.flush(); err != nil {
			return err
		}
	}
	return c.finish(c.pipe.after(c, false))
}

// relay sends what is gathered for the leader, and the client its replies.
func (c *conn) relay() error {
	if c.proxy == nil || !c.proxy.Pending() {
		return nil
	}
	c.session.ForwardsPending = false
	if c.outbox != nil {
		c.outbox.hold() // no message comes between the pieces
	}
	return c.proxy.Flush()
}

// goneAway returns why the client takes no replies any more; nil: it does.
func (c *conn) goneAway() error {
	switch {
	case c.killed.Load():
		return errKilled
	case c.socket.ended():
		return io.EOF
	}
	return nil
}

// stops returns why nothing more is executed for the client; nil: it is.
func (c *conn) stops() error {
	if c.server.stopping.Load() {
		return errStopping
	}
	return nil
}

// watch calls wake once the client has hung up, until stop is called. Nothing may be read meanwhile.
func (c *conn) watch(wake func()) (stop func()) {
	raw, err := rawConn(c.socket.Conn)
	if err != nil {
		return func() {}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		left := false
		_ = raw.Read(func(fd uintptr) bool { left = hungUp(int(fd)); return left }) // an error is that of stop
		if left {
			wake()
		}
	}()
	return func() {
		_ = c.socket.SetReadDeadline(past) // if it fails the connection is gone, like below
		<-ended
		c.mu.Lock()
		defer c.mu.Unlock()
		_ = c.readWithinLocked(0)
	}
}

// ServeClient runs a session for a client of a user that is connected to another node, until the connection
// to that node ends. It returns at once.
func (s *Server) ServeClient(nc net.Conn, addr, laddr, user string) {
	var c *conn
	if s.started.Load() {
		c = s.register(nc, origin{remote: addr, local: laddr, places: s.mostClients(), inner: true, known: true, user: user})
	}
	if c == nil {
		s.rejected.Add(1)
		_ = nc.SetWriteDeadline(clock.Deadline(time.Millisecond)) // best effort, like the reply
		_, _ = nc.Write([]byte(tooManyClients))
		_ = nc.Close()
		return
	}
	s.total.Add(1)
	go func() {
		defer s.serving.Done()
		c.run(c.serveLoop)
	}()
}
