package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/rs/zerolog"
)

// testTimeout is how long a test waits for what should happen at once.
const testTimeout = 30 * time.Second

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// The cookie holds for twelve hours, and for one password.
func TestSessions(t *testing.T) {
	t.Parallel()
	now := time.Duration(1)
	s := sessions{now: func() time.Duration { return now }}
	cookie := s.begin("secret")
	if len(cookie) < 26 || cookie == s.begin("secret") {
		t.Errorf("the cookie %q can be guessed", cookie)
	}
	now += 12*time.Hour - 1
	if !s.has(cookie, "secret") || s.has(cookie[1:], "secret") || s.has("", "secret") {
		t.Error("before its end")
	}
	now++
	if s.has(cookie, "secret") {
		t.Error("after twelve hours")
	}
	cookie = s.begin("secret")
	if s.has(cookie, "other") || s.has(cookie, "secret") {
		t.Error("it outlives its password")
	}
	first := s.begin("secret")
	now++
	for range maxSessions {
		s.begin("secret")
	}
	if len(s.list) != maxSessions || s.has(first, "secret") {
		t.Errorf("there are %d sessions", len(s.list))
	}
	now += 13 * time.Hour
	if s.begin("secret"); len(s.list) != 1 {
		t.Errorf("of sessions that have ended %d stay", len(s.list)-1)
	}
}

// pipes is a listener whose connections have no buffer, so that a client that does not read is noticed at once.
type pipes struct {
	conns chan net.Conn
	done  context.Context
}

func (l *pipes) Accept() (net.Conn, error) {
	select {
	case nc := <-l.conns:
		return nc, nil
	case <-l.done.Done():
		return nil, net.ErrClosed
	}
}
func (l *pipes) Close() error   { return nil }
func (l *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 8379} }

// fakeBackend is a server whose connections a function serves.
type fakeBackend struct {
	serve    func(net.Conn)
	denies   *atomic.Bool // nil: it does not
	password string
	opened   func(addr string, known bool) // nil: it does not matter
}

func (b fakeBackend) Password() string     { return b.password }
func (b fakeBackend) Denies(net.Addr) bool { return b.denies != nil && b.denies.Load() }
func (b fakeBackend) Open(addr string, known bool) (net.Conn, error) {
	if b.opened != nil {
		b.opened(addr, known)
	}
	if b.serve == nil {
		return nil, errors.New("there is none")
	}
	near, far := net.Pipe()
	go b.serve(far)
	return near, nil
}

// client is a client's end of a connection. It knows when the server has closed the other one.
type client struct {
	net.Conn
	closed <-chan struct{}
}

// awaitClosed waits, without reading, until the server has closed the connection.
func (c client) awaitClosed(t *testing.T) {
	t.Helper()
	select {
	case <-c.closed:
	case <-time.After(testTimeout):
		t.Error("the connection does not end")
	}
}

// impatient are the times of a server that waits for little. A busy machine does within them what takes no time.
var impatient = times{read: time.Second, answer: time.Second, idle: time.Hour}

// serve returns a way to connect to a server.
func serve(t *testing.T, b Backend, waits times) (dial func() client) {
	t.Helper()
	l := &pipes{make(chan net.Conn), t.Context()}
	s := newServer(l, Options{Address: "127.0.0.1:8379"}, b, waits)
	go s.serve(zerolog.Nop())
	t.Cleanup(s.Close)
	return func() client {
		near, far := net.Pipe()
		check(t, near.SetDeadline(time.Now().Add(testTimeout)))
		t.Cleanup(func() { _ = near.Close() })
		closed := make(chan struct{})
		l.conns <- localConn{far, sync.OnceFunc(func() { close(closed) })}
		return client{near, closed}
	}
}

// localConn has addresses that net/http understands, and tells that it is closed.
type localConn struct {
	net.Conn
	closed func()
}

func (c localConn) Close() error {
	defer c.closed()
	return c.Conn.Close()
}

func (c localConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 1} }

