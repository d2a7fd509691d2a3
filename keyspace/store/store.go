package store

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
	"mayfly/vfs"

	"github.com/rs/zerolog"
)

// Store is one file. Applied changes count once Sync has returned nil; until then the journal keeps them. One
// goroutine at a time may use a store, but for Size, Live, Waste and WasteSince.
type Store struct {
	fs     vfs.FS
	file   *aof.File
	sealed int64  // bytes; end of the last seal
	onDisk int64  // bytes; end of the last seal that is known to be on disk
	sum    uint32 // CRC-32C of what has been appended since
	mark   uint32 // in all seals of the file
	lsn    uint64 // of the last seal
	synced bool   // the whole file is on disk
	bytes  atomic.Int64
	live   atomic.Int64
	waste  atomic.Int64 // see WasteSince
	broken error        // final: the content of the disk is unknown
}

// Apply encodes its changes in pieces, in bounded memory.
const (
	maxPieceOps   = 256
	maxPieceBytes = 1 << 20
)

// buffers are shared by all stores: there may be hundreds, mostly written one at a time.
var buffers = sync.Pool{New: func() any { return new([]byte) }}

// Create makes the file of an empty store: a seal that covers nothing. It distinguishes a new file from one
// that has lost its content. It returns the mark of the file.
func Create(fsys vfs.FS, path string) (mark uint32, err error) {
	mark = aof.NewMark()
	return mark, vfs.WriteFile(fsys, path, aof.FirstSeal(mark).Append(nil))
}

// Options say how to open a store.
type Options struct {
	Log zerolog.Logger
	Now int64 // ms; in the name of an end that is cut off

	// Check is called when the file has been read up to its last seal, which has this mark and ends at end.
	// It returns how many bytes are known to be on disk, up to the end of a seal. If it is nil, none are.
	Check func(mark uint32, end int64) (onDisk int64, err error)
	// Visit receives each confirmed change in order; its strings are valid during the call. It may be nil.
	Visit func(aof.Op) error
}

// Open opens a store. Confirmed bytes that are not known to be on disk are written anew ([aof.Rewrite]). An
// end that was never confirmed is cut off and kept aside. Any other difference from what was written is an
// *aof.DamageError.
func Open(fsys vfs.FS, path string, opt Options) (_ *Store, err error) {
	if err := fsys.Remove(path + TempSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	f, err := fsys.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	fi, err := f.Stat()
	if err != nil {
		return nil, err
	}
	var v aof.Visitor
	if opt.Visit != nil {
		v = &aof.Confirmed{Visit: opt.Visit}
	}
	last, sealed, err := aof.Scan(f, path, fi.Size(), aof.Store, v)
	onDisk := int64(0)
	if err == nil && opt.Check != nil {
		onDisk, err = opt.Check(last.Mark, sealed)
	}
	if err != nil {
		return nil, err
	}
	if err := aof.Rewrite(f, aof.Store, last.Mark, onDisk, sealed); err != nil {
		return nil, err
	}
	if sealed < fi.Size() {
		if err := aof.CutTail(fsys, f, sealed, fi.Size(), opt.Now, opt.Log); err != nil {
			return nil, err
		}
	}
	s := &Store{fs: fsys, file: aof.NewFile(fsys, f, path, sealed), sealed: sealed, onDisk: sealed, mark: last.Mark, lsn: last.LSN}
	s.bytes.Store(sealed)
	return s, nil
}

// Apply appends changes in order. After an error none of the changes since the last Sync is in the file, so
// that retries do not fill a disk. The caller applies all of them again.
func (s *Store) Apply(ops []aof.Op) error {
	err := s.apply(ops)
	if err != nil && s.broken == nil {
		s.cutBack()
	}
	return err
}

// cutBack removes the changes since the last Sync.
func (s *Store) cutBack() {
	s.sum = 0
	if err := s.file.CutBack(s.sealed); err != nil {
		s.broken = fmt.Errorf("writing a store: %w", err)
	}
	s.bytes.Store(s.sealed)
}

func (s *Store) apply(ops []aof.Op) error {
	b := buffers.Get().(*[]byte)
	defer func() {
		if cap(*b) <= 2*maxPieceBytes {
			buffers.Put(b)
		}
	}()
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && n < maxPieceOps && (n == 0 || size+len(ops[n].Rec)+len(ops[n].Body) <= maxPieceBytes) {
			if len(ops[n].Key) > record.MaxKeyLength {
				return fmt.Errorf("%s: a key of %d bytes is too long", s.Path(), len(ops[n].Key))
			}
			size += len(ops[n].Rec) + len(ops[n].Body)
			n++
		}
		*b = aof.AppendOps((*b)[:0], ops[:n])
		if err := s.append(*b); err != nil {
			return err
		}
		s.sum = crc32.Update(s.sum, record.Castagnoli, *b)
		ops = ops[n:]
	}
	return nil
}

