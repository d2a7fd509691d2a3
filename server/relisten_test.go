package server

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"

	"github.com/rs/zerolog"
)

// listening makes a server that listens on a host of its own, and a client on its port. Tests that close a
// listener are not parallel: a process that another test starts inherits the listener, which stays open until
// the process runs its own program.
func listening(t *testing.T, options ...string) (s *Server, host string, c *client) {
	t.Helper()
	host = ownHost(t)
	s = newTestServer(t, append([]string{"--port", strconv.Itoa(port), "--bind", host}, options...)...)
	must(t, s.Listen())
	e := newFakeEngine()
	s.serve(e, s.listeners)
	t.Cleanup(func() { must(t, s.Stop(context.WithoutCancel(t.Context()))) })
	return s, host, pinging(t, host, port)
}

// pinging returns a client that is served.
func pinging(t *testing.T, host string, port int) *client {
	t.Helper()
	c := dial(t, net.JoinHostPort(host, strconv.Itoa(port)))
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	return c
}

func isClosed(host string, port int) bool {
	nc, err := net.Dial("tcp", net.JoinHostPort(host, strconv.Itoa(port)))
	if err == nil {
		_ = nc.Close()
	}
	return err != nil
}

func (s *Server) set(name, value string) error { return s.ConfigSet([][2]string{{name, value}}) }

// CONFIG SET port listens on the new port and no longer on the old one. Connections stay.
func TestChangePort(t *testing.T) {
	s, host, c := listening(t)
	must(t, s.set("port", strconv.Itoa(otherPort)))
	pinging(t, host, otherPort)
	if !isClosed(host, port) {
		t.Error("the old port is open")
	}
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	if got := s.Addresses(); len(got) != 1 || got[0] != fmt.Sprint("tcp ", host, ":", otherPort) || s.Info().TCPPort != otherPort {
		t.Errorf("it listens on %q", got)
	}
	must(t, s.set("port", "0"))
	if !isClosed(host, otherPort) || len(s.Addresses()) != 0 {
		t.Error("port 0 is open")
	}
	must(t, s.set("port", strconv.Itoa(otherPort)))
	pinging(t, host, otherPort)
}

// A port that is in use changes nothing, also not what was set with it.
func TestChangePortInUse(t *testing.T) {
	s, host, _ := listening(t)
	ln, err := net.Listen("tcp4", host+":0")
	must(t, err)
	defer ln.Close()
	used := strconv.Itoa(ln.Addr().(*net.TCPAddr).Port)
	err = s.ConfigSet([][2]string{{"timeout", "77"}, {"port", used}})
	if err == nil || err.Error() != "ERR CONFIG SET failed (possibly related to argument 'port') - Unable to listen on this port. Check server logs." {
		t.Errorf("%v", err)
	}
	if settings := s.Settings(); settings.Port != port || settings.Timeout != 0 {
		t.Errorf("port %d, timeout %v", settings.Port, settings.Timeout)
	}
	pinging(t, host, port)
	if err := s.ConfigSet([][2]string{{"port", strconv.Itoa(otherPort)}, {"tls-port", used}}); err == nil {
		t.Error("TLS needs no certificate")
	}
	pinging(t, host, port)
	if !isClosed(host, otherPort) {
		t.Error("the new port is open")
	}
}

// CONFIG SET bind listens on the new addresses only, or on the old ones if it fails.
func TestChangeBind(t *testing.T) {
	s, host, _ := listening(t)
	other := ownHost(t)
	must(t, s.set("bind", other))
	pinging(t, other, port)
	if !isClosed(host, port) {
		t.Error("the old address is open")
	}
	for _, pairs := range [][][2]string{{{"bind", host}, {"port", strconv.Itoa(otherPort)}}, {{"port", strconv.Itoa(port)}, {"bind", other}}} {
		must(t, s.ConfigSet(pairs)) // in either order
	}
	err := s.set("bind", "192.0.2.1")
	if err == nil || err.Error() != "ERR CONFIG SET failed (possibly related to argument 'bind') - Failed to bind to specified addresses." {
		t.Errorf("%v", err)
	}
	pinging(t, other, port)
	if got := s.Settings().Bind; len(got) != 1 || got[0] != other {
		t.Errorf("bind is %q", got)
	}
}

// CONFIG SET tls-port opens a port for TLS, with the certificate that is set.
func TestChangeTLSPort(t *testing.T) {
	secure, _, known := secureServer(t, "yes")
	settings := secure.Settings()
	s, host, _ := listening(t, "--tls-cert-file", settings.TLSCertFile, "--tls-key-file", settings.TLSKeyFile, "--tls-ca-cert-file", settings.TLSCACertFile)
	must(t, s.set("tls-port", strconv.Itoa(securePort)))
	c := dialTLS(t, fmt.Sprint(host, ":", securePort), known)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	must(t, s.set("tls-cert-file", settings.TLSCertFile))
	must(t, s.set("tls-port", "0"))
	if !isClosed(host, securePort) {
		t.Error("the port is open")
	}
}

// The answers of CONFIG SET to what cannot be set are those of Redis.
func TestConfigSetAnswersAsRedis(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	s := newTestServer(t)
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"CONFIG": func(_ *engine.Session, args []string) engine.Reply {
			return engine.Fail(s.set(strings.Clone(args[2]), strings.Clone(args[3])))
		},
	}
	s.log = zerolog.Nop()
	ours := s.run(t, e, nil)
	ln, err := net.Listen("tcp4", "0.0.0.0:0") // in use at any address
	must(t, err)
	defer ln.Close()
	_, used, err := net.SplitHostPort(ln.Addr().String())
	must(t, err)
	for _, option := range [][2]string{
		{"databases", "8"}, {"DataBases", "16"}, {"daemonize", "yes"}, {"io-threads", "2"}, {"tcp-backlog", "3"}, {"unixsocket", "x"}, {"logfile", "x"}, {"pidfile", "a"},
		{"supervised", "no"}, {"cluster-enabled", "yes"}, {"port", "99999"}, {"port", "abc"}, {"Port", used}, {"MaxClients", "0"}, {"Replicaof", "x"}, {"nosuch", "1"},
		{"syslog-enabled", "yes"}, {"always-show-logo", "yes"}, {"aclfile", "x"}, {"rdbchecksum", "no"},
	} {
		in := command("CONFIG", "SET", option[0], option[1]) + "QUIT\r\n"
		if want, got := answer(t, redis, in), answer(t, ours, in); got != want {
			t.Errorf("%q: got %q, Redis answers %q", option, got, want)
		}
	}
}
