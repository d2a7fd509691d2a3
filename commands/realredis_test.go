package commands

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// realRedis is a redis-server to compare with.
type realRedis struct{ socket string }

// startRealRedis starts a redis-server on a socket file. Without an installed one the test is skipped; in
// CI it fails, so that the comparison always runs there.
func startRealRedis(t *testing.T) *realRedis {
	t.Helper()
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("redis-server is not installed: nothing to compare with")
		}
		t.Skip("SKIPPED: redis-server is not installed, so Redis' own replies were NOT compared")
	}
	dir, err := os.MkdirTemp("", "redis") // t.TempDir may be too long for the path of a socket
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(dir, "s")
	cmd := exec.Command(path, "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
		"--dir", dir, "--logfile", filepath.Join(dir, "log"))
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	})
	for range 500 {
		if conn, err := net.Dial("unix", socket); err == nil {
			_ = conn.Close()
			return &realRedis{socket: socket}
		}
		time.Sleep(10 * time.Millisecond) // another process: there is no clock of ours to move
	}
	t.Fatal("redis-server does not answer")
	return nil
}

// realConn is a connection to a realRedis in RESP3, which shows all types of replies.
type realConn struct {
	conn     net.Conn
	in       *bufio.Reader
	messages []Reply // that have come while replies were read
}

func (r *realRedis) dial(t *testing.T) *realConn {
	t.Helper()
	conn, err := net.Dial("unix", r.socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	c := &realConn{conn: conn, in: bufio.NewReader(conn)}
	c.do(t, "HELLO", "3")
	return c
}

// do sends a command and reads its reply. Messages, as of SUBSCRIBE, become KindSeveral.
func (c *realConn) do(t *testing.T, args ...string) Reply {
	t.Helper()
	name := strings.ToLower(args[0])
	if !strings.HasSuffix(name, "subscribe") {
		return c.ask(t, args...)
	}
	c.send(t, args...)
	var confirmations []Reply
	for {
		switch r := c.read(t); {
		case r.Kind == KindPush && r.Elems[0].Str == name:
			confirmations = append(confirmations, r)
			if len(confirmations) >= len(args)-1 { // all have come, or those after UNSUBSCRIBE without arguments
				return several(append(confirmations, c.confirmations(t, name)...))
			}
		case r.Kind == KindPush:
			c.messages = append(c.messages, r)
		default:
			return r
		}
	}
}

// confirmations reads what is under way, and returns the confirmations of a command among it.
func (c *realConn) confirmations(t *testing.T, name string) []Reply {
	t.Helper()
	before := len(c.messages)
	c.ask(t, "PING")
	var found []Reply
	c.messages = append(c.messages[:before:before], slices.DeleteFunc(slices.Clone(c.messages[before:]), func(r Reply) bool {
		if r.Elems[0].Str != name {
			return false
		}
		found = append(found, r)
		return true
	})...)
	return found
}

// received returns the messages since its last call.
func (c *realConn) received(t *testing.T) []Reply {
	t.Helper()
	c.ask(t, "PING")
	list := c.messages
	c.messages = nil
	return list
}

// ask sends a command and reads its reply. It keeps messages for received.
func (c *realConn) ask(t *testing.T, args ...string) Reply {
	t.Helper()
	c.send(t, args...)
	for {
		r := c.read(t)
		if r.Kind != KindPush {
			return r
		}
		c.messages = append(c.messages, r)
	}
}

func (c *realConn) send(t *testing.T, args ...string) {
	t.Helper()
	msg := fmt.Appendf(nil, "*%d\r\n", len(args))
	for _, arg := range args {
		msg = fmt.Appendf(msg, "$%d\r\n%s\r\n", len(arg), arg)
	}
	if err := c.conn.SetDeadline(time.Now().Add(30 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := c.conn.Write(msg); err != nil {
		t.Fatal(err)
	}
}

func (c *realConn) read(t *testing.T) Reply {
	t.Helper()
	r, err := readReply(c.in)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// readReply reads a reply in RESP2 or RESP3 from a trusted server.
func readReply(in *bufio.Reader) (Reply, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return Reply{}, err
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return Status(text), nil
	case '-':
		return Reply{Kind: KindError, Str: text}, nil
	case '_':
		return Null, nil
	case '#':
		return Reply{Kind: KindBool, Int: Flag(text == "t").Int}, nil
	case ',':
		f, err := strconv.ParseFloat(text, 64)
		return Double(f), err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return Reply{}, err
	}
	switch {
	case kind == ':':
		return Integer(n), nil
	case n < 0 && kind == '*':
		return NullArray, nil
	case n < 0:
		return Null, nil
	case kind == '$' || kind == '=':
		data := make([]byte, n+2)
		if _, err := io.ReadFull(in, data); err != nil {
			return Reply{}, err
		}
		if kind == '=' {
			return Verbatim(string(data[len("txt:"):n])), nil
		}
		return Bulk(string(data[:n])), nil
	}
	kinds := map[byte]Kind{'*': KindArray, '%': KindMap, '~': KindSet, '>': KindPush}
	r := Reply{Kind: kinds[kind]}
	if r.Kind == KindNone {
		return Reply{}, fmt.Errorf("unknown type in %q", line)
	}
	if r.Kind == KindMap {
		n *= 2
	}
	for range n {
		elem, err := readReply(in)
		if err != nil {
			return Reply{}, err
		}
		r.Elems = append(r.Elems, elem)
	}
	return r, nil
}
