package server

import (
	"fmt"
	"net"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/server/config"
)

// gatedServer makes a server with a password that gives clients some time for it.
func gatedServer(t testing.TB, timeout time.Duration, options ...string) *Server {
	t.Helper()
	return newServerWith(t, func(s *config.Settings) { s.AuthTimeout = timeout }, append([]string{"--requirepass", "secret"}, options...)...)
}

// A client that does not give the password in time is disconnected, whatever it sends. Others stay.
func TestAuthTimeout(t *testing.T) {
	t.Parallel()
	for _, threads := range []string{"1", "0"} {
		t.Run("io-threads "+threads, func(t *testing.T) {
			t.Parallel()
			s := gatedServer(t, 50*time.Millisecond, "--io-threads", threads)
			address := s.run(t, newFakeEngine(), nil)
			var known *client
			eventually(t, "a client gives the password in time", func() bool {
				known = dial(t, address)
				_, _ = known.Write([]byte("AUTH secret\r\n")) // it may be too late
				reply, _ := known.r.ReadString('\n')
				return reply == "+OK\r\n"
			})
			silent, half, busy := dial(t, address), dial(t, address), dial(t, address)
			_, _ = half.Write([]byte("*2\r\n$4\r\nAU")) // likewise
			for {                                       // each reply comes before the next command
				if _, err := busy.Write([]byte("*0\r\nECHO x\r\n")); err != nil {
					break
				}
				if _, err := busy.r.ReadString('x'); err != nil {
					break
				}
			}
			silent.expectEnd()
			half.expectGone()
			eventually(t, "one client is left", func() bool { return s.Info().Connected == 1 })
			dial(t, address).expectEnd() // it came later: no deadline of known is left
			known.send("PING\r\n")
			known.expect("+PONG\r\n")
		})
	}
}

// The time counts for those connected when CONFIG SET shortens it, and anew after RESET.
func TestAuthTimeoutChanges(t *testing.T) {
	t.Parallel()
	s := gatedServer(t, 0)
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"RESET": func(s *engine.Session, _ []string) engine.Reply {
			s.Authenticated.Store(false)
			return engine.Status("RESET")
		},
	}
	address := s.run(t, e, nil)
	silent, back := dial(t, address), dial(t, address)
	back.send("AUTH secret\r\nRESET\r\nPING\r\n")
	back.expect("+OK\r\n+RESET\r\n+PONG\r\n")
	must(t, s.ConfigSet([][2]string{{"auth-timeout", "1"}}))
	silent.expectEnd()
	back.expectEnd()
}

// A new auth-timeout ends with the password, also for a client that a goroutine of its own waits for.
func TestAuthTimeoutEndsWithPassword(t *testing.T) {
	t.Parallel()
	s := gatedServer(t, 0, "--io-threads", "0")
	address := s.run(t, newFakeEngine(), nil)
	c := dial(t, address)
	c.send("PING\r\n")
	c.expect("+PONG\r\n") // from here on it waits, without having given the password
	must(t, s.ConfigSet([][2]string{{"auth-timeout", "1"}}))
	c.send("AUTH secret\r\n")
	c.expect("+OK\r\n")
	for range 2 { // clients that came later
		dial(t, address).expectEnd()
	}
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
}

// Without a password there is nothing to wait for. That is so for clients that connected before there was
// one, too.
func TestAuthTimeoutNeedsPassword(t *testing.T) {
	t.Parallel()
	s := gatedServer(t, time.Millisecond)
	must(t, s.set("requirepass", ""))
	address := s.run(t, newFakeEngine(), nil)
	early := dial(t, address)
	early.send("PING\r\n")
	early.expect("+PONG\r\n")
	must(t, s.set("requirepass", "secret"))
	dial(t, address).expectEnd() // its time has passed, and that of early would have
	early.send("PING\r\n")
	early.expect("+PONG\r\n")
}

// Clients without password do not keep out others: the oldest of them makes room. Those with the password
// stay.
func TestUnauthenticatedMakeRoom(t *testing.T) {
	t.Parallel()
	const places = 20
	s := gatedServer(t, time.Hour, "--maxclients", fmt.Sprint(places))
	address := s.run(t, newFakeEngine(), nil)
	join := func() *client {
		t.Helper()
		c := dial(t, address)
		c.send("AUTH secret\r\n")
		c.expect("+OK\r\n")
		return c
	}
	known := []*client{join()}
	var unknown []*client
	for range places - 1 {
		c := dial(t, address)
		c.send("*0\r\nECHO x\r\n") // it is there
		c.expect("$1\r\nx\r\n")
		unknown = append(unknown, c)
	}
	for i := range places - 1 {
		known = append(known, join())
		unknown[i].expectEnd()
	}
	eventually(t, "all have gone", func() bool { return s.Info().Connected == places })
	for _, c := range known {
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
	}
	c := dial(t, address)
	c.expect("-ERR max number of clients reached\r\n")
	c.expectEnd()
	if n := s.waiting.order.Len() + s.waiting.leaving; n != 0 {
		t.Errorf("%d clients are remembered", n)
	}
}

// Some places are only for clients from this machine.
func TestReservedClients(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--maxclients", "5", "--reserved-clients", "2", "--protected-mode", "no")
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	local := s.run(t, newFakeEngine(), nil)
	s.acceptors.Go(func() { s.accept(foreigners{ln}, false) })
	t.Cleanup(func() { _ = ln.Close() })
	var clients []*client
	connect := func(address string, admitted bool) {
		t.Helper()
		c := dial(t, address)
		if !admitted {
			c.expect("-ERR max number of clients reached\r\n")
			return
		}
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		clients = append(clients, c)
	}
	for range 3 {
		connect(ln.Addr().String(), true)
	}
	connect(ln.Addr().String(), false)
	connect(local, true)
	connect(local, true)
	connect(local, false)
	_ = clients[4].Close()
	eventually(t, "it has gone", func() bool { return s.Info().Connected == 4 })
	connect(ln.Addr().String(), false)
	connect(local, true)
	must(t, ln.Close())
}
