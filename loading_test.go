package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/server/config"

	"github.com/rs/zerolog"
)

// TestLoadingIsReported: a long start says how far it is, and says nothing more once it is over.
func TestLoadingIsReported(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.db"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		options []string
		loaded  int64
		want    string // empty: no line
	}{
		"half":          {nil, 3 << 20, `{"level":"info","mb":3,"of":5,"message":"loading"}`},
		"all":           {nil, 5 << 20, `{"level":"info","mb":5,"of":5,"message":"loading"}`},
		"half, a node":  {clusterOptions, 3 << 20, `{"level":"info","mb":3,"of":5,"message":"loading"}`},
		"it is waiting": {clusterOptions, 5 << 20, ""},
	} {
		t.Run(name, func(t *testing.T) {
			options, err := config.Load(append([]string{"--dir", dir}, tt.options...))
			if err != nil {
				t.Fatal(err)
			}
			var log logBuffer
			var loaded atomic.Int64
			loaded.Store(tt.loaded)
			stop := reportLoading(options.Settings(), zerolog.New(&log), &loaded, time.Millisecond)
			if tt.want != "" {
				waitFor(t, "a line", func() bool { return strings.Contains(log.String(), tt.want) })
			} else {
				time.Sleep(20 * time.Millisecond)
			}
			stop()
			text := log.String()
			if tt.want == "" && text != "" {
				t.Errorf("the log is %q", text)
			}
			time.Sleep(5 * time.Millisecond)
			if later := log.String(); later != text {
				t.Errorf("after the end came %q", strings.TrimPrefix(later, text))
			}
		})
	}
}

// clusterOptions make a server a node.
var clusterOptions = []string{"--cluster-id", "a", "--cluster-addr", "127.0.0.1:1", "--cluster-peers", "a=127.0.0.1:1"}

// TestStartIsExtended: while data is loaded or a leader is awaited, systemd is asked for more time.
func TestStartIsExtended(t *testing.T) {
	systemd := newNotifySocket(t)
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.db"), make([]byte, 5<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		options []string
		loaded  int64
		want    string
	}{
		{nil, 3 << 20, "loading: 3 of 5 MB"},
		{nil, 5 << 20, "loading"},
		{clusterOptions, 3 << 20, "loading: 3 of 5 MB"},
		{clusterOptions, 5 << 20, "waiting for a leader of the cluster"},
	} {
		options, err := config.Load(append([]string{"--dir", dir, "--supervised", "systemd"}, tt.options...))
		if err != nil {
			t.Fatal(err)
		}
		var loaded atomic.Int64
		loaded.Store(tt.loaded)
		stop := notifyStarting(options.Settings(), zerolog.Nop(), &loaded, time.Millisecond)
		got := systemd.next()
		stop()
		systemd.drain()
		if want := "EXTEND_TIMEOUT_USEC=60000000\nSTATUS=" + tt.want; got != want {
			t.Errorf("%v, %d bytes loaded: systemd is told %q, want %q", tt.options, tt.loaded, got, want)
		}
	}
	time.Sleep(5 * time.Millisecond)
	if got := systemd.drain(); got > 0 {
		t.Errorf("%d messages came after the end", got)
	}
}

// notifySocket is a socket that stands for systemd's.
type notifySocket struct {
	t    *testing.T
	path string
	conn net.PacketConn
}

// newNotifySocket sets NOTIFY_SOCKET.
func newNotifySocket(t *testing.T) *notifySocket {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &notifySocket{t, path, conn}
}

// next waits for a message.
func (s *notifySocket) next() string {
	s.t.Helper()
	var text [1000]byte
	if err := s.conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		s.t.Fatal(err)
	}
	n, _, err := s.conn.ReadFrom(text[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text[:n])
}

// drain returns how many messages wait, and drops them.
func (s *notifySocket) drain() (n int) {
	s.t.Helper()
	var text [1000]byte
	for ; ; n++ {
		if err := s.conn.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
			s.t.Fatal(err)
		}
		if _, _, err := s.conn.ReadFrom(text[:]); err != nil {
			return n
		}
	}
}
