package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// TestClockSteps sets a machine's clock back and forth by hours while a keyspace is open and between
// runs, some of which end by a kill. Time must never run backwards nor stop. Items that have died by
// any rule at any moment must never come back, and all others must be there.
func TestClockSteps(t *testing.T) {
	t.Parallel()
	fsys := vfstest.NewMemory()
	drill.Seeds(t, 2, 4, 100, func(t *testing.T, seed uint64) {
		d := &clockDrill{t: t, r: rand.New(rand.NewPCG(seed, 6)), fs: fsys, dir: newDir(fsys), machine: &steppedMachine{wall: epoch * int64(time.Millisecond)}}
		d.play()
	})
}

// steppedMachine simulates the clocks of a machine. Safe for concurrent use.
type steppedMachine struct {
	mu         sync.Mutex // protects what follows
	wall, mono int64      // ns
}

func (m *steppedMachine) read() (wall, mono int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.wall, m.mono
}

func (m *steppedMachine) pass(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += int64(d)
	m.mono += int64(d)
}

// step sets the wall clock by up to twelve hours.
func (m *steppedMachine) step(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.wall += int64((r.Float64()*24 - 12) * float64(time.Hour))
}

// restart sets the monotonic clock anywhere, as another run of a program finds it.
func (m *steppedMachine) restart(r *rand.Rand) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.mono = r.Int64N(int64(100 * time.Hour))
}

type clockDrill struct {
	t       *testing.T
	r       *rand.Rand
	fs      vfs.FS
	dir     string
	machine *steppedMachine
	o       *opened
	latest  int64 // ms; what the clock has shown
	model   swapSide
}

const clockContainer = "stepped"

func (d *clockDrill) play() {
	d.start()
	d.o.policy(clockContainer, expiry.Forever)
	d.model = swapSide{def: expiry.Forever, items: make(map[string]Item)}
	for range 150 {
		switch d.r.IntN(12) {
		case 0:
			d.machine.step(d.r)
		case 1:
			d.model.removeDead(d.now())
			d.model.def = []expiry.TTL{expiry.Off, expiry.Forever, 2, 4000, 20_000}[d.r.IntN(5)]
			d.o.policy(clockContainer, d.model.def)
		case 2:
			d.restart()
		case 3:
			d.o.PurgeOnce()
		case 4, 5, 6:
			own := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, d.now() + 1 + d.r.Int64N(30_000_000), expiry.CapAt(d.now() + 1 + d.r.Int64N(30_000_000))}[d.r.IntN(5)]
			id := fmt.Sprint("id-", d.r.IntN(10))
			d.model.items[id] = d.o.put(clockContainer, id, "{}", own)
		default:
			before, passing := d.now(), time.Duration(d.r.IntN(3000))*time.Millisecond
			d.machine.pass(passing)
			if passed := d.now() - before; passed < passing.Milliseconds() {
				d.t.Fatalf("%d ms pass, the clock advances by %d", passing.Milliseconds(), passed)
			}
		}
		d.check()
	}
	d.o.stop()
}

// now reads the clock.
func (d *clockDrill) now() int64 {
	d.t.Helper()
	now := d.o.Now()
	if now < d.latest {
		d.t.Fatalf("it was %d, it is %d", d.latest, now)
	}
	d.latest = now
	return now
}

func (d *clockDrill) start() {
	d.t.Helper()
	clock := clock.SystemReading(0, d.machine.read, d.machine.pass)
	d.o = &opened{t: d.t, opt: Options{FS: d.fs, Dir: d.dir, Partitions: 2, Clock: clock, NoPurge: true}}
	d.o.start()
}

// restart ends a run, in order or by a kill, and starts another, between which the clocks are anywhere.
func (d *clockDrill) restart() {
	d.t.Helper()
	d.now()
	if d.r.IntN(2) == 0 {
		d.o.stop()
	} else {
		dir := newDir(d.fs)
		copyFolder(d.t, d.fs, d.dir, dir) // as a kill would leave it
		d.o.stop()
		d.dir = dir
	}
	d.machine.restart(d.r)
	if d.r.IntN(2) == 0 {
		d.machine.step(d.r)
	}
	d.start()
	d.now()
}

