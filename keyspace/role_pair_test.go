package keyspace

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/storage"
	"mayfly/test/drill"
	"mayfly/vfs"
)

// sameAs compares what lives on two nodes at the time of one.
func (n *node) sameAs(other *node) {
	n.t.Helper()
	now := n.Now()
	a, items := n.DigestAt(now)
	b, others := other.DigestAt(now)
	if a != b || items != others {
		n.t.Errorf("%d items live at %d, on the other node %d: %s", items, now, others, difference(other.describe(now, true), n.describe(now, true)))
	}
	drill.Report(n.t, n.Check(), other.Check())
}

func (n *node) catalogue(f func(tx *Tx)) LSN {
	var tx Tx
	n.BeginAll(&tx)
	f(&tx)
	return tx.Close()
}

// TestLeadersFollowEachOther: etags and time ascend across leaders whose machines' clocks differ by an hour,
// and nothing dead lives again.
func TestLeadersFollowEachOther(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	nodes := []*node{newNode(t, log), newNode(t, log), newNode(t, log)}
	nodes[1].clock.Advance(time.Hour)
	var etag, version uint64
	var now int64
	for turn := range 12 {
		n := nodes[turn%3]
		n.lead()
		if at := n.Now(); at < now {
			t.Fatalf("leader %d begins at %d, the last one was at %d", turn, at, now)
		}
		dying := fmt.Sprint("dying", turn)
		n.mustWait(n.catalogue(func(tx *Tx) {
			c := tx.Container("0")
			tx.SetPolicy(c, expiry.TTL(1000+turn), expiry.Strict)
			if c.Etag() <= etag {
				t.Errorf("the etag %x follows %x", c.Etag(), etag)
			}
			etag = c.Etag()
			it := tx.Put(c, dying, Plain, "1", expiry.ExpireAt(tx.Now(), 1))
			if it.Version <= version {
				t.Errorf("the version %x follows %x", it.Version, version)
			}
			version = it.Version
		}))
		n.mustWait(n.put("a", fmt.Sprint(turn)))
		n.clock.Advance(2 * time.Second)
		n.sweep()
		if body, lsn := n.get(dying); body != "" || n.Wait(lsn) != nil {
			t.Errorf("%s is not dead", dying)
		}
		now = n.Now()
		n.Follow()
		if n.Leads() || n.Unsettled() {
			t.Error("the former leader leads, or is unsettled")
		}
		for _, other := range nodes {
			other.follow()
			if body, _ := other.get(dying); body != "" && other.Now() >= now {
				t.Errorf("%s lives on a follower at %d", dying, other.Now())
			}
		}
		for _, other := range nodes {
			other.sameAs(n)
		}
	}
	for _, n := range nodes {
		n.abandon()
	}
}

// TestLeaseEndsWhereTheNextLeaderBegins: what a leader has removed from memory because it was dead is dead at
// the next leader, whose machine's clock is behind: no touch may follow that the former leader cannot apply.
func TestLeaseEndsWhereTheNextLeaderBegins(t *testing.T) {
	t.Parallel()
	for _, purge := range []bool{true, false} {
		log := newFakeLog()
		a, b := newNode(t, log), newNode(t, log)
		a.lead()
		var tx Tx
		a.BeginKey(&tx, "k")
		tx.Put(tx.Container("0"), "k", Plain, strings.Repeat("x", 100_000), expiry.ExpireAt(tx.Now(), 60))
		a.mustWait(tx.Close())
		b.follow()
		a.clock.Advance(time.Minute)
		if purge {
			a.PurgeOnce()
		} else {
			a.get("k")
		}
		drill.Check(t, a.Settle(a.journal.Last()))
		a.Follow()
		b.lead()
		b.BeginKey(&tx, "k")
		if it, ok := tx.Get(tx.Container("0"), "k"); ok {
			tx.Put(tx.Container("0"), "k", Plain, it.Body, expiry.Never)
		}
		b.mustWait(tx.Close())
		a.follow()
		a.sameAs(b)
		a.abandon()
		b.abandon()
	}
}

