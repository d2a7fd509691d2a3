package forming

// FileName is the identity's file in DIR/cluster.
const FileName = "identity.json"

// Stage is how far a node has come on its way into a cluster.
type Stage string

// The stages. A node takes part in raft at Formed only.
const (
	Prepared Stage = "prepared" // has its id from the founder; the cluster has not begun
	Joining  Stage = "joining"  // has chosen its id; the leader has not agreed yet
	Formed   Stage = "formed"   // is a member
	Lost     Stage = "lost"     // was a member and has lost its files; ID is 0
)

// Identity is who a node is, for one life of its disk.
type Identity struct {
	Cluster uint64
	ID      uint64
	Name    string
	Stage   Stage
	// Founder and Members are those that the cluster began with, if this node was there.
	Founder string
	// FoundedWithData says that the founder's folder had data at that time: only the founder has a configuration at first, the
	// others begin with an empty log and get its stores. Without, all begin with raft's snapshot at {1, 1}.
	FoundedWithData bool
	// Members are the first members at the founding. After a join: those whom the leader named, this node included.
	Members []Member
	Joined  bool // by join: begin with an empty log and no configuration
}

// Member is a node of a cluster.
type Member struct {
	Name   string `json:"name"`
	ID     uint64 `json:"id"`
	Addr   string `json:"addr"`
	Client string `json:"client,omitempty"`
}

// Read returns the identity in DIR/cluster, nil if there is none. A *DamageError is the error for a damaged one.
func Read(clusterDir string) (*Identity, error) { return nil, nil }
