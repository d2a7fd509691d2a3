package keyspace

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"mayfly/keyspace/record"

	"github.com/rs/zerolog"
)

// store is one buntdb file: a partition's items or the catalogue. What is applied counts once sync
// has returned nil; at the next start all that came after the last such sync is cut off, so it must
// still be in the journal. One goroutine at a time may use a store, but for size and live.
//
// A store is read when it is opened and when it is compacted; nothing of it stays in memory.
type store struct {
	file   *dbFile
	sealed int64        // bytes; end of the last seal
	crc    uint32       // CRC-32C of what has been appended since
	mark   uint32       // in all seals of the file
	synced bool         // all of the file is on disk
	bytes  atomic.Int64 // size of the file
	live   atomic.Int64 // bytes that the present items would take in a file of nothing else; who applies tells it
	broken error        // what is on disk is not known any more, after an fsync that failed, say
}

// op is one change of a store.
type op struct {
	key, rec string
	del      bool
}

// A transaction is put into words in memory before it is written: how much is bounded.
const (
	maxTxOps   = 256
	maxTxBytes = 1 << 20
)

// txBuffers are for all stores, as one at a time is written, mostly, and there may be hundreds.
var txBuffers = sync.Pool{New: func() any { return new([]byte) }}

// openStore opens a store, or makes it if there is no file. It reads all of the file: an end that
// was never confirmed is cut off and kept aside under a name with the time now (ms); anything else
// that is not as it was written is a *DamageError.
func openStore(path string, log zerolog.Logger, now int64) (*store, error) {
	return openStoreWith(path, log, now, nil)
}

func openStoreWith(path string, log zerolog.Logger, now int64, faults *faults) (*store, error) {
	return openStoreVisited(path, log, now, faults, nil)
}

// loadStore opens a store and visits its operations in order, all that are confirmed. The strings are valid only
// during the visit.
func loadStore(path string, log zerolog.Logger, now int64, visit func(op) error) (*store, error) {
	return openStoreVisited(path, log, now, nil, &confirmed{visit: visit})
}

// confirmed visits operations once they are known to be confirmed. What they are about is valid during the visit.
type confirmed struct {
	keepsNothing
	visit   func(op) error
	waiting []op
	texts   []byte        // where the next texts are put, as long as there is room
	pages   []*[page]byte // where all of them are, but for the large ones
}

// A start reads many stores, each of which waits for its seal: without pages to be used again, it would leave
// as much garbage as there is data.
const page = 64 << 10 // bytes

var pages = sync.Pool{New: func() any { return new([page]byte) }}

func (v *confirmed) set(key, rec []byte, _ fileRange) error {
	size := len(key) + len(rec)
	switch room := cap(v.texts) - len(v.texts); {
	case size > page:
		v.texts = make([]byte, 0, size)
	case size > room:
		p := pages.Get().(*[page]byte)
		v.pages = append(v.pages, p)
		v.texts = p[:0]
	}
	from := len(v.texts)
	v.texts = append(append(v.texts, key...), rec...)
	text := record.View(v.texts[from:])
	v.waiting = append(v.waiting, op{key: text[:len(key)], rec: text[len(key):]})
	return nil
}

func (v *confirmed) del(key []byte) error {
	v.waiting = append(v.waiting, op{key: string(key), del: true})
	return nil
}

func (v *confirmed) sealed() error {
	for i, o := range v.waiting {
		if err := v.visit(o); err != nil {
			return err
		}
		v.waiting[i] = op{} // its memory can go
	}
	v.waiting, v.texts = v.waiting[:0], nil
	for _, p := range v.pages {
		pages.Put(p)
	}
	v.pages = v.pages[:0]
	return nil
}

