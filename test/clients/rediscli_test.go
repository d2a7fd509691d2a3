package clients

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestRedisCLI uses the habits of redis-cli beside single commands.
func TestRedisCLI(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, tt := range []struct {
		name, stdin string
		args        []string
		want        string
		code        int
	}{
		{"commands from standard input", "SET a 'x y'\nGET a\n\nINCR a\nINCR n\n", nil,
			"OK\nx y\nERR value is not an integer or out of range\n\n1\n", 0},
		{"the last argument from standard input", "{\"a\": \"line one\\nline two\"}", []string{"-x", "DOC.PUT", "9", "x"}, "OK\n", 0},
		{"types", "", []string{"--no-raw", "MGET", "a", "nobody"}, "1) \"x y\"\n2) (nil)\n", 0},
		{"bytes", "", []string{"--no-raw", "DOC.GET", "9", "x"}, "\"{\\\"a\\\": \\\"line one\\\\nline two\\\"}\"\n", 0},
		{"a map in RESP2", "", []string{"--no-raw", "CONFIG", "GET", "appendfsync"}, "1) \"appendfsync\"\n2) \"everysec\"\n", 0},
		{"a map in RESP3", "", []string{"-3", "--no-raw", "CONFIG", "GET", "appendfsync"}, "1# \"appendfsync\" => \"everysec\"\n", 0},
		{"null in RESP3", "", []string{"-3", "--no-raw", "GET", "nobody"}, "(nil)\n", 0},
		{"JSON", "", []string{"--json", "MGET", "a", "nobody"}, "[\"x y\",null]\n", 0},
		{"CSV", "", []string{"--csv", "MGET", "a", "nobody"}, "\"x y\",NULL\n", 0},
		{"another database", "", []string{"-n", "3", "SET", "three", "3"}, "OK\n", 0},
		{"repetition", "", []string{"-r", "3", "INCR", "n"}, "2\n3\n4\n", 0},
		{"a container by name", "CONTAINER.SET named TTL off\nSELECT named\nSET k v\nTTL k\n", nil, "OK\nOK\nOK\n-1\n", 0},
		{"an error as exit code", "", []string{"-e", "INCR", "a"}, "ERR value is not an integer or out of range\n", 1},
	} {
		if got, code := p.CLIWith(strings.NewReader(tt.stdin), tt.args...); got != tt.want || code != tt.code {
			t.Errorf("%s: redis-cli %q\n got %q, exit code %d\nwant %q, exit code %d", tt.name, tt.args, got, code, tt.want, tt.code)
		}
	}
}

// TestRedisCLIPipe loads in bulk, with commands that fail among the others.
func TestRedisCLIPipe(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	const keys = 20_000
	var bulk bytes.Buffer
	for n := range keys {
		key := fmt.Sprintf("key:%05d", n)
		fmt.Fprintf(&bulk, "*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(key), key, 2*len(key), key+key)
		if n%1000 == 0 {
			bulk.WriteString("INCR " + key + "\r\n") // inline, and not a number
		}
	}
	out, code := p.CLIWith(&bulk, "--pipe")
	if want := fmt.Sprintf("errors: %d, replies: %d", keys/1000, keys+keys/1000); !strings.Contains(out, want) || code != 1 {
		t.Errorf("--pipe says\n%s\nwant %s; exit code %d, want 1", out, want, code)
	}
	if got := p.CLI("DBSIZE"); got != fmt.Sprint(keys) {
		t.Errorf("%s keys of %d have come", got, keys)
	}
	scan, _ := p.CLIWith(nil, "--scan")
	listed := strings.Fields(scan)
	slices.Sort(listed)
	if len(slices.Compact(listed)) != keys || listed[keys-1] != fmt.Sprintf("key:%05d", keys-1) {
		t.Errorf("--scan lists %d keys of %d", len(listed), keys)
	}
	if scan, _ := p.CLIWith(nil, "--scan", "--pattern", "key:1234?"); strings.Count(scan, "key:1234") != 10 {
		t.Errorf("--scan --pattern lists %q", scan)
	}
}

// TestInline types commands into a bare connection, as people do with nc and telnet.
func TestInline(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	for _, tt := range []struct{ say, want string }{
		{"PING\r\n", "+PONG\r\n"},
		{"ping\n", "+PONG\r\n"},
		{"\r\n\r\n   PING   \r\n", "+PONG\r\n"},
		{`SET k "a\x00b\r\n c"` + "\r\nGET k\r\n", "+OK\r\n$7\r\na\x00b\r\n c\r\n"},
		{"SET k 'it\\'s'\r\nGET k\r\n", "+OK\r\n$4\r\nit's\r\n"},
		{"SET k \"\"\r\nSTRLEN k\r\n", "+OK\r\n:0\r\n"},
		{`DOC.PUT 0 d '{"a": [1, 2]}'` + "\r\nDOC.GET 0 d\r\n", "+OK\r\n$13\r\n{\"a\": [1, 2]}\r\n"},
		{"*1\r\n$4\r\nPING\r\nPING\r\n*1\r\n$4\r\nPING\r\n", "+PONG\r\n+PONG\r\n+PONG\r\n"}, // both kinds, mixed
		{"GET\r\nPING\r\n", "-ERR wrong number of arguments for 'get' command\r\n+PONG\r\n"},
		{"SET k \"open\r\nPING\r\n", "-ERR Protocol error: unbalanced quotes in request\r\n"}, // and no more
		{"PING\r\nQUIT\r\nPING\r\n", "+PONG\r\n+OK\r\n"},
	} {
		nc, err := net.Dial("tcp", "127.0.0.1:"+p.Port)
		drill.Check(t, err)
		drill.Check(t, nc.SetDeadline(time.Now().Add(harness.Patience)))
		if _, err := io.WriteString(nc, tt.say); err != nil {
			t.Fatal(err)
		}
		drill.Check(t, nc.(*net.TCPConn).CloseWrite())
		if got, err := io.ReadAll(nc); err != nil || string(got) != tt.want {
			t.Errorf("%q is answered %q, %v, want %q", tt.say, got, err, tt.want)
		}
		drill.Check(t, nc.Close())
	}
}
