package bus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

var until = drill.Await

// end is a bus and what it has delivered.
type end struct {
	*Bus
	id uint64

	mu     sync.Mutex
	texts  []string
	wanted []bool
	hold   chan struct{} // not nil: Deliver waits for it
}

func newEnd(t *testing.T, id uint64) *end {
	e := &end{id: id}
	e.Bus = New(Options{
		Deliver: func(list []Message) {
			e.mu.Lock()
			hold := e.hold
			for _, m := range list {
				e.texts = append(e.texts, m.Text)
			}
			e.mu.Unlock()
			if hold != nil {
				<-hold
			}
		},
		Wanted: func(w bool) { e.mu.Lock(); defer e.mu.Unlock(); e.wanted = append(e.wanted, w) },
		Log:    zerolog.Nop(),
	})
	t.Cleanup(e.Close)
	return e
}

func (e *end) got() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.texts)
}

// link is the network between two ends.
type link struct {
	mu    sync.Mutex
	cut   bool
	conns []net.Conn
	pipes bool // without buffers
	dials atomic.Int64
}

var errCut = errors.New("cut")

// connect makes from dial to over the link.
func (l *link) connect(from, to *end) {
	from.Connect(to.id, func(context.Context) (net.Conn, error) {
		l.dials.Add(1)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.cut {
			return nil, errCut
		}
		here, there := net.Pipe()
		if !l.pipes {
			var err error
			if here, there, err = tcpPair(); err != nil {
				return nil, err
			}
		}
		l.conns = append(l.conns, here, there)
		go to.Serve(from.id, there)
		return here, nil
	})
}

// tcpPair returns both ends of a connection with buffers, as real ones have.
func tcpPair() (here, there net.Conn, err error) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer ln.Close()
	if here, err = net.Dial("tcp", ln.Addr().String()); err != nil {
		return nil, nil, err
	}
	there, err = ln.Accept()
	return here, there, err
}

func (l *link) set(cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
	if cut {
		for _, c := range l.conns {
			c.Close()
		}
		l.conns = nil
	}
}

func pair(t *testing.T) (a, b *end, l *link) { return pairOver(t, &link{}) }

func pairOver(t *testing.T, l *link) (a, b *end, same *link) {
	a, b = newEnd(t, 1), newEnd(t, 2)
	l.connect(a, b)
	l.connect(b, a)
	return a, b, l
}

func text(s string) []Message { return []Message{{Kind: Channel, Channel: "news", Text: s}} }

// TestOrder: the messages of a node arrive in their order, none twice, while connections break.
func TestOrder(t *testing.T) {
	t.Parallel()
	a, b, l := pair(t)
	a.Send(text("first"))
	until(t, "the first message", func() bool { return len(b.got()) == 1 })
	const n = 5000
	sent := 0
	send := func() { a.Send(text(fmt.Sprintf("%08d", sent))); sent++ }
	for i := range n {
		send()
		if i%1000 == 500 {
			l.set(true)
			l.set(false)
			before := len(b.got())
			until(t, "a message after a fault", func() bool { send(); return len(b.got()) > before })
		}
		if i%1000 == 250 { // many arrive, also if the sender is much quicker
			last := fmt.Sprintf("%08d", sent-1)
			until(t, "the messages before", func() bool { return slices.Contains(b.got(), last) })
		}
	}
	until(t, "a message after the faults", func() bool {
		a.Send(text("~"))
		got := b.got()
		return got[len(got)-1] == "~"
	})
	got := b.got()[1:]
	got = got[:slices.Index(got, "~")]
	for i := 1; i < len(got); i++ {
		if got[i-1] >= got[i] {
			t.Fatalf("%s comes before %s", got[i-1], got[i])
		}
	}
	t.Logf("%d of %d messages arrived, with %d connections", len(got), sent, l.dials.Load())
	if len(got) < n/10 {
		t.Error("too few arrived")
	}
}

// TestLargeMessages: also one that is larger than all buffers arrives, between others. On a busy machine it
// may take longer than a stream waits for a confirmation, which then loses what it carries; but not each
// time.
func TestLargeMessages(t *testing.T) {
	t.Parallel()
	large := strings.Repeat("x", mostPending+8<<20)
	const tries = 5
	for range tries {
		a, b, l := pair(t)
		broken := func() bool { return l.dials.Load() > 2 } // one stream each way
		for _, s := range []string{"a", large, "b", strings.Repeat("y", readBuffer), "c"} {
			a.Send(text(s))
			until(t, "room", func() bool { // more than one large message would be dropped
				a := (*a.peers.Load())[0]
				a.mu.Lock()
				defer a.mu.Unlock()
				return len(a.pending) == 0
			})
		}
		until(t, "all messages", func() bool { return len(b.got()) == 5 || broken() })
		if broken() {
			continue
		}
		if got := b.got(); got[1] != large || got[2] != "b" || got[4] != "c" {
			t.Error("another message arrived")
		}
		return
	}
	t.Errorf("each of %d times a stream broke", tries)
}