// ends checks that the server ends a connection.
func ends(t *testing.T, nc net.Conn) {
	t.Helper()
	if _, err := io.Copy(io.Discard, nc); err != nil {
		t.Errorf("the connection does not end: %v", err)
	}
}

// A client that sends its request slowly, or takes no answer, is cut off.
func TestSlowClients(t *testing.T) {
	t.Parallel()
	dial := serve(t, fakeBackend{}, times{read: 20 * time.Millisecond, answer: 20 * time.Millisecond, idle: time.Hour})
	for _, request := range []string{"GET / HTTP/1.1\r\nHo", "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n[\"PI"} {
		nc := dial()
		_, _ = io.WriteString(nc, request) // it may be cut off before
		ends(t, nc)
	}
	nc := dial()
	_, _ = io.WriteString(nc, "GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n") // likewise
	nc.awaitClosed(t)
}

// A client that stops to read the stream is cut off. One that takes the samples gets more for ever.
func TestSlowViewers(t *testing.T) {
	t.Parallel()
	dial := serve(t, fakeBackend{}, impatient)
	for deadline := time.Now().Add(testTimeout); ; {
		nc := dial()
		_, err := io.WriteString(nc, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
		check(t, err)
		const sample = "data: {\"error\":\"there is none\"}\n\n"
		var got []byte
		if response, err := http.ReadResponse(bufio.NewReader(nc), nil); err == nil {
			got, _ = io.ReadAll(io.LimitReader(response.Body, 2*int64(len(sample))))
		}
		if string(got) == sample+sample {
			nc.awaitClosed(t) // the client does not take the next one
			return
		}
		if !strings.HasPrefix(sample+sample, string(got)) || time.Now().After(deadline) {
			t.Fatalf("the stream begins with %q", got) // on a busy machine it may end before, as for a slow client
		}
	}
}

// A connection that waits for its next request ends after a time of its own.
func TestIdleClients(t *testing.T) {
	t.Parallel()
	nc := serve(t, fakeBackend{}, times{read: time.Hour, answer: time.Hour, idle: 100 * time.Millisecond})()
	_, err := io.WriteString(nc, "GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n")
	check(t, err)
	ends(t, nc)
}

// The server knows who gives a password, so that it delays those who guess, and does not take them for clients that gave it.
func TestLoginIsOfItsAddress(t *testing.T) {
	t.Parallel()
	type opened struct {
		addr  string
		known bool
	}
	var got []opened
	s := newServer(&pipes{done: t.Context()}, Options{Address: "127.0.0.1:8379"}, fakeBackend{
		password: "secret", opened: func(addr string, known bool) { got = append(got, opened{addr, known}) }}, usualTimes)
	for _, path := range []string{"/login", "/command"} {
		r := httptest.NewRequestWithContext(t.Context(), "POST", path, strings.NewReader(map[string]string{"/login": `{"password":"guess"}`, "/command": `["PING"]`}[path]))
		r.RemoteAddr, r.Host = "192.0.2.7:1", "localhost"
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set(tokenHeader, "1")
		r.AddCookie(&http.Cookie{Name: "mayfly", Value: s.sessions.begin("secret")})
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []opened{{"192.0.2.7:1", false}, {"192.0.2.7:1", true}}; !slices.Equal(got, want) {
		t.Errorf("connections are opened for %v, not %v", got, want)
	}
}

// The stream ends when the protected mode comes to refuse its browser: the password has been removed.
func TestLiveInProtectedMode(t *testing.T) {
	t.Parallel()
	var denies atomic.Bool
	nc := serve(t, fakeBackend{denies: &denies}, usualTimes)()
	_, err := io.WriteString(nc, "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
	check(t, err)
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	check(t, err)
	stream := bufio.NewReader(response.Body)
	if line, err := stream.ReadString(':'); line != "data:" {
		t.Fatalf("the stream begins with %q: %v", line, err)
	}
	denies.Store(true)
	if text, _ := io.ReadAll(stream); strings.Contains(string(text), "data:") {
		t.Errorf("the stream goes on: %s", text)
	}
}

// A command that takes too long answers, and so does one whose connection ends.
func TestSlowCommands(t *testing.T) {
	t.Parallel()
	for want, tt := range map[string]struct {
		waits   times
		backend func(net.Conn)
	}{
		`{"error":"ERR the command takes too long for the page: use redis-cli"}`: {impatient, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }},
		`{"error":"ERR the server has ended the connection"}`:                    {usualTimes, func(nc net.Conn) { _, _ = nc.Read(make([]byte, 1)); _ = nc.Close() }},
	} {
		nc := serve(t, fakeBackend{serve: tt.backend}, tt.waits)()
		_, err := io.WriteString(nc, "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n[\"PING\"]")
		check(t, err)
		response, err := http.ReadResponse(bufio.NewReader(nc), nil)
		check(t, err)
		if text, _ := io.ReadAll(response.Body); strings.TrimSpace(string(text)) != want {
			t.Errorf("%s, not %s", text, want)
		}
	}
}

// A reply that is too long is not read to its end.
func TestLongReply(t *testing.T) {
	t.Parallel()
	read := make(chan int, 1)
	nc := serve(t, fakeBackend{serve: func(nc net.Conn) {
		_, _ = nc.Read(make([]byte, 1<<10))
		total, part := 0, make([]byte, 1<<16)
		_, err := io.WriteString(nc, "$16777216\r\n")
		for ; err == nil && total < 16<<20; total += len(part) {
			_, err = nc.Write(part)
		}
		read <- total
	}}, usualTimes)()
	_, err := io.WriteString(nc, "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n[\"PING\"]")
	check(t, err)
	response, err := http.ReadResponse(bufio.NewReader(nc), nil)
	check(t, err)
	if text, _ := io.ReadAll(response.Body); !strings.Contains(string(text), "longer than 1048576 bytes") {
		t.Errorf("the answer is %.200s", text)
	}
	if n := <-read; n > 2<<20 {
		t.Errorf("the page has read %d bytes", n)
	}
}

// A browser that leaves ends its command.
func TestAbandonedCommand(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	l := &pipes{make(chan net.Conn), t.Context()}
	s := newServer(l, Options{Address: "127.0.0.1:8379"}, fakeBackend{serve: func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc); close(ended) }}, usualTimes)
	go s.serve(zerolog.Nop())
	t.Cleanup(s.Close)
	near, far := net.Pipe()
	l.conns <- localConn{far, func() {}}
	_, err := io.WriteString(near, "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n[\"PING\"]")
	check(t, err)
	check(t, near.Close())
	select {
	case <-ended:
	case <-time.After(2 * testTimeout / 3): // less than usualTimes.answer, which would end it too
		t.Error("the command goes on")
	}
}

