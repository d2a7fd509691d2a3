package transport

import (
	"cmp"
	"container/list"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"

	"github.com/rs/zerolog"
)

// ListenOptions says where and how a node listens.
type ListenOptions struct {
	Addr        string       // cluster-addr, host:port
	Credentials *Credentials // nil: no TLS; Load allows that on loopback only
	// Hosts returns the hosts of the cluster's nodes: the certificate file of a node that connects must be
	// valid for one of them. nil: each certificate that the CA has signed for clients is a node's.
	Hosts func() []string
	Log   zerolog.Logger

	patience      time.Duration // for a handshake, and for headers; 0: handshakeTimeout
	writePatience time.Duration // 0: writeTimeout
}

// The bounds of what unauthenticated connections cost.
const (
	mostPending      = 128             // connections that have not shown who they are; the oldest makes room
	mostConns        = 1024            // of nodes
	handshakeTimeout = 5 * time.Second // for the whole TLS handshake, and for the headers of a request
	idleTimeout      = time.Minute
	writeTimeout     = 5 * time.Second // for the other side to take some bytes
	mostHeaderBytes  = 16 << 10
)

// Listener is the door of a node for the other nodes. It lives as long as the process; transports come and go
// on it. Safe for concurrent use.
type Listener struct {
	o         ListenOptions
	tcp       net.Listener
	tls       *tls.Config // nil: none
	server    *http.Server
	client    *http.Client
	control   atomic.Pointer[http.Handler]
	transport atomic.Pointer[Transport]
	log       *limitedLog

	ready  chan net.Conn // handshake done
	closed chan struct{}
	once   sync.Once

	mu      sync.Mutex
	pending *list.List // of net.Conn, oldest first
	conns   int
}

// Listen opens the door. Requests are refused with 503 until Handle and New. No request of the process goes
// through a proxy of the environment from then on.
func Listen(o ListenOptions) (*Listener, error) {
	if o.Credentials == nil && !onLoopback(o.Addr) {
		return nil, fmt.Errorf("cluster-addr %s is not on loopback and there are no credentials", o.Addr)
	}
	if err := refuseProxies(); err != nil {
		return nil, err
	}
	o.patience = cmp.Or(o.patience, handshakeTimeout)
	o.writePatience = cmp.Or(o.writePatience, writeTimeout)
	config := net.ListenConfig{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	tcp, err := config.Listen(context.Background(), "tcp", o.Addr)
	if err != nil {
		return nil, fmt.Errorf("cannot listen on cluster-addr: %w", err)
	}
	l := &Listener{o: o, tcp: tcp, ready: make(chan net.Conn), closed: make(chan struct{}), pending: list.New(), log: newLimitedLog(o.Log)}
	if o.Credentials != nil {
		l.tls = o.Credentials.server(o.Hosts, l.credentialsFailed)
	}
	l.client = &http.Client{Transport: &http.Transport{
		DialContext: l.dial, DialTLSContext: l.dialTLS, MaxIdleConnsPerHost: 2, IdleConnTimeout: 30 * time.Second,
		DisableCompression: true, ResponseHeaderTimeout: answerTimeout, ExpectContinueTimeout: bodyTimeout,
	}, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	l.server = &http.Server{
		Handler: http.HandlerFunc(l.serve), ReadHeaderTimeout: o.patience, IdleTimeout: idleTimeout, MaxHeaderBytes: mostHeaderBytes,
		ErrorLog: log.New(debugWriter{o.Log}, "", 0), ConnState: l.connState,
	}
	go l.accept()
	go func() { _ = l.server.Serve(handshaken{l}) }() // ends with Close
	return l, nil
}

// refuseProxies makes rafthttp connect to the nodes themselves, whatever HTTP_PROXY and HTTPS_PROXY say: its
// connections have no other setting for that, and Go reads the environment once.
func refuseProxies() error {
	return errors.Join(os.Setenv("NO_PROXY", "*"), os.Setenv("no_proxy", "*"))
}

// Handle sets the handler of control requests, those to paths under /cluster/ but for stores and streams.
func (l *Listener) Handle(h http.Handler) { l.control.Store(&h) }

// Addr returns the address on which it listens.
func (l *Listener) Addr() string { return l.tcp.Addr().String() }

// Close ends all connections.
func (l *Listener) Close() error {
	l.once.Do(func() { close(l.closed) })
	err := l.tcp.Close()
	l.mu.Lock()
	var pending []net.Conn
	for e := l.pending.Front(); e != nil; e = e.Next() {
		pending = append(pending, e.Value.(net.Conn))
	}
	l.mu.Unlock()
	for _, conn := range pending {
		conn.Close() // it locks l.mu
	}
	l.client.CloseIdleConnections()
	return errors.Join(err, ignoreClosed(l.server.Close()))
}

func ignoreClosed(err error) error {
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}

func (l *Listener) credentialsFailed(err error) {
	l.o.Log.Warn().Msg("the cluster's certificates before stay in use: " + err.Error())
}

// accept takes connections. Each shows in a goroutine of its own who it is.
func (l *Listener) accept() {
	for {
		tcp, err := l.tcp.Accept()
		if err != nil {
			select {
			case <-l.closed:
				return
			case <-time.After(50 * time.Millisecond): // no file descriptors, for example
				l.log.warn("accept", fmt.Sprintf("cannot accept a connection of another node: %v", err))
			}
			continue
		}
		conn := &boundedConn{Conn: tcp, listener: l}
		if !l.admit(conn) {
			tcp.Close()
			select {
			case <-l.closed:
				return
			default:
			}
			l.log.warn("many", fmt.Sprintf("%d connections of other nodes are open: a further one from %s is refused", mostConns, tcp.RemoteAddr()))
			continue
		}
		if l.tls == nil {
			l.hand(conn)
			continue
		}
		go l.handshake(conn)
	}
}

// admit counts a connection among those that have not shown who they are.
func (l *Listener) admit(conn *boundedConn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
		return false
	default:
	}
	if l.conns-l.pending.Len() >= mostConns {
		return false
	}
	if l.pending.Len() >= mostPending {
		oldest := l.pending.Front().Value.(*boundedConn)
		l.pending.Remove(oldest.place)
		oldest.place = nil
		oldest.Conn.Close() // its user notices
	}
	l.conns++
	conn.place = l.pending.PushBack(conn)
	return true
}

// known ends the time in which a connection may be closed to make room.
func (l *Listener) known(conn *boundedConn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if conn.place != nil {
		l.pending.Remove(conn.place)
		conn.place = nil
	}
}

func (l *Listener) handshake(conn *boundedConn) {
	secure := tls.Server(conn, l.tls)
	ctx, cancel := context.WithTimeout(context.Background(), l.o.patience)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		reason := err.Error()
		if l.o.Credentials.differs(err) {
			host, _, _ := net.SplitHostPort(conn.RemoteAddr().String())
			reason = fmt.Sprintf("the node at %s %s", host, anotherSecret)
		}
		l.log.warn("handshake", fmt.Sprintf("an unauthenticated connection from %s is refused: %s", conn.RemoteAddr(), reason))
		return
	}
	l.known(conn)
	l.hand(secure)
}

