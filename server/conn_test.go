package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/server/config"
	"mayfly/test/drill"
)

func TestConversation(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	c := dial(t, s.run(t, newFakeEngine(), nil))
	c.send(command("PING"))
	c.expect("+PONG\r\n")
	c.send("SET a \"b c\"\r\nGET a\r\n\r\n*0\r\n" + command("GET", "none"))
	c.expect("+OK\r\n$3\r\nb c\r\n$-1\r\n")
	c.send(command("HELLO", "3") + command("GET", "none") + command("HELLO", "2") + command("GET", "none"))
	c.expect("%1\r\n$5\r\nproto\r\n:3\r\n_\r\n*2\r\n$5\r\nproto\r\n:2\r\n$-1\r\n")
	c.send("*1\r\n$4\r\nPI")
	c.send("NG\r\n")
	c.expect("+PONG\r\n")
	if in, out := s.Info().NetInput, s.Info().NetOutput; in == 0 || out == 0 {
		t.Errorf("counted %d bytes in and %d out", in, out)
	}
}

// A pipeline is committed once and costs one write.
func TestPipelineCommitsOnce(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	c := dial(t, newTestServer(t).run(t, e, nil))
	c.send(strings.Repeat(command("SET", "k", "v"), 100))
	c.expect(strings.Repeat("+OK\r\n", 100))
	if n := e.waited(); n != 1 {
		t.Errorf("waited %d times for a commit", n)
	}
}

func TestPipelineLongerThanAnyBuffer(t *testing.T) {
	t.Parallel()
	const n = 100_000
	c := dial(t, newTestServer(t).run(t, newFakeEngine(), nil))
	go c.send(strings.Repeat(command("ECHO", "0123456789"), n))
	for range n {
		c.expect("$10\r\n0123456789\r\n")
	}
}

// Replies to writes that are not committed become errors. The other replies of the pipeline stay.
func TestFailedCommit(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.wait = func(lsn keyspace.LSN) error {
		if lsn > 1 {
			return errors.New("no space left on device")
		}
		return nil
	}
	big := strings.Repeat("x", 2*largeReply)
	e.outcomes = map[string]engine.Outcome{"BIG": {Reply: engine.Bulk(big), LSN: 9}}
	const refused = "-MISCONF Errors writing to the journal: no space left on device\r\n"
	c := dial(t, newTestServer(t).run(t, e, nil))
	c.send(command("PING") + command("SET", "a", "1") + command("SET", "a", "2") + command("PING") + command("SET", "a", "3"))
	c.expect("+PONG\r\n+OK\r\n" + refused + "+PONG\r\n" + refused)
	c.send(command("PING") + command("BIG") + command("PING"))
	c.expect("+PONG\r\n" + refused + "+PONG\r\n")
}

// When a node of a cluster leads no more, changes that are committed are acknowledged, others have an unknown
// fate, and reads may be repeated.
func TestCommitOfADeposedLeader(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.deadline = time.Hour
	e.wait = func(keyspace.LSN) error { return replica.ErrNoMajority }
	e.written = func(lsn keyspace.LSN) error {
		if lsn > 2 {
			return replica.ErrNoMajority
		}
		return nil
	}
	big := strings.Repeat("x", 2*largeReply)
	e.outcomes = map[string]engine.Outcome{"READ": {Reply: engine.OK, LSN: 2}, "BIG": {Reply: engine.Bulk(big), LSN: 3, Changed: true}}
	c := dial(t, newTestServer(t).run(t, e, nil))
	c.send(command("SET", "a", "1") + command("READ") + command("SET", "a", "2") + command("SET", "a", "3") + command("READ") + command("BIG"))
	read := "-" + engine.CommitFailure(replica.ErrNoMajority, false).Error() + "\r\n"
	written := "-" + engine.CommitFailure(replica.ErrNoMajority, true).Error() + "\r\n"
	c.expect("+OK\r\n" + read + "+OK\r\n" + written + read + written)
}

func TestQuitDropsTheRest(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	c := dial(t, newTestServer(t).run(t, e, nil))
	c.send(command("PING") + command("QUIT") + command("SET", "a", "1") + "PING\r\n")
	c.expect("+PONG\r\n+OK\r\n")
	c.expectEnd()
	if got := e.history(); got != "PING QUIT" {
		t.Errorf("executed %s", got)
	}
}

// Commands before a violation of the protocol are answered, then the violation. Then the connection ends,
// even if the client goes on sending.
func TestProtocolError(t *testing.T) {
	t.Parallel()
	c := dial(t, newTestServer(t).run(t, newFakeEngine(), nil))
	c.send(command("PING") + "*1\r\n$-1\r\n" + strings.Repeat("x", 100_000))
	c.expect("+PONG\r\n-ERR Protocol error: invalid bulk length\r\n")
	c.expectEnd()
}

// A command that is half sent may be as long as client-query-buffer-limit, also when that changes.
func TestQueryBufferLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	address := s.run(t, newFakeEngine(), nil)
	long := command("PING", strings.Repeat("x", 600<<10), strings.Repeat("x", 600<<10))
	c := dial(t, address)
	c.send(long + command("PING"))
	c.expect("+PONG\r\n+PONG\r\n")
	must(t, s.ConfigSet([][2]string{{"client-query-buffer-limit", "1mb"}}))
	c.send(command("PING", strings.Repeat("x", 900<<10)))
	c.expect("+PONG\r\n")
	c.send(long[:700<<10]) // the second argument is announced only
	c.expect("-ERR Protocol error: too big command\r\n")
	c.expectEnd()
}

