package core

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.etcd.io/raft/v3"
	"go.etcd.io/raft/v3/raftpb"

	"mayfly/cluster/entry"
	"mayfly/test/drill"
)

const tick = 100 * time.Millisecond

// node is a core with a log in memory and an applier that keeps up.
type node struct {
	*Core
	log     *raft.MemoryStorage
	applied []string
	states  int
	err     error
	stalled bool // the disk: nothing is saved
	unsaved []*Save
}

// save saves all that waits and returns what is sent then.
func (n *node) save() (messages []*raftpb.Message) {
	for _, s := range n.unsaved {
		if s.HardState != nil {
			n.log.SetHardState(s.HardState)
		}
		n.log.Append(s.Entries)
		messages = append(messages, s.After...)
		n.Saved(s)
	}
	n.unsaved = nil
	return messages
}

// net connects nodes without delay; cut names those without a connection.
type net struct {
	t       *testing.T
	now     time.Duration
	nodes   map[uint64]*node
	cut     map[uint64]bool
	lose    func(*raftpb.Message) bool
	barrier map[uint64]string
}

func member(id uint64) entry.Member {
	return entry.Member{ID: id, Name: fmt.Sprintf("n%d", id), Addr: fmt.Sprintf("h:%d", id), Client: fmt.Sprintf("c:%d", id)}
}

func newNet(t *testing.T, n uint64) *net {
	t.Helper()
	w := &net{t: t, nodes: map[uint64]*node{}, cut: map[uint64]bool{}, barrier: map[uint64]string{}}
	var members []entry.Member
	for id := uint64(1); id <= n; id++ {
		members = append(members, member(id))
	}
	state := entry.FirstState(members)
	for id := uint64(1); id <= n; id++ {
		log := raft.NewMemoryStorage()
		first := &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1))}}
		drill.Check(t, log.ApplySnapshot(first))
		drill.Check(t, log.SetHardState(&raftpb.HardState{Term: new(uint64(1)), Vote: new(uint64(0)), Commit: new(uint64(1))}))
		w.start(id, log, 1, state.Encode(), true)
	}
	return w
}

func (w *net) start(id uint64, log *raft.MemoryStorage, applied uint64, state []byte, fresh bool) *node {
	w.t.Helper()
	c, err := New(Config{ID: id, Storage: log, Applied: applied, State: state, Self: member(id), Now: w.now, Fresh: fresh})
	drill.Check(w.t, err)
	w.nodes[id] = &node{Core: c, log: log}
	return w.nodes[id]
}

