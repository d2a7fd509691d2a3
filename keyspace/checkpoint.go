package keyspace

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/figures"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// A checkpoint is due when the journal reaches its limit, or this long after the last one if anything was written since.
const (
	checkpointInterval = time.Minute
	checkpointRetry    = 5 * time.Second
)

// checkpointState is the state of checkpoints.
type checkpointState struct {
	done   atomic.Int64
	last   atomic.Int64 // ms; the end of the last one
	failed figures.LastError
	asked  atomic.Bool // SaveInBackground waits for one
	least  int64       // journal.MinLimit, or less in a test; set before anything is written
	pieces capturing   // captureInPieces; in a test others; set before anything is written
	mu     sync.Mutex  // held during a checkpoint; protects what follows, and the stores

	// Changes that are captured from the partitions but not confirmed in their stores. A failed checkpoint
	// leaves them to the next.
	captured  [][]aof.Op // by partition
	catalogue []aof.Op
	lsn       LSN    // all changes up to it are captured or in the stores
	below     uint64 // journals of lower generations can be removed once the stores have the changes

	records store.LiveRecords // of the catalogue's store
}

// runCheckpoints makes checkpoints when they are due, until the keyspace is closed.
func (ks *Keyspace) runCheckpoints() {
	defer ks.background.Done()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	var waited time.Duration // since the last attempt
	due := checkpointInterval
	for {
		woken := false
		select {
		case <-ks.stop:
			return
		case <-ks.wake:
			woken = true
		case <-ks.full:
		case <-ticker.C:
			waited += time.Second
			ks.disk.Refill()
			ks.watchClock()
		}
		asked := ks.checkpoint.asked.Load() // before the checkpoint: it is for what was written by then
		if !asked && (!woken && !ks.checkpointDue(waited >= due) || ks.failed() != nil) {
			continue
		}
		waited, due = 0, checkpointInterval
		err := ks.Save()
		if asked {
			ks.checkpoint.asked.Store(false)
		}
		if err != nil {
			ks.opt.Log.Error().Err(err).Msg("checkpoint failed, it will be tried again; the journal keeps the changes")
			due = checkpointRetry
			continue
		}
		ks.compactWasteful()
		if ks.disk.Refill(); ks.disk.Full() {
			due = time.Second // what was deleted meanwhile makes room
		}
	}
}

// checkpointDue reports whether a checkpoint is due. An idle server writes nothing. Uncommitted changes count too:
// it may be that no reply waits for them, as for the lease of the time of a death.
func (ks *Keyspace) checkpointDue(waitedEnough bool) bool {
	size := ks.journal.Size() + ks.journal.Waiting()
	return !ks.journal.Idle() && waitedEnough || size >= ks.journal.Limit()
}

// limitJournal sets the size of the journal at which a checkpoint is due, by the size of the stores.
func (ks *Keyspace) limitJournal() {
	live, _ := store.Sizes(ks.stores())
	ks.journal.SetLimit(ks.disk.Bound(journal.LimitFor(live, ks.checkpoint.least)))
}

// wakeCheckpoint asks for a checkpoint soon.
func (ks *Keyspace) wakeCheckpoint() { signal(ks.wake) }

// signal sends unless the channel is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Save makes a checkpoint: it applies all changes since the last one to the stores, forces them to disk, and removes
// the journals that are no longer needed. It blocks until that is done; transactions continue meanwhile.
//
//  1. Rotate the journal: everything in the older files has been applied in memory.
//  2. Capture the changes that the stores lack, piece by piece, from memory. Their state is newer than the old
//     journals, so none of their changes is missed.
//  3. Commit the journal and force it to disk, so that the stores never get ahead of it. A crash during step 4
//     leaves a mixture; replaying the journals turns it into exactly the committed state.
//  4. Apply the changes to the stores and force those to disk, in any order.
//  5. Write the ends of the stores into the manifest, and remove the old journals.
//
// After a failure the journals stay, and the next checkpoint does the rest.
func (ks *Keyspace) Save() error {
	ks.checkpoint.mu.Lock()
	defer ks.checkpoint.mu.Unlock()
	return ks.saveMakingRoom()
}

