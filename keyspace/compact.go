package keyspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// Compaction: a store's file only grows, as buntdb appends every change. Shrink writes it anew with
// nothing but the present items.
//
// buntdb's Shrink renames the new file over the old one without forcing either to disk: after a
// power cut the store could be empty. So the old file keeps a second name, .prev, until the new one
// is safe; see [store.compact]. And it holds no replies up: what they promise is in the journal.

// Compaction says when a store is worth compacting.
type Compaction struct {
	// auto-compact-percentage: the most waste in a store, in percent of what its live items take; in all
	// together it is half of that at most. 0: never by itself.
	Percentage int
	MinSize    int64 // auto-compact-min-size: bytes of all stores together below which it is never done
}

// DefaultCompaction is what holds until [Keyspace.SetCompaction].
var DefaultCompaction = Compaction{Percentage: 100, MinSize: 64 << 20}

// compacting is what there is to know of compactions. Safe for concurrent use.
type compacting struct {
	when    atomic.Pointer[Compaction]
	all     atomic.Bool // compact every store at the next opportunity
	running atomic.Bool
	done    atomic.Int64 // stores compacted since the start
	failed  atomic.Pointer[error]
	pace    int64 // compactionPace; in a test another, or 0: no rests; set before anything is written
}

// SetCompaction changes when stores are compacted by themselves.
func (ks *Keyspace) SetCompaction(c Compaction) { ks.compacting.when.Store(&c) }

// Compact asks for a checkpoint and a compaction of all stores that hold any waste, in the
// background, one after the other. It returns at once; false if one is under way already.
func (ks *Keyspace) Compact() bool {
	if ks.compacting.running.Load() || ks.compacting.all.Swap(true) {
		return false
	}
	ks.wakeCheckpoint()
	return true
}

// underWay tells whether a compaction is running or asked for.
func (c *compacting) underWay() bool { return c.running.Load() || c.all.Load() }

// compactWasteful compacts the stores that deserve it, one after the other, always the one that wins most
// for what it costs. A failure leaves the store as it was and is not the end of the others.
func (ks *Keyspace) compactWasteful() {
	state := &ks.compacting
	state.running.Store(true)
	defer state.running.Store(false)
	all, when := state.all.Swap(false), *state.when.Load()
	var errs []error
	rest := ks.stores() // those not compacted yet
	for {
		select {
		case <-ks.stop:
			return
		default:
		}
		s := when.next(ks.stores(), rest, all)
		if s == nil {
			break
		}
		rest = slices.DeleteFunc(rest, func(other *store) bool { return other == s })
		if ks.checkpointDue(false) { // what is written meanwhile must not pile up in the journal
			if err := ks.checkpoint(); err != nil {
				ks.opt.Log.Error().Err(err).Msg("checkpoint failed between compactions; the other files stay as they were")
				errs = append(errs, err)
				break
			}
		}
		before := s.size()
		if err := ks.compactStore(s, ks.compactionRests(when)); err != nil {
			ks.opt.Log.Error().Err(err).Str("file", s.path()).Msg("compaction failed; the file stays as it was")
			errs = append(errs, err)
			continue
		}
		state.done.Add(1)
		ks.opt.Log.Info().Str("file", s.path()).Int64("before", before).Int64("after", s.size()).Msg("compacted")
	}
	if len(rest) <= len(ks.partitions) { // else none was tried
		note(&state.failed, errors.Join(errs...))
	}
}

func (ks *Keyspace) compactStore(s *store, rest rests) error {
	ks.fold.mu.Lock()
	defer ks.fold.mu.Unlock()
	s.rest = rest
	defer func() { s.rest = nil }()
	return s.compact()
}

// stores are those of all partitions and the catalogue's.
func (ks *Keyspace) stores() []*store {
	list := []*store{ks.catStore}
	for _, p := range ks.partitions {
		list = append(list, p.store)
	}
	return list
}

