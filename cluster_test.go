package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/cluster/clustertest"

	"github.com/redis/go-redis/v9"
)

// nodes is a cluster of processes. They are on the loopback interface, or on a network of their own.
type nodes struct {
	t       *testing.T
	program string
	network *clustertest.Network // nil: loopback
	args    []string             // for all
	all     []*node
	secret  string // path; only with a network
}

// node is a member of a cluster. Its process may be running or not.
type node struct {
	*nodes
	name   string
	number int // from 1 on; its host on the network
	dir    string
	client string // address for clients
	peer   string // address for the other nodes
	env    []string

	upgraded string // its program, if that is not the one of the others

	mu  sync.Mutex // protects cmd
	cmd *exec.Cmd  // nil: not running
	log logBuffer
}

// startNodes starts a cluster of n nodes on the loopback interface and waits for a leader.
func startNodes(t *testing.T, n int, args ...string) *nodes {
	t.Helper()
	c := &nodes{t: t, program: binary, args: args}
	c.startAll(n)
	return c
}

// startNetwork starts a cluster of n nodes on a network of their own and waits for a leader.
func startNetwork(t *testing.T, program string, n int, args ...string) *nodes {
	t.Helper()
	network, err := clustertest.New(n)
	if err != nil {
		t.Skipf("NOT TESTED: a network that is cut, which needs Linux and root: %v", err)
	}
	t.Cleanup(network.Close)
	secret := writeFile(t, "secret", strings.Repeat("not very secret ", 4))
	c := &nodes{t: t, program: program, network: network, args: args, secret: secret}
	c.startAll(n)
	return c
}

func (c *nodes) startAll(n int) {
	c.t.Helper()
	for range n {
		c.add()
	}
	for _, n := range c.all {
		n.start()
	}
	c.leader()
}

// add makes one more node, which is not started.
func (c *nodes) add() *node {
	c.t.Helper()
	i := len(c.all)
	n := &node{nodes: c, name: string(rune('a' + i)), number: i + 1, dir: filepath.Join(c.t.TempDir(), "data")}
	host, ports := "127.0.0.1", []string{"6379", "7001"}
	if c.network != nil {
		host = c.network.Addr(n.number)
	} else {
		ports = []string{freePort(c.t), freePort(c.t)}
	}
	n.client, n.peer = net.JoinHostPort(host, ports[0]), net.JoinHostPort(host, ports[1])
	c.all = append(c.all, n)
	c.t.Cleanup(n.discard)
	return n
}

// peers returns the option cluster-peers with all nodes.
func (c *nodes) peers() string {
	var list []string
	for _, n := range c.all {
		list = append(list, n.name+"="+n.peer)
	}
	return strings.Join(list, ",")
}

// start starts the process. It does not wait until it serves.
func (n *node) start() {
	n.t.Helper()
	host, port, err := net.SplitHostPort(n.client)
	if err != nil {
		n.t.Fatal(err)
	}
	args := []string{"--port", port, "--bind", host, "--dir", n.dir, "--protected-mode", "no",
		"--cluster-id", n.name, "--cluster-addr", n.peer, "--cluster-peers", n.peers()}
	if n.secret != "" {
		args = append(args, "--cluster-secret-file", n.secret)
	}
	cmd := exec.Command(cmp.Or(n.upgraded, n.program), append(args, n.args...)...)
	cmd.Stderr = &n.log
	cmd.Env = append(os.Environ(), n.env...)
	if n.network != nil {
		err = n.network.Start(n.number, cmd)
	} else {
		err = cmd.Start()
	}
	if err != nil {
		n.t.Fatal(err)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cmd = cmd
}

// process returns the process, nil if none is running.
func (n *node) process() *exec.Cmd {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd
}

// end sends a signal and waits for the end of the process. It returns the exit code; -1 if the signal ended it.
func (n *node) end(s syscall.Signal) int {
	n.t.Helper()
	n.mu.Lock()
	cmd := n.cmd
	n.cmd = nil
	n.mu.Unlock()
	if err := cmd.Process.Signal(s); err != nil {
		n.t.Errorf("node %s: %v", n.name, err)
	}
	timer := time.AfterFunc(patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // it shows its goroutines
	_ = cmd.Wait()                                                                        // the exit code tells
	if !timer.Stop() {
		n.t.Errorf("node %s did not stop\n%s", n.name, lastLines(n.log.String(), 1000))
	}
	return cmd.ProcessState.ExitCode()
}

func (n *node) kill() { n.t.Helper(); n.end(syscall.SIGKILL) }

// terminate stops the process as a service manager does, and checks that it ends well.
func (n *node) terminate() {
	n.t.Helper()
	if code := n.end(syscall.SIGTERM); code != 0 {
		n.t.Errorf("node %s: exit code %d after SIGTERM", n.name, code)
	}
}

// signal sends a signal that does not end the process.
func (n *node) signal(s syscall.Signal) {
	n.t.Helper()
	if err := n.process().Process.Signal(s); err != nil {
		n.t.Errorf("node %s: %v", n.name, err)
	}
}

// discard ends a process that a test has left running.
func (n *node) discard() {
	n.mu.Lock()
	cmd := n.cmd
	n.cmd = nil
	n.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if n.t.Failed() {
		n.t.Logf("log of node %s:\n%s", n.name, lastLines(n.log.String(), 60))
	}
}

// lastLines returns the end of a text.
func lastLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n-1):], "")
}

