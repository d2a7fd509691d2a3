package metrics

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// testTimeout is how long a test waits for what should happen at once.
const testTimeout = 30 * time.Second

// run makes a server on a free port.
func run(t *testing.T, o Options) *Server {
	t.Helper()
	o.Address = "127.0.0.1:0"
	m, err := Listen(o, zerolog.Nop())
	check(t, err)
	return m
}

// closes checks that the server ends soon.
func closes(t *testing.T, m *Server) {
	t.Helper()
	done := make(chan struct{})
	go func() {
		m.Close()
		close(done)
	}()
	select {
	case <-done:
	case <-time.After(testTimeout):
		t.Fatal("the server does not end")
	}
}

// ask sends a request and returns the status of the answer.
func ask(t *testing.T, nc net.Conn, r *bufio.Reader, request string) (status int, body string) {
	t.Helper()
	check(t, nc.SetDeadline(time.Now().Add(testTimeout)))
	_, err := io.WriteString(nc, request)
	check(t, err)
	response, err := http.ReadResponse(r, nil)
	check(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	check(t, err)
	return response.StatusCode, string(text)
}

func dial(t *testing.T, m *Server) net.Conn {
	t.Helper()
	nc, err := net.Dial("tcp", m.Addr().String())
	check(t, err)
	t.Cleanup(func() { _ = nc.Close() })
	return nc
}

const health = "GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"

// Connections that wait, whatever they have sent, keep out no other one, and do not keep the server from
// ending.
func TestWaitingConnections(t *testing.T) {
	t.Parallel()
	for name, sent := range map[string]string{"kept alive": health, "silent": "", "half a request": "GET /healthz HTTP/1.1\r\nHo"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := run(t, Options{})
			defer closes(t, m)
			for range 3 * maxConns {
				nc := dial(t, m)
				if sent == health {
					ask(t, nc, bufio.NewReader(nc), sent)
				} else {
					_, err := io.WriteString(nc, sent)
					check(t, err)
				}
			}
			nc := dial(t, m)
			if status, body := ask(t, nc, bufio.NewReader(nc), health); status != http.StatusServiceUnavailable || body != "loading\n" {
				t.Errorf("%d %s", status, body)
			}
		})
	}
}

// A web page that makes its name mean this machine reads nothing.
func TestHosts(t *testing.T) {
	t.Parallel()
	m := run(t, Options{Hosts: []string{"DB.example.org"}, Profiles: true})
	defer closes(t, m)
	name, err := os.Hostname()
	check(t, err)
	for host, known := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:9121": true, "[::1]:9121": true, "[::1]": true, "192.0.2.7:80": true, "localhost": true, "LOCALHOST:9121": true,
		"localhost.": true, "db.example.org": true, "db.EXAMPLE.org:9121": true, name: true,
		"evil.example.org": false, "evil.example.org:9121": false, "example.org": false, "localhost.evil.example.org": false, "127.0.0.1.evil.example.org": false,
		"db": false, "*": false,
	} {
		for _, path := range []string{"/", "/metrics", "/healthz", "/debug/pprof/cmdline", "/none"} {
			nc := dial(t, m)
			status, body := ask(t, nc, bufio.NewReader(nc), fmt.Sprintf("GET %s HTTP/1.1\r\nHost: %s\r\n\r\n", path, host))
			if (status != http.StatusMisdirectedRequest) != known {
				t.Errorf("%s, host %s: %d %s", path, host, status, body)
			}
			if !known && !strings.Contains(body, "metrics-hosts") {
				t.Errorf("it says %s", body)
			}
		}
	}
	nc := dial(t, m)
	if status, _ := ask(t, nc, bufio.NewReader(nc), "GET /healthz HTTP/1.0\r\n\r\n"); status != http.StatusServiceUnavailable {
		t.Errorf("without a host: %d", status)
	}
}

// The command line shows no password.
func TestCommandLine(t *testing.T) {
	for _, tt := range [][2]string{
		{"mayfly a.conf --port 1", "mayfly a.conf --port 1"},
		{"mayfly --requirepass secret --port 1", "mayfly --requirepass (redacted) --port 1"},
		{"mayfly --RequirePass secret words --port 1", "mayfly --RequirePass (redacted) (redacted) --port 1"},
		{"mayfly --port 1 --requirepass=secret", "mayfly --port 1 --requirepass=(redacted)"},
		{"mayfly --requirepass= secret", "mayfly --requirepass=(redacted) (redacted)"},
	} {
		if got := strings.Join(redactedArguments(strings.Fields(tt[0])), " "); got != tt[1] {
			t.Errorf("%s: %s", tt[0], got)
		}
	}
	was := os.Args
	defer func() { os.Args = was }()
	os.Args = []string{"mayfly", "--requirepass", "secret", "--metrics-pprof", "yes"}
	m := run(t, Options{Profiles: true})
	defer closes(t, m)
	nc := dial(t, m)
	_, body := ask(t, nc, bufio.NewReader(nc), "GET /debug/pprof/cmdline HTTP/1.1\r\nHost: localhost\r\n\r\n")
	if got := strings.Split(body, "\x00"); !slices.Equal(got, []string{"mayfly", "--requirepass", "(redacted)", "--metrics-pprof", "yes"}) {
		t.Errorf("it shows %q", got)
	}
}
