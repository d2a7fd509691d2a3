package server

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"mayfly/commands/engine"
	"mayfly/server/config"
	"mayfly/test/drill"
)

// Good and bad framing gets the same answer, to the byte, as from Redis. The comment of resp.Guard names the
// exceptions.
func TestFramingLikeRedis(t *testing.T) {
	t.Parallel()
	redis := startRedis(t)
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"PING": func(_ *engine.Session, args []string) engine.Reply {
			if len(args) == 2 {
				return engine.Bulk(args[1])
			}
			return engine.Status("PONG")
		},
	}
	ours := newTestServer(t).run(t, e, nil)

	// A QUIT follows what has an end, so that the connection ends too.
	for _, in := range []string{
		"*0\r\nPING\r\n", "*-1\r\nPING\r\n", "*-10\r\nPING\r\n", "\r\nPING\r\n", "\nPING\n", "  \r\nPING\r\n",
		"PING\r\n*1\r\n$4\r\nPING\r\nPING\n",
		"*1\r\nfoo\r\n", "*1\r\n\x01\r\n", "*1\r\n\r\n", "*1\r\n\n\r\n", "*2\r\n$4\r\nPING\r\nfoo\r\n",
		"*\r\n", "*x\r\n", "*1x\r\n", "*01\r\n", "*+1\r\n", "*-0\r\n", "* 1\r\n", "*3000000000\r\n", "*-9999999999999999999\r\n",
		"*1\r\n$\r\n", "*1\r\n$x\r\n", "*1\r\n$-1\r\n", "*1\r\n$+4\r\nPING\r\n", "*1\r\n$04\r\nPING\r\n", "*1\r\n$2000000000\r\n",
		"PING\r\n*x\r\nPING\r\n",
		`PING "a b"` + "\r\n", `PING 'a b'` + "\n", `PING "\x41\n\r\t\b\a\"\\\q"` + "\n", `PING '\'\n'` + "\n", `PING a"b"` + "\r\n",
		`PING ""` + "\r\n", `PING "a` + "\r\n", `PING 'a'b` + "\r\n", `PING "a""b"` + "\r\n", "\v\tPING a\vb\r\n", `"PING"` + "\r\n",
		"PING\r\nPOST / HTTP/1.1\r\n", "host: x\r\nPING\r\n", command("Post", "x"),
		strings.Repeat("x", 65<<10), "\x00" + strings.Repeat("payload", 20_000),
	} {
		if strings.HasSuffix(in, "\n") {
			in += command("QUIT") + command("PING", "not executed")
		}
		want, got := answer(t, redis, in), answer(t, ours, in)
		if got != want {
			t.Errorf("%.100q: got %q, Redis answers %q", in, got, want)
		}
	}
}

// TestRedisOptionsAreKnown asks a real Redis for its options. A config file may name each of them: it is an
// option, ignored, or refused for a reason.
func TestRedisOptionsAreKnown(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "redis.conf")
	redis := dial(t, startRedis(t))
	defer redis.Close()
	if _, err := redis.Write([]byte(command("CONFIG", "GET", "*"))); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(redis)
	bulk := func() string {
		var length int
		if _, err := fmt.Fscanf(in, "$%d\r\n", &length); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		drill.Check(t, err)
		return strings.TrimSuffix(line, "\r\n")
	}
	var elements int
	if _, err := fmt.Fscanf(in, "*%d\r\n", &elements); err != nil || elements < 200 {
		t.Fatalf("Redis has %d options: %v", elements/2, err)
	}
	for range elements / 2 {
		name := bulk()
		bulk() // its value
		must(t, os.WriteFile(file, []byte(name+" value\n"), 0o600))
		if _, err := config.Load([]string{file}); err != nil && strings.Contains(err.Error(), "unknown option") {
			t.Errorf("Redis' option %s is not known", name)
		}
	}
}

// answer sends text on a new connection and reads until it ends.
func answer(t *testing.T, address, text string) string {
	t.Helper()
	c := dial(t, address)
	defer c.Close()
	if _, err := c.Write([]byte(text)); err != nil {
		t.Logf("%.50q was not read to the end", text)
	}
	got, _ := io.ReadAll(c.r) // Redis may reset the connection
	return string(got)
}

// startRedis starts a redis-server to compare with and returns its address. If none is installed the test is
// skipped; in CI it fails.
func startRedis(t *testing.T) string {
	t.Helper()
	drill.Slow(t)
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is not installed: nothing to compare with")
		}
		t.Skip("SKIPPED: redis-server is not installed, so Redis' own replies were NOT compared")
	}
	host := ownHost(t)
	cmd := exec.Command(path, "--port", strconv.Itoa(port), "--bind", host, "--save", "", "--dir", t.TempDir())
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it has been killed
	})
	address := fmt.Sprint(host, ":", port)
	eventually(t, "redis-server answers", func() bool {
		nc, err := net.Dial("tcp", address)
		if err == nil {
			_ = nc.Close()
		}
		return err == nil
	})
	return address
}
