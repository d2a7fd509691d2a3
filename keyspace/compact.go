package keyspace

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"

	"mayfly/keyspace/record"
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
	var knows liveSet
	for _, p := range ks.partitions {
		if p.store == s {
			knows = newLivenessFilter(ks, p)
		}
	}
	err := s.compact(knows, rest)
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
//  1. The old file is read, and checked as at a start. A damaged one stays as it is.
//  2. On the way the sets of present items are copied, in their order, to .tmp, which is sealed as a whole
//     and forced to disk.
//  3. .tmp gets the name of the file, durably.
//
// Which items are present is asked of knows; if that is nil, the file is read once more before.
//
// A failure before the rename leaves the file as it was; one after it breaks the store: nobody knows which
// of both files the next start would find.
func (s *store) compact(knows liveSet, rest rests) error {
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
	f, last, err := s.copyPresent(tmp, knows, rest)
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
	s.mark, s.sealed, s.crc = last.mark, s.file.end, 0
	s.bytes.Store(s.file.end)
	s.live.Store(last.at)
}

// copyPresent makes a file of the present items, sealed and on disk.
func (s *store) copyPresent(path string, knows liveSet, rest rests) (f *os.File, last seal, err error) {
	c := copier{knows: knows, work: stretch{rest: rest}, seen: make([]candidate, 0, maxSeen)}
	if knows == nil {
		sets := lastSets{work: &c.work, at: make(map[string]int64)}
		if err := s.scan(&sets); err != nil {
			return nil, last, err
		}
		c.knows = &sets
	}
	if err := s.file.faults.beforeWrite(); err != nil {
		return nil, last, err
	}
	if f, err = createNew(path); err != nil {
		return nil, last, err
	}
	c.to.f = f
	if err := errors.Join(s.scan(&c), c.to.flush()); err != nil {
		return f, last, err
	}
	if err := c.knows.settled(); err != nil {
		return f, last, err
	}
	last = seal{mark: firstSeal().mark, at: c.to.at, crc: c.to.crc}
	if _, err := f.Write(last.bytes()); err != nil {
		return f, last, err
	}
	return f, last, s.file.faults.fsync(f)
}

// liveSet knows which sets in a store's file are of items that are present.
type liveSet interface {
	// find marks which of these sets, some that follow each other in the file, are those of present items:
	// one an item.
	find(sets []candidate) error
	// settled is called when all have been seen, before the new file may take the place of the old. An error
	// keeps the old.
	settled() error
}

// candidate is a set that has been met in a store's file.
type candidate struct {
	key, rec []byte
	at       fileRange
	live     bool
}

// maxSeen is how many sets are looked at together at most.
const maxSeen = 128

// copier copies what is present, of all that it visits.
type copier struct {
	knows liveSet
	to    summer
	work  stretch
	seen  []candidate
}

func (c *copier) set(key, rec []byte, at fileRange) error {
	c.seen = append(c.seen, candidate{key: key, rec: rec, at: at})
	if len(c.seen) == maxSeen {
		return c.passed()
	}
	return nil
}

func (c *copier) del([]byte) error { return nil }
func (c *copier) sealed() error    { return nil }

func (c *copier) passed() error {
	if err := c.knows.find(c.seen); err != nil {
		return err
	}
	for _, s := range c.seen {
		if s.live {
			if err := c.to.set(s.key, s.rec); err != nil {
				return err
			}
			c.work.wrote(s.at.to - s.at.from)
		}
		c.work.read(s.at.to - s.at.from)
	}
	clear(c.seen)
	c.seen = c.seen[:0]
	return nil
}

// lastSets is the liveSet that a file itself shows, to one who has visited it before: an item is present if no
// delete follows its last set.
type lastSets struct {
	keepsNothing
	work *stretch
	at   map[string]int64 // where the present items are set, by their keys
}

func (l *lastSets) set(key, _ []byte, at fileRange) error {
	l.at[string(key)] = at.from
	l.work.read(at.to - at.from)
	return nil
}

func (l *lastSets) del(key []byte) error {
	delete(l.at, string(key))
	return nil
}

func (l *lastSets) sealed() error { return nil }

func (l *lastSets) find(sets []candidate) error {
	for i := range sets {
		s := &sets[i]
		at, ok := l.at[string(s.key)]
		s.live = ok && at == s.at.from
	}
	return nil
}

func (l *lastSets) settled() error { return nil }

// summer writes sets to a file and sums up what it writes.
type summer struct {
	f   *os.File
	buf []byte
	at  int64 // bytes written
	crc uint32
}

func (s *summer) set(key, rec []byte) error {
	const most = 64 << 10 // gathered before it is written, but for the last
	s.buf = append(s.buf, setHead...)
	s.buf = appendBulk(s.buf, record.View(key))
	s.buf = appendBulk(s.buf, record.View(rec))
	if len(s.buf) < most {
		return nil
	}
	err := s.flush()
	s.buf = keep(s.buf, 2*most)
	return err
}

// flush writes what has been gathered.
func (s *summer) flush() error {
	n, err := s.f.Write(s.buf)
	s.crc = crc32.Update(s.crc, record.Castagnoli, s.buf[:n])
	s.at += int64(n)
	s.buf = s.buf[:0]
	return err
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
