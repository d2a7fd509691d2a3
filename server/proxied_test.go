package server

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/server/forward"
	"mayfly/test/drill"
)

// followerEngine is an executor whose commands the leader runs.
type followerEngine struct {
	*fakeEngine
	leader net.Listener // nil: there is none
	asked  chan struct{}
}

func (e *followerEngine) Execute(s *engine.Session, args []string) engine.Outcome {
	if s.OnLoop {
		return engine.Outcome{Deferred: true}
	}
	return engine.Outcome{Forward: &engine.Forward{
		Commands: [][]string{{strings.Clone(args[0])}}, Writes: true, State: engine.SessionState{Proto: 2, Database: "0"},
	}}
}

func (e *followerEngine) Leaders(*engine.Session) forward.Leaders { return e }
func (e *followerEngine) LeaderReachable(uint64) bool             { return true }

func (e *followerEngine) Leader() (uint64, <-chan struct{}) {
	if e.leader != nil {
		return 1, nil
	}
	select {
	case e.asked <- struct{}{}:
	default:
	}
	return 0, make(chan struct{})
}

func (e *followerEngine) Dial(context.Context, uint64, *engine.SessionState) (net.Conn, error) {
	addr := e.leader.Addr()
	return net.Dial(addr.Network(), addr.String())
}

// TestStopOfAFollower: a follower that stops passes the replies on to commands that the leader has got. It
// tells the leader that nothing more comes, which ends what blocks there. The client hears nothing of what
// has no reply, as at a leader that stops.
func TestStopOfAFollower(t *testing.T) {
	t.Parallel()
	for name, replies := range map[string]string{"a reply is under way": ":1\r\n:2\r\n", "the second command blocks": ":1\r\n", "the first command blocks": ""} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ln, err := net.Listen("tcp", "127.0.0.1:0")
			drill.Check(t, err)
			defer ln.Close()
			s := newTestServer(t)
			c := dial(t, s.run(t, &followerEngine{fakeEngine: newFakeEngine(), leader: ln}, nil))
			c.send("INCR\r\nBLPOP\r\n")
			nc, err := ln.Accept()
			drill.Check(t, err)
			leader := newClient(t, nc)
			if begin, _ := leader.r.Peek(2); string(begin) == "*2" { // on a busy machine they have waited, and a note says so
				for range strings.Count(command("", "ms"), "\n") {
					_, err := leader.r.ReadString('\n')
					drill.Check(t, err)
				}
			}
			leader.expect(command("INCR") + command("BLPOP"))
			stopped := make(chan error)
			go func() { stopped <- s.Stop(t.Context()) }()
			leader.expectEnd()
			_, _ = io.WriteString(leader, replies) // the client misses them if this fails
			drill.Check(t, leader.Close())
			c.expect(replies)
			c.expectEnd()
			drill.Check(t, c.Close())
			drill.Check(t, <-stopped)
		})
	}
}

// TestStopWithoutLeader: a follower that stops sends no leader what has waited for one.
func TestStopWithoutLeader(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	e := &followerEngine{fakeEngine: newFakeEngine(), asked: make(chan struct{}, 1)}
	c := dial(t, s.run(t, e, nil))
	c.send("INCR\r\n")
	<-e.asked
	stopped := make(chan error)
	go func() { stopped <- s.Stop(t.Context()) }()
	c.expectEnd()
	drill.Check(t, c.Close())
	drill.Check(t, <-stopped)
}