func (d *clockDrill) check() {
	d.t.Helper()
	d.model.removeDead(d.now())
	found := make(map[string]Item)
	for at, it := range d.o.dump() {
		found[at.id] = it
	}
	if !maps.Equal(found, d.model.items) {
		d.t.Fatalf("at %d there are %v, there should be %v", d.latest, found, d.model.items)
	}
}

// clockWorld is a keyspace on a machine whose clocks the test sets.
type clockWorld struct {
	*opened
	machine *steppedMachine
}

func openOnMachine(t *testing.T, change ...func(*Options)) *clockWorld {
	fsys := vfstest.NewMemory()
	w := &clockWorld{machine: &steppedMachine{wall: epoch * int64(time.Millisecond)}}
	w.opened = &opened{t: t, opt: Options{FS: fsys, Dir: newDir(fsys), Partitions: 2, Fsync: Always, NoPurge: true}}
	for _, f := range change {
		f(&w.opt)
	}
	w.boot()
	t.Cleanup(func() { w.stop() })
	return w
}

// boot starts a run, whose monotonic clock is another.
func (w *clockWorld) boot() {
	w.t.Helper()
	w.machine.mono = 77
	w.opt.Clock = clock.SystemReading(0, w.machine.read, w.machine.pass)
	w.start()
}

// kill ends a run as a kill does and starts the next with the wall clock set back.
func (w *clockWorld) kill(back time.Duration) {
	w.t.Helper()
	dir := newDir(w.opt.FS)
	copyFolder(w.t, w.opt.FS, w.opt.Dir, dir)
	w.stop()
	w.opt.Dir = dir
	w.machine.wall -= int64(back)
	w.boot()
}

// An item that a reply has shown to be dead stays dead after a kill. The wall clock may be set back a little
// before the next start, and no command may have run for long.
func TestDeadStaysDeadAfterAKill(t *testing.T) {
	t.Parallel()
	for _, back := range []time.Duration{time.Millisecond, 500 * time.Millisecond, 999 * time.Millisecond, time.Second, time.Hour} {
		for _, idle := range []time.Duration{0, time.Hour} {
			w := openOnMachine(t)
			w.machine.pass(idle)
			w.put("0", "early", "{}", w.Now()+300)
			w.put("0", "late", "{}", w.Now()+3000)
			w.machine.pass(299 * time.Millisecond)
			if !w.lives("0", "early") {
				t.Fatal("it is dead before its time")
			}
			w.machine.pass(time.Millisecond)
			if w.lives("0", "early") {
				t.Fatal("it lives beyond its time")
			}
			shown := w.Now()
			w.kill(back)
			if w.Now() < shown || w.lives("0", "early") {
				t.Errorf("set back by %v: it was %d, it is %d, and the dead lives: %v", back, shown, w.Now(), w.lives("0", "early"))
			}
			w.machine.pass(10 * time.Hour) // without commands
			if w.lives("0", "late") {
				t.Fatal("it lives beyond its time")
			}
			shown = w.Now()
			w.kill(back + 9*time.Hour)
			if w.Now() < shown || w.lives("0", "late") {
				t.Errorf("idle, then set back by %v: it was %d, it is %d, and the dead lives: %v", back, shown, w.Now(), w.lives("0", "late"))
			}
		}
	}
}

// The lease of the clock survives a checkpoint, which removes the journal that held it.
func TestLeaseSurvivesACheckpoint(t *testing.T) {
	t.Parallel()
	w := openOnMachine(t)
	w.machine.pass(time.Hour)
	w.lives("0", "any")
	w.machine.pass(time.Second) // as far as the lease goes
	w.lives("0", "any")
	shown := w.Now()
	for range 2 {
		drill.Check(t, w.Save())
	}
	w.kill(time.Hour)
	if w.Now() < shown {
		t.Errorf("it was %d, it is %d", shown, w.Now())
	}
}

