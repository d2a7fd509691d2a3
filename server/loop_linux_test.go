package server

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server/resp"
	"mayfly/test/drill"

	"golang.org/x/sys/unix"
)

// All other tests of this package serve their clients in a loop, the default. This one runs them again with a
// goroutine for every client, and with several loops, in their quick form or as drills. Those that choose a
// form, and those of the page, which has its own connections, are left out.
func TestOtherIOThreads(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	if os.Getenv(threadsVariable) != "" {
		t.Skip("only in the outermost run")
	}
	form := "-test.short"
	if drill.On() {
		form = "-drill"
	}
	for _, n := range []string{"0", "3"} {
		t.Run(n, func(t *testing.T) {
			t.Parallel()
			end, ok := t.Deadline()
			if !ok {
				end = time.Now().Add(time.Hour)
			}
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.skip=^TestPage", form, fmt.Sprint("-test.timeout=", time.Until(end)*9/10)) // so it says itself what does not end
			cmd.Env = append(os.Environ(), threadsVariable+"="+n)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// inLoops is the number of connections that are in loops.
func (s *Server) inLoops() (n int) {
	s.each(func(c *conn) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.fd != noFD {
			n++
		}
	})
	return n
}

// Commands that take long or wait make their connection leave the loop for good. Other commands do not.
func TestLeavingTheLoop(t *testing.T) {
	t.Parallel()
	s, address := realServer(t, "--io-threads", "1")
	big := strings.Repeat("x", 2*largeReply)
	for _, c := range []struct {
		stays   bool
		request string
	}{
		{true, command("PING")},
		{true, command("SET", "k", "v") + command("GET", "k") + command("DEL", "k")},
		{true, command("MGET", "a", "b", "c")},
		{true, command("MULTI") + command("SET", "k", "v") + command("EXEC")},
		{true, command("MULTI") + command("KEYS", "*") + command("DISCARD")},
		{true, command("PUBLISH", "c", "m")},
		{true, "nosuch\r\nSET\r\nget k\r\n"},
		{true, command("SET", "k", strings.Repeat("x", resp.MediumBuffer/2))},
		{false, command("SUBSCRIBE", "c")},
		{false, command("MULTI") + command("SSUBSCRIBE", "c") + command("EXEC")},
		{false, command("MONITOR")},
		{false, command("KEYS", "*")},
		{false, command("FLUSHALL")},
		{false, command("LCS", "a", "b")},
		{false, command("CLIENT", "LIST")},
		{false, command("MULTI") + command("DBSIZE") + command("EXEC")},
		{false, command("MULTI") + strings.Repeat(command("GET", "k"), 1000) + command("EXEC")},
		{false, command(append([]string{"MGET"}, strings.Fields(strings.Repeat("k ", 1000))...)...)},
		{false, command("SET", "k", big) + command("GET", "k")},
	} {
		client := dial(t, address)
		client.send(command("PING") + c.request)
		client.expect("+PONG\r\n")
		if c.stays {
			client.send(command("ECHO", "end"))
			client.expectLater("$3\r\nend\r\n")
			if s.inLoops() != 1 {
				t.Errorf("%.60q is not executed in the loop", c.request)
			}
		} else {
			eventually(t, fmt.Sprintf("%.60q leaves the loop", c.request), func() bool { return s.inLoops() == 0 })
		}
		_ = client.Close()
		eventually(t, "the connection ends", func() bool { return s.Info().Connected == 0 })
	}
}

// expectLater reads up to the end of a text.
func (c *client) expectLater(text string) {
	c.t.Helper()
	var got strings.Builder
	for !strings.HasSuffix(got.String(), text) {
		b, err := c.r.ReadByte()
		if err != nil {
			c.t.Fatalf("got %.200q (%v), not %q", got.String(), err, text)
		}
		got.WriteByte(b)
	}
}

// A pipeline gets the same replies from a loop and from a goroutine, however it is cut, and wherever in it
// the connection leaves its loop.
func TestLoopAndGoroutineAnswerAlike(t *testing.T) {
	t.Parallel()
	r := drill.Rand(t)
	requests := make([]string, drill.Pick(15, 40, 1000))
	for i := range requests {
		requests[i] = randomPipeline(r)
	}
	want := make([]string, len(requests))
	for _, threads := range []string{"0", "1", "2"} {
		_, address := realServer(t, "--io-threads", threads)
		for i, request := range requests {
			got := inPieces(t, r, address, request)
			if threads == "0" {
				want[i] = got
			} else if got != want[i] {
				t.Fatalf("with %s threads: %.3000q\nis answered with %.3000q\nnot with     %.3000q", threads, request, got, want[i])
			}
		}
	}
}

// randomPipeline is a pipeline that ends with QUIT and begins with an empty keyspace.
func randomPipeline(r *rand.Rand) string {
	var b strings.Builder
	b.WriteString(command("FLUSHALL"))
	key := func() string { return string(rune('a' + r.IntN(5))) }
	for range r.IntN(60) {
		switch r.IntN(40) {
		case 0:
			b.WriteString(command("SUBSCRIBE", key()) + command("PING") + command("GET", key()) + command("UNSUBSCRIBE"))
		case 1:
			b.WriteString(command("SET", key(), strings.Repeat(key(), 1+r.IntN(200_000))))
		case 2:
			b.WriteString(command("KEYS", "*"))
		case 3:
			b.WriteString(command("CLIENT", "REPLY", "SKIP"))
		case 4:
			b.WriteString(command("CLIENT", "REPLY", "OFF") + command("APPEND", key(), "unseen") + command("CLIENT", "REPLY", "ON"))
		case 5:
			b.WriteString(command("CLIENT", "PAUSE", "1", "WRITE"))
		case 6, 7, 8:
			b.WriteString(command("MULTI"))
			for range r.IntN(6) {
				b.WriteString(command("APPEND", key(), "x") + command("GET", key()))
			}
			b.WriteString(command([]string{"EXEC", "EXEC", "EXEC", "DISCARD"}[r.IntN(4)]))
		case 9:
			b.WriteString("get " + key() + "\r\n\r\nset '" + key() + "' \"a b\"\n")
		case 10:
			b.WriteString(command("nosuch", key()))
		case 11:
			b.WriteString(command("LCS", key(), "none"))
		case 12:
			b.WriteString(command("DBSIZE"))
		case 13:
			b.WriteString(command("WATCH", key()))
		case 14:
			b.WriteString(command("RESET"))
		case 15:
			b.WriteString(command("PUBLISH", key(), "m"))
		case 16, 17, 18, 19:
			b.WriteString(command("SET", key(), "v"))
		case 20, 21, 22:
			b.WriteString(command("MGET", key(), key(), key()))
		case 23, 24:
			b.WriteString(command("INCR", "n"))
		default:
			b.WriteString(command("GET", key()))
		}
	}
	b.WriteString(command("QUIT") + command("SET", "never", "done"))
	return b.String()
}

// inPieces sends a request cut at random places and returns the whole answer.
func inPieces(t *testing.T, r *rand.Rand, address, request string) string {
	c := dial(t, address)
	defer c.Close()
	seed := r.Uint64()
	go func() {
		r := rand.New(rand.NewPCG(seed, 1))
		for len(request) > 0 {
			n := 1 + r.IntN(min(len(request), 1<<r.IntN(18)))
			if _, err := c.Write([]byte(request[:n])); err != nil {
				return // what follows QUIT need not be read
			}
			request = request[n:]
			if r.IntN(8) == 0 {
				runtime.Gosched() // it may read a piece alone
			}
		}
	}()
	got, err := io.ReadAll(c.r)
	if err != nil {
		t.Fatalf("%.200q: %v", request, err)
	}
	return string(got)
}

// descriptors is how many files this process has open.
func descriptors(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	must(t, err)
	return len(list)
}

// Connections come and go in every way, some disconnected by others, and leave no descriptor behind.
func TestLoopLeavesNoDescriptors(t *testing.T) {
	clients, each := 8, drill.Pick(10, 40, 1000)
	seed := drill.Seed(t)
	s, address := realServer(t)
	first := dial(t, address) // once it is served, the loop has opened what it needs
	first.send("PING\r\nQUIT\r\n")
	first.expect("+PONG\r\n+OK\r\n")
	first.expectEnd()
	eventually(t, "the first connection ends", func() bool { return s.Info().Connected == 0 })
	before := descriptors(t)
	stop := make(chan struct{})
	var killer, all sync.WaitGroup
	killer.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
				s.Disconnect(func(x *engine.Session) bool { return int(x.ID)%7 == n%7 })
			}
		}
	})
	requests := []string{"", "PING\r\n", command("SET", "k", strings.Repeat("x", 100_000)), "GET k\r\n", "QUIT\r\n", "*x\r\n",
		"SUBSCRIBE a\r\n", "KEYS *\r\n", "*2\r\n$3\r\nGET", "CLIENT KILL TYPE normal\r\n", "MULTI\r\nSET k v\r\n", "POST /\r\n"}
	for i := range clients {
		all.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(i)))
			for range each {
				nc, err := net.Dial("tcp", address)
				if err != nil {
					t.Error(err)
					return
				}
				for range r.IntN(4) {
					_, _ = nc.Write([]byte(requests[r.IntN(len(requests))])) // it may have been disconnected
				}
				if r.IntN(2) == 0 {
					_ = nc.SetReadDeadline(time.Now().Add(time.Millisecond))
					_, _ = io.ReadAll(nc)
				}
				_ = nc.Close()
			}
		})
	}
	all.Wait()
	close(stop)
	killer.Wait()
	eventually(t, "all connections are accepted", func() bool { return s.Info().TotalConnections >= int64(clients*each) })
	eventually(t, "all connections end", func() bool { return s.Info().Connected == 0 })
	eventually(t, "all descriptors are closed", func() bool { return descriptors(t) <= before })
}