func (w *net) ids() []uint64 {
	var ids []uint64
	for id := range w.nodes {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// settle delivers all messages and does all that is ready.
func (w *net) settle() {
	w.t.Helper()
	for range 10_000 {
		var messages []*raftpb.Message
		busy := false
		for _, id := range w.ids() {
			n := w.nodes[id]
			r, ok, err := n.Ready()
			if err != nil {
				n.err = err
				w.t.Logf("node %d: %v", id, err)
				delete(w.nodes, id)
				continue
			}
			if !ok {
				continue
			}
			busy = true
			messages = append(messages, r.Send...)
			if r.Save != nil {
				n.unsaved = append(n.unsaved, r.Save)
			}
			if r.Save != nil && r.Save.Snapshot != nil {
				w.install(id, r.Save)
				continue
			}
			if !n.stalled {
				messages = append(messages, n.save()...)
			}
			for _, e := range r.Apply {
				if e.State != nil {
					n.states++
				}
				switch {
				case e.Kind == entry.Batch && e.Void:
					n.applied = append(n.applied, "void "+string(e.Batch))
				case e.Kind == entry.Batch:
					n.applied = append(n.applied, string(e.Batch))
				case e.Kind == entry.Begin:
					n.applied = append(n.applied, fmt.Sprintf("begin %d by %s", e.Session, e.Member.Name))
				}
				n.Applied(e.Index)
			}
			for _, b := range r.Barriers {
				w.barrier[b] = "confirmed"
			}
			for _, b := range r.Lost {
				w.barrier[b] = "lost"
			}
		}
		if !busy {
			return
		}
		for _, m := range messages {
			n := w.nodes[m.GetTo()]
			if n == nil || w.cut[m.GetTo()] || w.cut[m.GetFrom()] || w.lose != nil && w.lose(m) {
				continue
			}
			_ = n.Step(m, w.now)
		}
	}
	w.t.Fatal("the nodes do not come to rest")
}

// install restarts a node with the stores that its leader has sent.
func (w *net) install(id uint64, r *Save) {
	w.t.Helper()
	from := w.leader()
	log := w.nodes[id].log
	drill.Check(w.t, log.ApplySnapshot(r.Snapshot))
	log.SetHardState(r.HardState)
	index := r.Snapshot.GetMetadata().GetIndex()
	if index != from.Core.applied {
		w.t.Fatalf("stores of entry %d, the leader has applied %d", index, from.Core.applied)
	}
	n := w.start(id, log, index, w.state(from), true)
	n.applied = slices.Clone(from.applied)
	from.ReportSnapshot(id, true)
}

func (w *net) tick(n int) {
	w.t.Helper()
	for range n {
		w.now += tick
		for _, id := range w.ids() {
			w.nodes[id].Tick(w.now)
		}
		w.settle()
	}
}

// leader ticks until a node has an open session and returns it.
func (w *net) leader() *node {
	w.t.Helper()
	for range 100 {
		for _, id := range w.ids() {
			if n := w.nodes[id]; n.Session() != 0 && !w.cut[id] {
				return n
			}
		}
		w.tick(1)
	}
	w.t.Fatal("no node leads")
	return nil
}

// batchOf returns a text as the encoded first batch of a session.
func batchOf(session uint64, text string) []byte {
	return entry.AppendBatch(nil, session, 1, 1, []byte(text))
}

func (n *node) propose(t *testing.T, text string) {
	t.Helper()
	drill.Check(t, n.Propose(n.Session(), batchOf(n.Session(), text)))
}

func TestSessions(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	first := w.leader()
	for _, n := range w.nodes {
		if n != first {
			if err := n.Propose(first.Session(), batchOf(first.Session(), "")); !errors.Is(err, ErrNotLeading) {
				t.Errorf("a follower proposes: %v", err)
			}
		}
	}
	if err := first.Propose(first.Session()-1, batchOf(first.Session()-1, "")); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a batch of another session: %v", err)
	}
	batch := batchOf(first.Session(), "a")
	drill.Check(t, first.Propose(first.Session(), batch))
	clear(batch) // the core has its own copy
	w.settle()
	drill.Check(t, first.Transfer(0, w.now))
	if first.LeaseUntil() != 0 {
		t.Error("a lease during a transfer")
	}
	w.settle()
	second := w.leader()
	if second == first || first.Session() != 0 {
		t.Fatal("the transfer had no effect")
	}
	second.propose(t, "b")
	w.tick(1)
	want := fmt.Sprintf("[begin %d by n%d a begin %d by n%d b]", first.Status(w.now).State.Session-1, first.config.ID, second.Session(), second.config.ID)
	for id, n := range w.nodes {
		if got := fmt.Sprint(n.applied); got != want {
			t.Errorf("node %d has applied %s, want %s", id, got, want)
		}
		if n.Status(w.now).State.Leader != second.config.ID {
			t.Errorf("node %d takes %d for the leader", id, n.Status(w.now).State.Leader)
		}
	}
}

// TestLateBatchIsVoid shows the second line of the fence: a batch that gets into the log after another
// session has begun is void on every node.
func TestLateBatchIsVoid(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	n.propose(t, "a")
	drill.Check(t, n.raft.Propose(entry.AppendBatch(nil, n.Session()-1, 7, 1, []byte("late"))))
	n.propose(t, "b")
	w.tick(1)
	for id, n := range w.nodes {
		if got := fmt.Sprint(n.applied[1:]); got != "[a void late b]" {
			t.Errorf("node %d has applied %s", id, got)
		}
	}
}

func TestLease(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	w.tick(1)
	until := n.LeaseUntil()
	if want := w.now + 9*tick; until != want {
		t.Errorf("the lease ends at %s, want %s", until, want)
	}
	w.cut[n.config.ID] = true
	w.tick(5)
	if n.LeaseUntil() != until {
		t.Errorf("the lease went from %s to %s without a majority", until, n.LeaseUntil())
	}
	drill.Check(t, n.ReadBarrier(77, w.now))
	w.settle()
	if w.barrier[77] != "" {
		t.Error("a barrier without a majority is " + w.barrier[77])
	}
	w.tick(20)
	if n.Session() != 0 || n.LeaseUntil() != 0 || w.barrier[77] != "lost" {
		t.Errorf("without a majority: session %d, lease until %s, barrier %s", n.Session(), n.LeaseUntil(), w.barrier[77])
	}
	second := w.leader()
	if w.now < until {
		t.Errorf("a new leader at %s within the lease until %s", w.now, until)
	}
	clear(w.cut)
	w.tick(3)
	for i := range uint64(5) {
		drill.Check(t, second.ReadBarrier(100+i, w.now))
	}
	w.settle()
	for i := range uint64(5) {
		if w.barrier[100+i] != "confirmed" {
			t.Errorf("barrier %d is %q", i, w.barrier[100+i])
		}
	}
}

// TestRestartedVoterKeepsItsPromise shows that a node that has confirmed a lease does not elect another
// leader after a restart.
func TestRestartedVoterKeepsItsPromise(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	w.cut[1+n.config.ID%3] = true // hears the leader no more, and will campaign
	candidate := w.nodes[1+n.config.ID%3]
	voter := w.nodes[1+(n.config.ID+1)%3]
	w.tick(9)
	until := n.LeaseUntil()
	w.cut[n.config.ID], w.cut[candidate.config.ID] = true, false
	w.start(voter.config.ID, voter.log, voter.Status(w.now).Applied, w.state(voter), false)
	for w.now < until {
		w.tick(1)
		if candidate.Session() != 0 && w.now < until {
			t.Fatalf("elected at %s, the lease lasts until %s", w.now, until)
		}
	}
	w.leader()
}

// TestFailedTransferEndsLeases shows that a leader that has told another one to depose it has no lease in
// that term again.
func TestFailedTransferEndsLeases(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	w.tick(1)
	w.lose = func(m *raftpb.Message) bool { return m.GetType() == raftpb.MsgTimeoutNow }
	session := n.Session()
	drill.Check(t, n.Transfer(0, w.now))
	w.settle()
	if err := n.Propose(session, batchOf(session, "a")); !errors.Is(err, ErrNotLeading) {
		t.Errorf("a proposal during a transfer: %v", err)
	}
	w.tick(30)
	if n.Session() != session || n.LeaseUntil() != 0 || n.Status(w.now).Transfer != 0 {
		t.Errorf("session %d, lease until %s, transfer to %d", n.Session(), n.LeaseUntil(), n.Status(w.now).Transfer)
	}
	n.propose(t, "a")
	drill.Check(t, n.ReadBarrier(5, w.now))
	w.settle()
	if w.barrier[5] != "confirmed" {
		t.Error("no barrier after a transfer that failed")
	}
}

func TestSingleNode(t *testing.T) {
	t.Parallel()
	w := newNet(t, 1)
	w.nodes[1].Campaign()
	w.settle()
	n := w.nodes[1]
	if n.Session() == 0 {
		t.Fatal("a single node does not lead at once")
	}
	w.tick(1)
	if n.LeaseUntil() <= w.now {
		t.Error("a single node has no lease")
	}
	if err := n.Transfer(0, w.now); !errors.Is(err, ErrMember) {
		t.Errorf("transfer without a target: %v", err)
	}
	if err := n.ProposeMember(entry.Leave, entry.Member{Name: "n1"}); !errors.Is(err, ErrMember) {
		t.Errorf("the last node leaves: %v", err)
	}
}

func (w *net) state(n *node) []byte {
	state := n.Status(w.now).State
	return state.Encode()
}

// conf returns the names of the voters and learners as a node sees them.
func conf(n *node) string {
	s := n.Status(0).State
	name := func(ids []uint64) string {
		var names []string
		for _, id := range ids {
			if m := s.WithID(id); m != nil {
				names = append(names, fmt.Sprintf("%s=%d", m.Name, id))
			} else {
				names = append(names, fmt.Sprint(id))
			}
		}
		return strings.Join(names, " ")
	}
	return "voters " + name(s.Voters) + " learners " + name(s.Learners)
}

func (w *net) propose(op entry.Op, m entry.Member) {
	w.t.Helper()
	drill.Check(w.t, w.leader().ProposeMember(op, m))
	w.settle()
}

// What clients announce is bounded: the state is in the memory of every node, and in the log with each
// change.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	leader := w.leader()
	leader.propose(t, "a")
	w.tick(11)
	for _, m := range []entry.Member{
		{Name: "n1", Addr: "h:9"},    // a member
		{Name: "d", Addr: "h:1"},     // the address of one
		{Name: "d", Addr: ""},        //
		{Name: "d", Addr: "h\n:9"},   // cannot be shown
		{Name: "d\r\n", Addr: "h:9"}, //
		{Name: strings.Repeat("d", 64), Addr: "h:9"},
		{Name: "d", Addr: strings.Repeat("h", 1<<20) + ":9"},
	} {
		if err := leader.ProposeMember(entry.Announce, m); !errors.Is(err, ErrMember) || strings.ContainsAny(err.Error(), "\r\n") || len(err.Error()) > 400 {
			t.Errorf("%.40q at %.40q: %.500v", m.Name, m.Addr, err)
		}
	}
	for i := range entry.MostMembers - 3 {
		w.propose(entry.Announce, entry.Member{Name: fmt.Sprintf("x%d", i), Addr: fmt.Sprintf("x:%d", i+1)})
	}
	w.tick(1)
	if err := leader.ProposeMember(entry.Announce, entry.Member{Name: "d", Addr: "h:9"}); !errors.Is(err, ErrMember) {
		t.Errorf("one too many: %v", err)
	}
	w.propose(entry.Announce, entry.Member{Name: "x1", Addr: "x:99"}) // elsewhere
	w.propose(entry.Leave, entry.Member{Name: "x0"})
	w.tick(1)
	w.propose(entry.Announce, entry.Member{Name: "d", Addr: "h:9"})
}

