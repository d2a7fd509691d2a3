package server

import (
	"context"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// pauseSets makes an engine defer SET until the channel is closed.
func (e *fakeEngine) pauseSets() chan struct{} {
	over := make(chan struct{})
	e.paused = func(args []string) <-chan struct{} {
		if drill.Done(over) || args[0] != "SET" {
			return nil
		}
		return over
	}
	return over
}

// pausedClient returns a client whose pipeline waits at a SET, and the server.
func pausedClient(t *testing.T, e *fakeEngine) (*Server, *client) {
	s := newTestServer(t)
	c := dial(t, s.run(t, e, nil))
	c.send("PING\r\nSET a 1\r\nGET a\r\n")
	c.expect("+PONG\r\n") // what came before it has left
	eventually(t, "the client is paused", func() bool { return s.Info().PausedClients == 1 })
	return s, c
}

func TestPause(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	over := e.pauseSets()
	s, c := pausedClient(t, e)
	other := dial(t, c.RemoteAddr().String())
	other.send("GET a\r\n")
	other.expect("$-1\r\n")
	close(over)
	c.expect("+OK\r\n$1\r\n1\r\n")
	if n := s.Info().PausedClients; n != 0 {
		t.Errorf("%d clients are paused", n)
	}
}

func TestPauseAndDisconnect(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.pauseSets()
	s, c := pausedClient(t, e)
	s.Disconnect(func(*engine.Session) bool { return true })
	c.expectEnd()
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
	if n := s.Info().PausedClients; n != 0 {
		t.Errorf("%d clients are paused", n)
	}
}

// A pause does not keep the server from stopping.
func TestPauseAndStop(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.pauseSets()
	s, c := pausedClient(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	drill.Report(t, s.Stop(ctx))
	c.expectEnd()
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}

// A client that leaves is not kept until the pause is over, and its command does not run.
func TestPauseAndLeave(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.pauseSets()
	s := newTestServer(t)
	s.timeouts.paused = time.Millisecond
	c := dial(t, s.run(t, e, nil))
	c.send("PING\r\nSET a 1\r\n")
	c.expect("+PONG\r\n")
	eventually(t, "the client is paused", func() bool { return s.Info().PausedClients == 1 })
	drill.Check(t, c.Close())
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}

// A client that has left since the last look gets nothing executed when the pause ends, even if it had sent
// more commands.
func TestPauseAndLeaveBeforeItsEnd(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	over := e.pauseSets()
	s := newTestServer(t)
	s.timeouts.paused = time.Hour // it does not look in between
	c := dial(t, s.run(t, e, nil))
	c.send("PING\r\nSET a 1\r\n")
	c.expect("+PONG\r\n")
	eventually(t, "the client is paused", func() bool { return s.Info().PausedClients == 1 })
	c.send("SET a 2\r\n")
	var waiting *conn
	s.each(func(c *conn) { waiting = c })
	if waiting.abandoned() {
		t.Error("the client has left before it does")
	}
	drill.Check(t, c.Close())
	eventually(t, "the server can see the end", waiting.abandoned)
	close(over)
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}
