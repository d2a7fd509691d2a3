package cluster

import (
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestClusterSlowDisk has a transaction written to slow disks, which takes longer than the timeout of nodes,
// and in a drill longer than clients wait. The leader stays, small writes and reads go on afterwards, and the
// transaction is there as a whole, whatever its reply was. A reply that it failed says that its fate is open.
func TestClusterSlowDisk(t *testing.T) {
	t.Parallel()
	const rate = 5_000_000 // slow, so that a small transaction takes long: a large one costs time of the processor too
	c := newInstrumented(t, ledgerArgs...)
	c.NodeTimeout = harness.Brief
	for range 3 {
		c.Add().Env = []string{fmt.Sprintf("TEST_SLOW_DISK=%d", rate)}
	}
	c.StartAll(0)
	for _, n := range c.Nodes {
		n.AwaitServing()
	}
	for _, mb := range drill.Pick([]int{4}, []int{4}, []int{4, 12}) {
		keepsLead(c, func(leader *harness.Node) { writeSlowly(leader, mb) })
	}
}

// writeSlowly writes a transaction of some MB at the leader.
func writeSlowly(leader *harness.Node, mb int) {
	t, c, ctx := leader.T, leader.Cluster, leader.T.Context()
	o := leader.Options(leader.ClientAddr)
	o.ReadTimeout = harness.Patience
	client := redis.NewClient(o)
	defer client.Close()
	value := strings.Repeat("0123456789abcdef", 1<<16)
	exists := []any{"EXISTS"}
	term := leader.Term()
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range mb {
			key := fmt.Sprintf("large:%d:%d:%d", term, mb, i) // of this try only
			exists = append(exists, key)
			p.Set(ctx, key, value, 0)
		}
		return nil
	})
	if err != nil && !harness.Temporary(err) {
		t.Errorf("%d MB: %v", mb, err)
	}
	do(c, "SET", "small", mb)
	n := do(c, exists...)
	wrong := n != int64(mb) && n != int64(0)
	switch {
	case err == nil, strings.HasPrefix(err.Error(), "UNCERTAIN ") && leader.Term() == term: // it is the same leader
		wrong = n != int64(mb)
	case strings.HasPrefix(err.Error(), "CLUSTERDOWN "): // it has changed nothing
		wrong = n != int64(0)
	}
	if wrong {
		t.Errorf("%d MB: %v keys of %d are there after the reply %v", mb, n, mb, err)
	}
	c.Settle()
}
