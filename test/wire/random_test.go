package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// TestRandomOnRedis lets clients say the same to mayfly and to a real redis-server, and compares all that
// comes back, byte by byte, until the connections are closed. The commands are made from the table: each
// row's own notation, filled with likely and unlikely arguments, now and then spoiled. So a new row is tried
// without a word here, unless it is named in incomparable. Clients speak RESP2 or RESP3, open transactions,
// watch, subscribe and reset.
//
//   - pipelines: one client sends all commands at once.
//   - password: so, but the servers demand a password, which not all clients give, or not at once.
//   - dialogues: two clients take turns, drawn at random. A turn ends anywhere, also within a command. So
//     what one does is seen in what the other watches, subscribes to, or is held back by.
//
// A difference is shown with the shortest talk that still brings it about.
func TestRandomOnRedis(t *testing.T) {
	drill.Slow(t)
	for _, test := range []struct {
		name     string
		password string
		extra    []string // more calls
		count    int
		make     func(m *talkMaker, n int) talk
		least    map[string]int // how often Redis must have sent what matches
	}{
		{
			name: "pipelines", count: drill.Pick(0, 150, 20_000), make: (*talkMaker).pipelineTalk,
			least: map[string]int{`\r\n`: drill.Pick(0, 1500, 200_000)},
		},
		{name: "password", password: "secret", count: drill.Pick(0, 50, 5000), make: (*talkMaker).passwordTalk},
		{
			name: "dialogues", extra: slices.Repeat(dialogueTemplates, 8), count: drill.Pick(0, 80, 5000), make: (*talkMaker).dialogue,
			least: map[string]int{`message\r\n`: 1, `\r\n(\*-1|_)\r\n`: 1}, // messages, and aborted transactions
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			servers := startBoth(t, test.password)
			maker := newTalkMaker(drill.Rand(t), test.extra)
			var all []byte
			for n := range test.count {
				all = append(all, servers.compare(t, test.make(maker, n))...)
			}
			for pattern, want := range test.least {
				if n := len(regexp.MustCompile(pattern).FindAll(all, -1)); n < want {
					t.Errorf("%s came %d times: that tests little", pattern, n)
				}
			}
		})
	}
}

// both are a mayfly and a redis-server.
type both struct {
	addresses [2]string

	// With a password, each connection has an address of its own: after wrong passwords the next attempts of
	// an address wait.
	password string
	sources  int
}

func startBoth(t *testing.T, password string) *both {
	t.Helper()
	var args []string
	if password != "" {
		args = []string{"--requirepass", password}
	}
	mayfly := harness.Start(t, filepath.Join(t.TempDir(), "data"), append(args, "--reported-version", "7.0.15")...)
	return &both{addresses: [2]string{"127.0.0.1:" + mayfly.Port, startRedis(t, args...)}, password: password}
}

