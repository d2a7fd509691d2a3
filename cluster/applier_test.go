package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"mayfly/cluster/disk"
	"mayfly/cluster/entry"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
)

// fakeStore records what the applier does with a keyspace.
type fakeStore struct {
	unsettled atomic.Bool
	leading   chan error // what Lead returns

	full atomic.Bool

	mu    sync.Mutex
	steps []string
	tails []replica.Tail
}

func (s *fakeStore) note(format string, parts ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.steps = append(s.steps, fmt.Sprintf(format, parts...))
}

func (s *fakeStore) Apply(batch string, tail replica.Tail) error {
	if s.full.Load() {
		return syscall.ENOSPC
	}
	s.note("apply %d %q", tail.Index, batch)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tails = append(s.tails, tail)
	return nil
}

func (s *fakeStore) Settle(lsn journal.LSN) error {
	s.note("settle %d", lsn)
	s.unsettled.Store(false)
	return nil
}

func (s *fakeStore) Lead() error {
	err := <-s.leading
	s.note("lead %v", err)
	return err
}
func (s *fakeStore) Follow()         { s.note("follow") }
func (s *fakeStore) Drain()          { s.note("drain") }
func (s *fakeStore) Unsettled() bool { return s.unsettled.Load() }

// applying is an applier that a test drives.
type applying struct {
	*applier
	store  *fakeStore
	rep    *testReplicator
	failed chan error
	done   chan struct{}
}

func startApplier(t *testing.T) *applying {
	store, rep := &fakeStore{leading: make(chan error, 10)}, newTestReplicator()
	a := &applying{applier: newApplier(store, rep.replicator, 1, replica.Position{Index: 1}), store: store, rep: rep,
		failed: make(chan error, 1), done: make(chan struct{})}
	a.wake, a.show = func() {}, func() {}
	a.fail = func(err error) { a.failed <- err }
	go func() {
		defer close(a.done)
		a.run()
	}()
	t.Cleanup(func() {
		rep.end()
		close(a.stop)
		receive(t, a.done)
	})
	return a
}

// awaits waits until the applier has nothing to do, and compares the steps that the store has seen.
func (a *applying) awaits(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-a.failed:
		t.Errorf("failed: %v", err)
	default:
	}
	if !slices.Equal(a.store.steps, want) {
		t.Fatalf("steps\n got %q\nwant %q", a.store.steps, want)
	}
}

func begin(index, session, id uint64) entry.Entry {
	return entry.Entry{Index: index, Term: session, Kind: entry.Begin, Session: session, Member: entry.Member{ID: id}, State: []byte("state")}
}

func batch(index, session, lsn uint64, moment int64, text string) entry.Entry {
	return entry.Entry{Index: index, Term: session, Kind: entry.Batch, Session: session, LSN: lsn, Moment: moment, Batch: []byte(text)}
}

func TestApplierFollows(t *testing.T) { inBubble(t, testApplierFollows) }

func testApplierFollows(t *testing.T) {
	a := startApplier(t)
	void := batch(5, 2, 9, 900, "void")
	void.Void = true
	a.push(task{entries: []entry.Entry{{Index: 2, Term: 3}, begin(3, 3, 2), batch(4, 3, 1, 100, "set a"), void, batch(6, 3, 2, 50, "set b")}})
	a.awaits(t, `apply 2 ""`, `apply 3 ""`, `apply 4 "set a"`, `apply 5 ""`, `apply 6 "set b"`)
	if n := a.applied.Load(); n != 6 {
		t.Errorf("%d entries are applied", n)
	}
	for i, want := range []replica.Tail{
		{Position: replica.Position{Index: 2, Term: 3}},
		{Position: replica.Position{Index: 3, Term: 3}, State: []byte("state")},
		{Position: replica.Position{Index: 4, Term: 3, Moment: 100}},
		{Position: replica.Position{Index: 5, Term: 2, Moment: 100}},
		{Position: replica.Position{Index: 6, Term: 3, Moment: 100}},
	} {
		if got := a.store.tails[i]; got.Position != want.Position || string(got.State) != string(want.State) {
			t.Errorf("tail %d: got %v, want %v", i, got, want)
		}
	}
}

// The batch in flight is not applied a second time: it is in memory already.
func TestApplierLeads(t *testing.T) { inBubble(t, testApplierLeads) }

