package harness

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"mayfly/cluster/clustertest"
	"mayfly/test/drill"
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

	"github.com/redis/go-redis/v9"
)

// Cluster is a cluster of processes. They are on the loopback interface, or on a network of their own.
type Cluster struct {
	T           *testing.T
	Program     string
	NodeTimeout time.Duration        // cluster-node-timeout
	Network     *clustertest.Network // nil: loopback
	Args        []string             // for all
	User        string               // of clients; empty: the default
	Password    string
	Nodes       []*Node
	secret      string // path; only with a network
}

// Times for cluster-node-timeout.
const (
	Brief = 500 * time.Millisecond // a test that takes leaders away waits for elections; it copes with more of them
	Calm  = 5 * time.Second        // no node is taken for dead because the machine is busy: the leader stays
)

// Node is a member of a cluster. Its process may be running or not.
type Node struct {
	*Cluster
	Name       string
	Number     int // from 1 on; its host on the network
	Dir        string
	ClientAddr string // address for clients
	PeerAddr   string // address for the other nodes
	Env        []string

	Upgraded string // its program, if that is not the one of the others

	asks *redis.Client
	log  LogBuffer

	mu  sync.Mutex // protects cmd
	cmd *exec.Cmd  // nil: not running
}

// NewCluster returns a cluster without nodes on the loopback interface. It skips the test in the quick form.
func NewCluster(t *testing.T, args ...string) *Cluster {
	t.Helper()
	drill.Slow(t)
	return &Cluster{T: t, Program: Binary, NodeTimeout: Calm, Args: args}
}

// StartCluster starts a cluster of n nodes on the loopback interface and waits for a leader.
func StartCluster(t *testing.T, n int, args ...string) *Cluster {
	t.Helper()
	c := NewCluster(t, args...)
	c.StartAll(n)
	return c
}

// StartNetwork starts n nodes on a network of their own, where they share a secret, and waits for a leader.
func (c *Cluster) StartNetwork(n int) {
	c.T.Helper()
	network, err := clustertest.New(n)
	if err != nil {
		c.T.Skipf("NOT TESTED: a network that is cut, which needs Linux and root: %v", err)
	}
	c.T.Cleanup(network.Close)
	c.Network, c.secret = network, WriteFile(c.T, "secret", strings.Repeat("not very secret ", 4))
	c.StartAll(n)
}

// StartAll adds n nodes, starts all that do not run, and waits for a leader.
func (c *Cluster) StartAll(n int) {
	c.T.Helper()
	for range n {
		c.Add()
	}
	for _, n := range c.Nodes { // each names all
		if n.Process() == nil {
			n.Start()
		}
	}
	c.Leader()
}

// Add makes one more node, which is not started.
func (c *Cluster) Add() *Node {
	c.T.Helper()
	i := len(c.Nodes)
	n := &Node{Cluster: c, Name: string(rune('a' + i)), Number: i + 1, Dir: filepath.Join(c.T.TempDir(), "data")}
	host := ""
	if c.Network != nil {
		host = c.Network.Addr(n.Number)
	} else {
		host = Host(c.T)
	}
	n.ClientAddr, n.PeerAddr = net.JoinHostPort(host, FreePort(c.T)), net.JoinHostPort(host, FreePort(c.T))
	o := n.Options(n.ClientAddr)
	o.ContextTimeoutEnabled = true
	o.Protocol, o.DisableIdentity = 2, true // the command alone: tests ask often
	n.asks = redis.NewClient(o)
	c.Nodes = append(c.Nodes, n)
	c.T.Cleanup(n.discard)
	return n
}

// peers returns the option cluster-peers with all nodes.
func (c *Cluster) peers() string {
	var list []string
	for _, n := range c.Nodes {
		list = append(list, n.Name+"="+n.PeerAddr)
	}
	return strings.Join(list, ",")
}

// Start starts the process. It does not wait until it serves.
func (n *Node) Start() {
	n.T.Helper()
	host, port, err := net.SplitHostPort(n.ClientAddr)
	drill.Check(n.T, err)
	args := []string{"--port", port, "--bind", host, "--dir", n.Dir, "--protected-mode", "no",
		"--cluster-id", n.Name, "--cluster-addr", n.PeerAddr, "--cluster-peers", n.peers(),
		"--cluster-node-timeout", fmt.Sprint(n.NodeTimeout.Milliseconds())}
	if n.secret != "" {
		args = append(args, "--cluster-secret-file", n.secret)
	}
	cmd := exec.Command(cmp.Or(n.Upgraded, n.Program), append(args, n.Args...)...)
	cmd.Stderr = &n.log
	cmd.Env = append(os.Environ(), n.Env...)
	if n.Network != nil {
		err = n.Network.Start(n.Number, cmd)
	} else {
		err = cmd.Start()
	}
	drill.Check(n.T, err)
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cmd = cmd
}

