package forming

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// Conflict returns a *RefusedError if this node, a member, must not take part in raft: another server has its
// identity, its folder is of another cluster than its peers, or its cluster-node-timeout is not theirs. It
// asks the peers once; those that do not answer say nothing against it. Of two nodes that contradict each
// other the later one notices it, if each asks before it takes part and once more when it does.
func (f *Former) Conflict(ctx context.Context) error {
	self := f.hello()
	if !self.formed() {
		return nil
	}
	answers, err := f.ask(ctx, self)
	if refused := (*RefusedError)(nil); errors.As(err, &refused) { // of a peer that has another name by now
		f.complaints.say(f.config.Log, "name", refused.Reason)
	}
	if err := f.foreignFolder(self.Identity, answers); err != nil {
		return err
	}
	if err := timeouts(self, answers); err != nil {
		return err
	}
	return f.twin(ctx, self.Identity, answers)
}

// timeouts returns an error if cluster-node-timeout differs from that of a peer that takes part, or from
// those of most nodes. A leader trusts for its own time that the others elect no leader, and they wait for
// theirs: it could reply with what is outdated. A peer alone that waits for its correction stops no other
// node.
func timeouts(self *hello, answers map[string]*hello) error {
	all, same := 1, 1
	var differs string
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		h := answers[name]
		if h == nil || !h.formed() || h.Identity.Cluster != self.Identity.Cluster || h.NodeTimeout == 0 {
			continue
		}
		all++
		if h.NodeTimeout == self.NodeTimeout {
			same++
			continue
		}
		takesPart := len(h.Members) > 0
		if takesPart || differs == "" {
			differs = fmt.Sprintf("cluster-node-timeout is %d ms here and %d ms at %s: all nodes need the same; stop all to change it",
				self.NodeTimeout, h.NodeTimeout, name)
		}
		if takesPart {
			return &RefusedError{differs}
		}
	}
	if 2*same <= all {
		return &RefusedError{differs}
	}
	return nil
}

// foreignFolder returns an error if the peers that are members of a cluster are all of another one: this node
// would bring clients of their cluster into its own. If only some are, they are named in the log.
func (f *Former) foreignFolder(own *Identity, answers map[string]*hello) error {
	var foreign []string
	related := false
	for _, name := range slices.Sorted(maps.Keys(answers)) {
		switch h := answers[name]; {
		case h == nil || h.Identity == nil:
		case h.Identity.Cluster == own.Cluster:
			related = true
		case h.formed():
			foreign = append(foreign, fmt.Sprintf("%s to %x", name, h.Identity.Cluster))
		}
	}
	if len(foreign) == 0 {
		return nil
	}
	text := fmt.Sprintf("the data folder belongs to cluster %x, but cluster-peers to others: %s", own.Cluster, list(foreign))
	if related {
		f.complaints.say(f.config.Log, "foreign", text)
		return nil
	}
	return &RefusedError{text + "; set cluster-peers to the nodes of its cluster, or use another folder"}
}

// twin returns an error if another server has the identity of this node, because one folder is a copy of the
// other. Two of them would vote twice. They cannot have the same address: this node is asked for at each
// other one that it has, or had.
func (f *Former) twin(ctx context.Context, own *Identity, answers map[string]*hello) error {
	var addrs []string
	look := func(members []Member) {
		for _, m := range members {
			if m.ID == own.ID && m.Addr != f.config.Addr && !slices.Contains(addrs, m.Addr) {
				addrs = append(addrs, m.Addr)
			}
		}
	}
	look(own.Members)
	for _, h := range answers {
		if h != nil && h.Identity != nil && h.Identity.Cluster == own.Cluster {
			look(h.Members)
		}
	}
	var mu sync.Mutex
	var found error
	f.each(peersAt(own.Name, addrs), func(p Peer) {
		ctx, cancel := context.WithTimeout(ctx, askPatience)
		defer cancel()
		var answer hello
		err := f.config.Call(ctx, p.Addr, pathHello, helloRequest{From: f.config.Name, To: p.Name, Peers: f.config.Peers}, &answer)
		if err != nil || answer.Run == f.run || answer.Identity == nil || answer.Identity.Cluster != own.Cluster || answer.Identity.ID != own.ID {
			return // no node, this node itself, or another one
		}
		mu.Lock()
		defer mu.Unlock()
		found = &RefusedError{fmt.Sprintf("the server at %s has the identity of this node, %s at %s: one data folder is a copy of the other; "+
			"stop one of the servers and empty its folder", p.Addr, f.config.Name, f.config.Addr)}
	})
	return found
}

// peersAt returns a peer of the name at each address.
func peersAt(name string, addrs []string) (peers []Peer) {
	for _, addr := range addrs {
		peers = append(peers, Peer{name, addr})
	}
	return peers
}