// startRedis starts a redis-server that keeps nothing and returns its address.
func startRedis(t *testing.T, args ...string) string {
	t.Helper()
	host, port := harness.Host(t), harness.FreePort(t)
	cmd := exec.Command(harness.Need(t, "redis-server"), append([]string{"--bind", host, "--port", port, "--save", "", "--appendonly", "no",
		"--dir", t.TempDir(), "--set-proc-title", "no", "--proto-max-bulk-len", "16mb"}, args...)...)
	drill.Check(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address := net.JoinHostPort(host, port)
	harness.WaitFor(t, "redis-server", func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	return address
}

// A talk is what clients send to a server, each a pipeline.
type talk struct {
	sides [][][]string
	seed  uint64 // of the turns of several clients
}

// A turn is what one side sends at a time.
type turn struct {
	side int
	text []byte
}

// turns cuts what the sides send into turns. One client sends all at once.
func (d talk) turns() []turn {
	r := rand.New(rand.NewPCG(d.seed, 0))
	texts := make([][][]byte, len(d.sides)) // chunks
	left := 0
	for side, pipeline := range d.sides {
		var chunk []byte
		for _, args := range pipeline {
			chunk = appendRequest(chunk, args)
			switch way := r.IntN(4); {
			case len(d.sides) == 1:
			case slices.Contains(args, "UNPAUSE"): // what the other side does then is a turn of its own
				texts[side], chunk = append(texts[side], chunk), nil
			case way == 0: // goes on with the next command
			case way == 1: // cut short
				cut := len(chunk) - r.IntN(min(len(chunk), 30))
				texts[side] = append(texts[side], slices.Clone(chunk[:cut]))
				chunk = slices.Clone(chunk[cut:])
			default:
				texts[side], chunk = append(texts[side], chunk), nil
			}
		}
		texts[side] = append(texts[side], chunk)
		left += len(texts[side])
	}
	var list []turn
	for ; left > 0; left-- {
		side := r.IntN(len(texts))
		if len(texts[side]) == 0 {
			side = 1 - side
		}
		list = append(list, turn{side, texts[side][0]})
		texts[side] = texts[side][1:]
	}
	return list
}

func appendRequest(msg []byte, args []string) []byte {
	msg = fmt.Appendf(msg, "*%d\r\n", len(args))
	for _, arg := range args {
		msg = fmt.Appendf(msg, "$%d\r\n%s\r\n", len(arg), arg)
	}
	return msg
}

// compare plays a talk on both servers and compares what each side gets. A difference is shown with the
// shortest talk that brings it about. It returns what Redis has sent.
func (servers *both) compare(t *testing.T, d talk) []byte {
	t.Helper()
	same, ours, theirs := servers.play(t, d, harness.Patience)
	if same {
		return bytes.Join(theirs, nil)
	}
	for side := range d.sides {
		d.sides[side] = shorten(d.sides[side], func(shorter [][]string) bool {
			less := talk{slices.Clone(d.sides), d.seed}
			less.sides[side] = shorter
			same, _, _ := servers.play(t, less, time.Second)
			return !same
		})
	}
	if again, a, b := servers.play(t, d, harness.Patience); !again {
		ours, theirs = a, b
	}
	var shown strings.Builder
	for _, turn := range d.turns() {
		fmt.Fprintf(&shown, "\t%c: %.2000q\n", 'A'+turn.side, turn.text)
	}
	for side := range d.sides {
		fmt.Fprintf(&shown, "%c, %s", 'A'+side, differing(ours[side], theirs[side]))
	}
	t.Error("\n" + shown.String())
	return bytes.Join(theirs, nil)
}

// shortenings is how many shorter pipelines are tried: each waits for a second, if mayfly answers less than
// Redis.
const shortenings = 60

// shorten leaves commands out of a pipeline as long as it still fails.
func shorten(pipeline [][]string, fails func([][]string) bool) [][]string {
	tries := 0
	for i := 0; i < len(pipeline)-1 && tries < shortenings; tries++ { // the last is QUIT
		shorter := slices.Delete(slices.Clone(pipeline), i, i+1)
		if fails(shorter) {
			pipeline = shorter
		} else {
			i++
		}
	}
	return pipeline
}

// play plays a talk on both servers. The next turn begins when the last has been answered. Redis has answered
// when another client, which asks later, has its reply: it works with one thread. mayfly has when as many
// lines have come as from Redis; play waits for them for so long. In the end all clients close their half of
// the connection.
func (servers *both) play(t *testing.T, d talk, patience time.Duration) (same bool, ours, theirs [][]byte) {
	t.Helper()
	here, there := servers.join(t, 0, len(d.sides)), servers.join(t, 1, len(d.sides))
	defer here.close()
	defer there.close()
	for _, turn := range d.turns() {
		there.say(turn)
		there.settle()
		here.say(turn)
		if !here.await(there, patience) {
			break
		}
	}
	for _, table := range []*roundTable{here, there} {
		table.ask([]string{"CLIENT", "UNPAUSE"})
	}
	harness.WaitFor(t, "Redis' clients to wait for no element", func() bool {
		return strings.Contains(there.ask([]string{"INFO", "clients"}), "\r\nblocked_clients:0\r\n")
	})
	there.settle()
	same = here.await(there, patience)
	for side, pipeline := range d.sides {
		// After CLIENT REPLY, Redis does not close a connection at QUIT.
		same = same && (here.guests[side].closed == there.guests[side].closed || saysClientReply(pipeline))
	}
	ours, theirs = here.leave(), there.leave()
	for side := range d.sides {
		same = same && sameAnswers(slices.Concat(d.sides...), ours[side], theirs[side])
	}
	return same, ours, theirs
}

func saysClientReply(pipeline [][]string) bool { return slices.ContainsFunc(pipeline, isClientReply) }

func isClientReply(args []string) bool {
	return strings.EqualFold(args[0], "CLIENT") && len(args) > 1 && strings.EqualFold(args[1], "REPLY")
}

// roundTable is where clients talk to one server.
type roundTable struct {
	t       *testing.T
	servers *both
	guests  []*guest
	host    net.Conn // a client that prepares the server, and knows when Redis has answered
	replies *bufio.Reader
}

// guest is one of the clients.
type guest struct {
	conn   *net.TCPConn
	raw    syscall.RawConn
	got    []byte
	closed bool // by the server
}

// prelude puts a server into the state in which each talk begins. AUTH fails where there is no password.
var prelude = [][]string{
	{"CLIENT", "UNPAUSE"}, {"FLUSHALL"}, {"CONFIG", "SET", "slowlog-log-slower-than", "-1", "notify-keyspace-events", ""},
	{"SLOWLOG", "RESET"}, {"LATENCY", "RESET"}, {"MSET", "int", "5", "text", "some text", "float", "1.5", "", "empty"},
	{"SET", "volatile", "7", "PXAT", "33177117420123"},
}

// join connects clients to a server, once those of the last talk are gone.
func (servers *both) join(t *testing.T, server, clients int) *roundTable {
	t.Helper()
	table := &roundTable{t: t, servers: servers}
	table.host = table.dial(server)
	table.replies = bufio.NewReader(table.host)
	table.ask([]string{"AUTH", servers.password})
	harness.WaitFor(t, "the clients of the last talk to be gone", func() bool {
		return strings.Count(table.ask([]string{"CLIENT", "LIST"}), "\n") == 1
	})
	table.ask(prelude...)
	for range clients {
		conn := table.dial(server)
		raw, err := conn.SyscallConn()
		drill.Check(t, err)
		table.guests = append(table.guests, &guest{conn: conn, raw: raw})
	}
	return table
}

func (table *roundTable) dial(server int) *net.TCPConn {
	table.t.Helper()
	var dialer net.Dialer
	if table.servers.password != "" {
		table.servers.sources++
		n := table.servers.sources
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 1+byte(n>>16), byte(n>>8), byte(n))}
	}
	conn, err := dialer.Dial("tcp", table.servers.addresses[server])
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(10 * harness.Patience))
	}
	drill.Check(table.t, err)
	return conn.(*net.TCPConn)
}