// Clients that do not take their replies, or stop in the middle of a command, do not delay others of their
// loop, and are disconnected.
func TestLoopIsNotDelayed(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--io-threads", "1")
	s.timeouts.write, s.timeouts.stall = 100*time.Millisecond, 100*time.Millisecond
	e := newFakeEngine()
	address := s.run(t, e, nil)
	other := dial(t, address)
	for range 10 {
		unread, slow := dial(t, address), dial(t, address)
		slow.send("*2\r\n$4\r\nECHO\r\n$10\r\nabc")
		go func() {
			echo := []byte(strings.Repeat(command("ECHO", strings.Repeat("x", 10_000)), 100))
			for {
				if _, err := unread.Write(echo); err != nil {
					return // it has been disconnected
				}
			}
		}()
	}
	for range 100 {
		other.send("PING\r\n")
		other.expect("+PONG\r\n")
	}
	eventually(t, "all are accepted", func() bool { return s.Info().TotalConnections == 21 })
	eventually(t, "the others are disconnected", func() bool { return s.Info().Connected == 1 })
	other.send("PING\r\n")
	other.expect("+PONG\r\n")
	if s.inLoops() != 1 {
		t.Error("the one that is left has left its loop")
	}
}

// All clients of a turn are answered after one commit.
func TestTurnCommitsOnce(t *testing.T) {
	t.Parallel()
	const clients = 20
	e := newFakeEngine()
	begun, proceed := make(chan struct{}), make(chan struct{})
	var once sync.Once
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"WAIT": func(*engine.Session, []string) engine.Reply {
			once.Do(func() {
				close(begun)
				<-proceed
			})
			return engine.OK
		},
	}
	s := newTestServer(t, "--io-threads", "1")
	address := s.run(t, e, nil)
	first := dial(t, address)
	var others [clients]*client
	for i := range others {
		others[i] = dial(t, address)
		others[i].send("PING\r\n")
		others[i].expect("+PONG\r\n")
	}
	first.send("WAIT\r\n")
	<-begun
	for _, c := range others {
		c.send(command("SET", "k", "v"))
	}
	eventually(t, "all that is sent has arrived", func() bool {
		n := 0
		s.each(func(c *conn) {
			if hasInput(c.fd, 0) { // the loop is busy
				n++
			}
		})
		return n == clients
	})
	close(proceed)
	for _, c := range others {
		c.expect("+OK\r\n")
	}
	if n := e.waited(); n != 1 {
		t.Errorf("waited %d times for %d clients", n, clients)
	}
}