// TestFollowersChangeNothing: what a follower is asked for, and what it does by itself, changes nothing.
func TestFollowersChangeNothing(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	died := 0
	count := func(o *Options) { o.OnDeath = func(*Container, string, LSN) { died++ } }
	a, b := newNode(t, log, count), newNode(t, log, count)
	a.lead()
	drill.Check(t, a.SetUndoWindow(5), b.SetUndoWindow(5))
	a.mustWait(a.catalogue(func(tx *Tx) {
		logged := tx.CreateContainer("logged", 10, expiry.Strict)
		drill.Check(t, tx.SetLog(logged, LogSettings{Seconds: 60, MaxLen: 100}))
		tx.Put(logged, "dies", Plain, "1", 0)
		gone := tx.CreateContainer("gone", 0, expiry.Strict)
		tx.Put(gone, "x", Plain, "1", 0)
		tx.Drop(gone)
		tx.Put(tx.Container("0"), "dies", Plain, "1", expiry.ExpireAt(tx.Now(), 10))
		tx.Put(tx.Container("0"), "stays", Plain, "1", 0)
	}))
	b.follow()
	a.clock.Advance(time.Minute)
	a.mustWait(a.put("late", "1")) // before the sweep: of a moment before
	a.sweep()
	a.mustWait(a.put("later", "1")) // of the present
	b.follow()
	if b.Now() != a.Now() {
		t.Fatalf("the follower is at %d, the leader at %d", b.Now(), a.Now())
	}
	last, began, deaths := b.journal.Last(), b.Position(), died
	b.SetEviction(eviction.Options{Policy: eviction.AllKeysRandom, Samples: 5})
	var tx Tx
	for name, f := range map[string]func(){
		"put":     func() { b.BeginKey(&tx, "k"); tx.Put(tx.Container("0"), "k", Plain, "1", 0) },
		"delete":  func() { b.BeginKey(&tx, "stays"); tx.Delete(tx.Container("0"), "stays") },
		"create":  func() { b.BeginAll(&tx); tx.CreateContainer("new", 0, expiry.Strict) },
		"policy":  func() { b.BeginAll(&tx); tx.SetPolicy(tx.Container("0"), 5, expiry.Strict) },
		"flush":   func() { b.BeginAll(&tx); tx.Flush(tx.Container("0")) },
		"flushed": func() { b.BeginAll(&tx); tx.FlushAll() },
		"undo": func() {
			b.BeginAll(&tx)
			if _, err := tx.Undo("gone", ""); err != nil && !nothingToUndo(err) {
				t.Error(err)
			}
		},
	} {
		f()
		changes := tx.group.Size() > 0 || tx.changes.Any()
		if err := tx.Veto(); changes && err != replica.ErrFollower {
			t.Errorf("%s: the veto is %v", name, err)
		}
		if lsn := tx.Close(); changes && (lsn != storage.Refused || b.Wait(lsn) != replica.ErrFollower) {
			t.Errorf("%s: Close returns %d", name, lsn)
		}
	}
	b.PurgeOnce()
	b.EndWindows()
	if lsn, open := b.EndAllWindows(); lsn != 0 || open {
		t.Error("a follower ends windows")
	}
	b.Reclaim(0)
	if lsn, _ := b.Evict(0, func(*Container, string) { t.Error("a follower evicts") }); lsn != 0 {
		t.Errorf("evicting returns %d", lsn)
	}
	b.tick()
	b.sweep()
	b.KeepDeadUntil(b.Now() + 1000)
	b.KeepDeadUntil(0)
	for body, lsn := range map[string]bool{"stays": true, "dies": false} {
		if got, l := b.get(body); (got != "") != lsn || l != 0 {
			t.Errorf("%s is %q, LSN %d", body, got, l)
		}
	}
	drill.Report(t, b.Save(), b.storage.CompactAll())
	if got := b.journal.Last(); got != last || b.Position() != began || b.Unsettled() || died != deaths {
		t.Errorf("the follower has written %d commits, is at %+v and has reported %d deaths", got-last, b.Position(), died-deaths)
	}
	a.PurgeOnce() // the leader buries, and ends windows
	a.tick()
	b.follow()
	if a.sameAs(b); died == deaths {
		t.Error("the leader has reported no deaths")
	}
	a.abandon()
	b.abandon()
}