// options are those of a client of a node that sends no command twice.
func (c *nodes) options(addr string) *redis.Options {
	o := &redis.Options{Addr: addr, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, PoolTimeout: 20 * time.Second}
	if c.network != nil {
		o.Dialer = c.network.Dial
	}
	return o
}

// connect connects a client, which the caller closes.
func (n *node) connect() *redis.Client { return redis.NewClient(n.options(n.client)) }

// ask sends one command and gives up after a second.
func (n *node) ask(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	o := n.options(n.client)
	o.ContextTimeoutEnabled, o.PoolSize = true, 1
	client := redis.NewClient(o)
	defer client.Close()
	return client.Do(ctx, args...).Result()
}

// running returns the nodes whose process is running.
func (c *nodes) running() (list []*node) {
	for _, n := range c.all {
		if n.process() != nil {
			list = append(list, n)
		}
	}
	return list
}

// leads reports whether the node leads: it says so, and a majority confirms a read.
func (n *node) leads(ctx context.Context) bool {
	reply, err := n.ask(ctx, "ROLE")
	if role, ok := reply.([]any); err != nil || !ok || len(role) == 0 || role[0] != "master" {
		return false
	}
	_, err = n.ask(ctx, "EXISTS", "anything")
	return err == nil
}

// findLeader returns the leader, nil if there is none at the moment. It asks all nodes at a time, since some may not answer.
func (c *nodes) findLeader(ctx context.Context) *node {
	found := make(chan *node)
	running := c.running()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for _, n := range running {
		go func() {
			if !n.leads(ctx) {
				n = nil
			}
			select {
			case found <- n:
			case <-ctx.Done():
			}
		}()
	}
	for range running {
		if n := <-found; n != nil {
			return n
		}
	}
	return nil
}

// leader waits for a leader.
func (c *nodes) leader() (leader *node) {
	c.t.Helper()
	c.await("a leader", func() bool { leader = c.findLeader(c.t.Context()); return leader != nil })
	return leader
}

// await waits for a condition and ends the test if it does not come.
func (c *nodes) await(what string, done func() bool) {
	c.t.Helper()
	for deadline := time.Now().Add(patience); !done(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("waited in vain for %s\n%s", what, c.describe())
		}
	}
}

// describe returns what the nodes say of themselves.
func (c *nodes) describe() string {
	var text strings.Builder
	for _, n := range c.all {
		if n.process() == nil {
			fmt.Fprintf(&text, "%s: not running\n", n.name)
			continue
		}
		info, err := n.ask(context.Background(), "INFO", "replication")
		role, _ := n.ask(context.Background(), "ROLE")
		fmt.Fprintf(&text, "%s: %v, %v %v\n", n.name, role, info, err)
	}
	return text.String()
}

// others returns the running nodes without one.
func (c *nodes) others(but *node) []*node {
	return slices.DeleteFunc(c.running(), func(n *node) bool { return n == but })
}

// awaitServing waits until a node has its data, and counts for a majority again.
func (n *node) awaitServing() {
	n.t.Helper()
	n.await("node "+n.name+" to serve", func() bool {
		if _, _, err := n.digest(); err != nil {
			return false
		}
		leader := n.findLeader(n.t.Context())
		return leader != nil && (leader == n || n.votes(leader))
	})
}

