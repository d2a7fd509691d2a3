package keyspace

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
)

// Compaction: a store's file only grows, as every change is appended. Now and then it is written anew with
// nothing but the present items; see [store.compact]. That holds no replies up: what they promise is in the
// journal.

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
			ks.opt.Log.Error().Err(err).Str("file", s.path()).Msg("compaction failed")
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
	err := s.compact(rest)
	ks.noteBroken()
	return err
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

// exceeded tells whether there is a quarter more waste than that at which compactions begin: they do not
// keep up.
func (when Compaction) exceeded(stores []*store) bool {
	live, size := sizes(stores)
	return when.Percentage > 0 && size >= when.MinSize && float64(size-live) > float64(live)*float64(when.Percentage)/100/2*1.25
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
// applied must have been synced. A crash at any point leaves either the old file or the new one:
//
//  1. The old file is read, and checked as at a start, to find out where the last set of each present
//     item lies. A damaged one stays as it is.
//  2. These are copied, in their order, to .tmp, which is sealed as a whole and forced to disk.
//  3. .tmp gets the name of the file, durably.
//
// A failure before the rename leaves the file as it was; one after it breaks the store: nobody knows which
// of both files the next start would find.
func (s *store) compact(rest rests) error {
	if s.broken != nil {
		return s.broken
	}
	if !s.synced {
		return errors.New("a store is compacted before all of it is on disk")
	}
	if err := s.roomToCompact(); err != nil {
		return err
	}
	path, tmp := s.path(), s.path()+".tmp"
	f, last, err := s.copyPresent(tmp, rest)
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close(), os.Remove(tmp))
		}
		return err
	}
	s.replace(f, last)
	if err := fsyncDir(filepath.Dir(path)); err != nil {
		s.broken = fmt.Errorf("compacting %s: %w", path, err)
	}
	return s.broken
}

// replace goes on in a file that has taken the place of the old one, and ends with a seal.
func (s *store) replace(f *os.File, last seal) {
	s.file.f.Close() // all of it was on disk
	s.file.f, s.file.end = f, last.at+sealSize
	s.mark, s.sealed = last.mark, s.file.end
	s.bytes.Store(s.file.end)
	s.live.Store(last.at)
}

// copyPresent makes a file of the present items, sealed and on disk.
func (s *store) copyPresent(path string, rest rests) (f *os.File, last seal, err error) {
	work := stretch{rest: rest}
	places, err := s.present(&work)
	if err != nil {
		return nil, last, err
	}
	if err := s.file.faults.beforeWrite(); err != nil {
		return nil, last, err
	}
	if f, err = createNew(path); err != nil {
		return nil, last, err
	}
	w := newSummer(f)
	from := bufio.NewReaderSize(io.NewSectionReader(s.file.f, 0, s.bytes.Load()), readSize)
	at := int64(0)
	for _, next := range places {
		if _, err := from.Discard(int(next.from - at)); err != nil {
			return f, last, err
		}
		if err := w.copy(from, next.to-next.from, &work); err != nil {
			return f, last, err
		}
		at = next.to
	}
	last = seal{mark: firstSeal().mark, at: w.at, crc: w.crc}
	if err := w.write(last.bytes()); err != nil {
		return f, last, err
	}
	return f, last, errors.Join(w.w.Flush(), s.file.faults.fsync(f))
}

// present finds out which ranges of the file set items that are present, in ascending order. What lies side
// by side is one range.
func (s *store) present(work *stretch) (ranges []fileRange, err error) {
	sets := lastSets{work: work, at: make(map[string]fileRange)}
	if err := s.scan(&sets); err != nil {
		return nil, err
	}
	for _, set := range sets.at {
		ranges = append(ranges, set)
	}
	slices.SortFunc(ranges, func(a, b fileRange) int { return cmp.Compare(a.from, b.from) })
	joined := ranges[:0]
	for _, next := range ranges {
		if n := len(joined); n > 0 && joined[n-1].to == next.from {
			joined[n-1].to = next.to
		} else {
			joined = append(joined, next)
		}
	}
	return joined, nil
}

// lastSets finds out where the present items are set, by their keys.
type lastSets struct {
	work *stretch
	at   map[string]fileRange
}

func (l *lastSets) set(key, _ []byte, at fileRange) error {
	l.at[string(key)] = at
	l.work.read(at.to - at.from)
	return nil
}

func (l *lastSets) del(key []byte) error {
	delete(l.at, string(key))
	return nil
}

func (l *lastSets) sealed() error { return nil }

// summer writes to a file and sums up what it writes.
type summer struct {
	w   *bufio.Writer
	at  int64
	crc uint32
}

func newSummer(f *os.File) *summer { return &summer{w: bufio.NewWriterSize(f, readSize)} }

func (s *summer) write(b []byte) error {
	s.at += int64(len(b))
	s.crc = crc32.Update(s.crc, castagnoli, b)
	_, err := s.w.Write(b)
	return err
}

// copy writes the next n bytes of another file.
func (s *summer) copy(from *bufio.Reader, n int64, work *stretch) error {
	for n > 0 {
		b, err := from.Peek(int(min(n, readSize)))
		if err != nil {
			return err
		}
		if err := s.write(b); err != nil {
			return err
		}
		n -= int64(len(b))
		work.wrote(int64(len(b)))
		from.Discard(len(b)) // it is in the buffer
	}
	return nil
}

// roomToCompact refuses if the disk may be too small for a second copy, and clears away what an
// earlier compaction that failed may have left.
func (s *store) roomToCompact() error {
	if err := os.Remove(s.path() + ".tmp"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
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

func (s *store) path() string { return s.file.path }
