package main

import (
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"
)

var oldBinary = flag.String("old-binary", "", "the program from which TestClusterRollingUpgrade upgrades a cluster")

// TestClusterRollingUpgrade upgrades a cluster node by node from an older build, while clients write and see no error. At each
// stage both programs lead with the other one following, and each gets the stores of the other.
//
// It needs the older build:
//
//	git worktree add /tmp/older COMMIT && (cd /tmp/older && go build -o /tmp/mayfly-older .)
//	go test . -run ClusterRollingUpgrade -timeout 0 -old-binary /tmp/mayfly-older
func TestClusterRollingUpgrade(t *testing.T) {
	if *oldBinary == "" {
		t.Skip("NOT TESTED: an upgrade, without -old-binary; TestClusterRollingRestart does the same with one program")
	}
	seed := seed(t)
	c := &nodes{t: t, program: *oldBinary, args: ledgerArgs}
	c.startAll(3)
	l := newLedger(c, seed)
	l.pace = 2 * time.Millisecond
	l.begin()
	defer l.pause()
	u := startUnchanged(c)
	l.awaitAcks(100)

	for i := range c.all {
		leader := c.leader()
		n := leader
		for _, other := range c.all { // followers first, the leader last
			if other != leader && other.upgraded == "" {
				n = other
				break
			}
		}
		n.terminate()
		outage := l.awaitAcks(20)
		n.upgraded = binary
		n.start()
		n.awaitServing()
		l.awaitAcks(20)
		t.Logf("%d upgraded: without node %s writes went on after %v", i+1, n.name, outage.Round(time.Millisecond))

		// Each program leads, and gets the stores of the other.
		for _, upgraded := range []bool{false, true} {
			lost := c.followerOf(upgraded)
			if lost == nil {
				continue
			}
			lost.kill()
			if err := os.RemoveAll(lost.dir); err != nil {
				t.Fatal(err)
			}
			l.awaitAcks(20)
			lost.start()
			lost.awaitServing()
			l.awaitAcks(20)
			t.Logf("%d upgraded: node %s, upgraded: %v, got the stores of node %s, upgraded: %v", i+1, lost.name, upgraded, c.leader().name, c.leader().upgraded != "")
		}
		l.pause()
		l.verify()
		l.begin()
	}
	u.stop()
	l.pause()
	l.verify()
	for _, n := range c.all {
		if aside, err := filepath.Glob(filepath.Join(n.dir, "cluster", "damaged-*")); err != nil || len(aside) > 0 {
			t.Errorf("node %s took files for damaged: %v, %v", n.name, aside, err)
		}
	}
	t.Log(l.figures(10))
}

// followerOf returns a follower that is upgraded or not, while the other kind leads; nil if there is none. It passes the lead
// on if it has to.
func (c *nodes) followerOf(upgraded bool) *node {
	c.t.Helper()
	var lost, other *node
	for _, n := range c.all {
		if (n.upgraded != "") == upgraded {
			lost = n
		} else {
			other = n
		}
	}
	if lost == nil || other == nil {
		return nil
	}
	if leader := c.leader(); leader != other {
		do(c, "CLUSTER", "TRANSFER", other.name)
		c.await("a leader of the other program", func() bool { return c.findLeader(c.t.Context()) == other })
	}
	return lost
}
