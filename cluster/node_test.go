package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/cluster/bus"
	"mayfly/cluster/forming"
	"mayfly/cluster/stores"
	"mayfly/cluster/topology"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs"

	"github.com/rs/zerolog"
	"go.etcd.io/raft/v3/raftpb"
)

// trio is a cluster of nodes in this process, over loopback, with real keyspaces.
type trio struct {
	t     *testing.T
	fs    vfs.FS // of the keyspaces
	peers []forming.Peer
	nodes map[string]*testNode
	log   *testLog
}

// testNode is one of its nodes.
type testNode struct {
	*Node
	name string
	dir  string
	opt  Options

	mu      sync.Mutex // protects what follows
	ks      *keyspace.Keyspace
	served  int             // how often a keyspace was opened
	changes []topology.View // that Changed was called with
	heard   []string        // the texts of messages of other nodes

	handsOver []bool // whether it led when it waited for its clients
}

// testLog collects the log of a test and shows it if the test fails.
type testLog struct {
	mu   sync.Mutex // protects text
	text strings.Builder
}

func (l *testLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *testLog) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// newTrio makes a cluster whose nodes have not started.
func newTrio(t *testing.T, names ...string) *trio {
	t.Helper()
	c := &trio{t: t, fs: vfs.OS, nodes: map[string]*testNode{}, log: &testLog{}}
	addrs := freeAddrs(t, len(names))
	for i, name := range names {
		c.peers = append(c.peers, forming.Peer{Name: name, Addr: addrs[i]})
	}
	awaitEnd := labelGoroutines(t)
	for i, name := range names {
		c.add(name, addrs[i])
	}
	t.Cleanup(func() {
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			c.nodes[name].stop(t)
		}
		awaitEnd()
		for line := range strings.Lines(c.log.String()) {
			if strings.Contains(line, "should never happen") {
				t.Error("raft warns: " + line)
			}
		}
		if t.Failed() {
			t.Log(c.log.String())
		}
	})
	return c
}

// add makes a node of the cluster that has not started.
func (c *trio) add(name, addr string) *testNode {
	n := &testNode{name: name, dir: c.t.TempDir()}
	log := zerolog.New(zerolog.ConsoleWriter{Out: c.log, NoColor: true, TimeFormat: "15:04:05.000"}).With().Timestamp().Str("node", name).Logger().Level(zerolog.InfoLevel)
	n.opt = Options{
		Dir: n.dir, Name: name, Peers: c.peers, Addr: addr, ClientAddr: "client-" + name + ":1", MasterName: "mymaster",
		NodeTimeout: testTimeout, LogSize: 1 << 20, Partitions: 4, Log: log,
		Open: func(r replica.Replicator) (*keyspace.Keyspace, error) {
			return keyspace.Open(keyspace.Options{FS: c.fs, Dir: n.dir, Partitions: n.opt.Partitions, Log: log, Replicator: r})
		},
		Serve: func(ks *keyspace.Keyspace) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.ks = ks
			n.served++
		},
		Suspend: func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.ks = nil
		},
		Changed: func(v *topology.View) {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.changes = append(n.changes, *v)
		},
		Answered: func(context.Context) {},
		Messages: func(list []bus.Message) {
			n.mu.Lock()
			defer n.mu.Unlock()
			for _, m := range list {
				n.heard = append(n.heard, m.Text)
			}
		},
	}
	c.nodes[name] = n
	return n
}

func (n *testNode) start(t *testing.T) {
	t.Helper()
	var err error
	if n.Node, err = New(n.opt); err != nil {
		t.Fatal(err)
	}
	n.Start()
}

// stop ends the node in order, if it runs.
func (n *testNode) stop(t *testing.T) {
	t.Helper()
	if n.Node != nil {
		check(t, n.Close(true))
		n.Node = nil
	}
}

// crash ends the node without committing anything.
func (n *testNode) crash(t *testing.T) {
	t.Helper()
	check(t, n.Close(false))
	n.Node = nil
}

