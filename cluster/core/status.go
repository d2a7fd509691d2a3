package core

import (
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/tracker"

	"mayfly/cluster/entry"
)

// Role is what raft takes this node for.
type Role int

// The roles.
const (
	Follower Role = iota
	Candidate
	Leader
)

func (r Role) String() string { return [...]string{"follower", "candidate", "leader"}[r] }

// Status describes a Core for people and for the driver's decisions.
type Status struct {
	Role     Role
	Term     uint64
	Leader   uint64        // id, 0: not known
	Contact  time.Duration // when the leader was heard last; of a leader: when a majority was. 0: never
	Session  uint64        // open here, 0: none
	Commit   uint64        // the highest index that this node knows to be committed; its log may end before
	Target   uint64        // what the leader had committed when contact with it began; 0: no contact yet
	Applied  uint64        // as Applied has said
	Transfer uint64        // id to which the leadership goes, 0: none
	State    entry.State   // as of the last entry that Ready has delivered
	Progress []Progress    // leader only, ascending by id, with itself
}

// Progress is what the leader knows of a node.
type Progress struct {
	ID       uint64
	Match    uint64        // index up to which its log on disk equals the leader's
	Heard    time.Duration // when a message of it arrived last; 0: never
	Learner  bool
	Snapshot bool // it waits for stores
}

// Leading returns what Status says of the leader, cheaply.
func (c *Core) Leading() (role Role, term, leader uint64) { return c.role, c.term, c.leader }

// Status returns the status at a time. It shares nothing with the core.
func (c *Core) Status(now time.Duration) Status {
	c.now = now
	s := Status{
		Role:     c.role,
		Term:     c.term,
		Leader:   c.leader,
		Contact:  c.heard[c.leader],
		Session:  c.leads.session,
		Applied:  c.applied,
		Transfer: c.leads.transfer,
		State:    c.state.Clone(),
	}
	s.Commit, s.Target = max(c.raft.BasicStatus().GetCommit(), c.told.commit), c.told.target
	if c.role != Leader {
		return s
	}
	c.raft.WithProgress(func(id uint64, typ raft.ProgressType, pr tracker.Progress) {
		p := Progress{
			ID:       id,
			Match:    pr.Match,
			Heard:    c.heard[id],
			Learner:  typ == raft.ProgressTypeLearner,
			Snapshot: pr.State == tracker.StateSnapshot,
		}
		if id == c.config.ID {
			p.Heard = now
		}
		s.Progress = append(s.Progress, p)
	})
	var heard []time.Duration
	for _, p := range s.Progress {
		if !p.Learner {
			heard = append(heard, p.Heard)
		}
	}
	slices.Sort(heard)
	if len(heard) > 0 {
		s.Contact = heard[(len(heard)-1)/2]
	}
	return s
}