func (s *Store) append(commands []byte) error {
	if s.broken != nil {
		return s.broken
	}
	s.synced = false
	if err := s.file.Append(commands); err != nil {
		err = fmt.Errorf("writing a store: %w", err)
		if errors.Is(err, aof.ErrTorn) {
			s.broken = err
		}
		return err
	}
	s.bytes.Store(s.file.End())
	return nil
}

// Sync forces the applied changes to disk and confirms them with a seal: all changes up to lsn are in the
// store. The seal is written once its range is on disk, so a readable seal proves that its range was written.
func (s *Store) Sync(lsn uint64) error {
	if s.broken != nil {
		return s.broken
	}
	if s.synced {
		return nil
	}
	if err := s.fsync(); err != nil {
		return err
	}
	if s.bytes.Load() > s.sealed {
		if err := s.seal(lsn); err != nil {
			if s.broken == nil { // as after Apply: the caller applies all changes again
				s.cutBack()
			}
			return err
		}
		if err := s.fsync(); err != nil {
			return err
		}
	}
	s.synced, s.onDisk = true, s.sealed
	return nil
}

// fsync forces the file to disk. A failure is final: the system may have dropped what it could not write, and
// would report success the next time.
func (s *Store) fsync() error {
	if err := s.file.Sync(); err != nil {
		s.broken = fmt.Errorf("forcing a store to disk: %w", err)
	}
	return s.broken
}

// seal appends a seal over the range behind the last one, with the checksum of the changes, not of the file.
func (s *Store) seal(lsn uint64) error {
	at := s.bytes.Load()
	seal := aof.Seal{Mark: s.mark, From: s.sealed, At: at, Sum: s.sum, LSN: lsn, OnDisk: at}
	if err := s.append(seal.Append(nil)); err != nil {
		return err
	}
	s.sealed, s.sum, s.lsn = s.bytes.Load(), 0, lsn
	if s.sealed != at+aof.SealSize {
		s.broken = fmt.Errorf("%s has an unexpected size", s.Path())
	}
	return s.broken
}

// Path returns the name of the file.
func (s *Store) Path() string { return s.file.Path() }

// Broken returns why the store cannot be used any more, or nil.
func (s *Store) Broken() error { return s.broken }

// Sealed returns the size in bytes of the file up to its last seal. Only Compact changes these bytes.
func (s *Store) Sealed() int64 { return s.sealed }

// OnDisk returns the end of the last seal that is known to be on disk, in bytes.
func (s *Store) OnDisk() int64 { return s.onDisk }

// Mark returns the mark in the seals of the file.
func (s *Store) Mark() uint32 { return s.mark }

// LSN returns that of the last seal.
func (s *Store) LSN() uint64 { return s.lsn }

// Size returns the size of the file in bytes.
func (s *Store) Size() int64 { return s.bytes.Load() }

// Live returns the bytes that the live items take in the file.
func (s *Store) Live() int64 { return s.live.Load() }

// SetLive sets Live.
func (s *Store) SetLive(bytes int64) { s.live.Store(bytes) }

// AddLive changes Live.
func (s *Store) AddLive(bytes int64) { s.live.Add(bytes) }

// Waste returns the bytes that a compaction saves.
func (s *Store) Waste() int64 { return s.Size() - s.Live() - aof.SealSize }

// Sizes returns the bytes of stores: those of live items, and all.
func Sizes(stores []*Store) (live, size int64) {
	for _, s := range stores {
		live += s.Live()
		size += s.Size()
	}
	return live, size
}

// Close confirms the applied changes and closes the file.
func (s *Store) Close() error { return errors.Join(s.Sync(s.lsn), s.file.Close()) }

// Fill writes the items of a store that [Create] has made, and returns its mark and end.
func Fill(fsys vfs.FS, path string, ops []aof.Op) (mark uint32, end int64, err error) {
	created := func(_ uint32, end int64) (int64, error) { return end, nil }
	s, err := Open(fsys, path, Options{Log: zerolog.Nop(), Check: created})
	if err != nil {
		return 0, 0, err
	}
	err = errors.Join(s.Apply(ops), s.Close())
	return s.mark, s.sealed, err
}