func (n *testNode) keyspace() *keyspace.Keyspace {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.ks
}

// eventually waits for a condition.
func (c *trio) eventually(what string, done func() bool) {
	c.t.Helper()
	drill.Await(c.t, what, done, func() string {
		var views []string
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			if n := c.nodes[name]; n.Node != nil {
				views = append(views, fmt.Sprintf("%s: %+v", name, *n.View()))
			}
		}
		return strings.Join(views, "\n")
	})
}

// startAll starts all nodes.
func (c *trio) startAll() {
	c.t.Helper()
	for _, n := range c.nodes {
		n.start(c.t)
	}
}

// startTrio makes a cluster, starts all nodes and waits for a leader.
func startTrio(t *testing.T, names ...string) *trio {
	t.Helper()
	c := newTrio(t, names...)
	c.startAll()
	c.leader()
	return c
}

// leader waits for a leader among the nodes that run.
func (c *trio) leader() (leader *testNode) {
	c.t.Helper()
	c.eventually("one leader", func() bool {
		leader = nil
		for _, n := range c.nodes {
			if n.Node != nil && n.View().Leads() && n.keyspace() != nil {
				leader = n
				return true
			}
		}
		return false
	})
	return leader
}

// follower returns a node that runs and does not lead.
func (c *trio) follower() (f *testNode) {
	c.t.Helper()
	c.eventually("a node follows", func() bool {
		for _, name := range slices.Sorted(maps.Keys(c.nodes)) {
			if n := c.nodes[name]; n.Node != nil && n.View().Role == topology.Follower {
				f = n
				return true
			}
		}
		return false
	})
	return f
}

// put writes an item through a node.
func (n *testNode) put(id, body string) error {
	ks := n.keyspace()
	if ks == nil {
		return errRestarting
	}
	var tx keyspace.Tx
	ks.BeginKey(&tx, id)
	tx.Put(tx.Container("0"), id, keyspace.Plain, body, expiry.Inherit)
	veto := tx.Veto()
	if veto != nil {
		tx.Rollback()
		return veto
	}
	return ks.Wait(tx.Close())
}

// get reads an item at a node; stale without a confirmation that it leads.
func (n *testNode) get(id string, stale bool) (string, error) {
	ks := n.keyspace()
	if ks == nil {
		return "", errRestarting
	}
	var tx keyspace.Tx
	ks.BeginKey(&tx, id)
	c := tx.Container("0")
	if c == nil {
		tx.Close()
		return "", errors.New("no database")
	}
	it, ok := tx.Get(c, id)
	lsn := tx.Close()
	if !stale {
		if err := ks.Wait(max(lsn, 1)); err != nil {
			return "", err
		}
	}
	if !ok {
		return "", nil
	}
	return strings.Clone(it.Body), nil
}

// mustPut writes through the node that leads.
func (c *trio) mustPut(id, body string) {
	c.t.Helper()
	c.eventually("write "+id, func() bool { return c.leader().put(id, body) == nil })
}

// announce announces a node. On a busy machine an election may take longer than a request waits.
func (c *trio) announce(name, addr string) {
	c.t.Helper()
	c.eventually("announce "+name, func() bool { return c.follower().Add(c.t.Context(), name, addr) == nil })
}

// remove removes a node. An attempt without an answer may have done it.
func (c *trio) remove(name string) {
	c.t.Helper()
	c.eventually("remove "+name, func() bool {
		err := c.follower().Remove(c.t.Context(), name)
		return err == nil || err.Error() == notMember(name).Error()
	})
}

// converge waits until all nodes that run have the item, and their digests are equal.
func (c *trio) converge() {
	c.t.Helper()
	c.mustPut("converged", time.Now().String())
	c.eventually("equal digests", func() bool {
		var digests [][32]byte
		for _, n := range c.nodes {
			if n.Node == nil {
				continue
			}
			ks := n.keyspace()
			if ks == nil {
				return false
			}
			sum, _, _ := ks.Digest()
			digests = append(digests, sum)
		}
		return len(slices.Compact(digests)) == 1
	})
}

