package cluster

import (
	"flag"
	"math/rand/v2"
	"mayfly/test/harness"
	"testing"
	"time"
)

var (
	leaderKills = flag.Int("leader-kills", 3, "how many times TestClusterLeaderKills kills the leader")
	clusterSeed = flag.Uint64("cluster-seed", 0, "seed of the drills of clusters; 0 for a random one")
)

// ledgerArgs are what the ledgers need: windows to undo drops, and deaths without delay.
var ledgerArgs = []string{"--undo-window", "3600", "--active-expire-effort", "10"}

// seed returns the seed of a drill.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := *clusterSeed
	if n == 0 {
		n = rand.Uint64()
	}
	t.Logf("seed %d", n)
	return n
}

// TestClusterLeaderKills kills the leader again and again under a ledger of commands of many kinds. No acknowledged write is
// lost, nothing dead comes back, no transaction is there in part, each death is logged once, and the nodes become equal.
//
// The long form:
//
//	go test . -run ClusterLeaderKills -timeout 0 -leader-kills 100
func TestClusterLeaderKills(t *testing.T) {
	seed := seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	c := harness.StartCluster(t, 3, ledgerArgs...)
	l := newLedger(c, seed)
	l.begin()
	defer l.pause()
	l.awaitAcks(100)
	var outages harness.Durations
	for kill := 1; kill <= *leaderKills && !t.Failed(); kill++ {
		time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond) // under load
		leader := c.Leader()
		leader.Kill()
		outages = append(outages, l.awaitAcks(100))
		leader.Start()
		leader.AwaitServing()
		if kill%10 == 0 || kill == *leaderKills {
			l.pause()
			l.verify()
			l.begin()
		}
	}
	l.pause()
	t.Logf("%d kills of the leader; writes went on after: %v", *leaderKills, outages)
	t.Log(l.figures(20 * *leaderKills))
}
