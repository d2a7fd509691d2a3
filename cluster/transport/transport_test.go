package transport

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"

	"go.etcd.io/raft/v3/raftpb"
	"google.golang.org/protobuf/proto"
)

// Messages arrive in both directions, whatever the credentials.
func TestMessages(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t, "ca")
	for name, credentials := range map[string]*Credentials{
		"plain":  nil,
		"secret": secret(t, someSecret),
		"files":  load(t, ca.issue(t.TempDir(), "127.0.0.1", bothUsages...)),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := pair(t, credentials)
			until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
			texts := []string{strings.Repeat("x", 3<<20)}
			for i := range 50 {
				texts = append(texts, fmt.Sprintf("entry %d", i))
			}
			for _, text := range texts {
				m := message(1, 2, raftpb.MsgApp, text)
				delivered := func() bool {
					b.mu.Lock()
					defer b.mu.Unlock()
					return slices.ContainsFunc(b.got, func(got *raftpb.Message) bool { return proto.Equal(got, m) })
				}
				sent := time.Time{}
				until(t, "the message has arrived", func() bool {
					if time.Since(sent) > time.Second { // raft too sends again what is lost
						a.Send([]*raftpb.Message{m})
						sent = time.Now()
					}
					return delivered()
				})
				b.Send([]*raftpb.Message{message(2, 1, raftpb.MsgAppResp, "")})
			}
			until(t, "answers have arrived", func() bool { return a.received() > 40 })
			if a.LastContact(2) == 0 || b.LastContact(1) == 0 {
				t.Error("no contact is known")
			}
		})
	}
}

// Messages to and from nodes that are not members are dropped, and those of a node that claims to be another.
func TestUnknownNodes(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
	a.Send([]*raftpb.Message{message(1, 9, raftpb.MsgHeartbeat, ""), message(1, 2, raftpb.MsgHeartbeat, "")})
	a.Send([]*raftpb.Message{message(7, 2, raftpb.MsgHeartbeat, ""), message(1, 2, raftpb.MsgHeartbeat, "")})
	until(t, "the others arrive", func() bool { return b.received() == 2 })
	for _, m := range b.got {
		if m.GetFrom() != 1 {
			t.Errorf("a message of %d arrived", m.GetFrom())
		}
	}
	lc, logs := listen(t, nil, nil)
	c := begin(t, lc, logs, testCluster, 3) // a and b do not know it
	c.Add(1, a.l.Addr())
	until(t, "messages are refused", func() bool {
		c.Send([]*raftpb.Message{message(3, 1, raftpb.MsgHeartbeat, "")})
		return c.lost() > 3
	})
	if a.received() != 0 {
		t.Error("a took messages of a node that it does not know")
	}
}

// A peer that was removed is told so, and hears it once. A peer that comes back under another address is
// found.
func TestRemoveAndMove(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
	a.mu.Lock()
	a.gone[2] = true
	a.mu.Unlock()
	a.Remove(2)
	until(t, "b hears it", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return b.expelled == 1 })
	if !a.logs.has("it was removed from the cluster") || !b.logs.has("says that this node, id 2, was removed from the cluster") {
		t.Errorf("the logs do not say it:\n%s\n%s", a.logs.text.String(), b.logs.text.String())
	}

	a.mu.Lock()
	a.gone[2] = false
	a.mu.Unlock()
	b.Transport.Close()
	l, logs := listen(t, nil, nil)
	moved := begin(t, l, logs, testCluster, 2)
	moved.Add(1, a.l.Addr())
	a.Add(2, b.l.Addr())
	a.Add(2, l.Addr())
	until(t, "the message arrives at the new address", func() bool {
		a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
		return moved.received() > 0
	})
}

// Both sides log that they belong to different clusters, with the ids.
func TestOtherCluster(t *testing.T) {
	t.Parallel()
	la, logsA := listen(t, nil, nil)
	lb, logsB := listen(t, nil, nil)
	a, b := begin(t, la, logsA, 0xc1, 1), begin(t, lb, logsB, 0xc2, 2)
	a.Add(2, lb.Addr())
	b.Add(1, la.Addr())
	a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
	until(t, "both say so", func() bool {
		return logsA.has("of cluster c2 is refused: this node belongs to cluster c1") && logsB.has("of cluster c1 is refused: this node belongs to cluster c2") &&
			logsA.has("cluster ID mismatch") && logsB.has("cluster ID mismatch")
	})
	if a.received()+b.received() != 0 {
		t.Error("a message went to another cluster")
	}
}

