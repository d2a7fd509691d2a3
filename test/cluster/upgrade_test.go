package cluster

import (
	"mayfly/test/drill"
	"mayfly/test/harness"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestClusterRollingUpgrade upgrades a cluster node by node from an older build, while clients write and see
// no error. At each stage both programs lead with the other one following, and each gets the stores of the
// other.
//
// TEST_OLDER is the path of the older build; no commit is the older one for all times. A name that begins
// with MAYFLY_ would be an option of the servers.
//
//	git worktree add /tmp/older COMMIT && (cd /tmp/older && go build -o /tmp/mayfly-older .)
//	TEST_OLDER=/tmp/mayfly-older go test ./test/cluster -run ClusterRollingUpgrade
func TestClusterRollingUpgrade(t *testing.T) {
	t.Parallel()
	older := os.Getenv("TEST_OLDER")
	if older == "" {
		t.Skip("NOT TESTED: an upgrade, without TEST_OLDER; TestClusterRollingRestart does the same with one program")
	}
	c := harness.NewCluster(t, ledgerArgs...)
	c.Program = older
	c.StartAll(3)
	l := newLedger(c, drill.Seed(t))
	l.begin()
	defer l.pause()
	u := startUnchanged(c)
	l.awaitSteps(10)

	for i := range c.Nodes {
		leader := c.Leader()
		n := leader
		for _, other := range c.Nodes { // followers first, the leader last
			if other != leader && other.Upgraded == "" {
				n = other
				break
			}
		}
		n.Terminate()
		outage := l.awaitSteps(2)
		n.Upgraded = harness.Binary
		n.Start()
		n.AwaitServing()
		l.awaitSteps(2)
		t.Logf("%d upgraded: without node %s writes went on after %v", i+1, n.Name, outage.Round(time.Millisecond))

		// Each program leads, and gets the stores of the other.
		for _, upgraded := range []bool{false, true} {
			lost := followerOf(c, upgraded)
			if lost == nil {
				continue
			}
			lost.Kill()
			drill.Check(t, os.RemoveAll(lost.Dir))
			l.awaitSteps(2)
			lost.Start()
			lost.AwaitServing()
			l.awaitSteps(2)
			t.Logf("%d upgraded: node %s, upgraded: %v, got the stores of node %s, upgraded: %v", i+1, lost.Name, upgraded, c.Leader().Name, c.Leader().Upgraded != "")
		}
		l.pause()
		l.verify()
		l.begin()
	}
	u.stop()
	l.pause()
	l.verify()
	for _, n := range c.Nodes {
		if aside, err := filepath.Glob(filepath.Join(n.Dir, "cluster", "damaged-*")); err != nil || len(aside) > 0 {
			t.Errorf("node %s took files for damaged: %v, %v", n.Name, aside, err)
		}
	}
	t.Log(l.figures())
}

// followerOf returns a follower that is upgraded or not, while the other kind leads; nil if there is none. It
// passes the lead on if it has to.
func followerOf(c *harness.Cluster, upgraded bool) *harness.Node {
	c.T.Helper()
	var lost, other *harness.Node
	for _, n := range c.Nodes {
		if (n.Upgraded != "") == upgraded {
			lost = n
		} else {
			other = n
		}
	}
	if lost == nil || other == nil {
		return nil
	}
	transfer(c, other)
	return lost
}
