package forming

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// hello is the answer to the question who a node is. A nil Identity: it has none.
type hello struct {
	Name    string `json:"name"`
	Client  string `json:"client,omitempty"` // its address for clients
	Peers   []Peer `json:"peers"`
	HasData bool   `json:"has_data"`
	Run     uint64 `json:"run,string"` // of the process
	// Partitions is the number of partitions of a data folder that it makes.
	Partitions int `json:"partitions,omitempty"`
	// NodeTimeout is its cluster-node-timeout, in ms.
	NodeTimeout int64     `json:"node_timeout,omitempty"`
	Identity    *Identity `json:"identity,omitempty"`
	// Members and Leader are of raft, if the node takes part in it.
	Members []Member `json:"members,omitempty"`
	Leader  *Member  `json:"leader,omitempty"`
}

// stage returns the stage, empty without an identity.
func (h *hello) stage() Stage {
	if h.Identity == nil {
		return ""
	}
	return h.Identity.Stage
}

// formed reports whether the node is a member.
func (h *hello) formed() bool { return h.stage() == Formed }

// action is what a node does next to get into a cluster.
type action int

const (
	wait    action = iota // and ask again
	refuse                // people have to change something
	found                 // give out ids, as the founder
	prepare               // have each peer write its id, then begin
	drop                  // forget an identity that has not taken part in raft
	become                // the cluster of the identity has begun: take part
	choose                // choose an id to join the cluster
	join                  // ask the leader
	ready                 // take part in raft
)

func (a action) String() string {
	return [...]string{"wait", "refuse", "found", "prepare", "drop", "become", "choose", "join", "ready"}[a]
}

// decision is an action and why.
type decision struct {
	action
	reason  string   // of wait and refuse, one line
	cluster uint64   // of choose
	ask     []string // of join: names, the likeliest leader first
}

func waiting(format string, parts ...any) decision {
	return decision{action: wait, reason: fmt.Sprintf(format, parts...)}
}

func refusing(format string, parts ...any) decision {
	return decision{action: refuse, reason: fmt.Sprintf(format, parts...)}
}

// decide returns what the node self does when its peers have given these answers, by name. A nil answer is
// none. The answers must be younger than the identity of self.
func decide(self hello, answers map[string]*hello) decision {
	v := view{self: self, answers: answers, names: slices.Sorted(maps.Keys(answers))}
	switch self.stage() {
	case Formed:
		return decision{action: ready}
	case Joining, Lost:
		return v.rejoin()
	}
	clusters := v.formedClusters()
	if len(clusters) > 1 {
		return refusing("the peers belong to several clusters: %s", v.membersOf(clusters))
	}
	if self.stage() == Prepared {
		return v.prepared(clusters)
	}
	return v.none(clusters)
}

// view is what a decision is made of.
type view struct {
	self    hello
	answers map[string]*hello
	names   []string // of answers
}

// formedClusters returns the clusters of which a peer is a member.
func (v *view) formedClusters() (clusters []uint64) {
	for _, name := range v.names {
		if h := v.answers[name]; h != nil && h.formed() && !slices.Contains(clusters, h.Identity.Cluster) {
			clusters = append(clusters, h.Identity.Cluster)
		}
	}
	return clusters
}

// membersOf describes which peers belong to which cluster.
func (v *view) membersOf(clusters []uint64) string {
	var parts []string
	for _, name := range v.names {
		if h := v.answers[name]; h != nil && h.Identity != nil && slices.Contains(clusters, h.Identity.Cluster) {
			parts = append(parts, fmt.Sprintf("%s to %x", name, h.Identity.Cluster))
		}
	}
	return strings.Join(parts, ", ")
}

// silent returns the peers without an answer.
func (v *view) silent() (names []string) {
	for _, name := range v.names {
		if v.answers[name] == nil {
			names = append(names, name)
		}
	}
	return names
}

func list(names []string) string { return strings.Join(names, ", ") }

// rejoin decides for a node that may only come into one cluster.
func (v *view) rejoin() decision {
	own := v.self.Identity
	clusters := v.formedClusters()
	cluster := own.Cluster
	if cluster == 0 && len(clusters) == 1 {
		cluster = clusters[0]
	}
	if slices.Contains(clusters, cluster) {
		if d, ok := v.majority(cluster); !ok {
			return d
		}
		if own.Stage == Lost {
			return decision{action: choose, cluster: cluster}
		}
		return decision{action: join, ask: v.contacts(cluster)}
	}
	switch silent := v.silent(); {
	case len(clusters) > 1:
		return refusing("the peers belong to several clusters: %s", v.membersOf(clusters))
	case len(clusters) == 1:
		return refusing("this node belongs to cluster %x, its peers to another: %s", cluster, v.membersOf(clusters))
	case len(silent) > 0:
		return waiting("this node has lost its files and needs a member of its cluster; no answer from %s", list(silent))
	}
	return waiting("this node has lost its files and no peer is a member of its cluster: %s; restore the files of one of them", v.stages())
}

