package server

import (
	"crypto/tls"
	"fmt"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// endlessEngine has a command that ends only when it is abandoned.
func endlessEngine(t testing.TB, running, ended chan struct{}) *fakeEngine {
	e := newFakeEngine()
	e.slow = "ENDLESS"
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"ENDLESS": func(s *engine.Session, _ []string) engine.Reply {
			close(running)
			eventually(t, "it is abandoned", s.Abandoned)
			close(ended)
			return engine.OK
		},
	}
	return e
}

// A command learns that its client has left, whether or not the client had sent more.
func TestAbandonedByClient(t *testing.T) {
	t.Parallel()
	for _, secure := range []bool{false, true} {
		t.Run(fmt.Sprint("TLS ", secure), func(t *testing.T) {
			t.Parallel()
			running, ended := make(chan struct{}), make(chan struct{})
			e := endlessEngine(t, running, ended)
			var s *Server
			var c *client
			if secure {
				var address string
				var known *tls.Config
				s, address, known = secureServerOf(t, e, "no")
				c = dialTLS(t, address, known)
			} else {
				s = newTestServer(t)
				c = dial(t, s.run(t, e, nil))
			}
			c.send("ENDLESS\r\n")
			<-running
			c.send("PING\r\n")
			drill.Check(t, c.Close())
			<-ended
			eventually(t, "the client is gone", func() bool { return s.Info().Connected == 0 })
		})
	}
}

// A command learns that it was killed, and that the server stops.
func TestAbandonedByServer(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*testing.T, *Server){
		"CLIENT KILL": func(_ *testing.T, s *Server) { s.Disconnect(func(*engine.Session) bool { return true }) },
		"stop": func(t *testing.T, s *Server) {
			drill.Report(t, s.Stop(t.Context()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			running, ended := make(chan struct{}), make(chan struct{})
			s := newTestServer(t)
			c := dial(t, s.run(t, endlessEngine(t, running, ended), nil))
			c.send("ENDLESS\r\n")
			<-running
			end(t, s)
			<-ended
		})
	}
}