// Send and Remove return though the other side reads nothing, and long before a write to it ends.
func TestSendDoesNotBlock(t *testing.T) {
	t.Parallel()
	la, logsA := listenWith(t, ListenOptions{writePatience: time.Hour})
	lb, logsB := listenWith(t, ListenOptions{writePatience: time.Hour})
	a, b := begin(t, la, logsA, testCluster, 1), begin(t, lb, logsB, testCluster, 2)
	stuck := make(chan struct{})
	b.o.Deliver = func(*raftpb.Message) error { <-stuck; return nil }
	defer close(stuck)
	a.Add(2, lb.Addr())
	b.Add(1, la.Addr())
	until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
	text := strings.Repeat("x", 4<<10)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for a.lost() < 100 {
			a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgApp, text)})
		}
		a.Remove(2)
		a.Add(2, lb.Addr())
		a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgApp, text)})
	}()
	select {
	case <-done:
	case <-time.After(30 * time.Second):
		t.Errorf("Send or Remove waits after %d lost messages", a.lost())
	}
}

// Incarnations follow each other on the same listener.
func TestIncarnations(t *testing.T) {
	t.Parallel()
	a, b := pair(t, secret(t, someSecret))
	for round := range 3 {
		until(t, "both are connected", func() bool { return a.Active(2) && b.Active(1) })
		b.Transport.Close()
		b.Add(1, a.l.Addr()) // after Close: nothing
		next := begin(t, b.l, b.logs, testCluster, 2)
		next.Add(1, a.l.Addr())
		until(t, fmt.Sprintf("a message arrives in round %d", round), func() bool {
			a.Send([]*raftpb.Message{message(1, 2, raftpb.MsgHeartbeat, "")})
			return next.received() > 0
		})
		b = next
	}
}

// Stores arrive with their message, and the sender knows it.
func TestStores(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]*Credentials{"plain": nil, "secret": secret(t, someSecret)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := pair(t, credentials)
			content := bytes.Repeat([]byte("stores "), 1<<18)
			opened := 0
			a.SendStores(snapshot(1, 2, 42), func() (io.ReadCloser, int64, error) {
				opened++
				return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
			})
			until(t, "it is reported", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.sent) == 1 })
			if !a.sent[0] || opened != 1 || !bytes.Equal(b.stores, content) || b.received() != 1 || b.got[0].GetSnapshot().GetMetadata().GetIndex() != 42 {
				t.Errorf("sent %v after %d attempts, %d of %d bytes, %d messages", a.sent, opened, len(b.stores), len(content), b.received())
			}
		})
	}
}

// A transfer that is cut is tried again; one that is refused is not, and both are reported.
func TestStoresThatFail(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	content := bytes.Repeat([]byte("x"), 1<<20)
	open := func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
	}
	var count atomic.Int64
	var full atomic.Bool
	attemptsNow := func() int { return int(count.Load()) }
	b.receive = func(_ context.Context, r io.Reader) error {
		switch n := count.Add(1); {
		case full.Load():
			return syscall.ENOSPC
		case n == 1:
			_, _ = io.CopyN(io.Discard, r, 1000)
			return errors.New("the disk hiccups")
		}
		_, err := io.Copy(io.Discard, r)
		return err
	}
	reported := func(n int, ok bool) {
		t.Helper()
		until(t, "it is reported", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return len(a.sent) == n })
		if a.sent[n-1] != ok {
			t.Errorf("transfer %d: %v\n%s", n, a.sent[n-1], a.logs.text.String())
		}
	}
	a.SendStores(snapshot(1, 2, 1), open)
	reported(1, true)
	if attempts := attemptsNow(); attempts != 2 || !a.logs.has("the disk hiccups") {
		t.Errorf("%d attempts\n%s", attempts, a.logs.text.String())
	}

	a.SendStores(snapshot(1, 2, 1), func() (io.ReadCloser, int64, error) { return nil, 0, errors.New("no backup") })
	reported(2, false)

	short := func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(content)), int64(len(content)) + 5, nil // a file has shrunk
	}
	a.SendStores(snapshot(1, 2, 1), short)
	reported(3, false)

	count.Store(0)
	full.Store(true)
	a.SendStores(snapshot(1, 2, 1), open)
	reported(4, false)
	if attempts := attemptsNow(); attempts != 1 {
		t.Errorf("%d attempts at a full disk", attempts)
	}

	b.mu.Lock()
	b.gone[1] = true
	b.mu.Unlock()
	before := attemptsNow()
	a.SendStores(snapshot(1, 2, 1), open)
	reported(5, false)
	if attempts := attemptsNow(); attempts != before || a.expelled == 0 {
		t.Errorf("%d attempts more; expelled %d times", attempts-before, a.expelled)
	}
	a.SendStores(snapshot(1, 8, 1), open) // unknown
	reported(6, false)
}

