package server

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/server/forward"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// testTimeout is how long a test waits for what should happen at once.
const testTimeout = drill.Patience

var eventually = drill.Await

// TestMain lets many tests run side by side: most of them wait. A limit that is asked for stays.
func TestMain(m *testing.M) {
	flag.Parse()
	if flag.Lookup("test.parallel").Value.String() == strconv.Itoa(runtime.GOMAXPROCS(0)) {
		_ = flag.Set("test.parallel", "16")
	}
	m.Run()
}

// fakeEngine is an executor with a few commands. A test may add others and decide about commits. Only SET
// needs a commit.
type fakeEngine struct {
	commands map[string]func(s *engine.Session, args []string) engine.Reply
	outcomes map[string]engine.Outcome
	wait     func(keyspace.LSN) error
	paused   func(args []string) <-chan struct{}
	slow     string // a command that a loop defers, and that needs a turn
	deadline time.Duration
	brief    func(keyspace.LSN) error // of CommitNow; nil: wait
	written  func(keyspace.LSN) error // of WaitWritten; nil: wait

	mu         sync.Mutex // protects what follows
	values     map[string]string
	lsn        keyspace.LSN
	ran        []string // the commands executed, in order
	waits      int
	prefetched int // calls of Prefetch
}

func newFakeEngine() *fakeEngine { return &fakeEngine{values: make(map[string]string)} }

func (e *fakeEngine) Now() int64 { return 1_000_000 }

func (e *fakeEngine) WorthPrefetching() bool { return true }

func (e *fakeEngine) Prefetch(*engine.Lookahead) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.prefetched++
}

func (e *fakeEngine) CloseSession(*engine.Session) {}

func (e *fakeEngine) Refusal(string, string, []string) string { return "" }

func (e *fakeEngine) CommitNow(lsn keyspace.LSN, _ time.Duration) error {
	if e.brief != nil {
		return e.brief(lsn)
	}
	return e.Wait(lsn, 0)
}

func (e *fakeEngine) WaitWritten(lsn keyspace.LSN, _ time.Duration) error {
	if e.written != nil {
		return e.written(lsn)
	}
	return e.Wait(lsn, 0)
}

func (e *fakeEngine) Leaders(*engine.Session) forward.Leaders { return nil }

func (e *fakeEngine) Deadline(time.Duration) time.Duration { return e.deadline }

func (e *fakeEngine) Wait(lsn keyspace.LSN, _ time.Duration) error {
	e.mu.Lock()
	e.waits++
	e.mu.Unlock()
	if e.wait != nil {
		return e.wait(lsn)
	}
	return nil
}

func (e *fakeEngine) Execute(s *engine.Session, args []string) engine.Outcome {
	name := strings.ToUpper(args[0])
	if e.paused != nil {
		if resume := e.paused(args); resume != nil {
			return engine.Outcome{Deferred: true, Resume: resume}
		}
	}
	if (s.OnLoop || s.Paced) && name == e.slow {
		return engine.Outcome{Deferred: true}
	}
	e.mu.Lock()
	e.ran = append(e.ran, strings.Clone(name))
	e.mu.Unlock()
	if f := e.commands[name]; f != nil {
		return engine.Outcome{Reply: f(s, args)}
	}
	if out, ok := e.outcomes[name]; ok {
		return out
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case name == "QUIT":
		return engine.Outcome{Reply: engine.OK, Close: true}
	case name == "SET" && len(args) == 3:
		e.lsn++
		e.values[strings.Clone(args[1])] = strings.Clone(args[2])
		return engine.Outcome{Reply: engine.OK, LSN: e.lsn, Changed: true}
	}
	return engine.Outcome{Reply: e.read(s, name, args)}
}

// read executes a command that changes no value. e.mu must be held.
func (e *fakeEngine) read(s *engine.Session, name string, args []string) engine.Reply {
	switch {
	case name == "PING":
		return engine.Status("PONG")
	case name == "ECHO" && len(args) == 2:
		return engine.Bulk(args[1])
	case name == "AUTH":
		s.Authenticated.Store(true)
		return engine.OK
	case name == "HELLO" && len(args) == 2:
		s.Proto, _ = strconv.Atoi(args[1])
		return engine.Map(engine.Bulk("proto"), engine.Integer(int64(s.Proto)))
	case name == "GET" && len(args) == 2:
		v, ok := e.values[args[1]]
		if !ok {
			return engine.Null
		}
		return engine.Bulk(v)
	}
	return engine.Fail(fmt.Errorf("unknown command '%s'", args[0]))
}

