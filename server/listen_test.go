package server

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mayfly/test/drill"

	"golang.org/x/sys/unix"
)

// ownHost is an address of the loopback interface for one test alone: the ports below are free there. It
// belongs to the one who listens on the port discard.
func ownHost(t testing.TB) string {
	t.Helper()
	for range 100 {
		host := fmt.Sprintf("127.%d.%d.%d", 1+rand.IntN(254), rand.IntN(256), 1+rand.IntN(254))
		if ln, err := net.Listen("tcp4", net.JoinHostPort(host, discard)); err == nil {
			t.Cleanup(func() { _ = ln.Close() })
			return host
		}
	}
	t.Fatal("no address is free")
	return ""
}

// Ports of a host that a test has to itself. No process of the machine listens on them on all hosts.
var (
	port       = freePort()
	securePort = freePort()
	otherPort  = freePort()
	discard    = strconv.Itoa(freePort())
)

// freePort is a port on which no process listens, in a range that no connections are made from. It gives each
// port once. The tests of other packages have other ranges.
func freePort() int {
	for {
		n := int(lastPort.Add(1))
		if ln, err := net.Listen("tcp", fmt.Sprint(":", n)); err == nil && ln.Close() == nil {
			return n
		}
	}
}

// lastPort is the port that freePort has tried last.
var lastPort = func() *atomic.Int64 {
	n := new(atomic.Int64)
	n.Store(24_000 + rand.Int64N(7_000))
	return n
}()

func TestListen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "s")
	host := ownHost(t)
	address, secret := fmt.Sprint(host, ":", port), fmt.Sprint(host, ":", securePort)
	a := newAuthority(t)
	a.sign("server", &x509.Certificate{})
	s := newTestServer(t, "--port", strconv.Itoa(port), "--bind", host, "--unixsocket", path,
		"--tls-port", strconv.Itoa(securePort), "--tls-cert-file", a.file("server.crt"), "--tls-key-file", a.file("server.key"), "--tls-auth-clients", "no")
	listeners, err := listen(s.Settings())
	drill.Check(t, err)
	s.serve(newFakeEngine(), listeners)
	for _, want := range []string{"tcp " + address, "tcp " + secret, "unix " + path} {
		if !slices.Contains(s.Addresses(), want) {
			t.Errorf("does not listen on %s but on %v", want, s.Addresses())
		}
	}
	hello := dialTLS(t, secret, &tls.Config{InsecureSkipVerify: true})
	hello.send("QUIT\r\n")
	hello.expect("+OK\r\n")
	hello.expectEnd()
	nc, err := net.Dial("unix", path)
	must(t, err)
	c := newClient(t, nc)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	_ = hello.Close()
	eventually(t, "one client is left", func() bool { return s.Info().Connected == 1 })
	if sessions := s.Sessions(); len(sessions) != 1 || sessions[0].Addr != path+":0" {
		t.Errorf("sessions %+v", sessions)
	}
	drill.Report(t, s.Stop(t.Context()))
	if _, err := listen(newTestServer(t, "--port", "0").Settings()); err == nil {
		t.Error("content with nothing to listen on")
	}
}

func TestMaxClients(t *testing.T) {
	t.Parallel()
	s := newTestServer(t, "--maxclients", "2")
	address := s.run(t, newFakeEngine(), nil)
	a, b := dial(t, address), dial(t, address)
	for _, c := range []*client{a, b} {
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
	}
	c := dial(t, address)
	c.expect("-ERR max number of clients reached\r\n")
	c.expectEnd()
	_ = a.Close()
	eventually(t, "one client is left", func() bool { return s.Info().Connected == 1 })
	c = dial(t, address)
	c.send("PING\r\n")
	c.expect("+PONG\r\n")
	if info := s.Info(); info.Rejected != 1 || info.TotalConnections != 3 || info.Connected != 2 {
		t.Errorf("counted %+v", info)
	}
}

// foreign is a connection that comes from another machine.
type foreign struct{ *net.TCPConn }

func (foreign) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }

// foreigners is a listener on the loopback interface whose clients seem to come from other machines.
type foreigners struct{ net.Listener }

func (l foreigners) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return foreign{nc.(*net.TCPConn)}, nil
}

func TestProtectedMode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options []string
		denied  bool
	}{
		{nil, true},
		{[]string{"--protected-mode", "no"}, false},
		{[]string{"--requirepass", "secret"}, false},
	} {
		s := newTestServer(t, c.options...)
		list, err := listenTCP([]string{ownHost(t)}, port, 0)
		drill.Check(t, err)
		s.engine = newFakeEngine()
		s.mostFiles.Store(10)
		s.listeners = map[net.Listener]*tls.Config{list[0]: nil}
		s.acceptors.Go(func() { s.accept(foreigners{list[0]}, false) })
		client := dial(t, list[0].Addr().String())
		client.send("PING\r\n")
		if c.denied {
			client.expect(denied)
			client.expectEnd()
		} else {
			client.expect("+PONG\r\n")
		}
		_ = client.Close()
		drill.Report(t, s.Stop(t.Context()))
	}
	if !strings.HasPrefix(denied, "-DENIED ") || strings.Count(denied, "\n") != 1 {
		t.Error("the refusal is not one error line")
	}
}

func TestIsLocal(t *testing.T) {
	t.Parallel()
	for ip, want := range map[string]bool{
		"127.0.0.1": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"192.0.2.1": false, "10.0.0.1": false, "2001:db8::1": false, "0.0.0.0": false,
	} {
		if got := isLocal(&net.TCPAddr{IP: net.ParseIP(ip)}); got != want {
			t.Errorf("%s: %v", ip, got)
		}
	}
}

func TestKeepAlive(t *testing.T) {
	t.Parallel()
	for _, seconds := range []int{120, 0} {
		s := newTestServer(t, "--tcp-keepalive", strconv.Itoa(seconds))
		c := dial(t, s.run(t, newFakeEngine(), nil))
		c.send("PING\r\n")
		c.expect("+PONG\r\n")
		check := func(fd uintptr) {
			on, _ := syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_KEEPALIVE)
			interval, _ := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, unix.TCP_KEEPINTVL)
			if on != min(seconds, 1) || on == 1 && interval != 40 {
				t.Errorf("keepalive %d, interval %d", on, interval)
			}
		}
		s.each(func(c *conn) {
			c.mu.Lock()
			if c.fd != noFD {
				check(uintptr(c.fd))
			}
			c.mu.Unlock()
			c.whileWaiting(func() { must(t, c.socket.raw.raw.Control(check)) })
		})
	}
}

// exhausted is a listener for which the process has no file descriptors left.
type exhausted struct {
	accepts atomic.Int64
	closed  chan struct{}
	once    sync.Once
}

func (l *exhausted) Accept() (net.Conn, error) {
	if drill.Done(l.closed) {
		return nil, net.ErrClosed
	}
	l.accepts.Add(1)
	return nil, &net.OpError{Op: "accept", Err: os.NewSyscallError("accept4", syscall.EMFILE)}
}

func (l *exhausted) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *exhausted) Addr() net.Addr { return &net.TCPAddr{} }

func TestSpareFileRefuses(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp4", "127.0.0.1:0")
	drill.Check(t, err)
	defer closeListeners([]net.Listener{ln})
	var r spareFile
	r.refill()
	if r.refuse(ln) {
		t.Error("refused a client where none waits")
	}
	for range 2 { // the descriptor is there again
		c := dial(t, ln.Addr().String())
		drill.Await(t, "a client refused", func() bool { return r.refuse(ln) }) // the server comes again, too
		c.expectEnd()
	}
}
