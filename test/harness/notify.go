package harness

import (
	"net"
	"path/filepath"
	"testing"
	"time"

	"mayfly/test/drill"
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
	drill.Check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	t.Setenv("NOTIFY_SOCKET", path)
	return &NotifySocket{t, conn}
}

// Next waits for a message.
func (s *NotifySocket) Next() string {
	s.t.Helper()
	var text [1000]byte
	drill.Check(s.t, s.conn.SetReadDeadline(time.Now().Add(Patience)))
	n, _, err := s.conn.ReadFrom(text[:])
	drill.Check(s.t, err)
	return string(text[:n])
}
