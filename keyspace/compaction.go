package keyspace

import (
	"errors"
	"slices"
	"sync/atomic"

	"mayfly/keyspace/figures"
	"mayfly/keyspace/liveness"
	"mayfly/keyspace/scrub"
	"mayfly/keyspace/store"
)

// Compaction says when a store is worth compacting.
type Compaction = store.Compaction

// DefaultCompaction applies until [Keyspace.SetCompaction].
var DefaultCompaction = store.DefaultCompaction

// compactionState is the state of compactions. Safe for concurrent use.
type compactionState struct {
	when    atomic.Pointer[Compaction]
	all     atomic.Bool // compact every store at the next opportunity
	running atomic.Bool
	done    atomic.Int64 // stores compacted since the start
	failed  figures.LastError
	pace    int64 // store.DefaultPace; in a test another, or 0: no rests; set before anything is written
}

// SetCompaction changes when stores are compacted automatically.
func (ks *Keyspace) SetCompaction(c Compaction) { ks.compaction.when.Store(&c) }

// Compact requests a checkpoint and a compaction of all stores with waste, in the background. It returns at once;
// false if one is running already.
func (ks *Keyspace) Compact() bool {
	if ks.compaction.running.Load() || ks.compaction.all.Swap(true) {
		return false
	}
	ks.wakeCheckpoint()
	return true
}

// underWay reports whether a compaction is running or asked for.
func (c *compactionState) underWay() bool {
	return c.all.Load() || c.running.Load() // in this order, because of begin
}

// begin notes that a compaction runs, and returns whether all stores were asked for.
func (c *compactionState) begin() (all bool) {
	c.running.Store(true)
	return c.all.Swap(false)
}

// compactWasteful compacts the stores with too much waste, one after the other, those with the largest share first.
// After a failure the store stays as it was, and the next one follows.
func (ks *Keyspace) compactWasteful() {
	state := &ks.compaction
	all, when := state.begin(), *state.when.Load()
	defer state.running.Store(false)
	if ks.disk.Full() {
		when = store.CompactionWhenFull
	}
	var errs []error
	rest := ks.stores() // those not compacted yet
	for {
		select {
		case <-ks.stop:
			return
		default:
		}
		s := when.Next(ks.stores(), rest, all)
		if s == nil {
			break
		}
		rest = slices.DeleteFunc(rest, func(other *store.Store) bool { return other == s })
		if ks.checkpointDue(false) { // else the journal grows during the compactions
			if err := ks.Save(); err != nil {
				ks.opt.Log.Error().Err(err).Msg("checkpoint failed between compactions; the other files stay as they were")
				errs = append(errs, err)
				break
			}
		}
		before := s.Size()
		read, err := ks.compactStore(s, ks.compactionPacer(when))
		if scrub.IsDamage(err) {
			err = ks.scrub.Repair(read, err)
		}
		if err != nil {
			ks.opt.Log.Error().Err(err).Str("file", s.Path()).Msg("compaction failed")
			errs = append(errs, err)
			continue
		}
		state.done.Add(1)
		ks.opt.Log.Info().Str("file", s.Path()).Int64("before", before).Int64("after", s.Size()).Msg("compacted")
	}
	if len(rest) <= len(ks.partitions) { // else none was tried
		state.failed.Set(errors.Join(errs...))
	}
}

// compactStore compacts a store. It returns the file that was read, of which an error may tell damage.
func (ks *Keyspace) compactStore(s *store.Store, pacer *store.Pacer) (read *scrub.File, err error) {
	ks.checkpoint.mu.Lock()
	defer ks.checkpoint.mu.Unlock()
	read = ks.files.File(s.Path())
	var live store.LivenessFilter
	for _, p := range ks.partitions {
		if p.store == s {
			live = ks.livenessOf(p)
		}
	}
	err = s.Compact(live, pacer, ks.files.Announce(s))
	ks.noteBroken()
	return read, errors.Join(err, ks.files.Settle(s))
}

// stores returns the catalogue's store and those of all partitions.
func (ks *Keyspace) stores() []*store.Store {
	list := []*store.Store{ks.catStore}
	for _, p := range ks.partitions {
		list = append(list, p.store)
	}
	return list
}

// compactionPacer returns the pacer of the next compaction. It does not rest while compactions do not keep up with
// the waste. Nor does it once the journal has twice the size at which a checkpoint is due: a compaction delays it.
func (ks *Keyspace) compactionPacer(when Compaction) *store.Pacer {
	pace := ks.compaction.pace
	if pace == 0 || when.Exceeded(ks.stores()) {
		return nil
	}
	return store.NewPacer(pace, ks.stop, func() bool { return ks.journal.Size() >= 2*ks.journal.Limit() })
}

// livenessOf returns the filter for a compaction of a partition's store. checkpoint.mu must be held.
func (ks *Keyspace) livenessOf(p *partition) *liveness.Filter {
	return liveness.New(liveness.Options{
		Lock: &p.mu, Shard: &p.shard, Path: p.store.Path(), Journal: ks.journal, Incomplete: ks.checkpoint.captured != nil,
	})
}