// waited is how often a commit was waited for.
func (e *fakeEngine) waited() int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.waits
}

func (e *fakeEngine) history() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return strings.Join(e.ran, " ")
}

// threadsVariable is an environment variable that sets io-threads of all test servers.
const threadsVariable = "TEST_IO_THREADS"

// newTestServer makes a server with options as on the command line.
func newTestServer(t testing.TB, options ...string) *Server {
	t.Helper()
	return newServerWith(t, func(*config.Settings) {}, options...)
}

// newServerWith makes a server with settings that no option can say.
func newServerWith(t testing.TB, change func(*config.Settings), options ...string) *Server {
	t.Helper()
	first := []string{"--dir", t.TempDir()}
	if n := os.Getenv(threadsVariable); n != "" {
		if slices.Contains(options, "--io-threads") {
			t.Skip("it is the same in all runs")
		}
		first = append(first, "--io-threads", n)
	}
	c, err := config.Load(append(first, options...))
	drill.Check(t, err)
	settings := *c.Settings()
	change(&settings)
	return New(config.New(&settings), zerolog.Nop())
}

// run makes a server serve on a free port of the loopback interface until the test ends. It returns the
// address.
func (s *Server) run(t testing.TB, e executor, secret *tls.Config) string {
	t.Helper()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	drill.Check(t, err)
	s.serve(e, map[net.Listener]*tls.Config{ln: secret})
	t.Cleanup(func() {
		if s.stopping.Load() {
			return // the test has stopped it
		}
		ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
		defer cancel()
		ctx = context.WithoutCancel(ctx)
		if err := s.Stop(ctx); err != nil {
			t.Errorf("stop: %v", err)
		}
	})
	return ln.Addr().String()
}

// client is a connection that a test drives byte by byte.
type client struct {
	net.Conn
	t testing.TB
	r *bufio.Reader
}

func dial(t testing.TB, address string) *client {
	t.Helper()
	nc, err := net.Dial("tcp", address)
	drill.Check(t, err)
	return newClient(t, nc)
}

func newClient(t testing.TB, nc net.Conn) *client {
	t.Cleanup(func() { _ = nc.Close() })
	must(t, nc.SetDeadline(time.Now().Add(testTimeout)))
	return &client{nc, t, bufio.NewReader(patient{nc})}
}

// patient has a deadline for each step of a test, however many there are.
type patient struct{ net.Conn }

func (p patient) Read(b []byte) (int, error) {
	_ = p.SetReadDeadline(time.Now().Add(testTimeout)) // what is wrong, Read says
	return p.Conn.Read(b)
}

// send writes text as it is.
func (c *client) send(text string) {
	c.t.Helper()
	_ = c.SetWriteDeadline(time.Now().Add(testTimeout))
	if _, err := c.Write([]byte(text)); err != nil {
		c.t.Fatalf("send: %v", err)
	}
}

// expect reads the bytes of want.
func (c *client) expect(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	n, err := io.ReadFull(c.r, got)
	if string(got) != want {
		c.t.Fatalf("got %.200q (%v), want %.200q", got[:n], err, want)
	}
}

// expectEnd expects the server to close the connection in order and to send nothing before.
func (c *client) expectEnd() {
	c.t.Helper()
	rest, err := io.ReadAll(c.r)
	if err != nil || len(rest) > 0 {
		c.t.Fatalf("instead of the end came %.200q, error %v", rest, err)
	}
}

// expectGone expects the server to end the connection, in order or not.
func (c *client) expectGone() {
	c.t.Helper()
	if _, err := io.ReadAll(c.r); errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Fatal("the connection is still there")
	}
}

// command renders a command as an array of bulk strings.
func command(args ...string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, arg := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return b.String()
}