// TestSlowNode: a node that takes nothing holds up neither the sender nor other nodes, and what waits for it
// is bounded.
func TestSlowNode(t *testing.T) { drill.Bubble(t, testSlowNode) }

func testSlowNode(t *testing.T) {
	a, slow, quick := newEnd(t, 1), newEnd(t, 2), newEnd(t, 3)
	l := &link{pipes: true}
	l.connect(a, slow)
	l.connect(a, quick)
	hold := make(chan struct{})
	slow.hold = hold
	defer close(hold)
	a.Send(text("first"))
	until(t, "the first message", func() bool { return len(slow.got()) == 1 && len(quick.got()) == 1 })
	piece := strings.Repeat("x", 1<<20)
	const n = 100
	for i := range n {
		began := time.Now()
		a.Send(text(piece))
		if took := time.Since(began); took > 0 {
			t.Fatalf("Send waits for %v", took)
		}
		until(t, "the message at the quick node", func() bool { return len(quick.got()) == i+2 })
	}
	if a.Dropped() == 0 {
		t.Error("nothing was dropped")
	}
	for _, p := range *a.peers.Load() {
		p.mu.Lock()
		if len(p.pending) > mostPending {
			t.Errorf("%d bytes wait for node %d", len(p.pending), p.id)
		}
		p.mu.Unlock()
	}
}

// TestDeadNode: what is sent while a node cannot be reached does not arrive later.
func TestDeadNode(t *testing.T) { drill.Bubble(t, testDeadNode) }

func testDeadNode(t *testing.T) {
	a, b, l := pairOver(t, &link{pipes: true})
	a.Send(text("before"))
	until(t, "the first message", func() bool { return len(b.got()) == 1 })
	l.set(true)
	before := l.dials.Load()
	a.Send(text("lost"))
	until(t, "attempts", func() bool { return l.dials.Load() > before+4 })
	a.Send(text("lost too"))
	until(t, "more attempts", func() bool { return l.dials.Load() > before+8 })
	l.set(false)
	until(t, "a message after", func() bool {
		a.Send(text("after"))
		return slices.Contains(b.got(), "after")
	})
	if got := b.got(); slices.Contains(got, "lost") || slices.Contains(got, "lost too") {
		t.Errorf("got %q", got)
	}
	if a.Dropped() == 0 {
		t.Error("no message counts as dropped")
	}
}

// TestSilentNodes: a stream whose other side says nothing is opened anew, and the filter of a node that says
// nothing is forgotten.
func TestSilentNodes(t *testing.T) { drill.Bubble(t, testSilentNodes) }

func testSilentNodes(t *testing.T) {
	a := newEnd(t, 1)
	var dials atomic.Int64
	a.Connect(2, func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		dials.Add(1)
		go func() { _, _ = io.Copy(io.Discard, there) }() // it reads, and confirms nothing
		return here, nil
	})
	here, there := net.Pipe()
	defer here.Close()
	go a.Serve(2, there)
	if _, err := here.Write(appendInterest(nil, 1, &Filter{All: true})); err != nil {
		t.Fatal(err)
	}
	until(t, "the filter", func() bool { return a.Wants("__keyspace@0__:k", "") })
	go func() { _, _ = io.Copy(io.Discard, here) }()
	until(t, "another stream", func() bool { return dials.Load() > 1 })
	until(t, "no filter", func() bool { return !a.Wants("__keyspace@0__:k", "") })
}

