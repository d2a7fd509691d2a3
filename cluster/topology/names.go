package topology

import (
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"

	"mayfly/keyspace/record"
)

// Slots is the number of hash slots. One group has all of them.
const Slots = record.Slots

// Slot returns the hash slot of a key, as Redis Cluster computes it.
func Slot(key string) int { return record.Slot(key) }

// NodeID returns the identifier of a member in the form of Redis Cluster: 40 hexadecimal digits. It stays
// the same while the member's name does, also when it comes back without its disk.
func (v *View) NodeID(m *Member) string { return v.hash("node", m.Name) }

// ShardID returns the identifier of the one shard.
func (v *View) ShardID() string { return v.hash("shard", "") }

// hash returns 40 hexadecimal digits that depend on the cluster and a name. It names things, and hides
// nothing.
func (v *View) hash(kind, name string) string {
	sum := sha1.Sum([]byte(kind + " " + name + string(binary.BigEndian.AppendUint64(nil, v.ClusterID))))
	return hex.EncodeToString(sum[:])
}

// MemberByID returns the member with an identifier, or nil.
func (v *View) MemberByID(id string) *Member {
	for i := range v.Members {
		if v.NodeID(&v.Members[i]) == id {
			return &v.Members[i]
		}
	}
	return nil
}

// Master returns the member that clients are to take for the master: the leader or, while none is known, the
// last other one, as a replica of Redis that is cut off. Clients that took this node for the master would
// stay with it for good. If there was none, another node is as good a guess. Nil: the node knows no members
// yet.
func (v *View) Master() *Member {
	if v.Leader != nil {
		return v.Leader
	}
	if last := v.Member(v.Last); last != nil {
		return last
	}
	var best *Member
	for i := range v.Members {
		if m := &v.Members[i]; best == nil || m.guess() > best.guess() {
			best = m
		}
	}
	return best
}

// guess ranks members by how probable it is that one leads which is not known to.
func (m *Member) guess() int {
	switch {
	case m.Self:
		return 0
	case m.Client == "":
		return 1
	case !m.Active:
		return 2
	}
	return 3
}

// Replicas returns the members besides the master.
func (v *View) Replicas() []*Member {
	master := v.Master()
	if master == nil {
		return nil
	}
	var list []*Member
	for i := range v.Members {
		if m := &v.Members[i]; m != master {
			list = append(list, m)
		}
	}
	return list
}

// Up reports whether a member is this node, or was heard of lately.
func (m *Member) Up() bool { return m.Self || m.Active }

// Contact returns the time in ms since the last message of a member; -1: none yet.
func (m *Member) Contact() int64 {
	if m.LastContact < 0 {
		return -1
	}
	return m.LastContact.Milliseconds()
}

// State is ok if the node serves what a leader serves, or knows one that does, and nothing is wrong with it;
// else fail.
func (v *View) State() string {
	if v.Quorum && v.Leader != nil && v.Role.Open() && v.Cause == "" {
		return "ok"
	}
	return "fail"
}

// Silent reports whether the leader may have failed, although it is too early for an election: it has missed
// several heartbeats, of which there are ten in the time of a view's Timeout. Clients are not sent to it
// until it is heard again.
func (v *View) Silent() bool {
	return v.Leader != nil && !v.Leader.Self && v.Timeout > 0 && v.Leader.LastContact > v.Timeout*4/10
}

// OthersUsers returns how many members have other users than this node, as far as it knows.
func (v *View) OthersUsers() (n int) {
	self := v.Self()
	for i := range v.Members {
		if m := &v.Members[i]; self != nil && m.Users != "" && m.Users != self.Users {
			n++
		}
	}
	return n
}

// Offset returns the replication offset of a member as far as this node knows it; 0 if it does not.
func (v *View) Offset(m *Member) uint64 {
	if m.Self {
		return v.Applied
	}
	return m.Match
}
