package core

import (
	"cmp"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
)

// Config is what a Core starts with.
type Config struct {
	ID      uint64       // raft's id of this node, not 0
	Storage raft.Storage // the log, as disk.Log.Memory returns it
	Applied uint64       // the index of the local files; entries after it come with Ready
	State   []byte       // entry.State as of Applied; nil: no configuration is known yet
	Self    entry.Member // this node, for the begin of its sessions

	ElectionTicks int           // ticks without a leader until an election, twice that at most; default 10
	TickTime      time.Duration // between two calls of Tick; default 100 ms
	Now           time.Duration // the time of the start: no vote is given before Now + ElectionTicks x TickTime
	Fresh         bool          // the id was never in use before: it has promised nothing, and votes at once
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
	// ErrDamaged means that raft has found the log in a state that it never writes.
	ErrDamaged = errors.New("core: the raft log contradicts the cluster")
	// ErrMessage means that Step has not taken a message.
	ErrMessage = errors.New("core: message refused")
	// ErrMember is wrapped by the refusals of ProposeMember and Transfer.
	ErrMember = errors.New("member refused")
)

// Core is raft and the rules of sessions on one node. It is not safe for concurrent use.
type Core struct {
	config Config
	raft   *raft.RawNode
	err    error         // final
	now    time.Duration // of the last call that had it

	state     entry.State // as of delivered
	delivered uint64      // the last entry that Ready has returned
	applied   uint64      // as the driver says
	backlog   backlog

	role         Role // as of the last call, to notice changes
	term, leader uint64
	heard        map[uint64]time.Duration // when a message of a node arrived last
	told         told                     // of commit indexes, by leaders
	promise      time.Duration            // no vote is given before
	campaign     campaign                 // while role is Candidate
	leads        leadership               // while role is Leader
	lastRound    uint64                   // counts on over terms: answers of an old one match nothing

	barriers, lost []uint64 // for the next Ready
}

// Ready is what the driver does next. Send, Apply, Barriers and Lost wait for nothing, not for what is being
// saved either.
type Ready struct {
	Send     []*raftpb.Message
	Save     *Save         // nil: nothing to save
	Apply    []entry.Entry // committed and saved, to be applied in order. Their batches are views of the log's memory
	Barriers []uint64      // of ReadBarrier: this node was the leader when it was called
	Lost     []uint64      // of ReadBarrier: not known any more
}

// Save is what the log takes next. The driver saves in the order of the Readies, in another goroutine if it
// likes, sends After and calls Saved. After an error it saves nothing any more.
type Save struct {
	HardState *raftpb.HardState // nil: unchanged
	Entries   []*raftpb.Entry   // never change
	Snapshot  *raftpb.Snapshot  // nil, or the position of stores that a peer has sent: then the incarnation ends
	MustSync  bool              // it must be on disk before After is sent
	After     []*raftpb.Message // for other nodes

	own []*raftpb.Message // for this node's raft
}

// Join adds to a Save the one that follows it. It reports false if the two have to be saved one after the
// other.
func (s *Save) Join(next *Save) bool {
	switch {
	case s.Snapshot != nil || next.Snapshot != nil:
		return false
	case len(s.Entries) > 0 && len(next.Entries) > 0 && s.Entries[len(s.Entries)-1].GetIndex()+1 != next.Entries[0].GetIndex():
		return false
	}
	if next.HardState != nil {
		s.HardState = next.HardState
	}
	s.Entries = slices.Concat(s.Entries, next.Entries)
	s.After = slices.Concat(s.After, next.After)
	s.own = slices.Concat(s.own, next.own)
	s.MustSync = s.MustSync || next.MustSync
	return true
}

// New returns the core of a node that starts.
func New(config Config) (*Core, error) {
	config.ElectionTicks = cmp.Or(config.ElectionTicks, 10)
	config.TickTime = cmp.Or(config.TickTime, 100*time.Millisecond)
	config.MaxMessage = cmp.Or(config.MaxMessage, 1<<20)
	config.MaxInflight = cmp.Or(config.MaxInflight, 64)
	config.MaxUnapplied = cmp.Or(config.MaxUnapplied, 64<<20)
	state, err := entry.DecodeState(config.State)
	if err != nil {
		return nil, err
	}
	c := &Core{
		config:    config,
		now:       config.Now,
		state:     state,
		delivered: config.Applied,
		applied:   config.Applied,
		heard:     map[uint64]time.Duration{},
	}
	if !config.Fresh {
		c.promise = config.Now + c.electionTimeout()
	}
	if err := c.backlog.load(config.Storage, config.Applied); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	c.guard(func() {
		c.raft, err = raft.NewRawNode(&raft.Config{
			ID:                        config.ID,
			ElectionTick:              config.ElectionTicks,
			HeartbeatTick:             1,
			Storage:                   &storage{Storage: config.Storage, core: c},
			Applied:                   config.Applied,
			MaxSizePerMsg:             config.MaxMessage,
			MaxCommittedSizePerReady:  4 * config.MaxMessage,
			MaxInflightMsgs:           config.MaxInflight,
			AsyncStorageWrites:        true,
			CheckQuorum:               true,
			PreVote:                   true,
			DisableProposalForwarding: true,
			StepDownOnRemoval:         true,
			Logger:                    logger{cmp.Or[raft.Logger](config.Log, discard{})},
		})
	})
	if err := cmp.Or(c.err, err); err != nil {
		return nil, err
	}
	c.observe()
	return c, nil
}

