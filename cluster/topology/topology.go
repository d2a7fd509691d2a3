package topology

import (
	"errors"
	"strings"
	"time"
)

// Role is what a node does in its cluster.
type Role int

// The roles. Only Follower and Leader serve the keyspace.
const (
	Follower  Role = iota // applies what the leader commits
	Leader                // serves reads and writes
	Candidate             // asks for votes, or knows no leader
	Loading               // opens its files, or receives those of another node
	Forming               // waits for the other nodes of a new cluster
	Removed               // was removed from the cluster
	Failed                // cannot go on: see View.Cause
)

var roleNames = [...]string{"follower", "leader", "candidate", "loading", "forming", "removed", "failed"}

func (r Role) String() string {
	if r < 0 || int(r) >= len(roleNames) {
		return "unknown"
	}
	return roleNames[r]
}

// Open reports whether the node's keyspace is open, so that it can serve stale reads.
func (r Role) Open() bool { return r == Follower || r == Leader || r == Candidate }

// Member is a node of the cluster.
type Member struct {
	Name   string
	ID     uint64 // of raft; a node that lost its disk comes back with another one
	Addr   string // for the other nodes, host:port
	Client string // for clients, host:port
	Voter  bool   // false: a learner, which catches up
	Leader bool
	Self   bool

	Match       uint64        // the last raft index that the member is known to have on disk; known to the leader only
	Lag         int64         // entries behind the leader; known to it, and to each node in contact with it of itself. Negative: not known
	Behind      time.Duration // since the member had all that the leader had then; known to the leader only
	Stores      bool          // the leader's log does not reach back to what the member has: it needs the stores; known to the leader only
	LastContact time.Duration // since the last message of the member to this node; negative: none yet
	Active      bool          // this node has heard of the member within cluster-node-timeout
	Users       string        // a digest of the member's users, for nodes only; empty: not known
}

// Split returns host and port of the address for clients, each as it is written. The port is "0" if there is
// none.
func (m *Member) Split() (host, port string) {
	i := strings.LastIndexByte(m.Client, ':')
	if i < 0 {
		return m.Client, "0"
	}
	return strings.TrimSuffix(strings.TrimPrefix(m.Client[:i], "["), "]"), m.Client[i+1:]
}

// Client is a client of one node whose commands another one runs.
type Client struct {
	Addr       string // of the client
	LAddr      string // of the node to which it is connected
	User       string // which that node has authenticated
	Restricted bool   // the user may not do everything there
}

// ErrKnowsNoUsers is the error for a restricted client of a node that would let it do everything.
var ErrKnowsNoUsers = errors.New("the node knows no users")

// View is the cluster as one node sees it at one moment. Nothing of it may be changed.
type View struct {
	ClusterID uint64
	Name      string // of the master, for Sentinel clients
	Role      Role   // of this node
	Term      uint64
	Index     uint64 // of the last entry in this node's log
	Applied   uint64
	Commit    uint64

	Leader  *Member  // one of Members; nil: none is known
	Last    string   // the name of the last other node that was known to lead; empty: none was
	Members []Member // by ascending name

	Announced []Member // nodes that may join; only Name and Addr are known

	NoHeir bool   // the disk of this node is full, and no other node could lead instead
	Quorum bool   // this node reaches a majority, or hears from a leader
	Cause  string // why the keyspace is not served, or not as it should be; empty if all is well

	Timeout  time.Duration // cluster-node-timeout: without a word of the leader for this time the others elect a new one
	Moment   int64         // ms; the time of what this node has applied
	LogBytes int64         // held in the raft log
}

// Self returns this node's member, or nil if it is none.
func (v *View) Self() *Member {
	for i := range v.Members {
		if v.Members[i].Self {
			return &v.Members[i]
		}
	}
	return nil
}

// Member returns the member with a name, or nil.
func (v *View) Member(name string) *Member {
	for i := range v.Members {
		if v.Members[i].Name == name {
			return &v.Members[i]
		}
	}
	return nil
}

// Voters returns the number of members that vote.
func (v *View) Voters() (n int) {
	for i := range v.Members {
		if v.Members[i].Voter {
			n++
		}
	}
	return n
}

// Leads reports whether this node is the leader and serves.
func (v *View) Leads() bool { return v.Role == Leader }