// Restarts do not set the clock forward, after a kill or in good order.
func TestClockDoesNotDrift(t *testing.T) {
	t.Parallel()
	w := openOnMachine(t)
	for n := range 20 {
		w.machine.pass(time.Minute)
		w.put("0", "any", "{}", expiry.Never)
		before := w.machine.wall
		if n%2 == 0 {
			w.stop()
			w.boot()
		} else {
			w.kill(0)
		}
		if waited := time.Duration(w.machine.wall - before); waited > leaseTime || n%2 == 0 && waited > 0 {
			t.Errorf("restart %d waits for %v", n, waited)
		}
		if now := w.machine.wall / int64(time.Millisecond); w.Now() != now {
			t.Fatalf("it is %d, the clock shows %d", now, w.Now())
		}
	}
	for range 10 { // runs without commands
		before := w.machine.wall
		dir := newDir(w.opt.FS)
		copyFolder(t, w.opt.FS, w.opt.Dir, dir)
		drill.Check(t, w.Close())
		w.opt.Dir = dir
		w.opt.Clock = clock.SystemReading(0, w.machine.read, w.machine.pass)
		var err error
		if w.Keyspace, err = Open(w.opt); err != nil {
			t.Fatal(err)
		}
		if waited := time.Duration(w.machine.wall - before); waited > 0 {
			t.Errorf("a restart waits for %v, though nothing was leased", waited)
		}
	}
}

// A reply that shows a later time than the lease waits until the extension is committed, whichever
// transaction extended it. There is at most one extension a second.
func TestRepliesWaitForTheLease(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.Wait(o.journal.Last()))
	before := o.journal.Last()
	look := func(begin func(tx *Tx)) LSN {
		var tx Tx
		begin(&tx)
		return tx.Close()
	}
	begins := []func(tx *Tx){
		func(tx *Tx) { o.BeginNone(tx) },
		func(tx *Tx) { o.BeginSweep(tx) },
		func(tx *Tx) { o.BeginKey(tx, "a") },
		func(tx *Tx) { o.BeginKeys(tx, []string{"a", "b"}) },
		func(tx *Tx) { o.BeginAll(tx) },
	}
	for _, begin := range begins {
		o.clock.Advance(leaseTime + time.Millisecond)
		lsn := look(begin)
		if lsn <= before || o.Committed(lsn) {
			t.Fatalf("LSN %d after %d: it waits for nothing", lsn, before)
		}
		for _, other := range begins {
			o.clock.Advance(leaseTime / 5)
			if other := look(other); other != lsn {
				t.Fatalf("the next waits for %d, not for %d", other, lsn)
			}
		}
		drill.Check(t, o.Wait(lsn))
		if o.journal.Last() != lsn {
			t.Fatal("more than one extension within its time")
		}
		before = lsn
	}
}

// A report of a death waits until the lease covers its time.
func TestReportsOfDeathsWaitForTheLease(t *testing.T) {
	t.Parallel()
	var news LSN
	o := open(t, func(opt *Options) {
		opt.OnDeath = func(_ *Container, _ string, written LSN) { news = written }
	})
	o.putFor("0", "a", 10)
	o.clock.Advance(10 * time.Second)
	for range 10 {
		o.PurgeOnce()
	}
	if news == 0 || o.Committed(news) {
		t.Fatalf("the news wait for %d, the last that is committed is %d", news, o.journal.Committed())
	}
	drill.Check(t, o.Wait(news))
}

// While writes are refused the lease cannot be extended, and reads continue.
func TestReadsContinueWithoutALease(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	w := openOnMachine(t, func(opt *Options) { opt.FS, opt.preallocate = disk, -1 }) // so that writes extend the file
	w.put("0", "a", "{}", expiry.Never)
	disk.Most.Store(w.journal.Size())
	w.machine.pass(time.Hour)
	var tx Tx
	w.BeginKey(&tx, "a")
	if err := w.Wait(tx.Close()); err == nil {
		t.Fatal("the disk does not fail")
	}
	for range 3 {
		w.machine.pass(time.Hour)
		if !w.lives("0", "a") {
			t.Fatal("it is gone")
		}
	}
	disk.Most.Store(0)
	for w.Writable() != nil {
		w.journal.CommitAll()
	}
	w.machine.pass(time.Hour)
	w.lives("0", "a")
	shown := w.Now()
	w.kill(24 * time.Hour)
	if w.Now() < shown {
		t.Errorf("it was %d, it is %d", shown, w.Now())
	}
}