// join starts a node with an empty log.
func (w *net) join(m entry.Member) {
	w.t.Helper()
	w.propose(entry.Join, m)
	w.start(m.ID, raft.NewMemoryStorage(), 0, nil, true)
}

func TestMembers(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	n.propose(t, "a")
	w.tick(11)
	expect := func(want string) {
		t.Helper()
		w.tick(20)
		for id, n := range w.nodes {
			if got := conf(n); got != want && !w.cut[id] {
				t.Errorf("node %d sees %s, want %s", id, got, want)
			}
		}
	}
	four := member(4)
	if err := n.ProposeMember(entry.Join, four); !errors.Is(err, ErrMember) {
		t.Errorf("a node that was not announced joins: %v", err)
	}
	w.propose(entry.Announce, entry.Member{Name: "n4", Addr: "h:4"})
	w.join(four)
	expect("voters n1=1 n2=2 n3=3 n4=4 learners ")
	if got := w.nodes[4].applied; !slices.Contains(got, "a") {
		t.Errorf("node 4 has applied %s", got)
	}

	// The disk of a follower is lost: it comes with another id.
	lost := 1 + w.leader().config.ID%3
	again := member(lost)
	again.ID = 10 + lost
	if err := w.leader().ProposeMember(entry.Join, again); !errors.Is(err, ErrMember) {
		t.Errorf("a member that is connected was replaced: %v", err)
	}
	delete(w.nodes, lost)
	w.tick(11)
	w.join(again)
	w.tick(20)
	if got := conf(w.leader()); !strings.Contains(got, fmt.Sprintf("n%d=%d", lost, 10+lost)) || strings.Contains(got, fmt.Sprintf("=%d ", lost)) {
		t.Errorf("after the loss of a disk: %s", got)
	}

	// The leader leaves: another one leads first.
	old := w.leader()
	w.propose(entry.Leave, entry.Member{Name: old.config.Self.Name})
	w.tick(20)
	if got := conf(w.leader()); w.leader() == old || strings.Contains(got, old.config.Self.Name+"=") || len(w.leader().Status(w.now).State.Voters) != 3 {
		t.Errorf("after the leader has left: %s", got)
	}
	delete(w.nodes, old.config.ID)
	w.propose(entry.Announce, old.config.Self)
	if err := w.leader().ProposeMember(entry.Join, old.config.Self); !errors.Is(err, ErrMember) {
		t.Errorf("an id that has left joins: %v", err)
	}

	// One of three voters is gone: no other may leave.
	voters := w.leader().Status(w.now).State.Voters
	gone := voters[0]
	if gone == w.leader().config.ID {
		gone = voters[1]
	}
	delete(w.nodes, gone)
	w.tick(11)
	for _, id := range voters {
		m := w.leader().Status(w.now).State.WithID(id)
		if err := w.leader().ProposeMember(entry.Leave, entry.Member{Name: m.Name}); (err == nil) != (id == gone) {
			t.Errorf("%s leaves: %v", m.Name, err)
		}
	}
}

