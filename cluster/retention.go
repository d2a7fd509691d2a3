package cluster

import (
	"time"

	"mayfly/cluster/core"
)

// Bounds of what the log keeps for a node that gets stores. Below them the log keeps whatever the node lacks:
// otherwise it would need other stores at once, for as long as the leader is busy.
const (
	mostRetained  = 256 << 20       // bytes, or twice repl-log-size if that is more
	retainedShare = 4               // or this part of the stores, whose transfer takes longer
	goneAfter     = 5 * time.Minute // without a message of the node, which loads the stores meanwhile
)

// retention is the part of the raft log that nodes need which get stores: the entries after those of the
// stores. It is the loop's, and empty while this node does not lead.
type retention struct {
	keep  int64 // repl-log-size
	nodes map[uint64]*retained
}

// retained is what the log keeps for one node.
type retained struct {
	index uint64        // of the stores; then that up to which the node has the log
	bytes int64         // of the stores; 0: not known yet
	heard time.Duration // when the node was heard last, or the transfer began
}

// begin notes that a node gets the stores at an index, or later ones.
func (r *retention) begin(id, index uint64, now time.Duration) {
	if r.nodes == nil {
		r.nodes = map[uint64]*retained{}
	}
	r.nodes[id] = &retained{index: index, heard: now}
}

// size notes how many bytes the stores for a node have.
func (r *retention) size(id uint64, bytes int64) {
	if node := r.nodes[id]; node != nil {
		node.bytes = bytes
	}
}

// end notes that a node does not get the stores after all.
func (r *retention) end(id uint64) { delete(r.nodes, id) }

// update forgets the nodes that need nothing more: those that have got further than the log reaches without
// them, are gone, or were removed. behind returns the size of the entries after an index.
func (r *retention) update(s *core.Status, behind func(index uint64) int64, now time.Duration) {
	if len(r.nodes) == 0 {
		return
	}
	progress := map[uint64]*core.Progress{} // empty unless this node leads
	for i := range s.Progress {
		progress[s.Progress[i].ID] = &s.Progress[i]
	}
	for id, node := range r.nodes {
		p := progress[id]
		if p == nil {
			delete(r.nodes, id)
			continue
		}
		node.heard = max(node.heard, p.Heard)
		caughtUp := false
		if !p.Snapshot && p.Match >= node.index {
			node.index = p.Match
			caughtUp = behind(p.Match) <= r.keep/2
		}
		if caughtUp || now-node.heard > goneAfter {
			delete(r.nodes, id)
		}
	}
}

// need returns the index after which the log is needed, and how many bytes of it to keep at most. 0: nothing
// is needed.
func (r *retention) need() (index uint64, most int64) {
	for _, node := range r.nodes {
		if index == 0 || node.index < index {
			index = node.index
		}
		most = max(most, mostRetained, 2*r.keep, node.bytes/retainedShare)
	}
	return index, most
}

// missed returns the nodes for which the log was cut too far, and forgets them.
func (r *retention) missed(first uint64) (ids []uint64) {
	for id, node := range r.nodes {
		if node.index+1 < first {
			ids = append(ids, id)
			delete(r.nodes, id)
		}
	}
	return ids
}
