package keyspace

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// A checkpoint is made when the journal's files have grown to a share of what is live in the stores, within bounds,
// or this long after the last one if anything has been written since. Items that are overwritten or die before the
// next checkpoint never reach the stores, so a large journal saves work. But it takes disk twice at the end of
// a checkpoint, when the stores hold the same. The upper bound is for the next start, which has to read it all.
const (
	checkpointShare    = 6 // one part in this many
	minCheckpointBytes = 8 << 20
	maxCheckpointBytes = 64 << 20
	checkpointInterval = time.Minute
	checkpointRetry    = 5 * time.Second
)

// syncsAtOnce is how many stores are forced to disk side by side, while others are written: file systems make
// one commit of their own for several.
const syncsAtOnce = 4

// checkpointState is what is known of checkpoints, and of one under way.
type checkpointState struct {
	done   atomic.Int64
	last   atomic.Int64          // ms; when the last one was done
	failed atomic.Pointer[error] // nil: the last one worked
	asked  atomic.Bool           // SaveInBackground waits for one
	least  int64                 // minCheckpointBytes, or less in a test; set before anything is written
	pieces capturing             // captureInPieces; in a test others; set before anything is written
	mu     sync.Mutex            // held during a checkpoint; protects what follows, and the stores

	// What has been taken over from the partitions but is not safely in their stores yet. It is
	// kept when a checkpoint fails, to be applied again by the next.
	captured  [][]aof.Op // by partition
	catalogue []aof.Op
	lsn       LSN    // all changes up to it are captured or in the stores
	below     uint64 // the journals that can go once all of that is in the stores

	records map[string]int64 // size in bytes of the set commands that are live in the catalogue's store
}

// count takes changes of the catalogue's store into account, and returns by how many bytes they make what is live
// in it larger.
func (c *checkpointState) count(ops []aof.Op) (more int64) {
	for _, o := range ops {
		more -= c.records[o.Key]
		delete(c.records, o.Key)
		if !o.Del {
			size := aof.SetSize(len(o.Key), len(o.Rec))
			c.records[o.Key] = size
			more += size
		}
	}
	return more
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
		}
		asked := ks.checkpoint.asked.Load() // before the checkpoint: it is for what was written by then
		if !asked && (!woken && !ks.checkpointDue(waited >= due) || ks.Writable() != nil) {
			continue
		}
		waited, due = 0, checkpointInterval
		err := ks.Save()
		if asked {
			ks.checkpoint.asked.Store(false)
		}
		if err != nil {
			ks.opt.Log.Error().Err(err).Msg("checkpoint failed, it will be tried again; the journal keeps what is written")
			due = checkpointRetry
			continue
		}
		ks.compactWasteful()
	}
}

// checkpointDue reports whether a checkpoint is worth making. An idle server writes nothing. What has been handed
// in counts, too: no reply may wait for it, as for the lease of the time of a death.
func (ks *Keyspace) checkpointDue(waitedEnough bool) bool {
	size := ks.journal.Size() + ks.journal.Waiting()
	return !ks.journal.Idle() && waitedEnough || size >= ks.journal.Limit()
}

// limitJournal sets how large the journal may grow before a checkpoint is due, by what the stores hold.
func (ks *Keyspace) limitJournal() {
	live, _ := store.Sizes(ks.stores())
	ks.journal.SetLimit(min(max(live/checkpointShare, ks.checkpoint.least), maxCheckpointBytes))
}

// wakeCheckpoint asks for a checkpoint soon.
func (ks *Keyspace) wakeCheckpoint() { signal(ks.wake) }

// journalFull has the background check whether a checkpoint is due.
func (ks *Keyspace) journalFull() { signal(ks.full) }