// TestMomentsAreComplete: every transaction with a time before the moment of an entry is in it or in one
// before it, whatever runs beside the sweep.
func TestMomentsAreComplete(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	n.opt.Clock = clock.NewSystem(0)
	n.abandon()
	n.open()
	n.lead()
	type written struct {
		now int64
		lsn LSN
	}
	var workers, sweeper sync.WaitGroup
	histories := make([][]written, 8)
	stop := make(chan struct{})
	sweeper.Go(func() {
		for !drill.Done(stop) {
			n.sweep()
		}
	})
	for w := range histories {
		workers.Go(func() {
			var tx Tx
			for i := range 1500 {
				if w == 0 {
					n.BeginAll(&tx)
				} else {
					n.BeginKeys(&tx, []string{fmt.Sprint(i), fmt.Sprint(w)})
				}
				now := tx.Now()
				tx.Put(tx.Container("0"), fmt.Sprint(w), Plain, "1", 0)
				lsn := tx.Close()
				histories[w] = append(histories[w], written{now, lsn})
				if i%3 == 0 {
					drill.Report(t, n.Wait(lsn))
				}
			}
		})
	}
	workers.Wait()
	close(stop)
	sweeper.Wait()
	drill.Check(t, n.Settle(n.journal.Last()))
	latest, moments := int64(0), map[int64]bool{}
	before := map[LSN]int64{} // the latest moment of an entry before that of the LSN
	for _, e := range log.after(0) {
		if e.seat == n.seat {
			before[LSN(e.lsn)] = latest
			latest = max(latest, e.Moment)
			moments[e.Moment] = true
		}
	}
	for _, h := range histories {
		for _, w := range h {
			m, ok := before[w.lsn]
			if !ok || w.now < m {
				t.Fatalf("a transaction of %d is in batch %d, behind one of the moment %d", w.now, w.lsn, m)
			}
		}
	}
	if len(moments) < 10 {
		t.Errorf("only %d moments", len(moments))
	}
	n.abandon()
}

// TestFollowIsABarrier: after Follow nothing joins the journal, and each transaction was committed or
// refused.
func TestFollowIsABarrier(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log, func(o *Options) { o.noSweeps = false })
	n.opt.Clock = clock.NewSystem(0)
	n.abandon()
	n.open()
	for range 20 {
		n.lead()
		var workers sync.WaitGroup
		var kept, refused atomic.Int64
		began := make(chan struct{}, 100)
		for w := range 8 {
			workers.Go(func() {
				var tx Tx
				for i := 0; ; i++ {
					id := fmt.Sprint(w, "-", i%50)
					n.BeginKey(&tx, id)
					tx.Put(tx.Container("0"), id, Plain, "1", 0)
					lsn := tx.Close()
					switch err := n.Wait(lsn); {
					case err == nil:
						kept.Add(1)
					case errors.Is(err, replica.ErrFollower):
						refused.Add(1)
						return
					case !errors.Is(err, replica.ErrNoMajority):
						t.Error(err)
						return
					}
					select {
					case began <- struct{}{}:
					default:
					}
				}
			})
		}
		<-began
		n.Follow()
		last := n.journal.Last()
		workers.Wait()
		drill.Check(t, n.Settle(last))
		if n.journal.Last() != last || n.Unsettled() {
			t.Fatalf("commit %d was drawn after %d, at which the node began to follow", n.journal.Last(), last)
		}
		if refused.Load() != 8 {
			t.Errorf("%d workers were refused", refused.Load())
		}
	}
	n.abandon()
}

