package web

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"mayfly/test/drill"

	"github.com/rs/zerolog"
)

var check = drill.Check

// The cookie holds for twelve hours, and for one password.
func TestSessions(t *testing.T) {
	t.Parallel()
	now := time.Duration(1)
	s := sessions{now: func() time.Duration { return now }}
	has := func(cookie, password string) bool {
		user, ok := s.user(cookie, func(user string) (string, bool) { return password, user == "alice" && password != "off" })
		return ok && user == "alice"
	}
	cookie := s.begin("alice", "secret")
	if len(cookie) < 26 || cookie == s.begin("alice", "secret") {
		t.Errorf("the cookie %q can be guessed", cookie)
	}
	now += 12*time.Hour - 1
	if !has(cookie, "secret") || has(cookie[1:], "secret") || has("", "secret") {
		t.Error("before its end")
	}
	now++
	if has(cookie, "secret") {
		t.Error("after twelve hours")
	}
	cookie = s.begin("alice", "secret")
	if has(cookie, "other") || has(cookie, "secret") {
		t.Error("it outlives its password")
	}
	if cookie = s.begin("alice", "secret"); has(cookie, "off") || has(cookie, "secret") {
		t.Error("it outlives its user")
	}
	if cookie = s.begin("bob", "secret"); has(cookie, "secret") {
		t.Error("it is that of another user")
	}
	first := s.begin("alice", "secret")
	now++
	for range maxSessions {
		s.begin("alice", "secret")
	}
	if len(s.list) != maxSessions || has(first, "secret") {
		t.Errorf("there are %d sessions", len(s.list))
	}
	now += 13 * time.Hour
	if s.begin("alice", "secret"); len(s.list) != 1 {
		t.Errorf("of sessions that have ended %d stay", len(s.list)-1)
	}
}

// pipes is a listener whose connections have no buffer, so that a client that does not read is noticed at
// once.
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

