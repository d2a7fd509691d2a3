package storage

import (
	"cmp"
	"slices"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/store"
)

// A checkpoint is due when the journal reaches its limit, or this long after the last one if anything was
// written since.
const (
	checkpointInterval = time.Minute
	checkpointRetry    = 5 * time.Second
)

// checkpointState is the state of checkpoints. Safe for concurrent use but for what the engine's lock
// protects.
type checkpointState struct {
	done   atomic.Int64
	last   atomic.Int64 // ms; the end of the last one
	failed lastError
	asked  atomic.Bool // SaveInBackground waits for one

	awaited atomic.Int64 // those who wait for the end of one

	// The engine's lock protects what follows: changes that are captured from the partitions but not
	// confirmed in their stores. A failed checkpoint leaves them to the next.
	captured  [][]aof.Op // by partition
	catalogue []aof.Op
	lsn       journal.LSN // all changes up to it are captured or in the stores
	below     uint64      // journals of lower generations can be removed once the stores have the changes

	records store.LiveRecords // of the catalogue's store

	// The moments (ms) at which what is captured became waste, by partition; 0: it makes none.
	waste          []int64
	catalogueWaste int64
	moments        wasteMoments // what the catalogue says, or is about to
}

// Cadence is when the next checkpoint is due. The zero value is that of a start.
type Cadence struct {
	waited time.Duration // since the last attempt
	due    time.Duration // of waited, for a checkpoint of what was written; 0: checkpointInterval
	pause  time.Duration // of waited, for one because of old waste
}

// Run makes checkpoints and compactions when they are due, until the engine is stopped.
func (e *Engine) Run() {
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var c Cadence
	for {
		select {
		case <-e.Options.Stop:
			return
		case <-e.wake:
			e.saveIfDue(&c, true)
		case <-e.full:
			e.saveIfDue(&c, false)
		case <-ticker.C:
			e.Second(&c)
		}
	}
}

// Second does what is due each second. Run calls it, or a test, from one goroutine at a time.
func (e *Engine) Second(c *Cadence) {
	c.waited += time.Second
	e.Disk.Refill()
	e.LimitJournal() // others may fill the disk
	e.Options.Tick()
	e.watchWaste()
	e.saveIfDue(c, false)
}

// saveIfDue makes a checkpoint and compactions if they are due. woken says that a checkpoint is wanted.
func (e *Engine) saveIfDue(c *Cadence, woken bool) {
	asked := e.checkpoint.asked.Load() // before the checkpoint: it is for what was written by then
	old := c.waited >= c.pause && e.oldWaste(e.Stores()) != nil
	if !asked && (!woken && !old && !e.Due(c.waited >= cmp.Or(c.due, checkpointInterval)) || e.Err() != nil) {
		return
	}
	*c = Cadence{}
	err := e.Checkpoint()
	if asked {
		e.checkpoint.asked.Store(false)
	}
	if err != nil {
		e.Options.Log.Error().Err(err).Msg("checkpoint failed, it will be tried again; the journal keeps the changes")
		c.due, c.pause = checkpointRetry, checkpointRetry
		return
	}
	e.CompactWasteful()
	if e.oldWaste(e.Stores()) != nil { // a compaction has failed
		c.pause = checkpointInterval
	}
	if e.Disk.Refill(); e.Disk.Full() {
		c.due = time.Second // what was deleted meanwhile makes room
	}
}

// Due reports whether a checkpoint is due. An idle server writes nothing. Uncommitted changes count too: it
// may be that no reply waits for them, as for the lease of the time of a death. So do items that the purge
// has removed: no journal has them.
func (e *Engine) Due(waitedEnough bool) bool {
	size := e.Journal.Size() + e.Journal.Waiting()
	return waitedEnough && (!e.Journal.Idle() || e.deletes()) || size >= e.Journal.Limit()
}

// LimitJournal sets the size of the journal at which a checkpoint is due, by the size of the stores and the
// room on the disk.
func (e *Engine) LimitJournal() {
	live, _ := store.Sizes(e.Stores())
	free, _, err := e.Options.FS.Room(e.Options.Dir)
	if err != nil {
		free = 0
	}
	e.Journal.SetLimit(e.Disk.bound(journal.LimitFor(live, e.Options.Least), free))
}

// Wake asks for a checkpoint soon. Locks may be held.
func (e *Engine) Wake() { signal(e.wake) }

// Save makes a checkpoint: it applies all changes since the last one to the stores, forces them to disk, and
// removes the journals that are no longer needed. It blocks until that is done; transactions continue
// meanwhile.
//
//  1. Rotate the journal: everything in the older files has been applied in memory.
//  2. Capture the changes that the stores lack, piece by piece, from memory. Their state is newer than the
//     old journals, so none of their changes is missed.
//  3. Commit the journal and force it to disk, so that the stores never get ahead of it. A crash during step
//     4 leaves a mixture; replaying the journals turns it into exactly the committed state.
//  4. Apply the changes to the stores and force those to disk, in any order.
//  5. Write the ends of the stores into the manifest, and remove the old journals.
//
// After a failure the journals stay, and the next checkpoint does the rest.
func (e *Engine) Save() error {
	e.checkpoint.awaited.Add(1)
	defer e.checkpoint.awaited.Add(-1)
	return e.Checkpoint()
}