// allHave waits until all nodes have an item.
func (c *trio) allHave(id, body string) {
	c.t.Helper()
	for _, n := range c.nodes {
		c.has(n, id, body)
	}
}

// has waits until a node has an item.
func (c *trio) has(n *testNode, id, body string) {
	c.t.Helper()
	last := ""
	defer func() {
		if c.t.Failed() {
			c.t.Log("the last answer: ", last)
			for _, other := range c.nodes {
				if other.Node != nil {
					got, err := other.get(id, true)
					c.t.Logf("%s: %.100q, %v, leads %v", other.name, got, err, other.View().Leads())
				}
			}
		}
	}()
	c.eventually(n.name+" has "+id, func() bool {
		got, err := n.get(id, true)
		last = fmt.Sprintf("%.100q, %v", got, err)
		return err == nil && got == body
	})
}

func TestThreeNodesReplicate(t *testing.T) {
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	for i := range 20 {
		c.mustPut(fmt.Sprint("key", i), fmt.Sprint("value", i))
	}
	c.allHave("key19", "value19")
	if err := c.follower().put("key0", "by a follower"); !errors.Is(err, replica.ErrFollower) {
		t.Errorf("a follower takes a write: %v", err)
	}
	if got, err := c.leader().get("key3", false); err != nil || got != "value3" {
		t.Errorf("the leader reads %q, %v", got, err)
	}
	c.converge()
	for _, n := range c.nodes {
		c.eventually(n.name+" knows the addresses of all for clients", func() bool {
			return !slices.ContainsFunc(n.View().Members, func(m topology.Member) bool { return m.Client != "client-"+m.Name+":1" })
		})
	}
	view := c.leader().View()
	if len(view.Members) != 3 || view.Voters() != 3 || view.Leader == nil || !view.Leader.Self || !view.Quorum {
		t.Errorf("view of the leader: %+v", view)
	}
}

// A secret makes mutual TLS, and a majority can be asked for each read.
func TestSecretAndReadIndex(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	secret := filepath.Join(t.TempDir(), "secret")
	check(t, os.WriteFile(secret, []byte(strings.Repeat("secret", 10)), 0o600))
	for _, n := range c.nodes {
		n.opt.SecretFile, n.opt.ReadIndex = secret, true
		n.start(t)
	}
	c.mustPut("key", "1")
	c.eventually("a confirmed read", func() bool {
		got, err := c.leader().get("key", false)
		return err == nil && got == "1"
	})
	old := c.leader()
	old.crash(t)
	c.mustPut("key", "2")
	old.start(t)
	c.has(old, "key", "2")
	c.converge()
}

func TestFailover(t *testing.T) {
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("before", "1")
	old := c.leader()
	old.crash(t)
	c.mustPut("after", "2")
	if c.leader() == old {
		t.Fatal("the crashed node leads")
	}
	old.start(t)
	c.has(old, "after", "2")
	c.converge()
}

func TestAllNodesRestart(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	for _, orderly := range []bool{true, false} {
		t.Run(fmt.Sprint("orderly ", orderly), func(t *testing.T) {
			t.Parallel()
			c := startTrio(t, "a", "b", "c")
			for i := range 50 {
				c.mustPut(fmt.Sprint("key", i), "value")
			}
			for _, n := range c.nodes {
				if orderly {
					n.stop(t)
				} else {
					n.crash(t)
				}
			}
			c.startAll()
			c.allHave("key49", "value")
			c.converge()
		})
	}
}