func (b fakeBackend) NeedsLogin() bool  { return b.password != "" }
func (b fakeBackend) Rights(string) any { return nil }
func (b fakeBackend) Refusal(_, _ string, words []string) string {
	if words[0] == "FLUSHALL" {
		return "command"
	}
	return ""
}
func (b fakeBackend) Proof(user string) (string, bool) {
	return b.password, user == defaultUser
}
func (b fakeBackend) Denies(net.Addr) bool { return b.denies != nil && b.denies.Load() }
func (b fakeBackend) Open(addr, _ string, known bool) (net.Conn, error) {
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

// inBubble runs a test with a server, whose time passes when all wait.
func inBubble(t *testing.T, b Backend, test func(t *testing.T, dial func() client)) {
	t.Helper()
	drill.Bubble(t, func(t *testing.T) {
		l := &pipes{make(chan net.Conn), t.Context()}
		s := newServer(l, Options{Address: "127.0.0.1:8379"}, b, usualTimes)
		go s.serve(zerolog.Nop())
		t.Cleanup(s.Close)
		test(t, func() client {
			near, far := net.Pipe()
			t.Cleanup(func() { _ = near.Close() })
			closed := make(chan struct{})
			l.conns <- localConn{far, sync.OnceFunc(func() { close(closed) })}
			return client{near, closed}
		})
	})
}

// send sends a request and returns the answer. The body ends with the test.
func (c client) send(t *testing.T, request string) *http.Response {
	t.Helper()
	_, err := io.WriteString(c, request)
	check(t, err)
	response, err := http.ReadResponse(bufio.NewReader(c), nil)
	check(t, err)
	return response
}

// Requests.
const (
	watch = "GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n"
	begun = "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 8\r\n\r\n[\"PI"
	ping  = begun + "NG\"]"
)

// answer returns the body of an answer.
func text(t *testing.T, r *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(r.Body)
	check(t, err)
	return strings.TrimSpace(string(body))
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

// A client that sends its request slowly, takes no answer, or does not ask again, is cut off.
func TestSlowClients(t *testing.T) {
	inBubble(t, fakeBackend{}, func(t *testing.T, dial func() client) {
		for request, want := range map[string]time.Duration{
			"GET / HTTP/1.1\r\nHo": usualTimes.read,
			begun:                  usualTimes.read,
			"GET /page.js HTTP/1.1\r\nHost: localhost\r\n\r\n": 2 * usualTimes.answer,
		} {
			start, nc := time.Now(), dial()
			_, err := io.WriteString(nc, request)
			check(t, err)
			if !strings.HasPrefix(request, "GET /page.js") {
				_, err = io.Copy(io.Discard, nc)
				check(t, err)
			}
			if <-nc.closed; time.Since(start) != want {
				t.Errorf("%.12q: the connection ends after %v, not %v", request, time.Since(start), want)
			}
		}
		start, nc := time.Now(), dial()
		text(t, nc.send(t, "GET /state HTTP/1.1\r\nHost: localhost\r\n\r\n"))
		if <-nc.closed; time.Since(start) != usualTimes.idle {
			t.Errorf("an idle connection ends after %v", time.Since(start))
		}
	})
}

// A client that stops to read the stream is cut off. One that takes the samples gets more for ever.
func TestSlowViewers(t *testing.T) {
	inBubble(t, fakeBackend{}, func(t *testing.T, dial func() client) {
		nc := dial()
		const sample = "data: {\"error\":\"there is none\"}\n\n"
		body := nc.send(t, watch).Body
		for range 100 {
			got := make([]byte, len(sample))
			if _, err := io.ReadFull(body, got); err != nil || string(got) != sample {
				t.Fatalf("a sample is %q: %v", got, err)
			}
		}
		start := time.Now()
		if <-nc.closed; time.Since(start) != sampleInterval+usualTimes.answer { // the client does not take the next one
			t.Errorf("it is cut off after %v", time.Since(start))
		}
	})
}

// A server with very many containers is asked for all of them a fiftieth of the time at most, and for the
// rest each second.
func TestLiveOfManyContainers(t *testing.T) {
	const containers = 50_000
	var censuses atomic.Int64
	names := fmt.Sprintf("*%d\r\n", containers) + strings.Repeat("$100\r\n"+strings.Repeat("c", 100)+"\r\n", containers)
	serve := func(nc net.Conn) {
		defer nc.Close()
		for lines := bufio.NewScanner(nc); lines.Scan(); {
			words, _ := strconv.Atoi(lines.Text()[1:])
			var command []string
			for i := 0; i < 2*words && lines.Scan(); i++ {
				if i%2 == 1 {
					command = append(command, lines.Text())
				}
			}
			reply := "*0\r\n"
			switch command[0] {
			case "INFO":
				reply = "$8\r\nexpiry:1\r\n"
			case "MEMORY":
				reply = "*2\r\n$10\r\nkeys.count\r\n:7\r\n"
			case "CONTAINER.LIST":
				if command[2] != "*" { // a search
					if reply = "*1\r\n$4\r\nshop\r\n"; command[1] != "MATCH" || command[2] != "sh*" {
						reply = "-ERR syntax error\r\n"
					}
					break
				}
				censuses.Add(1)
				time.Sleep(100 * time.Millisecond)
				reply = names
			}
			if _, err := io.WriteString(nc, reply); err != nil {
				return
			}
		}
	}
	inBubble(t, fakeBackend{serve: serve}, func(t *testing.T, dial func() client) {
		start := time.Now()
		events := bufio.NewScanner(dial().send(t, watch).Body)
		events.Buffer(nil, 1<<20)
		for n := 0; n < 20 && events.Scan(); {
			text, ok := strings.CutPrefix(events.Text(), "data: ")
			if !ok {
				continue
			}
			n++
			var s sample
			if err := json.Unmarshal([]byte(text), &s); err != nil || len(s.Containers) != maxContainers || s.More != containers-maxContainers || s.Info["keys.count"] != 7.0 {
				t.Fatalf("a sample is %.300s: %v", text, err)
			}
		}
		if n, took := censuses.Load(), time.Since(start); n != 4 || took != 19*time.Second {
			t.Errorf("20 samples have %d censuses and take %v", n, took)
		}
		found := bufio.NewScanner(dial().send(t, strings.Replace(watch, "live", "live?match=sh*", 1)).Body)
		if !found.Scan() || !strings.Contains(found.Text(), `"more":0`) || strings.Count(found.Text(), `"ttlmode"`) != 1 || !strings.Contains(found.Text(), `"keys.count":7`) {
			t.Errorf("a search finds %.300s: %v", found.Text(), found.Err())
		}
	})
}

// Connections that wait keep out no other one; there are 32 at a time.
func TestConnections(t *testing.T) {
	pong := func(nc net.Conn) {
		_, _ = nc.Read(make([]byte, 1<<10))
		_, _ = io.WriteString(nc, "+PONG\r\n")
		_ = nc.Close()
	}
	inBubble(t, fakeBackend{serve: pong}, func(t *testing.T, dial func() client) {
		start := time.Now()
		atOnce := func(what string) {
			t.Helper()
			if took := time.Since(start); took != 0 {
				t.Errorf("%s takes %v", what, took)
			}
		}
		for _, part := range []string{"GET / HTTP/1.1\r\nHo", begun} {
			for range 100 {
				_, err := io.WriteString(dial(), part)
				check(t, err)
			}
			if got := text(t, dial().send(t, ping)); got != `{"reply":"PONG"}` {
				t.Errorf("a command: %s", got)
			}
		}
		waits := dial()
		for range maxConns {
			dial()
		}
		<-waits.closed
		atOnce("to make room for the thirty-third connection")
		var open []*http.Response
		for range maxViewers {
			r := dial().send(t, watch)
			if r.StatusCode != http.StatusOK {
				t.Fatalf("%d pages: %d", len(open), r.StatusCode)
			}
			open = append(open, r)
		}
		if r := dial().send(t, watch); r.StatusCode != http.StatusServiceUnavailable {
			t.Errorf("the seventeenth page: %d", r.StatusCode)
		}
		for range 40 { // they take no place of a request under way
			dial()
		}
		if got := text(t, dial().send(t, ping)); got != `{"reply":"PONG"}` {
			t.Errorf("a command: %s", got)
		}
		atOnce("a command beside connections that wait")
		lines := bufio.NewReader(open[0].Body)
		for range 6 {
			if line, err := lines.ReadString('\n'); err != nil {
				t.Fatalf("a stream ends with %q: %v", line, err)
			}
		}
	})
}

// Guessers whose passwords wait to be checked do not hold all connections.
func TestGuessersHoldNoConnections(t *testing.T) {
	var waiting atomic.Int64
	slow := func(nc net.Conn) {
		waiting.Add(1)
		_, _ = io.Copy(io.Discard, nc) // no reply: the attempt waits for its turn
	}
	inBubble(t, fakeBackend{password: "secret", serve: slow}, func(t *testing.T, dial func() client) {
		const guess = "POST /login HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n" + `{"password":"guess"}`
		start := time.Now()
		for range maxLogins {
			_, err := io.WriteString(dial(), guess)
			check(t, err)
		}
		synctest.Wait()
		for range 2 * maxConns {
			c := dial()
			if r := c.send(t, guess); r.StatusCode != http.StatusTooManyRequests || r.Header.Get("Retry-After") != "1" {
				t.Fatalf("%d attempts wait; another one: %s", waiting.Load(), r.Status)
			}
			<-c.closed
		}
		if n := waiting.Load(); n != maxLogins || time.Since(start) != 0 {
			t.Errorf("%d attempts wait after %v", n, time.Since(start))
		}
	})
}

// The server knows who gives a password, so that it delays those who guess, and does not take them for
// clients that gave it.
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
		r.AddCookie(&http.Cookie{Name: "mayfly", Value: s.sessions.begin(defaultUser, "secret")})
		s.http.Handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	if want := []opened{{"192.0.2.7:1", false}, {"192.0.2.7:1", true}}; !slices.Equal(got, want) {
		t.Errorf("connections are opened for %v, not %v", got, want)
	}
}

// The stream ends when the protected mode comes to refuse its browser: the password has been removed.
func TestLiveInProtectedMode(t *testing.T) {
	var denies atomic.Bool
	inBubble(t, fakeBackend{denies: &denies}, func(t *testing.T, dial func() client) {
		stream := bufio.NewReader(dial().send(t, watch).Body)
		if line, err := stream.ReadString(':'); line != "data:" {
			t.Fatalf("the stream begins with %q: %v", line, err)
		}
		denies.Store(true)
		if text, _ := io.ReadAll(stream); strings.Contains(string(text), "data:") {
			t.Errorf("the stream goes on: %s", text)
		}
	})
}

// A command that takes too long answers, and so do one whose connection ends, and one whose reply is not read
// to its end.
func TestCommandsThatFail(t *testing.T) {
	for want, tt := range map[string]struct {
		takes   time.Duration
		backend func(net.Conn)
	}{
		"the command takes too long for the page: use redis-cli": {usualTimes.answer, func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc) }},
		"a value of the command is longer than max-value-size": {0, func(nc net.Conn) {
			_, _ = io.WriteString(nc, "-ERR Protocol error: invalid bulk length\r\n")
			_, _ = io.Copy(io.Discard, nc)
		}},
		"the server has ended the connection": {0, func(nc net.Conn) { _, _ = nc.Read(make([]byte, 1)); _ = nc.Close() }},
		"the reply is longer than 1048576 bytes: ask for less, or use redis-cli": {0, func(nc net.Conn) {
			_, _ = nc.Read(make([]byte, 1<<10))
			total, part := 0, make([]byte, 1<<16)
			_, err := io.WriteString(nc, "$16777216\r\n")
			for ; err == nil && total < 16<<20; total += len(part) {
				_, err = nc.Write(part)
			}
			if total > 2<<20 {
				t.Errorf("the page has read %d bytes", total)
			}
		}},
	} {
		t.Run(want, func(t *testing.T) {
			inBubble(t, fakeBackend{serve: tt.backend}, func(t *testing.T, dial func() client) {
				start := time.Now()
				if got := text(t, dial().send(t, ping)); got != `{"error":"ERR `+want+`"}` || time.Since(start) != tt.takes {
					t.Errorf("%s, after %v", got, time.Since(start))
				}
			})
		})
	}
}