func TestStepRefuses(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	follower := w.nodes[1+n.config.ID%3]
	message := func(typ raftpb.MessageType, change func(*raftpb.Message)) *raftpb.Message {
		m := &raftpb.Message{Type: typ.Enum(), From: &follower.config.ID, To: &n.config.ID, Term: new(n.term)}
		if change != nil {
			change(m)
		}
		return m
	}
	for _, m := range []*raftpb.Message{
		nil,
		message(raftpb.MsgProp, func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{Data: []byte("x")}} }),
		message(raftpb.MsgTransferLeader, nil),
		message(raftpb.MsgReadIndex, func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{Data: []byte("x")}} }),
		message(raftpb.MsgHup, nil),
		message(raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Context = []byte("x") }),
		message(raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.To = new(uint64(99)) }),
		message(raftpb.MsgHeartbeatResp, func(m *raftpb.Message) { m.Term = nil }),
		message(raftpb.MsgApp, func(m *raftpb.Message) { m.Entries = []*raftpb.Entry{{Index: new(uint64(9))}} }),
		message(raftpb.MsgSnap, nil),
	} {
		if err := n.Step(m, w.now); !errors.Is(err, ErrMessage) {
			t.Errorf("%v: %v", m, err)
		}
	}
	w.tick(3)
	if n.Session() == 0 {
		t.Error("deposed")
	}
}