// A candidate says which voters it does not reach, or that they elect a leader.
func TestNoLeader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		silent []string
		want   string
	}{
		{nil, "no leader yet: the nodes elect one"},
		{[]string{"c"}, "no leader yet: the nodes elect one"},
		{[]string{"b", "c"}, "no leader: this node reaches 1 of 3 voters, itself included, and 2 are a majority; no contact with b at h:b, c at h:c"},
	} {
		members := []topology.Member{{Name: "d", Addr: "h:d"}} // a learner
		for _, name := range []string{"a", "b", "c"} {
			members = append(members, topology.Member{Name: name, Addr: "h:" + name, Voter: true, Self: name == "a",
				Active: name != "a" && !slices.Contains(tt.silent, name)})
		}
		if got := noLeader(members); got != tt.want {
			t.Errorf("without %v: %q, want %q", tt.silent, got, tt.want)
		}
	}
}

// A follower that is cut off names its last leader: clients that take it for the master stay with it.
func TestCutOffFollowerNamesItsLeader(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("before", "1")
	leader, follower := c.leader(), c.follower()
	c.eventually("the follower knows the leader", func() bool { return follower.View().Leader != nil })
	for _, n := range c.nodes {
		if n != follower {
			n.crash(t)
		}
	}
	c.eventually("it knows no leader", func() bool { return follower.View().Role == topology.Candidate })
	if got := follower.View().Master().Name; got != leader.name {
		t.Errorf("it names %s, %s has led", got, leader.name)
	}
}

// Without a majority nothing is acknowledged, and service returns by itself.
func TestNoMajority(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("before", "1")
	leader := c.leader()
	for _, n := range c.nodes {
		if n != leader {
			n.crash(t)
		}
	}
	if err := leader.put("alone", "2"); !errors.Is(err, replica.ErrNoMajority) && !errors.Is(err, replica.ErrFollower) {
		t.Errorf("alone, a write returns %v", err)
	}
	c.eventually("reads fail", func() bool {
		_, err := leader.get("before", false)
		return err != nil
	})
	if got, err := leader.get("before", true); err != nil || got != "1" {
		t.Errorf("a stale read returns %q, %v", got, err)
	}
	c.eventually("it says why it knows no leader", func() bool {
		v := leader.View()
		return v.Role == topology.Candidate &&
			strings.HasPrefix(v.Cause, "no leader: this node reaches 1 of 3 voters, itself included, and 2 are a majority; no contact with ")
	})
	if m := leader.View().Master(); m.Self {
		t.Error("a deposed leader that is cut off sends clients to itself")
	}
	for _, n := range c.nodes {
		if n != leader {
			n.start(t)
		}
	}
	c.mustPut("again", "3")
	c.converge()
}

func TestTransfer(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	for _, n := range c.nodes {
		n.opt.Answered = func(context.Context) { // no node may know the next leader before the clients have their replies
			leads := n.running.Load().loop.status.Load().Session != 0
			n.mu.Lock()
			n.handsOver = append(n.handsOver, leads)
			n.mu.Unlock()
		}
	}
	c.startAll()
	c.mustPut("before", "1")
	old, to := c.leader(), c.follower()
	var term uint64
	c.eventually("the follower leads", func() bool {
		term = old.View().Term
		return old.Transfer(context.Background(), to.name) == nil && to.View().Leads()
	})
	c.mustPut("after", "2")
	c.has(old, "after", "2")
	old.mu.Lock()
	served, handsOver := old.served, old.handsOver
	old.mu.Unlock()
	if len(handsOver) == 0 || slices.Contains(handsOver, false) {
		t.Errorf("the old leader has waited for its clients while it led: %v", handsOver)
	}
	if to.View().Term == term+1 && served != 1 { // without an election between
		t.Errorf("the old leader was opened %d times", served)
	}
	// Any node takes the request.
	c.eventually("transfer back", func() bool {
		return old.Transfer(context.Background(), old.name) == nil && old.View().Leads()
	})
	c.converge()
}