// FuzzWords compares parseWords with encoding/json: it refuses what that would change, and takes all else.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{`["GET","a"]`, `["SET",{"base64":"/w=="},"\ud83d\ude00"]`, `["\ud800"]`, `["\udc00\ud800"]`, `["\\ud800"]`, `[null]`, `[1]`, `[]`, `["a`, "[\"\xff\"]", `["\u0000\"\\"]`, `[{"base64":null}]`, `[["a"]]`, `["a"]["b"]`, ` [ "a" ] `} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		words, err := parseWords(body)
		if err != nil {
			if words != nil {
				t.Error("words and an error")
			}
			var list []string
			plain := utf8.Valid(body) && json.Unmarshal(body, &list) == nil && len(list) > 0 && len(list) <= maxWords && !strings.Contains(string(body), "null")
			if plain && !strings.ContainsRune(strings.Join(list, ""), utf8.RuneError) {
				t.Errorf("%q: %v", body, err)
			}
			return
		}
		if len(words) == 0 || len(words) > maxWords {
			t.Errorf("%q: %d words", body, len(words))
		}
		list := make([]any, len(words))
		for i, word := range words {
			list[i] = asJSON([]byte(word))
		}
		text, err := json.Marshal(list)
		check(t, err)
		again, err := parseWords(text)
		if err != nil || strings.Join(again, "\x00") != strings.Join(words, "\x00") {
			t.Errorf("%q: %q, then %q: %v", body, words, again, err)
		}
	})
}