// In a cluster a commit serves also the clients that send while the turn runs, if the turn is short.
func TestTurnGathers(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		deadline time.Duration
		want     int
	}{"single node": {0, 2}, "cluster": {time.Hour, 1}} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			e.deadline = tt.deadline
			var other *client
			e.commands = map[string]func(*engine.Session, []string) engine.Reply{
				"MEET": func(*engine.Session, []string) engine.Reply {
					other.send(command("SET", "b", "1"))
					return engine.OK
				},
			}
			address := newTestServer(t, "--io-threads", "1").run(t, e, nil)
			first := dial(t, address)
			other = dial(t, address)
			for _, c := range []*client{first, other} {
				c.send("PING\r\n")
				c.expect("+PONG\r\n")
			}
			var commits []int
			for range 100 {
				before := e.waited()
				first.send(command("SET", "a", "1") + command("MEET"))
				first.expect("+OK\r\n+OK\r\n")
				other.expect("+OK\r\n")
				n := e.waited() - before
				if n == tt.want && n == 1 {
					return // once is enough: a slow machine makes turns long
				}
				commits = append(commits, n)
			}
			if slices.ContainsFunc(commits, func(n int) bool { return n != tt.want }) {
				t.Errorf("the two clients had %v commits, not %d", commits, tt.want)
			}
		})
	}
}