// Clients that count, and repeat only what has not begun, see nothing of orderly handovers: each write is
// acknowledged, each read is answered, and nothing counts twice. A handover is orderly if the machine leaves
// it the time that it needs: it is then the only election, and its drain finishes.
func TestHandoverIsInvisible(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	for _, n := range c.nodes {
		n.opt.NodeTimeout = 10 * testTimeout // no leader is deposed because the machine is busy
	}
	c.startAll()
	c.mustPut("counter", "0")
	const wanted, most = 5, 25
	orderly := 0
	for i := 0; orderly < wanted; i++ {
		if i == most {
			t.Fatalf("of %d handovers %d were orderly", most, orderly)
		}
		old := c.leader()
		began, drained := old.View().Term, c.undrained()
		count := c.beginCounting()
		count.goesOn()
		switch i % 2 {
		case 0:
			check(t, old.Transfer(t.Context(), ""))
		default:
			old.StepDown(t.Context())
		}
		c.eventually("another node leads", func() bool { return c.leader() != old })
		count.goesOn()
		count.end()
		isOrderly := c.leader().View().Term == began+1 && c.undrained() == drained
		if isOrderly {
			orderly++
		}
		least, unknown, unread := count.counted.Load(), count.unknown.Load(), count.unread.Load()
		text, err := c.leader().get("counter", false)
		check(t, err)
		got, err := strconv.ParseInt(text, 10, 64)
		check(t, err)
		if got < least || got > least+unknown || isOrderly && unknown+unread > 0 {
			t.Fatalf("handover %d: the counter is %d, %d writes were acknowledged, of %d the fate is unknown; %d reads have failed", i, got, least, unknown, unread)
		}
		c.mustPut("counter", "0")
	}
}

// undrained counts the handovers whose drain has found its machine too busy.
func (c *trio) undrained() int { return strings.Count(c.log.String(), "hands the lead over before") }

// counting is what clients do that count and read in turns.
type counting struct {
	c                        *trio
	counted, unknown, unread atomic.Int64
	clients                  sync.WaitGroup
	stop                     chan struct{}
}

func (c *trio) beginCounting() *counting {
	k := &counting{c: c, stop: make(chan struct{})}
	for i := range 6 {
		k.clients.Go(func() {
			reads := i%3 == 0
			for !drill.Done(k.stop) {
				for _, n := range c.nodes { // redirected until one leads
					switch began, err := n.count("counter", reads); {
					case !began:
					case err != nil && reads:
						k.unread.Add(1)
					case err != nil:
						k.unknown.Add(1)
					case !reads:
						k.counted.Add(1)
					}
				}
			}
		})
	}
	return k
}

// goesOn waits for more to be counted.
func (k *counting) goesOn() {
	k.c.t.Helper()
	before := k.counted.Load()
	k.c.eventually("clients count", func() bool { return k.counted.Load() > before+20 })
}

// end waits for what has begun.
func (k *counting) end() {
	close(k.stop)
	k.clients.Wait()
}

// count adds one to an item, or reads it, at a node that leads. began reports whether that has begun.
func (n *testNode) count(id string, read bool) (began bool, err error) {
	ks := n.keyspace()
	if ks == nil {
		return false, nil
	}
	var tx keyspace.Tx
	ks.BeginKey(&tx, id)
	if tx.Follows() {
		tx.Close()
		return false, nil
	}
	it, _ := tx.Get(tx.Container("0"), id)
	if number, _ := strconv.Atoi(it.Body); !read {
		tx.Put(tx.Container("0"), id, keyspace.Plain, fmt.Sprint(number+1), expiry.Inherit)
	}
	return true, ks.Wait(tx.Close())
}

