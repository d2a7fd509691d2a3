package wire

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"mayfly/test/harness"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

var randomDialogues = flag.Int("random-dialogues", 150, "how many random interleavings of two connections to play to Redis and to mayfly")

// TestRandomInterleavingsOnRedis lets two connections talk to mayfly and to a real redis-server. Their turns are
// drawn at random and the same for both. It compares what each connection gets. Turns end anywhere, also within a
// command. So what one client does is seen in what another watches, subscribes to, or is held back by.
//
// The next turn begins when the last has been answered. Redis has answered when a third client, who asks
// later, has its reply: it works with one thread. mayfly has when as many lines have come as from Redis.
func TestRandomInterleavingsOnRedis(t *testing.T) {
	servers := pair{
		"127.0.0.1:" + harness.Start(t, filepath.Join(t.TempDir(), "data")).Port,
		"127.0.0.1:" + startRedisServer(t),
	}
	maker := newPipelineMaker(rand.New(rand.NewPCG(*randomSeed, 3)))
	maker.calls = append(maker.calls, slices.Repeat(dialogueTemplates, 8)...)
	messages, aborted := 0, 0
	for range *randomDialogues {
		d := maker.dialogue()
		theirs := servers.converse(t, d)
		for _, text := range theirs {
			messages += bytes.Count(text, []byte("message\r\n"))
			aborted += bytes.Count(text, []byte("\r\n*-1\r\n")) + bytes.Count(text, []byte("\r\n_\r\n"))
		}
	}
	if messages == 0 || aborted == 0 {
		t.Errorf("%d messages came and %d transactions were aborted: that tests little", messages, aborted)
	}
}

// dialogueTemplates are calls of which another client notices something.
var dialogueTemplates = []string{
	"WATCH key", "WATCH key key", "MULTI", "EXEC", "EXEC", "SET key value", "DEL key", "GET key", "INCR key", "FLUSHDB", "SWAPDB 0 1", "MOVE key 1",
	"SUBSCRIBE news other", "PSUBSCRIBE n*", "SSUBSCRIBE news", "UNSUBSCRIBE", "PUNSUBSCRIBE", "PUBLISH news value", "SPUBLISH news value",
	"CLIENT KILL TYPE pubsub", "RESET", "CONFIG SET notify-keyspace-events KEA", "CONFIG SET notify-keyspace-events KEg$",
	"PUBSUB NUMSUB news other", "PUBSUB NUMPAT", "PUBSUB CHANNELS",
}

// A dialogue is what two clients send, and in which turns.
type dialogue struct {
	sides [2][][]string
	seed  uint64 // of the turns
}

// dialogue makes up a dialogue.
func (m *pipelineMaker) dialogue() dialogue {
	d := dialogue{seed: m.Uint64()}
	for i := range d.sides {
		d.sides[i] = slices.DeleteFunc(m.pipeline(), func(args []string) bool {
			// Nothing would tell that it has been carried out.
			return strings.EqualFold(args[0], "CLIENT") && len(args) > 1 && strings.EqualFold(args[1], "REPLY")
		})
	}
	for i, pipeline := range d.sides {
		multi := slices.ContainsFunc(pipeline, func(args []string) bool { return strings.EqualFold(args[0], "MULTI") })
		if !multi && m.IntN(2) == 0 { // Redis 7.0 would put events into the middle of the reply of EXEC
			d.sides[i] = slices.Insert(pipeline, m.IntN(min(len(pipeline), 3)), []string{"PSUBSCRIBE", "__key*"})
		}
	}
	if m.IntN(2) == 0 {
		d.sides[0] = slices.Insert(d.sides[0], m.IntN(len(d.sides[0])), m.pause()...)
		// Who is held back could disconnect who ends the pause before its reply has left.
		d.sides[1] = slices.DeleteFunc(d.sides[1], func(args []string) bool { return slices.Contains(args, "KILL") })
	}
	return d
}

// pause is a pause for writers, by one who does not write meanwhile: of several that are held back it is
// chance who goes on first.
func (m *pipelineMaker) pause() [][]string {
	list := [][]string{{"CLIENT", "PAUSE", "100000", "WRITE"}}
	for range m.IntN(8) {
		list = append(list, m.fill(m.one("GET key", "WATCH key", "PING", "STRLEN key", "PUBSUB NUMSUB news", "EXISTS key")))
	}
	return append(list, []string{"CLIENT", "UNPAUSE"})
}

// A turn is what one side sends at a time.
type turn struct {
	side int
	text []byte
}