// A commit of the cluster that takes long keeps only those waiting whose replies it covers. What a client has
// sent behind such a command is executed, and refused if the commit fails.
func TestLongCommitParks(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		brief, err error
		want       string
	}{"commits": {engine.ErrCommitting, nil, "+OK\r\n+PONG\r\n+OK\r\n"}, "fails": {engine.ErrCommitting, errors.New("no room"), "-MISCONF Errors writing to the journal: no room\r\n+PONG\r\n-MISCONF Errors writing to the journal: no room\r\n"},
		"fails at once": {errors.New("no room"), errors.New("no room"), "-MISCONF Errors writing to the journal: no room\r\n+PONG\r\n-MISCONF Errors writing to the journal: no room\r\n"}} {
		t.Run(name, func(t *testing.T) {
			e := newFakeEngine()
			e.deadline = time.Hour
			e.brief = func(keyspace.LSN) error { return tt.brief }
			ended := make(chan struct{})
			e.wait = func(keyspace.LSN) error {
				<-ended
				return tt.err
			}
			var other *client
			e.commands = map[string]func(*engine.Session, []string) engine.Reply{
				"MEET": func(*engine.Session, []string) engine.Reply {
					other.send("PING\r\n")
					return engine.OK
				},
			}
			address := newTestServer(t, "--io-threads", "1").run(t, e, nil)
			writers := []*client{dial(t, address), dial(t, address)}
			other = dial(t, address)
			for _, c := range append(writers, other) {
				c.send("PING\r\n")
				c.expect("+PONG\r\n")
			}
			for range 3 { // in the same turn as a write, and in later turns
				writers[0].send(command("MEET"))
				writers[0].expect("+OK\r\n")
				other.expect("+PONG\r\n")
			}
			for _, c := range writers {
				c.send(command("SET", "a", "1") + "PING\r\n" + command("SET", "a", "2"))
			}
			writers[0].send(command("MEET"))
			for range 3 {
				other.send("PING\r\n")
				other.expect("+PONG\r\n")
			}
			close(ended)
			for _, c := range writers {
				c.expect(tt.want)
			}
			other.expect("+PONG\r\n") // of MEET
			writers[0].expect("+OK\r\n")
			for _, c := range append(writers, other) {
				c.send("PING\r\n")
				c.expect("+PONG\r\n")
			}
		})
	}
}

