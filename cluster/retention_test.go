package cluster

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/cluster/core"
	"mayfly/cluster/stores"
	"mayfly/expiry/clock"
	"mayfly/keyspace"
	"mayfly/keyspace/replica"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

func TestRetention(t *testing.T) {
	t.Parallel()
	r := retention{keep: 1000}
	const size = 100 // of an entry
	last := uint64(50)
	behind := func(index uint64) int64 { return int64(last-index) * size }
	status := func(p ...core.Progress) *core.Status { return &core.Status{Role: core.Leader, Progress: p} }
	expect := func(what string, index uint64, most int64) {
		t.Helper()
		if i, m := r.need(); i != index || m != most {
			t.Errorf("%s: needs the log after %d, %d bytes at most; want %d, %d", what, i, m, index, most)
		}
	}
	expect("at first", 0, 0)
	r.begin(2, 40, time.Second)
	r.begin(3, 45, time.Second)
	expect("two nodes", 40, mostRetained)
	r.size(2, 8*mostRetained)
	r.size(9, 1<<40)
	expect("large stores", 40, 2*mostRetained)
	last = 500
	r.update(status(core.Progress{ID: 2, Snapshot: true, Match: 45}, core.Progress{ID: 3, Match: 0, Heard: time.Minute}), behind, time.Minute)
	expect("under way", 40, 2*mostRetained)
	r.update(status(core.Progress{ID: 2, Match: 100}, core.Progress{ID: 3, Match: 60, Heard: time.Minute}), behind, 2*time.Minute)
	expect("they go on with the log", 60, 2*mostRetained)
	r.update(status(core.Progress{ID: 2, Match: 494}, core.Progress{ID: 3, Match: 496, Heard: time.Minute}), behind, 2*time.Minute)
	expect("one has caught up", 494, 2*mostRetained)
	r.update(status(core.Progress{ID: 2, Match: 496}), behind, 2*time.Minute)
	expect("both have", 0, 0)

	for what, end := range map[string]func(){
		"the node is gone":    func() { r.update(status(core.Progress{ID: 2, Snapshot: true}), behind, 2*time.Second+goneAfter) },
		"it was removed":      func() { r.update(status(core.Progress{ID: 3}), behind, time.Second) },
		"another node leads":  func() { r.update(&core.Status{Role: core.Follower}, behind, time.Second) },
		"the transfer failed": func() { r.end(2) },
	} {
		r.begin(2, 40, time.Second)
		r.update(status(core.Progress{ID: 2, Snapshot: true}), behind, time.Second+goneAfter)
		expect("before "+what, 40, mostRetained)
		end()
		expect(what, 0, 0)
	}

	r.begin(2, 40, time.Second)
	r.begin(3, 45, time.Second)
	if ids := r.missed(41); len(ids) > 0 {
		t.Errorf("%d are missed", ids)
	}
	if ids := r.missed(42); !slices.Equal(ids, []uint64{2}) {
		t.Errorf("%d are missed", ids)
	}
	expect("one is missed", 45, mostRetained)
	r.keep = mostRetained
	expect("a long log", 45, 2*mostRetained)
}

// A node with an empty folder catches up by one transfer of stores, however much is written while it loads
// them: the log keeps what comes after the stores, although repl-log-size is tiny.
func TestCatchUpWhileTheLeaderIsBusy(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	c := newTrio(t, "a", "b", "c")
	for _, n := range c.nodes {
		n.opt.LogSize = 64 << 10
	}
	c.startAll()
	body := strings.Repeat("x", 8<<10)
	written := make(chan struct{})
	stop := make(chan struct{})
	var writers sync.WaitGroup
	defer writers.Wait()
	defer close(stop)
	writers.Go(func() {
		for n := 0; !drill.Done(stop); n++ {
			for _, node := range c.nodes {
				if ks := node.keyspace(); ks != nil && ks.Leads() && node.put(fmt.Sprint("big", n%16), body) == nil {
					select {
					case written <- struct{}{}:
					default: // nobody counts
					}
				}
			}
		}
	})
	awaitWrites := func(n int64) {
		for range n {
			select {
			case <-written:
			case <-t.Context().Done():
			}
		}
	}
	lost := c.follower()
	lost.crash(t)
	check(t, os.RemoveAll(lost.dir))
	check(t, os.Mkdir(lost.dir, 0o700))
	installed := atomic.Int64{}
	open := lost.opt.Open
	lost.opt.Open = func(r replica.Replicator) (*keyspace.Keyspace, error) {
		if stores, err := filepath.Glob(filepath.Join(lost.dir, "partition-*.db")); err == nil && len(stores) > 0 {
			installed.Add(1)
			awaitWrites(16 * lost.opt.LogSize / int64(len(body)))
		}
		return open(r)
	}
	for _, n := range c.nodes {
		if n != lost { // what is on disk may be cut from the log
			writers.Go(func() {
				for {
					select {
					case <-stop:
						return
					case <-time.After(200 * time.Millisecond):
						if ks := n.keyspace(); ks != nil {
							_ = ks.Save() // the next one may succeed
						}
					}
				}
			})
		}
	}
	term := c.leader().View().Term
	lost.start(t)
	c.eventually("it has caught up and votes", func() bool {
		self := c.leader().View().Member(lost.name)
		return installed.Load() > 0 && self != nil && self.Voter
	})
	if n := installed.Load(); n != 1 && c.leader().View().Term == term { // another leader knows nothing of the transfer
		t.Errorf("%d transfers of stores", n)
	}
	inc := c.leader().running.Load()
	c.eventually("the log is cut again", func() bool {
		first, err := inc.disk.Memory().FirstIndex()
		memory, _ := inc.disk.Size()
		return err == nil && first > 2 && memory < 8*lost.opt.LogSize
	})
}

