package cluster

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"net"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestClusterRepliesLikeRedis compares the replies about clusters with those of a real Redis Cluster of one
// master and two replicas: types, names and order of fields, words and errors. What is different in each run,
// such as ids, addresses and numbers, is compared by its kind.
func TestClusterRepliesLikeRedis(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	real := startRealCluster(t)
	c := harness.StartCluster(t, 3)
	ours := shapeOf(c)
	// differs are what is different on purpose.
	counters := []string{ // of messages between the nodes, by their kind
		`cluster_stats_messages_(ping|pong|meet|fail|publish|auth-req|auth-ack|update|mfstart|module|publishshard)_(sent|received):N\r\n +`,
	}
	for _, s := range []struct {
		command string
		places  string // m: at the master, r: at a replica
		differs []string
	}{
		{"CLUSTER SLOTS", "mr", nil},
		{"CLUSTER SHARDS", "mr", nil},
		{"CLUSTER NODES", "mr", nil},
		{"CLUSTER INFO", "mr", counters},
		{"CLUSTER MYID", "mr", nil},
		{"CLUSTER LINKS", "mr", nil},
		{"CLUSTER KEYSLOT foo{bar}", "mr", nil},
		{"CLUSTER COUNTKEYSINSLOT 5061", "m", nil},
		{"CLUSTER GETKEYSINSLOT 5061 10", "m", nil},
		{"CLUSTER REPLICAS <master>", "mr", nil},
		{"CLUSTER SLAVES <master>", "mr", nil},
		{"CLUSTER COUNT-FAILURE-REPORTS <master>", "mr", nil},
		{"ROLE", "mr", nil},
		{"INFO replication", "mr", nil},
		{"WAIT 1 100", "m", nil},
		{"READONLY", "mr", nil},
		{"READWRITE", "mr", nil},
		{"ASKING", "mr", nil},
		{"PUBLISH news text", "mr", nil},
		{"SPUBLISH news text", "mr", nil},
		{"PUBSUB NUMSUB news", "mr", nil},
		{"PUBSUB SHARDNUMSUB news", "mr", nil},
		{"PUBSUB CHANNELS", "mr", nil},
		{"PUBSUB SHARDCHANNELS", "mr", nil},
		{"PUBSUB NUMPAT", "mr", nil},

		// Errors.
		{"GET foo", "r", nil},
		{"SET foo{bar} 1", "r", nil},
		{"EXEC", "mr", nil},
		{"WATCH foo", "r", nil},
		{"CLUSTER", "mr", nil},
		{"CLUSTER FOO", "mr", nil},
		{"CLUSTER SLOTS x", "mr", nil},
		{"CLUSTER SHARDS x", "mr", nil},
		{"CLUSTER NODES x", "mr", nil},
		{"CLUSTER INFO x", "mr", nil},
		{"CLUSTER MYID x", "mr", nil},
		{"CLUSTER LINKS x", "mr", nil},
		{"CLUSTER KEYSLOT", "mr", nil},
		{"CLUSTER KEYSLOT a b", "mr", nil},
		{"CLUSTER COUNTKEYSINSLOT", "mr", nil},
		{"CLUSTER COUNTKEYSINSLOT x", "m", nil},
		{"CLUSTER COUNTKEYSINSLOT 16384", "m", nil},
		{"CLUSTER COUNTKEYSINSLOT -1", "m", nil},
		{"CLUSTER GETKEYSINSLOT 0", "mr", nil},
		{"CLUSTER GETKEYSINSLOT 0 -1", "m", nil},
		{"CLUSTER GETKEYSINSLOT x 1", "m", nil},
		{"CLUSTER GETKEYSINSLOT 0 x", "m", nil},
		{"CLUSTER GETKEYSINSLOT 16384 1", "m", nil},
		{"CLUSTER REPLICAS", "mr", nil},
		{"CLUSTER REPLICAS unknown", "mr", nil},
		{"CLUSTER REPLICAS <replica>", "mr", nil},
		{"CLUSTER COUNT-FAILURE-REPORTS unknown", "mr", nil},
		{"CLUSTER FAILOVER", "m", nil},
		{"CLUSTER FAILOVER FOO", "mr", nil},
		{"CLUSTER FAILOVER FORCE x", "mr", nil},
		{"READONLY x", "mr", nil},
		{"READWRITE x", "mr", nil},
		{"ASKING x", "mr", nil},
		{"ROLE x", "mr", nil},
		{"WAIT", "mr", nil},
		{"WAIT 1", "mr", nil},
		{"WAIT a 1", "m", nil},
		{"WAIT 1 b", "m", nil},
		{"WAIT 1 -1", "m", nil},
		{"WAIT 1 0", "r", nil},
		{"SUBSCRIBE", "mr", nil},
		{"PUBLISH news", "mr", nil},
		{"SPUBLISH news", "mr", nil},
	} {
		compareShapes(t, real, ours, s.command, s.places, s.differs)
	}
}

