package server

import (
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

func TestDisconnect(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	address := s.run(t, e, nil)
	idle, other := dial(t, address), dial(t, address)
	for _, c := range []*client{idle, other} {
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
	}
	if n := s.Disconnect(func(x *engine.Session) bool { return x.Addr == idle.LocalAddr().String() }); n != 1 {
		t.Errorf("%d are disconnected", n)
	}
	idle.expectEnd()
	other.send("PING\r\n")
	other.expect("+PONG\r\n")
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 1 })
	if n := s.Disconnect(func(*engine.Session) bool { return false }); n != 0 {
		t.Errorf("%d are disconnected", n)
	}
}

// What has arrived is seen before it is read.
func TestUnread(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	defer ln.Close()
	client, err := net.Dial("tcp", ln.Addr().String())
	drill.Check(t, err)
	defer client.Close()
	accepted, err := ln.Accept()
	drill.Check(t, err)
	defer accepted.Close()
	s := &socket{Conn: accepted}
	unread := func() bool { return s.ask(hasUnread) }
	if unread() {
		t.Error("something has arrived before anything was sent")
	}
	_, err = client.Write([]byte("x"))
	drill.Check(t, err)
	eventually(t, "the byte has arrived", unread)
	_, err = accepted.Read(make([]byte, 1))
	drill.Check(t, err)
	if unread() {
		t.Error("the byte that was read has arrived")
	}
}

// A loop has taken the descriptor from the socket.
func TestUnreadInALoop(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	begun, hold := make(chan *engine.Session, 1), make(chan struct{})
	end := sync.OnceFunc(func() { close(hold) })
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"HOLD": func(self *engine.Session, _ []string) engine.Reply {
			begun <- self
			<-hold
			return engine.OK
		},
	}
	c := dial(t, s.run(t, e, nil))
	defer end()
	c.send("HOLD\r\n")
	session := <-begun
	if session.Unread() {
		t.Error("something has arrived before it was sent")
	}
	c.send("PING\r\n")
	eventually(t, "PING has arrived", session.Unread)
	end()
	c.expect("+OK\r\n+PONG\r\n")
	if session.Unread() {
		t.Error("the command that has run has arrived")
	}
}

// In a cluster, what has been read awaits its reply until that has left, which may wait for a commit.
func TestAwaitsReply(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	sessions, commits, hold := make(chan *engine.Session, 1), make(chan keyspace.LSN, 1), make(chan struct{})
	end := sync.OnceFunc(func() { close(hold) })
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"NODE": func(self *engine.Session, _ []string) engine.Reply {
			self.Service = engine.ServeOnNode
			sessions <- self
			return engine.OK
		},
	}
	e.wait = func(lsn keyspace.LSN) error {
		commits <- lsn
		<-hold
		return nil
	}
	c := dial(t, s.run(t, e, nil))
	defer end()
	c.send("NODE\r\n")
	c.expect("+OK\r\n")
	session := <-sessions
	eventually(t, "the reply has left", func() bool { return !session.AwaitsReply() })
	c.send("SET a 1\r\n")
	<-commits
	if !session.AwaitsReply() {
		t.Error("a client whose reply waits for the commit awaits none")
	}
	end()
	c.expect("+OK\r\n")
	eventually(t, "the reply has left", func() bool { return !session.AwaitsReply() })
}

// A client awaits a large reply until all of it has left.
func TestAwaitsLargeReply(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	sessions, size := make(chan *engine.Session, 1), 32<<20 // more than the system takes for a client that does not read
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"LARGE": func(self *engine.Session, _ []string) engine.Reply {
			self.Service = engine.ServeOnNode
			sessions <- self
			return engine.Bulk(strings.Repeat("x", size))
		},
	}
	c := dial(t, s.run(t, e, nil))
	for n := range 2 { // the first command in a cluster does not count
		c.send("LARGE\r\n")
		c.expect("$33554432\r\n")
		session := <-sessions
		if n > 0 && !session.AwaitsReply() {
			t.Error("a client that has a part of its reply awaits none")
		}
		_, err := io.CopyN(io.Discard, c.r, int64(size)+2)
		drill.Check(t, err)
		eventually(t, "the reply has left", func() bool { return !session.AwaitsReply() })
	}
}

// After a client is disconnected while one of its commands runs, its next commands do not run.
func TestDisconnectDropsThePipeline(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"DIE": func(self *engine.Session, _ []string) engine.Reply {
			s.Disconnect(func(x *engine.Session) bool { return x == self })
			return engine.OK
		},
	}
	c := dial(t, s.run(t, e, nil))
	c.send("SET a 1\r\nDIE\r\nSET a 2\r\n")
	c.expectEnd()
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "SET DIE"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
	if e.waited() == 0 {
		t.Error("what was done is not committed")
	}
}

func TestDisconnectTLS(t *testing.T) {
	t.Parallel()
	s, address, known := secureServer(t, "yes")
	c := dialTLS(t, address, known)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	if n := s.Disconnect(func(*engine.Session) bool { return true }); n != 1 {
		t.Errorf("%d are disconnected", n)
	}
	if _, err := c.r.ReadByte(); err == nil {
		t.Error("the connection goes on")
	}
}