// saveLocked: checkpoint.mu must be held.
func (ks *Keyspace) saveLocked() (err error) {
	f := &ks.checkpoint
	defer func() { f.failed.Set(err) }()
	generation, err := ks.journal.Rotate()
	if err != nil {
		return err
	}
	if err := ks.files.NameJournal(generation); err != nil {
		return err
	}
	left := f.captured != nil // by a failed attempt, which is finished first
	if !left {
		ks.capture(generation)
	}
	if err := ks.journal.CommitAll(); err != nil {
		return err
	}
	if err := ks.journal.Sync(); err != nil {
		return err
	}
	if err := ks.applyCaptured(); err != nil {
		ks.noteBroken()
		return err
	}
	f.captured, f.catalogue = nil, nil
	ks.limitJournal()
	f.done.Add(1)
	f.last.Store(ks.Now())
	if err := ks.files.DropJournals(f.below); err != nil || !left {
		return err
	}
	return ks.saveLocked()
}

// noteBroken refuses writes until a restart if a store cannot be used any more: the journal would grow without bound.
func (ks *Keyspace) noteBroken() {
	for _, s := range ks.stores() {
		if err := s.Broken(); err != nil {
			ks.broken.Store(&err)
			return
		}
	}
}

// capture captures the changes that the stores lack, those of the catalogue first. It may capture items of a
// container that is made or dropped later: the journal that stays has that change.
func (ks *Keyspace) capture(generation uint64) {
	f := &ks.checkpoint
	f.lsn = ks.journal.Full() // later commits may have more changes
	var tx Tx
	ks.lockAll(&tx)
	cat := &ks.catalogue
	dirty := cat.dirty
	cat.dirty = make(map[uint32]*Container)
	gone := cat.dropped
	cat.dropped = nil
	f.catalogue = append(f.catalogue, aof.Op{Key: record.ClockKey, Rec: string(ks.clockRecord(ks.lease.End()))})
	tx.Close()
	f.catalogue = append(f.catalogue, ks.captureContainers(dirty)...)

	if f.captured == nil {
		f.captured = make([][]aof.Op, len(ks.partitions))
	}
	for i, p := range ks.partitions {
		ops, live := p.capture(f.pieces)
		p.store.SetLive(live)
		f.captured[i] = ops
	}
	for _, t := range gone {
		ops := &f.captured[t.p.number]
		*ops = t.captureDropped(f.pieces, *ops)
	}
	f.below = generation
}

// containersAtOnce is the number of containers that are captured while the catalogue does not change: a fraction of
// a ms.
const containersAtOnce = 1024

// captureContainers returns the changes of containers that were dirty. Of one that changes meanwhile it has a later
// state, which the journal that stays has too.
func (ks *Keyspace) captureContainers(dirty map[uint32]*Container) (ops []aof.Op) {
	for numbers := range slices.Chunk(slices.Collect(maps.Keys(dirty)), containersAtOnce) {
		var present []record.Container // encoded when no lock is held
		p := ks.partitions[0]
		p.mu.Lock()
		for _, number := range numbers {
			if c := dirty[number]; c != nil && c.name != "" && c.number == number {
				present = append(present, c.record())
			} else {
				ops = append(ops, aof.Op{Key: record.ContainerKey(number), Del: true})
			}
		}
		p.mu.Unlock()
		for _, c := range present {
			ops = append(ops, aof.Op{Key: record.ContainerKey(c.Number), Rec: string(c.Append(nil))})
		}
	}
	return ops
}

// applyCaptured applies the captured changes to the stores and syncs them: it writes one while others are forced
// to disk. It returns the first error, after it has tried all stores.
func (ks *Keyspace) applyCaptured() error {
	f := &ks.checkpoint
	if err := ks.catStore.Apply(f.catalogue); err != nil {
		return err
	}
	if err := ks.catStore.Sync(uint64(f.lsn)); err != nil {
		return err
	}
	ks.catStore.AddLive(f.records.Count(f.catalogue))
	f.catalogue = nil // confirmed: not written again if a partition fails
	apply := func(i int) error { return ks.partitions[i].store.Apply(f.captured[i]) }
	force := func(i int) error {
		err := ks.partitions[i].store.Sync(uint64(f.lsn))
		if err == nil {
			f.captured[i] = nil
		}
		return err
	}
	if !ks.disk.Full() {
		return store.ApplyAndSync(len(ks.partitions), apply, force)
	}
	// One after the other: a compaction between them writes the manifest, which names all stores.
	return store.ApplyAndSync(len(ks.partitions), func(i int) error {
		if err := ks.applyInLittleRoom(i); err != nil {
			return err
		}
		return force(i)
	}, func(int) error { return nil })
}