// Actions are posted: they are no missing files.
func TestActionsArePosted(t *testing.T) {
	inBubble(t, fakeBackend{}, func(t *testing.T, dial func() client) {
		for path, want := range map[string]int{"/command": 405, "/login": 405, "/logout": 405, "/none": 404} {
			r := dial().send(t, "GET "+path+" HTTP/1.1\r\nHost: localhost\r\n\r\n")
			if allow := r.Header.Get("Allow"); r.StatusCode != want || (want == 405) != (allow == "POST") {
				t.Errorf("GET %s: %s, Allow %q", path, r.Status, allow)
			}
		}
	})
}

// Programs name the character set of JSON, too. A form of another page cannot send any of these types.
func TestContentTypes(t *testing.T) {
	inBubble(t, fakeBackend{}, func(t *testing.T, dial func() client) {
		for contentType, want := range map[string]int{
			"application/json": 503, "application/json; charset=utf-8": 503, "Application/JSON;charset=UTF-8": 503, // no command is executed here
			"": 415, "text/plain": 415, "text/plain; x=application/json": 415, "application/json2": 415, "text/plain, application/json": 415, "application/x-www-form-urlencoded": 415,
		} {
			r := dial().send(t, "POST /command HTTP/1.1\r\nHost: localhost\r\nSec-Fetch-Site: same-origin\r\nContent-Type: "+contentType+"\r\nContent-Length: 8\r\n\r\n[\"PING\"]")
			if r.StatusCode != want {
				t.Errorf("%q: %s", contentType, r.Status)
			}
		}
	})
}

// A browser that leaves ends its command.
func TestAbandonedCommand(t *testing.T) {
	ended := false
	inBubble(t, fakeBackend{serve: func(nc net.Conn) { _, _ = io.Copy(io.Discard, nc); ended = true }}, func(t *testing.T, dial func() client) {
		nc := dial()
		_, err := io.WriteString(nc, ping)
		check(t, err)
		check(t, nc.Close())
		if synctest.Wait(); !ended {
			t.Error("the command goes on")
		}
	})
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
