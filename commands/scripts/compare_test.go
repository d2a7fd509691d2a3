package scripts

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/redistest"
	"mayfly/test/drill"
)

// redisConn speaks RESP with a redis-server. As a Caller it runs the commands of a script there.
type redisConn struct {
	conn net.Conn
	r    *bufio.Reader
}

// startRedis starts a redis-server for the test, or skips the test.
func startRedis(t testing.TB) *redisConn {
	t.Helper()
	socket := redistest.Start(t)
	conn, err := net.Dial("unix", socket)
	drill.Check(t, err)
	t.Cleanup(func() { conn.Close() })
	return &redisConn{conn, bufio.NewReader(conn)}
}

func (c *redisConn) do(args ...string) Value {
	var b strings.Builder
	fmt.Fprintf(&b, "*%d\r\n", len(args))
	for _, a := range args {
		fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(a), a)
	}
	c.conn.SetDeadline(time.Now().Add(20 * time.Second))
	if _, err := io.WriteString(c.conn, b.String()); err != nil {
		return ErrorValue("write: " + err.Error())
	}
	return c.read()
}

func (c *redisConn) read() Value {
	line, err := c.r.ReadString('\n')
	if err != nil {
		return ErrorValue("read: " + err.Error())
	}
	kind, rest := line[0], strings.TrimRight(line[1:], "\r\n")
	n, _ := strconv.ParseInt(rest, 10, 64)
	elems := func(kind Kind, n int64) Value {
		v := Value{Kind: kind, Elems: []Value{}}
		for range n {
			v.Elems = append(v.Elems, c.read())
		}
		return v
	}
	switch kind {
	case '+':
		return Value{Kind: Status, Str: rest}
	case '-':
		return ErrorValue(rest)
	case ':':
		return Value{Kind: Int, Int: n}
	case '_':
		return Value{}
	case '#':
		v := Value{Kind: Bool}
		if rest == "t" {
			v.Int = 1
		}
		return v
	case ',':
		f, _ := strconv.ParseFloat(rest, 64)
		return Value{Kind: Double, Double: f}
	case '(':
		return Value{Kind: Big, Str: rest}
	case '$', '=':
		if n < 0 {
			return Value{}
		}
		b := make([]byte, n+2)
		io.ReadFull(c.r, b)
		if kind == '=' {
			return Value{Kind: Verbatim, Str: string(b[:n])}
		}
		return Value{Kind: Bulk, Str: string(b[:n])}
	case '*':
		if n < 0 {
			return Value{Kind: NullArray}
		}
		return elems(Array, n)
	case '%':
		return elems(Map, 2*n)
	case '~':
		return elems(Set, n)
	}
	return ErrorValue("unknown reply " + line)
}

func (c *redisConn) Call(args []string) (Value, error) { return c.do(args...), nil }
func (c *redisConn) Allowed(args []string) (bool, bool) {
	return true, c.do("COMMAND", "INFO", args[0]).Elems[0].Kind == Array
}
func (c *redisConn) Log(int, string)       {}
func (c *redisConn) SetProtocol(proto int) { c.do("HELLO", strconv.Itoa(proto)) }

// text renders a reply for comparison.
func (v Value) text() string {
	switch v.Kind {
	case Nil:
		return "nil"
	case NullArray:
		return "nullarray"
	case Bool:
		return fmt.Sprintf("bool %d", v.Int)
	case Int:
		return fmt.Sprint(v.Int)
	case Double:
		return fmt.Sprintf("double %.17g", v.Double)
	case Big, Verbatim, Bulk, Status, Error:
		return fmt.Sprintf("%s %q", map[Kind]string{Big: "big", Verbatim: "verbatim", Bulk: "bulk", Status: "status", Error: "error"}[v.Kind], v.Str)
	}
	parts := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		parts[i] = e.text()
	}
	return map[Kind]string{Array: "[", Map: "map[", Set: "set["}[v.Kind] + strings.Join(parts, ", ") + "]"
}

// readScripts reads scripts that are separated by lines of minus signs.
func readScripts(t testing.TB, file string) []string {
	t.Helper()
	data, err := os.ReadFile(file)
	drill.Check(t, err)
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n----\n")
}

// sameWords returns a text without what errors call functions and count as arguments: Lua in C asks the place
// of the call.
func sameWords(text string) string {
	return strings.ReplaceAll(badArgument.ReplaceAllString(text, "bad argument"), "got nil", "got no value")
}

var badArgument = regexp.MustCompile(`bad argument #\d+ to '[^']*'`)

// TestCompare runs scripts here and in redis-server, with RESP2 and RESP3, and compares the replies.
func TestCompare(t *testing.T) {
	t.Parallel()
	server := startRedis(t)
	var cache Cache
	files, err := filepath.Glob("testdata/compare*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	keys, args := []string{"k1", "k2"}, []string{"a", "10", "3.5", ""}
	for _, file := range files {
		for _, body := range readScripts(t, file) {
			for _, proto := range []string{"2", "3"} {
				server.do("HELLO", proto)
				server.do("FLUSHALL")
				want := server.do(append(append([]string{"EVAL", body, "2"}, keys...), args...)...)
				server.do("HELLO", "2")
				server.do("FLUSHALL")
				var got Value
				s, err := cache.Load(body, false)
				if err != nil {
					got = ErrorValue(err.Error())
				} else if got, err = Run(s, nil, server, keys, args, Limits{}); err != nil {
					got = ErrorValue(err.Error())
				}
				if proto == "2" {
					got, want = resp2(got), resp2(want)
				}
				if sameWords(got.text()) != sameWords(want.text()) {
					t.Errorf("RESP%s: %s\n got %s\nwant %s", proto, body, got.text(), want.text())
				}
			}
		}
	}
}

// resp2 returns a reply as clients of RESP2 see it.
func resp2(v Value) Value {
	switch v.Kind {
	case Bool:
		return Value{Kind: Int, Int: v.Int}
	case NullArray:
		return Value{}
	case Double:
		return Value{Kind: Bulk, Str: strconv.FormatFloat(v.Double, 'g', 17, 64)}
	case Big:
		return Value{Kind: Bulk, Str: v.Str}
	case Verbatim:
		return Value{Kind: Bulk, Str: v.Str[4:]}
	case Map, Set, Array:
		out := Value{Kind: Array, Elems: []Value{}}
		for _, e := range v.Elems {
			out.Elems = append(out.Elems, resp2(e))
		}
		return out
	}
	return v
}
