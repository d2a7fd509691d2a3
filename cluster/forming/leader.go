package forming

import "context"

// Leader asks the peers of a member for the name of the node that leads, which is another one, and for the
// members. It is for the time in which this node takes no part in raft. What the leader says of itself comes
// first.
func (f *Former) Leader(ctx context.Context) (name string, members []Member, known bool) {
	self := f.hello()
	if !self.formed() {
		return "", nil, false
	}
	answers, _ := f.ask(ctx, self) // a peer that is not who it should be says nothing of this cluster
	for _, h := range answers {
		if h == nil || !h.formed() || h.Identity.Cluster != self.Identity.Cluster {
			continue
		}
		if l := h.Leader; l != nil && l.Name != self.Name && named(h.Members, l.Name) != nil && (!known || l.Name == h.Name) {
			name, members, known = l.Name, h.Members, true
		}
	}
	return name, members, known
}