func TestUnauthenticatedLimits(t *testing.T) {
	t.Parallel()
	address := newTestServer(t, "--requirepass", "secret").run(t, newFakeEngine(), nil)
	many := command("ECHO", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10")
	c := dial(t, address)
	c.send(many)
	c.expect("-ERR Protocol error: unauthenticated multibulk length\r\n")
	c.expectEnd()
	c = dial(t, address)
	c.send("*2\r\n$4\r\nECHO\r\n$16385\r\n")
	c.expect("-ERR Protocol error: unauthenticated bulk length\r\n")
	c.expectEnd()
	// The limits are lifted for what follows AUTH in the same packet.
	c = dial(t, address)
	c.send(command("AUTH", "secret") + many)
	c.expect("+OK\r\n-ERR unknown command 'ECHO'\r\n")
}

func TestLargeReplies(t *testing.T) {
	t.Parallel()
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"BIG": func(*engine.Session, []string) engine.Reply {
			return engine.Map(engine.Bulk("text"), engine.Verbatim(value), engine.Bulk("list"),
				engine.Array(engine.Bulk(value), engine.Integer(1), engine.Null))
		},
		"LONG": func(*engine.Session, []string) engine.Reply {
			list := make([]engine.Reply, 100_000)
			for i := range list {
				list[i] = engine.Integer(7)
			}
			return engine.Array(list...)
		},
	}
	c := dial(t, newTestServer(t).run(t, e, nil))
	bulk := fmt.Sprintf("$%d\r\n%s\r\n", len(value), value)
	go c.send("PING\r\nBIG\r\nPING\r\nLONG\r\nHELLO 3\r\nBIG\r\n")
	c.expect("+PONG\r\n*4\r\n$4\r\ntext\r\n" + bulk + "$4\r\nlist\r\n*3\r\n" + bulk + ":1\r\n$-1\r\n+PONG\r\n")
	c.expect("*100000\r\n" + strings.Repeat(":7\r\n", 100_000))
	c.expect("%1\r\n$5\r\nproto\r\n:3\r\n")
	c.expect(fmt.Sprintf("%%2\r\n$4\r\ntext\r\n=%d\r\ntxt:%s\r\n$4\r\nlist\r\n*3\r\n%s:1\r\n_\r\n", len(value)+4, value, bulk))
}

// A client that is idle for too long is disconnected, before its first command and after it.
func TestIdleClientsAreDisconnected(t *testing.T) {
	t.Parallel()
	s := newServerWith(t, func(s *config.Settings) { s.Timeout = 20 * time.Millisecond })
	address := s.run(t, newFakeEngine(), nil)
	dial(t, address).expectEnd()
	eventually(t, "a client is served before it is idle for too long", func() bool {
		return answer(t, address, "PING\r\n") == "+PONG\r\n"
	})
}

// A new timeout applies also to clients that are idle when it is set.
func TestNewTimeoutOfIdleClients(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	c := dial(t, s.run(t, newFakeEngine(), nil))
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	must(t, s.ConfigSet([][2]string{{"timeout", "1"}}))
	c.expectEnd()
}

// Stop lets a running command finish and its reply leave, drops commands that have not begun, and closes idle
// connections at once.
func TestStop(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.slow = "SLOW"
	running, finish := make(chan struct{}), make(chan struct{})
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"SLOW": func(*engine.Session, []string) engine.Reply {
			close(running)
			<-finish
			return engine.Status("done")
		},
	}
	s := newTestServer(t)
	address := s.run(t, e, nil)
	idle, busy := dial(t, address), dial(t, address)
	idle.send("PING\r\n*1\r\n$4")
	idle.expect("+PONG\r\n")
	busy.send("PING\r\nSLOW\r\nPING\r\n")
	<-running
	stopped := make(chan error)
	go func() { stopped <- s.Stop(context.Background()) }()
	idle.expectEnd()
	select {
	case <-stopped:
		t.Fatal("stopped while a command was running")
	default:
	}
	close(finish)
	busy.expect("+PONG\r\n+done\r\n")
	busy.expectEnd()
	_ = busy.Close()
	drill.Report(t, <-stopped)
	if left := s.Info().Connected; left != 0 {
		t.Errorf("%d connections are left", left)
	}
}

// A client that does not take its replies delays the stop no longer than the context allows.
func TestStopDisconnects(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	value := strings.Repeat("x", 64<<20)
	running := make(chan struct{})
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"BIG": func(*engine.Session, []string) engine.Reply {
			close(running)
			return engine.Bulk(value)
		},
	}
	s := newTestServer(t)
	dial(t, s.run(t, e, nil)).send("BIG\r\n")
	<-running
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Stop(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	s.serving.Wait()
}

// A panic in the server costs one connection, not the process.
func TestPanicCostsOneConnection(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"PANIC": func(*engine.Session, []string) engine.Reply { panic("on purpose") },
	}
	address := newTestServer(t).run(t, e, nil)
	c := dial(t, address)
	c.send("PANIC\r\n")
	c.expectEnd()
	c = dial(t, address)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
}
