package keyspace

import (
	"cmp"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/keyspace/record"
)

// When a checkpoint is made: the journal's files have grown to a share of what lives in the stores, within
// bounds, or this long after the last one if anything has been written since. Items that are overwritten
// or die before the next checkpoint never reach the stores, so a large journal saves work; but all of it
// is disk that holds nothing of its own, twice at the end of a checkpoint, when the stores have learnt it
// and it is still there. The upper bound is for the next start, which has to read it all.
const (
	checkpointShare    = 6 // one part in so many
	minCheckpointBytes = 8 << 20
	maxCheckpointBytes = 64 << 20
	checkpointInterval = time.Minute
	checkpointRetry    = 5 * time.Second
)

// syncsAtOnce is how many stores are forced to disk side by side, while others are written: file systems make
// one commit of their own for several.
const syncsAtOnce = 4

// folding is a checkpoint under way.
type folding struct {
	done   atomic.Int64
	last   atomic.Int64          // ms; when the last one was done
	failed atomic.Pointer[error] // nil: the last one worked
	asked  atomic.Bool           // SaveInBackground waits for one
	least  int64                 // minCheckpointBytes, or less in a test; set before anything is written
	pieces capturing             // captureInPieces; in a test others; set before anything is written
	mu     sync.Mutex            // held during a checkpoint; protects what follows, and the stores

	// What has been taken over from the partitions but is not safely in their stores yet. It is
	// kept when a checkpoint fails, to be applied again by the next.
	captured  [][]op // by partition
	catalogue []op
	below     uint64 // the journals that can go once all of that is in the stores

	records map[string]int64 // what the commands that set them take in the catalogue's store, in bytes
}

// learn notes what the catalogue's store has learnt, and tells by how many bytes it has made what lives in it
// larger.
func (f *folding) learn(ops []op) (more int64) {
	for _, o := range ops {
		more -= f.records[o.key]
		delete(f.records, o.key)
		if !o.del {
			size := commandSize(len(o.key), len(o.rec))
			f.records[o.key] = size
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
		case <-ks.full: // the checkpoint that has just ended may have seen to it
		case <-ticker.C:
			waited += time.Second
		}
		asked := ks.fold.asked.Load() // before the checkpoint: it is for what was written by then
		if !asked && (!woken && !ks.checkpointDue(waited >= due) || ks.Writable() != nil) {
			continue
		}
		waited, due = 0, checkpointInterval
		err := ks.checkpoint()
		if asked {
			ks.fold.asked.Store(false)
		}
		if err != nil {
			ks.opt.Log.Error().Err(err).Msg("checkpoint failed, it will be tried again; the journal keeps what is written")
			due = checkpointRetry
			continue
		}
		ks.compactWasteful()
	}
}

// checkpointDue tells whether a checkpoint is worth making. An idle server writes nothing. What has been
// handed in counts: of a death that nobody was told of, nobody waits for the promise of its time.
func (ks *Keyspace) checkpointDue(waitedEnough bool) bool {
	size := ks.journal.size() + ks.journal.waiting.Load()
	return size > journalHeadSize && waitedEnough || size >= ks.journal.limit.Load()
}

// limitJournal sets how large the journal may grow before a checkpoint is due, by what the stores hold.
func (ks *Keyspace) limitJournal() {
	live, _ := sizes(ks.stores())
	ks.journal.limit.Store(min(max(live/checkpointShare, ks.fold.least), maxCheckpointBytes))
}

// wakeCheckpoint asks for a checkpoint soon.
func (ks *Keyspace) wakeCheckpoint() { signal(ks.wake) }

// journalFull has it looked at whether a checkpoint is due.
func (ks *Keyspace) journalFull() { signal(ks.full) }

// signal sends unless there is something to be received already.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}

// checkpoint folds what has been written since the last one into the stores and removes the
// journals that are no longer needed.
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
func (ks *Keyspace) checkpoint() error {
	ks.fold.mu.Lock()
	defer ks.fold.mu.Unlock()
	return ks.checkpointLocked()
}

