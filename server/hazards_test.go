package server

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/tidwall/redcon"
)

// harm is the effect of a hazard on an unguarded server.
type harm string

const (
	dies     harm = "dies"
	computes harm = "computes without end or use" // several times as long as a guarded one
	swells   harm = "takes memory without bound"  // more than muchMemory

	muchMemory   = 24 << 20
	littleMemory = 20 << 20 // of a guarded server; generous: the race detector doubles it
)

// pieces writes data in pieces of a size, each a packet of its own, until the victim closes the connection.
func pieces(nc net.Conn, data []byte, size int) {
	for len(data) > 0 {
		n := min(size, len(data))
		if _, err := nc.Write(data[:n]); err != nil {
			return
		}
		data = data[n:]
	}
}

// Every attack that ruins a server built on redcon alone leaves ours unharmed. A client can send each of
// these.
func TestHazards(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}})
	secret := &tls.Config{RootCAs: a.pool, ServerName: "127.0.0.1"}

	for _, h := range []struct {
		name   string
		harm   harm
		tls    bool
		attack func(v *victim, nc net.Conn)
	}{
		{name: "a length that overflows", harm: dies, attack: func(v *victim, nc net.Conn) {
			pieces(nc, []byte("*1\r\n$9223372036854775807\r\n"), 100)
		}},
		{name: "a count of 9e18", harm: computes, attack: func(v *victim, nc net.Conn) {
			pieces(nc, []byte("*9000000000000000000\r\n"), 100)
		}},
		{name: "a count of 1e9", harm: computes, attack: func(v *victim, nc net.Conn) {
			pieces(nc, []byte("*1000000000\r\n$1\r\nx\r\n"), 100)
		}},
		{name: "ordinary bulk load, cut by the packets", harm: swells, attack: func(v *victim, nc net.Conn) {
			// Each piece ends inside a command. Redcon starts anew in its buffer whenever it has caught up
			// between two.
			load := []byte(strings.Repeat(command("SET", "key", strings.Repeat("x", 10_000)), 30*100)) // 30 MB
			pieces(nc, load, 1<<20+1)
		}},
		{name: "a byte a TLS record", harm: dies, tls: true, attack: func(v *victim, nc net.Conn) {
			pieces(nc, bytes.Repeat([]byte{'x'}, 8_000), 1)
		}},
		{name: "an inline command of many words", harm: computes, attack: func(v *victim, nc net.Conn) {
			pieces(nc, append(bytes.Repeat([]byte("a "), 600_000), '\n'), 1<<20)
		}},
		{name: "a line without end", harm: swells, attack: func(v *victim, nc net.Conn) {
			line := bytes.Repeat([]byte{'x'}, 1<<20)
			for range 30 { // 30 MB
				if _, err := nc.Write(line); err != nil {
					return
				}
			}
		}},
		{name: "many arguments", harm: computes, attack: func(v *victim, nc net.Conn) {
			pieces(nc, []byte("*300000\r\n"+strings.Repeat("$1\r\nx\r\n", 299_000)), 1<<20)
			for range 800 {
				read := v.count("syscr:")
				pieces(nc, []byte("$1\r\nx\r\n"), 10)
				eventually(v.t, "it is read", func() bool { return v.count("syscr:") > read || !v.alive() })
			}
		}},
		{name: "a small pipeline of large replies that the client does not take", harm: swells, attack: func(v *victim, nc net.Conn) {
			pieces(nc, bytes.Repeat([]byte("BIG\r\n"), 50), 1<<20)
			_, _ = nc.Read(make([]byte, 1)) // it has begun
			eventually(v.t, "it waits", func() bool { return v.asleep() || !v.alive() })
		}},
		{name: "a panic in a handler", harm: dies, attack: func(v *victim, nc net.Conn) {
			pieces(nc, []byte("PANIC\r\n"), 100)
		}},
	} {
		certFile, keyFile, config := "", "", (*tls.Config)(nil)
		if h.tls {
			certFile, keyFile, config = a.file("server.crt"), a.file("server.key"), secret
		}
		attack := func(t *testing.T, v *victim) {
			nc, err := net.Dial("tcp", v.address)
			must(t, err)
			defer nc.Close()
			if config != nil {
				nc = tls.Client(nc, config)
			}
			must(t, nc.SetDeadline(time.Now().Add(testTimeout)))
			if h.name != "a small pipeline of large replies that the client does not take" {
				go func() { _, _ = io.Copy(io.Discard, nc) }()
			}
			h.attack(v, nc)
		}
		t.Run(h.name, func(t *testing.T) {
			v := startVictim(t, guarded, certFile, keyFile)
			memory, cpu := v.memory(), v.cpu()
			attack(t, v)
			if !v.answers(config) || !v.alive() {
				t.Error("it no longer answers")
			}
			memory, cpu = v.memory()-memory, v.cpu()-cpu
			t.Logf("guarded: cpu %v, %d MB", cpu, memory>>20)
			if memory > littleMemory {
				t.Errorf("it took %d MB", memory>>20)
			}

			naive := startVictim(t, unguarded, certFile, keyFile)
			before, spent := naive.memory(), naive.cpu() // its start took some, more on a busy machine
			go attack(t, naive)
			eventually(t, "unguarded it "+string(h.harm), func() bool {
				switch h.harm {
				case dies:
					return !naive.alive()
				case computes:
					return naive.cpu()-spent > 5*(cpu+tick)
				default:
					return naive.memory()-before > muchMemory
				}
			})
		})
	}
}