// TestSentinelRepliesLikeRedis compares the replies of Sentinel with those of a real one that watches a
// master with two replicas, beside two other Sentinels.
func TestSentinelRepliesLikeRedis(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	real := startRealSentinels(t)
	c := harness.StartCluster(t, 3)
	ours := shapeOf(c)
	for _, command := range []string{ // but no unknown name: here any name is that of the one master
		"SENTINEL MASTERS",
		"SENTINEL MASTER mymaster",
		"SENTINEL REPLICAS mymaster",
		"SENTINEL SLAVES mymaster",
		"SENTINEL SENTINELS mymaster",
		"SENTINEL GET-MASTER-ADDR-BY-NAME mymaster",
		"SENTINEL CKQUORUM mymaster",
		"SENTINEL MYID",
		"SENTINEL IS-MASTER-DOWN-BY-ADDR <masterip> <masterport> 0 *",
		"SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 1 0 *",

		"SENTINEL",
		"SENTINEL FOO",
		"SENTINEL MASTERS x",
		"SENTINEL MASTER",
		"SENTINEL MASTER a b",
		"SENTINEL REPLICAS",
		"SENTINEL SLAVES",
		"SENTINEL SENTINELS",
		"SENTINEL GET-MASTER-ADDR-BY-NAME",
		"SENTINEL GET-MASTER-ADDR-BY-NAME a b",
		"SENTINEL CKQUORUM",
		"SENTINEL MYID x",
		"SENTINEL FAILOVER",
		"SENTINEL IS-MASTER-DOWN-BY-ADDR x",
		"SENTINEL IS-MASTER-DOWN-BY-ADDR 127.0.0.1 x 0 *",
		"SUBSCRIBE +switch-master",
		"PSUBSCRIBE *",
	} {
		compareShapes(t, real, ours, command, "m", nil)
	}
	for _, name := range []string{"mymaster", "anything"} {
		if got := askRaw(t, ours.master, 2, "SENTINEL GET-MASTER-ADDR-BY-NAME "+name).shape(""); got != "* 2\n  $ N\n  $ N\n" {
			t.Errorf("the address of %s: %s", name, got)
		}
	}
}

// shaped is a cluster whose replies are compared.
type shaped struct {
	master, replica                 string // addresses
	masterID, replicaID, masterAddr string
}

// shapeOf returns the cluster as a test compares it.
func shapeOf(c *harness.Cluster) *shaped {
	c.T.Helper()
	leader := c.Leader()
	follower := c.Others(leader)[0]
	s := &shaped{master: leader.ClientAddr, replica: follower.ClientAddr, masterAddr: leader.ClientAddr}
	for _, n := range c.Nodes {
		n.AwaitServing()
	}
	s.masterID, s.replicaID = askRaw(c.T, s.master, 2, "CLUSTER MYID").text, askRaw(c.T, s.replica, 2, "CLUSTER MYID").text
	return s
}

// fill replaces what is different in each cluster.
func (s *shaped) fill(command string) string {
	host, port, _ := strings.Cut(s.masterAddr, ":")
	return strings.NewReplacer("<master>", s.masterID, "<replica>", s.replicaID, "<masterip>", host, "<masterport>", port).Replace(command)
}