func (table *roundTable) close() {
	_ = table.host.Close()
	for _, g := range table.guests {
		_ = g.conn.Close()
	}
}

// ask sends commands, each of which is answered with one line or one text. It returns the last reply.
func (table *roundTable) ask(commands ...[]string) (reply string) {
	table.t.Helper()
	var msg []byte
	for _, args := range commands {
		msg = appendRequest(msg, args)
	}
	_, err := table.host.Write(msg)
	for range commands {
		if err == nil {
			reply, err = table.replies.ReadString('\n')
		}
		length := 0
		if n, _ := fmt.Sscanf(reply, "$%d", &length); n == 1 && err == nil {
			text := make([]byte, length+len("\r\n"))
			_, err = io.ReadFull(table.replies, text)
			reply = string(text[:length])
		}
	}
	if err != nil {
		table.t.Fatalf("%q: %v", commands, err)
	}
	return reply
}

func (table *roundTable) say(turn turn) {
	_, _ = table.guests[turn.side].conn.Write(turn.text) // it may have been closed
}

// settle waits until Redis has answered what has been said, and takes it.
func (table *roundTable) settle() {
	table.t.Helper()
	// A client to be disconnected is so in the turn after that of the reply.
	table.ask([]string{"NOSUCHX"})
	table.ask([]string{"NOSUCHX"})
	for _, g := range table.guests {
		g.take(table.t)
	}
}

// await waits until as much has come as at another table; false if it does not.
func (table *roundTable) await(other *roundTable, patience time.Duration) bool {
	until := time.Now().Add(patience)
	for side, g := range table.guests {
		for !g.hasAsMuchAs(other.guests[side]) {
			if g.closed || !g.read(until) {
				return false
			}
		}
	}
	return true
}

func (g *guest) hasAsMuchAs(other *guest) bool {
	ours, theirs := bytes.Count(withoutReJSON(g.got), []byte("\r\n")), bytes.Count(other.got, []byte("\r\n"))
	return ours > theirs || ours == theirs && (g.closed || !other.closed)
}

// take takes what has come, without waiting.
func (g *guest) take(t *testing.T) {
	t.Helper()
	buf := make([]byte, 16<<10)
	for !g.closed {
		var n int
		var err error
		if failed := g.raw.Control(func(fd uintptr) { n, err = syscall.Read(int(fd), buf) }); failed != nil {
			t.Fatal(failed)
		}
		switch {
		case errors.Is(err, syscall.EAGAIN):
			return
		case errors.Is(err, syscall.EINTR):
		case err != nil, n == 0:
			g.closed = true
		default:
			g.got = append(g.got, buf[:n]...)
		}
	}
}

// read waits until a moment for something to come, or for the server to close the connection. It returns
// false if nothing does.
func (g *guest) read(until time.Time) bool {
	_ = g.conn.SetReadDeadline(until) // if it fails, so does Read
	buf := make([]byte, 16<<10)
	n, err := g.conn.Read(buf)
	g.got = append(g.got, buf[:n]...)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return false
	}
	g.closed = err != nil
	return true
}

// leave closes the clients' halves of the connections. It returns all that came to each until the server
// closed its own.
func (table *roundTable) leave() (got [][]byte) {
	table.t.Helper()
	for _, g := range table.guests {
		_ = g.conn.CloseWrite() // the server may have closed it
		for until := time.Now().Add(harness.Patience); !g.closed; {
			if !g.read(until) {
				table.t.Errorf("%s does not close the connection", g.conn.RemoteAddr())
				break
			}
		}
		got = append(got, g.got)
	}
	return got
}