// The stores of a later leader end a transfer that hangs.
func TestLaterStoresEndEarlierOnes(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	lc, logs := listen(t, nil, nil)
	c := begin(t, lc, logs, testCluster, 3)
	c.Add(2, b.l.Addr())
	b.Add(3, lc.Addr())
	began := make(chan struct{}, 10)
	b.receive = func(ctx context.Context, r io.Reader) error {
		began <- struct{}{}
		_, err := io.Copy(io.Discard, r)
		return err
	}
	r, w := io.Pipe()
	defer w.Close()
	a.SendStores(snapshot(1, 2, 1), func() (io.ReadCloser, int64, error) { return r, 1 << 20, nil })
	if _, err := w.Write([]byte("begin")); err != nil {
		t.Fatal(err)
	}
	<-began
	later := snapshot(3, 2, 2)
	*later.Term = 4
	c.SendStores(later, func() (io.ReadCloser, int64, error) {
		return io.NopCloser(strings.NewReader("new")), 3, nil
	})
	until(t, "the later one arrives", func() bool { c.mu.Lock(); defer c.mu.Unlock(); return len(c.sent) == 1 })
	if !c.sent[0] {
		t.Errorf("it failed:\n%s\n%s", c.logs.text.String(), b.logs.text.String())
	}
}

// The speed of stores is bounded.
func TestStoresRate(t *testing.T) {
	t.Parallel()
	a, b := pair(t, nil)
	a.limiter.SetLimit(1 << 20)
	content := bytes.Repeat([]byte("x"), 512<<10)
	before := time.Now()
	a.SendStores(snapshot(1, 2, 1), func() (io.ReadCloser, int64, error) {
		return io.NopCloser(bytes.NewReader(content)), int64(len(content)), nil
	})
	until(t, "they arrive", func() bool { b.mu.Lock(); defer b.mu.Unlock(); return len(b.stores) == len(content) })
	if took := time.Since(before); took < 350*time.Millisecond {
		t.Errorf("512 kB at 1 MB/s took %v", took)
	}
}

// Control requests are answered, refused with the reason, and bounded.
func TestCall(t *testing.T) {
	t.Parallel()
	for name, credentials := range map[string]*Credentials{"plain": nil, "secret": secret(t, someSecret)} {
		t.Run(name, func(t *testing.T) {
			l, _ := listen(t, credentials, nil)
			var got string
			err := l.Call(context.Background(), l.Addr(), "/cluster/echo", "text", &got)
			if refused := (*RefusedError)(nil); !errors.As(err, &refused) || refused.Status != http.StatusServiceUnavailable {
				t.Errorf("without a handler: %v", err)
			}
			l.Handle(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				switch r.URL.Path {
				case "/cluster/no":
					http.Error(w, "no\x1b way\nmore", http.StatusConflict)
				case "/cluster/long":
					_, _ = w.Write(bytes.Repeat([]byte(" "), 2<<20))
				default:
					echo(w, r)
				}
			}))
			if err := l.Call(context.Background(), l.Addr(), "/cluster/echo", "text", &got); err != nil || got != "text" {
				t.Errorf("%q, %v", got, err)
			}
			if err := l.Call(context.Background(), l.Addr(), "/cluster/no", "text", &got); err == nil || err.Error() != "no way" {
				t.Errorf("refusal %v", err)
			}
			if err := l.Call(context.Background(), l.Addr(), "/cluster/long", "text", &got); err == nil || !strings.Contains(err.Error(), "longer than") {
				t.Errorf("long answer: %v", err)
			}
			if err := l.Call(context.Background(), l.Addr(), "/other", "text", &got); err == nil || err.Error() != "unknown path" {
				t.Errorf("other path: %v", err)
			}
		})
	}
}

// TestCloseWithUnauthenticated closes a listener while connections have not shown who they are.
func TestCloseWithUnauthenticated(t *testing.T) {
	t.Parallel()
	l, _ := listen(t, nil, nil)
	for range 3 {
		conn, err := net.Dial("tcp", l.tcp.Addr().String())
		drill.Check(t, err)
		defer conn.Close()
	}
	until(t, "the listener to have accepted them", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.pending.Len() == 3
	})
	closed := make(chan error, 1)
	go func() { closed <- l.Close() }()
	until(t, "the listener to close", func() bool { return len(closed) == 1 })
	drill.Report(t, <-closed)
}
