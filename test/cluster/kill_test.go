package cluster

import (
	"math/rand/v2"
	"mayfly/test/drill"
	"testing"
)

// ledgerArgs are what the ledgers need: windows to undo drops, and deaths without delay.
var ledgerArgs = []string{"--undo-window", "3600", "--active-expire-effort", "10"}

// TestClusterLeaderKills passes the lead on and kills the leader, again and again, under a ledger of commands
// of many kinds. No acknowledged write is lost, nothing dead comes back, no transaction is there in part,
// each death is logged once, and the nodes become equal.
func TestClusterLeaderKills(t *testing.T) {
	t.Parallel()
	c := startBrief(t, ledgerArgs...)
	seed := drill.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	l := newLedger(c, seed)
	if drill.On() {
		l.pace = 0
	}
	l.begin()
	defer l.pause()
	var transfers, kills durations
	rounds := drill.Pick(1, 1, 100)
	for round := 1; round <= rounds && !t.Failed(); round++ {
		l.awaitSteps(1 + r.IntN(10))
		do(c, "CLUSTER", "TRANSFER")
		transfers = append(transfers, l.awaitSteps(1+r.IntN(20)))
		leader := c.Leader()
		leader.Kill()
		kills = append(kills, l.awaitSteps(5))
		leader.Start()
		leader.AwaitServing()
		if round%10 == 0 || round == rounds {
			l.pause()
			l.verify()
			l.begin()
		}
	}
	l.pause()
	t.Logf("writes went on after a transfer: %v; after a kill: %v", transfers, kills)
	t.Log(l.figures())
}