// Process returns the process, nil if none is running.
func (n *Node) Process() *exec.Cmd {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.cmd
}

// End sends a signal and waits for the end of the process. It returns the exit code; -1 if the signal ended
// it.
func (n *Node) End(s syscall.Signal) int {
	n.T.Helper()
	n.mu.Lock()
	cmd := n.cmd
	n.cmd = nil
	n.mu.Unlock()
	if err := cmd.Process.Signal(s); err != nil {
		n.T.Errorf("node %s: %v", n.Name, err)
	}
	timer := time.AfterFunc(Patience, func() { _ = cmd.Process.Signal(syscall.SIGQUIT) }) // it shows its goroutines
	_ = cmd.Wait()                                                                        // the exit code tells
	if !timer.Stop() {
		n.T.Errorf("node %s did not stop\n%s", n.Name, LastLines(n.log.String(), 1000))
	}
	return cmd.ProcessState.ExitCode()
}

// Kill ends the process as the kernel does.
func (n *Node) Kill() { n.T.Helper(); n.End(syscall.SIGKILL) }

// Terminate stops the process as a service manager does, and checks that it ends well.
func (n *Node) Terminate() {
	n.T.Helper()
	if code := n.End(syscall.SIGTERM); code != 0 {
		n.T.Errorf("node %s: exit code %d after SIGTERM", n.Name, code)
	}
}

// Signal sends a signal that does not end the process.
func (n *Node) Signal(s syscall.Signal) {
	n.T.Helper()
	if err := n.Process().Process.Signal(s); err != nil {
		n.T.Errorf("node %s: %v", n.Name, err)
	}
}

