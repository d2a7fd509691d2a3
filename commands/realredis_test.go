package commands

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/redistest"
	"mayfly/test/drill"
)

// realRedis is a redis-server to compare with.
type realRedis struct{ socket string }

// startRealRedis starts a redis-server, or skips the test. Then the test runs beside others, not before:
// until it executes, a new process holds the locks of all data folders that are open.
func startRealRedis(t *testing.T) *realRedis {
	t.Helper()
	socket := redistest.Start(t)
	t.Parallel()
	return &realRedis{socket: socket}
}

// rivals are a mayfly and a real redis-server, which get the same commands. Sessions of one have the numbers
// of the connections to the other. The clock of mayfly follows the real time.
type rivals struct {
	*harness
	server  *realRedis
	conns   map[int]*realConn
	same    func(session int, args []string, ours, theirs engine.Reply) bool
	history []string // of what send has sent
}

func newRivals(t *testing.T, same func(session int, args []string, ours, theirs engine.Reply) bool) *rivals {
	t.Helper()
	r := &rivals{server: startRealRedis(t), conns: map[int]*realConn{}, same: same}
	r.harness = newHarness(t)
	r.clock.Raise(time.Now().UnixMilli())
	return r
}

// redis returns the connection of a session.
func (r *rivals) redis(session int) *realConn {
	if r.conns[session] == nil {
		r.conns[session] = r.server.dial(r.t)
	}
	return r.conns[session]
}

// hello changes the protocol of a session.
func (r *rivals) hello(session, proto int) {
	r.redis(session).do(r.t, "HELLO", fmt.Sprint(proto))
	r.do(session, "HELLO", fmt.Sprint(proto))
}

// send sends a command to both, and ends the test if their replies differ. It returns that of mayfly.
func (r *rivals) send(session int, args ...string) engine.Reply {
	r.t.Helper()
	r.history = append(r.history[max(0, len(r.history)-39):], fmt.Sprintf("client %d: %.200q", session, args))
	return r.look(session, args...)
}

// look is send for a command that changes nothing.
func (r *rivals) look(session int, args ...string) engine.Reply {
	r.t.Helper()
	r.clock.Raise(time.Now().UnixMilli())
	theirs, ours := r.redis(session).do(r.t, args...), r.do(session, args...)
	if !r.same(session, args, ours, theirs) {
		r.t.Fatalf("client %d: %.300q: got\n%.2000s\nRedis replies\n%.2000s\nafter\n%.8000s", session, args, notation(ours), notation(theirs),
			strings.Join(r.history, "\n"))
	}
	return ours
}

// realConn is a connection to a realRedis in RESP3, which shows all types of replies.
type realConn struct {
	conn     net.Conn
	in       *bufio.Reader
	messages []engine.Reply // that have come while replies were read
}

func (r *realRedis) dial(t *testing.T) *realConn {
	t.Helper()
	conn, err := net.Dial("unix", r.socket)
	drill.Check(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	c := &realConn{conn: conn, in: bufio.NewReader(conn)}
	c.do(t, "HELLO", "3")
	return c
}

// do sends a command and reads its reply. Messages, as of SUBSCRIBE, become KindSeveral.
func (c *realConn) do(t *testing.T, args ...string) engine.Reply {
	t.Helper()
	name := strings.ToLower(args[0])
	if !strings.HasSuffix(name, "subscribe") {
		return c.ask(t, args...)
	}
	c.send(t, args...)
	var confirmations []engine.Reply
	for {
		switch r := c.read(t); {
		case r.Kind == engine.KindPush && r.Elems[0].Str == name:
			confirmations = append(confirmations, r)
			if len(confirmations) >= len(args)-1 { // all have come, or those after UNSUBSCRIBE without arguments
				return admin.Several(append(confirmations, c.confirmations(t, name)...))
			}
		case r.Kind == engine.KindPush:
			c.messages = append(c.messages, r)
		default:
			return r
		}
	}
}

// confirmations reads what is under way, and returns the confirmations of a command among it.
func (c *realConn) confirmations(t *testing.T, name string) []engine.Reply {
	t.Helper()
	before := len(c.messages)
	c.ask(t, "PING")
	var found []engine.Reply
	c.messages = append(c.messages[:before:before], slices.DeleteFunc(slices.Clone(c.messages[before:]), func(r engine.Reply) bool {
		if r.Elems[0].Str != name {
			return false
		}
		found = append(found, r)
		return true
	})...)
	return found
}

// received returns the messages since its last call.
func (c *realConn) received(t *testing.T) []engine.Reply {
	t.Helper()
	c.ask(t, "PING")
	list := c.messages
	c.messages = nil
	return list
}

// ask sends a command and reads its reply. It keeps messages for received.
func (c *realConn) ask(t *testing.T, args ...string) engine.Reply {
	t.Helper()
	c.send(t, args...)
	for {
		r := c.read(t)
		if r.Kind != engine.KindPush {
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
	drill.Check(t, c.conn.SetDeadline(time.Now().Add(30*time.Second)))
	if _, err := c.conn.Write(msg); err != nil {
		t.Fatal(err)
	}
}

func (c *realConn) read(t *testing.T) engine.Reply {
	t.Helper()
	r, err := readReply(c.in)
	drill.Check(t, err)
	return r
}

// readReply reads a reply in RESP2 or RESP3 from a trusted server.
func readReply(in *bufio.Reader) (engine.Reply, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return engine.Reply{}, err
	}
	kind, text := line[0], line[1:len(line)-2]
	switch kind {
	case '+':
		return engine.Status(text), nil
	case '-':
		return engine.Reply{Kind: engine.KindError, Str: text}, nil
	case '_':
		return engine.Null, nil
	case '#':
		return engine.Reply{Kind: engine.KindBool, Int: engine.Flag(text == "t").Int}, nil
	case ',':
		f, err := strconv.ParseFloat(text, 64)
		return engine.Double(f), err
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return engine.Reply{}, err
	}
	switch {
	case kind == ':':
		return engine.Integer(n), nil
	case n < 0 && kind == '*':
		return engine.NullArray, nil
	case n < 0:
		return engine.Null, nil
	case kind == '$' || kind == '=':
		data := make([]byte, n+2)
		if _, err := io.ReadFull(in, data); err != nil {
			return engine.Reply{}, err
		}
		if kind == '=' {
			return engine.Verbatim(string(data[len("txt:"):n])), nil
		}
		return engine.Bulk(string(data[:n])), nil
	}
	kinds := map[byte]engine.Kind{'*': engine.KindArray, '%': engine.KindMap, '~': engine.KindSet, '>': engine.KindPush}
	r := engine.Reply{Kind: kinds[kind]}
	if r.Kind == engine.KindNone {
		return engine.Reply{}, fmt.Errorf("unknown type in %q", line)
	}
	if r.Kind == engine.KindMap {
		n *= 2
	}
	for range n {
		elem, err := readReply(in)
		if err != nil {
			return engine.Reply{}, err
		}
		r.Elems = append(r.Elems, elem)
	}
	return r, nil
}
