package forward

import (
	"context"
	"net"
	"testing"

	"mayfly/commands/engine"
)

// oldLeader is a leader that knows no users.
type oldLeader struct{}

func (oldLeader) Leader() (uint64, <-chan struct{}) { return 2, nil }
func (oldLeader) LeaderReachable(uint64) bool       { return true }
func (oldLeader) Dial(_ context.Context, _ uint64, state *engine.SessionState) (net.Conn, error) {
	if state.Restricted {
		return nil, engine.ErrKnowsNoUsers
	}
	near, far := net.Pipe()
	go func() {
		buffer := make([]byte, 1<<10)
		for _, err := far.Read(buffer); err == nil; _, err = far.Read(buffer) {
			_, _ = far.Write([]byte("+OK\r\n"))
		}
	}()
	return near, nil
}

// TestLeaderWithoutUsers: a leader that knows no users gets no command of a user who may not do everything, also
// if the user could do everything a moment ago. The client hears where the leader is.
func TestLeaderWithoutUsers(t *testing.T) {
	t.Parallel()
	var sent string
	p := New(Options{
		Leaders: oldLeader{}, Send: func(b []byte) error { sent += string(b); return nil }, Gone: func() error { return nil },
		Ended: func(net.Conn) bool { return false },
	})
	defer p.Close()
	for _, tt := range []struct {
		user       string
		restricted bool
		moved      string
		reply      string
	}{
		{"u", false, "MOVED 7 a:1", "+OK\r\n"}, {"u", true, "MOVED 7 a:1", "-MOVED 7 a:1\r\n"}, {"u", true, "", "-" + engine.ErrNotRun.Error() + "\r\n"},
		{"u", false, "MOVED 7 a:1", "+OK\r\n"},
	} {
		sent = ""
		p.Add(&engine.Forward{
			Commands: [][]string{{"GET", "k"}}, State: engine.SessionState{Proto: 2, Database: "0", User: tt.user, Restricted: tt.restricted}, Moved: tt.moved,
		})
		if err := p.Flush(); err != nil || sent != tt.reply {
			t.Errorf("%+v: got %q, %v", tt, sent, err)
		}
	}
}