// TestAbandonWithTransactions: Abandon does not wait for transactions, which end with errors, and the folder
// can be opened.
func TestAbandonWithTransactions(t *testing.T) {
	t.Parallel()
	for round := range drill.Pick(2, 10, 10) {
		log := newFakeLog()
		n := newNode(t, log, func(o *Options) { o.noSweeps, o.noCheckpoints, o.NoPurge = false, false, false })
		n.lead()
		if round%2 == 1 {
			log.set(func() { log.fail = func() error { return replica.ErrNoMajority } })
		}
		var workers sync.WaitGroup
		var writes atomic.Int64
		stop := make(chan struct{})
		for w := range 6 {
			workers.Go(func() {
				var tx Tx
				for i := 0; !drill.Done(stop); i++ {
					id := fmt.Sprint(w, "-", i%500)
					n.Throttle(0)
					n.BeginKey(&tx, id)
					tx.Put(tx.Container("0"), id, Plain, "1", 0)
					lsn := tx.Close()
					writes.Add(1)
					if i%100 == 0 {
						_ = n.Wait(lsn)
					}
					runtime.Gosched() // or one core does little but this
				}
			})
		}
		workers.Go(func() {
			for i := 0; !drill.Done(stop); i++ {
				_ = n.Save()
				_ = n.Backup(filepath.Join(newDir(n.opt.FS), fmt.Sprint(i)))
				runtime.Gosched()
			}
		})
		drill.Await(t, "writes", func() bool { return writes.Load() >= 500 })
		n.abandon()
		at := n.Position()
		files, err := journal.Files(n.opt.FS, n.dir)
		drill.Check(t, err)
		more := writes.Load() + 500
		drill.Await(t, "more writes", func() bool { return writes.Load() >= more })
		var tx Tx
		n.BeginKey(&tx, "a")
		tx.Put(tx.Container("0"), "a", Plain, "1", 0)
		if err := n.Wait(tx.Close()); err == nil {
			t.Error("a write is committed after Abandon")
		}
		if err := n.Save(); err == nil {
			t.Error("a checkpoint is made after Abandon")
		}
		close(stop)
		workers.Wait()
		if again, err := journal.Files(n.opt.FS, n.dir); err != nil || !slices.Equal(files, again) {
			t.Errorf("the journals have changed after Abandon: %v, %v: %v", files, again, err)
		}
		if round%2 == 1 && at.Index > log.last().Index {
			t.Errorf("the folder is at %+v, the log at %+v", at, log.last())
		}
		n.open()
		if n.Position() != at {
			t.Errorf("it opens at %+v, not at %+v", n.Position(), at)
		}
		n.abandon()
	}
}

// TestConfirm: a reply of a leader needs a confirmation that it has led since; one of a follower does not.
func TestConfirm(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	if _, lsn := n.get("a"); lsn != 0 {
		t.Errorf("a follower's read has LSN %d", lsn)
	}
	n.lead()
	n.mustWait(n.put("a", "1"))
	_, read := n.get("a")
	if read == 0 || !n.Committed(read) {
		t.Errorf("a leader's read of what is committed has LSN %d", read)
	}
	n.mustWait(read)
	var tx Tx
	n.BeginNone(&tx)
	if lsn := tx.Close(); lsn == 0 {
		t.Error("a leader's transaction has LSN 0")
	}
	lost := errors.New("no lease")
	log.set(func() { log.confirm = func() error { return lost } })
	for name, wait := range map[string]func(LSN) error{"Wait": n.Wait, "CommitNow": n.CommitNow} {
		if err := wait(read); err != lost {
			t.Errorf("%s without a confirmation: %v", name, err)
		}
	}
	drill.Report(t, n.Settle(read))
	log.set(func() { log.confirm = nil })
	n.Follow()
	if err := n.Wait(read); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("the read of a leader that follows since: %v", err)
	}
	n.lead()
	if err := n.Wait(read); !errors.Is(err, replica.ErrNoMajority) {
		t.Errorf("the read of a leader that has followed since: %v", err)
	}
	n.Follow()
	if _, lsn := n.get("a"); lsn != 0 {
		t.Errorf("a follower's read has LSN %d", lsn)
	}
	n.abandon()
}