// checkpointLocked: fold.mu must be held.
func (ks *Keyspace) checkpointLocked() (err error) {
	f := &ks.fold
	defer func() { note(&f.failed, err) }()
	generation, err := ks.journal.rotate()
	if err != nil {
		return err
	}
	left := f.captured != nil // by an attempt that failed: first that
	if !left {
		ks.capture(generation)
	}
	if err := ks.journal.commitAll(); err != nil {
		return err
	}
	if err := ks.journal.sync(); err != nil {
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
	if err := ks.journal.remove(f.below); err != nil || !left {
		return err
	}
	return ks.checkpointLocked()
}

// note keeps the error of the last attempt, nil if it worked.
func note(last *atomic.Pointer[error], err error) {
	if err == nil {
		last.Store(nil)
	} else {
		last.Store(&err)
	}
}

// noted is the error of the last attempt in words, empty if it worked.
func noted(last *atomic.Pointer[error]) string {
	if err := last.Load(); err != nil {
		return (*err).Error()
	}
	return ""
}

// noteBroken refuses writes until a restart if a store cannot be used any more: what is written would
// pile up in the journal.
func (ks *Keyspace) noteBroken() {
	for _, s := range ks.stores() {
		if s.broken != nil {
			ks.broken.Store(&s.broken)
			return
		}
	}
}

// capture takes over what the stores have to learn. The catalogue comes first. Of a container that is made, or
// dropped, later, items may be captured nevertheless: the journal that stays tells what has become of it, and
// the next time it is seen here.
func (ks *Keyspace) capture(generation uint64) {
	f := &ks.fold
	var tx Tx
	ks.lockAll(&tx)
	cat := &ks.catalogue
	var changed []record.Container // as they are now; encoded when no lock is held
	for number, c := range cat.dirty {
		if c == nil || c.name == "" || c.number != number {
			f.catalogue = append(f.catalogue, op{key: record.ContainerKey(number), del: true})
			continue
		}
		changed = append(changed, c.record())
	}
	clear(cat.dirty)
	gone := cat.dropped
	cat.dropped = nil
	f.catalogue = append(f.catalogue, op{key: record.ClockKey, rec: string(ks.clockRecord(ks.lastPromise()))})
	tx.Close()
	for _, c := range changed {
		f.catalogue = append(f.catalogue, op{key: record.ContainerKey(c.Number), rec: string(c.Append(nil))})
	}

	if f.captured == nil {
		f.captured = make([][]op, len(ks.partitions))
	}
	for i, p := range ks.partitions {
		ops, live := p.capture(f.pieces)
		p.store.live.Store(live)
		f.captured[i] = ops
	}
	for _, t := range gone {
		ops := &f.captured[t.p.number]
		*ops = t.captureDropped(f.pieces, *ops)
	}
	f.below = generation
}

// applyCaptured has the stores learn what was captured, and confirm it: one is written while others are forced to
// disk. The first error is returned; the other stores are seen to nevertheless.
func (ks *Keyspace) applyCaptured() error {
	f := &ks.fold
	if err := ks.catStore.apply(f.catalogue); err != nil {
		return err
	}
	if err := ks.catStore.sync(); err != nil {
		return err
	}
	ks.catStore.live.Add(f.learn(f.catalogue))
	f.catalogue = nil                         // what is confirmed is not written again if what follows fails
	errs := make([]error, len(ks.partitions)) // and f.captured: each goroutine has its own
	places := make(chan struct{}, syncsAtOnce)
	var syncs sync.WaitGroup
	for i, p := range ks.partitions {
		if errs[i] = p.store.apply(f.captured[i]); errs[i] != nil {
			continue
		}
		places <- struct{}{}
		syncs.Go(func() {
			defer func() { <-places }()
			if errs[i] = p.store.sync(); errs[i] == nil {
				f.captured[i] = nil
			}
		})
	}
	syncs.Wait()
	return cmp.Or(errs...)
}