// signal sends unless there is something to be received already.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// Save makes a checkpoint: it brings what has been written since the last one to the stores, forces it to disk, and
// removes the journals that are no longer needed. It blocks for as long as that takes; transactions go on meanwhile.
//
//  1. The journal goes on in a new file: all that is in older ones has been applied in memory.
//  2. What the stores have to learn is captured, piece by piece, as it stands in memory now: newer
//     than the old journals, so nothing of theirs is missed.
//  3. What has been captured is committed and forced to disk in the journal, so that the stores
//     never get ahead of it: a crash half way through step 4 leaves a mixture which replaying the
//     journals turns into exactly the committed state.
//  4. The stores learn it and are forced to disk, in an order that does not matter for that reason.
//  5. The old journals are removed.
//
// A failure leaves the journals where they are and the rest to the next checkpoint.
func (ks *Keyspace) Save() error {
	ks.checkpoint.mu.Lock()
	defer ks.checkpoint.mu.Unlock()
	return ks.saveLocked()
}

// saveLocked: checkpoint.mu must be held.
func (ks *Keyspace) saveLocked() (err error) {
	f := &ks.checkpoint
	defer func() { remember(&f.failed, err) }()
	generation, err := ks.journal.Rotate()
	if err != nil {
		return err
	}
	left := f.captured != nil // by an attempt that failed: first that
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
	if err := ks.journal.Remove(f.below); err != nil || !left {
		return err
	}
	return ks.saveLocked()
}

// remember keeps the error of the last attempt, nil if it worked.
func remember(last *atomic.Pointer[error], err error) {
	if err == nil {
		last.Store(nil)
	} else {
		last.Store(&err)
	}
}

// message is the error of the last attempt in words, empty if it worked.
func message(last *atomic.Pointer[error]) string {
	if err := last.Load(); err != nil {
		return (*err).Error()
	}
	return ""
}

// noteBroken refuses writes until a restart if a store cannot be used any more: what is written would
// pile up in the journal.
func (ks *Keyspace) noteBroken() {
	for _, s := range ks.stores() {
		if err := s.Broken(); err != nil {
			ks.broken.Store(&err)
			return
		}
	}
}

// capture takes over the changes that the stores lack. The catalogue comes first. Items of a container that is
// made or dropped later may be captured all the same: the journal that stays tells what has become of it.
func (ks *Keyspace) capture(generation uint64) {
	f := &ks.checkpoint
	f.lsn = ks.journal.Full() // what takes more in is captured by the next
	var tx Tx
	ks.lockAll(&tx)
	cat := &ks.catalogue
	var changed []record.Container // as they are now; encoded when no lock is held
	for number, c := range cat.dirty {
		if c == nil || c.name == "" || c.number != number {
			f.catalogue = append(f.catalogue, aof.Op{Key: record.ContainerKey(number), Del: true})
			continue
		}
		changed = append(changed, c.record())
	}
	clear(cat.dirty)
	gone := cat.dropped
	cat.dropped = nil
	f.catalogue = append(f.catalogue, aof.Op{Key: record.ClockKey, Rec: string(ks.clockRecord(ks.lease.end()))})
	tx.Close()
	for _, c := range changed {
		f.catalogue = append(f.catalogue, aof.Op{Key: record.ContainerKey(c.Number), Rec: string(c.Append(nil))})
	}

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

// applyCaptured writes what was captured to the stores, and seals it: one is written while others are forced to
// disk. It returns the first error, and goes on with the other stores.
func (ks *Keyspace) applyCaptured() error {
	f := &ks.checkpoint
	if err := ks.catStore.Apply(f.catalogue); err != nil {
		return err
	}
	if err := ks.catStore.Sync(uint64(f.lsn)); err != nil {
		return err
	}
	ks.catStore.AddLive(f.count(f.catalogue))
	f.catalogue = nil                         // what is confirmed is not written again if what follows fails
	errs := make([]error, len(ks.partitions)) // and f.captured: each goroutine has its own
	places := make(chan struct{}, syncsAtOnce)
	var syncs sync.WaitGroup
	for i, p := range ks.partitions {
		if errs[i] = p.store.Apply(f.captured[i]); errs[i] != nil {
			continue
		}
		places <- struct{}{}
		syncs.Go(func() {
			defer func() { <-places }()
			if errs[i] = p.store.Sync(uint64(f.lsn)); errs[i] == nil {
				f.captured[i] = nil
			}
		})
	}
	syncs.Wait()
	return cmp.Or(errs...)
}
