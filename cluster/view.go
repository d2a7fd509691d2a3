package cluster

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/forming"
	"mayfly/cluster/topology"
	"mayfly/expiry/clock"
)

// View returns the cluster as this node sees it.
func (n *Node) View() *topology.View { return n.view.Load() }

// refresh requests a new view. It never blocks.
func (n *Node) refresh() {
	select {
	case n.refreshC <- struct{}{}:
	default:
	}
}

// set sets the role and why the keyspace is not served, while no incarnation runs.
func (n *Node) set(role topology.Role, cause string) {
	n.mu.Lock()
	n.role, n.cause = role, cause
	n.mu.Unlock()
	n.refresh()
}

func (n *Node) roleNow() topology.Role {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.role
}

// watch makes new views until the node is closed.
func (n *Node) watch() {
	ticker := time.NewTicker(viewInterval)
	defer ticker.Stop()
	for {
		select {
		case <-n.ctx.Done():
			return
		case <-ticker.C:
		case <-n.refreshC:
		}
		if inc := n.running.Load(); inc != nil {
			inc.connect()
		}
		n.show()
	}
}

// show makes a new view, and tells if the leader or this node's role is another.
func (n *Node) show() {
	n.showing.Lock()
	defer n.showing.Unlock()
	before, now := n.view.Load(), n.makeView()
	n.view.Store(now)
	if now.Leader != nil && !now.Leader.Self {
		n.leader.Store(now.Leader)
	}
	n.mu.Lock()
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	if before.Role != now.Role || leaderID(before) != leaderID(now) {
		n.options.Log.Info().Stringer("role", now.Role).Str("leader", leaderName(now)).Uint64("term", now.Term).Msg("the cluster has changed")
		n.options.Changed(now)
	}
}

func leaderID(v *topology.View) uint64 {
	if v.Leader == nil {
		return 0
	}
	return v.Leader.ID
}

func leaderName(v *topology.View) string {
	if v.Leader == nil {
		return ""
	}
	return v.Leader.Name
}

// makeView returns the view of this moment.
func (n *Node) makeView() *topology.View {
	v := &topology.View{Name: n.options.MasterName, Timeout: n.options.NodeTimeout}
	n.mu.Lock()
	v.Role, v.Cause = n.role, n.cause
	n.mu.Unlock()
	leader := n.leader.Load()
	if leader != nil {
		v.Last = leader.Name
	}
	if inc := n.running.Load(); inc != nil {
		inc.describe(v)
		n.describeUsers(v)
		return v
	}
	identity := n.former.Identity()
	if identity != nil {
		v.ClusterID = identity.Cluster
	}
	if !n.describeLearned(v) {
		n.describePeers(v, identity)
	}
	if leader != nil && v.Role == topology.Removed {
		v.Members = slices.DeleteFunc(v.Members, func(m topology.Member) bool { return m.Name == leader.Name })
		v.Members = append(v.Members, *leader)
		v.Quorum = true // clients are sent to it
	}
	slices.SortFunc(v.Members, func(a, b topology.Member) int { return cmp.Compare(a.Name, b.Name) })
	for i := range v.Members {
		if v.Members[i].Leader {
			v.Leader = &v.Members[i]
		}
	}
	return v
}

// describePeers fills the view of a node that knows nothing of its cluster but its identity with its peers.
func (n *Node) describePeers(v *topology.View, identity *forming.Identity) {
	clients := map[string]string{}
	if identity != nil {
		for _, m := range identity.Members {
			clients[m.Name] = m.Client
		}
	}
	for _, p := range n.options.Peers {
		m := topology.Member{Name: p.Name, Addr: p.Addr, Client: clients[p.Name], Self: p.Name == n.options.Name, LastContact: -1, Lag: -1}
		if m.Self {
			m.Client, m.Active, m.LastContact = n.options.ClientAddr, true, 0
		}
		v.Members = append(v.Members, m)
	}
}

// describe fills a view with the state of the incarnation.
func (inc *incarnation) describe(v *topology.View) {
	n, now := inc.node, clock.Monotonic()
	s, leads := inc.leading()
	v.ClusterID, v.Term, v.Applied, v.Commit = inc.identity.Cluster, s.Term, inc.applier.applied.Load(), s.Commit
	v.Index = inc.lastIndex()
	v.Moment = inc.ks.Position().Moment
	v.LogBytes = inc.loop.bytes.Load()
	v.NoHeir = inc.noHeir.Load()
	if s.Role != core.Leader {
		clear(inc.paces)
	}
	leader := s.Leader
	v.Quorum = leader != 0 && now-s.Contact < 2*n.options.NodeTimeout
	v.Role, v.Cause = topology.Follower, ""
	switch {
	case leads:
		v.Role = topology.Leader
	case v.Moment == 0: // it has nothing of the leader yet, not even the databases
		v.Role, v.Cause = topology.Loading, cmp.Or(inc.waitsForRoom(v.Applied), "the node waits for what the leader has")
	case leader == inc.identity.ID || leader == 0: // it begins to lead, or knows no leader
		v.Role, leader = topology.Candidate, 0
	}
	for _, m := range s.State.Members {
		member := topology.Member{Name: m.Name, ID: m.ID, Addr: m.Addr, Client: m.Client, Voter: s.State.Voter(m.ID),
			Leader: m.ID == leader, Self: m.ID == inc.identity.ID}
		inc.describeMember(&member, s, v, now)
		v.Members = append(v.Members, member)
	}
	for _, m := range s.State.Announced {
		v.Announced = append(v.Announced, topology.Member{Name: m.Name, Addr: m.Addr, LastContact: -1})
	}
	for i := range v.Members {
		if v.Members[i].Leader && v.Members[i].Client != "" { // it tells its address when it begins to lead
			v.Leader = &v.Members[i]
		}
	}
	switch {
	case v.Cause != "":
	case inc.hangs():
		v.Cause = "a write to the disk hangs"
	case v.Role == topology.Candidate && s.Leader == inc.identity.ID:
		v.Cause = "this node is elected and begins to lead"
	case v.Role == topology.Candidate:
		v.Cause = noLeader(v.Members)
	case v.Role == topology.Follower:
		v.Cause = cmp.Or(inc.waitsForRoom(v.Applied), catchesUp(v.Applied, s.Target))
	}
}

