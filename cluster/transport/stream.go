package transport

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/types"
)

// A stream is a connection between two members for another protocol. It begins as a request of HTTP that asks
// for that.
const streamPath = "/cluster/stream"

// The protocols of streams.
const (
	BusStream = "mayfly-bus" // published messages: see package bus
	// ClientStream carries the commands of one client. It neither counts among the connections of nodes nor
	// has their write timeout.
	ClientStream = "mayfly-client"
	// UserStream is a ClientStream that a node refuses which would not give the client the rights of its
	// user.
	UserStream = "mayfly-user"
)

var errNoPeer = errors.New("the node is not a member")

// Dial opens a stream to a member. The member gets it by [Options].Streams. The stream ends with the
// transport, and when the member is removed.
func (t *Transport) Dial(ctx context.Context, id uint64, protocol string) (net.Conn, error) {
	p := (*t.peers.Load())[id]
	if p == nil {
		return nil, errNoPeer
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout+handshakeTimeout)
	defer cancel()
	l := t.o.Listener
	dial := l.dial
	if l.o.Credentials != nil {
		dial = l.dialTLS
	}
	conn, err := dial(ctx, "tcp", p.addr)
	if err != nil {
		return nil, err
	}
	reader, err := t.upgrade(ctx, conn, p, protocol)
	if err != nil {
		conn.Close()
		return nil, err
	}
	return t.endWith(&stream{Conn: conn, reader: reader, closed: make(chan struct{})}, p), nil
}

// upgrade asks the other side for the stream.
func (t *Transport) upgrade(ctx context.Context, conn net.Conn, p *peer, protocol string) (*bufio.Reader, error) {
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, t.o.Listener.url(p.addr, streamPath), nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set(controlHeader, "1")
	r.Header.Set(clusterHeader, types.ID(t.o.Cluster).String())
	r.Header.Set(fromHeader, types.ID(t.o.ID).String())
	r.Header.Set(toHeader, types.ID(p.id).String())
	r.Header.Set("Connection", "Upgrade")
	r.Header.Set("Upgrade", protocol)
	if err := r.Write(conn); err != nil {
		return nil, err
	}
	reader := bufio.NewReader(conn)
	response, err := http.ReadResponse(reader, r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusSwitchingProtocols {
		defer response.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(response.Body, 1024)) // what is there
		return nil, &RefusedError{response.StatusCode, firstLine(string(text))}
	}
	return reader, nil
}

// serveStream takes a stream of a member.
func (t *Transport) serveStream(w http.ResponseWriter, r *http.Request) {
	id, err := types.IDFromString(r.Header.Get(fromHeader))
	p := (*t.peers.Load())[uint64(id)]
	protocol := r.Header.Get("Upgrade")
	serve := t.o.Streams[protocol]
	switch {
	case err != nil || r.Method != http.MethodGet || protocol != BusStream && protocol != ClientStream && protocol != UserStream:
		http.Error(w, "not a stream of a node", http.StatusBadRequest)
		return
	case r.Header.Get(clusterHeader) != types.ID(t.o.Cluster).String():
		http.Error(w, fmt.Sprintf("this node belongs to cluster %x", t.o.Cluster), http.StatusPreconditionFailed)
		return
	case r.Header.Get(toHeader) != types.ID(t.o.ID).String():
		http.Error(w, fmt.Sprintf("this node has id %x", t.o.ID), http.StatusPreconditionFailed)
		return
	case t.removed(uint64(id)):
		http.Error(w, "the sender was removed from the cluster", http.StatusGone)
		return
	case p == nil || serve == nil:
		http.Error(w, "the sender is unknown", http.StatusNotFound)
		return
	}
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		http.Error(w, "no stream", http.StatusInternalServerError)
		return
	}
	_, err = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+protocol+"\r\n\r\n")
	if err = errors.Join(err, conn.SetDeadline(time.Time{})); err != nil {
		conn.Close()
		return
	}
	if protocol != BusStream {
		freeBounds(conn)
	}
	serve(p.id, t.endWith(&stream{Conn: conn, reader: buffered.Reader, closed: make(chan struct{})}, p))
}

// stream is a connection whose first bytes may have been read already.
type stream struct {
	net.Conn
	reader *bufio.Reader
	once   sync.Once
	closed chan struct{}
}

func (s *stream) Read(b []byte) (int, error) { return s.reader.Read(b) }

// NetConn returns the connection below.
func (s *stream) NetConn() net.Conn { return s.Conn }

func (s *stream) Close() error {
	s.once.Do(func() { close(s.closed) })
	return s.Conn.Close()
}

// endWith makes a stream end with the transport and with the peer.
func (t *Transport) endWith(s *stream, p *peer) net.Conn {
	go func() {
		select {
		case <-t.context.Done():
		case <-p.finished:
		case <-s.closed:
		}
		s.Close()
	}()
	return s
}
