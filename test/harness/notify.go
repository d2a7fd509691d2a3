package harness

import (
	"net"
	"path/filepath"
	"testing"
	"time"
)

// NotifySocket is a socket that stands for systemd's.
type NotifySocket struct {
	t    *testing.T
	conn net.PacketConn
}

// NewNotifySocket opens a socket and sets NOTIFY_SOCKET for the processes that the test starts from then on,
// so the test cannot run beside others.
func NewNotifySocket(t *testing.T) *NotifySocket {
	t.Helper()
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenPacket("unixgram", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &NotifySocket{t, conn}
}

// Next waits for a message.
func (s *NotifySocket) Next() string {
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