// A leader that is to stop does not finish the backup for a node that gets the stores.
func TestStopDuringABackup(t *testing.T) {
	t.Parallel()
	drill.Slow(t)
	begun, resume := make(chan struct{}), make(chan struct{})
	var copied atomic.Int64
	c := newTrio(t, "a", "b", "c")
	c.fs = &vfstest.Faulty{FS: vfs.OS, OnSync: func(f vfs.File) error {
		if strings.Contains(f.Name(), stores.Outgoing) && strings.HasSuffix(f.Name(), ".db") && copied.Add(1) == 1 {
			close(begun)
			<-resume
		}
		return nil
	}}
	c.startAll()
	c.leader()
	for i := range 20 {
		c.mustPut(fmt.Sprint("key", i), "value")
	}
	lost := c.follower()
	lost.crash(t)
	check(t, os.RemoveAll(lost.dir))
	check(t, os.Mkdir(lost.dir, 0o700))
	lost.start(t)
	receive(t, begun)
	leader := c.leader()
	inc := leader.running.Load()
	done := make(chan error, 1)
	go func() { done <- leader.Close(true) }()
	receive(t, inc.context.Done())
	close(resume)
	check(t, receive(t, done))
	leader.Node = nil
	if n := copied.Load(); n > 2 { // the second file is made before it is read
		t.Errorf("%d files were copied", n)
	}
}

// A leader whose disk has no room for a backup makes none for a node that needs the stores, until it has.
func TestLeaderWithoutRoomForABackup(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	var room, copied atomic.Int64
	c := newTrio(t, "a", "b", "c")
	c.fs = &vfstest.Faulty{FS: vfs.OS, OnSync: func(f vfs.File) error {
		if strings.Contains(f.Name(), stores.Outgoing) {
			copied.Add(1)
		}
		return nil
	}}
	for _, n := range c.nodes {
		n.opt.storesFS = &vfstest.Faulty{FS: vfs.OS, OnRoom: func() (free, size int64) { return room.Load(), 1 << 40 }}
	}
	c.startAll()
	away, body := c.leaveBehind()
	away.opt.storesFS = nil
	away.start(t)
	c.eventually("the leader refuses", func() bool { return strings.Contains(c.log.String(), "do not fit on the disk") })
	if n := copied.Load(); n > 0 {
		t.Errorf("%d files were forced to a disk without room", n)
	}
	room.Store(1 << 40)
	c.has(away, "big63", body)
}

// After a transfer of stores that has failed raft asks for the next one later and later, after one that has
// arrived at once. A failure long after the others is a first one.
func TestPausesAfterFailedStores(t *testing.T) { inBubble(t, testPausesAfterFailedStores) }

func testPausesAfterFailedStores(t *testing.T) {
	inc := &incarnation{node: &Node{options: Options{Dir: t.TempDir()}}, loop: &loop{woken: make(chan struct{}, 1)},
		stop: make(chan struct{}), sending: map[uint64]bool{}, pauses: map[uint64]storesPause{}}
	const to = 2
	ends := func(arrived bool) time.Duration {
		t.Helper()
		if !inc.beginStores(to) {
			t.Fatal("stores are under way")
		}
		began := clock.Monotonic()
		inc.storesDone(to, arrived)
		return (clock.Monotonic() - began) / time.Second
	}
	for i, want := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
		if got := ends(false); got != want || inc.sending[to] {
			t.Errorf("failure %d: %d s, want %d", i, got, want)
		}
	}
	if got := ends(true); got != 0 || inc.sending[to] {
		t.Errorf("they have arrived: %d s", got)
	}
	if got := ends(false); got != 1 {
		t.Errorf("the next failure: %d s", got)
	}
	ends(false)
	drill.Pass(longestStoresPause)
	if got := ends(false); got != 4 {
		t.Errorf("a failure soon after the others: %d s", got)
	}
	drill.Pass(longestStoresPause + time.Second)
	if got := ends(false); got != 1 {
		t.Errorf("a failure long after the others: %d s", got)
	}
	close(inc.stop)
	if got := ends(false); got != 0 || !inc.sending[to] {
		t.Errorf("the incarnation ends: %d s", got)
	}
}
