package keyspace

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/undo"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// powerCuts is at how many fsyncs the drills cut the power, for each policy.
func powerCuts() int { return drill.Pick(15, 40, 1000) }

// TestPowerCut cuts the power at each fsync while several goroutines write, change rules, drop and exchange
// containers, and others make checkpoints, compact and purge. It then opens three images of the disk. They
// have only the bytes that were forced to disk, all bytes, or a random part of the others, names and torn
// files included. At some the power is cut again at each fsync of the start.
//
//   - At always, every acknowledged transaction is there; at everysec, and while the policy changes
//     repeatedly, every one that was forced to disk.
//   - The transactions are a prefix of history: none is there in part, none without all earlier ones of all
//     goroutines.
//   - No item that they delete, or that is dead, is back.
//   - A log has exactly the deaths of its container, in every other round what was deleted too, each once and
//     with its moment, and the entries that a reader has seen: at always all, at everysec those that were
//     forced to disk. Others may be logged anew, with the same etag.
//   - At always the time is no earlier than any reply has shown, although the wall clock has been set back.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, policy := range []struct {
		name    string
		fsync   Fsync
		changes bool
	}{{"always", Always, false}, {"everysec", EverySec, false}, {"changing", EverySec, true}} {
		t.Run(policy.name, func(t *testing.T) {
			t.Parallel()
			seed := drill.Seed(t)
			d := &powerDrill{t: t, fsync: policy.fsync, changes: policy.changes, r: rand.New(rand.NewPCG(seed, 0))}
			deaths := powerCuts() >= 40
			zeros := policy.fsync == Always || policy.changes // are preallocated, if not at each moment of a policy that changes
			for round := uint64(0); (d.cuts < powerCuts() || (zeros && d.preallocated == 0 || deaths && d.deaths == 0) && d.cuts < 1000) && !t.Failed(); round++ {
				d.run(seed + round)
			}
			t.Logf("%d power cuts at an fsync, %d of them while starting, %d after a failed fsync; %d folders opened, %d of them with zeros behind the journal; up to %d deaths, of which %d had been read",
				d.cuts+d.again, d.again, d.failed, d.images, d.preallocated, d.deaths, d.seen)
			if deaths && d.deaths == 0 || d.seen == 0 && powerCuts() >= 1000 {
				t.Error("nothing has died, or was read in the log")
			}
			if zeros && d.preallocated == 0 {
				t.Error("no folder had any")
			}
		})
	}
}

// powerDrill is the keyspace under test, its workers, and the results.
type powerDrill struct {
	t       *testing.T
	fsync   Fsync      // at the beginning
	changes bool       // and then another, again and again
	r       *rand.Rand // used with the disk's mutex held
	clock   *clock.Manual
	ks      *Keyspace
	workers []*powerWorker
	ledger  *deathLedger
	turns   turns

	cuts, again, images int
	failed              int // cuts after a failed fsync
	preallocated        int // folders whose newest journal ended in zeros
	roundEnds           int // cuts at which the round ends

	deaths int // the most in a log after a cut
	seen   int // the most entries that were guaranteed

	forced LSN // the last commit that was forced to disk in this round

	shown atomic.Int64 // ms; the latest time that a reply has shown
}

// run lets all workers work on a new folder until there were enough power cuts, or for a limited time.
func (d *powerDrill) run(seed uint64) {
	t := d.t
	d.clock = clock.NewManual(epoch)
	d.workers = nil
	for n := range 3 {
		d.workers = append(d.workers, newPowerWorker(n, rand.New(rand.NewPCG(seed, uint64(n+1)))))
	}
	d.ledger = newDeathLedger(rand.New(rand.NewPCG(seed, 98)))
	d.shown.Store(0)
	d.forced = 0
	d.ks, d.turns = nil, newTurns()
	d.roundEnds = min(d.cuts+500, max(powerCuts(), d.cuts+15))
	disk := vfstest.NewMemory()
	disk.BeforeSync = d.cut
	// Zeros are used up often, and end anywhere in a sector.
	ks, err := Open(Options{FS: disk, Dir: vfstest.Dir, preallocate: 50_000, Partitions: 3, Fsync: d.fsync, Clock: d.clock, ExpireEffort: 10})
	drill.Check(t, err)
	drill.Check(d.t, ks.SetUndoWindow(undo.MaxWindow), d.ledger.begin(ks))
	ks.storage.Lock()
	ks.storage.Options.Piece = 2
	ks.storage.Unlock()
	d.ks = ks

	var all sync.WaitGroup
	for _, w := range d.workers {
		all.Go(func() {
			for d.turns.take() {
				drill.Report(t, w.transact(ks), d.ask(ks))
			}
		})
	}
	all.Go(func() {
		for d.turns.take() {
			drill.Report(t, d.ledger.transact(ks, d.clock, d.fsync == Always))
		}
	})
	all.Go(func() { d.disturb(rand.New(rand.NewPCG(seed, 99))) })
	all.Wait()
	if err := ks.Close(); err != nil { // the power is cut here, too
		t.Error(err)
	}
}

