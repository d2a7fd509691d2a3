package cluster

import (
	"fmt"
	"mayfly/test/drill"
	"mayfly/test/harness"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// TestClusterSlowDisk has a large transaction written to slow disks, which takes longer than the timeout of nodes. The leader
// stays, small writes and reads go on afterwards, and the transaction is there as a whole, whatever its reply was. A reply that it
// failed says that its fate is open.
func TestClusterSlowDisk(t *testing.T) {
	if !drill.On() {
		t.Skip("NOT TESTED without -drill: on a busy machine nodes depose a leader for other reasons")
	}
	t.Parallel()
	const rate = 26_000_000
	c := newInstrumented(t, ledgerArgs...)
	c.NodeTimeout = harness.Brief
	for range 3 {
		c.Add().Env = []string{fmt.Sprintf("TEST_SLOW_DISK=%d", rate)}
	}
	c.StartAll(0)
	for _, n := range c.Nodes {
		n.AwaitServing()
	}
	for _, mb := range []int{20, 60} {
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
	_, err := client.TxPipelined(ctx, func(p redis.Pipeliner) error {
		for i := range mb {
			key := fmt.Sprintf("large:%d:%d", mb, i)
			exists = append(exists, key)
			p.Set(ctx, key, value, 0)
		}
		return nil
	})
	if err != nil && !harness.Temporary(err) {
		t.Errorf("%d MB: %v", mb, err)
	}
	moved := err != nil && !strings.HasPrefix(err.Error(), "CLUSTERDOWN ") // it was never begun
	do(c, "SET", "small", mb)
	if n := do(c, exists...); !moved && n != int64(mb) {
		t.Errorf("%d MB: %d keys of %d are there", mb, n, mb)
	}
	c.Settle()
}
