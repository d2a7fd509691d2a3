package cluster

import (
	"time"

	"mayfly/cluster/forming"
	"mayfly/cluster/topology"
	"mayfly/expiry/clock"
)

// learned is what the other nodes say of the cluster, for the time in which this node takes no part because
// it opens its files. Clients are redirected by it, as a node of Redis redirects them while it loads.
type learned struct {
	leader  string
	members []forming.Member
	at      time.Duration // when it was said
}

// learnedFor returns how long what was learned is used. A leader is replaced within that time, and a question
// to a node that does not answer takes most of it.
func (n *Node) learnedFor() time.Duration { return max(2*n.options.NodeTimeout, 3*time.Second) }

// learn asks the other nodes for the leader again and again, while no incarnation runs.
func (n *Node) learn() {
	ticker := time.NewTicker(n.options.NodeTimeout / 5)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-ticker.C:
		}
		if n.running.Load() != nil {
			continue
		}
		asked := clock.Monotonic()
		if leader, members, known := n.former.Leader(n.ctx); known {
			n.learned.Store(&learned{leader, members, asked})
			n.refresh()
		}
	}
}

// keepLearned notes what an incarnation that ends knew.
func (n *Node) keepLearned() {
	v := n.View()
	if v.Leader == nil || v.Leader.Self || !v.Quorum {
		return
	}
	l := &learned{leader: v.Leader.Name, at: clock.Monotonic() - max(v.Leader.LastContact, 0)}
	for _, m := range v.Members {
		l.members = append(l.members, forming.Member{Name: m.Name, ID: m.ID, Addr: m.Addr, Client: m.Client})
	}
	n.learned.Store(l)
}

// describeLearned fills the view of a node that opens its files with what it has learned, unless that is too
// old.
func (n *Node) describeLearned(v *topology.View) bool {
	l := n.learned.Load()
	if l == nil || v.Role != topology.Loading && v.Role != topology.Failed {
		return false
	}
	age := clock.Monotonic() - l.at
	if age > n.learnedFor() {
		return false
	}
	for _, m := range l.members {
		if m.ID == 0 {
			continue // only announced
		}
		member := topology.Member{Name: m.Name, ID: m.ID, Addr: m.Addr, Client: m.Client, Self: m.Name == n.options.Name, LastContact: -1, Lag: -1,
			Leader: m.Name == l.leader}
		switch {
		case member.Self:
			member.Active, member.LastContact = true, 0
		case member.Leader:
			member.Active, member.LastContact = true, age
			v.Quorum = true
		}
		v.Members = append(v.Members, member)
	}
	return true
}