// ask is a command that only reads.
func (d *powerDrill) ask(ks *Keyspace) error {
	var tx Tx
	ks.BeginNone(&tx)
	now := tx.Now()
	if err := ks.Wait(tx.Close()); err != nil {
		return err
	}
	for shown := d.shown.Load(); now > shown && !d.shown.CompareAndSwap(shown, now); shown = d.shown.Load() {
	}
	return nil
}

// turns are those of the transactions of a drill: each takes one, and each cut allows some more. What a drill
// costs is thus of its cuts, and not of how far the writers come meanwhile.
type turns struct {
	free chan struct{}
	stop chan struct{} // closed when there have been enough cuts
}

func newTurns() turns {
	return turns{make(chan struct{}, 10), make(chan struct{})}
}

// allow gives as many turns as may be taken between two cuts.
func (t turns) allow() {
	for len(t.free) < cap(t.free) {
		t.free <- struct{}{}
	}
}

// take waits for a turn; false ends a worker.
func (t turns) take() bool {
	select {
	case <-t.free:
		return true
	case <-t.stop:
		return false
	}
}

// disturb lets time pass and runs the background work of a keyspace more often.
func (d *powerDrill) disturb(r *rand.Rand) {
	if err := d.ks.Save(); err != nil { // before which nothing is compacted
		d.t.Error(err)
	}
	d.ks.SetCompaction(Compaction{Percentage: 20, MinSize: 1}) // so that a checkpoint writes stores anew
	for !drill.Done(d.turns.stop) {
		var err error
		if d.changes {
			d.ks.SetFsync([]Fsync{Always, EverySec}[r.IntN(2)])
		}
		switch r.IntN(8) {
		case 0:
			err = d.ks.storage.Checkpoint()
		case 1:
			if err = d.ks.Save(); err == nil {
				err = d.ks.storage.CompactAll()
			}
		case 2: // not right after a checkpoint: of some items the journal alone knows what they are
			stores := d.ks.storage.Stores()
			err = d.ks.storage.CompactStore(stores[r.IntN(len(stores))], nil)
		case 7: // as if it were damaged
			d.ks.storage.Lock()
			err = d.ks.storage.RewriteStore(d.ks.storage.Stores()[r.IntN(4)], nil)
			d.ks.storage.Unlock()
		case 6:
			d.ks.PurgeOnce()
		case 3:
			err = d.ks.journal.Sync() // as everysec does each second
		default:
			d.clock.Advance(time.Duration(r.IntN(600)) * time.Millisecond)
		}
		drill.Report(d.t, err)
	}
}

// cut is called before an fsync: it opens the images that a power cut may leave.
func (d *powerDrill) cut(disk vfstest.Disk, path string) error {
	if drill.Done(d.turns.stop) {
		return nil
	}
	d.turns.allow()
	guaranteed := d.guarantees(disk)
	d.look(disk.Least(), guaranteed, d.cuts%10 == 0)
	d.look(disk.Some(d.r), guaranteed, d.cuts%10 == 5)
	if d.cuts%4 == 0 {
		d.look(disk.All(), guaranteed, false)
	}
	if d.cuts%20 == 2 { // as a kill leaves it: what the start has read need not be on disk
		d.look(disk.Clone(), guaranteed, true)
	}
	if d.cuts%5 == 4 && path != vfstest.Dir { // and the fsync has failed before
		left, r := disk.Clone(), d.r
		if d.failed++; d.failed%2 == 0 {
			r = nil
		}
		left.Lose(path, r)
		d.look(left, guaranteed, true)
	}
	if d.cuts++; d.cuts >= d.roundEnds || d.t.Failed() {
		close(d.turns.stop)
	}
	return nil
}

