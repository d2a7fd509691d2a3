package keyspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/rs/zerolog"
	"github.com/tidwall/buntdb"
)

// store is one buntdb file: a partition's items or the catalogue. What is applied counts once sync
// has returned nil; at the next start all that came after the last such sync is cut off, so it must
// still be in the journal. One goroutine at a time may use a store, but for size.
type store struct {
	file   *dbFile      // buntdb has not read it before attach
	sealed int64        // bytes; end of the last seal
	mark   uint32       // in all seals of the file
	synced bool         // all of the file is on disk
	bytes  atomic.Int64 // size of the file
	live   atomic.Int64 // bytes of it that the present items take, seals apart
	broken error        // after an fsync that failed: what is on disk is not known any more
	rest   rests        // of a compaction under way

	// Between read and attach: how many items the file holds, and what is to be told of them, a few at a
	// time, when buntdb has read them.
	items int
	share func(items []op)
}

// op is one change of a store.
type op struct {
	key, rec string
	del      bool
	known    bool // the store has an item of this key
}

// A transaction holds a store's lock and its memory: both are bounded.
const (
	maxTxOps   = 224 // what the maps of a transaction hold before they grow to twice the size
	maxTxBytes = 1 << 20
)

// openStore opens a store, or makes it if there is no file; see checkStore.
func openStore(path string, log zerolog.Logger, now int64) (*store, error) {
	return openStoreWith(path, log, now, nil)
}

func openStoreWith(path string, log zerolog.Logger, now int64, faults *faults) (*store, error) {
	s, err := checkStore(path, log, now, faults)
	if err != nil {
		return nil, err
	}
	if err := s.attach(); err != nil {
		return nil, errors.Join(err, s.file.close())
	}
	return s, nil
}

// checkStore opens a store that buntdb reads later, or makes it if there is no file. It reads all of the
// file: an end that was never confirmed is cut off and kept aside under a name with the time now (ms);
// anything else that is not as it was written is a *DamageError.
func checkStore(path string, log zerolog.Logger, now int64, faults *faults) (_ *store, err error) {
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
	last, sealed, err := scanStore(f, path, fi.Size())
	if err != nil {
		return nil, err
	}
	if sealed < fi.Size() {
		if err := cutTail(f, sealed, fi.Size(), now, log); err != nil {
			return nil, err
		}
	}
	s := &store{file: &dbFile{path: path, f: f, faults: faults}, sealed: sealed, mark: last.mark}
	s.bytes.Store(sealed)
	return s, nil
}

// createStore makes the file of an empty store: a seal that covers nothing. So a file that has lost
// all it held is told from a new one.
func createStore(path string) error { return writeFile(path, firstSeal().bytes()) }

// undoCompaction clears up after a compaction that a crash has interrupted. Before buntdb rewrites
// a file it gets a second name, .prev, which goes when the new file is safely on disk and sealed:
// while there is a .prev, it is the one that counts.
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

// load visits all items in ascending order of their keys. The strings are shared with buntdb.
//
// It is one long View. That is harmless only because the store has just been opened and nobody else
// uses it: buntdb's background goroutine waits meanwhile, and nothing waits behind it.
func (s *store) load(visit func(key, rec string) error) error {
	if err := s.attach(); err != nil {
		return err
	}
	var failed error
	var some []string // every so many keys
	live, items := int64(0), 0
	err := s.file.db.View(func(tx *buntdb.Tx) error {
		return tx.AscendKeys("*", func(key, rec string) bool {
			if key != sealKey {
				live += commandSize(len(key), len(rec))
				if items++; items%loosenEvery == 0 {
					some = append(some, key)
				}
				failed = visit(key, rec)
			}
			return failed == nil
		})
	})
	s.live.Store(live)
	if err := errors.Join(failed, err); err != nil {
		return err
	}
	return s.loosen(some)
}

// apply makes changes in order, in transactions of bounded size; after an error some may be made
// and others not, and all can be applied again. Of changes of one key the last wins.
func (s *store) apply(ops []op) error {
	for len(ops) > 0 {
		n, size := 0, 0
		for n < len(ops) && n < maxTxOps && (n == 0 || size+len(ops[n].rec) <= maxTxBytes) {
			if len(ops[n].key) > maxKeySize {
				return fmt.Errorf("%s: a key of %d bytes is too long", s.file.f.Name(), len(ops[n].key))
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
	if err := s.attach(); err != nil {
		return err
	}
	s.synced = false
	live := s.live.Load()
	err := s.file.update(func(tx *buntdb.Tx) error {
		for _, o := range ops {
			gain, err := apply(tx, o)
			if err != nil {
				return err
			}
			if o.key != sealKey {
				live += gain
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("writing a store: %w", err)
	}
	size, err := s.file.size()
	if err != nil {
		return err
	}
	s.bytes.Store(size)
	s.live.Store(live)
	return nil
}

// apply makes one change and tells by how many bytes it has made what lives larger.
func apply(tx *buntdb.Tx, o op) (gain int64, err error) {
	var old string
	had := false
	if o.del {
		old, err = tx.Delete(o.key)
		if err == buntdb.ErrNotFound {
			return 0, nil
		}
		had = true
	} else {
		old, had, err = tx.Set(o.key, o.rec, nil)
		gain = commandSize(len(o.key), len(o.rec))
	}
	if had {
		gain -= commandSize(len(o.key), len(old))
	}
	return gain, err
}

// deletePrefix deletes all items whose keys begin with a prefix, in small transactions.
func (s *store) deletePrefix(prefix string) error {
	if err := s.attach(); err != nil {
		return err
	}
	for {
		var ops []op
		err := s.file.db.View(func(tx *buntdb.Tx) error {
			return tx.AscendGreaterOrEqual("", prefix, func(key, _ string) bool {
				if !strings.HasPrefix(key, prefix) || len(ops) == maxTxOps {
					return false
				}
				ops = append(ops, op{key: key, del: true})
				return true
			})
		})
		if err != nil || len(ops) == 0 {
			return err
		}
		if err := s.apply(ops); err != nil {
			return err
		}
	}
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

// seal appends a seal over all that came after the last one.
func (s *store) seal() error {
	at := s.bytes.Load()
	crc, err := sumRange(s.file.f, s.sealed, at, s.rest)
	if err != nil {
		return fmt.Errorf("reading a store: %w", err)
	}
	rec := seal{mark: s.mark, from: s.sealed, at: at, crc: crc}.record()
	if err := s.transact([]op{{key: sealKey, rec: rec}}); err != nil {
		return err
	}
	s.sealed = s.bytes.Load()
	if s.sealed != at+sealSize {
		s.broken = fmt.Errorf("%s has a size that nothing written explains", s.file.f.Name())
	}
	return s.broken
}

// size is the size of the file in bytes. Safe for concurrent use.
func (s *store) size() int64 { return s.bytes.Load() }

// close confirms what has been applied and closes the file.
func (s *store) close() error { return errors.Join(s.sync(), s.file.close()) }
