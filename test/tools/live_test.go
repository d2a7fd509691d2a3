package tools

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestHealthTool asks a server that serves, one that waits, one that is none, and one that is not there.
func TestHealthTool(t *testing.T) {
	harness.Parallel(t)
	metrics := harness.FreeAddress(t)
	p := harness.Start(t, t.TempDir(), "--metrics-addr", metrics)
	proxy := []string{"http_proxy=http://127.0.0.1:1"} // it is not asked
	if out, _ := harness.ToolIn(t, proxy, 0, "", "health", metrics); out != "ok\n" {
		t.Errorf("health says %q", out)
	}
	var status atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(int(status.Load()))
		_, _ = io.WriteString(w, "loading "+r.URL.Path+"\n")
	}))
	defer other.Close()
	address := strings.TrimPrefix(other.URL, "http://")
	status.Store(http.StatusServiceUnavailable)
	if out, errs := harness.Tool(t, 1, "", "health", address); out != "loading /healthz\n" || errs != "" {
		t.Errorf("while loading it says %q, %q", out, errs)
	}
	for _, code := range []int32{http.StatusNotFound, http.StatusFound, http.StatusNoContent} {
		status.Store(code)
		if out, errs := harness.Tool(t, 1, "", "health", address); out != "" || !strings.HasPrefix(errs, fmt.Sprintf("mayfly health: %s answers %d ", address, code)) {
			t.Errorf("of a server with %d it says %q, %q", code, out, errs)
		}
	}
	for code, list := range [][][]string{1: {{harness.FreeAddress(t)}, {p.Port}}, 2: {{}, {metrics, "b"}, {"--nonsense", metrics}}} {
		for _, args := range list {
			if out, errs := harness.Tool(t, code, "", append([]string{"health"}, args...)...); out != "" || !strings.HasPrefix(errs, "mayfly health: ") || strings.Count(errs, "\n") != 1 {
				t.Errorf("%q: %q, %q", args, out, errs)
			}
		}
	}
}

