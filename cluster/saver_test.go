package cluster

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"mayfly/cluster/core"
	"mayfly/cluster/entry"
	"mayfly/keyspace"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"

	"go.etcd.io/raft/v3/raftpb"
)

// stallingLog is a raft log whose disk can stand still.
type stallingLog struct {
	raftLog
	free chan struct{} // empty while the disk stands or writes
}

func newStallingLog(log raftLog) *stallingLog {
	l := &stallingLog{log, make(chan struct{}, 1)}
	l.free <- struct{}{}
	return l
}

func (l *stallingLog) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	defer l.stall()()
	return l.raftLog.Save(hs, entries, snap)
}

// stall makes the disk stand for a while.
func (l *stallingLog) stall() (end func()) {
	<-l.free
	return func() { l.free <- struct{}{} }
}

// TestSlowDisks lets the disks of a leader, of a follower and of all nodes stand for several election
// timeouts: no node is deposed, reads go on, and a write is committed when a majority has it, by the leader
// itself when its own disk has.
func TestSlowDisks(t *testing.T) { inBubble(t, testSlowDisks) }

func testSlowDisks(t *testing.T) {
	drivers := startDrivers(t)
	leader := leadingDriver(t, drivers)
	check(t, leader.store.write("set first"))
	term := leader.status.Load().Term
	want := []string{"set first"}
	for _, tt := range []struct {
		name      string
		slow      func(*driver) bool
		committed bool // while the disks stand
	}{
		{"a follower", func(d *driver) bool { return d == drivers[0] && d != leader || d == drivers[1] && drivers[0] == leader }, true},
		{"the leader", func(d *driver) bool { return d == leader }, false},
		{"the followers", func(d *driver) bool { return d != leader }, false},
		{"all", func(*driver) bool { return true }, false},
	} {
		var ends []func()
		for _, d := range drivers {
			if tt.slow(d) {
				ends = append(ends, d.saver.log.(*stallingLog).stall())
			}
		}
		result := make(chan error, 1)
		text := fmt.Sprintf("set %s %s", tt.name, strings.Repeat("x", 100_000))
		want = append(want, text)
		go func() { result <- leader.store.write(text) }()
		for range 80 { // four times what deposes a leader
			if err := leader.rep.Confirm(0); err != nil {
				t.Fatalf("%s: a read at the leader: %v", tt.name, err)
			}
			drill.Pass(testTimeout / 20)
		}
		for i, d := range drivers {
			if s := d.status.Load(); s.Term != term || (s.Role == core.Leader) != (d == leader) {
				t.Errorf("%s: node %d is %s in term %d, before in term %d", tt.name, i, s.Role, s.Term, term)
			}
		}
		select {
		case err := <-result:
			if check(t, err); !tt.committed {
				t.Errorf("%s: a write was committed that no majority has on disk", tt.name)
			}
		default:
			if tt.committed {
				t.Errorf("%s: a write was not committed", tt.name)
			}
		}
		for _, end := range ends {
			end()
		}
		if !tt.committed {
			check(t, <-result)
		}
		for i, d := range drivers {
			eventually(t, fmt.Sprintf("%s: the batches at %d", tt.name, i), func() bool { return slices.Equal(d.store.content(), want) })
		}
	}
}

