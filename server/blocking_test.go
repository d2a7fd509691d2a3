package server

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// blockingServer is a server whose container c logs its deaths.
type blockingServer struct {
	*Server
	t       testing.TB
	engine  *engine.Engine
	address string
	secret  *tls.Config // of clients, nil if connections are plain
	deaths  int
}

// stream is the stream of the deaths in the container c.
const stream = "__keyevent@c__:expired"

// eachKind runs a test with connections in loops, and with TLS connections, which have goroutines of their
// own.
func eachKind(t *testing.T, test func(t *testing.T, s *blockingServer)) {
	t.Run("loop", func(t *testing.T) {
		t.Parallel()
		s := newTestServer(t)
		s.timeouts.paused = time.Millisecond
		e := realEngine(t, s)
		b := &blockingServer{Server: s, t: t, engine: e, address: s.run(t, runningEngine{e}, nil)}
		b.logDeaths()
		test(t, b)
	})
	t.Run("TLS", func(t *testing.T) {
		t.Parallel()
		var e *engine.Engine
		s, address, secret := secureServerWith(t, func(s *Server) executor {
			s.timeouts.paused = time.Millisecond
			e = realEngine(t, s)
			return runningEngine{e}
		}, "no")
		b := &blockingServer{Server: s, t: t, engine: e, address: address, secret: secret}
		b.logDeaths()
		test(t, b)
	})
}

// dial connects a client.
func (s *blockingServer) dial() *client {
	s.t.Helper()
	if s.secret != nil {
		return dialTLS(s.t, s.address, s.secret)
	}
	return dial(s.t, s.address)
}

// logDeaths makes the container c, whose deaths are logged.
func (s *blockingServer) logDeaths() {
	s.t.Helper()
	c := s.dial()
	c.send(command("CONTAINER.SET", "c", "TTL", "-1"))
	c.expect("+OK\r\n")
	var tx keyspace.Tx
	s.engine.Keyspace().BeginAll(&tx)
	err := tx.SetLog(tx.Container("c"), keyspace.LogSettings{Seconds: 1000, MaxLen: 1e6, Bodies: true})
	must(s.t, err)
	must(s.t, s.engine.Keyspace().Wait(tx.Close()))
	must(s.t, c.Close())
}

// die lets a key die and be buried.
func (s *blockingServer) die() {
	s.t.Helper()
	s.deaths++
	c := s.dial()
	c.send(command("SELECT", "c") + command("SET", fmt.Sprint("key", s.deaths), "v", "PX", "1"))
	c.expect("+OK\r\n+OK\r\n")
	eventually(s.t, "the key is buried", func() bool {
		s.engine.Keyspace().PurgeOnce()
		c.send(command("XLEN", stream))
		var n int
		_, err := fmt.Fscanf(c.r, ":%d\r\n", &n)
		must(s.t, err)
		return n == s.deaths
	})
	must(s.t, c.Close())
}

// waitBlocked waits until n clients wait.
func (s *blockingServer) waitBlocked(n int) {
	s.t.Helper()
	eventually(s.t, fmt.Sprint(n, " clients wait"), func() bool { return s.Info().PausedClients == n })
}

var entryShape = regexp.MustCompile(`^\*1\r\n\*2\r\n\$22\r\n` + stream + `\r\n\*1\r\n\*2\r\n\$\d+\r\n\d+-\d+\r\n\*14\r\n\$2\r\nid\r\n\$\d+\r\n(key\d+)\r\n`)

// expectEntry reads the reply of XREAD with one entry in RESP2, of the n-th death, up to its value.
func (c *client) expectEntry(n int) {
	c.t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), "$5\r\nvalue\r\n$1\r\nv\r\n") {
		line, err := c.r.ReadString('\n')
		if got.WriteString(line); err != nil {
			c.t.Fatalf("got %q, %v", got.String(), err)
		}
	}
	if m := entryShape.FindStringSubmatch(got.String()); m == nil || m[1] != fmt.Sprint("key", n) {
		c.t.Fatalf("got %q", got.String())
	}
}

// The replies of a pipeline keep their order around a command that waits, and what is behind it waits too.
func TestBlockInAPipeline(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *blockingServer) {
		c := s.dial()
		read := command("XREAD", "BLOCK", "0", "STREAMS", stream, "$")
		c.send(command("PING") + read + command("ECHO", "a") + read + command("ECHO", "b"))
		c.expect("+PONG\r\n")
		s.waitBlocked(1)
		s.die()
		c.expectEntry(1)
		c.expect("$1\r\na\r\n")
		s.waitBlocked(1)
		c.send(command("ECHO", "c"))
		s.die()
		c.expectEntry(2)
		c.expect("$1\r\nb\r\n$1\r\nc\r\n")
		s.waitBlocked(0)
		c.send(command("XREAD", "BLOCK", "1", "STREAMS", stream, "$") + command("MULTI") + read + command("EXEC"))
		c.expect("*-1\r\n+OK\r\n+QUEUED\r\n*1\r\n*-1\r\n")
		c.send(command("HELLO", "3"))
		c.expect("%7\r\n")
	})
}