// catchesUp returns what a follower lacks of what was committed when its contact with a leader began; empty
// if it lacks nothing.
func catchesUp(applied, target uint64) string {
	switch {
	case target == 0: // a leader of an older program tells it with its next entries
		return "this node does not know yet what the leader has committed"
	case applied < target:
		return fmt.Sprintf("this node catches up: it lacks %d entries that were committed before", target-applied)
	}
	return ""
}

// waitsForRoom returns for which room on its disk a node waits that cannot follow; empty if it does not.
func (inc *incarnation) waitsForRoom(applied uint64) string {
	switch refused := inc.refused.Load(); {
	case refused != nil && applied < refused.index:
		return refused.why
	case inc.applier.full.Load():
		return "the disk is full: this node waits for room to apply the leader's changes"
	}
	return ""
}

// noLeader returns why a node knows no leader.
func noLeader(members []topology.Member) string {
	var silent []string
	voters := 0
	for i := range members {
		m := &members[i]
		if !m.Voter {
			continue
		}
		voters++
		if !m.Up() {
			silent = append(silent, fmt.Sprintf("%s at %s", m.Name, m.Addr))
		}
	}
	if reached, majority := voters-len(silent), voters/2+1; reached < majority {
		return fmt.Sprintf("no leader: this node reaches %d of %d voters, itself included, and %d are a majority; no contact with %s",
			reached, voters, majority, strings.Join(silent, ", "))
	}
	return "no leader yet: the nodes elect one"
}

// lastIndex returns the index of the last entry in the log.
func (inc *incarnation) lastIndex() uint64 {
	last, err := inc.disk.Memory().LastIndex()
	if err != nil {
		return 0 // the log in memory has no errors
	}
	return last
}

func (inc *incarnation) describeMember(m *topology.Member, s *core.Status, v *topology.View, now time.Duration) {
	m.Lag = -1
	if m.Self {
		m.Active, m.Match = true, v.Index
		if v.Quorum && (s.Target != 0 || s.Role == core.Leader) {
			m.Lag = int64(s.Commit) - int64(min(s.Commit, v.Applied))
		}
		return
	}
	m.LastContact = -1
	if heard := inc.transport.LastContact(m.ID); heard != 0 {
		m.LastContact = max(now-heard, 0)
	}
	m.Active = inc.transport.Active(m.ID) || m.LastContact >= 0 && m.LastContact < inc.node.options.NodeTimeout
	for _, p := range s.Progress {
		if p.ID == m.ID {
			m.Match, m.Lag = p.Match, int64(v.Index)-int64(min(v.Index, p.Match))
			first, err := inc.disk.Memory().FirstIndex()
			m.Stores = p.Snapshot || err == nil && p.Match+1 < first
			if inc.paces[m.ID] == nil {
				inc.paces[m.ID] = &pace{at: now}
			}
			m.Behind = inc.paces[m.ID].behind(p.Match, v.Index, now)
		}
	}
}

// pace tells how long ago a node had all.
type pace struct {
	last    uint64        // index of the leader's last entry
	at, had time.Duration // when last was looked up; when it was that the node had the last entry of then
}

// behind returns how long ago a node had all, as its log reaches match now.
func (p *pace) behind(match, last uint64, now time.Duration) time.Duration {
	if match >= p.last {
		p.had, p.last, p.at = p.at, last, now
	}
	return now - p.had
}

// await waits until a view satisfies a condition. The error is that of the context, or of a node that is
// closed.
func (n *Node) await(ctx context.Context, done func(*topology.View) bool) error {
	for {
		n.mu.Lock()
		changed := n.changed
		n.mu.Unlock()
		if done(n.View()) {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		case <-n.ctx.Done():
			return n.ctx.Err()
		}
	}
}

// hosts returns the hosts of the cluster's nodes, as far as this node knows them.
func (n *Node) hosts() []string {
	var hosts []string
	add := func(addr string) {
		if host, _, err := net.SplitHostPort(addr); err == nil && !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	for _, p := range n.options.Peers {
		add(p.Addr)
	}
	if inc := n.running.Load(); inc != nil {
		state := &inc.loop.status.Load().State
		for _, m := range append(slices.Clone(state.Members), state.Announced...) {
			add(m.Addr)
		}
	}
	return hosts
}