// next gives the store of some that is to be compacted now, nil for none: the one with the most waste in
// proportion to what lives in it.
//
// A single store may hold waste up to the percentage, all together half of that. Stores whose waste grows
// alike would otherwise all be at their largest at the same time. Like this they are compacted in turn: when
// one has reached the percentage the others are spread evenly below it, so it costs no more.
func (when Compaction) next(stores, some []*store, all bool) *store {
	var worst *store
	least := when.MinSize / int64(max(len(stores)-1, 1)) // but for the catalogue's
	for _, s := range some {
		if s.waste() > sealSize && (all || s.size() >= least) && (worst == nil || s.wasted() > worst.wasted()) {
			worst = s
		}
	}
	if worst == nil || all {
		return worst
	}
	live, size := sizes(stores)
	allowed := float64(when.Percentage) / 100
	tooMuch := size >= when.MinSize && float64(size-live) > float64(live)*allowed/2 && worst.wasted() > allowed/2
	if allowed > 0 && (tooMuch || worst.wasted() > allowed) {
		return worst
	}
	return nil
}

// exceeded tells whether there is more waste than compactions in turn let come up.
func (when Compaction) exceeded(stores []*store) bool {
	live, size := sizes(stores)
	return when.Percentage > 0 && size >= when.MinSize && float64(size-live) > float64(live)*float64(when.Percentage)/100
}

// waste is how many bytes of the file a compaction would win.
func (s *store) waste() int64 { return s.size() - s.live.Load() - sealSize }

// wasted is the waste as a share of what lives.
func (s *store) wasted() float64 { return float64(s.waste()) / float64(max(s.live.Load(), 1)) }

// sizes gives the bytes of stores: what the live items take, and all of the files.
func sizes(stores []*store) (live, size int64) {
	for _, s := range stores {
		live += s.live.Load()
		size += s.size()
	}
	return live, size
}

// compact writes the file anew without what has been overwritten or deleted. All that has been
// applied must have been synced. A crash at any point leaves either the old file or the new one to
// be found:
//
//  1. The old file gets a second name, .prev, durably. From now on, while there is one, an opening
//     store goes back to it (undoCompaction).
//  2. The item that holds the last seal goes: it would be copied, and mean nothing in the new file.
//  3. buntdb writes the new file beside the old one and renames it over it.
//  4. The new file is forced to disk and sealed as a whole, and the folder is forced to disk.
//  5. The second name goes, durably.
//
// A failure in 1 to 3 leaves the old file in its place, sealed again. One in 4 or 5 breaks the
// store: the next start goes back to .prev.
func (s *store) compact() error {
	if s.broken != nil {
		return s.broken
	}
	if !s.synced {
		return errors.New("a store is compacted before all of it is on disk")
	}
	if err := s.roomToCompact(); err != nil {
		return err
	}
	path, prev := s.path(), s.path()+".prev"
	dir := filepath.Dir(path)
	if err := errors.Join(os.Link(path, prev), fsyncDir(dir)); err != nil {
		return err
	}
	err := s.transact([]op{{key: sealKey, del: true}})
	if err == nil {
		err = s.file.shrink(s.rest, s.live.Load())
	}
	if err != nil {
		return errors.Join(err, os.Remove(prev), fsyncDir(dir), s.sync())
	}
	err = errors.Join(s.adopt(), fsyncDir(dir))
	if err == nil {
		err = errors.Join(os.Remove(prev), fsyncDir(dir))
	}
	if err != nil {
		s.broken = fmt.Errorf("compacting %s: %w", path, err)
	}
	return s.broken
}

// roomToCompact refuses if the disk may be too small for a second copy, and clears away what an
// earlier compaction that failed may have left.
func (s *store) roomToCompact() error {
	for _, left := range []string{".prev", ".tmp"} {
		if err := os.Remove(s.path() + left); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	free, err := freeDisk(filepath.Dir(s.path()))
	if err != nil {
		return err
	}
	if need := s.live.Load() + s.live.Load()/8 + maxTxBytes; free < need {
		return fmt.Errorf("compacting %s takes %d bytes of disk for a while, %d are free", s.path(), need, free)
	}
	return nil
}

// adopt takes the file that buntdb has put in the place of the old one: forced to disk, sealed from
// its first byte, and forced to disk again.
func (s *store) adopt() error {
	if err := s.file.reopen(); err != nil {
		return err
	}
	size, err := s.file.size()
	if err != nil {
		return err
	}
	s.bytes.Store(size)
	s.sealed, s.mark, s.synced = 0, firstSeal().mark, false
	return s.sync()
}

func (s *store) path() string { return s.file.f.Name() }