func testApplierLeads(t *testing.T) {
	a := startApplier(t)
	a.push(task{entries: []entry.Entry{begin(2, 3, 1)}})
	a.rep.open(3)
	a.push(task{lead: 3})
	a.awaits(t, `apply 2 ""`)
	result := a.rep.start(1, "set a")
	receive(t, a.rep.proposals)
	a.push(task{entries: []entry.Entry{batch(3, 3, 1, 100, "set a")}})
	if got := receive(t, result); got.err != nil || got.tail.Index != 3 || got.tail.Moment != 100 {
		t.Errorf("got %v", got)
	}
	a.awaits(t, `apply 2 ""`, "settle 1")
	a.store.leading <- replica.ErrNoMajority // it tries again
	a.store.leading <- nil
	a.awaits(t, `apply 2 ""`, "settle 1", "lead "+replica.ErrNoMajority.Error(), "lead <nil>")
	a.push(task{entries: []entry.Entry{{Index: 4, Term: 3, Kind: entry.Change, State: []byte("changed")}}}) // goes with the next batch
	a.rep.shut()
	a.push(task{follow: true})
	a.push(task{entries: []entry.Entry{begin(5, 4, 2)}})
	a.awaits(t, `apply 2 ""`, "settle 1", "lead "+replica.ErrNoMajority.Error(), "lead <nil>", "follow", `apply 5 ""`)
}

// A leader that was deposed waits for the fate of its batch.
func TestApplierDeposedWithABatchInFlight(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		fate  entry.Entry
		loses bool
	}{
		{"committed later", batch(3, 3, 1, 100, "set a"), false},
		{"another session", begin(3, 4, 2), true},
		{"another's batch", batch(3, 4, 1, 100, "set b"), true},
		{"its own next session", begin(3, 5, 1), false},
		{"raft's empty entry", entry.Entry{Index: 3, Term: 4}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				a := startApplier(t)
				a.store.leading <- nil
				a.rep.open(3)
				a.push(task{lead: 3})
				a.awaits(t, "lead <nil>")
				a.store.unsettled.Store(true)
				a.rep.start(1, "set a")
				receive(t, a.rep.proposals)
				a.rep.shut()
				a.push(task{follow: true})
				a.awaits(t, "lead <nil>", "follow")
				a.push(task{entries: []entry.Entry{tt.fate}})
				if tt.loses {
					if err := receive(t, a.failed); !errors.Is(err, errReload) {
						t.Errorf("failed with %v", err)
					}
					return
				}
				synctest.Wait()
				if n := a.applied.Load(); n != 3 {
					t.Errorf("%d entries are applied", n)
				}
				if settled := tt.fate.Kind == entry.Batch; settled == a.store.unsettled.Load() {
					t.Errorf("settled %v", settled)
				}
			})
		})
	}
}

// A follower whose disk is full says so while it waits for room.
func TestFollowerWithAFullDisk(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := startApplier(t)
		inc := &incarnation{applier: a.applier}
		a.store.full.Store(true)
		a.push(task{entries: []entry.Entry{begin(2, 2, 2), batch(3, 2, 1, 10, "a")}})
		a.awaits(t)
		if got := inc.waitsForRoom(1); !strings.Contains(got, "the disk is full") {
			t.Errorf("on a full disk it says %q", got)
		}
		a.store.full.Store(false)
		<-time.After(longestFullRetry) // on the clock of the bubble
		a.awaits(t, `apply 2 ""`, `apply 3 "a"`)
		if got := inc.waitsForRoom(3); got != "" {
			t.Errorf("with room it says %q", got)
		}
	})
}

// A full disk is no damage: the node waits for room with the files that it has. Nor does it hide damage.
func TestFullDiskIsNoDamage(t *testing.T) {
	t.Parallel()
	damage := &disk.DamageError{File: "wal", Offset: -1, Cause: errors.New("checksum")}
	full := fmt.Errorf("raft log wal: %w", syscall.ENOSPC)
	for err, want := range map[error]bool{damage: true, full: false, errors.Join(damage, full): true, errLogLost: true, errReload: false} {
		if got := isDamage(err); got != want {
			t.Errorf("%v: damage %v, want %v", err, got, want)
		}
	}
}