// A loop serves ten thousand clients at a time, when drilled.
func TestManyClients(t *testing.T) {
	t.Parallel()
	clients := drill.Pick(200, 1000, 10_000)
	if most := fileLimit(1 << 20); most < 2*clients+1000 {
		clients = (most - 1000) / 2 // both ends are in this process
	}
	s := newTestServer(t)
	address := s.run(t, newFakeEngine(), nil)
	var list []net.Conn
	defer func() {
		for _, nc := range list {
			_ = nc.Close()
		}
	}()
	for range clients {
		nc, err := net.Dial("tcp", address)
		must(t, err)
		list = append(list, nc)
	}
	var wrong atomic.Int64
	var all sync.WaitGroup
	for part := range 50 {
		all.Go(func() {
			reply := make([]byte, len("+PONG\r\n"))
			for range 2 {
				for i := part; i < len(list); i += 50 {
					_, _ = list[i].Write([]byte("PING\r\n"))
				}
				for i := part; i < len(list); i += 50 {
					_ = list[i].SetReadDeadline(time.Now().Add(testTimeout))
					if _, err := io.ReadFull(list[i], reply); err != nil {
						wrong.Add(1)
					}
				}
			}
		})
	}
	all.Wait()
	if n := wrong.Load(); n > 0 {
		t.Errorf("%d of %d clients are not answered", n, 2*clients)
	}
	if n := s.Info().Connected; n != clients {
		t.Errorf("%d of %d clients are connected", n, clients)
	}
}

// After a client is disconnected while the loop is busy with another, commands that were not read yet do not
// run.
func TestDisconnectDropsUnread(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--io-threads", "1")
	e := newFakeEngine()
	busy, proceed := make(chan struct{}), make(chan struct{})
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"BUSY": func(*engine.Session, []string) engine.Reply {
			close(busy)
			<-proceed
			return engine.OK
		},
	}
	address := s.run(t, e, nil)
	other, c := dial(t, address), dial(t, address)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	other.send("BUSY\r\n")
	<-busy
	c.send("SET a 1\r\n")
	s.Disconnect(func(x *engine.Session) bool { return x.Addr == c.LocalAddr().String() })
	close(proceed)
	other.expect("+OK\r\n")
	c.expectEnd()
	if got, want := e.history(), "PING BUSY"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}

// A handLoop is a loop that a test turns by hand.
type handLoop struct {
	*loop
	t  *testing.T
	ln net.Listener
}

// newHandLoop makes the loop of a server whose engine is e.
func newHandLoop(t *testing.T, s *Server, e executor) handLoop {
	s.engine = e
	s.mostFiles.Store(100)
	l, err := newLoop(s)
	must(t, err)
	s.loops = []*loop{l}
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() {
		l.halt()
		l.handleWake()
		must(t, ln.Close())
	})
	return handLoop{l, t, ln}
}

// connect returns both ends of a connection in the loop.
func (l handLoop) connect() (*client, *conn) {
	c := dial(l.t, l.ln.Addr().String())
	nc, err := l.ln.Accept()
	must(l.t, err)
	l.server.admit(nc, false)
	l.handleWake()
	for _, served := range l.conns {
		if served != nil && served.session.ID == l.server.lastID {
			return c, served
		}
	}
	l.t.Fatal("the connection is not in the loop")
	return nil, nil
}

// sent waits until what the client has sent is there.
func (l handLoop) sent(c *conn) {
	if !hasInput(c.fd, testTimeout) {
		l.t.Fatal("nothing comes")
	}
}

// hasInput waits for a time at most until there is something to read.
func hasInput(fd int, wait time.Duration) bool {
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(wait.Milliseconds()))
	return err == nil && n == 1
}

// take makes the loop execute what a client has sent, without sending the replies.
func (l handLoop) take(c *conn) {
	l.sent(c)
	l.receive(c, unix.EPOLLIN)
	l.executeReady()
}