// TestSaverJoins shows that one write to disk serves what waits, and that what replaces entries is written
// after them.
func TestSaverJoins(t *testing.T) {
	t.Parallel()
	log := &listLog{}
	var acknowledged []int
	s := &saver{log: log, send: func(m []*raftpb.Message) { acknowledged = append(acknowledged, len(m)) }, arrived: make(chan struct{}, 1)}
	s.saved = func(*core.Save) {}
	push := func(term, first uint64, n int, size int) {
		save := &core.Save{HardState: &raftpb.HardState{Term: &term}, MustSync: true, After: []*raftpb.Message{{}}}
		for i := range uint64(n) {
			save.Entries = append(save.Entries, &raftpb.Entry{Index: new(first + i), Term: &term, Data: make([]byte, size)})
		}
		s.push(savings{save: save})
	}
	push(1, 1, 2, 10)
	push(1, 3, 1, 10)
	push(1, 4, 0, 0)
	push(1, 4, 3, 10)
	push(2, 5, 1, 10) // replaces
	push(2, 6, 1, mostJoined)
	push(2, 7, 1, 1)
	s.push(savings{durable: 3})
	push(2, 8, 1, 10)
	s.push(savings{save: &core.Save{Snapshot: &raftpb.Snapshot{Metadata: &raftpb.SnapshotMetadata{Index: new(uint64(20)), Term: new(uint64(2))}}}})
	push(2, 21, 1, 10)
	s.install = func(index, term uint64) error {
		log.calls = append(log.calls, fmt.Sprintf("install %d", index))
		return nil
	}
	var err error
	for step := s.next(); step != nil && err == nil; step = s.next() {
		err = s.do(step)
	}
	want := []string{"1-6 term 1", "5-5 term 2", "6-6 term 2", "7-7 term 2", "compact 3", "8-8 term 2", "install 20", "snapshot 20"}
	if !slices.Equal(log.calls, want) || !errors.Is(err, errInstall) {
		t.Errorf("%q, %v\nwant %q", log.calls, err, want)
	}
	if want := []int{4, 1, 1, 1, 1, 0}; !slices.Equal(acknowledged, want) {
		t.Errorf("%v messages are sent after each Save, want %v", acknowledged, want)
	}
}

// listLog notes what a saver does.
type listLog struct{ calls []string }

func (l *listLog) Save(hs *raftpb.HardState, entries []*raftpb.Entry, snap *raftpb.Snapshot) error {
	text := ""
	switch {
	case snap != nil:
		text = fmt.Sprintf("snapshot %d", snap.GetMetadata().GetIndex())
	default:
		text = fmt.Sprintf("%d-%d term %d", entries[0].GetIndex(), entries[len(entries)-1].GetIndex(), hs.GetTerm())
	}
	l.calls = append(l.calls, text)
	return nil
}

func (l *listLog) Compact(durable uint64, _ *raftpb.ConfState) error {
	l.calls = append(l.calls, fmt.Sprintf("compact %d", durable))
	return nil
}

// stallableLogs gives the nodes raft logs that a test may stall: the last one of each, by name.
func stallableLogs(c *trio) *sync.Map {
	var logs sync.Map
	for name, n := range c.nodes {
		n.opt.wrapLog = func(log raftLog) raftLog {
			stalling := newStallingLog(log)
			logs.Store(name, stalling)
			return stalling
		}
	}
	return &logs
}