// guarantees are the guarantees that must survive a power cut.
type guarantees struct {
	numbers []int // of the last transactions, by worker
	deaths  ledgerGuarantees
	time    int64 // ms
}

// noteForced records the last commit that is on disk with all earlier ones.
func (d *powerDrill) noteForced(disk vfstest.Disk) {
	least := disk.Least()
	files, err := journal.Files(least, vfstest.Dir)
	if err != nil {
		return // it is not made yet
	}
	for _, f := range files {
		content := vfstest.Read(d.t, least, f.Path)
		err := aof.EachSeal(bytes.NewReader(content), 0, int64(len(content)), func(s aof.Seal) (stop bool) {
			d.forced = max(d.forced, LSN(s.LSN))
			return false
		})
		drill.Report(d.t, err)
	}
}

func (d *powerDrill) guarantees(disk vfstest.Disk) (p guarantees) {
	if d.fsync == Always {
		p.time = d.shown.Load()
	}
	d.noteForced(disk)
	for _, w := range d.workers {
		w.mu.Lock()
		last := w.acknowledged
		if d.fsync == EverySec {
			last = 0
			for n, v := range w.history {
				if v.lsn != 0 && v.lsn <= d.forced {
					last = n
				}
			}
		}
		w.mu.Unlock()
		p.numbers = append(p.numbers, last)
	}
	p.deaths = d.ledger.guarantees(d.forced)
	return p
}

// look opens a folder after a power cut or a kill, and compares it with the histories. If again is true the
// power is cut at each fsync while it is opened and closed.
func (d *powerDrill) look(left *vfstest.Memory, guaranteed guarantees, again bool) {
	d.images++
	if files, err := journal.Files(left, vfstest.Dir); err == nil && len(files) > 0 {
		newest := vfstest.Read(d.t, left, files[len(files)-1].Path)
		if len(newest) > 0 && newest[len(newest)-1] == 0 {
			d.preallocated++
		}
	}
	before := left.Clone()
	if again {
		left.BeforeSync = func(disk vfstest.Disk, _ string) error {
			d.again++
			d.look(disk.Least(), guaranteed, false)
			d.look(disk.Some(d.r), guaranteed, false)
			return nil
		}
	}
	if err := d.check(left, guaranteed); err != nil {
		kept, _ := os.MkdirTemp("", "mayfly-power-kept-")
		vfstest.Copy(d.t, before, vfstest.Dir, vfs.OS, kept)
		d.t.Errorf("cut %d: %v\nwhat was left is in %s", d.cuts, err, kept)
	}
}

// check opens a folder and compares it with the histories.
func (d *powerDrill) check(left *vfstest.Memory, guaranteed guarantees) (err error) {
	clock := clock.NewManual(epoch)
	ks, err := Open(Options{FS: left, Dir: vfstest.Dir, Partitions: 3, Clock: clock, NoPurge: true})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ks.Check(), ks.Close()) }()
	if now := ks.Now(); now < guaranteed.time {
		return fmt.Errorf("it is %d ms earlier than it was", guaranteed.time-now)
	}
	var found []int
	for n, w := range d.workers {
		number, err := w.check(ks, guaranteed.numbers[n])
		if err != nil {
			return fmt.Errorf("worker %d: %w", n, err)
		}
		found = append(found, number)
	}
	if left.BeforeSync != nil { // what was read is guaranteed
		guaranteed.numbers = found
		left.Look(func(disk vfstest.Disk) {
			d.look(disk.Least(), guaranteed, false)
			d.look(disk.Some(d.r), guaranteed, false)
		})
	}
	n, err := d.ledger.check(ks, clock, guaranteed.deaths)
	d.deaths, d.seen = max(d.deaths, n), max(d.seen, len(guaranteed.deaths.seen))
	return errors.Join(err, checkBeginning(d.workers, found))
}

// checkBeginning checks that if a transaction of one worker is there, so are those of all others that
// were committed before it. LSNs give the order; those with the same are committed together.
func checkBeginning(workers []*powerWorker, found []int) error {
	there, missing := LSN(0), ^LSN(0)
	for n, w := range workers {
		w.mu.Lock()
		there = max(there, w.history[found[n]].lsn)
		if next := found[n] + 1; next < len(w.history) && w.history[next].lsn != 0 {
			missing = min(missing, w.history[next].lsn)
		}
		w.mu.Unlock()
	}
	if there >= missing {
		return fmt.Errorf("commit %d is there, commit %d is not: transactions %v are the last", there, missing, found)
	}
	return nil
}

