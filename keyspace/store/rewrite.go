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

// TempSuffix ends the name of the new file of a running rewrite. A start ignores and removes such a file.
const TempSuffix = ".tmp"

// Rewrite replaces the file. A crash at any point leaves either the old file or the new one:
//
//  1. fill calls set for each item of the new file, which has a temporary name. Then it must bring the
//     journal to disk.
//  2. Seal the new file as a whole and force it to disk.
//  3. Rename it to the name of the store, durably.
//
// lsn is that of the new file: all changes up to it are in there. The old file is not read, so it may be
// damaged. If announce is not nil, it is called before the rename with the mark and the size of the new file.
// Its error keeps the old file.
//
// A failure before the rename leaves the file as it was. One after it breaks the store: either file may be on
// disk.
func (s *Store) Rewrite(lsn uint64, announce func(mark uint32, end int64) error, fill func(set func(aof.Op)) error) error {
	if s.broken != nil {
		return s.broken
	}
	if err := s.prepareRewrite(); err != nil {
		return err
	}
	path, tmp := s.Path(), s.Path()+TempSuffix
	f, last, err := s.write(tmp, lsn, fill)
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
		s.broken = fmt.Errorf("rewriting %s: %w", path, err)
	}
	return s.broken
}

// write makes a file of what fill sets, sealed and on disk.
func (s *Store) write(path string, lsn uint64, fill func(set func(aof.Op)) error) (f vfs.File, last aof.Seal, err error) {
	if f, err = vfs.CreateNew(s.fs, path); err != nil {
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
	last, err = to.finish(lsn)
	return f, last, err
}

// replace switches to the new file, which ends with this seal.
func (s *Store) replace(f vfs.File, last aof.Seal) {
	s.file.Close() // it is on disk
	s.sealed = last.At + aof.SealSize
	s.onDisk = s.sealed
	s.file = aof.NewFile(s.fs, f, s.file.Path(), s.sealed)
	s.mark, s.lsn, s.sum, s.synced = last.Mark, last.LSN, 0, true
	s.bytes.Store(s.sealed)
	s.live.Store(last.At)
	s.waste.Store(0)
}

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

// spare is the room in bytes that a compaction leaves at least for other writes. One that gives back much
// more than it takes leaves almost none: it ends a shortage. That of a small file is over soon.
func (s *Store) spare() int64 {
	const least = 4 << 10
	if s.Live() < s.Size()/8 {
		return least
	}
	return min(max(s.Size()/8, least), maxPieceBytes)
}

// rewriteRoom returns the bytes of disk that a rewrite may take.
func (s *Store) rewriteRoom() int64 { return s.Live() + s.Live()/8 + s.spare() }

// prepareRewrite removes the remains of a failed one, and refuses if the disk may be too small for a
// second copy.
func (s *Store) prepareRewrite() error {
	if err := s.fs.Remove(s.Path() + TempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	free, _, err := s.fs.Room(filepath.Dir(s.Path()))
	if err != nil {
		return err
	}
	if need := s.rewriteRoom(); free < need {
		return fmt.Errorf("rewriting %s takes up to %d bytes of disk, %d are free", s.Path(), need, free)
	}
	return nil
}