// A leader whose transfer fails, since the other node has just died, goes on in its term. That has no lease
// any more.
func TestTransferToADeadNode(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	i := 0
	c.eventually("a write and a read in the term of the failed transfer", func() bool {
		i++
		body := fmt.Sprint(i)
		c.mustPut("before", body)
		c.converge()
		leader, to := c.leader(), c.follower()
		term := leader.View().Term
		to.crash(t)
		failed := leader.Transfer(t.Context(), to.name)
		c.mustPut("after", body)
		got, err := leader.get("after", false)
		to.start(t)
		if !errors.Is(failed, errTransfer) || leader.View().Term != term {
			return false // the nodes have elected meanwhile, or saw the crash first
		}
		if got != body || err != nil {
			t.Errorf("a read at the leader: %q, %v", got, err)
		}
		return true
	})
}

// A node with another cluster-node-timeout does not take part until it has that of the others.
func TestOtherNodeTimeout(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	n := c.follower()
	n.stop(t)
	timeout := n.opt.NodeTimeout
	n.opt.NodeTimeout = 10 * timeout
	n.start(t)
	c.eventually("it refuses", func() bool {
		v := n.View()
		return v.Role == topology.Forming && strings.Contains(v.Cause, "cluster-node-timeout")
	})
	c.mustPut("meanwhile", "1")
	n.stop(t)
	n.opt.NodeTimeout = timeout
	n.start(t)
	c.has(n, "meanwhile", "1")
	c.converge()
}

// A change of the members that comes during an election waits for its end, at any node.
func TestRequestsDuringAnElection(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("before", "1")
	c.leader().crash(t)
	c.eventually("a request is done", func() bool {
		began := time.Now()
		err := c.follower().Add(t.Context(), "d", "127.0.0.1:1")
		if err != nil && time.Since(began) < requestPatience*testTimeout {
			t.Errorf("during the election, before the request has waited: %v", err)
		}
		return err == nil
	})
}

// A leader whose batch is lost drops its memory.
func TestDeposedLeaderReloads(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	cut := map[string]*atomic.Bool{} // off, outwards
	for name, n := range c.nodes {
		off := new(atomic.Bool)
		cut[name] = off
		n.opt.wrapSend = func(send func([]*raftpb.Message)) func([]*raftpb.Message) {
			return func(messages []*raftpb.Message) {
				if !off.Load() {
					send(messages)
				}
			}
		}
	}
	c.startAll()
	c.mustPut("kept", "1")
	old := c.leader()
	cut[old.name].Store(true)
	result := make(chan error, 1)
	go func() { result <- old.put("lost", "2") }()
	c.eventually("another leader", func() bool {
		for _, n := range c.nodes {
			if n != old && n.View().Leads() {
				return n.put("other", "3") == nil
			}
		}
		return false
	})
	cut[old.name].Store(false)
	if err := receive(t, result); err == nil {
		t.Error("the lost write was acknowledged")
	}
	c.has(old, "other", "3")
	if got, _ := old.get("lost", true); got != "" {
		t.Errorf("the lost write is there: %q", got)
	}
	c.converge()
}

// leaveBehind crashes a follower and writes more than the log keeps. body is that of the items big0 to big63.
func (c *trio) leaveBehind() (away *testNode, body string) {
	c.t.Helper()
	c.mustPut("before", "1")
	away = c.follower()
	away.crash(c.t)
	body = strings.Repeat("x", 64<<10)
	for i := range 64 {
		c.mustPut(fmt.Sprint("big", i), body)
	}
	leader := c.leader()
	check(c.t, leader.keyspace().Save())
	c.eventually("the log is cut", func() bool {
		inc := leader.running.Load()
		first, err := inc.disk.Memory().FirstIndex()
		return err == nil && first > 10
	})
	return away, body
}

// A node that was away for longer than the log reaches gets the stores.
func TestCatchUpFromStores(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	away, body := c.leaveBehind()
	away.start(t)
	c.has(away, "big63", body)
	c.converge()
}

