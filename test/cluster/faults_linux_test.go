package cluster

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"mayfly/cluster/clustertest"
	"mayfly/test/drill"
	"mayfly/test/harness"
)

// faultDrill is a cluster on a network of its own while it is disturbed.
type faultDrill struct {
	*harness.Cluster
	h   *history
	r   *rand.Rand
	now *testing.T // of the fault
}

// fault is a disturbance. It lasts until the function that it returns is called.
type fault struct {
	name  string
	begin func(d *faultDrill, leader *harness.Node) (end func())

	goesOn bool // writes must go on while it lasts
	silent bool // some nodes do not answer clients
	strace bool // it needs strace
}

// linkFaults are those of the network, nodeFaults those of processes and disks.
var linkFaults = []fault{
	{name: "the leader alone", begin: func(d *faultDrill, leader *harness.Node) func() {
		d.Network.Isolate(leader.Number)
		return d.Network.Heal
	}, goesOn: true},
	{name: "a follower alone", begin: func(d *faultDrill, leader *harness.Node) func() {
		d.Network.Isolate(d.Others(leader)[0].Number)
		return d.Network.Heal
	}, goesOn: true},
	{name: "the leader is not heard", begin: func(d *faultDrill, leader *harness.Node) func() {
		for _, n := range d.Others(leader) {
			d.Network.Set(leader.Number, n.Number, clustertest.Link{Cut: true})
		}
		return d.Network.Heal
	}, goesOn: true},
	{name: "the leader hears nothing", begin: func(d *faultDrill, leader *harness.Node) func() {
		for _, n := range d.Others(leader) {
			d.Network.Set(n.Number, leader.Number, clustertest.Link{Cut: true})
		}
		return d.Network.Heal
	}, goesOn: true},
	{name: "leader and one follower apart", begin: func(d *faultDrill, leader *harness.Node) func() {
		d.Network.SetBoth(leader.Number, d.Others(leader)[0].Number, clustertest.Link{Cut: true})
		return d.Network.Heal
	}, goesOn: true},
	{name: "the leader without clients", begin: func(d *faultDrill, leader *harness.Node) func() {
		d.Network.SetBoth(leader.Number, clustertest.Clients, clustertest.Link{Cut: true})
		return d.Network.Heal
	}, silent: true},
	{name: "all apart", begin: func(d *faultDrill, _ *harness.Node) func() {
		for _, n := range d.Nodes {
			d.Network.Isolate(n.Number)
		}
		return d.Network.Heal
	}},
	{name: "flapping", begin: func(d *faultDrill, leader *harness.Node) func() {
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for cut := false; ; cut = !cut {
				if d.Network.Heal(); !cut {
					d.Network.Isolate(leader.Number)
				}
				select {
				case <-done:
					return
				case <-time.After(200*time.Millisecond + time.Duration(d.r.Int64N(int64(400*time.Millisecond)))):
				}
			}
		}()
		return func() { close(done); <-ended; d.Network.Heal() }
	}},
	{name: "slow links that lose packets", begin: func(d *faultDrill, _ *harness.Node) func() {
		for i, a := range d.Nodes {
			for _, b := range d.Nodes[i+1:] {
				d.Network.SetBoth(a.Number, b.Number, clustertest.Link{Delay: 30 * time.Millisecond, Loss: 0.01})
			}
		}
		return d.Network.Heal
	}, goesOn: true},
}

var nodeFaults = []fault{
	{name: "the leader is stopped", begin: func(_ *faultDrill, leader *harness.Node) func() {
		leader.Signal(syscall.SIGSTOP)
		return func() { leader.Signal(syscall.SIGCONT) }
	}, goesOn: true, silent: true},
	{name: "a follower is stopped", begin: func(d *faultDrill, leader *harness.Node) func() {
		n := d.Others(leader)[0]
		n.Signal(syscall.SIGSTOP)
		return func() { n.Signal(syscall.SIGCONT) }
	}, goesOn: true, silent: true},
	{name: "the leader's disk is slow", begin: func(d *faultDrill, leader *harness.Node) func() {
		return harness.InjectFsyncs(d.now, leader.Process().Process.Pid, "delay_enter=100000")
	}, goesOn: true, strace: true},
	{name: "a follower's disk is slow", begin: func(d *faultDrill, leader *harness.Node) func() {
		return harness.InjectFsyncs(d.now, d.Others(leader)[0].Process().Process.Pid, "delay_enter=500000")
	}, goesOn: true, strace: true},
}