// What ends a wait from outside.
func TestBlockEnds(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *blockingServer) {
		admin := s.dial()
		id := func(c *client) string {
			c.send(command("CLIENT", "ID"))
			var n int
			_, err := fmt.Fscanf(c.r, ":%d\r\n", &n)
			must(t, err)
			return fmt.Sprint(n)
		}
		for _, reason := range []string{"TIMEOUT", "ERROR", "KILL", "leaves", "leaves with a pipeline"} {
			c := s.dial()
			number := id(c)
			c.send(command("XREAD", "BLOCK", "0", "STREAMS", stream, "$"))
			s.waitBlocked(1)
			switch reason {
			case "TIMEOUT", "ERROR":
				admin.send(command("CLIENT", "UNBLOCK", number, reason))
				admin.expect(":1\r\n")
				c.expect(map[string]string{"TIMEOUT": "*-1\r\n", "ERROR": "-UNBLOCKED client unblocked via CLIENT UNBLOCK\r\n"}[reason])
				c.send(command("PING"))
				c.expect("+PONG\r\n")
			case "KILL":
				admin.send(command("CLIENT", "KILL", "ID", number))
				admin.expect(":1\r\n")
				if _, err := io.ReadAll(c.r); err != nil {
					t.Error(err)
				}
			case "leaves":
				must(t, c.Close())
			default:
				c.send(command("SET", "k", "v"))
				must(t, c.Close())
			}
			s.waitBlocked(0)
			_ = c.Close() // perhaps closed already
		}
		eventually(t, "the clients are gone", func() bool { return s.Info().Connected == 1 })
		admin.send(command("GET", "k"))
		admin.expect("$-1\r\n")
		s.die() // wakes no one
	})
}

// A server that stops does not wait for its clients.
func TestBlockAndStop(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *blockingServer) {
		c := s.dial()
		c.send(command("XREAD", "BLOCK", "0", "STREAMS", stream, "$"))
		s.waitBlocked(1)
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		must(t, s.Stop(ctx))
		c.expectEnd()
	})
}

// A subscriber in RESP3 receives its messages while a command of it waits.
func TestMessagesDuringBlock(t *testing.T) {
	t.Parallel()
	eachKind(t, func(t *testing.T, s *blockingServer) {
		c, other := s.dial(), s.dial()
		c.send(command("HELLO", "3") + command("SUBSCRIBE", "news") + command("XREAD", "BLOCK", "0", "STREAMS", stream, "$"))
		s.waitBlocked(1)
		other.send(command("PUBLISH", "news", "hi"))
		other.expect(":1\r\n")
		var got strings.Builder
		for !strings.HasSuffix(got.String(), "$4\r\nnews\r\n$2\r\nhi\r\n") {
			b, err := c.r.ReadByte()
			must(t, err)
			got.WriteByte(b)
		}
		s.die()
		c.expect("%1\r\n$22\r\n" + stream + "\r\n*1\r\n*2\r\n")
	})
}

// A death wakes many clients, each once, and none takes much memory while it waits.
func TestManyBlockedClients(t *testing.T) {
	clients := drill.Pick(50, 200, 1000)
	s := newTestServer(t)
	e := realEngine(t, s)
	b := &blockingServer{Server: s, t: t, engine: e, address: s.run(t, runningEngine{e}, nil)}
	b.logDeaths()
	memory := func() uint64 {
		runtime.GC()
		runtime.GC() // pools
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapInuse + m.StackInuse
	}
	before := memory()
	list := make([]*client, clients)
	for i := range list {
		list[i] = b.dial()
		list[i].r.Reset(list[i].Conn)
		list[i].send(command("ECHO", strings.Repeat("x", 10_000)) + command("XREAD", "BLOCK", "0", "STREAMS", stream, "$"))
		_, err := list[i].r.Discard(len("$10000\r\n") + 10_000 + 2)
		must(t, err)
	}
	b.waitBlocked(clients)
	if each := (memory() - before) / uint64(clients); each > 24<<10 {
		t.Errorf("a client that waits takes %d bytes", each)
	} else {
		t.Logf("a client that waits takes %d bytes, that of the test's own client included", each)
	}
	b.die()
	for _, c := range list {
		c.expectEntry(1)
	}
	b.waitBlocked(0)
}
