package storage

import (
	"errors"
	"slices"
	"sync/atomic"

	"mayfly/keyspace/store"
)

// compactionState is the state of compactions. Safe for concurrent use.
type compactionState struct {
	when    atomic.Pointer[store.Compaction]
	all     atomic.Bool // compact every store at the next opportunity
	running atomic.Bool
	done    atomic.Int64 // stores compacted since the start
	failed  lastError
}

// SetCompaction changes when stores are compacted automatically.
func (e *Engine) SetCompaction(c store.Compaction) { e.compaction.when.Store(&c) }

// Compact requests a checkpoint and a compaction of all stores with waste, in the background. It returns at
// once; false if one is running already.
func (e *Engine) Compact() bool {
	if e.compaction.running.Load() || e.compaction.all.Swap(true) {
		return false
	}
	e.Wake()
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

// CompactAll compacts all stores with waste, and returns when that is done.
func (e *Engine) CompactAll() error {
	e.compaction.all.Store(true)
	e.CompactWasteful()
	return e.compaction.failed.get()
}

// CompactWasteful compacts the stores with too much waste, one after the other, those with the largest share
// first. After a failure the store stays as it was, and the next one follows.
func (e *Engine) CompactWasteful() {
	state := &e.compaction
	all, when := state.begin(), *state.when.Load()
	defer state.running.Store(false)
	if e.Disk.Full() {
		when = store.CompactionWhenFull
	}
	var errs []error
	rest := e.Stores() // those not compacted yet
	for {
		select {
		case <-e.Options.Stop:
			return
		default:
		}
		s := when.Next(e.Stores(), rest, all, nil)
		if s == nil {
			s = e.oldWaste(rest)
		}
		if s == nil {
			break
		}
		rest = slices.DeleteFunc(rest, func(other *store.Store) bool { return other == s })
		if e.Due(e.Options.Now()-e.LastSave() >= checkpointInterval.Milliseconds()) { // else the journal grows during the compactions
			if err := e.Checkpoint(); err != nil {
				e.Options.Log.Error().Err(err).Msg("checkpoint failed between compactions; the other files stay as they were")
				errs = append(errs, err)
				break
			}
		}
		if err := e.compact(s, func() error { return e.CompactStore(s, e.compactionPacer(s, when)) }); err != nil {
			errs = append(errs, err)
		}
	}
	if len(rest) <= len(e.items) { // else none was tried
		state.failed.set(errors.Join(errs...))
	}
}

// compact counts and logs a compaction of a store by rewrite.
func (e *Engine) compact(s *store.Store, rewrite func() error) error {
	before := s.Size()
	if err := rewrite(); err != nil {
		e.Options.Log.Error().Err(err).Str("file", s.Path()).Msg("compaction failed")
		return err
	}
	e.compaction.done.Add(1)
	e.Options.Log.Info().Str("file", s.Path()).Int64("before", before).Int64("after", s.Size()).Msg("compacted")
	return nil
}

// CompactStore writes a store anew from memory, which leaves out what was overwritten and deleted.
func (e *Engine) CompactStore(s *store.Store, pacer *store.Pacer) error {
	e.Lock()
	defer e.Unlock()
	if e.dropped {
		return errDropped
	}
	return e.RewriteStore(s, pacer)
}

// compactionPacer returns the pacer of a store's compaction. It does not rest while compactions do not keep
// up with the waste, or the waste endangers erase-within. Nor does it while somebody waits for a checkpoint,
// or once the journal has twice the size at which one is due: a compaction delays it.
func (e *Engine) compactionPacer(s *store.Store, when store.Compaction) *store.Pacer {
	pace := e.Options.Pace
	if pace == 0 || when.Exceeded(e.Stores()) {
		return nil
	}
	return store.NewPacer(pace, e.Options.Stop, func() bool {
		late := e.wasteRule().late(age(s.WasteSince(), e.Options.Now()))
		return late || e.Journal.Size() >= 2*e.Journal.Limit() || e.hurries()
	})
}
