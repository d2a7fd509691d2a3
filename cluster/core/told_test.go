package core

import (
	"testing"

	"go.etcd.io/raft/v3/raftpb"
)

// A node without the entries of its leader knows how many it lacks: from heartbeats, which is all that a node
// gets that waits for stores.
func TestTheLeaderTellsWhatItHasCommitted(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	leader := w.leader()
	id := 1 + leader.config.ID%3
	propose := func(n int) {
		for range n {
			leader.propose(t, "x")
			w.settle()
		}
	}
	expect := func(what string, commit, target uint64) {
		t.Helper()
		if s := w.nodes[id].Status(w.now); s.Commit != commit || s.Target != target {
			t.Errorf("%s: %d are committed, %d at contact; want %d and %d", what, s.Commit, s.Target, commit, target)
		}
	}
	committed := func() uint64 { return leader.Status(w.now).Commit }
	w.tick(1)
	before := committed()

	w.cut[id] = true
	propose(50)
	state := w.state(w.nodes[id])
	w.start(id, w.nodes[id].log, w.nodes[id].Core.applied, state, false)
	expect("after a restart, without contact", before, 0)

	w.cut[id] = false
	w.lose = func(m *raftpb.Message) bool { return m.GetTo() == id && m.GetType() != raftpb.MsgHeartbeat }
	w.tick(1)
	contact := committed()
	expect("with heartbeats only", contact, contact)
	if s := w.nodes[id].Status(w.now); s.Applied >= s.Target {
		t.Errorf("it has applied %d without getting any", s.Applied)
	}
	propose(10)
	w.tick(1)
	expect("the same contact", committed(), contact)

	w.lose = nil
	w.tick(3)
	expect("with all", committed(), contact)
	w.cut[id] = true
	propose(10)
	w.tick(15)
	w.cut[id] = false
	w.tick(15)
	if s := w.nodes[id].Status(w.now); s.Target <= contact+10 {
		t.Errorf("contact begins anew, and the target is %d as before", s.Target)
	}
}