// TestClusterFaults disturbs clusters in many ways, one after the other, while clients write ledgers and
// histories through all nodes. No acknowledged write is lost, the histories are linearizable, and the nodes
// become equal.
func TestClusterFaults(t *testing.T) {
	alone := drill.On() // it measures how long clients wait
	if !alone {
		t.Parallel()
	}
	for name, faults := range map[string][]fault{"links": linkFaults, "nodes": nodeFaults} {
		t.Run(name, func(t *testing.T) {
			if !alone {
				t.Parallel()
			}
			disturb(t, faults)
		})
	}
}

// disturb starts a cluster and lets faults come over it.
func disturb(t *testing.T, faults []fault) {
	c := harness.NewCluster(t, ledgerArgs...)
	c.NodeTimeout = harness.Brief
	c.StartNetwork(3)
	seed := drill.Seed(t)
	d := &faultDrill{Cluster: c, r: rand.New(rand.NewPCG(seed, 0))}
	began := time.Now() // of all histories: their groups are named by the time
	l := newLedger(c, seed)
	l.answer = 2 * time.Second // a node that is stopped does not even refuse
	defer l.pause()
	for round := range drill.Pick(1, 1, 10) {
		d.h = newHistory(c, seed+uint64(round), drill.Pick[time.Duration](40, 40, 5)*time.Millisecond)
		d.h.began = began
		d.h.begin()
		defer d.h.stop()
		l.begin()
		for _, f := range faults {
			t.Run(f.name, func(t *testing.T) { d.during(t, l, f) })
		}
		d.h.await(300) // fewer commands test nothing
		d.h.stop()
		d.h.check()
		l.pause()
		l.verify()
	}
	t.Log(l.figures())
}

// during lets a fault last for a while, and waits until the cluster has recovered.
func (d *faultDrill) during(t *testing.T, l *clusterLedger, f fault) {
	if d.T.Failed() {
		t.Skip("a fault before has failed")
	}
	if f.strace {
		harness.Need(t, "strace")
	}
	d.now = t
	leader := d.Leader()
	began := time.Now()
	end := f.begin(d, leader)
	lasts := time.After(drill.Pick(time.Second, time.Second, 10*time.Second)) // at least an election
	outage := time.Duration(-1)
	if f.goesOn {
		outage = l.awaitSteps(3)
	}
	<-lasts
	end()
	after := l.awaitSteps(3)
	if f.silent {
		d.h.excuse(began)
	}
	for _, n := range d.Nodes {
		n.AwaitServing()
	}
	t.Logf("writes go on after %v, and after its end after %v", outage.Round(time.Millisecond), after.Round(time.Millisecond))
}

// TestClusterClockSteps sets the clock of single nodes by an hour while clients write ledgers. What dies,
// dies by the clock of the leader; it never runs backwards, whichever node leads.
func TestClusterClockSteps(t *testing.T) {
	t.Parallel()
	c := newInstrumented(t, ledgerArgs...)
	c.NodeTimeout = harness.Brief
	steps := t.TempDir()
	for range 3 {
		n := c.Add()
		n.Env = []string{"TEST_CLOCK_STEP=" + filepath.Join(steps, n.Name)}
	}
	c.StartAll(0)
	step := func(n *harness.Node, d time.Duration) {
		t.Helper()
		path := filepath.Join(steps, n.Name)
		drill.Check(t, os.WriteFile(path+".new", []byte(d.String()), 0o600))
		drill.Check(t, os.Rename(path+".new", path))
	}
	leader := c.Leader()
	l := newLedger(c, drill.Seed(t))
	l.begin()
	defer l.pause()
	l.awaitSteps(3)
	do(c, "SET", "half-an-hour", "v", "EX", 1800)
	do(c, "SET", "two-hours", "v", "EX", 7200)
	exist := func(want int64, after string) {
		t.Helper()
		if got := do(c, "EXISTS", "half-an-hour", "two-hours"); got != want {
			t.Errorf("after %s %v of the keys exist, want %d", after, got, want)
		}
	}

	followers := c.Others(leader)
	step(followers[0], time.Hour)
	l.awaitSteps(5)
	exist(2, "a follower's clock was set forward")
	step(followers[0], 0)
	step(leader, -time.Hour)
	l.awaitSteps(5)
	exist(2, "the leader's clock was set back")
	transfer(c, followers[1]) // its clock is an hour ahead of the one before
	l.awaitSteps(5)
	exist(2, "a change of leaders")
	step(leader, 0)
	l.pause()
	l.verify()

	// Forward at the leader: what is to live for half an hour is dead, and stays dead.
	leader = c.Leader()
	step(leader, time.Hour)
	c.Await("a key to die", func() bool { return do(c, "EXISTS", "half-an-hour") == int64(0) })
	exist(1, "the leader's clock was set forward")
	leader.Kill()
	exist(1, "the next leader's clock is an hour behind")
	step(leader, 0)
	leader.Start()
	leader.AwaitServing()
	exist(1, "the old leader is back")
	c.Settle()
}