// TestDeposedWithChanges: what a deposed leader has uncommitted is committed later, or the entries of others
// are refused.
func TestDeposedWithChanges(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	a, b := newNode(t, log), newNode(t, log)
	a.lead()
	b.follow()
	log.set(func() { log.fail = func() error { return replica.ErrNoMajority } })
	lsn := a.put("x", "1")
	if err := a.Wait(lsn); !errors.Is(err, replica.ErrNoMajority) {
		t.Fatal(err)
	}
	a.Follow()
	if _, lsn := a.get("x"); lsn == 0 || a.Wait(lsn) == nil {
		t.Error("a follower shows what is not committed")
	}
	log.set(func() { log.fail = nil })
	if err := a.Settle(lsn); err != nil || a.Unsettled() { // it was proposed, and is committed
		t.Error("a batch that is committed later:", err)
	}
	log.set(func() { log.fail = func() error { return replica.ErrNoMajority } })
	a.lead2(t)
	log.set(func() { log.fail = nil })
	b.lead()
	b.mustWait(b.put("y", "1"))
	at := a.Position()
	if e := log.after(at.Index)[0]; !errors.Is(a.Apply(e.batch, replica.Tail{Position: e.Position}), journal.ErrUnsettled) {
		t.Error("entries of others are applied to what is not committed")
	}
	a.abandon()
	a.open()
	a.follow()
	a.sameAs(b)
	a.abandon()
	b.abandon()
}

// lead2 begins a session of the node that is deposed before its first batch is committed.
func (n *node) lead2(t *testing.T) {
	t.Helper()
	n.log.begin(n.seat)
	n.follow()
	if err := n.Lead(); !errors.Is(err, replica.ErrNoMajority) || n.Leads() || !n.Unsettled() {
		t.Errorf("Lead without a majority: %v, it leads: %v", err, n.Leads())
	}
}

// TestFolderOfANode: such a folder is backed up with its place, checked, and opened without a cluster, where
// it loses the place.
func TestFolderOfANode(t *testing.T) {
	t.Parallel()
	log := newFakeLog()
	n := newNode(t, log)
	n.lead()
	n.mustWait(n.put("a", "1"))
	backup := filepath.Join(newDir(n.opt.FS), "backup")
	drill.Check(t, n.Backup(backup))
	at := n.Position()
	for _, dir := range []string{backup, n.dir} {
		if tail, err := ReadReplica(n.opt.FS, dir); err != nil || tail.Position != at || string(tail.State) != "members" {
			t.Errorf("%s is at %+v: %v", dir, tail, err)
		}
	}
	if text, err := vfs.ReadFile(n.opt.FS, filepath.Join(backup, "format")); err != nil || !strings.Contains(string(text), "format 5\n") {
		t.Errorf("%s %v", text, err)
	}
	n.abandon()

	o := &opened{t: t, clock: clock.NewManual(n.clock.Now()), opt: Options{FS: n.opt.FS, Dir: n.dir, Clock: n.clock, NoPurge: true, noCheckpoints: true}}
	o.start()
	if body, ok := o.get("0", "a"); !ok || body.Body != "1" || o.Position().Index != 0 {
		t.Errorf("a is %+v, the position %+v", body, o.Position())
	}
	o.put("0", "alone", "{}", 0)
	if tail, err := ReadReplica(n.opt.FS, n.dir); err != nil || tail.Index != 0 || tail.State != nil {
		t.Errorf("opened alone the folder is at %+v: %v", tail, err)
	}
	o.stop()
	if tail, err := ReadReplica(n.opt.FS, n.dir); err != nil || tail.Index != 0 || tail.State != nil {
		t.Errorf("closed alone the folder is at %+v: %v", tail, err)
	}
	n.open()
	if n.Position().Index != 0 || n.ReplicaState() != nil {
		t.Errorf("in a cluster again it is at %+v", n.Position())
	}
	n.abandon()

	again := newFakeLog() // a new cluster from the backup
	c := &node{t: t, log: again, clock: clock.NewManual(epoch), dir: backup, opt: n.opt}
	c.opt.Dir, c.opt.Clock = backup, c.clock
	c.open()
	drill.Check(t, c.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}, State: []byte("new")}))
	c.abandon()
	c.open()
	if p := c.Position(); p.Index != 1 || p.Term != 1 || p.Moment != at.Moment || string(c.ReplicaState()) != "new" {
		t.Errorf("the new cluster begins at %+v", p)
	}
	c.lead()
	if body, _ := c.get("a"); body != "1" {
		t.Errorf("a is %q", body)
	}
	drill.Report(t, c.Close())
	if tail, err := ReadReplica(n.opt.FS, backup); err != nil || tail.Position != again.last() {
		t.Errorf("the new cluster is at %+v: %v", tail, err)
	}
}