// TestHangingDisk: a leader whose disk hangs keeps sending heartbeats, whether only its raft log waits for
// the disk or only its local journal. It says that it hangs, passes the lead on, answers those who ask it to,
// and takes part again later.
func TestHangingDisk(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	for _, what := range []string{"raft log", "journal"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newTrio(t, "a", "b", "c")
			logs := stallableLogs(c)
			var hangs atomic.Pointer[string] // the folder of the node whose journal waits
			began, ended := make(chan struct{}), make(chan struct{})
			begin := sync.OnceFunc(func() { close(began) })
			c.fs = &vfstest.Faulty{FS: vfs.OS, NoSync: true, OnWrite: func(f vfs.File, _ []byte, _ int64) error {
				if dir := hangs.Load(); dir != nil && strings.HasPrefix(f.Name(), *dir) {
					begin()
					<-ended
				}
				return nil
			}}
			c.startAll()
			c.mustPut("before", "1")
			c.converge()
			old := c.leader()
			goOn := func() { close(ended) }
			if what == "raft log" {
				value, _ := logs.Load(old.name)
				goOn = value.(*stallingLog).stall()
				begin()
			} else {
				hangs.Store(&old.dir)
			}
			goOn = sync.OnceFunc(goOn)
			t.Cleanup(goOn)
			hanging := make(chan error, 1)
			go func() { hanging <- old.put("hanging", "2") }()
			asked := make(chan error, 1)
			go func() {
				<-began
				asked <- old.Transfer(t.Context(), "")
			}()
			c.eventually("it says that its disk hangs", func() bool { return strings.Contains(old.View().Cause, "hangs") })
			c.eventually("another node leads and writes", func() bool {
				for _, n := range c.nodes {
					if n != old && n.View().Leads() && n.put("other", "3") == nil {
						return true
					}
				}
				return false
			})
			// On a busy machine the election may take longer than the request waits.
			late := func(err error) bool { return errors.Is(err, errElsewhere) || isPassing(err, "transfer") }
			if err := receive(t, asked); err != nil && !late(err) && what == "journal" { // where it comes after the hang has begun
				t.Errorf("CLUSTER TRANSFER: %v", err)
			}
			goOn()
			<-hanging // its fate is open
			c.allHave("other", "3")
			c.converge()
			c.eventually("all is well", func() bool { return old.View().Cause == "" })
		})
	}
}

// A leader whose disk is full waits in its handover for as long as that takes, for another handover or for
// its transactions to end. It gives up when the disk hangs, too: then it makes another node the leader
// without a handover. A handover that waits for another one ends with its context.
func TestFullDiskThatHangs(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	for _, what := range []string{"another handover", "a transaction"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			c := newTrio(t, "a", "b", "c")
			logs := stallableLogs(c)
			var full atomic.Pointer[string] // the folder of the node whose disk is full
			c.fs = &vfstest.Faulty{FS: vfs.OS, NoSync: true, OnWrite: func(f vfs.File, _ []byte, _ int64) error {
				if dir := full.Load(); dir != nil && strings.HasPrefix(f.Name(), *dir) {
					return syscall.ENOSPC
				}
				return nil
			}}
			c.startAll()
			c.mustPut("before", "1")
			c.converge()
			old := c.leader()
			inc := old.running.Load()
			waits, end := func() bool { return true }, func() { <-old.transfer }
			if what == "another handover" {
				old.transfer <- struct{}{} // it waits for the disk
				ended, end := context.WithCancel(t.Context())
				end()
				if old.StepDown(ended) {
					t.Error("it steps down during another handover")
				}
			} else {
				tx := beginBeside(old.keyspace(), "full")
				waits, end = func() bool { return inc.applier.led.Load() == 0 }, func() { tx.Close() } // the drain has begun
			}
			end = sync.OnceFunc(end)
			t.Cleanup(end)
			full.Store(&old.dir)
			_ = old.put("full", "2") // its fate is open
			c.eventually("it begins a handover", func() bool { return strings.Contains(c.log.String(), "passes the lead on") && waits() })
			value, _ := logs.Load(old.name)
			goOn := sync.OnceFunc(value.(*stallingLog).stall())
			t.Cleanup(goOn)
			_ = inc.propose(entry.Announce, entry.Member{Name: "d", Addr: "127.0.0.1:1"}) // for the raft log: the journal takes nothing
			c.eventually("another node leads and writes", func() bool {
				for _, n := range c.nodes {
					if n != old && n.View().Leads() && n.put("other", "3") == nil {
						return true
					}
				}
				return false
			})
			end()
			full.Store(nil)
			goOn()
			c.allHave("other", "3")
			c.converge()
		})
	}
}

// beginBeside begins a transaction that an item does not wait for.
func beginBeside(ks *keyspace.Keyspace, id string) *keyspace.Tx {
	for n := 0; ; n++ {
		tx := new(keyspace.Tx)
		if ks.BeginKey(tx, fmt.Sprint("key", n)); !tx.Covers(id) {
			return tx
		}
		tx.Close()
	}
}
