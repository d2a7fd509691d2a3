package cluster

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"
)

// cacher is a connection of a client that caches, in RESP3.
type cacher struct {
	t       *testing.T
	name    string
	node    *harness.Node
	conn    net.Conn
	in      *bufio.Reader
	told    []string          // the names of the messages that were not awaited yet; "null" for all
	replies map[string]string // to commands: what it keeps, if it does
}

func newCacher(n *harness.Node, name string, first ...string) *cacher {
	n.T.Helper()
	conn, err := net.Dial("tcp", n.ClientAddr)
	drill.Check(n.T, err)
	n.T.Cleanup(func() { conn.Close() })
	c := &cacher{t: n.T, name: name, node: n, conn: conn, in: bufio.NewReader(conn)}
	for _, command := range append([]string{"HELLO 3", "CLIENT TRACKING ON"}, first...) {
		if reply := c.ask(command); strings.HasPrefix(reply, "-") {
			n.T.Fatalf("%s: %s: %s", name, command, reply)
		}
	}
	return c
}

// read reads a value and notes the messages before it.
func (c *cacher) read() (string, error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return "", err
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return "null", nil
		}
		body := make([]byte, n+2)
		_, err := io.ReadFull(c.in, body)
		return string(body[:n]), err
	case '_':
		return "null", nil
	case '*', '~', '%', '>':
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			if parts[i], err = c.read(); err != nil {
				return "", err
			}
		}
		return strings.Join(parts, " "), nil
	}
	return line, nil
}

// message reads what comes next. A message is noted; ok is false if it is a reply.
func (c *cacher) message() (text string, ok bool, err error) {
	if err := c.conn.SetReadDeadline(time.Now().Add(harness.Patience)); err != nil {
		return "", false, err
	}
	if text, err = c.read(); err != nil || !strings.HasPrefix(text, "invalidate ") {
		return text, false, err
	}
	names := strings.TrimPrefix(text, "invalidate ")
	c.told = append(c.told, names)
	switch words := strings.Fields(names); {
	case names == "null":
		clear(c.replies)
	case len(words) == 1:
		delete(c.replies, "GET "+names)
	default:
		delete(c.replies, "DOC.GET "+words[1]+" "+words[0])
	}
	return text, true, nil
}

// try sends a command and returns its reply.
func (c *cacher) try(command string) (string, error) {
	words := strings.Fields(command)
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c.conn, text); err != nil {
		return "", err
	}
	for {
		if text, ok, err := c.message(); !ok || err != nil {
			return text, err
		}
	}
}

// ask sends a command and returns its reply.
func (c *cacher) ask(command string) string {
	c.t.Helper()
	reply, err := c.try(command)
	if err != nil {
		c.t.Fatalf("%s: %v; told before: %q", c.name, err, c.told)
	}
	return reply
}

// await waits until the client is told names, and forgets all messages up to then.
func (c *cacher) await(names string) {
	c.t.Helper()
	for {
		for i, told := range c.told {
			if told == names {
				c.told = c.told[i+1:]
				return
			}
		}
		if text, ok, err := c.message(); !ok {
			c.t.Fatalf("%s: waits for %q, and gets %q, %v; told before: %q", c.name, names, text, err, c.told)
		}
	}
}

// TestCachesInCluster: each node tells its own clients, also of what it has passed on to the leader, and with
// a change of leaders that nothing holds any more.
func TestCachesInCluster(t *testing.T) {
	t.Parallel()
	cluster := harness.StartCluster(t, 3, "--cluster-proxy", "yes")
	leader := cluster.Leader()
	follower := cluster.Others(leader)[0]
	follower.AwaitServing()
	writer := newCacher(leader, "writer")
	clients := []*cacher{
		newCacher(leader, "at the leader"), newCacher(follower, "through the proxy"), newCacher(follower, "at the follower", "READONLY"),
	}
	write := func(command string) {
		t.Helper()
		if reply := writer.ask(command); strings.HasPrefix(reply, "-") {
			t.Fatalf("%s: %s", command, reply)
		}
	}
	// reads returns once all clients have read what the leader has.
	reads := func(command, want string) {
		t.Helper()
		for _, c := range clients {
			cluster.Await(c.name+": "+command, func() bool { return c.ask(command) == want })
		}
	}
	told := func(names string) {
		t.Helper()
		for _, c := range clients {
			c.await(names)
		}
	}
	write("CONTAINER.CREATE orders TTL -1")
	for _, c := range clients {
		cluster.Await(c.name+": the container", func() bool { return !strings.HasPrefix(c.ask("DOC.GET orders 0"), "-") })
	}
	for i := range 3 {
		value := strconv.Itoa(i)
		reads("GET k", map[bool]string{true: "null", false: strconv.Itoa(i - 1)}[i == 0])
		write("SET k " + value)
		told("k")
		reads("GET k", value)
	}
	write("SET k x PX 200")
	told("k")
	reads("GET k", "null") // it has died, or each was told of its death
	write(`DOC.PUT orders 7 {"n":1}`)
	reads("DOC.GET orders 7", `{"n":1}`)
	write(`DOC.PUT orders 7 {"n":2}`)
	told("7 orders orders/7")
	reads("DOC.GET orders 7", `{"n":2}`)
	write("CONTAINER.SET orders HOLD case")
	told("null")
	write("SET d 1 PX 300")
	for _, c := range clients {
		if c.ask("GET d") == "1" {
			c.await("d")
		}
	}
	leader.Kill()
	for _, c := range clients[1:] {
		c.await("null")
	}
}