// TestInterest: a node gets the events that it wants, from the moment on at which Announced returns, and
// after a break.
func TestInterest(t *testing.T) {
	t.Parallel()
	a, b, l := pair(t)
	third := newEnd(t, 3)
	l.connect(a, third)
	event := func(channel, s string) []Message { return []Message{{Kind: Event, Channel: channel, Text: s}} }
	ctx, cancel := context.WithTimeout(t.Context(), drill.Patience)
	defer cancel()
	until(t, "a stream to b", func() bool { a.Send(text("hello")); return len(b.got()) > 0 })
	b.Announce(Filter{Channels: []string{"ready"}})
	until(t, "a stream to a", func() bool { return a.Wants("ready", "") }) // Announced waits for no other
	for i := range 100 {
		channel := fmt.Sprint("__keyspace@0__:", i)
		if a.Wants(channel, "") {
			t.Fatalf("%s is wanted", channel)
		}
		b.Announce(Filter{Channels: []string{channel}})
		b.Announced(ctx)
		if !a.Wants(channel, "") || !a.Wants("other", channel) {
			t.Fatalf("%s is not wanted", channel)
		}
		a.Send(event(channel, channel))
		a.Send(event("__keyspace@0__:other", "other"))
		until(t, "the event", func() bool { return slices.Contains(b.got(), channel) })
	}
	if slices.Contains(b.got(), "other") || slices.ContainsFunc(third.got(), func(s string) bool { return s != "hello" }) {
		t.Errorf("events arrived that the node does not want: %q, %q", b.got(), third.got())
	}
	l.set(true)
	until(t, "nobody to want events", func() bool { return !a.Wants("__keyspace@0__:99", "") })
	b.Announced(ctx) // nobody is connected: it does not wait
	b.Announce(Filter{Patterns: []string{"__keyevent@*"}})
	l.set(false)
	until(t, "the filter after a break", func() bool { return a.Wants("__keyevent@0__:del", "") })
	b.Announce(Filter{})
	until(t, "no filter", func() bool { return !a.Wants("__keyevent@0__:del", "") })
	until(t, "the last call of Wanted", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.wanted) >= 4 })
	a.mu.Lock()
	defer a.mu.Unlock()
	if want := []bool{true, false, true, false}; !slices.Equal(a.wanted, want) {
		t.Errorf("Wanted was called with %v, want %v", a.wanted, want)
	}
}

// TestAnnouncedDoesNotWaitForEver: a node that confirms nothing.
func TestAnnouncedDoesNotWaitForEver(t *testing.T) { drill.Bubble(t, testAnnouncedDoesNotWaitForEver) }

func testAnnouncedDoesNotWaitForEver(t *testing.T) {
	a := newEnd(t, 1)
	connected := make(chan struct{})
	a.Connect(2, func(context.Context) (net.Conn, error) {
		here, there := net.Pipe()
		go func() {
			_, _ = io.ReadFull(there, make([]byte, 4))
			close(connected)
			_, _ = io.Copy(io.Discard, there)
		}()
		return here, nil
	})
	<-connected
	a.Announce(Filter{All: true})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	a.Announced(ctx)
	if ctx.Err() == nil {
		t.Error("Announced returned although the node has confirmed nothing")
	}
	a.Disconnect(2)
	a.Announced(t.Context())
}

// TestNewStreamReplacesOld: the messages of a new stream come after those of the old one, which may wait in
// Deliver.
func TestNewStreamReplacesOld(t *testing.T) { drill.Bubble(t, testNewStreamReplacesOld) }

func testNewStreamReplacesOld(t *testing.T) {
	b := newEnd(t, 2)
	hold := make(chan struct{})
	b.hold = hold
	serve := func(s string) net.Conn {
		here, there := net.Pipe()
		go b.Serve(1, there)
		go func() { _, _ = here.Write(appendMessage(nil, &text(s)[0])) }()
		go func() { _, _ = io.Copy(io.Discard, here) }()
		return here
	}
	defer serve("old").Close()
	until(t, "the old stream", func() bool { return len(b.got()) == 1 })
	defer serve("new").Close()
	synctest.Wait()
	if got := b.got(); len(got) != 1 {
		t.Fatalf("got %q while the old stream delivers", got)
	}
	close(hold)
	until(t, "the new stream", func() bool { return len(b.got()) == 2 })
}

// TestBadFrames: a stream with a frame that no node sends ends, and takes no memory for it.
func TestBadFrames(t *testing.T) {
	t.Parallel()
	long := appendInterest(nil, 1, &Filter{Channels: make([]string, 2*readBuffer)})
	huge := binary.BigEndian.AppendUint32(nil, mostFrame+1)
	for name, b := range map[string][]byte{
		"huge": huge, "empty": {0, 0, 0, 0}, "long filter": long, "wrong length": {0, 0, 0, 3, byte(Channel), 9, 'x'},
	} {
		e := newEnd(t, 1)
		here, there, err := tcpPair()
		drill.Check(t, err)
		go e.Serve(2, there)
		_, _ = here.Write(b)
		_ = here.SetReadDeadline(time.Now().Add(silence / 2))
		if _, err := io.ReadAll(here); errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("%s: the stream goes on", name)
		}
		here.Close()
	}
}
