package server

import (
	"io"
	"net"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// CONFIG SET changes the limit on the memory of all clients, also by the share that it is of maxmemory.
func TestClientMemoryLimit(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--maxmemory-clients", "5%")
	for _, tt := range []struct {
		option, value string
		want          int64
	}{
		{"timeout", "1", 0},
		{"maxmemory", "1000000", 50_000},
		{"maxmemory-clients", "1kb", 1024},
	} {
		must(t, s.ConfigSet([][2]string{{tt.option, tt.value}}))
		if got := s.clients.Limit(); got != tt.want {
			t.Errorf("%s %s: the limit is %d, want %d", tt.option, tt.value, got, tt.want)
		}
	}
}

// Replies count whole until they are sent, so clients that do not take theirs are disconnected. A client that
// takes its reply at once gets it.
func TestUnreadRepliesCountWhole(t *testing.T) {
	t.Parallel()
	const size, limit, clients = 4 << 20, 16 << 20, 8
	text := strings.Repeat("x", size)
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"COPY": func(*engine.Session, []string) engine.Reply { return engine.Bulk(strings.Clone(text)) },
	}
	s := newTestServer(t, "--maxmemory-clients", "16mb")
	address := s.run(t, e, nil)
	for range clients {
		c := dial(t, address)
		must(t, c.Conn.(*net.TCPConn).SetReadBuffer(4<<10))
		c.send(strings.Repeat("COPY\r\n", 4)) // more than buffers on the way take
	}
	eventually(t, "who takes nothing is disconnected", func() bool { return s.clients.Disconnected() >= clients-limit/size })
	if used := s.clients.Used(); used > limit+size {
		t.Errorf("clients hold %d bytes", used)
	}
	reader := dial(t, address)
	reader.send("COPY\r\n")
	reader.expect("$4194304\r\n")
	if n, err := io.CopyN(io.Discard, reader.r, size+2); err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}