// votes reports whether the node counts for a majority, and is as good as up to date, as the leader knows it.
func (n *node) votes(leader *node) bool {
	reply, err := leader.ask(n.t.Context(), "CLUSTER", "STATUS")
	if err != nil {
		return false
	}
	status, err := asMap(reply)
	if err != nil {
		n.t.Error(err)
		return false
	}
	members, _ := status["members"].([]any)
	for _, m := range members {
		member, err := asMap(m)
		if err != nil {
			n.t.Error(err)
			continue
		}
		if member["name"] == n.name {
			lag, ok := member["lag"].(int64)
			return ok && lag < 1000 && member["role"] == "follower" && (member["up"] == true || member["up"] == int64(1))
		}
	}
	return false
}

// digest returns the sum over all items and policies of a node, and the position of that.
func (n *node) digest() (digest string, index int64, err error) {
	reply, err := n.ask(n.t.Context(), "CLUSTER", "DIGEST")
	if err != nil {
		return "", 0, err
	}
	fields, err := asMap(reply)
	if err != nil {
		return "", 0, err
	}
	index, _ = fields["index"].(int64)
	return fmt.Sprint(fields["digest"], " of ", fields["items"], " items"), index, nil
}

// asMap returns a reply that is a map in RESP3 and a flat list in RESP2.
func asMap(reply any) (map[string]any, error) {
	fields := make(map[string]any)
	switch reply := reply.(type) {
	case map[any]any:
		for key, value := range maps.All(reply) {
			fields[fmt.Sprint(key)] = value
		}
	case []any:
		for i := 0; i+1 < len(reply); i += 2 {
			fields[fmt.Sprint(reply[i])] = reply[i+1]
		}
	default:
		return nil, fmt.Errorf("%T is no map", reply)
	}
	return fields, nil
}

// settle waits until all running nodes have the same items and policies. Nothing must be written meanwhile.
func (c *nodes) settle() {
	c.t.Helper()
	var digests []string
	equal := func() bool {
		running := c.running()
		digests = make([]string, len(running))
		sums := make([]string, len(running))
		var all sync.WaitGroup
		for i, n := range running { // side by side: the purge and the clock go on
			all.Go(func() {
				digest, index, err := n.digest()
				digests[i] = fmt.Sprintf("%s: %s at %d %v", n.name, digest, index, err)
				if err == nil {
					sums[i] = digest
				}
			})
		}
		all.Wait()
		return !slices.Contains(sums, "") && len(slices.Compact(sums)) == 1
	}
	for deadline := time.Now().Add(patience); !equal(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			c.t.Fatalf("the nodes do not become equal:\n%s\n%s", strings.Join(digests, "\n"), c.describe())
		}
	}
}

// temporary reports whether an error is one that a client of a cluster answers with another attempt: there is no leader, it
// has moved, or the connection is gone.
func temporary(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	if !ok {
		_, broken := errors.AsType[net.Error](err)
		return broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, redis.ErrPoolTimeout)
	}
	for _, word := range []string{"CLUSTERDOWN ", "MOVED ", "LOADING ", "UNBLOCKED ", "TRYAGAIN "} {
		if strings.HasPrefix(said.Error(), word) {
			return true
		}
	}
	return strings.Contains(said.Error(), "EXECABORT") // one of its commands was refused
}

// instrumented is the program with the hooks of test builds.
var instrumented = sync.OnceValues(func() (string, error) {
	path := filepath.Join(filepath.Dir(binary), "mayfly-invariants")
	out, err := exec.Command("go", "build", "-tags", "invariants", "-o", path, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, bytes.TrimSpace(out))
	}
	return path, nil
})

// durations are times that a drill has measured.
type durations []time.Duration

func (d durations) String() string {
	if len(d) == 0 {
		return "none"
	}
	sorted := slices.Sorted(slices.Values(d))
	at := func(share float64) time.Duration {
		return sorted[int(share*float64(len(sorted)-1))].Round(time.Millisecond)
	}
	return fmt.Sprintf("median %v, p90 %v, most %v (%d)", at(0.5), at(0.9), at(1), len(d))
}

// most returns the longest.
func (d durations) most() time.Duration { return slices.Max(d) }