// The lookups of a turn's commands are prefetched together, for all clients.
func TestTurnPrefetches(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	l := newHandLoop(t, s, e)
	var clients []*client
	for range 3 {
		c, served := l.connect()
		c.send(command("GET", "a"))
		l.sent(served)
		l.receive(served, unix.EPOLLIN)
		clients = append(clients, c)
	}
	if e.history() != "" {
		t.Errorf("executed before all is read: %s", e.history())
	}
	l.executeReady()
	l.flush()
	for _, c := range clients {
		c.expect("$-1\r\n")
	}
	if e.prefetched != 1 {
		t.Errorf("prefetched in %d steps, want 1", e.prefetched)
	}
	long, served := l.connect()
	long.send(strings.Repeat(command("GET", "a"), 2*prefetchDepth+1))
	l.take(served)
	l.flush()
	long.expect(strings.Repeat("$-1\r\n", 2*prefetchDepth+1))
	if e.prefetched != 3 {
		t.Errorf("a long pipeline is prefetched in %d steps, want 2: one command needs no prefetch", e.prefetched-1)
	}
}

// After a client is disconnected by a command, nothing of it runs, not even what was read together with that
// command.
func TestDisconnectDropsRead(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	l := newHandLoop(t, s, e)
	killer, killing := l.connect()
	victim, dying := l.connect()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"KILL": func(*engine.Session, []string) engine.Reply {
			return engine.Count(s.Disconnect(func(x *engine.Session) bool { return x == dying.session }))
		},
	}
	killer.send(command("KILL"))
	victim.send(command("SET", "a", "1"))
	l.sent(killing)
	l.sent(dying)
	l.receive(killing, unix.EPOLLIN)
	l.receive(dying, unix.EPOLLIN)
	l.executeReady()
	l.flush()
	killer.expect(":1\r\n")
	victim.expectEnd()
	if got, want := e.history(), "KILL"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}

// A command that the loop defers does not run if its client is disconnected meanwhile.
func TestDisconnectDropsDeferred(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	e.slow = "SLOW"
	e.paused = func(args []string) <-chan struct{} { // the engine is asked before it defers the command
		s.Disconnect(func(*engine.Session) bool { return args[0] == "SLOW" })
		return nil
	}
	l := newHandLoop(t, s, e)
	c, served := l.connect()
	c.send(command("PING") + command("SLOW"))
	l.take(served)
	l.flush()
	eventually(t, "the connection ends", func() bool { return s.Info().Connected == 0 })
	if got, want := e.history(), "PING"; got != want {
		t.Errorf("executed: %s, want %s", got, want)
	}
}

// A panic while the keyspace waits for the disk is not contained: the state of the store is unknown.
func TestPanicInCommit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := newFakeEngine()
	e.wait = func(keyspace.LSN) error { panic("on purpose") }
	l := newHandLoop(t, s, e)
	c, served := l.connect()
	c.send(command("SET", "a", "1"))
	l.take(served)
	for name, commit := range map[string]func(){
		"at the end of a turn": l.flush,
		"within a command":     func() { served.contain(l.flush) },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: the panic is contained", name)
				}
			}()
			commit()
		}()
	}
	l.pipe.committing = false
	l.pipe.reset()
	l.spans = nil
}

// panickingEngine panics when the session of its victim is closed.
type panickingEngine struct {
	*fakeEngine
	victim *engine.Session
}

func (e *panickingEngine) CloseSession(s *engine.Session) {
	if s == e.victim {
		panic("on purpose")
	}
}

