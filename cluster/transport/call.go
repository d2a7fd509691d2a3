package transport

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	raftPath    = "/raft" // rafthttp's
	controlPath = "/cluster/"
	storesPath  = "/cluster/stores"
	// controlHeader marks the requests of nodes. Browsers cannot send it to another site unasked.
	controlHeader = "Mayfly-Cluster"

	dialTimeout   = time.Second
	bodyTimeout   = 10 * time.Second // for the body of a request
	answerTimeout = 5 * time.Minute  // at most; contexts end most earlier
	mostAnswer    = 1 << 20          // bytes of the answer to a control request
)

// RefusedError is a node's refusal of a control request.
type RefusedError struct {
	Status int    // of HTTP
	Reason string // one line
}

func (e *RefusedError) Error() string { return e.Reason }

// url returns the address of a path at a node.
func (l *Listener) url(addr, path string) string {
	if l.o.Credentials == nil {
		return "http://" + addr + path
	}
	return "https://" + addr + path
}

// Call sends a control request, encoded as JSON, to the node at addr and decodes its answer.
// A *RefusedError is the error for a request that the node has refused.
func (l *Listener) Call(ctx context.Context, addr, path string, request, answer any) error {
	body, err := json.Marshal(request)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, l.url(addr, path), bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set(controlHeader, "1")
	response, err := l.client.Do(r)
	if err != nil {
		return plain(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, mostAnswer+1))
	switch {
	case err != nil:
		return err
	case len(text) > mostAnswer:
		return fmt.Errorf("the answer is longer than %d bytes", mostAnswer)
	case response.StatusCode != http.StatusOK:
		return &RefusedError{response.StatusCode, firstLine(string(text))}
	}
	return json.Unmarshal(text, answer)
}

// firstLine returns what of a refusal may be shown.
func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return -1
		}
		return r
	}, text[:min(len(text), 500)])
}

// plain removes the method and the URL, which the caller knows.
func plain(err error) error {
	if inner, ok := err.(interface{ Unwrap() error }); ok && inner.Unwrap() != nil { // *url.Error
		return inner.Unwrap()
	}
	return err
}

func (l *Listener) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout, KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 3}}
	return dialer.DialContext(ctx, network, addr)
}

func (l *Listener) dialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := l.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	secure := tls.Client(conn, l.o.Credentials.client(addr, l.credentialsFailed))
	ctx, cancel := context.WithTimeout(ctx, handshakeTimeout)
	defer cancel()
	if err := secure.HandshakeContext(ctx); err != nil {
		conn.Close()
		if l.o.Credentials.differs(err) {
			return nil, fmt.Errorf("the node at %s %s", addr, anotherSecret)
		}
		return nil, err
	}
	return secure, nil
}
