package transport

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/raft/v3/raftpb"
)

// streams makes two nodes whose second one echoes what it gets on streams.
func streams(t *testing.T, c *Credentials) (a *node, b *node) {
	t.Helper()
	la, logsA := listen(t, c, nil)
	lb, logsB := listen(t, c, nil)
	a = begin(t, la, logsA, testCluster, 1)
	b = &node{l: lb, logs: logsB, gone: map[uint64]bool{}}
	var err error
	b.Transport, err = New(Options{
		Listener: lb, Cluster: testCluster, ID: 2, Log: zerolog.New(logsB), Deliver: func(*raftpb.Message) error { return nil },
		Removed: func(id uint64) bool { b.mu.Lock(); defer b.mu.Unlock(); return b.gone[id] },
		Streams: map[string]func(uint64, net.Conn){BusStream: greet, ClientStream: greet},
	})
	drill.Check(t, err)
	t.Cleanup(func() { b.Transport.Close() })
	a.Add(2, lb.Addr())
	b.Add(1, la.Addr())
	return a, b
}

// greet greets a node and returns what it sends.
func greet(id uint64, conn net.Conn) {
	defer conn.Close()
	_, _ = fmt.Fprintf(conn, "hello %d;", id)
	_, _ = io.Copy(conn, conn)
}

// TestClientStreams: streams of clients leave the count of connections at once, and have no write timeout.
func TestClientStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Credentials{"clear": nil, "secret": secret(t, someSecret)} {
		t.Run(name, func(t *testing.T) {
			a, b := streams(t, c)
			for range 20 {
				conn, err := a.Dial(t.Context(), 2, ClientStream)
				drill.Check(t, err)
				defer conn.Close()
				if _, err := io.ReadFull(conn, make([]byte, len("hello 1;"))); err != nil {
					t.Fatal(err)
				}
			}
			b.l.mu.Lock()
			defer b.l.mu.Unlock()
			if b.l.conns > 10 {
				t.Errorf("%d connections count", b.l.conns)
			}
		})
	}
	if conn, err := func() (net.Conn, error) { a, _ := streams(t, nil); return a.Dial(t.Context(), 2, "other") }(); err == nil {
		conn.Close()
		t.Error("a stream for an unknown protocol")
	}
}

// TestStreams: bytes go both ways, in the clear on loopback and by TLS.
func TestStreams(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]*Credentials{"clear": nil, "secret": secret(t, someSecret)} {
		t.Run(name, func(t *testing.T) {
			a, b := streams(t, c)
			conn, err := a.Dial(t.Context(), 2, BusStream)
			drill.Check(t, err)
			defer conn.Close()
			sent := bytes.Repeat([]byte("0123456789"), 100_000)
			go func() { _, _ = conn.Write(sent) }()
			got := make([]byte, len("hello 1;")+len(sent))
			if _, err := io.ReadFull(conn, got); err != nil || !bytes.Equal(got, append([]byte("hello 1;"), sent...)) {
				t.Fatalf("%d bytes came back, not as they were sent (%v)", len(got), err)
			}
			ended := make(chan error, 1)
			go func() { _, err := conn.Read(got); ended <- err }()
			b.Remove(1)
			select {
			case err := <-ended:
				if err == nil {
					t.Error("more came back")
				}
			case <-time.After(20 * time.Second):
				t.Error("the stream goes on after the member was removed")
			}
			if _, err := a.Dial(t.Context(), 2, BusStream); err == nil || !strings.Contains(err.Error(), "unknown") {
				t.Errorf("a stream of a node that is no member: %v", err)
			}
			b.mu.Lock()
			b.gone[1] = true
			b.mu.Unlock()
			if _, err := a.Dial(t.Context(), 2, BusStream); err == nil || !strings.Contains(err.Error(), "removed") {
				t.Errorf("a stream of a node that was removed: %v", err)
			}
			if _, err := a.Dial(t.Context(), 3, BusStream); err == nil {
				t.Error("a stream to a node that is no member")
			}
		})
	}
}

// TestStreamsEndWithTheTransport: on both sides, though the listener stays.
func TestStreamsEndWithTheTransport(t *testing.T) {
	t.Parallel()
	for _, side := range []string{"dialler", "other"} {
		t.Run(side, func(t *testing.T) {
			a, b := streams(t, nil)
			conn, err := a.Dial(t.Context(), 2, BusStream)
			drill.Check(t, err)
			defer conn.Close()
			closed := a.Transport
			if side == "other" {
				closed = b.Transport
			}
			drill.Check(t, closed.Close())
			if _, err := io.ReadAll(conn); err == nil && side == "dialler" {
				t.Error("the stream ended in order")
			}
			until(t, "all connections of streams to end", func() bool {
				b.l.mu.Lock()
				defer b.l.mu.Unlock()
				return b.l.conns <= 4 // of rafthttp
			})
		})
	}
}

// TestStreamsOfOthers: only a member of the same cluster gets a stream.
func TestStreamsOfOthers(t *testing.T) {
	t.Parallel()
	_, b := streams(t, nil)
	ask := func(change func(http.Header)) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+b.l.Addr()+streamPath, nil)
		drill.Check(t, err)
		r.Header.Set(controlHeader, "1")
		r.Header.Set(clusterHeader, types.ID(testCluster).String())
		r.Header.Set(fromHeader, "1")
		r.Header.Set(toHeader, "2")
		r.Header.Set("Connection", "Upgrade")
		r.Header.Set("Upgrade", BusStream)
		change(r.Header)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0
		}
		defer response.Body.Close()
		return response.StatusCode
	}
	for name, c := range map[string]struct {
		change func(http.Header)
		want   int
	}{
		"a member":         {func(http.Header) {}, http.StatusSwitchingProtocols},
		"a browser":        {func(h http.Header) { h.Del(controlHeader) }, 0},
		"another cluster":  {func(h http.Header) { h.Set(clusterHeader, "7") }, http.StatusPreconditionFailed},
		"for another node": {func(h http.Header) { h.Set(toHeader, "9") }, http.StatusPreconditionFailed},
		"an unknown node":  {func(h http.Header) { h.Set(fromHeader, "9") }, http.StatusNotFound},
		"no node":          {func(h http.Header) { h.Del(fromHeader) }, http.StatusBadRequest},
		"another protocol": {func(h http.Header) { h.Set("Upgrade", "websocket") }, http.StatusBadRequest},
	} {
		if got := ask(c.change); got != c.want {
			t.Errorf("%s: status %d, want %d", name, got, c.want)
		}
	}
}

// TestDialEnds: a node that takes the connection and says nothing holds no one up for long.
func TestDialEnds(t *testing.T) {
	t.Parallel()
	a, _ := streams(t, nil)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	defer ln.Close()
	a.Add(3, ln.Addr().String())
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := a.Dial(ctx, 3, BusStream); err == nil {
		t.Error("a stream to a node that says nothing")
	}
}
