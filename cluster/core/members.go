package core

import (
	"errors"
	"fmt"
	"slices"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"
	"go.etcd.io/raft/v3/tracker"
	"google.golang.org/protobuf/proto"

	"mayfly/cluster/entry"
)

// ProposeMember proposes a change of the members. The leader then changes raft's configuration step by step:
// what was replaced or leaves goes, then a new id comes as learner and votes once it has caught up. A leader
// that leaves transfers first.
func (c *Core) ProposeMember(op entry.Op, m entry.Member) error {
	if c.leads.session == 0 {
		return ErrNotLeading
	}
	if err := c.refusal(op, m); err != nil {
		return fmt.Errorf("%w: %w", ErrMember, err)
	}
	return c.propose(entry.AppendChange(nil, op, m))
}

func (c *Core) refusal(op entry.Op, m entry.Member) error {
	known := c.state.Named(m.Name)
	switch {
	case m.Name == "":
		return errors.New("a member needs a name")
	case op == entry.Announce:
		if known != nil && !known.Leaving {
			return fmt.Errorf("%s is a member already", m.Name)
		}
		return c.room(m)
	case op == entry.Join:
		switch {
		case m.ID == 0:
			return fmt.Errorf("%s needs an id", m.Name)
		case !c.state.Expected(m.Name):
			return fmt.Errorf("%s is no member and was not announced", m.Name)
		}
		if other := c.state.WithID(m.ID); other != nil && other.Name != m.Name {
			return fmt.Errorf("the id of %s is that of %s", m.Name, other.Name)
		}
		if c.state.Left(m.ID) || known != nil && known.Leaving && known.ID == m.ID {
			return fmt.Errorf("%s was removed with this id: it needs an empty data folder", m.Name)
		}
		if known != nil && known.ID != m.ID && c.maybeActive(known.ID) {
			return fmt.Errorf("%s is connected with another id", m.Name)
		}
		return m.Check()
	case op == entry.Leave:
		if known == nil && !c.state.Expected(m.Name) {
			return fmt.Errorf("%s is no member", m.Name)
		}
		if known != nil && c.state.Voter(known.ID) {
			return c.needed(known.ID)
		}
	default:
		return fmt.Errorf("%s is no change", op)
	}
	return nil
}

// room returns why a node cannot be announced. Every node keeps the state with it, and each change of the
// state is in the log as a whole.
func (c *Core) room(m entry.Member) error {
	if err := m.Check(); err != nil {
		return err
	}
	all := slices.Concat(c.state.Members, c.state.Announced)
	others := slices.DeleteFunc(all, func(other entry.Member) bool { return other.Name == m.Name })
	if len(others) >= entry.MostMembers {
		return fmt.Errorf("%d nodes are members or announced, no more are possible", len(others))
	}
	for _, other := range others {
		if other.Addr == m.Addr && !other.Leaving {
			return fmt.Errorf("the address %s is that of %s", m.Addr, other.Name)
		}
	}
	return nil
}

// needed returns why a voter must stay: without it, the voters who are connected were no majority of those
// who remain.
func (c *Core) needed(id uint64) error {
	rest, active := 0, 0
	for _, voter := range c.state.Voters {
		m := c.state.WithID(voter)
		if voter == id || m == nil || m.Leaving {
			continue
		}
		rest++
		if c.active(voter) {
			active++
		}
	}
	if active < rest/2+1 {
		return fmt.Errorf("without %s %d of %d voters were connected, no majority", c.name(id), active, rest)
	}
	return nil
}

// active reports whether a node was heard within the last election timeout.
func (c *Core) active(id uint64) bool {
	heard, ok := c.heard[id]
	return id == c.config.ID || ok && c.now-heard < c.electionTimeout()
}

// maybeActive is active for a leader who has not led long enough to have heard everyone.
func (c *Core) maybeActive(id uint64) bool {
	return c.active(id) || c.now-c.leads.since < c.electionTimeout()
}

func (c *Core) name(id uint64) string {
	if m := c.state.WithID(id); m != nil {
		return m.Name
	}
	return fmt.Sprintf("node %x", id)
}

// successor returns the voter that follows this leader best: connected, staying, with the longest log; 0:
// none.
func (c *Core) successor() (best uint64) {
	match := uint64(0)
	c.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		m := c.state.WithID(id)
		if id == c.config.ID || typ == raft.ProgressTypeLearner || m == nil || m.Leaving || !c.active(id) {
			return
		}
		if best == 0 || pr.Match > match {
			best, match = id, pr.Match
		}
	})
	return best
}

// reconcile proposes the next change of the configuration that brings it nearer to the members.
func (c *Core) reconcile() {
	if c.leads.confPending || c.leads.transfer != 0 {
		return
	}
	for _, id := range slices.Concat(c.state.Learners, c.state.Voters) {
		m := c.state.WithID(id)
		if m != nil && !m.Leaving || id == c.config.ID || c.state.Voter(id) && c.needed(id) != nil {
			continue
		}
		if m == nil {
			m = &entry.Member{ID: id}
		}
		c.proposeConf(raftpb.ConfChangeRemoveNode, *m)
		return
	}
	for _, m := range c.state.Members {
		if !m.Leaving && !c.state.Voter(m.ID) && !c.state.Learner(m.ID) {
			c.proposeConf(raftpb.ConfChangeAddLearnerNode, m)
			return
		}
	}
	for _, id := range c.state.Learners {
		if c.caughtUp(id) {
			c.proposeConf(raftpb.ConfChangeAddNode, *c.state.WithID(id))
			return
		}
	}
	if self := c.state.WithID(c.config.ID); self == nil || self.Leaving {
		if to := c.successor(); to != 0 {
			c.leads.lease = 0
			c.raft.TransferLeader(to)
		}
	}
}

// caughtUp reports whether a learner is connected and has all that is committed.
func (c *Core) caughtUp(id uint64) (ok bool) {
	c.raft.WithProgress(func(other uint64, _ raft.ProgressType, pr tracker.Progress) {
		if other == id {
			ok = c.active(id) && c.state.WithID(id) != nil && pr.State == tracker.StateReplicate && pr.Match >= c.delivered
		}
	})
	return ok
}

func (c *Core) proposeConf(typ raftpb.ConfChangeType, m entry.Member) {
	cc := &raftpb.ConfChange{Type: typ.Enum(), NodeId: &m.ID, Context: entry.AppendConf(nil, m)}
	if c.raft.ProposeConfChange(cc) == nil {
		c.leads.confPending = true
	}
}

// deliverConf applies a committed change of the configuration. A lease of the old one ends: its majority need
// not be the new one's.
func (c *Core) deliverConf(e *raftpb.Entry) (entry.Entry, error) {
	var cc raftpb.ConfChange
	if e.GetType() != raftpb.EntryConfChange {
		return entry.Entry{}, fmt.Errorf("%w: change of %s", entry.ErrVersion, e.GetType())
	}
	if err := proto.Unmarshal(e.GetData(), &cc); err != nil {
		return entry.Entry{}, fmt.Errorf("%w: %w", entry.ErrDamaged, err)
	}
	out, err := entry.Decode(cc.GetContext())
	if err != nil {
		return entry.Entry{}, err
	}
	cs := c.raft.ApplyConfChange(&cc)
	removed := uint64(0)
	if cc.GetType() == raftpb.ConfChangeRemoveNode {
		removed = cc.GetNodeId()
	}
	c.state.Configure(cs.GetVoters(), cs.GetLearners(), removed)
	c.leads.configuration++
	c.leads.lease = 0
	return out, nil
}