// If the loop panics while it sends the replies of a turn, only the connection it works for ends. All others
// get their replies, once. The test turns the loop by hand.
func TestNoReplyIsSentTwice(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := &panickingEngine{fakeEngine: newFakeEngine()}
	filler := strings.Repeat("x", largeReply/2)
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"FILL": func(*engine.Session, []string) engine.Reply { return engine.Bulk(filler) },
	}
	l := newHandLoop(t, s, e)
	early, earlyConn := l.connect()
	broken, brokenConn := l.connect()
	late, lateConn := l.connect()
	greedy, greedyConn := l.connect()
	e.victim = brokenConn.session
	for _, c := range []struct {
		*client
		*conn
	}{{early, earlyConn}, {broken, brokenConn}, {late, lateConn}} {
		c.client.send(command("PING"))
		l.take(c.conn)
	}
	must(t, broken.Conn.(*net.TCPConn).SetLinger(0)) // so that nothing can be sent to it any more
	must(t, broken.Close())
	l.sent(brokenConn)
	greedy.send(strings.Repeat(command("FILL"), 2*fullTurn/len(filler)))
	l.take(greedyConn) // has to send the replies of the turn in the middle of its pipeline
	l.flush()
	for _, c := range []struct {
		*client
		*conn
	}{{early, earlyConn}, {late, lateConn}} {
		c.client.send(command("ECHO", "end"))
		l.take(c.conn)
		l.flush()
		c.expect("+PONG\r\n$3\r\nend\r\n")
	}
	if n := l.clients.Load(); n != 3 || brokenConn.fd != noFD {
		t.Errorf("%d clients are left, want 3; the descriptor of the fourth is %d", n, brokenConn.fd)
	}
	if len(l.spans) != 0 || len(l.pipe.out) != 0 {
		t.Errorf("%d spans of %d bytes are left", len(l.spans), len(l.pipe.out))
	}
}

// A client with a long pipeline executes a part of it in a turn, then others have theirs.
func TestPipelinesTakeTurns(t *testing.T) {
	t.Parallel()
	const sent = 5 * turnCommands
	e := newFakeEngine()
	l := newHandLoop(t, newTestServer(t), e)
	long, longServed := l.connect()
	short, shortServed := l.connect()
	longServed.guard.SetReadAhead(resp.LargeBuffer)
	ran := func(name string) int { return strings.Count(e.history(), name) }
	received := 0
	go func() { _, _ = long.Write([]byte(strings.Repeat("ECHO 1\r\n", sent))) }()
	for parts := 0; received < sent; parts++ {
		rested := l.takeRested()
		if !longServed.rested {
			l.sent(longServed)
		}
		l.receive(longServed, unix.EPOLLIN) // nothing if it has left commands
		short.send("PING\r\n")
		l.sent(shortServed)
		l.receive(shortServed, unix.EPOLLIN)
		l.executeReady()
		l.resume(rested)
		l.flush()
		short.expect("+PONG\r\n")
		if got := ran("ECHO") - received; got > turnCommands {
			t.Fatalf("%d commands of a client ran in a turn", got)
		}
		if received = ran("ECHO"); ran("PING") != parts+1 {
			t.Fatal("the other client did not have its turn")
		}
	}
	long.expect(strings.Repeat("$1\r\n1\r\n", sent))
	l.resume(l.takeRested()) // the budget may have ended with the last command
	if longServed.rested || len(l.rested) > 0 {
		t.Error("something is left to execute")
	}
}

// What is left of a pipeline does not run after the client is gone.
func TestRestedPipelineEndsWithItsClient(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	l := newHandLoop(t, newTestServer(t), e)
	c, served := l.connect()
	served.guard.SetReadAhead(resp.LargeBuffer)
	must(t, c.Conn.(*net.TCPConn).SetLinger(0)) // Close resets the connection
	for !served.rested {
		c.send(strings.Repeat("PING\r\n", 2*turnCommands))
		l.take(served)
	}
	before := e.history()
	must(t, c.Close())
	eventually(t, "the reset arrives", func() bool { return hasReset(served.fd) })
	l.receive(served, unix.EPOLLHUP)
	l.resume(l.takeRested())
	if served.loop != nil || e.history() != before {
		t.Errorf("%d more commands ran", strings.Count(e.history(), "PING")-strings.Count(before, "PING"))
	}
	if len(l.ready)+len(l.rested) > 0 {
		t.Error("something is left to execute")
	}
}
