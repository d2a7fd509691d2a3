package core

import (
	"errors"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
)

// Config is what a Core starts with.
type Config struct {
	ID      uint64       // raft's id of this node, not 0
	Storage raft.Storage // the log, as disk.Open returns it
	Applied uint64       // the index of the local files; entries after it come with Ready
	State   []byte       // entry.State as of Applied; nil: no configuration is known yet
	Self    entry.Member // this node, for the begin of its sessions

	ElectionTicks int           // ticks without a leader until an election, twice that at most; default 10
	TickTime      time.Duration // between two calls of Tick; default 100 ms
	Now           time.Duration // the time of the start: no vote is given before Now + ElectionTicks x TickTime
	NoLeases      bool          // cluster-read-index: LeaseUntil is always 0

	MaxMessage   uint64 // bytes of entries in one message; default 1 MB. A larger entry goes alone
	MaxInflight  int    // messages with entries on their way to a node; default 64
	MaxUnapplied uint64 // bytes of entries that are not applied: a follower takes no more; default 64 MB

	Log raft.Logger // nil: discarded
}

// Errors of Core. Errors of Ready end the incarnation.
var (
	// ErrNotLeading means that this node has no open session of that number, or that a transfer is under way.
	ErrNotLeading = errors.New("core: this node does not lead")
	// ErrDamaged means that raft has found the log to be in a state that it never writes.
	ErrDamaged = errors.New("core: the raft log contradicts the cluster")
	// ErrMember is wrapped by the refusals of ProposeMember.
	ErrMember = errors.New("member refused")
)

// Core is raft and the rules of sessions on one node. It is not safe for concurrent use.
type Core struct {
	config Config
}

// Ready is what the driver does next, in the order of the fields; then it calls Advance.
type Ready struct {
	Send      []*raftpb.Message // before or while saving
	HardState *raftpb.HardState // nil: unchanged
	Entries   []*raftpb.Entry   // to save in the log
	Snapshot  *raftpb.Snapshot  // nil, or the position of stores that a peer has sent: save it, then end the incarnation
	MustSync  bool              // what is saved must be on disk before SendAfter
	SendAfter []*raftpb.Message // after saving
	Apply     []entry.Entry     // committed, to be applied in order. Their batches are views of the log's memory
	Barriers  []uint64          // of ReadBarrier: this node was the leader when it was called
	Lost      []uint64          // of ReadBarrier: not known any more
}

// New returns the core of a node that starts.
func New(config Config) (*Core, error) { return &Core{config: config}, nil }

// Tick is called each TickTime.
func (c *Core) Tick(now time.Duration) {}

// Step takes a message of another node. An error says why the message was not taken; it is not an error of this node.
func (c *Core) Step(m *raftpb.Message, now time.Duration) error { return nil }

// Session returns the session that is open on this node, 0 if there is none: it leads, and has applied
// the begin of the session and so the whole log before it.
func (c *Core) Session() uint64 { return 0 }

// Propose proposes a batch of the open session. The batch is copied. A nil error means only that it is on its way:
// its fate comes with Ready.Apply, or another session begins and it is void.
func (c *Core) Propose(session, lsn uint64, moment int64, batch []byte) error { return ErrNotLeading }

// ProposeMember proposes a change of the members. The leader then changes raft's configuration step by step:
// what was replaced or leaves goes, then a new id comes as learner and votes once it has caught up. A leader that
// leaves transfers first.
func (c *Core) ProposeMember(op entry.Op, m entry.Member) error { return ErrNotLeading }

// Transfer starts to hand the leadership to a voter, 0 for the one with the longest log. The lease has ended when
// Transfer returns: publish LeaseUntil before the next Ready is sent.
func (c *Core) Transfer(to uint64, now time.Duration) error { return ErrNotLeading }

// ReportUnreachable says that messages to a node are lost.
func (c *Core) ReportUnreachable(id uint64) {}

// ReportSnapshot says whether the stores for a node (MsgSnap) have arrived.
func (c *Core) ReportSnapshot(id uint64, ok bool) {}

// ReadBarrier asks a majority whether this node still leads. The answer comes with Ready under the number ctx.
func (c *Core) ReadBarrier(ctx uint64, now time.Duration) error { return ErrNotLeading }

// Ready returns what is to be done next, ok false if nothing is. An error is final.
func (c *Core) Ready() (r Ready, ok bool, err error) { return Ready{}, false, nil }

// Advance says that the last Ready was saved and sent. Its entries may still be under way to the applier.
func (c *Core) Advance() {}

// Applied says that all entries up to index were applied.
func (c *Core) Applied(index uint64) {}

// LeaseUntil returns the time before which no other node can lead, 0 if nothing is promised. A read that was made
// before the lease was looked up is linearizable if the clock is before it: load LeaseUntil first, then read the clock.
func (c *Core) LeaseUntil() time.Duration { return 0 }

// Role is what raft takes this node for.
type Role int

// The roles.
const (
	Follower Role = iota
	Candidate
	Leader
)

// Status describes a Core for people and for the driver's decisions.
type Status struct {
	Role     Role
	Term     uint64
	Leader   uint64        // id, 0: not known
	Contact  time.Duration // when a leader was heard last; a leader: when a majority was
	Session  uint64        // open here, 0: none
	Last     uint64        // index of the last entry of the log
	Commit   uint64
	Applied  uint64 // as Applied has said
	Transfer uint64 // id to which the leadership goes, 0: none
	Lease    time.Duration
	State    entry.State // as of the last entry that Ready has delivered
	Progress []Progress  // leader only, ascending by id, with itself
}

// Progress is what the leader knows of a node.
type Progress struct {
	ID       uint64
	Match    uint64        // index up to which its log on disk equals the leader's
	Heard    time.Duration // when a message of it arrived last; 0: never
	Learner  bool
	Snapshot bool // it waits for stores
}

// Status returns the status at a time.
func (c *Core) Status(now time.Duration) Status { return Status{} }