// powerWorker has two containers of its own and writes to them in transactions, each of which leaves
// its number in the first.
type powerWorker struct {
	names [2]string
	r     *rand.Rand

	mu           sync.Mutex // protects what follows
	history      []version  // by number; the first is the state without any
	acknowledged int        // number of the last
}

// version is the state of a worker's containers after a transaction.
type version struct {
	lsn   LSN // 0 until it is known
	sides [2]*swapSide
	undo  [2][]*swapSide // what Undo would bring back, newest last; nil for a rule
}

// change adds a change that can be taken back: a side that was flushed or dropped, nil for a rule.
func (v *version) change(i int, side *swapSide) {
	undo := append(slices.Clone(v.undo[i]), side)
	v.undo[i] = undo[max(0, len(undo)-expiry.MostWindows):]
}

const numberID = "number"

func newPowerWorker(n int, r *rand.Rand) *powerWorker {
	return &powerWorker{names: [2]string{fmt.Sprint("left-", n), fmt.Sprint("right-", n)}, r: r, history: make([]version, 1)}
}

// transact runs a transaction and, mostly, waits for it.
func (w *powerWorker) transact(ks *Keyspace) error {
	last := len(w.history) // only this goroutine appends
	before := w.history[last-1]
	var tx Tx
	if w.r.IntN(3) == 0 || before.sides[0] == nil {
		ks.BeginAll(&tx)
	} else {
		ids := []string{numberID}
		for n := range powerIDs {
			ids = append(ids, powerID(n))
		}
		ks.BeginKeys(&tx, ids)
	}
	v := version{undo: before.undo}
	for i, side := range before.sides {
		if side != nil {
			v.sides[i] = &swapSide{side.def, maps.Clone(side.items)}
			v.sides[i].removeDead(tx.Now())
		}
	}
	if tx.held.All() {
		w.changeContainers(&tx, &v)
	}
	for range w.r.IntN(6) {
		w.changeItem(&tx, &v)
	}
	w.put(&tx, &v, 0, numberID, fmt.Sprint(last), expiry.Never)
	w.mu.Lock()
	w.history = append(w.history, v)
	w.mu.Unlock()
	lsn := tx.Close()
	w.mu.Lock()
	w.history[last].lsn = lsn
	w.mu.Unlock()
	if w.r.IntN(3) == 0 {
		return nil
	}
	err := ks.Wait(lsn)
	if err == nil {
		w.mu.Lock()
		w.acknowledged = last
		w.mu.Unlock()
	}
	return err
}

const powerIDs = 6

func powerID(n int) string { return fmt.Sprint("id-", n) }

// changeContainers changes the worker's containers at random, and creates the first if it does not exist.
func (w *powerWorker) changeContainers(tx *Tx, v *version) {
	i := w.r.IntN(2)
	def := []expiry.TTL{expiry.Off, expiry.Forever, 1, 2}[w.r.IntN(4)]
	c := tx.Container(w.names[i])
	switch n := w.r.IntN(5); {
	case w.r.IntN(3) == 0 && w.undo(tx, v, i):
	case c == nil:
		w.create(tx, v, i, def)
	case n == 0:
		tx.Drop(c)
		v.change(i, v.sides[i])
		v.sides[i] = nil
	case n == 1:
		if !tx.whole(c).empty() {
			v.change(i, &swapSide{v.sides[i].def, maps.Clone(v.sides[i].items)})
		}
		tx.Flush(c)
		clear(v.sides[i].items)
	case n == 2 && v.sides[0] != nil && v.sides[1] != nil:
		tx.Swap(tx.Container(w.names[0]), tx.Container(w.names[1]))
		a, b := v.sides[0], v.sides[1]
		a.items, b.items = b.items, a.items
		for _, side := range v.sides {
			side.removeDead(tx.Now()) // by the other side's rule
		}
		v.undo = [2][]*swapSide{}
	default:
		if def != v.sides[i].def {
			v.change(i, nil)
		}
		tx.SetPolicy(c, def, expiry.Strict)
		v.sides[i].def = def
		v.sides[i].removeDead(tx.Now())
	}
	if v.sides[0] == nil {
		w.create(tx, v, 0, def)
	}
}

