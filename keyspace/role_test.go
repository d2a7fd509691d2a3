package keyspace

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs/vfstest"
)

// entryOfLog is an entry of a [fakeLog]: a batch, or the begin of a session.
type entryOfLog struct {
	replica.Position
	seat  *seat
	lsn   uint64
	batch string
}

// fakeLog is a cluster's log in memory. Tests let it fail.
type fakeLog struct {
	mu      sync.Mutex
	entries []entryOfLog
	state   []byte       // passed with the next tail
	fail    func() error // called before a batch is committed; nil: all are
	lost    func() error // called after it
	confirm func() error // nil: the node of the session leads
	session *seat        // the leader's
}

// seat is a node's place at a log: the [replica.Replicator] of one run.
type seat struct {
	log      *fakeLog
	proposed map[uint64]int
	answers  map[uint64]replica.Tail
}

func newFakeLog() *fakeLog {
	return &fakeLog{entries: []entryOfLog{{Position: replica.Position{Index: 1, Term: 1}}}}
}

func (l *fakeLog) seat() *seat {
	return &seat{log: l, proposed: make(map[uint64]int), answers: make(map[uint64]replica.Tail)}
}

// begin begins a session. Batches of others are void from now on.
func (l *fakeLog) begin(s *seat) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.session = s
	last := l.entries[len(l.entries)-1].Position
	l.entries = append(l.entries, entryOfLog{Position: replica.Position{Index: last.Index + 1, Term: last.Term + 1, Moment: last.Moment}})
}

func (s *seat) Replicate(lsn uint64, moment int64, batch []byte, _ time.Duration) (replica.Tail, error) {
	l := s.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, known := s.answers[lsn]; known {
		return t, nil
	}
	if l.session != s {
		return replica.Tail{}, replica.ErrVoid
	}
	if l.fail != nil {
		if err := l.fail(); err != nil {
			return replica.Tail{}, err
		}
	}
	s.proposed[lsn]++
	last := l.entries[len(l.entries)-1].Position
	p := replica.Position{Index: last.Index + 1, Term: last.Term, Moment: moment}
	l.entries = append(l.entries, entryOfLog{p, s, lsn, string(batch)})
	t := replica.Tail{Position: p, State: l.state}
	l.state = nil
	s.answers[lsn] = t
	if l.lost != nil {
		if err := l.lost(); err != nil {
			return replica.Tail{}, err
		}
	}
	return t, nil
}

func (s *seat) Confirm(time.Duration) error {
	s.log.mu.Lock()
	defer s.log.mu.Unlock()
	if s.log.session != s {
		return replica.ErrNoMajority
	}
	if s.log.confirm != nil {
		return s.log.confirm()
	}
	return nil
}

// after returns the entries behind an index.
func (l *fakeLog) after(index uint64) []entryOfLog {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[index:len(l.entries):len(l.entries)]
}

// last returns the position of the last entry.
func (l *fakeLog) last() replica.Position {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries[len(l.entries)-1].Position
}

// set changes what the log does.
func (l *fakeLog) set(f func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	f()
}

// node is a keyspace in a cluster, for a test.
type node struct {
	*Keyspace
	t     *testing.T
	log   *fakeLog
	seat  *seat
	clock *clock.Manual
	dir   string
	opt   Options
}

// newNode opens the keyspace of a node in a new folder, which the log begins with.
func newNode(t *testing.T, log *fakeLog, change ...func(*Options)) *node {
	fsys := vfstest.NewMemory()
	n := &node{t: t, log: log, clock: clock.NewManual(epoch), dir: vfstest.Dir}
	n.opt = Options{FS: fsys, Dir: n.dir, Clock: n.clock, NoPurge: true, noCheckpoints: true, noSweeps: true}
	for _, f := range change {
		f(&n.opt)
	}
	n.open()
	drill.Check(t, n.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}, State: []byte("members")}))
	return n
}

func (n *node) open() {
	n.t.Helper()
	n.seat = n.log.seat()
	n.opt.Replicator = n.seat
	ks, err := Open(n.opt)
	drill.Check(n.t, err)
	n.Keyspace = ks
}