// discard ends a process that a test has left running.
func (n *Node) discard() {
	_ = n.asks.Close()
	n.mu.Lock()
	cmd := n.cmd
	n.cmd = nil
	n.mu.Unlock()
	if cmd != nil {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	if n.T.Failed() {
		n.T.Logf("log of node %s:\n%s", n.Name, LastLines(n.log.String(), 60))
	}
}

// Log returns what the processes of the node have logged.
func (n *Node) Log() string { return n.log.String() }

// LastLines returns the end of a text.
func LastLines(text string, n int) string {
	lines := strings.SplitAfter(text, "\n")
	return strings.Join(lines[max(0, len(lines)-n-1):], "")
}

// Options are those of a client of a node that sends no command twice.
func (c *Cluster) Options(addr string) *redis.Options {
	o := &redis.Options{Addr: addr, Username: c.User, Password: c.Password, MaxRetries: -1, DialerRetries: 1, DialTimeout: time.Second, ReadTimeout: 5 * time.Second,
		WriteTimeout: 5 * time.Second, PoolTimeout: 20 * time.Second}
	if c.Network != nil {
		o.Dialer = c.Network.Dial
	}
	return o
}

// Connect connects a client, which the caller closes.
func (n *Node) Connect() *redis.Client { return redis.NewClient(n.Options(n.ClientAddr)) }

// ClusterClient returns a cluster client that knows all nodes.
func (c *Cluster) ClusterClient() *redis.ClusterClient {
	o := &redis.ClusterOptions{MaxRedirects: drill.Pick(64, 64, 16)} // beside other tests, elections take longer
	for _, n := range c.Nodes {
		o.Addrs = append(o.Addrs, n.ClientAddr)
	}
	if c.Network != nil {
		o.Dialer = c.Network.Dial
	} else {
		o.ReadTimeout = Patience // no node is cut off
	}
	return redis.NewClusterClient(o)
}

// Do sends one command over a connection of RESP2 that is kept.
func (n *Node) Do(ctx context.Context, args ...any) (any, error) {
	return n.asks.Do(ctx, args...).Result()
}

// Ask sends one command and gives up after a second.
func (n *Node) Ask(ctx context.Context, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return n.Do(ctx, args...)
}

// Running returns the nodes whose process is running.
func (c *Cluster) Running() (list []*Node) {
	for _, n := range c.Nodes {
		if n.Process() != nil {
			list = append(list, n)
		}
	}
	return list
}

// leads reports whether the node leads: it says so, and a majority confirms a read.
func (n *Node) leads(ctx context.Context) bool {
	reply, err := n.Ask(ctx, "ROLE")
	if role, ok := reply.([]any); err != nil || !ok || len(role) == 0 || role[0] != "master" {
		return false
	}
	_, err = n.Ask(ctx, "EXISTS", "anything")
	return err == nil
}

// FindLeader returns the leader, nil if there is none at the moment. It asks all nodes at a time, since some
// may not answer.
func (c *Cluster) FindLeader(ctx context.Context) *Node {
	found := make(chan *Node)
	running := c.Running()
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

// Leader waits for a leader.
func (c *Cluster) Leader() (leader *Node) {
	c.T.Helper()
	c.Await("a leader", func() bool { leader = c.FindLeader(c.T.Context()); return leader != nil })
	return leader
}

// Await waits for a condition and ends the test if it does not come.
func (c *Cluster) Await(what string, done func() bool) {
	c.T.Helper()
	drill.Await(c.T, what, done, c.Describe)
}

// Describe returns what the nodes say of themselves.
func (c *Cluster) Describe() string {
	var text strings.Builder
	for _, n := range c.Nodes {
		if n.Process() == nil {
			fmt.Fprintf(&text, "%s: not running\n", n.Name)
			continue
		}
		info, err := n.Ask(context.Background(), "INFO", "replication")
		role, _ := n.Ask(context.Background(), "ROLE")
		fmt.Fprintf(&text, "%s: %v, %v %v\n", n.Name, role, info, err)
	}
	return text.String()
}

// Term returns the term that a node is in.
func (n *Node) Term() (term int64) {
	n.T.Helper()
	n.Await("the status of node "+n.Name, func() bool {
		reply, err := n.Ask(n.T.Context(), "CLUSTER", "STATUS")
		if err != nil {
			return false
		}
		status, err := asMap(reply)
		term, _ = status["term"].(int64)
		return err == nil && term > 0
	})
	return term
}

// Others returns the running nodes without one.
func (c *Cluster) Others(but *Node) []*Node {
	return slices.DeleteFunc(c.Running(), func(n *Node) bool { return n == but })
}

// AwaitServing waits until a node has its data, and counts for a majority again.
func (n *Node) AwaitServing() {
	n.T.Helper()
	n.Await("node "+n.Name+" to serve", func() bool {
		leader := n.FindLeader(n.T.Context())
		if leader == nil || leader != n && !n.votes(leader) {
			return false
		}
		_, _, err := n.digest()
		return err == nil
	})
}

// votes reports whether the node counts for a majority, and is as good as up to date, as the leader knows it.
func (n *Node) votes(leader *Node) bool {
	reply, err := leader.Ask(n.T.Context(), "CLUSTER", "STATUS")
	if err != nil {
		return false
	}
	status, err := asMap(reply)
	if err != nil {
		n.T.Error(err)
		return false
	}
	members, _ := status["members"].([]any)
	for _, m := range members {
		member, err := asMap(m)
		if err != nil {
			n.T.Error(err)
			continue
		}
		if member["name"] == n.Name {
			lag, ok := member["lag"].(int64)
			return ok && lag < 1000 && member["role"] == "follower" && (member["up"] == true || member["up"] == int64(1))
		}
	}
	return false
}

// digest returns the sum over all items and policies of a node, and the position of that.
func (n *Node) digest() (digest string, index int64, err error) {
	reply, err := n.Ask(n.T.Context(), "CLUSTER", "DIGEST")
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

// Settle waits until all running nodes have the same items and policies. Nothing must be written meanwhile.
func (c *Cluster) Settle() {
	c.T.Helper()
	var digests []string
	equal := func() bool {
		running := c.Running()
		digests = make([]string, len(running))
		sums := make([]string, len(running))
		var all sync.WaitGroup
		for i, n := range running { // side by side: the purge and the clock go on
			all.Go(func() {
				digest, index, err := n.digest()
				digests[i] = fmt.Sprintf("%s: %s at %d %v", n.Name, digest, index, err)
				if err == nil {
					sums[i] = digest
				}
			})
		}
		all.Wait()
		return !slices.Contains(sums, "") && len(slices.Compact(sums)) == 1
	}
	drill.Await(c.T, "the nodes to become equal", equal, func() string { return strings.Join(digests, "\n") }, c.Describe)
}

// Temporary reports whether an error is one that a client of a cluster answers with another attempt: there is
// no leader, it has moved, its disk is full and it looks for another, or the connection is gone.
func Temporary(err error) bool {
	said, ok := errors.AsType[redis.Error](err)
	if !ok {
		_, broken := errors.AsType[net.Error](err)
		return broken || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, redis.ErrPoolTimeout)
	}
	for _, word := range []string{"CLUSTERDOWN ", "UNCERTAIN ", "MISCONF ", "MOVED ", "LOADING ", "UNBLOCKED ", "TRYAGAIN "} {
		if strings.HasPrefix(said.Error(), word) {
			return true
		}
	}
	return strings.Contains(said.Error(), "EXECABORT") // one of its commands was refused
}