// TestSingleFolderJoins: the folder of a single node founds a cluster at the time that it has promised.
func TestSingleFolderJoins(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.putFor("0", "a", 5)
	o.clock.Advance(3 * time.Second)
	o.lives("0", "a") // a reply shows the time
	dir := newDir(o.opt.FS)
	drill.Check(t, o.Backup(filepath.Join(dir, "b")))
	log := newFakeLog()
	n := &node{t: t, log: log, clock: clock.NewManual(1), dir: filepath.Join(dir, "b")} // a clock that is behind by years
	n.opt = Options{FS: o.opt.FS, Dir: n.dir, Clock: n.clock, NoPurge: true, noCheckpoints: true, noSweeps: true}
	n.open()
	if n.Position().Index != 0 || n.Now() < epoch+3000 {
		t.Errorf("it opens at %+v, at %d", n.Position(), n.Now())
	}
	drill.Check(t, n.Found(replica.Tail{Position: replica.Position{Index: 1, Term: 1}}))
	if n.Position().Moment < epoch+3000 {
		t.Errorf("it begins at %+v", n.Position())
	}
	n.lead()
	if body, _ := n.get("a"); body == "" || n.Now() < epoch+3000 || n.Now() > epoch+10_000 {
		t.Errorf("a is %q at %d", body, n.Now())
	}
	n.abandon()
}

// TestScrubOfANode: a damaged journal is replaced on a follower without a commit of its own, and on a leader
// through the log.
func TestScrubOfANode(t *testing.T) {
	t.Parallel()
	for _, leads := range []bool{true, false} {
		log := newFakeLog()
		n := newNode(t, log)
		n.lead()
		n.mustWait(n.put("a", "1"))
		if !leads {
			n.Follow()
		}
		at := n.Position()
		files := n.journal.Files()
		path := files[len(files)-1].Path
		text, err := vfs.ReadFile(n.opt.FS, path)
		drill.Check(t, err)
		text[len(text)/2] ^= 1
		drill.Check(t, writeFile(n.opt.FS, path, text))
		drill.Report(t, n.storage.Scrub.Scrub(t.Context(), nil))
		drill.Report(t, n.Damage())
		if p := n.Position(); n.Unsettled() || !leads && p != at || leads && p == at {
			t.Errorf("leader %v: it is at %+v, was at %+v", leads, p, at)
		}
		want := n.Position()
		n.abandon()
		n.open()
		if body, _ := n.get("a"); body != "1" || n.Position() != want {
			t.Errorf("a is %q at %+v", body, n.Position())
		}
		n.abandon()
	}
}

// TestThrottleOfALeader: what waits is bounded without a majority too.
func TestThrottleOfALeader(t *testing.T) {
	t.Parallel()
	const mostReplicated = 4 << 20
	log := newFakeLog()
	n := newNode(t, log)
	n.lead()
	body := strings.Repeat("x", 20_000)
	for i := range 2000 {
		n.Throttle(0)
		n.put(fmt.Sprint(i%10), body)
	}
	if waiting := n.journal.Waiting(); waiting > mostReplicated+100_000 {
		t.Errorf("%d bytes wait", waiting)
	}
	drill.Report(t, n.Settle(n.journal.Last()))
	most := 0
	for _, e := range log.after(0) {
		most = max(most, len(e.batch))
	}
	if most > mostReplicated+100_000 || most < 1<<20 {
		t.Errorf("the longest entry has %d bytes", most)
	}
	if refused := LSN(math.MaxUint64); refused != storage.Refused {
		t.Error(refused)
	}
	n.abandon()
}
