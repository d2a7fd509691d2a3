package metrics

import (
	"container/list"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"mayfly/commands"
)

// This file bounds what clients of the HTTP server can cost, and refuses requests that a web page makes.

// limitListener bounds the number of connections at a time. A new one takes the place of the one that has
// waited the longest without a request under way. So kept-alive and silent connections keep no other out.
type limitListener struct {
	net.Listener
	most   int
	closed chan struct{}
	close  func() error // once
	freed  chan struct{}

	mu   sync.Mutex // protects what follows
	open int
	idle list.List // of connections without a request under way, the one that waits the longest first
}

func newLimitListener(ln net.Listener, most int) *limitListener {
	l := &limitListener{Listener: ln, most: most, closed: make(chan struct{}), freed: make(chan struct{}, 1)}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return ln.Close()
	})
	return l
}

// Accept waits for a connection and makes room for it. If all others have requests under way, it waits for the
// end of one.
func (l *limitListener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	for !l.takePlace() {
		select {
		case <-l.freed:
		case <-l.closed:
			_ = nc.Close() // it was not served
			return nil, net.ErrClosed
		}
	}
	c := &limitedConn{Conn: nc, listener: l}
	c.rest()
	return c, nil
}

// Close ends Accept, also one that waits for a place.
func (l *limitListener) Close() error { return l.close() }

// takePlace takes a place for a connection if there is one or can be made.
func (l *limitListener) takePlace() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		oldest := l.idle.Front()
		if oldest == nil {
			return false
		}
		oldest.Value.(*limitedConn).endLocked()
	}
	l.open++
	return true
}

// limitedConn is a connection of a limitListener. The listener's mutex protects its fields.
type limitedConn struct {
	net.Conn
	listener *limitListener
	waiting  *list.Element // in listener.idle; nil while a request is under way
	ended    bool
}

// rest notes that no request is under way.
func (c *limitedConn) rest() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if !c.ended && c.waiting == nil {
		c.waiting = c.listener.idle.PushBack(c)
		c.listener.notify()
	}
}

// work notes that a request is under way.
func (c *limitedConn) work() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.stopWaitingLocked()
}

func (c *limitedConn) stopWaitingLocked() {
	if c.waiting != nil {
		c.listener.idle.Remove(c.waiting)
		c.waiting = nil
	}
}

// endLocked closes the connection and frees its place.
func (c *limitedConn) endLocked() error {
	if c.ended {
		return net.ErrClosed
	}
	c.ended = true
	c.stopWaitingLocked()
	c.listener.open--
	c.listener.notify()
	return c.Conn.Close()
}

// notify wakes an Accept that waits for a place.
func (l *limitListener) notify() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

func (c *limitedConn) Close() error {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.endLocked()
}

type connKey struct{}

// withConn makes a connection known to the requests on it.
func withConn(ctx context.Context, nc net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, nc)
}

// gated answers requests with a handler if their host is known. Connections rest between requests.
func gated(hosts knownHosts, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*limitedConn); ok {
			c.work()
			defer c.rest()
		}
		if !hosts.has(r.Host) {
			http.Error(w, fmt.Sprintf("unknown host %.100q: use an IP address or localhost, or set the option metrics-hosts", r.Host), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// knownHosts are the names under which the server may be addressed, in lower case, besides IP addresses and
// localhost. A web page can make its own name mean this machine (DNS rebinding) and then read the answers,
// but it cannot send another name.
type knownHosts []string

// anyHost among the names accepts every host.
const anyHost = "*"

// newKnownHosts returns the host of the address to listen on, the machine's name, and more names.
func newKnownHosts(address string, names []string) knownHosts {
	hosts := make(knownHosts, 0, len(names)+2)
	if host, _, err := net.SplitHostPort(address); err == nil && host != "" {
		hosts = append(hosts, strings.ToLower(host))
	}
	if host, err := os.Hostname(); err == nil {
		hosts = append(hosts, strings.ToLower(host))
	}
	for _, name := range names {
		hosts = append(hosts, strings.ToLower(name))
	}
	return hosts
}

// has reports whether the Host of a request is known. A request of HTTP/1.0 may have none; no browser sends
// that.
func (k knownHosts) has(hostPort string) bool {
	host := hostPort
	if h, _, err := net.SplitHostPort(hostPort); err == nil {
		host = h
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if _, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return true
	}
	return host == "" || host == "localhost" || slices.Contains(k, host) || slices.Contains(k, anyHost)
}

// serveCommandLine answers with the command line as pprof.Cmdline does, but without passwords.
func serveCommandLine(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprint(w, strings.Join(redactedArguments(os.Args), "\x00")) // the client may have gone
}

// redactedArguments returns the arguments of a command line without the values of secret options.
func redactedArguments(args []string) []string {
	shown := slices.Clone(args)
	secret := false
	for i, arg := range shown {
		if name, isOption := strings.CutPrefix(arg, "--"); isOption {
			name, _, hasValue := strings.Cut(name, "=")
			if secret = commands.IsSecretOption(name); secret && hasValue {
				shown[i] = "--" + name + "=(redacted)"
			}
		} else if secret {
			shown[i] = "(redacted)"
		}
	}
	return shown
}

// limited bounds how many requests a handler answers at a time.
func limited(most int, next http.HandlerFunc) http.HandlerFunc {
	places := make(chan struct{}, most)
	return func(w http.ResponseWriter, r *http.Request) {
		select {
		case places <- struct{}{}:
			defer func() { <-places }()
			next(w, r)
		default:
			http.Error(w, "too many requests at a time, try again later", http.StatusServiceUnavailable)
		}
	}
}