// hand gives a connection to the HTTP server.
func (l *Listener) hand(conn net.Conn) {
	select {
	case l.ready <- conn:
	case <-l.closed:
		conn.Close()
	}
}

// connState hears that a connection without TLS has sent something.
func (l *Listener) connState(conn net.Conn, state http.ConnState) {
	if plain, ok := conn.(*boundedConn); ok && state == http.StateActive {
		l.known(plain)
	}
}

// handshaken is the listener that the HTTP server sees.
type handshaken struct{ l *Listener }

func (h handshaken) Accept() (net.Conn, error) {
	select {
	case conn := <-h.l.ready:
		return conn, nil
	case <-h.l.closed:
		return nil, net.ErrClosed
	}
}

func (h handshaken) Close() error   { return nil }
func (h handshaken) Addr() net.Addr { return h.l.tcp.Addr() }

// boundedConn bounds how long the other side may take to read, and leaves the count of connections when it is
// closed.
type boundedConn struct {
	net.Conn
	listener *Listener
	place    *list.Element // in pending; listener.mu guards it
	once     sync.Once
	free     atomic.Bool // see freeBounds
}

// NetConn returns the connection below.
func (c *boundedConn) NetConn() net.Conn { return c.Conn }

// freeBounds ends the bounds of a connection, which is of a client of another node from now on: the limits on
// clients are for it.
func freeBounds(conn net.Conn) {
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if bounded, ok := conn.(*boundedConn); ok {
		bounded.free.Store(true)
		bounded.leave()
	}
}

func (c *boundedConn) Write(b []byte) (int, error) {
	if c.free.Load() {
		return c.Conn.Write(b)
	}
	if err := c.SetWriteDeadline(clock.Deadline(c.listener.o.writePatience)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

func (c *boundedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// leave takes the connection out of the count.
func (c *boundedConn) leave() {
	c.once.Do(func() {
		c.listener.known(c)
		c.listener.mu.Lock()
		c.listener.conns--
		c.listener.mu.Unlock()
	})
}

// serve gives a request to whom it is for.
func (l *Listener) serve(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	switch {
	case path == raftPath || strings.HasPrefix(path, raftPath+"/"):
		if t := l.transport.Load(); t != nil {
			t.serveRaft(w, r)
			return
		}
	case r.Header.Get(controlHeader) == "":
		panic(http.ErrAbortHandler) // a browser, for example: no answer
	case path == storesPath:
		if t := l.transport.Load(); t != nil {
			t.serveStores(w, r)
			return
		}
	case path == streamPath:
		if t := l.transport.Load(); t != nil {
			t.serveStream(w, r)
			return
		}
	case strings.HasPrefix(path, controlPath):
		if control := l.control.Load(); control != nil {
			_ = http.NewResponseController(w).SetReadDeadline(clock.Deadline(bodyTimeout))
			(*control).ServeHTTP(w, r)
			return
		}
	default:
		http.Error(w, "unknown path", http.StatusNotFound)
		return
	}
	http.Error(w, "this node takes no part yet", http.StatusServiceUnavailable)
}

// debugWriter logs what the HTTP server complains about.
type debugWriter struct{ log zerolog.Logger }

func (d debugWriter) Write(b []byte) (int, error) {
	d.log.Debug().Msg(strings.TrimSpace(string(b)))
	return len(b), nil
}
