package harness

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// notifySocket is a socket that stands for systemd's.
type notifySocket struct {
	t    *testing.T
	path string
	conn net.PacketConn
}

// NewNotifySocket sets NOTIFY_SOCKET.
func NewNotifySocket(t *testing.T) *notifySocket {
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

// Next waits for a message.
func (s *notifySocket) Next() string {
	s.t.Helper()
	var text [1000]byte
	if err := s.conn.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		s.t.Fatal(err)
	}
	n, _, err := s.conn.ReadFrom(text[:])
	if err != nil {
		s.t.Fatal(err)
	}
	return string(text[:n])
}