// compareShapes compares the replies to a command at the places, in both protocols. What matches differs is
// left out.
func compareShapes(t *testing.T, real, ours *shaped, command, places string, differs []string) {
	t.Helper()
	for _, place := range places {
		for _, proto := range []int{2, 3} {
			at := func(s *shaped) string {
				if place == 'm' {
					return s.master
				}
				return s.replica
			}
			shape := func(s *shaped) string {
				text := askRaw(t, at(s), proto, s.fill(command)).shape(command)
				for _, d := range differs {
					text = regexp.MustCompile(d).ReplaceAllString(text, "")
				}
				return text
			}
			want, got := "", ""
			same := func() bool { want, got = shape(real), shape(ours); return got == want } // a replica may still connect
			harness.WaitFor(t, fmt.Sprintf("the reply of Redis to %s at the %s, RESP%d", command, map[rune]string{'m': "master", 'r': "replica"}[place], proto), same,
				func() string { return fmt.Sprintf("got\n%s\nRedis:\n%s", got, want) })
		}
	}
}

// rawReply is a reply with its types on the wire.
type rawReply struct {
	kind  byte
	text  string
	null  bool
	elems []*rawReply
}

// askRaw sends one command over a connection of its own. A subscription's reply is the first confirmation.
func askRaw(t *testing.T, addr string, proto int, command string) *rawReply {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	drill.Check(t, err)
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(harness.Patience))
	in := bufio.NewReader(conn)
	if _, err := fmt.Fprintf(conn, "HELLO %d\r\n", proto); err != nil {
		t.Fatal(err)
	}
	if _, err := readRaw(in); err != nil {
		t.Fatal(err)
	}
	words := strings.Fields(command)
	fmt.Fprintf(conn, "*%d\r\n", len(words))
	for _, w := range words {
		fmt.Fprintf(conn, "$%d\r\n%s\r\n", len(w), w)
	}
	r, err := readRaw(in)
	if err != nil {
		t.Fatalf("%s at %s: %v", command, addr, err)
	}
	return r
}

func readRaw(in *bufio.Reader) (*rawReply, error) {
	line, err := in.ReadString('\n')
	if err != nil {
		return nil, err
	}
	line = strings.TrimRight(line, "\r\n")
	if line == "" {
		return nil, errors.New("an empty line")
	}
	r := &rawReply{kind: line[0], text: line[1:]}
	n, _ := strconv.Atoi(r.text) // of the kinds with a length
	switch r.kind {
	case '$', '=':
		if r.null = n < 0; r.null {
			return r, nil
		}
		text := make([]byte, n+2)
		_, err = io.ReadFull(in, text)
		r.text = string(text[:n])
	case '*', '~', '>', '%':
		if r.null = n < 0; r.null {
			return r, nil
		}
		if r.kind == '%' {
			n *= 2
		}
		for range n {
			e, err := readRaw(in)
			if err != nil {
				return nil, err
			}
			r.elems = append(r.elems, e)
		}
	}
	return r, err
}

// What is different in each run.
var (
	idPattern     = regexp.MustCompile(`\b[0-9a-f]{40}\b`)
	numberPattern = regexp.MustCompile(`-?\d+(\.\d+)*`)
)

// shape describes a reply without what is different in each run.
func (r *rawReply) shape(command string) string {
	var b strings.Builder
	sorted := strings.HasPrefix(command, "CLUSTER NODES") // the order of the nodes is not fixed
	r.describe(&b, "", sorted)
	return b.String()
}

func (r *rawReply) describe(b *strings.Builder, indent string, sorted bool) {
	switch {
	case r.null:
		fmt.Fprintf(b, "%s%c null\n", indent, r.kind)
	case r.kind == '*' || r.kind == '~' || r.kind == '>' || r.kind == '%':
		fmt.Fprintf(b, "%s%c %d\n", indent, r.kind, len(r.elems))
		for _, e := range r.elems {
			e.describe(b, indent+"  ", sorted)
		}
	default:
		text := r.text
		if r.kind == '=' {
			text = text[len("txt:"):]
		}
		text = numberPattern.ReplaceAllString(idPattern.ReplaceAllString(text, "ID"), "N")
		if sorted {
			lines := strings.SplitAfter(text, "\n")
			slices.Sort(lines)
			text = strings.Join(lines, "")
		}
		fmt.Fprintf(b, "%s%c %s\n", indent, r.kind, strings.ReplaceAll(text, "\n", "\n"+indent+"  "))
	}
}