// undo takes back that a container was flushed or dropped, if that is its newest change and nothing is in the
// way.
func (w *powerWorker) undo(tx *Tx, v *version, i int) bool {
	last := len(v.undo[i]) - 1
	if last < 0 || v.undo[i][last] == nil {
		return false
	}
	if side := v.sides[i]; side != nil && len(side.items) > 0 {
		return false
	}
	done, err := tx.Undo(w.names[i], "")
	if errors.Is(err, undo.ErrExists) && v.sides[i] != nil {
		return false // it was dropped, and made anew
	}
	if err != nil || done == nil {
		panic(fmt.Sprint("undo: ", done, err))
	}
	before := v.undo[i][last]
	v.undo[i] = v.undo[i][:last:last]
	v.sides[i] = &swapSide{before.def, maps.Clone(before.items)}
	v.sides[i].removeDead(tx.Now())
	return true
}

func (w *powerWorker) create(tx *Tx, v *version, i int, def expiry.TTL) {
	tx.CreateContainer(w.names[i], def, expiry.Strict)
	v.sides[i] = &swapSide{def, make(map[string]Item)}
}

// changeItem puts or deletes an item.
func (w *powerWorker) changeItem(tx *Tx, v *version) {
	i, id := w.r.IntN(2), powerID(w.r.IntN(powerIDs))
	if v.sides[i] == nil {
		return
	}
	if w.r.IntN(3) == 0 {
		tx.Delete(tx.Container(w.names[i]), id)
		delete(v.sides[i].items, id)
		return
	}
	own := []int64{expiry.Inherit, expiry.Never, tx.Now() + 1 + w.r.Int64N(3000), expiry.CapAt(tx.Now() + 1 + w.r.Int64N(3000))}[w.r.IntN(4)]
	size := w.r.IntN(100)
	if w.r.IntN(5) == 0 {
		size = w.r.IntN(2 * memtable.LargeBody) // several sectors
	}
	body := fmt.Sprintf("%0*d", size, len(w.history))
	if it, ok := tx.Get(tx.Container(w.names[i]), id); ok && w.r.IntN(3) == 0 {
		body = it.Body // of a large one only the header is written
	}
	w.put(tx, v, i, id, body, own)
}

func (w *powerWorker) put(tx *Tx, v *version, i int, id, body string, own int64) {
	v.sides[i].items[id] = tx.Put(tx.Container(w.names[i]), id, Plain, body, own)
}

// check compares the worker's containers with the history and returns the number of the last transaction in
// them, which must not be less than the guaranteed one.
func (w *powerWorker) check(ks *Keyspace, guaranteed int) (number int, err error) {
	var tx Tx
	ks.BeginAll(&tx)
	defer tx.Close()
	if c := tx.Container(w.names[0]); c != nil {
		it, ok := tx.Get(c, numberID)
		if !ok {
			return 0, errors.New("a container is there without the number that was written with it")
		}
		if _, err := fmt.Sscan(it.Body, &number); err != nil {
			return 0, err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if number < guaranteed || number >= len(w.history) {
		return 0, fmt.Errorf("transaction %d is the last of %d, %d was guaranteed", number, len(w.history)-1, guaranteed)
	}
	for i, want := range w.history[number].sides {
		c := tx.Container(w.names[i])
		if (c == nil) != (want == nil) {
			return 0, fmt.Errorf("after transaction %d container %s is there: %v", number, w.names[i], c != nil)
		}
		if c == nil {
			continue
		}
		if c.Policy().Default != want.def {
			return 0, fmt.Errorf("after transaction %d the default of %s is %v, not %v", number, w.names[i], c.Policy().Default, want.def)
		}
		now := &swapSide{want.def, maps.Clone(want.items)}
		now.removeDead(tx.Now())
		found := make(map[string]Item)
		tx.Scan(c, 0, 1<<30, func(id string, it Item) { found[id] = it })
		if !maps.Equal(found, now.items) {
			return 0, fmt.Errorf("after transaction %d container %s holds %.2000v\nnot %.2000v", number, w.names[i], found, now.items)
		}
	}
	return number, nil
}
