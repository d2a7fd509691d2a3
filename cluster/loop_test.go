package cluster

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/disk"
	"mayfly/cluster/entry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"

	"go.etcd.io/raft/v3/raftpb"
)

// listStore is a keyspace that is a list of batches, with the journal's rule of one batch in flight.
type listStore struct {
	rep *replicator

	mu        sync.Mutex // protects what follows
	batches   []string
	at        replica.Position
	leads     bool
	lsn       uint64
	unsettled bool
}

func (s *listStore) Apply(batch string, tail replica.Tail) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if tail.Index <= s.at.Index {
		return fmt.Errorf("index %d after %d", tail.Index, s.at.Index)
	}
	s.at = tail.Position
	if batch != "" {
		s.batches = append(s.batches, batch)
	}
	return nil
}

func (s *listStore) Settle(journal.LSN) error { return nil }
func (s *listStore) Lead() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = true
	return nil
}

func (s *listStore) Follow() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.leads = false
}

func (s *listStore) Drain() { s.Follow() }

func (s *listStore) Unsettled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.unsettled
}

// write writes a batch as a leader. One goroutine at a time calls it.
func (s *listStore) write(batch string) error {
	s.mu.Lock()
	if !s.leads {
		s.mu.Unlock()
		return replica.ErrFollower
	}
	s.lsn++
	lsn := s.lsn
	s.unsettled = true
	s.mu.Unlock()
	for {
		tail, err := s.rep.Replicate(lsn, int64(lsn), []byte(batch), 0)
		switch {
		case err == nil:
			s.mu.Lock()
			defer s.mu.Unlock()
			s.batches = append(s.batches, batch)
			s.at = tail.Position
			s.unsettled = false
			return nil
		case err == replica.ErrVoid:
			return err
		}
	}
}

func (s *listStore) content() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.batches)
}

// driver is a loop, an applier and a replicator with a real core and a real log.
type driver struct {
	*loop
	store *listStore
	tasks sync.WaitGroup
	ended chan error
	cut   atomic.Bool // nothing is sent or received
}

// startDrivers starts three of them, which are connected in memory.
func startDrivers(t *testing.T) []*driver {
	t.Helper()
	var members []entry.Member
	for i := range 3 {
		members = append(members, entry.Member{ID: uint64(i + 1), Name: fmt.Sprint("n", i+1), Addr: fmt.Sprint("127.0.0.1:", 7001+i)})
	}
	state := entry.FirstState(members)
	drivers := make([]*driver, 3)
	for i := range drivers {
		drivers[i] = newDriver(t, members[i], &state)
	}
	for i, d := range drivers {
		d.send = func(messages []*raftpb.Message) {
			for _, m := range messages {
				if to := drivers[m.GetTo()-1]; !d.cut.Load() && !to.cut.Load() {
					select {
					case to.inbox <- m:
					default: // lost
					}
				}
			}
		}
		d.founder = i == 0
	}
	for _, d := range drivers {
		d.tasks.Go(d.run)
		d.tasks.Go(d.saver.run)
		d.tasks.Go(d.applier.run)
		t.Cleanup(func() {
			d.rep.end()
			close(d.stop)
			d.tasks.Wait()
			check(t, d.disk.Close())
			select {
			case err := <-d.ended:
				t.Error(err)
			default:
			}
		})
	}
	return drivers
}

func newDriver(t *testing.T, self entry.Member, state *entry.State) *driver {
	t.Helper()
	o := disk.Options{Dir: filepath.Join(t.TempDir(), "wal"), Cluster: 1, ID: self.ID, Applied: 1, Term: 1}
	check(t, disk.Create(o, &raftpb.SnapshotMetadata{Index: new(uint64(1)), Term: new(uint64(1)), ConfState: confState(state)}))
	log, err := disk.Open(o)
	check(t, err)
	rep := newReplicator(clock.Monotonic)
	d := &driver{store: &listStore{rep: rep}, ended: make(chan error, 1)}
	at := replica.Position{Index: 1, Term: 1}
	a := newApplier(d.store, rep, self.ID, at)
	const tick = testTimeout / electionTicks
	d.loop = &loop{disk: log, saver: &saver{log: newStallingLog(log)}, applier: a, rep: rep, durable: func() uint64 { return 0 }, stores: func(*raftpb.Message) bool { return false }, changed: func() {},
		tick: tick, stop: make(chan struct{})}
	d.fail = func(err error) { d.ended <- err } // before init
	d.loop.core, err = core.New(core.Config{ID: self.ID, Storage: log.Memory(), Applied: 1, State: state.Encode(), Self: self,
		ElectionTicks: electionTicks, TickTime: tick, Now: clock.Monotonic(), Fresh: true})
	check(t, err)
	a.stop, a.wake, a.fail, a.show = d.stop, d.wake, d.fail, func() {}
	d.init()
	d.status.Store(new(d.loop.core.Status(clock.Monotonic())))
	return d
}

// leadingDriver waits for a driver that leads.
func leadingDriver(t *testing.T, drivers []*driver) (leader *driver) {
	t.Helper()
	eventually(t, "a leader", func() bool {
		for _, d := range drivers {
			d.store.mu.Lock()
			leads := d.store.leads
			d.store.mu.Unlock()
			if leads && !d.cut.Load() && d.status.Load().Session != 0 {
				leader = d
				return true
			}
		}
		return false
	})
	return leader
}

func TestDriversCommit(t *testing.T) { inBubble(t, testDriversCommit) }

func testDriversCommit(t *testing.T) {
	drivers := startDrivers(t)
	leader := leadingDriver(t, drivers)
	var want []string
	for i := range 100 {
		want = append(want, fmt.Sprint("set ", i))
		check(t, leader.store.write(want[i]))
		check(t, leader.rep.Confirm(0))
	}
	for i, d := range drivers {
		eventually(t, fmt.Sprint("the batches at ", i), func() bool { return slices.Equal(d.store.content(), want) })
	}
}

// A leader that is cut off for less than another session keeps its batch; afterwards it leads or follows, and
// all agree.
func TestDriversHeal(t *testing.T) { inBubble(t, testDriversHeal) }

func testDriversHeal(t *testing.T) {
	drivers := startDrivers(t)
	leader := leadingDriver(t, drivers)
	check(t, leader.store.write("set before"))
	result := make(chan error, 1)
	leader.cut.Store(true)
	for _, d := range drivers { // none has a majority
		d.cut.Store(true)
	}
	go func() { result <- leader.store.write("set during") }()
	eventually(t, "the leader is deposed", func() bool { return leader.status.Load().Session == 0 })
	if err := leader.rep.Confirm(0); err == nil {
		t.Error("a deposed leader confirms a read")
	}
	for _, d := range drivers {
		d.cut.Store(false)
	}
	// Either the leader's log wins, or another session begins and its batch is void.
	select {
	case err := <-result:
		check(t, err)
		for _, d := range drivers {
			eventually(t, "the batch is everywhere", func() bool {
				return slices.Equal(d.store.content(), []string{"set before", "set during"})
			})
		}
	case err := <-leader.ended:
		if !errors.Is(err, errReload) {
			t.Error(err)
		}
	case <-time.After(drill.Patience):
		t.Fatal("the batch has no fate")
	}
}
