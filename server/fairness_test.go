package server

import (
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
)

// newTurnServer makes a server with one turn and an engine with the commands SLOW, which needs a turn and
// runs f, and A and B.
func newTurnServer(t *testing.T, f func(s *engine.Session)) (*Server, *fakeEngine) {
	s := newTestServer(t)
	s.turns = newTurnQueue(1)
	s.timeouts.long, s.timeouts.paused = 0, time.Millisecond
	e := newFakeEngine()
	e.slow = "SLOW"
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"SLOW": func(s *engine.Session, _ []string) engine.Reply {
			f(s)
			return engine.OK
		},
	}
	return s, e
}

// Clients with long commands alternate, however many of them one has sent. Others do not wait.
func TestLongCommandsTakeTurns(t *testing.T) {
	t.Parallel()
	var order []int64 // sessions, in the order of their turns, one after the other
	running, proceed := make(chan struct{}), make(chan struct{})
	s, e := newTurnServer(t, func(s *engine.Session) {
		order = append(order, s.ID)
		if len(order) == 1 {
			close(running)
			<-proceed
		}
	})
	address := s.run(t, e, nil)
	first, second, third := dial(t, address), dial(t, address), dial(t, address)
	first.send(strings.Repeat("SLOW\r\n", 5))
	<-running
	second.send("SLOW\r\n")
	eventually(t, "the second client waits for a turn", s.turns.contended)
	third.send("PING\r\n")
	third.expect("+PONG\r\n")
	close(proceed)
	second.expect("+OK\r\n")
	first.expect(strings.Repeat("+OK\r\n", 5))
	_ = first.Close()
	if len(order) != 6 || order[1] == order[0] || order[2] != order[0] {
		t.Errorf("turns of the sessions: %d", order)
	}
	if turn := s.turns.request(); !turn.isGranted() {
		t.Error("the turn is not free at the end")
	}
}

// What is left of a pipeline of long commands does not run after the client is gone.
func TestLongCommandsEndWithTheirClient(t *testing.T) {
	t.Parallel()
	const sent = 100
	var ran atomic.Int64
	running, proceed := make(chan struct{}), make(chan struct{})
	var s *Server
	s, e := newTurnServer(t, func(*engine.Session) {
		if ran.Add(1) == 1 {
			close(running)
			<-proceed
			return
		}
		// The client's system answers the first reply with a reset.
		s.each(func(c *conn) { eventually(t, "the reset arrives", c.socket.isReset) })
	})
	c := dial(t, s.run(t, e, nil))
	c.send(strings.Repeat("SLOW\r\n", sent))
	<-running
	_ = c.Close()
	close(proceed)
	eventually(t, "the connection ends", func() bool { return s.Info().Connected == 0 })
	if n := ran.Load(); n > 2 {
		t.Errorf("%d of %d commands ran", n, sent)
	}
}

// A client that sends no more still takes its replies: all its commands run.
func TestLongCommandsOfHalfClosedClients(t *testing.T) {
	t.Parallel()
	const sent = 20
	s, e := newTurnServer(t, func(s *engine.Session) { eventually(t, "it has closed its half", s.Abandoned) })
	c := dial(t, s.run(t, e, nil))
	c.send(strings.Repeat("SLOW\r\n", sent))
	must(t, c.Conn.(*net.TCPConn).CloseWrite())
	c.expect(strings.Repeat("+OK\r\n", sent))
	c.expectEnd()
}

// A long command sees soon that its client is gone, and lets others have their turn meanwhile.
func TestYield(t *testing.T) {
	t.Parallel()
	first := make(chan struct{})
	var yields, others atomic.Int64
	s, e := newTurnServer(t, func(s *engine.Session) {
		if others.Add(1) > 1 {
			return
		}
		close(first)
		for !s.Abandoned() {
			s.Yield()
			yields.Add(1)
		}
	})
	address := s.run(t, e, nil)
	c, other := dial(t, address), dial(t, address)
	c.send("SLOW\r\n")
	<-first
	other.send("SLOW\r\n")
	other.expect("+OK\r\n")
	n := yields.Load()
	eventually(t, "the command goes on", func() bool { return yields.Load() > n })
	_ = c.Close()
	eventually(t, "the connection ends", func() bool { return s.Info().Connected == 1 })
}