func (c *Core) electionTimeout() time.Duration {
	return time.Duration(c.config.ElectionTicks) * c.config.TickTime
}

// guard calls raft. A panic with which raft refuses what it finds becomes the final error of the core.
func (c *Core) guard(call func()) {
	if c.err != nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			if fault, ok := p.(runtime.Error); ok {
				panic(fault)
			}
			c.err = fmt.Errorf("%w: %v", ErrDamaged, p)
		}
	}()
	call()
	if c.raft != nil {
		c.observe()
	}
}

// observe notices what the last call has made of this node. A new leader proposes the begin of its session
// before anything else.
func (c *Core) observe() {
	status := c.raft.BasicStatus()
	role := Candidate
	switch status.RaftState {
	case raft.StateFollower:
		role = Follower
	case raft.StateLeader:
		role = Leader
	}
	term := status.GetTerm()
	if c.role == Leader && (role != Leader || term != c.term) {
		c.lost = c.leads.pending(c.lost)
		c.leads = leadership{}
	}
	began := role == Leader && (c.role != Leader || term != c.term)
	c.role, c.term, c.leader = role, term, status.Lead
	if began {
		c.leads = leadership{since: c.now}
	}
	if role == Leader {
		c.leads.observe(status.LeadTransferee)
		c.proposeBegin()
	}
}

func (c *Core) proposeBegin() {
	if c.leads.begun || c.leads.transfer != 0 {
		return
	}
	c.leads.begun = c.raft.Propose(entry.AppendBegin(nil, c.term, c.config.Self)) == nil
}

// Tick is called each TickTime.
func (c *Core) Tick(now time.Duration) {
	c.now = now
	c.guard(func() {
		c.raft.Tick()
	})
	if c.role != Candidate {
		c.campaign = campaign{}
	} else if c.campaign.again(c.config.ID, c.term, c.config.ElectionTicks) {
		c.Campaign()
	}
	c.guard(func() {
		if c.leads.session != 0 {
			c.startRound(nil)
			c.reconcile()
		}
	})
}

// campaign counts what a candidate has tried.
type campaign struct{ ticks, tries int }

// again counts a tick and reports whether to ask for votes again. Raft waits for another election timeout.
// But the voters may have had a few ticks of their promise left, or the votes were split between two
// candidates who began at once: then each tries again after another number of ticks. Later tries are rarer,
// because the others are probably not there.
func (c *campaign) again(id, term uint64, most int) bool {
	hash := (id ^ term<<8 ^ uint64(c.tries)) * 0x9e3779b97f4a7c15
	c.ticks++
	if c.ticks < min((2+int(hash>>62))<<c.tries, most) {
		return false
	}
	c.ticks, c.tries = 0, min(c.tries+1, 8)
	return true
}

// Campaign starts an election now. The founder of a cluster calls it once; others would disturb.
func (c *Core) Campaign() {
	c.guard(func() { _ = c.raft.Campaign() })
}

// Step takes a message of another node. An error says why it was not taken; this node goes on.
func (c *Core) Step(m *raftpb.Message, now time.Duration) error {
	c.now = now
	if err := c.check(m); err != nil {
		return fmt.Errorf("%w: %s from %x: %w", ErrMessage, m.GetType(), m.GetFrom(), err)
	}
	c.heard[m.GetFrom()] = now
	err := c.err
	if !c.bound(m) {
		c.guard(func() { err = c.raft.Step(m) })
	}
	if m.GetFrom() == c.leader {
		c.told.take(m, now, c.electionTimeout())
	}
	return err
}

// Propose proposes a batch of the open session, encoded by [entry.AppendBatch] for it. The batch is copied. A
// nil error means only that it is on its way: its fate comes with Ready.Apply, or another session begins and
// it is void.
func (c *Core) Propose(session uint64, batch []byte) error {
	if session == 0 || session != c.leads.session {
		return ErrNotLeading
	}
	return c.propose(batch)
}

// propose appends a copy of data to the leader's log.
func (c *Core) propose(data []byte) error {
	err := ErrNotLeading
	c.guard(func() {
		if c.leads.transfer == 0 && c.raft.Propose(data) == nil {
			err = nil
		}
	})
	return cmp.Or(c.err, err)
}

