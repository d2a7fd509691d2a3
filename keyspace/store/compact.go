package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"path/filepath"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"
)

// TempSuffix ends the name of the new file of a running compaction. A start ignores and removes such a file.
const TempSuffix = ".tmp"

// Compact rewrites the file without overwritten and deleted items. All applied changes must have been synced. A
// crash at any point leaves either the old file or the new one:
//
//  1. Read the old file and verify it as at a start. A damaged one stays as it is.
//  2. Copy the sets of live items, in their order, to a temporary file, seal it as a whole and force it to disk.
//  3. Rename the temporary file to the name of the store, durably.
//
// live knows the live items. If it is nil, Compact reads the file once more to find them. If announce is not nil, it is
// called before the rename with the mark and the size of the new file. Its error keeps the old file.
//
// A failure before the rename leaves the file as it was. One after it breaks the store: either file may be on disk.
func (s *Store) Compact(live LivenessFilter, pacer *Pacer, announce func(mark uint32, end int64) error) error {
	if s.broken != nil {
		return s.broken
	}
	if !s.synced {
		return errors.New("a store must be on disk before it is compacted")
	}
	if err := s.prepareCompaction(); err != nil {
		return err
	}
	return s.exchange(announce, func(tmp string) (vfs.File, aof.Seal, error) { return s.copyLive(tmp, live, pacer) })
}

// Rewrite replaces a file that is damaged. fill calls set for each item of the new file. Then it must bring the journal to
// disk, as Settle of a [LivenessFilter] does. announce is as in Compact, and so is a crash or a failure.
func (s *Store) Rewrite(announce func(mark uint32, end int64) error, fill func(set func(aof.Op)) error) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.prepareCompaction(); err != nil {
		return err
	}
	return s.exchange(announce, func(tmp string) (f vfs.File, last aof.Seal, err error) {
		if f, err = vfs.CreateNew(s.fs, tmp); err != nil {
			return nil, last, err
		}
		to := checksumWriter{f: f}
		var failed error
		err = fill(func(o aof.Op) {
			if failed == nil {
				failed = to.set(o)
			}
		})
		if err := errors.Join(failed, err); err != nil {
			return f, last, err
		}
		last, err = to.finish(s.lsn)
		return f, last, err
	})
}

// exchange replaces the file by one that write makes under a temporary name, sealed and on disk.
func (s *Store) exchange(announce func(mark uint32, end int64) error, write func(tmp string) (vfs.File, aof.Seal, error)) error {
	path, tmp := s.Path(), s.Path()+TempSuffix
	f, last, err := write(tmp)
	if err == nil && announce != nil {
		err = announce(last.Mark, last.At+aof.SealSize)
	}
	if err == nil {
		err = s.fs.Rename(tmp, path)
	}
	if err != nil {
		if f != nil {
			err = errors.Join(err, f.Close(), s.fs.Remove(tmp))
		}
		return err
	}
	s.replace(f, last)
	if err := vfs.SyncDir(s.fs, filepath.Dir(path)); err != nil {
		s.broken = fmt.Errorf("compacting %s: %w", path, err)
	}
	return s.broken
}

// replace switches to the new file, which ends with this seal.
func (s *Store) replace(f vfs.File, last aof.Seal) {
	s.file.Close() // it is on disk
	s.sealed = last.At + aof.SealSize
	s.onDisk = s.sealed
	s.file = aof.NewFile(s.fs, f, s.file.Path(), s.sealed)
	s.mark, s.sum, s.synced = last.Mark, 0, true
	s.bytes.Store(s.sealed)
	s.live.Store(last.At)
	s.waste.Store(0)
}

// copyLive makes a file of the live items, sealed and on disk.
func (s *Store) copyLive(path string, live LivenessFilter, pacer *Pacer) (f vfs.File, last aof.Seal, err error) {
	c := copier{live: live, pacer: pacer, candidates: make([]Candidate, 0, maxCandidates)}
	if live == nil {
		set := liveSet{pacer: pacer, at: make(map[string]int64)}
		if err := s.scan(&set); err != nil {
			return nil, last, err
		}
		c.live = &set
	}
	if f, err = vfs.CreateNew(s.fs, path); err != nil {
		return nil, last, err
	}
	c.to.f = f
	if err := s.scan(&c); err != nil {
		return f, last, err
	}
	if err := c.live.Settle(); err != nil {
		return f, last, err
	}
	last, err = c.to.finish(s.lsn)
	return f, last, err
}