// startReal starts redis-server with arguments and waits until it answers.
func startReal(t *testing.T, port string, args ...string) {
	t.Helper()
	cmd := exec.Command(harness.Need(t, "redis-server"), args...)
	cmd.Dir = t.TempDir()
	var said harness.LogBuffer
	cmd.Stdout, cmd.Stderr = &said, &said
	drill.Check(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	harness.WaitFor(t, "redis-server", func() bool {
		conn, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			conn.Close()
		}
		return err == nil
	}, func() string { return harness.LastLines(said.String(), 20) })
}

// startRealCluster starts a Redis Cluster of one master and two replicas.
func startRealCluster(t *testing.T) *shaped {
	t.Helper()
	var ports, buses []string
	for range 3 {
		port, bus := harness.FreePort(t), harness.FreePort(t)
		startReal(t, port, "--port", port, "--cluster-port", bus, "--cluster-enabled", "yes", "--cluster-node-timeout", "5000", "--save", "", "--repl-diskless-sync-delay", "0")
		ports, buses = append(ports, port), append(buses, bus)
	}
	addr := func(i int) string { return "127.0.0.1:" + ports[i] }
	ok := func(i int, command string) {
		t.Helper()
		said := ""
		harness.WaitFor(t, command, func() bool { said = askRaw(t, addr(i), 2, command).text; return said == "OK" }, func() string { return said })
	}
	ok(0, "CLUSTER ADDSLOTSRANGE 0 16383")
	for i := 1; i < 3; i++ {
		ok(i, "CLUSTER MEET 127.0.0.1 "+ports[0]+" "+buses[0])
	}
	s := &shaped{master: addr(0), replica: addr(1), masterAddr: addr(0)}
	s.masterID, s.replicaID = askRaw(t, addr(0), 2, "CLUSTER MYID").text, askRaw(t, addr(1), 2, "CLUSTER MYID").text
	for i := 1; i < 3; i++ {
		ok(i, "CLUSTER REPLICATE "+s.masterID)
	}
	settled := func() bool {
		for i := range 3 {
			nodes := askRaw(t, addr(i), 2, "CLUSTER NODES").text
			if strings.Count(nodes, "slave "+s.masterID) != 2 || strings.Contains(nodes, "fail") || strings.Count(nodes, " connected") != 3 ||
				!strings.Contains(askRaw(t, addr(i), 2, "CLUSTER INFO").text, "cluster_state:ok") {
				return false
			}
			if i > 0 && !strings.Contains(askRaw(t, addr(i), 2, "INFO replication").text, "master_link_status:up") {
				return false
			}
			if strings.Contains(askRaw(t, addr(i), 2, "CLUSTER SHARDS").shape(""), "loading") {
				return false
			}
		}
		return true
	}
	harness.WaitFor(t, "the Redis Cluster to settle", settled, func() string { return askRaw(t, addr(0), 2, "CLUSTER NODES").text })
	return s
}

// startRealSentinels starts a master with two replicas and three Sentinels, as many as our nodes.
func startRealSentinels(t *testing.T) *shaped {
	t.Helper()
	master := harness.FreePort(t)
	startReal(t, master, "--port", master, "--save", "", "--repl-diskless-sync-delay", "0")
	for range 2 {
		port := harness.FreePort(t)
		startReal(t, port, "--port", port, "--save", "", "--replicaof", "127.0.0.1", master)
	}
	var sentinels []string
	for range 3 {
		port := harness.FreePort(t)
		conf := harness.WriteFile(t, "sentinel.conf", fmt.Sprintf("port %s\nsentinel monitor mymaster 127.0.0.1 %s 2\n", port, master))
		startReal(t, port, conf, "--sentinel", "--dir", filepath.Dir(conf))
		sentinels = append(sentinels, port)
	}
	addr := "127.0.0.1:" + sentinels[0]
	view := func() string { return askRaw(t, addr, 2, "SENTINEL MASTER mymaster").shape("") }
	for _, others := range []string{"REPLICAS", "SENTINELS"} {
		harness.WaitFor(t, "two "+others, func() bool { return len(askRaw(t, addr, 2, "SENTINEL "+others+" mymaster").elems) == 2 }, view)
	}
	harness.WaitFor(t, "the Sentinels to settle", func() bool {
		return !strings.Contains(view(), "down,") && askRaw(t, addr, 2, "SENTINEL CKQUORUM mymaster").kind == '+'
	}, view)
	return &shaped{master: addr, replica: addr, masterAddr: "127.0.0.1:" + master}
}