// TestCachesOfNewLeaders plays random writes, deaths and changes of containers beside clients that cache, at
// all nodes, while the lead is passed on and leaders are killed. What a client keeps after its messages is
// what the leader has.
func TestCachesOfNewLeaders(t *testing.T) {
	t.Parallel()
	m := cachesModel{Cluster: startBrief(t, "--cluster-proxy", "yes"), random: drill.Rand(t)}
	do(m.Cluster, "CONTAINER.SET", "orders", "TTL", "-1")
	for round := range drill.Pick(2, 4, 100) {
		for _, n := range m.Running() {
			m.connect(n)
		}
		m.play(40)
		leader := m.Leader()
		if round%2 == 0 {
			_, _ = leader.Ask(t.Context(), "CLUSTER", "TRANSFER") // the leader may be another by now
			m.play(60)
		} else {
			leader.Kill()
			m.play(60)
			leader.Start()
			leader.AwaitServing()
		}
		m.check()
	}
	if m.compared == 0 || m.told == 0 {
		t.Errorf("%d replies were compared, after %d messages", m.compared, m.told)
	}
	t.Logf("%d replies were compared, after %d messages", m.compared, m.told)
}

// cachesModel is the clients of TestCachesOfNewLeaders.
type cachesModel struct {
	*harness.Cluster
	random   *rand.Rand
	clients  []*cacher
	value    int // the last that was written
	compared int // replies that clients kept at the end of a round
	told     int // messages to clients
}

// connect makes the clients of a node that there are not: one that reads at the leader, and one that reads
// here.
func (m *cachesModel) connect(n *harness.Node) {
	m.T.Helper()
	if slices.ContainsFunc(m.clients, func(c *cacher) bool { return c.node == n }) {
		return
	}
	n.AwaitServing()
	for _, first := range [][]string{nil, {"READONLY"}} {
		c := newCacher(n, fmt.Sprint(n.Name, " ", first), first...)
		c.replies = map[string]string{}
		m.clients = append(m.clients, c)
	}
}

// play has clients read, and what they read change.
func (m *cachesModel) play(steps int) {
	m.T.Helper()
	for range steps {
		if m.random.IntN(3) == 0 {
			for _, command := range m.write() {
				do(m.Cluster, command...)
			}
			continue
		}
		if len(m.clients) == 0 {
			return
		}
		at, command := m.random.IntN(len(m.clients)), m.reads()[m.random.IntN(2*m.items())]
		c := m.clients[at]
		switch reply, err := c.try(command); {
		case err != nil: // what it keeps goes with its connection
			m.clients = slices.Delete(m.clients, at, at+1)
		case !strings.HasPrefix(reply, "-"):
			c.replies[command] = reply
		}
	}
}

func (m *cachesModel) items() int { return 5 }

// reads are all that clients read.
func (m *cachesModel) reads() (list []string) {
	for i := range m.items() {
		list = append(list, fmt.Sprint("GET k", i), fmt.Sprint("DOC.GET orders d", i))
	}
	return list
}

// write returns commands that change what clients read.
func (m *cachesModel) write() [][]any {
	m.value++
	key, id := fmt.Sprint("k", m.random.IntN(m.items())), fmt.Sprint("d", m.random.IntN(m.items()))
	switch m.random.IntN(16) {
	case 0, 1, 2, 3:
		return [][]any{{"SET", key, m.value}}
	case 4, 5:
		return [][]any{{"SET", key, m.value, "PX", 1 + m.random.IntN(1000)}}
	case 6:
		return [][]any{{"DEL", key}}
	case 7, 8, 9, 10:
		return [][]any{{"DOC.PUT", "orders", id, fmt.Sprintf(`{"n":%d}`, m.value)}}
	case 11:
		return [][]any{{"DOC.PUT", "orders", id, fmt.Sprintf(`{"n":%d,"ttl":1}`, m.value)}}
	case 12:
		return [][]any{{"CONTAINER.SET", "orders", "TTL", []any{"-1", "1", "60"}[m.random.IntN(3)]}}
	case 13:
		return [][]any{{"CONTAINER.SET", "orders", "HOLD", "case"}, {"CONTAINER.SET", "orders", "HOLD", "OFF"}}
	case 14:
		return [][]any{{"CONTAINER.DROP", "orders"}, {"CONTAINER.SET", "orders", "TTL", "-1"}}
	}
	return [][]any{{"SWAPDB", 0, 1}}
}

// check compares what clients keep with what the leader has. A difference must end by a message.
func (m *cachesModel) check() {
	m.T.Helper()
	for _, c := range m.clients {
		for _, command := range m.reads() {
			kept, found := c.replies[command]
			if !found {
				continue
			}
			m.compared++
			var words []any
			for _, word := range strings.Fields(strings.Replace(command, "GET", "MGET", 1)) { // do takes null for none
				words = append(words, word)
			}
			reply, found := do(m.Cluster, words...).([]any)[0].(string)
			if !found {
				reply = "null"
			}
			for found = true; found && reply != kept; _, found = c.replies[command] {
				if text, ok, err := c.message(); !ok {
					m.T.Fatalf("client %s keeps %s of %s, which is %s, and hears %q %v; told before: %q",
						c.name, kept, command, reply, text, err, c.told)
				}
			}
		}
		m.told += len(c.told)
		c.told = nil
	}
}