// Stores are installed until the raft log knows them: a start that fails between does not make the log, which
// is that of before, look damaged.
func TestInstalledStoresSurviveAFailedStart(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	away, body := c.leaveBehind()
	away.opt.wrapLog = func(log raftLog) raftLog { return &forgetfulLog{log} }
	opened, open := 0, away.opt.Open
	away.opt.Open = func(r replica.Replicator) (*keyspace.Keyspace, error) {
		if opened++; opened == 2 { // with the stores
			return nil, errors.New("no file can be opened")
		}
		return open(r)
	}
	away.start(t)
	c.has(away, "big63", body)
	if text := c.log.String(); !strings.Contains(text, "no file can be opened") || strings.Contains(text, "damaged") {
		t.Error("the stores were not installed, or were set aside")
	}
}

// forgetfulLog is a raft log whose process ends before it knows of stores.
type forgetfulLog struct{ raftLog }

func (l *forgetfulLog) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	if snap != nil {
		return errors.New("the process ends")
	}
	return l.raftLog.Save(hs, entries, snap)
}

func TestAddAndRemove(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("before", "1")
	addr := freeAddrs(t, 1)[0]
	joiner := c.add("d", addr)
	joiner.opt.Peers = append(slices.Clone(c.peers), forming.Peer{Name: "d", Addr: addr})
	c.announce("never", "127.0.0.1:1")
	c.eventually("it is shown", func() bool { v := c.leader().View(); return len(v.Announced) == 1 && v.Announced[0].Name == "never" })
	c.remove("never") // withdrawn
	c.eventually("it is unknown", func() bool {
		err := c.follower().Remove(t.Context(), "never")
		return err != nil && strings.Contains(err.Error(), "neither a member nor announced")
	})
	c.announce("d", addr)
	joiner.start(t)
	c.has(joiner, "before", "1")
	c.eventually("four voters", func() bool { return c.leader().View().Voters() == 4 })
	c.converge()

	c.remove("d")
	c.eventually("it knows", func() bool { return joiner.View().Role == topology.Removed })
	if joiner.keyspace() != nil {
		t.Error("a removed node serves")
	}
	if stores, err := filepath.Glob(filepath.Join(joiner.dir, "partition-*.db")); err != nil || len(stores) == 0 {
		t.Errorf("a removed node has lost its files: %v", err)
	}
	c.announce("d", addr) // it comes back by itself
	c.has(joiner, "before", "1")
	c.eventually("four voters again", func() bool { return c.leader().View().Voters() == 4 })
	c.remove("d")
	c.eventually("it knows again", func() bool { return joiner.View().Role == topology.Removed })
	joiner.stop(t)
	delete(c.nodes, "d")
	c.eventually("three voters", func() bool { return c.leader().View().Voters() == 3 })

	old := c.leader()
	c.remove(old.name)
	c.eventually("two voters", func() bool {
		for _, n := range c.nodes {
			if n != old && n.View().Leads() {
				return n.View().Voters() == 2 && len(n.View().Members) == 2
			}
		}
		return false
	})
	c.eventually("the removed leader knows", func() bool { return old.View().Role == topology.Removed })
	old.stop(t)
	delete(c.nodes, old.name)
	c.mustPut("after", "2")
	c.converge()
}

// Nodes of a new cluster make folders with the same number of partitions. A node that comes later takes what
// the others have.
func TestPartitionsDiffer(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	c.nodes["b"].opt.Partitions = 8
	for _, n := range c.nodes {
		n.start(t)
	}
	for name, want := range map[string]string{"a": "partitions differ: a has 4, b has 8", "b": "partitions differ: b has 8, a has 4"} {
		c.eventually(name+" refuses", func() bool { return strings.Contains(c.nodes[name].View().Cause, want) })
	}
	c.nodes["b"].stop(t)
	c.nodes["b"].opt.Partitions = 4
	c.nodes["b"].start(t)
	c.mustPut("key", "1")

	lost := c.follower()
	lost.crash(t)
	check(t, os.RemoveAll(lost.dir))
	check(t, os.Mkdir(lost.dir, 0o700))
	lost.opt.Partitions = 8
	lost.start(t)
	c.has(lost, "key", "1")
	c.converge()
	if stores, err := filepath.Glob(filepath.Join(lost.dir, "partition-*.db")); err != nil || len(stores) != 4 {
		t.Errorf("it has the files %v", stores)
	}
}