// turns cuts what both sides send into turns.
func (d dialogue) turns() []turn {
	r := rand.New(rand.NewPCG(d.seed, 0))
	var texts [2][][]byte // chunks
	for side, pipeline := range d.sides {
		var chunk []byte
		for _, args := range pipeline {
			chunk = appendRequest(chunk, args)
			switch way := r.IntN(4); {
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
	}
	var list []turn
	for len(texts[0])+len(texts[1]) > 0 {
		side := r.IntN(2)
		if len(texts[side]) == 0 {
			side = 1 - side
		}
		list = append(list, turn{side, texts[side][0]})
		texts[side] = texts[side][1:]
	}
	return list
}

// converse plays a dialogue on both servers and compares what each side gets; a difference is shown with
// the shortest dialogue that brings it about. It returns what Redis has sent.
func (servers pair) converse(t *testing.T, d dialogue) [2][]byte {
	t.Helper()
	same, ours, theirs := servers.hold(t, d, harness.Patience)
	if same {
		return theirs
	}
	for side := range d.sides {
		d.sides[side] = shorten(d.sides[side], func(shorter [][]string) bool {
			less := d
			less.sides[side] = shorter
			same, _, _ := servers.hold(t, less, time.Second)
			return !same
		})
	}
	if again, a, b := servers.hold(t, d, harness.Patience); !again {
		ours, theirs = a, b
	}
	var shown strings.Builder
	for _, turn := range d.turns() {
		fmt.Fprintf(&shown, "\t%c: %.300q\n", 'A'+turn.side, turn.text)
	}
	for side := range d.sides {
		fmt.Fprintf(&shown, "%c, %s", 'A'+side, differing(ours[side], theirs[side]))
	}
	t.Errorf("-random-seed %d:\n%s", *randomSeed, shown.String())
	return theirs
}

// hold plays a dialogue on both servers. It waits for so long until mayfly has answered as much as Redis has.
func (servers pair) hold(t *testing.T, d dialogue, patience time.Duration) (same bool, ours, theirs [2][]byte) {
	t.Helper()
	here, there := newTable(t, servers[0]), newTable(t, servers[1])
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
	for _, address := range servers {
		send(t, address, [][]string{{"CLIENT", "UNPAUSE"}, {"QUIT"}})
	}
	there.settle()
	here.await(there, patience)
	same = true
	for side := range here.guests {
		ours[side], theirs[side] = here.guests[side].got, there.guests[side].got
		both := append(slices.Clone(d.sides[0]), d.sides[1]...)
		same = same && sameAnswers(both, ours[side], theirs[side]) && here.guests[side].closed == there.guests[side].closed
	}
	return same, ours, theirs
}

// roundTable is where two clients talk to one server.
type roundTable struct {
	t       *testing.T
	address string
	guests  [2]*guest
	third   net.Conn // knows when Redis has answered
}

// guest is one of the two.
type guest struct {
	conn   *net.TCPConn
	raw    syscall.RawConn
	got    []byte
	closed bool // by the server
}

func newTable(t *testing.T, address string) *roundTable {
	t.Helper()
	send(t, address, append(slices.Clone(before), []string{"QUIT"}))
	table := &roundTable{t: t, address: address}
	for i := range table.guests {
		conn := table.dial().(*net.TCPConn)
		raw, err := conn.SyscallConn()
		if err != nil {
			t.Fatal(err)
		}
		table.guests[i] = &guest{conn: conn, raw: raw}
	}
	table.third = table.dial()
	return table
}

func (table *roundTable) dial() net.Conn {
	table.t.Helper()
	conn, err := net.Dial("tcp", table.address)
	if err == nil {
		err = conn.SetDeadline(time.Now().Add(10 * harness.Patience))
	}
	if err != nil {
		table.t.Fatal(err)
	}
	return conn
}

func (table *roundTable) close() {
	_ = table.third.Close()
	for _, g := range table.guests {
		_ = g.conn.Close()
	}
}

func (table *roundTable) say(turn turn) {
	_, _ = table.guests[turn.side].conn.Write(turn.text) // it may have been closed
}

// settle waits until Redis has answered what has been said, and takes it.
func (table *roundTable) settle() {
	table.t.Helper()
	// A client to be disconnected is so in the turn after that of the reply.
	for range 2 {
		if _, err := table.third.Write([]byte("*1\r\n$7\r\nNOSUCHX\r\n")); err != nil {
			table.t.Fatal(err)
		}
		var reply []byte
		for !bytes.HasSuffix(reply, []byte("\r\n")) {
			one := make([]byte, 200)
			n, err := table.third.Read(one)
			if err != nil {
				table.t.Fatal(err)
			}
			reply = append(reply, one[:n]...)
		}
	}
	for _, g := range table.guests {
		g.take(table.t)
	}
}

// await waits until as much has come as at another table; false if it does not.
func (table *roundTable) await(other *roundTable, patience time.Duration) bool {
	table.t.Helper()
	until := time.Now().Add(patience)
	for side, g := range table.guests {
		for g.take(table.t); !g.hasAsMuchAs(other.guests[side]); g.take(table.t) {
			if time.Now().After(until) {
				return false
			}
			time.Sleep(50 * time.Microsecond) // another process: there is no clock of ours to move
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
		if failed := g.raw.Read(func(fd uintptr) bool {
			n, err = syscall.Read(int(fd), buf)
			return true
		}); failed != nil {
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