// TestAnswerToAnOldTerm shows that a leader does not send the stores to a node because of an answer that says
// nothing of its log.
func TestAnswerToAnOldTerm(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	w.cut[3] = true // the leader knows nothing of its log
	n := w.leader()
	from := uint64(3)
	for _, term := range []uint64{n.term - 1, n.term} {
		drill.Report(t, n.Step(&raftpb.Message{Type: raftpb.MsgAppResp.Enum(), From: &from, To: &n.config.ID, Term: &term}, w.now))
	}
	w.settle()
	clear(w.cut)
	n.propose(t, "x")
	w.tick(3)
	if got := w.nodes[3].applied; !slices.Contains(got, "x") {
		t.Errorf("node 3 has %q", got)
	}
}

// TestBacklog shows that a follower whose applier stands takes a bounded number of bytes, and goes on later.
func TestBacklog(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	id := 1 + n.config.ID%3
	slow := w.nodes[id]
	slow.config.MaxUnapplied = 10_000
	stuck := slow.Core
	stuck.applied = 1 << 40 // Applied of the harness has no effect
	for range 100 {
		n.propose(t, strings.Repeat("x", 1000))
		w.settle()
	}
	w.tick(5)
	if stuck.backlog.bytes < 9_000 || stuck.backlog.bytes > 15_000 {
		t.Errorf("%d bytes of entries that are not applied", stuck.backlog.bytes)
	}
	stuck.applied = 0
	for range 30 {
		stuck.Applied(stuck.delivered)
		w.tick(3)
	}
	if got := len(slow.applied); got != len(n.applied) {
		t.Errorf("%d applied, the leader has %d", got, len(n.applied))
	}
	if slow.backlog.bytes != 0 {
		t.Errorf("%d bytes left", slow.backlog.bytes)
	}
}

