package server

import (
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
)

// sharedLog is a log that a test reads while a server writes.
type sharedLog struct {
	mu   sync.Mutex
	text strings.Builder // protected by mu
}

func (l *sharedLog) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *sharedLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// A browser or curl on the port gets one answer in HTTP that explains, and the log does not call it an
// attack.
func TestHTTPRequest(t *testing.T) {
	t.Parallel()
	s := newTestServer(t)
	log := new(sharedLog)
	s.log = zerolog.New(log)
	e := newFakeEngine()
	address := s.run(t, e, nil)
	for _, request := range []string{
		"GET / HTTP/1.1\r\nHost: localhost:6379\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\n\r\n", "HEAD / HTTP/1.0\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n\r\nPING\r\n", "OPTIONS * HTTP/1.1\r\n\r\n", "GET /healthz HTTP/1.1\r\n",
	} {
		got := exchange(t, address, request, 0)
		if !strings.HasPrefix(got, "HTTP/1.1 400 Bad Request\r\n") || !strings.Contains(got, "\r\n\r\nThis port speaks the Redis protocol, not HTTP") ||
			strings.Count(got, "HTTP/1.1") != 1 {
			t.Errorf("%q is answered with %q", request, got)
		}
	}
	eventually(t, "the log tells of it", func() bool { return strings.Contains(log.String(), "a client sent a request in HTTP") })
	if text := log.String(); strings.Contains(text, "attack") {
		t.Errorf("the log says %s", text)
	}
	if len(e.history()) > 0 {
		t.Errorf("requests were executed as commands: %s", e.history())
	}

	// These are no requests, or come after commands.
	for request, want := range map[string]string{
		command("SET", "k", "HTTP/1.1") + command("QUIT"): "+OK\r\n+OK\r\n",
		command("SET", "k", "v") + "POST / HTTP/1.1\r\n":  "+OK\r\n",
		"Host: x\r\n":       "",
		"POST / HTTP/2\r\n": "",
	} {
		got := exchange(t, address, request, 0)
		if strings.Contains(got, "HTTP/1.1 400") || want != got && got != "" {
			t.Errorf("%q is answered with %q, want %q", request, got, want)
		}
	}
}