// LivenessFilter knows which sets in a store's file are of live items.
type LivenessFilter interface {
	// Mark marks the sets of live items among sets that follow each other in the file. Each item has one.
	Mark(candidates []Candidate) error
	// Settle is called after the last Mark, before the new file replaces the old. An error keeps the old file.
	Settle() error
}

// Candidate is a set in a store's file.
type Candidate struct {
	Key, Rec []byte
	At       aof.Range
	Live     bool
}

// maxCandidates is the number of sets that Mark gets at most.
const maxCandidates = 128

// copier is a visitor that copies the live sets.
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
			if err := c.to.set(aof.Op{Key: record.View(s.Key), Rec: record.View(s.Rec)}); err != nil {
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

// liveSet is a visitor that finds the live items of a file, and then a [LivenessFilter]. An item is live if no
// delete follows its last set.
type liveSet struct {
	pacer *Pacer
	at    map[string]int64 // offset of the last set, by key
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

// checksumWriter writes sets to a file and computes their checksum.
type checksumWriter struct {
	f    vfs.File
	buf  []byte
	at   int64 // end of the file in bytes
	sum  uint32
	mark uint32 // of the file, drawn by begin, or else by finish
	from int64  // end of the first seal; 0: there is none
}

// begin writes the first seal of the file, which covers nothing.
func (w *checksumWriter) begin() error {
	w.mark = aof.NewMark()
	n, err := w.f.WriteAt(aof.FirstSeal(w.mark).Append(nil), 0)
	w.at, w.from = int64(n), int64(n)
	return err
}

func (w *checksumWriter) set(o aof.Op) error {
	const most = 64 << 10 // bytes to buffer
	w.buf = aof.AppendOps(w.buf, []aof.Op{o})
	if len(w.buf) < most {
		return nil
	}
	err := w.flush()
	if cap(w.buf) > 2*most {
		w.buf = nil
	}
	return err
}

// flush writes the buffer.
func (w *checksumWriter) flush() error {
	n, err := w.f.WriteAt(w.buf, w.at)
	w.sum = crc32.Update(w.sum, record.Castagnoli, w.buf[:n])
	w.at += int64(n)
	w.buf = w.buf[:0]
	return err
}

// finish seals the new file as a whole and forces it to disk.
func (w *checksumWriter) finish(lsn uint64) (last aof.Seal, err error) {
	if err := w.flush(); err != nil {
		return last, err
	}
	if w.from == 0 {
		w.mark = aof.NewMark()
	}
	last = aof.Seal{Mark: w.mark, From: w.from, At: w.at, Sum: w.sum, LSN: lsn, OnDisk: w.at}
	if _, err := w.f.WriteAt(last.Append(nil), last.At); err != nil {
		return last, err
	}
	return last, w.f.Sync()
}

// spare is the room in bytes that a compaction leaves at least for other writes. One that gives back much more than it
// takes leaves almost none: it ends a shortage.
func (s *Store) spare() int64 {
	if s.Live() < s.Size()/8 {
		return 4 << 10
	}
	return maxPieceBytes
}

// compactionRoom returns the bytes of disk that a compaction may take.
func (s *Store) compactionRoom() int64 { return s.Live() + s.Live()/8 + s.spare() }

// prepareCompaction removes the remains of a failed compaction, and refuses if the disk may be too small for a
// second copy.
func (s *Store) prepareCompaction() error {
	if err := s.fs.Remove(s.Path() + TempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	free, _, err := s.fs.Room(filepath.Dir(s.Path()))
	if err != nil {
		return err
	}
	if need := s.compactionRoom(); free < need {
		return fmt.Errorf("compacting %s takes up to %d bytes of disk, %d are free", s.Path(), need, free)
	}
	return nil
}
