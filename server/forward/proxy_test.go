package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

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

// TestLeaderWithoutUsers: a leader that knows no users gets no command of a user who may not do everything,
// also if the user could do everything a moment ago. The client hears where the leader is.
func TestLeaderWithoutUsers(t *testing.T) {
	t.Parallel()
	var sent string
	p := New(Options{
		Leaders: oldLeader{}, Send: func(b []byte) error { sent += string(b); return nil }, Gone: func() error { return nil },
		Ended: func(net.Conn) bool { return false }, Stops: func() error { return nil }, Watch: func(func()) func() { return func() {} },
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

// silentLeader is a leader that does not reply. It notes the deadlines of reads.
type silentLeader struct {
	oldLeader
	net.Conn
	deadlines []time.Time
}

func (l *silentLeader) Dial(context.Context, uint64, *engine.SessionState) (net.Conn, error) {
	near, far := net.Pipe()
	go func() { _, _ = io.Copy(io.Discard, far) }()
	l.Conn = near
	return l, nil
}

func (l *silentLeader) SetReadDeadline(t time.Time) error {
	l.deadlines = append(l.deadlines, t)
	return l.Conn.SetReadDeadline(t)
}

// TestClientThatHangsUp: a client that leaves while its command waits ends the command at once, not with the
// next look: a command that blocks would take for it what others wait for.
func TestClientThatHangsUp(t *testing.T) {
	t.Parallel()
	var l silentLeader
	var left error
	stopped := false
	p := New(Options{
		Leaders: &l, Send: func([]byte) error { return nil }, Gone: func() error { return left }, Ended: func(net.Conn) bool { return false }, Stops: func() error { return nil },
		Watch: func(wake func()) func() {
			left = io.EOF
			wake()
			return func() { stopped = true }
		},
	})
	defer p.Close()
	p.Add(&engine.Forward{Commands: [][]string{{"BLPOP", "k", "0"}}, State: engine.SessionState{Proto: 2, Database: "0"}})
	if err := p.Flush(); !errors.Is(err, io.EOF) || !stopped {
		t.Errorf("the client gets %v; the watch is stopped: %v", err, stopped)
	}
	if n := len(l.deadlines); n < 2 || !l.deadlines[1].Equal(past) {
		t.Errorf("the read from the leader goes on after the client has left: its deadlines were %v", l.deadlines)
	}
}

// scripted is a leader that replies to each command with an error of a script. It counts them.
type scripted struct {
	oldLeader
	commands int
}

func (l *scripted) Dial(context.Context, uint64, *engine.SessionState) (net.Conn, error) {
	near, far := net.Pipe()
	go func() {
		buffer := make([]byte, 1<<10)
		for _, err := far.Read(buffer); err == nil; _, err = far.Read(buffer) {
			l.commands++
			_, _ = far.Write([]byte("-MOVED 1 x\r\n"))
		}
	}()
	return near, nil
}

// TestScriptThatSaysMoved: an error of a script that begins as that of a node which has not run the command
// is passed on: the script has run.
func TestScriptThatSaysMoved(t *testing.T) {
	t.Parallel()
	var l scripted
	var sent string
	p := New(Options{
		Leaders: &l, Send: func(b []byte) error { sent += string(b); return nil }, Gone: func() error { return nil },
		Ended: func(net.Conn) bool { return false }, Stops: func() error { return nil }, Watch: func(func()) func() { return func() {} },
	})
	defer p.Close()
	p.Add(&engine.Forward{Commands: [][]string{{"EVAL", "return redis.error_reply('MOVED 1 x')", "0"}}, State: engine.SessionState{Proto: 2, Database: "0"}})
	if err := p.Flush(); err != nil || sent != "-MOVED 1 x\r\n" || l.commands != 1 {
		t.Errorf("%v, the client gets %q of %d commands", err, sent, l.commands)
	}
}
