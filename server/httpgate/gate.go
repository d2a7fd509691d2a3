package httpgate

import (
	"container/list"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
)

// Listener bounds the number of connections at a time. A new one takes the place of the one that has
// waited the longest without a request under way. So kept-alive and silent connections keep no other out.
type Listener struct {
	net.Listener
	most   int
	closed chan struct{}
	close  func() error // once
	freed  chan struct{}

	mu   sync.Mutex // protects what follows
	open int
	idle list.List // of connections without a request under way, the one that waits the longest first
}

// NewListener bounds the connections of a listener to most at a time.
func NewListener(ln net.Listener, most int) *Listener {
	l := &Listener{Listener: ln, most: most, closed: make(chan struct{}), freed: make(chan struct{}, 1)}
	l.close = sync.OnceValue(func() error {
		close(l.closed)
		return ln.Close()
	})
	return l
}

// Accept waits for a connection and makes room for it. If all others have requests under way, it waits for
// the end of one.
func (l *Listener) Accept() (net.Conn, error) {
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
	c := &conn{Conn: nc, listener: l}
	c.rest()
	return c, nil
}

// Close ends Accept, also one that waits for a place.
func (l *Listener) Close() error { return l.close() }

// takePlace takes a place for a connection if there is one or can be made.
func (l *Listener) takePlace() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.most {
		oldest := l.idle.Front()
		if oldest == nil {
			return false
		}
		oldest.Value.(*conn).endLocked()
	}
	l.open++
	return true
}

// conn is a connection of a Listener. The listener's mutex protects its fields.
type conn struct {
	net.Conn
	listener *Listener
	waiting  *list.Element // in listener.idle; nil while a request is under way
	ended    bool
}

// rest notes that no request is under way.
func (c *conn) rest() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	if !c.ended && c.waiting == nil {
		c.waiting = c.listener.idle.PushBack(c)
		c.listener.notify()
	}
}

// work notes that a request is under way.
func (c *conn) work() {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	c.stopWaitingLocked()
}

func (c *conn) stopWaitingLocked() {
	if c.waiting != nil {
		c.listener.idle.Remove(c.waiting)
		c.waiting = nil
	}
}

// endLocked closes the connection and frees its place.
func (c *conn) endLocked() error {
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
func (l *Listener) notify() {
	select {
	case l.freed <- struct{}{}:
	default:
	}
}

func (c *conn) Close() error {
	c.listener.mu.Lock()
	defer c.listener.mu.Unlock()
	return c.endLocked()
}

type connKey struct{}

// WithConn makes a connection known to the requests on it. It may be one of TLS over one of a [Listener].
func WithConn(ctx context.Context, nc net.Conn) context.Context {
	if secure, ok := nc.(interface{ NetConn() net.Conn }); ok {
		nc = secure.NetConn()
	}
	return context.WithValue(ctx, connKey{}, nc)
}

// Handler answers requests with another handler if their host is known. Connections of a [Listener] rest
// between requests, and until a body has arrived. option is the option that adds hosts.
func Handler(hosts Hosts, option string, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if c, ok := r.Context().Value(connKey{}).(*conn); ok {
			if r.Body == http.NoBody {
				c.work()
			} else {
				r.Body = &arriving{r.Body, c}
			}
			defer c.rest()
		}
		if !hosts.has(r.Host) {
			http.Error(w, fmt.Sprintf("unknown host %.100q: use an IP address or localhost, or set the option %s", r.Host, option), http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// arriving is a body of a request. The request is under way once all of it has arrived: a client that sends
// slowly keeps no other out.
type arriving struct {
	io.ReadCloser
	conn *conn
}

func (a *arriving) Read(p []byte) (int, error) {
	n, err := a.ReadCloser.Read(p)
	if err != nil {
		a.conn.work()
	}
	return n, err
}

// Hosts are the names under which the server may be addressed, in lower case, besides IP addresses and
// localhost. A web page can make its own name mean this machine (DNS rebinding) and then read the answers,
// but it cannot send another name.
type Hosts []string

// anyHost among the names accepts every host.
const anyHost = "*"

// NewHosts returns the host of the address to listen on, the machine's name, and more names.
func NewHosts(address string, names []string) Hosts {
	hosts := make(Hosts, 0, len(names)+2)
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
func (k Hosts) has(hostPort string) bool {
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
