package cluster

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	"mayfly/test/harness"
)

// cacher is a connection of a client that caches, in RESP3.
type cacher struct {
	t    *testing.T
	name string
	conn net.Conn
	in   *bufio.Reader
	told []string // the names of the messages that were not awaited yet; "null" for all
}

func newCacher(n *harness.Node, name string, first ...string) *cacher {
	n.T.Helper()
	conn, err := net.Dial("tcp", n.ClientAddr)
	if err != nil {
		n.T.Fatal(err)
	}
	n.T.Cleanup(func() { conn.Close() })
	c := &cacher{t: n.T, name: name, conn: conn, in: bufio.NewReader(conn)}
	for _, command := range append([]string{"HELLO 3", "CLIENT TRACKING ON"}, first...) {
		if reply := c.ask(command); strings.HasPrefix(reply, "-") {
			n.T.Fatalf("%s: %s: %s", name, command, reply)
		}
	}
	return c
}

// read reads a value and notes the messages before it.
func (c *cacher) read() string {
	c.t.Helper()
	if err := c.conn.SetDeadline(time.Now().Add(harness.Patience)); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.in.ReadString('\n')
	if err != nil {
		c.t.Fatalf("%s: %v; told before: %q", c.name, err, c.told)
	}
	line = strings.TrimSuffix(line, "\r\n")
	n, _ := strconv.Atoi(line[1:])
	switch line[0] {
	case '$', '=':
		if n < 0 {
			return "null"
		}
		body := make([]byte, n+2)
		if _, err := io.ReadFull(c.in, body); err != nil {
			c.t.Fatal(err)
		}
		return string(body[:n])
	case '_':
		return "null"
	case '*', '~', '%', '>':
		if line[0] == '%' {
			n *= 2
		}
		parts := make([]string, n)
		for i := range parts {
			parts[i] = c.read()
		}
		return strings.Join(parts, " ")
	}
	return line
}

// message reads what comes next. A message is noted; ok is false if it is a reply.
func (c *cacher) message() (text string, ok bool) {
	c.t.Helper()
	if text = c.read(); strings.HasPrefix(text, "invalidate ") {
		c.told = append(c.told, strings.TrimPrefix(text, "invalidate "))
		return text, true
	}
	return text, false
}

// ask sends a command and returns its reply.
func (c *cacher) ask(command string) string {
	c.t.Helper()
	words := strings.Fields(command)
	text := fmt.Sprintf("*%d\r\n", len(words))
	for _, word := range words {
		text += fmt.Sprintf("$%d\r\n%s\r\n", len(word), word)
	}
	if _, err := io.WriteString(c.conn, text); err != nil {
		c.t.Fatal(err)
	}
	for {
		if text, ok := c.message(); !ok {
			return text
		}
	}
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
		if text, ok := c.message(); !ok {
			c.t.Fatalf("%s: waits for %q, and gets %s", c.name, names, text)
		}
	}
}

// TestCachesInCluster: each node tells its own clients, also of what it has passed on to the leader, and with a
// change of leaders that nothing holds any more.
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
