package cluster

import (
	"context"
	"fmt"
	"testing"
	"time"

	"mayfly/cluster/topology"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
)

// A node that opens its files knows who leads, also after a change: its clients are sent there.
func TestLeaderIsKnownWhileLoading(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	c.mustPut("key", "1")
	loading := c.follower()
	ids := loading.ids()
	loading.crash(t)
	open, resume := loading.opt.Open, make(chan struct{})
	loading.opt.Open = func(r replica.Replicator) (*keyspace.Keyspace, error) {
		<-resume
		return open(r)
	}
	loading.start(t)
	if got := loading.ids(); got != ids || got == "" {
		t.Errorf("a node that starts shows the nodes\n%s, and before\n%s", got, ids)
	}
	knows := func(leader *testNode) {
		t.Helper()
		c.eventually(loading.name+" knows that "+leader.name+" leads", func() bool {
			v := loading.View()
			return v.Role == topology.Loading && v.Quorum && v.Leader != nil && v.Leader.Name == leader.name &&
				v.Leader.Client == leader.opt.ClientAddr && len(v.Members) == 3 && v.Self() != nil
		})
	}
	old := c.leader()
	knows(old)
	c.eventually("a transfer", func() bool { return old.Transfer(context.Background(), "") == nil })
	next := c.leader()
	knows(next)
	next.crash(t) // no leader is left
	c.eventually("what is old is forgotten", func() bool { return loading.View().Leader == nil && !loading.View().Quorum })
	next.start(t)
	close(resume)
	c.has(loading, "key", "1")
	c.converge()
}

// ids returns the members as clients see them.
func (n *testNode) ids() (text string) {
	v := n.View()
	for i := range v.Members {
		m := &v.Members[i]
		text += fmt.Sprintln(v.NodeID(m), m.Client, m.Addr)
	}
	return text
}

// A node that loads anew knows the leader at once, but not itself as the leader.
func TestLeaderIsKept(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := startTrio(t, "a", "b", "c")
	leader, follower := c.leader(), c.follower()
	c.eventually("the follower knows the leader", func() bool { return follower.View().Leader != nil && follower.View().Quorum })
	for _, n := range []*testNode{leader, follower} {
		n.keepLearned()
	}
	view := &topology.View{Role: topology.Loading}
	if leader.describeLearned(view) {
		t.Errorf("the leader has learned %+v", view)
	}
	if !follower.describeLearned(view) || !view.Quorum || len(view.Members) != 3 {
		t.Errorf("the follower has learned %+v", view)
	}
	follower.learned.Load().at = clock.Monotonic() - time.Hour
	if follower.describeLearned(view) {
		t.Error("it is used after an hour")
	}
}