// follow applies the entries that the node lacks.
func (n *node) follow() {
	n.t.Helper()
	for _, e := range n.log.after(n.Position().Index) {
		drill.Check(n.t, n.Apply(e.batch, replica.Tail{Position: e.Position}))
	}
}

// lead begins a session of the node.
func (n *node) lead() {
	n.t.Helper()
	n.log.begin(n.seat)
	n.follow()
	drill.Check(n.t, n.Lead())
}

// put writes an item in database 0.
func (n *node) put(id, body string) LSN {
	n.t.Helper()
	var tx Tx
	n.BeginKey(&tx, id)
	tx.Put(tx.Container("0"), id, Plain, body, 0)
	return tx.Close()
}

// get reads an item of database 0, and returns what a reply waits for.
func (n *node) get(id string) (string, LSN) {
	var tx Tx
	n.BeginKey(&tx, id)
	var it Item
	if c := tx.Container("0"); c != nil {
		it, _ = tx.Get(c, id)
	}
	return strings.Clone(it.Body), tx.Close()
}

func (n *node) mustWait(lsn LSN) {
	n.t.Helper()
	drill.Check(n.t, n.Wait(lsn))
}

func (n *node) abandon() {
	n.t.Helper()
	drill.Check(n.t, n.Abandon())
}

// TestLeaderCommitsByTheLog: a leader's journal has what the log has, and the folder knows its place.
func TestLeaderCommitsByTheLog(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	if n.Leads() || n.Position().Index != 1 || string(n.ReplicaState()) != "members" || n.Durable() != 1 {
		t.Errorf("a new node is at %+v, durable %d, state %q", n.Position(), n.Durable(), n.ReplicaState())
	}
	n.lead()
	if !n.Leads() || n.Position() != log.last() || n.Unsettled() {
		t.Errorf("the leader is at %+v, the log at %+v", n.Position(), log.last())
	}
	log.set(func() { log.state = []byte("others") })
	n.mustWait(n.put("a", "1"))
	n.mustWait(n.put("b", strings.Repeat("large", 100_000)))
	if last := log.entries[len(log.entries)-1]; !bytes.Contains([]byte(last.batch), []byte(strings.Repeat("large", 100_000))) {
		t.Error("the log does not have a large body in one piece")
	}
	want := log.last()
	if n.Position() != want || string(n.ReplicaState()) != "others" {
		t.Errorf("the leader is at %+v with %q, the log at %+v", n.Position(), n.ReplicaState(), want)
	}
	if err := n.journal.Sync(); err != nil || n.Durable() != want.Index {
		t.Errorf("%d is durable, not %d: %v", n.Durable(), want.Index, err)
	}
	n.abandon()
	tail, err := ReadReplica(n.opt.FS, n.dir)
	if err != nil || tail.Position != want || string(tail.State) != "others" {
		t.Errorf("the folder is at %+v: %v", tail, err)
	}
	n.open()
	if n.Position() != want || n.Leads() || n.Durable() != want.Index || string(n.ReplicaState()) != "others" {
		t.Errorf("it opens at %+v", n.Position())
	}
	if body, lsn := n.get("a"); body != "1" || lsn != 0 {
		t.Errorf("a is %q, LSN %d", body, lsn)
	}
	drill.Report(t, n.Close())
	if tail, err := ReadReplica(n.opt.FS, n.dir); err != nil || tail.Position != want || string(tail.State) != "others" {
		t.Errorf("after a checkpoint the folder is at %+v: %v", tail, err)
	}
}