// majority checks that a cluster can still have a leader. It cannot if all peers answer, none knows a leader,
// and half of the members or more have lost their files.
func (v *view) majority(cluster uint64) (decision, bool) {
	var whole []string
	members := 0
	for _, name := range v.names {
		h := v.answers[name]
		switch {
		case h == nil || h.Leader != nil:
			return decision{}, true
		case h.Identity == nil || h.Identity.Cluster != cluster:
			continue
		case h.Identity.Stage == Formed || h.Identity.Stage == Prepared:
			whole = append(whole, name)
			members = max(members, len(h.Members), len(h.Identity.Members))
		}
	}
	if 2*len(whole) > members {
		return v.foundersData(cluster)
	}
	return waiting("cluster %x has lost its majority for good: of %d members only %s has its files; to go on with the data of one, "+
		"stop all nodes, remove the folder cluster of its data folder and empty the others", cluster, members, list(whole)), false
}

// foundersData checks that this node did not lose data with which it founded a cluster before a peer had it.
func (v *view) foundersData(cluster uint64) (decision, bool) {
	for _, name := range v.names {
		i := v.answers[name].Identity
		if i == nil || i.Cluster != cluster {
			continue
		}
		if i.Founder != v.self.Name || !i.FoundedWithData || len(v.answers[name].Members) > 0 {
			return decision{}, true
		}
	}
	return waiting("the peers await the data with which this node founded cluster %x: restore its data folder, "+
		"or remove the folder cluster of the data folders of all nodes", cluster), false
}

// stages describes the peers.
func (v *view) stages() string {
	var parts []string
	for _, name := range v.names {
		h := v.answers[name]
		switch {
		case h == nil:
			parts = append(parts, name+" does not answer")
		case h.Identity == nil:
			parts = append(parts, name+" is empty")
		default:
			parts = append(parts, fmt.Sprintf("%s is %s", name, h.Identity.Stage))
		}
	}
	return strings.Join(parts, ", ")
}

// contacts returns the members of a cluster that answer, the leader first.
func (v *view) contacts(cluster uint64) (names []string) {
	for _, name := range v.names {
		h := v.answers[name]
		if h == nil || !h.formed() || h.Identity.Cluster != cluster {
			continue
		}
		if h.Leader != nil && h.Leader.Name == name {
			names = slices.Insert(names, 0, name)
		} else {
			names = append(names, name)
		}
	}
	return names
}

// none decides for a node without an identity.
func (v *view) none(clusters []uint64) decision {
	if len(clusters) == 1 {
		if v.self.HasData {
			return refusing("the data folder has data and belongs to no cluster, but the peers do: %s; "+
				"empty the folder to join them", v.membersOf(clusters))
		}
		if d, ok := v.majority(clusters[0]); !ok {
			return d
		}
		return decision{action: choose, cluster: clusters[0]}
	}
	for _, name := range v.names {
		h := v.answers[name]
		switch {
		case h == nil || h.stage() != Prepared:
			continue
		case h.Identity.Founder == v.self.Name:
			if h.Identity.FoundedWithData && !v.self.HasData {
				return refusing("%s awaits the data of this node, with which it founded a cluster, but the data folder is empty: "+
					"restore it, or remove the folder cluster of the data folder on %s", name, name)
			}
		case v.prepares(h.Identity):
			return waiting("the founder, %s, begins the cluster", h.Identity.Founder)
		}
	}
	founder, d := v.founder()
	switch founder {
	case "":
		return d
	case v.self.Name:
		return decision{action: found}
	}
	return waiting("the founder, %s, has not given out ids yet", founder)
}

// prepares reports whether the founder of an identity may still begin its cluster.
func (v *view) prepares(i *Identity) bool {
	if i.Founder == v.self.Name {
		return v.self.Identity != nil && v.self.Identity.Cluster == i.Cluster
	}
	h, asked := v.answers[i.Founder]
	if !asked {
		return false // not among the peers any more
	}
	return h == nil || h.Identity != nil && h.Identity.Cluster == i.Cluster
}

// everyone checks that all peers answer, agree about who is to be in the cluster and belong to none.
func (v *view) everyone() (decision, bool) {
	for _, name := range v.names {
		h := v.answers[name]
		if h == nil {
			continue
		}
		if text := differences(v.self.Name, v.self.Peers, name, h.Peers); text != "" {
			return refusing("cluster-peers differ: %s", text), false
		}
	}
	if silent := v.silent(); len(silent) > 0 {
		return waiting("no answer from %s", list(silent)), false
	}
	for _, name := range v.names {
		if stage := v.answers[name].stage(); stage == Lost || stage == Joining {
			return waiting("%s was a member of a cluster and has lost its files, and no peer is a member", name), false
		}
	}
	return decision{}, true
}