// Checkpoint is Save in the background. While nobody waits for its end, it rests between its steps, and
// writes wasteful stores anew.
func (e *Engine) Checkpoint() error {
	e.Lock()
	defer e.Unlock()
	return e.saveMakingRoom()
}

// SaveLocked is Save without the reserve of a full disk. The engine must be locked.
func (e *Engine) SaveLocked() (err error) {
	f := &e.checkpoint
	defer func() { f.failed.set(err) }()
	if e.dropped {
		return errDropped
	}
	began := e.Options.Now()
	left := f.captured != nil // by a failed attempt, which is finished first
	if left {
		if err := e.fits(); err != nil { // each new journal takes room, too
			return err
		}
	}
	generation, err := e.Journal.Rotate()
	if err != nil {
		return err
	}
	if err := e.files.nameJournal(generation); err != nil {
		return err
	}
	if !left {
		e.capture(generation)
	}
	if err := e.Journal.CommitAll(); err != nil {
		return err
	}
	if err := e.Journal.Sync(); err != nil {
		return err
	}
	if err := e.fits(); err != nil {
		return err
	}
	if err := e.applyCaptured(); err != nil {
		e.noteBroken()
		return err
	}
	f.captured, f.catalogue = nil, nil
	e.LimitJournal()
	f.done.Add(1)
	f.last.Store(e.Options.Now())
	if err := e.files.dropJournals(f.below); err != nil {
		return err
	}
	if !left {
		e.waste.noteJournal(e.Journal, began)
		return nil
	}
	return e.SaveLocked()
}

// capture captures the changes that the stores lack, those of the catalogue first. It may capture items of a
// container that is made or dropped later: the journal that stays has that change.
func (e *Engine) capture(generation uint64) {
	f := &e.checkpoint
	f.lsn = e.Journal.Full() // later commits may have more changes
	now := e.Options.Now()
	records, gone := e.memory.Changes()
	f.catalogue = append(f.catalogue, records...)
	if f.captured == nil {
		f.captured = make([][]aof.Op, len(e.partitions))
	}
	for i, p := range e.partitions {
		ops, live := e.capturePartition(p)
		e.items[i].SetLive(live)
		f.captured[i] = ops
	}
	for _, t := range gone {
		ops := &f.captured[t.Partition]
		*ops = e.captureDropped(t, *ops)
	}
	f.below = generation
	e.captureWaste(records, now)
}

// rewriteWasteful writes those stores anew from memory that a compaction would follow next: what is captured
// need not be appended to them first. One that fails keeps its captured changes. It does so while nobody
// waits: to append is less work, and a stop must not take as long as all data. It allows half of the waste
// that compactions allow: so journals may be as large as the living data, and the folder stays below three
// times that.
func (e *Engine) rewriteWasteful() {
	f, when := &e.checkpoint, *e.compaction.when.Load()
	pacing := when
	when.Percentage = (when.Percentage + 1) / 2
	more := make(map[*store.Store]int64, len(e.items))
	for i, s := range e.items {
		more[s] = bytesOf(f.captured[i])
	}
	rest := slices.Clone(e.items)
	for !e.Disk.Full() && !e.hurries() {
		s := when.Next(e.Stores(), rest, false, func(s *store.Store) int64 { return more[s] })
		if s == nil {
			return
		}
		rest = slices.DeleteFunc(rest, func(other *store.Store) bool { return other == s })
		if e.compact(s, func() error { return e.RewriteStore(s, e.compactionPacer(s, pacing)) }) == nil {
			i := slices.Index(e.items, s)
			f.captured[i], f.waste[i], more[s] = nil, 0, 0
		}
	}
}

// hurries reports whether somebody waits for the end of a checkpoint, as a stop does.
func (e *Engine) hurries() bool {
	select {
	case <-e.Options.Stop:
		return true
	default:
		return e.checkpoint.asked.Load() || e.checkpoint.awaited.Load() > 0
	}
}

// applyCaptured applies the captured changes to the stores and syncs them: it writes one while others are
// forced to disk. It returns the first error, after it has tried all stores.
func (e *Engine) applyCaptured() error {
	f := &e.checkpoint
	if err := e.catalogue.Apply(f.catalogue); err != nil {
		return err
	}
	if err := e.catalogue.Sync(uint64(f.lsn)); err != nil {
		return err
	}
	e.catalogue.AddLive(f.records.Count(f.catalogue))
	f.catalogue = nil // confirmed: not written again if a partition fails
	noteWaste(e.catalogue, &f.catalogueWaste)
	e.rewriteWasteful()
	apply := func(i int) error { return e.items[i].Apply(f.captured[i]) }
	force := func(i int) error {
		err := e.items[i].Sync(uint64(f.lsn))
		if err == nil {
			f.captured[i] = nil
			noteWaste(e.items[i], &f.waste[i])
		}
		return err
	}
	if !e.Disk.Full() {
		return store.ApplyAndSync(len(e.items), apply, force)
	}
	// One after the other: a compaction between them writes the manifest, which names all stores.
	return store.ApplyAndSync(len(e.items), func(i int) error {
		if err := e.applyInLittleRoom(i); err != nil {
			return err
		}
		return force(i)
	}, func(int) error { return nil })
}