// redcon's parser panics on lengths that no guard has checked. FuzzGuard shows that the guard's output is
// safe.
func TestHazardParser(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("it no longer panics")
		}
	}()
	_, _, _, _, _ = redcon.ReadNextCommand([]byte("*1\r\n$9223372036854775807\r\n"), nil)
}

// redcon takes some input for a violation or a command that Redis does not.
func TestHazardDialect(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	naive := startVictim(t, unguarded, "", "")
	s := newTestServer(t)
	address := s.run(t, newFakeEngine(), nil)
	for _, c := range []struct{ in, naive, ours string }{
		{"*0\r\nPING\r\n", "-ERR Protocol error: invalid multibulk length\r\n", "+PONG\r\n"},
		{"*-1\r\nPING\r\n", "-ERR Protocol error: invalid multibulk length\r\n", "+PONG\r\n"},
		{"  \r\nPING\r\n", "+PONG\r\n", "+PONG\r\n"},
		{"PING\r\nPOST / HTTP/1.1\r\nHost: x\r\nPING\r\n", "+PONG\r\n-ERR unknown command\r\n-ERR unknown command\r\n+PONG\r\n", ""},
		{"PING\r\nHost: x\r\nPING\r\n", "+PONG\r\n-ERR unknown command\r\n+PONG\r\n", ""},
		{command("post", "x") + "PING\r\n", "-ERR unknown command\r\n+PONG\r\n", ""},
	} {
		if got := exchange(t, naive.address, c.in, len(c.naive)); got != c.naive {
			t.Errorf("redcon answers %q with %q, no longer with %q", c.in, got, c.naive)
		}
		if got := exchange(t, address, c.in, len(c.ours)); got != c.ours {
			t.Errorf("%q is answered with %q, want %q", c.in, got, c.ours)
		}
	}
}

// exchange sends text on a new connection and reads size bytes, or to the end if size is 0.
func exchange(t *testing.T, address, text string, size int) string {
	t.Helper()
	c := dial(t, address)
	defer c.Close()
	c.send(text)
	if size == 0 {
		got, _ := io.ReadAll(c.r) // may be reset
		return string(got)
	}
	got := make([]byte, size)
	n, _ := io.ReadFull(c.r, got)
	return string(got[:n])
}

// A pipeline that one read and one write can handle costs redcon three of each.
func TestHazardSystemCalls(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	const rounds, depth = 50, 16
	pipeline := strings.Repeat(command("SET", "key", strings.Repeat("x", 500)), depth)
	cost := func(kind string) (reads, writes float64) {
		v := startVictim(t, kind, "", "")
		c := dial(t, v.address)
		round := func() {
			c.send(pipeline)
			c.expect(strings.Repeat("+OK\r\n", depth))
		}
		round()
		count := func(name string) float64 { return float64(v.count(name)) }
		if count("syscr:") == 0 {
			t.Skip("the system does not count")
		}
		reads, writes = count("syscr:"), count("syscw:")
		for range rounds {
			round()
		}
		return (count("syscr:") - reads) / rounds, (count("syscw:") - writes) / rounds
	}
	// One read more finds out that there is nothing to read yet.
	reads, writes := cost(guarded)
	if t.Logf("ours: %.1f reads, %.1f writes a pipeline", reads, writes); reads > 2.5 || writes > 1.5 {
		t.Errorf("%.1f reads, %.1f writes a pipeline", reads, writes)
	}
	reads, writes = cost(unguarded)
	if t.Logf("redcon: %.1f reads, %.1f writes a pipeline", reads, writes); reads < 3 || writes < 2.5 {
		t.Errorf("redcon is better than it was: %.1f reads, %.1f writes a pipeline", reads, writes)
	}
}

// naiveServer serves with redcon alone in this process.
func naiveServer(t *testing.T, ln net.Listener, accept func(redcon.Conn) bool) *redcon.Server {
	s := redcon.NewServerNetwork("tcp", "", naiveHandler, accept, nil)
	go func() { _ = s.Serve(ln) }()
	t.Cleanup(func() { _ = s.Close() }) // it may have been closed by the test
	return s
}

