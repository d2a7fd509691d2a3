package entry

import (
	"cmp"
	"fmt"
	"slices"
)

// Member is a node as the cluster knows it.
type Member struct {
	ID      uint64 // raft's, one for each life of a disk
	Name    string // unique in the cluster
	Addr    string // host:port for the other nodes
	Client  string // host:port for clients; empty: not known yet
	Leaving bool   // to be removed from the configuration
}

// State is the cluster as of an entry. Voters and Learners are raft's configuration, Members what it is to
// become: the leader changes the configuration one id at a time until they agree.
type State struct {
	Session   uint64   // the last that has begun; 0: none
	Leader    uint64   // the id of the node whose session it is
	Members   []Member // ascending by name, which is unique
	Announced []Member // likewise; their ids are 0
	Voters    []uint64 // ascending
	Learners  []uint64 // ascending
	Removed   []uint64 // ascending; ids that were in the configuration, and never come back
}

// FirstState returns the state of a cluster that begins with these members, all of them voters.
func FirstState(members []Member) State {
	s := State{Members: slices.Clone(members)}
	slices.SortFunc(s.Members, byName)
	for _, m := range s.Members {
		s.Voters = insertID(s.Voters, m.ID)
	}
	return s
}

// Encode returns the state as bytes; equal states have equal bytes.
func (s State) Encode() []byte {
	w := writer{[]byte{Version}}
	w.uint(s.Session)
	w.uint(s.Leader)
	w.members(s.Members)
	w.members(s.Announced)
	w.ids(s.Voters)
	w.ids(s.Learners)
	w.ids(s.Removed)
	return w.buf
}

// DecodeState returns the state that data holds. Empty data is the zero State: a node that does not belong to
// a configuration yet.
func DecodeState(data []byte) (s State, err error) {
	if len(data) == 0 {
		return State{}, nil
	}
	r := reader{buf: data}
	if v := r.byte(); v != Version {
		return State{}, fmt.Errorf("%w %d of a state; this program knows %d", ErrVersion, v, Version)
	}
	s = State{Session: r.uint(), Leader: r.uint(), Members: r.members(), Announced: r.members(), Voters: r.ids(), Learners: r.ids(), Removed: r.ids()}
	if err := r.end(); err != nil {
		return State{}, fmt.Errorf("%w: state of %d bytes", err, len(data))
	}
	return s, nil
}

// Clone returns a copy that shares nothing with s.
func (s State) Clone() State {
	c := s
	c.Members = slices.Clone(s.Members)
	c.Announced = slices.Clone(s.Announced)
	c.Voters = slices.Clone(s.Voters)
	c.Learners = slices.Clone(s.Learners)
	c.Removed = slices.Clone(s.Removed)
	return c
}

// Named returns the member of a name, nil if there is none.
func (s State) Named(name string) *Member {
	if i, ok := find(s.Members, name); ok {
		return &s.Members[i]
	}
	return nil
}

// WithID returns the member with an id, nil if there is none.
func (s State) WithID(id uint64) *Member {
	for i := range s.Members {
		if s.Members[i].ID == id {
			return &s.Members[i]
		}
	}
	return nil
}

// Expected reports whether a node of the name may join: it is a member that does not leave, or was announced.
func (s State) Expected(name string) bool {
	_, announced := find(s.Announced, name)
	m := s.Named(name)
	return announced || m != nil && !m.Leaving
}

// Voter reports whether the node with the id votes.
func (s State) Voter(id uint64) bool { return slices.Contains(s.Voters, id) }

// Learner reports whether the node with the id gets the log but does not vote.
func (s State) Learner(id uint64) bool { return slices.Contains(s.Learners, id) }

// Left reports whether the id was in the configuration once and was removed.
func (s State) Left(id uint64) bool {
	_, left := slices.BinarySearch(s.Removed, id)
	return left
}

// Apply changes the state as a Begin or a Change says, and reports whether it is another then.
func (s *State) Apply(e *Entry) bool {
	switch e.Kind {
	case Begin:
		s.Session, s.Leader = e.Session, e.Member.ID
		if m := s.WithID(e.Member.ID); m != nil {
			m.Addr, m.Client = cmp.Or(e.Member.Addr, m.Addr), cmp.Or(e.Member.Client, m.Client)
		}
		return true
	case Change:
		return s.change(e.Op, e.Member)
	}
	return false
}

func (s *State) change(op Op, m Member) bool {
	switch op {
	case Announce:
		if other := s.Named(m.Name); other != nil && !other.Leaving {
			return false
		}
		put(&s.Announced, Member{Name: m.Name, Addr: m.Addr})
		return true
	case Join:
		if !s.Expected(m.Name) {
			return false // its announcement was withdrawn before this entry
		}
		if other := s.WithID(m.ID); m.ID == 0 || s.Left(m.ID) || other != nil && (other.Name != m.Name || other.Leaving) {
			return false
		}
		m.Leaving = false
		put(&s.Members, m)
		drop(&s.Announced, m.Name)
		return true
	case Leave:
		dropped := drop(&s.Announced, m.Name)
		member := s.Named(m.Name)
		switch {
		case member == nil || member.Leaving || m.ID != 0 && m.ID != member.ID:
			return dropped
		case !s.Voter(member.ID) && !s.Learner(member.ID):
			drop(&s.Members, m.Name)
			return true
		}
		member.Leaving = true
		return true
	}
	return false
}

// Configure takes over raft's configuration, from which an id was removed unless it is 0. The member that has
// left is a member no longer.
func (s *State) Configure(voters, learners []uint64, removed uint64) {
	s.Voters, s.Learners = sortedIDs(voters), sortedIDs(learners)
	if removed != 0 {
		s.Removed = insertID(s.Removed, removed)
	}
	if m := s.WithID(removed); m != nil && m.Leaving {
		drop(&s.Members, m.Name)
	}
}

func byName(a, b Member) int { return cmp.Compare(a.Name, b.Name) }

func find(members []Member, name string) (int, bool) {
	return slices.BinarySearchFunc(members, Member{Name: name}, byName)
}

func put(members *[]Member, m Member) {
	i, ok := find(*members, m.Name)
	if ok {
		(*members)[i] = m
	} else {
		*members = slices.Insert(*members, i, m)
	}
}

func drop(members *[]Member, name string) bool {
	i, ok := find(*members, name)
	if ok {
		*members = slices.Delete(*members, i, i+1)
	}
	return ok
}

func insertID(ids []uint64, id uint64) []uint64 {
	i, ok := slices.BinarySearch(ids, id)
	if ok {
		return ids
	}
	return slices.Insert(slices.Clone(ids), i, id)
}

func sortedIDs(ids []uint64) []uint64 {
	if len(ids) == 0 {
		return nil
	}
	return slices.Sorted(slices.Values(ids))
}