// TestNothingUncommittedIsInTheFolder: without a majority the leader's changes stay in memory.
func TestNothingUncommittedIsInTheFolder(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	n.lead()
	n.mustWait(n.put("a", "1"))
	at := n.Position()
	log.set(func() { log.fail = func() error { return replica.ErrNoMajority } })
	lsn := n.put("b", "1")
	if err := n.Wait(lsn); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("a write without a majority: %v", err)
	}
	if err := n.Writable(); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("writes are refused because of %v", err)
	}
	if !n.Unsettled() || n.Position() != at {
		t.Errorf("unsettled %v, at %+v", n.Unsettled(), n.Position())
	}
	if err := n.Save(); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("a checkpoint without a majority: %v", err)
	}
	if tail, err := ReadReplica(n.opt.FS, n.dir); err != nil || tail.Position != at {
		t.Errorf("the folder is at %+v: %v", tail, err)
	}
	log.set(func() { log.fail = nil })
	drill.Report(t, n.Settle(lsn))
	if err := n.Save(); err != nil {
		t.Error("a checkpoint with a majority:", err)
	}
	log.set(func() { log.fail = func() error { return replica.ErrVoid } })
	if err := n.Wait(n.put("c", "1")); !errors.Is(err, replica.ErrVoid) {
		t.Errorf("a void write: %v", err)
	}
	log.set(func() { log.fail = nil })
	if err := n.Wait(n.put("d", "1")); !errors.Is(err, replica.ErrVoid) {
		t.Errorf("a write after a void one: %v", err)
	}
	at = n.Position()
	n.abandon()
	n.open()
	defer n.abandon()
	for id, want := range map[string]string{"a": "1", "b": "1", "c": "", "d": ""} {
		if body, _ := n.get(id); body != want {
			t.Errorf("%s is %q", id, body)
		}
	}
	if n.Position() != at {
		t.Errorf("it opens at %+v, not %+v", n.Position(), at)
	}
}

// TestBackupWithoutAMajority: it has what is committed. A node that is far behind gets it, and may be the one
// that a majority lacks.
func TestBackupWithoutAMajority(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	n.lead()
	put := func(id string, end int64) LSN {
		var tx Tx
		n.BeginKey(&tx, id)
		tx.Put(tx.Container("0"), id, Plain, id, end)
		return tx.Close()
	}
	policy := func(def expiry.TTL) LSN {
		var tx Tx
		n.BeginAll(&tx)
		tx.SetPolicy(tx.Container("0"), def, expiry.Strict)
		return tx.Close()
	}
	soon, later := int64(epoch+10_000), int64(epoch+3_600_000)
	n.mustWait(policy(3600))
	n.mustWait(put("extended", soon))
	n.mustWait(put("killed", later))
	n.mustWait(put("inherits", 0))
	drill.Check(t, n.Save())
	n.mustWait(put("extended", later)) // only the journal has it
	at := n.Position()
	n.clock.Advance(20 * time.Second)
	log.set(func() { log.fail = func() error { return replica.ErrNoMajority } })
	policy(10)
	put("killed", soon)
	put("new", later)
	n.opt.Dir = newDir(n.opt.FS) + "/backup"
	drill.Check(t, n.Backup(n.opt.Dir))
	n.abandon()
	n.open()
	defer n.abandon()
	for id, want := range map[string]string{"extended": "extended", "killed": "killed", "inherits": "inherits", "new": ""} {
		if body, _ := n.get(id); body != want {
			t.Errorf("%s is %q in the backup", id, body)
		}
	}
	if n.Position() != at {
		t.Errorf("the backup is at %+v, not %+v", n.Position(), at)
	}
}

// TestRetriesProposeOnce: a batch whose fate was not known is not proposed again, and the local journal has
// it once.
func TestRetriesProposeOnce(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	n.lead()
	fail := 3
	log.set(func() {
		log.lost = func() error {
			if fail--; fail >= 0 {
				return replica.ErrNoMajority
			}
			return nil
		}
	})
	var lsns []LSN
	for _, id := range []string{"a", "b", "c", "d", "e"} {
		lsn := n.put(id, "1")
		if err := n.Wait(lsn); err != nil && !errors.Is(err, replica.ErrNoMajority) {
			t.Fatal(err)
		}
		lsns = append(lsns, lsn)
	}
	n.mustWait(slices.Max(lsns))
	for lsn, times := range n.seat.proposed {
		if times != 1 {
			t.Errorf("batch %d was proposed %d times", lsn, times)
		}
	}
	if n.Position() != log.last() || n.Unsettled() {
		t.Errorf("at %+v, the log at %+v", n.Position(), log.last())
	}
	n.abandon()
}
