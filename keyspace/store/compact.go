package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// TempSuffix ends the name of the new file of a compaction under way. It means nothing to a start.
const TempSuffix = ".tmp"

// Compact writes the file anew without what has been overwritten or deleted. All that has been applied must
// have been synced. A crash at any point leaves either the old file or the new one:
//
//  1. The old file is read, and checked as at a start. A damaged one stays as it is.
//  2. On the way the sets of live items are copied, in their order, to a temporary file, which is sealed as a
//     whole and forced to disk.
//  3. The temporary file gets the name of the file, durably.
//
// live tells which items are live; if it is nil, the file is read once more before.
//
// A failure before the rename leaves the file as it was. One after it breaks the store: it is not known which
// of both files the next start finds.
func (s *Store) Compact(live LivenessFilter, pacer *Pacer) error {
	if s.broken != nil {
		return s.broken
	}
	if !s.synced {
		return errors.New("a store is compacted before all of it is on disk")
	}
	if err := s.roomToCompact(); err != nil {
		return err
	}
	path, tmp := s.Path(), s.Path()+TempSuffix
	f, last, err := s.copyLive(tmp, live, pacer)
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
	if err := aof.SyncDir(filepath.Dir(path)); err != nil {
		s.broken = fmt.Errorf("compacting %s: %w", path, err)
	}
	return s.broken
}

// replace goes on in a file that has taken the place of the old one, and ends with a seal.
func (s *Store) replace(f *os.File, last aof.Seal) {
	s.file.Close() // all of it was on disk
	s.sealed = last.At + aof.SealSize
	s.file = aof.NewFile(f, s.file.Path(), s.sealed)
	s.mark, s.sum = last.Mark, 0
	s.bytes.Store(s.sealed)
	s.live.Store(last.At)
}

// copyLive makes a file of the live items, sealed and on disk.
func (s *Store) copyLive(path string, live LivenessFilter, pacer *Pacer) (f *os.File, last aof.Seal, err error) {
	c := copier{live: live, pacer: pacer, candidates: make([]Candidate, 0, maxCandidates)}
	if live == nil {
		set := liveSet{pacer: pacer, at: make(map[string]int64)}
		if err := s.scan(&set); err != nil {
			return nil, last, err
		}
		c.live = &set
	}
	if f, err = aof.CreateNew(path); err != nil {
		return nil, last, err
	}
	c.to.f = f
	if err := errors.Join(s.scan(&c), c.to.flush()); err != nil {
		return f, last, err
	}
	if err := c.live.Settle(); err != nil {
		return f, last, err
	}
	last = aof.Seal{Mark: aof.NewMark(), At: c.to.at, Sum: c.to.sum, LSN: s.lsn, OnDisk: c.to.at}
	if _, err := aof.WriteAt(f, last.Append(nil), last.At); err != nil {
		return f, last, err
	}
	return f, last, aof.Fsync(f)
}

// LivenessFilter knows which sets in a store's file are of live items.
type LivenessFilter interface {
	// Mark marks which of these sets, some that follow each other in the file, are those of live items: one an
	// item.
	Mark(candidates []Candidate) error
	// Settle is called when all sets have been seen, before the new file may take the place of the old. An
	// error keeps the old file.
	Settle() error
}

// Candidate is a set in a store's file.
type Candidate struct {
	Key, Rec []byte
	At       aof.Range
	Live     bool
}

// maxCandidates is how many sets are looked at together at most.
const maxCandidates = 128

// copier copies what is live, of all that it visits.
type copier struct {
	live       LivenessFilter
	to         checksumWriter
	pacer      *Pacer
	candidates []Candidate
}

func (c *copier) Set(key, rec []byte, at aof.Range) error {
	c.candidates = append(c.candidates, Candidate{Key: key, Rec: rec, At: at})
	if len(c.candidates) == maxCandidates {
		return c.Passed()
	}
	return nil
}

func (c *copier) Del([]byte) error      { return nil }
func (c *copier) Sealed(aof.Seal) error { return nil }

func (c *copier) Passed() error {
	if err := c.live.Mark(c.candidates); err != nil {
		return err
	}
	for _, s := range c.candidates {
		if s.Live {
			if err := c.to.set(s.Key, s.Rec); err != nil {
				return err
			}
			c.pacer.Wrote(s.At.To - s.At.From)
		}
		c.pacer.Read(s.At.To - s.At.From)
	}
	clear(c.candidates)
	c.candidates = c.candidates[:0]
	return nil
}

// liveSet is the [LivenessFilter] that the file itself yields, to one that has visited it before: an item is
// live if no delete follows its last set.
type liveSet struct {
	pacer *Pacer
	at    map[string]int64 // where the live items are set, by their keys
}

func (l *liveSet) Set(key, _ []byte, at aof.Range) error {
	l.at[string(key)] = at.From
	l.pacer.Read(at.To - at.From)
	return nil
}

func (l *liveSet) Del(key []byte) error {
	delete(l.at, string(key))
	return nil
}

func (l *liveSet) Sealed(aof.Seal) error { return nil }
func (l *liveSet) Passed() error         { return nil }

func (l *liveSet) Mark(candidates []Candidate) error {
	for i := range candidates {
		s := &candidates[i]
		at, ok := l.at[string(s.Key)]
		s.Live = ok && at == s.At.From
	}
	return nil
}

func (l *liveSet) Settle() error { return nil }

// checksumWriter writes sets to a file and adds up the checksum of what it writes.
type checksumWriter struct {
	f   *os.File
	buf []byte
	at  int64 // bytes written
	sum uint32
}

func (w *checksumWriter) set(key, rec []byte) error {
	const most = 64 << 10 // gathered before it is written, but for the last
	w.buf = aof.AppendSet(w.buf, record.View(key), record.View(rec))
	if len(w.buf) < most {
		return nil
	}
	err := w.flush()
	if cap(w.buf) > 2*most {
		w.buf = nil
	}
	return err
}

// flush writes what has been gathered.
func (w *checksumWriter) flush() error {
	n, err := aof.WriteAt(w.f, w.buf, w.at)
	w.sum = crc32.Update(w.sum, record.Castagnoli, w.buf[:n])
	w.at += int64(n)
	w.buf = w.buf[:0]
	return err
}

// roomToCompact refuses if the disk may be too small for a second copy, and removes what an earlier compaction
// that failed may have left.
func (s *Store) roomToCompact() error {
	if err := os.Remove(s.Path() + TempSuffix); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	free, err := aof.FreeDisk(filepath.Dir(s.Path()))
	if err != nil {
		return err
	}
	if need := s.Live() + s.Live()/8 + maxPieceBytes; free < need {
		return fmt.Errorf("compacting %s takes %d bytes of disk for a while, %d are free", s.Path(), need, free)
	}
	return nil
}