// differences describes how two lists of peers differ, empty if they do not.
func differences(aName string, a []Peer, bName string, b []Peer) string {
	var parts []string
	addr := func(peers []Peer, name string) string {
		for _, p := range peers {
			if p.Name == name {
				return p.Addr
			}
		}
		return ""
	}
	for _, p := range a {
		switch other := addr(b, p.Name); other {
		case p.Addr:
		case "":
			parts = append(parts, fmt.Sprintf("%s names %s=%s, %s does not", aName, p.Name, p.Addr, bName))
		default:
			parts = append(parts, fmt.Sprintf("%s names %s=%s, %s names %s=%s", aName, p.Name, p.Addr, bName, p.Name, other))
		}
	}
	for _, p := range b {
		if addr(a, p.Name) == "" {
			parts = append(parts, fmt.Sprintf("%s names %s=%s, %s does not", bName, p.Name, p.Addr, aName))
		}
	}
	return strings.Join(parts, "; ")
}

// partitions describes how the numbers of partitions differ, empty if they do not. Nodes that begin without
// data make their own folders. Later a node gets a folder of another one, with its partitions: cursors of
// SCAN are the same at all of them.
func (v *view) partitions() string {
	for _, name := range v.names {
		if h := v.answers[name]; h.Partitions != v.self.Partitions {
			return fmt.Sprintf("%s has %d, %s has %d", v.self.Name, v.self.Partitions, name, h.Partitions)
		}
	}
	return ""
}

// founder returns who gives out ids: the one node with data, else the one with the least name. An empty name
// has the decision that follows from not all peers answering and agreeing, or from several nodes with data.
func (v *view) founder() (name string, d decision) {
	if d, ok := v.everyone(); !ok {
		return "", d
	}
	var full []string
	least := v.self.Name
	if v.self.HasData {
		full = append(full, v.self.Name)
	}
	for _, name := range v.names {
		least = min(least, name)
		if v.answers[name].HasData {
			full = append(full, name)
		}
	}
	slices.Sort(full)
	switch len(full) {
	case 0:
		if text := v.partitions(); text != "" {
			return "", refusing("partitions differ: %s; start all with the same", text)
		}
		return least, decision{}
	case 1:
		return full[0], decision{}
	}
	return "", refusing("the data folders of %s have data, and only one node of a new cluster may: empty the others", list(full))
}

// prepared decides for a node that has an id of a cluster which has not begun.
func (v *view) prepared(clusters []uint64) decision {
	own := v.self.Identity
	if len(clusters) == 1 && (clusters[0] != own.Cluster || own.Founder == v.self.Name) {
		return decision{action: drop} // another cluster has begun, or this identity is older than the cluster: join it
	}
	if own.Founder != v.self.Name {
		return v.awaitFounder()
	}
	switch {
	case own.FoundedWithData && !v.self.HasData:
		return refusing("this node began to found a cluster with its data, but the data folder is empty: " +
			"restore it, or remove its folder cluster")
	case !own.FoundedWithData && v.self.HasData:
		return decision{action: drop}
	case !samePeers(own.Members, v.self.Peers):
		return decision{action: drop} // cluster-peers was changed
	}
	founder, d := v.founder()
	switch founder {
	case "":
		return d
	case v.self.Name:
	default:
		return decision{action: drop}
	}
	for _, name := range v.names {
		h := v.answers[name]
		if h.stage() == Prepared && h.Identity.Cluster != own.Cluster && v.prepares(h.Identity) {
			return waiting("%s gives up a cluster that it prepares", h.Identity.Founder)
		}
	}
	return decision{action: prepare}
}

// awaitFounder decides for a node whose id another has given out.
func (v *view) awaitFounder() decision {
	own := v.self.Identity
	for _, name := range v.names {
		h := v.answers[name]
		if h == nil || h.Identity == nil || h.Identity.Cluster != own.Cluster || h.Identity.Stage == Prepared {
			continue
		}
		// The cluster has begun.
		if !h.formed() || len(h.Members) == 0 {
			return decision{action: become}
		}
		if m := named(h.Members, own.Name); m == nil || m.ID != own.ID {
			return decision{action: drop} // another node has taken the name
		}
		return decision{action: become}
	}
	if !v.prepares(own) {
		return decision{action: drop}
	}
	if v.answers[own.Founder] == nil {
		return waiting("no answer from %s, the founder", own.Founder)
	}
	return waiting("the founder, %s, begins the cluster when all nodes have their id", own.Founder)
}

// samePeers reports whether the members are the peers.
func samePeers(members []Member, peers []Peer) bool {
	if len(members) != len(peers) {
		return false
	}
	for _, p := range peers {
		if m := named(members, p.Name); m == nil || m.Addr != p.Addr {
			return false
		}
	}
	return true
}