// A TLS client that is refused before its handshake does not delay others.
func TestHazardTLSRefusal(t *testing.T) {
	t.Parallel()
	s, address, known := secureServer(t, "no")
	must(t, s.ConfigSet([][2]string{{"maxclients", "1"}}))

	first := dialTLS(t, address, known)
	first.send("PING\r\n")
	first.expect("+PONG\r\n")
	for range 3 {
		silent := dial(t, address) // never says hello
		silent.expectEnd()
	}
	if rejected := s.Info().Rejected; rejected != 3 {
		t.Errorf("%d rejected", rejected)
	}

	config, err := tlsConfig(s.Settings())
	must(t, err)
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	naiveServer(t, tls.NewListener(ln, config), func(c redcon.Conn) bool {
		c.WriteError("ERR max number of clients reached")
		return false
	})
	dial(t, ln.Addr().String()) // silent
	second := dialTLS(t, ln.Addr().String(), known)
	must(t, second.SetDeadline(time.Now().Add(200*time.Millisecond)))
	if err := second.Conn.(*tls.Conn).Handshake(); err == nil {
		t.Error("redcon is no longer held up by a silent client")
	}
}

// A client that never finishes its handshake is disconnected.
func TestHazardSilentHandshake(t *testing.T) {
	t.Parallel()
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{})
	s := newTestServer(t, "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"), "--tls-auth-clients", "no")
	s.timeouts.handshake = 20 * time.Millisecond
	config, err := tlsConfig(s.Settings())
	must(t, err)
	dial(t, s.run(t, newFakeEngine(), config)).expectEnd()
}

// Without free file descriptors every attempt to accept fails at once.
func TestHazardFileDescriptors(t *testing.T) {
	t.Parallel()
	ours := &exhausted{closed: make(chan struct{})}
	s := newTestServer(t)
	s.serve(newFakeEngine(), map[net.Listener]*tls.Config{ours: nil})
	theirs := &exhausted{closed: make(chan struct{})}
	naive := naiveServer(t, theirs, nil)
	eventually(t, "redcon tries a thousand times", func() bool { return theirs.accepts.Load() >= 1000 })
	eventually(t, "ours tries again", func() bool { return ours.accepts.Load() > 1 })
	tries := ours.accepts.Load()
	must(t, s.Stop(t.Context()))
	must(t, naive.Close())
	if tries > 100 { // ten in the first three seconds, then one a second
		t.Errorf("tried %d times", tries)
	}
}

// A connection that a command closes must not execute the rest of the pipeline. For our server see
// TestQuitDropsTheRest; for replies when it stops see TestStop.
func TestHazardClose(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	var sets atomic.Int64
	begun, release := make(chan struct{}), make(chan struct{})
	defer close(release)
	s := redcon.NewServerNetwork("tcp", "", func(c redcon.Conn, cmd redcon.Command) {
		switch strings.ToUpper(string(cmd.Args[0])) {
		case "QUIT":
			_ = c.Close()
		case "SET":
			sets.Add(1)
		case "SLOW":
			close(begun)
			<-release
			c.WriteString("done")
		}
	}, nil, nil)
	go func() { _ = s.Serve(ln) }()
	c := dial(t, ln.Addr().String())
	c.send("QUIT\r\nSET a 1\r\n")
	c.expectEnd()
	c = dial(t, ln.Addr().String())
	c.send("SLOW\r\n")
	<-begun
	must(t, s.Close())
	if _, err := c.r.ReadByte(); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("redcon no longer loses the replies of commands under way")
	}
	eventually(t, "redcon executes what follows a close", func() bool { return sets.Load() == 1 })
}

// A client that does not take its replies, or does not finish its command, is disconnected, although idle
// clients are not.
func TestHazardSlowClients(t *testing.T) {
	t.Parallel()
	t.Run("reader", func(t *testing.T) {
		s := newTestServer(t)
		s.timeouts.write = 50 * time.Millisecond
		e := newFakeEngine()
		e.commands = map[string]func(*engine.Session, []string) engine.Reply{
			"BIG": func(*engine.Session, []string) engine.Reply { return engine.Bulk(megabyte) },
		}
		dial(t, s.run(t, e, nil)).send(strings.Repeat("BIG\r\n", 100))
		eventually(t, "the client is served", func() bool { return s.Info().TotalConnections == 1 })
		eventually(t, "it is gone", func() bool { return s.Info().Connected == 0 })
	})
	t.Run("uploader", func(t *testing.T) {
		s := newTestServer(t)
		s.timeouts.stall = 50 * time.Millisecond
		address := s.run(t, newFakeEngine(), nil)
		idle, slow := dial(t, address), dial(t, address)
		idle.send("PING\r\n")
		idle.expect("+PONG\r\n")
		slow.send("*2\r\n$3\r\nGET\r\n$1000\r\n")
		stop := make(chan struct{})
		go func() { // now and then a byte does not help
			for {
				select {
				case <-stop:
					return
				case <-time.After(10 * time.Millisecond):
					_, _ = slow.Write([]byte{'x'}) // it is being disconnected
				}
			}
		}()
		_, err := io.ReadAll(slow.r) // reset or closed
		close(stop)
		if os.IsTimeout(err) {
			t.Error("it is still there")
		}
		idle.send("PING\r\n")
		idle.expect("+PONG\r\n")
	})
}