// TestDamagedLog shows that what raft panics about becomes an error.
func TestDamagedLog(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	follower := w.nodes[1+n.config.ID%3]
	commit := follower.raft.BasicStatus().GetCommit() + 100
	err := follower.Step(&raftpb.Message{Type: raftpb.MsgHeartbeat.Enum(), From: &n.config.ID, To: &follower.config.ID, Term: new(n.term), Commit: &commit}, w.now)
	drill.Check(t, err)
	for range 2 {
		if _, _, err := follower.Ready(); !errors.Is(err, ErrDamaged) {
			t.Errorf("the leader knows more commits than there are: %v", err)
		}
	}
	if err := follower.Propose(follower.Session(), batchOf(follower.Session(), "")); err == nil {
		t.Error("a damaged core proposes")
	}
	for _, tt := range []struct{ applied uint64 }{{0}, {99}} {
		state := entry.FirstState([]entry.Member{member(1)})
		if _, err := New(Config{ID: 1, Storage: w.nodes[1].log, Applied: tt.applied, State: state.Encode()}); !errors.Is(err, ErrDamaged) {
			t.Errorf("files at %d: %v", tt.applied, err)
		}
	}
}

// TestUnknownVersion shows that a node stops at an entry that it does not know.
func TestUnknownVersion(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	drill.Check(t, n.raft.Propose([]byte{entry.Version + 1, 1, 2, 3}))
	w.settle()
	if !errors.Is(n.err, entry.ErrVersion) {
		t.Errorf("error %v", n.err)
	}
}

// TestDeposeWithoutADisk shows that a leader whose log cannot be written makes another node the leader, with
// all it has sent.
func TestDeposeWithoutADisk(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	to := 1 + n.config.ID%3
	n.stalled = true
	n.propose(t, "sent but not saved here")
	w.settle()
	if err := n.Depose(n.config.ID, w.now); err == nil {
		t.Error("it deposes itself in favour of itself")
	}
	drill.Check(t, n.Depose(to, w.now))
	if n.LeaseUntil() != 0 {
		t.Error("the lease has not ended")
	}
	w.settle()
	heir := w.nodes[to]
	if heir.Session() == 0 || n.role == Leader {
		t.Fatalf("node %d is %s, node %d has session %d", n.config.ID, n.role, to, heir.Session())
	}
	if !slices.Contains(heir.applied, "sent but not saved here") || slices.Contains(n.applied, "sent but not saved here") {
		t.Errorf("the heir has applied %q, the other %q", heir.applied, n.applied)
	}
	if err := n.Depose(to, w.now); err != ErrNotLeading {
		t.Errorf("a follower: %v", err)
	}
}

// TestSlowDisk shows that a leader whose log is not written for long keeps its followers and its lease, and
// applies nothing meanwhile that is not on its disk.
func TestSlowDisk(t *testing.T) {
	t.Parallel()
	w := newNet(t, 3)
	n := w.leader()
	n.stalled = true
	term := n.term
	n.propose(t, "slow")
	for range 50 {
		w.tick(1)
		if n.LeaseUntil() <= w.now || n.term != term || n.Session() == 0 {
			t.Fatalf("%s in term %d, before in term %d, the lease ends at %v", n.role, n.term, term, n.LeaseUntil()-w.now)
		}
	}
	if slices.Contains(n.applied, "slow") {
		t.Error("it was applied before it was saved")
	}
	n.stalled = false
	w.settle()
	_ = n.save()
	w.settle()
	if !slices.Contains(n.applied, "slow") {
		t.Error("it was not applied")
	}
}
