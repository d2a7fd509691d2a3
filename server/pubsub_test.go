package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/server/config"
	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

// realServer makes a server that serves an engine with a keyspace of its own until the test ends.
func realServer(t testing.TB, options ...string) (s *Server, address string) {
	t.Helper()
	s = newTestServer(t, options...)
	return s, s.run(t, runningEngine{realEngine(t, s)}, nil)
}

// realEngine returns an engine with a keyspace of its own, for a server.
func realEngine(t testing.TB, s *Server) *engine.Engine {
	t.Helper()
	e := &engine.Engine{Host: s, Log: zerolog.Nop()}
	ks, err := keyspace.Open(keyspace.Options{Dir: s.Settings().Dir, Partitions: 4, OnDeath: e.Broker.OnDeath, DeathsHeard: e.Broker.DeathsHeard, OnLogged: e.Waiters.Signal, OnTold: e.Broker.OnTold, Caches: e.Broker.Caches})
	drill.Check(t, err)
	t.Cleanup(func() {
		drill.Report(t, ks.Close())
	})
	e.SetKeyspace(ks)
	e.Broker.SetEventClasses(s.Settings().NotifyKeyspaceEvents)
	s.OnChange("notify-keyspace-events", func(now *config.Settings) error {
		e.Broker.SetEventClasses(now.NotifyKeyspaceEvents)
		return nil
	})
	return e
}