func openStoreVisited(path string, log zerolog.Logger, now int64, faults *faults, v storeVisitor) (_ *store, err error) {
	if err := undoCompaction(path, log); err != nil {
		return nil, err
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := errors.Join(createStore(path), fsyncDir(filepath.Dir(path))); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
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
	last, sealed, err := scanStore(f, path, fi.Size(), v)
	if err != nil {
		return nil, err
	}
	if sealed < fi.Size() {
		if err := cutTail(f, sealed, fi.Size(), now, log); err != nil {
			return nil, err
		}
	}
	s := &store{file: newDBFile(f, sealed, faults), sealed: sealed, mark: last.mark}
	s.bytes.Store(sealed)
	return s, nil
}

// createStore makes the file of an empty store: a seal that covers nothing. So a file that has lost
// all it held is told from a new one.
func createStore(path string) error { return writeFile(path, firstSeal().bytes()) }

// undoCompaction clears up after a compaction that a crash has interrupted. Earlier versions replaced a
// file before the new one was safely on disk; the old one had a second name meanwhile, .prev: if there is
// one, it is the one that counts.
func undoCompaction(path string, log zerolog.Logger) error {
	if err := os.Remove(path + ".tmp"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	prev := path + ".prev"
	old, err := os.Stat(prev)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	log.Warn().Str("file", path).Msg("a compaction did not come to its end: going back to the file from before it")
	if current, err := os.Stat(path); err == nil && os.SameFile(old, current) {
		err = os.Remove(prev) // rename does nothing when both are names of one file
		return errors.Join(err, fsyncDir(filepath.Dir(path)))
	}
	return errors.Join(os.Rename(prev, path), fsyncDir(filepath.Dir(path)))
}

// apply makes changes in order, in transactions of bounded size. After an error all changes since the last
// sync are to be applied again: they are taken back, lest every attempt take more of a disk that is full.
// Of changes of one key the last wins.
func (s *store) apply(ops []op) error {
	err := s.applyAll(ops)
	if err != nil && s.broken == nil {
		s.takeBack()
	}
	return err
}

// takeBack takes back what has been applied since the last sync.
func (s *store) takeBack() {
	s.file.end, s.crc = s.sealed, 0
	if err := s.file.takeBack(); err != nil {
		s.broken = fmt.Errorf("writing a store: %w", err)
	}
	s.bytes.Store(s.sealed)
}

func (s *store) applyAll(ops []op) error {
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && n < maxTxOps && (n == 0 || size+len(ops[n].rec) <= maxTxBytes) {
			if len(ops[n].key) > record.MaxKeyLength {
				return fmt.Errorf("%s: a key of %d bytes is too long", s.path(), len(ops[n].key))
			}
			size += len(ops[n].rec)
			n++
		}
		if err := s.transact(ops[:n]); err != nil {
			return err
		}
		ops = ops[n:]
	}
	return nil
}

func (s *store) transact(ops []op) error {
	if s.broken != nil {
		return s.broken
	}
	s.synced = false
	crc := s.crc
	err := s.file.append(func(w io.Writer) error {
		b := txBuffers.Get().(*[]byte)
		*b = appendCommands((*b)[:0], ops)
		crc = crc32.Update(crc, record.Castagnoli, *b)
		_, err := w.Write(*b)
		if cap(*b) <= 2*maxTxBytes {
			txBuffers.Put(b)
		}
		return err
	})
	if err != nil {
		err = fmt.Errorf("writing a store: %w", err)
		if errors.Is(err, errTorn) {
			s.broken = err
		}
		return err
	}
	s.crc = crc
	s.bytes.Store(s.file.end)
	return nil
}

// scan reads all that has been written to the file. What has been confirmed must be there: at a start an end
// of it that looks as if it had never been written would be cut off, but here it is known that it was.
func (s *store) scan(v storeVisitor) error {
	_, end, err := scanStore(s.file.f, s.path(), s.bytes.Load(), v)
	if err == nil && end != s.sealed {
		err = &DamageError{s.path(), end, s.sealed, "what was confirmed is not there any more"}
	}
	return err
}

// sync forces all that has been applied to disk and confirms it with a seal. The seal is written
// after what it covers is on disk: after a power cut one that can be read proves that all before
// it was written.
func (s *store) sync() error {
	if s.broken != nil {
		return s.broken
	}
	if s.synced {
		return nil
	}
	if err := s.fsync(); err != nil {
		return err
	}
	if s.bytes.Load() > s.sealed || s.sealed == 0 { // an empty store needs a seal, too
		if err := s.seal(); err != nil {
			return err
		}
		if err := s.fsync(); err != nil {
			return err
		}
	}
	s.synced = true
	return nil
}

// fsync forces the file to disk. A failure is final: the system may have dropped what it could not
// write, and would report success the next time.
func (s *store) fsync() error {
	if err := s.file.fsync(); err != nil {
		s.broken = fmt.Errorf("forcing a store to disk: %w", err)
	}
	return s.broken
}

// seal appends a seal over all that came after the last one, as it was meant to be.
func (s *store) seal() error {
	at := s.bytes.Load()
	rec := seal{mark: s.mark, from: s.sealed, at: at, crc: s.crc}.record()
	if err := s.transact([]op{{key: sealKey, rec: rec}}); err != nil {
		return err
	}
	s.sealed, s.crc = s.bytes.Load(), 0
	if s.sealed != at+sealSize {
		s.broken = fmt.Errorf("%s has a size that nothing written explains", s.path())
	}
	return s.broken
}

// size is the size of the file in bytes. Safe for concurrent use.
func (s *store) size() int64 { return s.bytes.Load() }

// close confirms what has been applied and closes the file.
func (s *store) close() error { return errors.Join(s.sync(), s.file.close()) }