// Stores that arrived and were not installed are removed at the next start, and an incarnation that has ended
// takes none.
func TestLeftStores(t *testing.T) {
	t.Parallel()
	c := startTrio(t, "a")
	c.mustPut("key", "1")
	n := c.nodes["a"]
	ended := n.running.Load()
	n.stop(t)
	incoming := filepath.Join(n.dir, clusterDir, stores.Incoming)
	if err := ended.receiveStores(t.Context(), &raftpb.Message{}, 0, strings.NewReader("")); !errors.Is(err, errRestarting) {
		t.Errorf("an incarnation that has ended takes stores: %v", err)
	}
	check(t, os.Mkdir(incoming, 0o700))
	check(t, os.WriteFile(filepath.Join(incoming, "format"), []byte("left"), 0o600))
	n.start(t)
	c.has(n, "key", "1")
	if _, err := os.Stat(incoming); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("stores that were not installed are left: %v", err)
	}
}

// A folder with data founds a cluster; the other nodes get the data.
func TestFoundedWithData(t *testing.T) {
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	founder := c.nodes["b"]
	ks, err := keyspace.Open(keyspace.Options{Dir: founder.dir, Partitions: 4})
	check(t, err)
	founder.ks = ks
	check(t, founder.put("old", "1"))
	check(t, ks.Close())
	founder.ks = nil
	c.startAll()
	c.allHave("old", "1")
	c.converge()
}

// Data files of another cluster, such as a backup that was copied into the folder of a node, are not taken
// for its own: their index in the log is one that this cluster's log has, too.
func TestFilesOfAnotherCluster(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "x", "y", "z")
	c.mustPut("foreign", "1")
	source := c.leader()
	backup := filepath.Join(t.TempDir(), "backup")
	check(t, source.keyspace().Backup(backup))
	for _, n := range c.nodes {
		n.stop(t)
	}

	other := startTrio(t, "a", "b", "c")
	for i := range 20 {
		other.mustPut(fmt.Sprint("own", i), "1")
	}
	mixed := other.follower()
	id := mixed.View().Self().ID
	mixed.stop(t)
	for _, pattern := range []string{filepath.Join(mixed.dir, "*.db"), filepath.Join(mixed.dir, "manifest"), filepath.Join(mixed.dir, "seed")} {
		files, err := filepath.Glob(pattern)
		check(t, err)
		for _, path := range files {
			check(t, os.Remove(path))
		}
	}
	check(t, os.Remove(filepath.Join(mixed.dir, "format")))
	check(t, os.CopyFS(mixed.dir, os.DirFS(backup)))
	mixed.start(t)
	other.has(mixed, "own19", "1")
	if got, _ := mixed.get("foreign", true); got != "" {
		t.Errorf("the node has an item of the other cluster: %q", got)
	}
	other.eventually("it votes again", func() bool {
		self := other.leader().View().Member(mixed.name)
		return self != nil && self.Voter && self.ID != id
	})
	other.converge()
}

// A backup of any node founds a new cluster.
func TestBackupFoundsACluster(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("old", "1")
	source := c.follower()
	c.has(source, "old", "1")
	backup := filepath.Join(t.TempDir(), "backup")
	check(t, source.keyspace().Backup(backup))
	c.mustPut("later", "2")
	c.converge()

	other := newTrio(t, "x", "y", "z")
	founder := other.nodes["y"]
	founder.dir, founder.opt.Dir = backup, backup
	for _, n := range other.nodes {
		n.start(t)
	}
	for _, n := range other.nodes {
		other.has(n, "old", "1")
		if got, _ := n.get("later", true); got != "" {
			t.Errorf("the new cluster has what came after the backup: %q", got)
		}
	}
	other.converge()
}