// conversations are what clients send, by number, and what each of them receives, byte for byte.
var conversations = map[string][]struct {
	client int
	lines  string         // inline commands
	gets   map[int]string // what arrives; nothing arrives at others
}{
	"RESP2": {
		{1, "SUBSCRIBE a b", map[int]string{1: "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n"}},
		{1, "PSUBSCRIBE a*", map[int]string{1: "*3\r\n$10\r\npsubscribe\r\n$2\r\na*\r\n:3\r\n"}},
		{1, "SSUBSCRIBE s", map[int]string{1: "*3\r\n$10\r\nssubscribe\r\n$1\r\ns\r\n:1\r\n"}},
		{1, "PING\nPING x", map[int]string{1: "*2\r\n$4\r\npong\r\n$0\r\n\r\n*2\r\n$4\r\npong\r\n$1\r\nx\r\n"}},
		{1, "GET k\nCONFIG GET x\nHELLO 3", map[int]string{1: refused("get") + refused("config|get") + refused("hello")}},
		{2, "PUBLISH a hi\nSPUBLISH s yo", map[int]string{
			1: "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$2\r\nhi\r\n*4\r\n$8\r\npmessage\r\n$2\r\na*\r\n$1\r\na\r\n$2\r\nhi\r\n*3\r\n$8\r\nsmessage\r\n$1\r\ns\r\n$2\r\nyo\r\n",
			2: ":2\r\n:1\r\n",
		}},
		{2, "PUBSUB NUMSUB a x", map[int]string{2: "*4\r\n$1\r\na\r\n:1\r\n$1\r\nx\r\n:0\r\n"}},
		{1, "UNSUBSCRIBE b\nPUNSUBSCRIBE\nUNSUBSCRIBE", map[int]string{1: "*3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:2\r\n" +
			"*3\r\n$12\r\npunsubscribe\r\n$2\r\na*\r\n:1\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\na\r\n:0\r\n"}},
		{1, "UNSUBSCRIBE\nSUNSUBSCRIBE\nSUNSUBSCRIBE\nPING", map[int]string{1: "*3\r\n$11\r\nunsubscribe\r\n$-1\r\n:0\r\n" +
			"*3\r\n$12\r\nsunsubscribe\r\n$1\r\ns\r\n:0\r\n*3\r\n$12\r\nsunsubscribe\r\n$-1\r\n:0\r\n+PONG\r\n"}},
		{1, "SET k 1\nSUBSCRIBE c\nSET k 1\nRESET\nGET k", map[int]string{1: "+OK\r\n*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n" +
			refused("set") + "+RESET\r\n$1\r\n1\r\n"}},
		{2, "PUBLISH c x", map[int]string{2: ":0\r\n"}},
		{1, "CLIENT REPLY OFF\nPING\nSUBSCRIBE d", map[int]string{1: "*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:1\r\n"}},
		{2, "PUBLISH d x", map[int]string{1: "*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$1\r\nx\r\n", 2: ":1\r\n"}},
		{1, "PING\nGET k\nRESET\nQUIT", map[int]string{1: "+RESET\r\n+OK\r\n"}},
	},
	"RESP3": {
		{1, "HELLO 3 SETNAME", map[int]string{1: "-ERR Syntax error in HELLO option 'SETNAME'\r\n"}},
		{1, "CLIENT REPLY SKIP\nHELLO 3\nSUBSCRIBE a", map[int]string{1: ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n"}},
		{1, "PUBLISH a self\nPING\nPUBLISH a again\nGET none", map[int]string{1: ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$4\r\nself\r\n:1\r\n+PONG\r\n" +
			">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$5\r\nagain\r\n:1\r\n_\r\n"}},
		{1, "CONFIG SET notify-keyspace-events KA\nSUBSCRIBE __keyspace@0__:k\nSET k v\nPING\nDEL k", map[int]string{
			1: "+OK\r\n>3\r\n$9\r\nsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:2\r\n" +
				">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\nset\r\n+OK\r\n+PONG\r\n" +
				">3\r\n$7\r\nmessage\r\n$16\r\n__keyspace@0__:k\r\n$3\r\ndel\r\n:1\r\n"}},
		{1, "UNSUBSCRIBE __keyspace@0__:k", map[int]string{1: ">3\r\n$11\r\nunsubscribe\r\n$16\r\n__keyspace@0__:k\r\n:1\r\n"}},
		{1, "CLIENT REPLY OFF\nPING\nSUBSCRIBE b\nPING\nUNSUBSCRIBE b\nGET k", map[int]string{
			1: ">3\r\n$9\r\nsubscribe\r\n$1\r\nb\r\n:2\r\n>3\r\n$11\r\nunsubscribe\r\n$1\r\nb\r\n:1\r\n"}},
		{2, "PUBLISH a x", map[int]string{1: ">3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n", 2: ":1\r\n"}},
		{1, "NOSUCH\nCLIENT REPLY NOSUCH\nCLIENT REPLY ON\nCLIENT REPLY SKIP\nPING 1\nPING 2", map[int]string{1: "+OK\r\n$1\r\n2\r\n"}},
		{1, "CLIENT REPLY SKIP\nCLIENT REPLY SKIP\nPING 3\nPING 4\nCLIENT REPLY SKIP\nCLIENT REPLY ON", map[int]string{1: "$1\r\n4\r\n+OK\r\n"}},
		{1, "CLIENT REPLY OFF\nCLIENT REPLY SKIP\nPING\nRESET\nPING", map[int]string{1: "+RESET\r\n+PONG\r\n"}},
		{1, "CLIENT REPLY SKIP\nRESET\nPING", map[int]string{1: "+PONG\r\n"}},
		{1, "CLIENT REPLY SKIP\nHELLO 3\nSUBSCRIBE a\nCLIENT REPLY SKIP\nHELLO 2\nPING", map[int]string{
			1: ">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n*2\r\n$4\r\npong\r\n$0\r\n\r\n"}},
		{2, "PUBLISH a x", map[int]string{1: "*3\r\n$7\r\nmessage\r\n$1\r\na\r\n$1\r\nx\r\n", 2: ":1\r\n"}},
		{1, "PING\nQUIT\nPING", map[int]string{1: "*2\r\n$4\r\npong\r\n$0\r\n\r\n+OK\r\n"}},
	},
	// A message comes after the reply that has read its key, and after that of the own change.
	"caches": {
		{1, "CLIENT REPLY SKIP\nHELLO 3\nCLIENT TRACKING ON\nSET k 1\nGET k\nSET k 2\nGET k\nPING", map[int]string{
			1: "+OK\r\n+OK\r\n$1\r\n1\r\n+OK\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n$1\r\n2\r\n+PONG\r\n"}},
		{2, "SET k 3", map[int]string{1: ">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n", 2: "+OK\r\n"}},
		{1, "MGET k a b\nMULTI\nSET a 1\nGET b\nDEL k\nEXEC\nGET k", map[int]string{
			1: "*3\r\n$1\r\n3\r\n_\r\n_\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n+OK\r\n_\r\n:1\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n>2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\nk\r\n_\r\n"}},
		{2, "FLUSHALL", map[int]string{1: ">2\r\n$10\r\ninvalidate\r\n_\r\n", 2: "+OK\r\n"}},
		{1, "CLIENT TRACKING OFF\nCLIENT TRACKING ON BCAST PREFIX a PREFIX b NOLOOP\nSET a 1", map[int]string{1: "+OK\r\n+OK\r\n+OK\r\n"}},
		{2, "MSET a1 1 c 1", map[int]string{1: ">2\r\n$10\r\ninvalidate\r\n*1\r\n$2\r\na1\r\n", 2: "+OK\r\n"}},
		{1, "CLIENT TRACKING OFF\nSET a 1\nRESET\nQUIT", map[int]string{1: "+OK\r\n+OK\r\n+RESET\r\n+OK\r\n"}},
	},
	// No client sees a disconnected one any more, not even in the same pipeline.
	"killed": {
		{1, "SUBSCRIBE a\nPSUBSCRIBE b*\nSSUBSCRIBE c", map[int]string{1: "*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n" +
			"*3\r\n$10\r\npsubscribe\r\n$2\r\nb*\r\n:2\r\n*3\r\n$10\r\nssubscribe\r\n$1\r\nc\r\n:1\r\n"}},
		{2, "PUBSUB NUMSUB a\nPUBSUB NUMPAT\nPUBSUB SHARDNUMSUB c", map[int]string{2: "*2\r\n$1\r\na\r\n:1\r\n:1\r\n*2\r\n$1\r\nc\r\n:1\r\n"}},
		{2, "CLIENT KILL TYPE pubsub\nCLIENT KILL TYPE pubsub\nPUBSUB NUMSUB a\nPUBSUB NUMPAT\nPUBSUB CHANNELS\nPUBSUB SHARDCHANNELS\n" +
			"PUBLISH a x\nPUBLISH bb x\nSPUBLISH c x\nCLIENT LIST TYPE pubsub", map[int]string{
			2: ":1\r\n:0\r\n*2\r\n$1\r\na\r\n:0\r\n:0\r\n*0\r\n*0\r\n:0\r\n:0\r\n:0\r\n$0\r\n\r\n"}},
	},
}

func refused(command string) string {
	return "-ERR Can't execute '" + command + "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context\r\n"
}

// Subscribers receive what Redis sends them.
func TestConversations(t *testing.T) {
	t.Parallel()
	for name, steps := range conversations {
		for server, start := range map[string]func(t *testing.T) (address string){
			"mayfly": func(t *testing.T) string { _, address := realServer(t); return address },
			"Redis":  startRedis,
		} {
			t.Run(name+"/"+server, func(t *testing.T) {
				t.Parallel()
				address := start(t)
				clients := map[int]*client{1: dial(t, address), 2: dial(t, address)}
				for _, step := range steps {
					clients[step.client].send(strings.ReplaceAll(step.lines, "\n", "\r\n") + "\r\n")
					for n, want := range step.gets {
						clients[n].expect(want)
					}
				}
				clients[1].expectEnd()
				clients[2].send("QUIT\r\n")
				clients[2].expect("+OK\r\n")
				clients[2].expectEnd()
			})
		}
	}
}

// A thousand subscribers when drilled, of both protocols, on channels and patterns, get every message in the
// order of publication. Nothing is left of them when they are gone.
func TestThousandSubscribers(t *testing.T) {
	subscribers, messages := drill.Pick(50, 200, 1000), drill.Pick(10, 20, 50)
	before := runtime.NumGoroutine()
	s, address := realServer(t)
	var all sync.WaitGroup
	var ready sync.WaitGroup
	ready.Add(subscribers)
	var failed atomic.Int64
	for i := range subscribers {
		all.Go(func() {
			nc, err := net.Dial("tcp", address)
			if err != nil {
				t.Error(err)
				ready.Done()
				return
			}
			defer nc.Close()
			c := newClient(t, nc)
			want := "*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n"
			switch i % 3 {
			case 0:
				c.send("SUBSCRIBE news\r\n")
				c.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
			case 1:
				c.send("CLIENT REPLY SKIP\r\nHELLO 3\r\nSUBSCRIBE news\r\n")
				c.expect(">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
				want = ">3" + want[len("*3"):]
			case 2:
				c.send("PSUBSCRIBE n*\r\n")
				c.expect("*3\r\n$10\r\npsubscribe\r\n$2\r\nn*\r\n:1\r\n")
				want = "*4\r\n$8\r\npmessage\r\n$2\r\nn*\r\n$4\r\nnews\r\n"
			}
			ready.Done()
			for m := range messages {
				text := fmt.Sprint(m)
				full := fmt.Sprintf("%s$%d\r\n%s\r\n", want, len(text), text)
				got := make([]byte, len(full))
				if _, err := io.ReadFull(c.r, got); err != nil || string(got) != full {
					failed.Add(1)
					return
				}
			}
		})
	}
	ready.Wait()
	p := dial(t, address)
	for m := range messages {
		p.send(command("PUBLISH", "news", fmt.Sprint(m)))
		p.expect(fmt.Sprintf(":%d\r\n", subscribers))
	}
	all.Wait()
	if n := failed.Load(); n > 0 {
		t.Errorf("%d subscribers did not get all messages in order", n)
	}
	eventually(t, "all subscribers are gone", func() bool { return s.Info().Connected == 1 })
	p.send("PUBSUB CHANNELS\r\nPUBSUB NUMPAT\r\nPUBLISH news x\r\n")
	p.expect("*0\r\n:0\r\n:0\r\n")
	eventually(t, "their goroutines are gone", func() bool { return runtime.NumGoroutine() < before+50 })
}

// A subscriber that does not read is disconnected at the hard limit. Neither the publisher nor other
// subscribers notice.
func TestSlowSubscriber(t *testing.T) {
	t.Parallel()
	s, address := realServer(t, "--client-output-buffer-limit", "pubsub", "1mb", "0", "0")
	slow, reader, publisher := dial(t, address), dial(t, address), dial(t, address)
	for _, c := range []*client{slow, reader} {
		c.send("SUBSCRIBE news\r\n")
		c.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	}
	text := strings.Repeat("x", 50_000)
	message := fmt.Sprintf("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$%d\r\n%s\r\n", len(text), text)
	sent := 0
	for ; s.Info().SlowSubscribers == 0; sent++ {
		if sent > 2000 { // 100 MB: more than the system's buffers take
			t.Fatal("the slow subscriber is never disconnected")
		}
		publisher.send(command("PUBLISH", "news", text))
		if _, err := publisher.r.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		reader.expect(message)
	}
	publisher.send(command("PUBLISH", "news", "the last"))
	eventually(t, "the slow subscriber is gone", func() bool { return s.Info().Connected == 2 })
	_, _ = publisher.r.ReadString('\n') // 1 or 2: the slow one may still have counted
	reader.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$8\r\nthe last\r\n")
	publisher.send("PUBSUB NUMSUB news\r\n")
	publisher.expect("*2\r\n$4\r\nnews\r\n:1\r\n")
	if n := s.Info().SlowSubscribers; n != 1 {
		t.Errorf("%d slow subscribers", n)
	}
}

// More than the soft limit is tolerated only for a while.
func TestSoftLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--client-output-buffer-limit", "pubsub", "1gb", "1mb", "3600")
	s.engine = newFakeEngine()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	must(t, err)
	defer ln.Close()
	client := dial(t, ln.Addr().String())
	must(t, client.Conn.(*net.TCPConn).SetReadBuffer(1<<20)) // else the system lets it grow beyond all messages
	nc, err := ln.Accept()
	must(t, err)
	c := s.register(nc, origin{places: 1})
	c.Hold()
	o := c.outbox
	o.unhold(2)
	exceeds := func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.softOver != nil
	}
	text := strings.Repeat("x", 1<<20)
	message := &engine.Message{Reply: engine.Bulk(text)}
	const messages = 20 // more than the system's buffers take
	deliver := func() {
		for range messages {
			c.Deliver(message)
		}
		if !exceeds() {
			t.Fatal("the limit is not exceeded")
		}
	}

	// It catches up in time,
	deliver()
	for range messages {
		client.expect(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
	}
	eventually(t, "it has caught up", func() bool { return !exceeds() })
	o.softTimeOver(0) // the time ends in the same moment
	if n := s.Info().SlowSubscribers; n != 0 {
		t.Fatal("disconnected although it caught up")
	}
	// and then it does not.
	must(t, s.set("client-output-buffer-limit", "pubsub 1gb 1mb 1"))
	deliver()
	eventually(t, "the slow subscriber is disconnected", func() bool { return s.Info().SlowSubscribers == 1 })
	if err := c.closeOutbox(); err != errSlowSubscriber {
		t.Errorf("it ends with %v", err)
	}
	s.remove(c)
}

// Messages do not come between the pieces of a large reply, and replies keep their place among them.
func TestLargeReplyAmongMessages(t *testing.T) {
	t.Parallel()
	_, address := realServer(t)
	c, publisher := dial(t, address), dial(t, address)
	value := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	c.send(command("SET", "big", value))
	c.expect("+OK\r\n")
	c.send("CLIENT REPLY SKIP\r\nHELLO 3\r\nSUBSCRIBE news\r\n")
	c.expect(">3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	stop := make(chan struct{})
	var publishing sync.WaitGroup
	publishing.Go(func() {
		for !drill.Done(stop) {
			publisher.send(command("PUBLISH", "news", "x"))
			publisher.expect(":1\r\n")
		}
	})
	const gets = 20
	go c.send(strings.Repeat(command("GET", "big"), gets))
	const message = ">3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n"
	messages := 0
	for replies := 0; replies < gets; {
		kind, err := c.r.Peek(1)
		drill.Check(t, err)
		if kind[0] == '>' {
			c.expect(message)
			messages++
			continue
		}
		c.expect(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value))
		replies++
	}
	close(stop)
	publishing.Wait()
	if messages == 0 {
		t.Error("no message came")
	}
}

// A client that sends commands without reading their replies has to wait, subscriber or not.
func TestSubscriberThatDoesNotReadReplies(t *testing.T) {
	t.Parallel()
	s, address := realServer(t)
	c := dial(t, address)
	value := strings.Repeat("x", 1<<20)
	c.send(command("SET", "big", value) + "CLIENT REPLY SKIP\r\nHELLO 3\r\nSUBSCRIBE news\r\n")
	c.expect("+OK\r\n>3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	const gets = 100 // more than the system's buffers take
	held := func() int { return s.Sessions()[0].Memory.Size() }
	go c.send(strings.Repeat(command("GET", "big"), gets))
	eventually(t, "replies wait", func() bool { return held() > len(value)+fullReplies })
	for range gets {
		if n := held(); n > 3*len(value) { // one that is being rendered, and its pieces
			t.Fatalf("%d bytes are held for a client that does not read", n)
		}
		c.expect(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value))
	}
}

// pacedEngine commits when the test says so.
type pacedEngine struct {
	runningEngine
	waits  func()
	commit chan error
}

func (e pacedEngine) CommitNow(t keyspace.LSN, _ time.Duration) error { return e.Wait(t, 0) }

func (e pacedEngine) Wait(t keyspace.LSN, _ time.Duration) error {
	if t == 0 {
		return nil
	}
	e.waits()
	return <-e.commit
}

// A message about an uncommitted change waits for the commit and is dropped if that fails. Other messages are
// sent anyway.
func TestMessagesWaitForCommit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	ks, err := keyspace.Open(keyspace.Options{Dir: s.Settings().Dir, Partitions: 1, Clock: clock.NewManual(1)})
	drill.Check(t, err)
	var tx keyspace.Tx
	ks.BeginNone(&tx)
	if err := ks.Wait(tx.Close()); err != nil { // the time, which stands still, is no news from here on
		t.Fatal(err)
	}
	commit := make(chan error)
	e := runningEngine{engine.NewEngine(ks, s, zerolog.Nop())}
	t.Cleanup(func() {
		drill.Report(t, ks.Close())
	})
	waiting := make(chan struct{})
	c := dial(t, s.run(t, pacedEngine{e, sync.OnceFunc(func() { close(waiting) }), commit}, nil))
	c.send("CLIENT REPLY SKIP\r\nHELLO 3\r\nSUBSCRIBE a\r\n")
	c.expect(">3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
	receiver := s.Sessions()[0].Receiver
	deliver := func(text string, lsn keyspace.LSN, bound bool) {
		receiver.Deliver(&engine.Message{Reply: engine.Bulk(text), LSN: lsn, Bound: bound})
	}
	sent := s.Info().NetOutput
	deliver("a", 1, true)
	select {
	case <-waiting:
	case <-time.After(testTimeout):
		t.Fatal("it does not wait for the commit")
	}
	if now := s.Info().NetOutput; now != sent {
		t.Fatalf("%d bytes left before the commit", now-sent)
	}
	commit <- nil
	c.expect("$1\r\na\r\n")

	full := errors.New("no space left on device")
	deliver("b", 2, true) // alone in its batch, or together with the others
	deliver("c", 2, false)
	deliver("d", 0, false)
	deliver("e", 3, true)
	done := make(chan struct{})
	t.Cleanup(func() { close(done) })
	go func() {
		for {
			select {
			case commit <- full:
			case <-done:
				return
			}
		}
	}()
	c.expect("$1\r\nc\r\n$1\r\nd\r\n")
	deliver("f", 0, true)
	c.expect("$1\r\nf\r\n")
}

// When the server stops, subscribers get their last messages and are disconnected.
func TestStopWithSubscribers(t *testing.T) {
	t.Parallel()
	s, address := realServer(t)
	c, publisher := dial(t, address), dial(t, address)
	c.send("SUBSCRIBE news\r\n")
	c.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	publisher.send("PUBLISH news x\r\n")
	publisher.expect(":1\r\n")
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	drill.Report(t, s.Stop(ctx))
	c.expect("*3\r\n$7\r\nmessage\r\n$4\r\nnews\r\n$1\r\nx\r\n")
	c.expectEnd()
}

// Subscribers wait for messages. They are not idle.
func TestSubscribersAreNotIdle(t *testing.T) {
	t.Parallel()
	s, address := realServer(t)
	early, c := dial(t, address), dial(t, address)
	for _, c := range []*client{early, c} {
		c.send("SUBSCRIBE news\r\n")
		c.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	}
	must(t, s.set("timeout", "1"))
	c.send("PING\r\n") // from here on it waits with the timeout; early has waited before
	c.expect("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
	for range 2 { // clients that came later
		dial(t, address).expectEnd()
	}
	early.send("PING\r\n")
	early.expect("*2\r\n$4\r\npong\r\n$0\r\n\r\n")
	c.send("UNSUBSCRIBE\r\n")
	c.expect("*3\r\n$11\r\nunsubscribe\r\n$4\r\nnews\r\n:0\r\n")
	c.expectEnd() // now it is
}

// CLIENT LIST shows what is being sent, too: of messages that leave together, those that have not left.
func TestClientListShowsRestOfBatch(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	ks, err := keyspace.Open(keyspace.Options{Dir: s.Settings().Dir, Partitions: 1, Clock: clock.NewManual(1)})
	must(t, err)
	var tx keyspace.Tx
	ks.BeginNone(&tx)
	must(t, ks.Wait(tx.Close())) // the time, which stands still, is no news from here on
	t.Cleanup(func() { must(t, ks.Close()) })
	commit, waiting := make(chan error), make(chan struct{}, 10)
	e := pacedEngine{runningEngine{engine.NewEngine(ks, s, zerolog.Nop())}, func() { waiting <- struct{}{} }, commit}
	c := dial(t, s.run(t, e, nil))
	t.Cleanup(func() { close(commit) })
	c.send("SUBSCRIBE a\r\n")
	c.expect("*3\r\n$9\r\nsubscribe\r\n$1\r\na\r\n:1\r\n")
	session := s.Sessions()[0]
	deliver := func(text string, lsn keyspace.LSN) {
		session.Receiver.Deliver(&engine.Message{Reply: engine.Bulk(text), LSN: lsn, Bound: true})
	}
	deliver("first", 1)
	<-waiting
	long := strings.Repeat("x", largeReply)
	for _, text := range []string{long, "second", "third"} { // one batch
		deliver(text, keyspace.LSN(2+len(text)%2))
	}
	commit <- nil
	c.expect("$5\r\nfirst\r\n")
	<-waiting
	commit <- errors.New("not all is committed")
	<-waiting
	commit <- nil // but the long one
	c.expect(fmt.Sprintf("$%d\r\n%s\r\n", len(long), long))
	<-waiting
	eventually(t, "two messages are listed as not taken", func() bool {
		return strings.Contains(session.ClientLine(0, nil), " oll=2 ")
	})
	commit <- nil
	<-waiting
	commit <- nil
	c.expect("$6\r\nsecond\r\n$5\r\nthird\r\n")
}

// CLIENT LIST shows unsent messages and replies.
func TestClientListShowsUnsent(t *testing.T) {
	t.Parallel()
	_, address := realServer(t)
	subscriber, reader, other := dial(t, address), dial(t, address), dial(t, address)
	for _, c := range []*client{subscriber, reader} {
		must(t, c.Conn.(*net.TCPConn).SetReadBuffer(64<<10)) // else the system lets it grow beyond all messages
	}
	subscriber.send("SUBSCRIBE news\r\n")
	subscriber.expect("*3\r\n$9\r\nsubscribe\r\n$4\r\nnews\r\n:1\r\n")
	const size, times = 100_000, 70 // more than buffers on the way take, less than the soft limit
	text := strings.Repeat("x", size)
	other.send(command("SET", "k", text))
	other.expect("+OK\r\n")
	for range times {
		other.send(command("PUBLISH", "news", text))
		other.expect(":1\r\n")
	}
	reader.send(strings.Repeat(command("GET", "k"), times))
	listed := func(pattern string) func() bool {
		return func() bool {
			other.send(command("CLIENT", "LIST"))
			var length int
			if _, err := fmt.Fscanf(other.r, "$%d\r\n", &length); err != nil {
				t.Fatal(err)
			}
			list := make([]byte, length+2)
			if _, err := io.ReadFull(other.r, list); err != nil {
				t.Fatal(err)
			}
			return regexp.MustCompile(pattern).Match(list)
		}
	}
	eventually(t, "messages are listed as not taken", listed(`flags=P .* oll=[1-9]\d* omem=\d{6,} .*cmd=subscribe`))
	eventually(t, "a reply is listed as not taken", listed(`flags=N .* oll=1 omem=\d{5,} .*cmd=get`))
	for _, c := range []*client{subscriber, reader} {
		go func() { _, _ = io.Copy(io.Discard, c.r) }()
	}
	eventually(t, "the messages are listed as taken", listed(`flags=P .* oll=0 omem=0 .*cmd=subscribe`))
	eventually(t, "the replies are listed as taken", listed(`flags=N .* oll=0 omem=0 .*cmd=get`))
}