// TestForecastAndTop asks a running server, over TCP and a Unix socket, with each way to name the password.
func TestForecastAndTop(t *testing.T) {
	harness.Parallel(t)
	dir := t.TempDir()
	socket, file := filepath.Join(dir, "s"), filepath.Join(dir, "password")
	drill.Check(t, os.WriteFile(file, []byte("secret\n"), 0o600))
	p := harness.Start(t, filepath.Join(dir, "data"), "--requirepass", "secret", "--unixsocket", socket)
	commands := "CONTAINER.CREATE orders TTL 3600\nDOC.PUT orders 1 {}\nDOC.PUT orders 2 '{\"ttl\":1800}'\nDOC.PUT orders 3 '{\"ttl\":-1}'\nSET key value EX 7200\n"
	if said, _ := p.CLIWith(strings.NewReader(commands), "-a", "secret", "--no-auth-warning"); said != strings.Repeat("OK\n", 5) {
		t.Fatal(said)
	}

	sum := func(out string) (items, own int) {
		t.Helper()
		for _, m := range regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:00:00Z items (\d+) bytes \d+ own (\d+) ownbytes \d+$`).FindAllStringSubmatch(out, -1) {
			var n, o int
			fmt.Sscan(m[1], &n)
			fmt.Sscan(m[2], &o)
			items, own = items+n, own+o
		}
		return items, own
	}
	port := []string{"--port", p.Port}
	out, _ := harness.Tool(t, 0, "", append([]string{"forecast", "--password", "secret"}, port...)...)
	if items, own := sum(out); items != 3 || own != 2 || strings.Count(out, "\n") != 28 || !strings.Contains(out, "\nnever items 1 bytes 11\n") {
		t.Errorf("of all containers: %d items, %d by an end of their own\n%s", items, own, out)
	}
	out, _ = harness.Tool(t, 0, "", "forecast", "orders", "--socket", socket, "--password-file", file)
	if items, own := sum(out); items != 2 || own != 1 || strings.Contains(out, "\x1b") {
		t.Errorf("of orders: %d items, %d by an end of their own\n%s", items, own, out)
	}
	out, _ = harness.Tool(t, 0, "", append([]string{"top", "-n", "2", "--password-file", file}, port...)...)
	if !regexp.MustCompile(`^\S+ commands - deaths - commits - .* living 4 .*\n\S+ commands \d+ deaths 0 commits \d+ commit_usec \d+ commit_p99_usec \d+ oldest_dead_ms 0 living 4 memory \d+ clients 1\n$`).MatchString(out) {
		t.Errorf("top writes %q", out)
	}

	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"forecast", "ordres", "--password", "secret"}, "there is no container ordres; did you mean orders?\n"},
		{[]string{"forecast", "zzzzzzzz", "--password", "secret"}, "there is no container zzzzzzzz\n"},
		{[]string{"forecast", "--password", "wrong"}, "WRONGPASS"},
		{[]string{"top"}, "NOAUTH Authentication required.; --user names the user, and the password is that of --password-file, or of REDISCLI_AUTH\n"},
		{[]string{"forecast", "--password-file", file + "x"}, "no such file"},
		{[]string{"forecast", "--range", "2h"}, "invalid range 2h: legal are 1h, 24h, 30d and 1y\n"},
		{[]string{"forecast", "a", "b"}, "2 containers: mayfly forecast takes one, or none for all\n"},
		{[]string{"top", "--interval", "0"}, "invalid interval 0: legal are 1 to 3600\n"},
		{[]string{"top", "-n", "-1"}, "invalid count -1: legal are 0 and more\n"},
		{[]string{"top", "orders"}, "1 arguments instead of 0"},
	} {
		_, errs := harness.Tool(t, 2, "", append(tt.args, port...)...)
		if !strings.HasPrefix(errs, "mayfly "+tt.args[0]+": ") || !strings.Contains(errs, tt.want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%q: %q, want %q", tt.args, errs, tt.want)
		}
	}
	_, errs := harness.Tool(t, 2, "", "top", "--host", harness.Host(t), "--port", harness.FreePort(t))
	if !strings.HasSuffix(errs, "refused; --host and --port, or --socket, name another server\n") {
		t.Errorf("without a server it is %q", errs)
	}
}

// TestForecastOfAnotherServer: a server that is no mayfly, or knows no forecasts, is named as such.
func TestForecastOfAnotherServer(t *testing.T) {
	harness.Parallel(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	drill.Check(t, err)
	defer ln.Close()
	go func() {
		for {
			conn, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				for b := make([]byte, 4096); ; {
					n, err := conn.Read(b)
					switch {
					case err != nil:
						return
					case bytes.Contains(b[:n], []byte("PING")):
						_, _ = io.WriteString(conn, "+PONG\r\n")
					case bytes.Contains(b[:n], []byte("INFO")):
						_, _ = io.WriteString(conn, "$21\r\nredis_version:7.0.15\n\r\n")
					case bytes.Contains(b[:n], []byte("READONLY")):
						_, _ = io.WriteString(conn, "-ERR This instance has cluster support disabled\r\n")
					default:
						_, _ = io.WriteString(conn, "-ERR unknown command 'CONTAINER.FORECAST'\r\n")
					}
				}
			}()
		}
	}()
	_, port, _ := net.SplitHostPort(ln.Addr().String())
	if _, errs := harness.Tool(t, 2, "", "forecast", "--port", port); !strings.Contains(errs, "does not know CONTAINER.FORECAST: it is not mayfly, or an older one") {
		t.Errorf("forecast says %q", errs)
	}
	if _, errs := harness.Tool(t, 2, "", "top", "--port", port); !strings.Contains(errs, "is no mayfly: its INFO has no mayfly_version") {
		t.Errorf("top says %q", errs)
	}
}

// TestTopOnTerminal runs top in a pseudo-terminal, which script(1) makes: it draws, fits the width, draws
// anew when the terminal changes its size, and leaves the terminal as it was, by q and by ^C.
func TestTopOnTerminal(t *testing.T) {
	harness.Parallel(t)
	script := harness.Need(t, "script")
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	p.CLI("CONTAINER.CREATE", "orders", "TTL", "3600")
	p.CLI("DOC.PUT", "orders", "1", "{}")
	for _, key := range []string{"q", "\x03"} {
		drawn := filepath.Join(t.TempDir(), "drawn") // made when it has drawn at the first width
		shell := fmt.Sprintf(`stty cols 70 rows 30; before=$(stty -g); (until [ -e %s ]; do sleep 0.1; done; stty cols 41 </dev/tty) & %s top --interval 60 --port %s; code=$?; wait
			[ "$(stty -g)" = "$before" ] && echo "restored $code"`, drawn, harness.Binary, p.Port)
		cmd := exec.Command("timeout", "90", script, "-qefc", "bash -c '"+shell+"'", "/dev/null")
		cmd.Env = append(os.Environ(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "TERM=xterm", "NO_COLOR=1")
		keys, err := cmd.StdinPipe()
		drill.Check(t, err)
		var out harness.LogBuffer
		cmd.Stdout = &out
		drill.Check(t, cmd.Start())
		harness.WaitFor(t, "the first screen", func() bool {
			return strings.Count(out.String(), "\x1b[H") > 0 && strings.Contains(out.String(), "\x1b[J")
		})
		drill.Check(t, os.WriteFile(drawn, nil, 0o600))
		harness.WaitFor(t, "the second screen", func() bool { return strings.Count(out.String(), "\x1b[H") > 1 })
		_, _ = io.WriteString(keys, key)
		if err := cmd.Wait(); err != nil {
			t.Fatalf("%v\n%q", err, out.String())
		}
		text := out.String()
		if !strings.Contains(text, "restored 0") || !strings.Contains(text, "\x1b[?25h\x1b[?1049l") {
			t.Errorf("by %q it leaves the terminal so: %q", key, text)
		}
		screens := strings.Split(text, "\x1b[H")
		if len(screens) != 3 {
			t.Fatalf("it draws %d times, not twice: %q", len(screens)-1, text)
		}
		for i, width := range []int{70, 41} {
			screen, _, _ := strings.Cut(screens[i+1], "\x1b[J")
			most := 0
			for line := range strings.SplitSeq(screen, "\r\n") {
				most = max(most, len([]rune(strings.ReplaceAll(line, "\x1b[K", ""))))
			}
			if !strings.Contains(screen, "█") || !strings.Contains(screen, "orders") || strings.Contains(screen, "\x1b[3") || most > width || most < width-25 {
				t.Errorf("at width %d the widest line has %d:\n%s", width, most, screen)
			}
		}
	}
}

// TestToolsOfFollower: forecast and top show the own data of a follower, which passes other clients on to the
// leader. Export and import end with the first command, and name the leader.
func TestToolsOfFollower(t *testing.T) {
	harness.Parallel(t)
	c := harness.StartCluster(t, 3)
	leader := c.Leader()
	direct := leader.Connect()
	defer direct.Close()
	drill.Check(t, direct.Do(t.Context(), "CONTAINER.CREATE", "orders", "TTL", 1800).Err())
	drill.Check(t, direct.Do(t.Context(), "DOC.PUT", "orders", "1", "{}").Err())
	c.Settle()
	host, port, _ := net.SplitHostPort(c.Others(leader)[0].ClientAddr)
	follower := []string{"--host", host, "--port", port}
	if out, _ := harness.Tool(t, 0, "", append([]string{"forecast", "orders", "--range", "1h"}, follower...)...); !strings.Contains(out, " items 1 ") {
		t.Errorf("forecast writes %s", out)
	}
	if out, _ := harness.Tool(t, 0, "", append([]string{"top", "-n", "1"}, follower...)...); !strings.Contains(out, " living 1 ") {
		t.Errorf("top writes %s", out)
	}
	lines, _ := harness.Tool(t, 0, "", "export", leader.ClientAddr)
	address := net.JoinHostPort(host, port)
	for _, args := range [][]string{{"export"}, {"import"}, {"import", "--dry-run"}, {"import", "--container", "orders"}} {
		input := lines
		if len(args) > 1 && args[1] == "--container" {
			input = "{\"_id\":\"2\"}\n{\"_id\":\"3\"}\n"
		}
		_, text := harness.Tool(t, 2, input, append(args, address)...)
		if want := address + " is a follower of its cluster: name its leader instead, " + leader.ClientAddr; strings.Count(text, "follower") != 1 || !strings.Contains(text, want) || strings.Contains(text, "MOVED") {
			t.Errorf("%v: %s", args, text)
		}
	}
}