// Session returns the session that is open on this node, 0 if there is none: it leads, and has applied
// the begin of the session and so the whole log before it.
func (c *Core) Session() uint64 { return c.leads.session }

// ReportUnreachable says that messages to a node are lost.
func (c *Core) ReportUnreachable(id uint64) {
	c.guard(func() { c.raft.ReportUnreachable(id) })
}

// ReportSnapshot says whether the stores for a node (MsgSnap) have arrived.
func (c *Core) ReportSnapshot(id uint64, ok bool) {
	status := raft.SnapshotFinish
	if !ok {
		status = raft.SnapshotFailure
	}
	c.guard(func() { c.raft.ReportSnapshot(id, status) })
}

// Ready returns what is to be done next, ok false if nothing is. An error is final.
func (c *Core) Ready() (r Ready, ok bool, err error) {
	c.guard(func() {
		if !c.raft.HasReady() && len(c.barriers) == 0 && len(c.lost) == 0 {
			return
		}
		ok = true
		rd := c.raft.Ready()
		r = c.convert(&rd)
	})
	if c.err != nil {
		return Ready{}, false, c.err
	}
	return r, ok, nil
}

func (c *Core) convert(rd *raft.Ready) (r Ready) {
	for _, read := range rd.ReadStates {
		c.confirm(read.RequestCtx)
	}
	for _, e := range rd.CommittedEntries {
		delivered, err := c.deliver(e)
		if err != nil {
			c.err = fmt.Errorf("raft log, entry %d: %w", e.GetIndex(), err)
			return r
		}
		r.Apply = append(r.Apply, delivered)
	}
	for _, m := range rd.Messages {
		switch m.GetType() {
		case raftpb.MsgStorageAppend:
			r.Save = c.save(rd, m)
		case raftpb.MsgStorageApply:
			for _, done := range m.GetResponses() { // the core has applied what concerns raft
				_ = c.raft.Step(done)
			}
		case raftpb.MsgTimeoutNow:
			c.leads.deposing()
			r.Send = append(r.Send, m)
		case raftpb.MsgHeartbeat:
			m.Index = new(c.raft.BasicStatus().GetCommit()) // see told
			r.Send = append(r.Send, m)
		default:
			r.Send = append(r.Send, m)
		}
	}
	r.Barriers, c.barriers = c.barriers, nil
	r.Lost, c.lost = c.lost, nil
	return r
}

// save returns what raft asks to be saved by a message to its storage.
func (c *Core) save(rd *raft.Ready, m *raftpb.Message) *Save {
	s := &Save{Entries: rd.Entries, MustSync: rd.MustSync}
	if !raft.IsEmptyHardState(rd.HardState) {
		s.HardState = rd.HardState
	}
	if !raft.IsEmptySnap(rd.Snapshot) {
		s.Snapshot, s.MustSync = rd.Snapshot, true
	}
	for _, response := range m.GetResponses() {
		if response.GetTo() == c.config.ID {
			s.own = append(s.own, response)
		} else {
			s.After = append(s.After, response)
		}
	}
	c.backlog.append(rd.Entries)
	c.leads.saved(rd.Entries)
	return s
}

// Saved says that a Save, and every one before it, is on disk.
func (c *Core) Saved(s *Save) {
	c.guard(func() {
		for _, m := range s.own {
			_ = c.raft.Step(m) // raft takes its own answers, or ignores them after a change of the term
		}
	})
}

// deliver decodes a committed entry and keeps the state of the cluster.
func (c *Core) deliver(e *raftpb.Entry) (entry.Entry, error) {
	changed := false
	var out entry.Entry
	var err error
	switch e.GetType() {
	case raftpb.EntryConfChange, raftpb.EntryConfChangeV2:
		out, err = c.deliverConf(e)
		changed = true
	default:
		out, err = entry.Decode(e.GetData())
		out.Void = out.Kind == entry.Batch && out.Session != c.state.Session
		changed = c.state.Apply(&out)
	}
	if err != nil {
		return entry.Entry{}, err
	}
	out.Index, out.Term = e.GetIndex(), e.GetTerm()
	if changed {
		out.State = c.state.Encode()
	}
	c.delivered = out.Index
	if c.role == Leader && out.Kind == entry.Begin && out.Session == c.term {
		c.leads.begin = out.Index
	}
	c.leads.delivered(out.Index)
	return out, nil
}

// Applied says that all entries up to index were applied.
func (c *Core) Applied(index uint64) {
	if index <= c.applied {
		return
	}
	c.applied = index
	c.backlog.drop(index)
	if c.role == Leader && c.leads.begin != 0 && c.applied >= c.leads.begin {
		c.leads.session = c.term
	}
}
