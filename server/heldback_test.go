package server

import (
	"context"
	"testing"
	"time"

	"mayfly/commands"
)

// holdSets makes an engine hold SET back until the channel is closed.
func (e *fakeEngine) holdSets() chan struct{} {
	over := make(chan struct{})
	e.paused = func(args []string) <-chan struct{} {
		select {
		case <-over:
			return nil
		default:
		}
		if args[0] != "SET" {
			return nil
		}
		return over
	}
	return over
}

// heldClient gives a client whose pipeline waits at a SET, and the server.
func heldClient(t *testing.T, e *fakeEngine) (*Server, *client) {
	s := newTestServer(t)
	c := dial(t, s.run(t, e, nil))
	c.send("PING\r\nSET a 1\r\nGET a\r\n")
	c.expect("+PONG\r\n") // what came before it has left
	eventually(t, "the client is held back", func() bool { return s.Info().PausedClients == 1 })
	return s, c
}

func TestHeldBack(t *testing.T) {
	e := newFakeEngine()
	over := e.holdSets()
	s, c := heldClient(t, e)
	other := dial(t, c.RemoteAddr().String())
	other.send("GET a\r\n")
	other.expect("$-1\r\n")
	close(over)
	c.expect("+OK\r\n$1\r\n1\r\n")
	if n := s.Info().PausedClients; n != 0 {
		t.Errorf("%d are held back", n)
	}
}

func TestHeldBackAndDisconnected(t *testing.T) {
	e := newFakeEngine()
	e.holdSets()
	s, c := heldClient(t, e)
	s.Disconnect(func(*commands.Session) bool { return true })
	c.expectEnd()
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("carried out: %s, want %s", got, want)
	}
	if n := s.Info().PausedClients; n != 0 {
		t.Errorf("%d are held back", n)
	}
}

// A pause does not keep the server from stopping.
func TestHeldBackWhileStopping(t *testing.T) {
	e := newFakeEngine()
	e.holdSets()
	s, c := heldClient(t, e)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := s.Stop(ctx); err != nil {
		t.Error(err)
	}
	c.expectEnd()
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("carried out: %s, want %s", got, want)
	}
}

// A client that leaves is not kept until the pause is over, nor is its command carried out.
func TestHeldBackAndLeft(t *testing.T) {
	e := newFakeEngine()
	e.holdSets()
	s := newTestServer(t)
	s.timeouts.paused = time.Millisecond
	c := dial(t, s.run(t, e, nil))
	c.send("PING\r\nSET a 1\r\n")
	c.expect("+PONG\r\n")
	eventually(t, "the client is held back", func() bool { return s.Info().PausedClients == 1 })
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("carried out: %s, want %s", got, want)
	}
}
