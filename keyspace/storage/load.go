package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
)

// Loader takes what the files hold into memory. Texts are views: what is kept must be cloned.
type Loader interface {
	// Catalogue applies a record of the catalogue, or its delete, of the store or of a journal.
	Catalogue(key, rec string, deleted, journaled bool) error

	// Table returns the table of items with keys as this one in a partition, and makes it if need be. Calls
	// for different partitions are concurrent.
	Table(partition int, k record.Key) *memtable.Table
}

// Open opens a data folder, or makes it. Errors are one clear line.
func Open(opt Options) (_ *Engine, err error) {
	opt.Piece, opt.Between, opt.Pace, opt.Least = 256, runtime.Gosched, store.DefaultPace, journal.MinLimit
	e := &Engine{Options: opt, wake: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	e.Scrub = newScrubber(scrubOptions{folder: scrubFolder{e}, log: opt.Log, now: opt.Now, stop: opt.Stop})
	e.SetCompaction(store.DefaultCompaction)
	if e.folder, err = datadir.Open(opt.FS, opt.Dir, opt.Partitions, opt.Log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.Abandon()
		}
	}()
	e.seed, e.seedKept = e.folder.ReadSeed()
	e.items = make([]*store.Store, e.folder.Partitions)
	if e.Disk, err = newDiskGuard(opt.FS, opt.Dir, opt.Reserve, opt.Log, e.Wake); err != nil {
		return nil, err
	}
	e.manifest, err = readManifest(opt.FS, opt.Dir)
	return e, err
}

// Load loads the state of the files:
//
//  1. the catalogue's store and the partitions' stores. The last checkpoint may have been interrupted;
//  2. the journals in order. Every change is the whole state of an item, so those that the stores already
//     have do no harm;
//  3. items that then belong to no container were dropped. The loader has them deleted.
//
// It returns the latest write of each partition.
func (e *Engine) Load(partitions []Partition, m Memory, l Loader) (latest []Latest, err error) {
	e.partitions, e.memory, e.waste.inItems = partitions, m, make([]bool, len(partitions))
	begin := e.Options.Now()
	if err := e.loadCatalogue(l); err != nil {
		return nil, err
	}
	parts := make([]*partitionLoader, len(partitions))
	for i, p := range partitions {
		parts[i] = &partitionLoader{e: e, loader: l, number: i, shard: p.Shard, tables: make(map[tableKey]*memtable.Table)}
	}
	if err := e.loadPartitions(parts); err != nil {
		return nil, err
	}
	e.finished, e.lastLSN, err = journal.Replay(journal.ReplayOptions{
		FS: e.Options.FS, Dir: e.Options.Dir, Log: e.Options.Log, Now: begin, Check: e.manifest.CheckJournal,
		Visit: func(o aof.Op) error { return e.replay(l, parts, o) },
	})
	for _, p := range parts {
		latest = append(latest, p.latest)
	}
	return latest, err
}

// Begin begins a new journal. The items that belong to no container are gone from memory.
func (e *Engine) Begin() (err error) {
	for i, s := range e.items {
		s.SetLive(e.partitions[i].Shard.LiveBytes())
	}
	m := e.manifest
	e.Journal, err = journal.Open(journal.Options{
		FS: e.Options.FS, Preallocate: e.Options.Preallocate, Dir: e.Options.Dir, Finished: e.finished, First: e.lastLSN + 1, Policy: e.Options.Policy, Log: e.Options.Log,
		Full: func() { signal(e.full) }, Room: e.Disk, Replication: e.replication(),
		Around: func(makeFile func() error) error { return e.files.begin(m, makeFile) },
	})
	if err != nil {
		return err
	}
	e.manifest, e.finished = nil, nil
	e.files = &fileSet{folder: e.folder, stores: e.Stores(), journal: e.Journal}
	if err := e.Disk.Begin(e.Journal); err != nil {
		return err
	}
	e.LimitJournal()
	e.noteLoadedWaste()
	e.checkpoint.last.Store(e.Options.Now())
	e.keepSeed()
	return nil
}

// openStore opens a store and compares it with the manifest.
func (e *Engine) openStore(path string, visit func(aof.Op) error) (*store.Store, error) {
	check := func(mark uint32, end int64) (int64, error) { return e.manifest.CheckStore(path, mark, end) }
	return store.Open(e.Options.FS, path, store.Options{Log: e.Options.Log, Now: e.Options.Now(), Check: check, Visit: visit})
}

func (e *Engine) loadCatalogue(l Loader) (err error) {
	path := filepath.Join(e.Options.Dir, datadir.CatalogueName)
	present := make(map[string]string)
	e.catalogue, err = e.openStore(path, func(o aof.Op) error {
		if _, again := present[o.Key]; record.ContainsText(o.Key) {
			e.waste.inCatalogue = e.waste.inCatalogue || again || o.Del
		}
		if o.Del {
			delete(present, o.Key)
		} else {
			present[strings.Clone(o.Key)] = strings.Clone(o.Rec)
		}
		return nil
	})
	if err != nil {
		return err
	}
	e.checkpoint.records = make(store.LiveRecords)
	for key, rec := range present {
		e.catalogue.AddLive(e.checkpoint.records.Count([]aof.Op{{Key: key, Rec: rec}}))
		if key == record.WasteKey {
			err = e.waste.load(rec)
		} else {
			e.waste.noteClock(aof.Op{Key: key, Rec: rec}, false)
			err = l.Catalogue(key, rec, false, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// loadPartitions loads all partitions, as many at a time as there are processors.
func (e *Engine) loadPartitions(parts []*partitionLoader) error {
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(parts))
	var done atomic.Int64
	for i, part := range parts {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if errs[i] = part.load(); errs[i] == nil {
				e.Options.Log.Debug().Int("partition", i).Int64("of", done.Add(1)).Int("items", part.items()).Msg("partition loaded")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// replay applies one change of a journal.
func (e *Engine) replay(l Loader, parts []*partitionLoader, o aof.Op) error {
	if record.InCatalogue(o.Key) {
		e.waste.noteClock(o, true)
		e.waste.inJournal = e.waste.inJournal || record.ContainsText(o.Key)
		return l.Catalogue(o.Key, o.Rec, o.Del, true)
	}
	e.waste.inJournal = true
	key, touched := record.TouchedKey(o.Key)
	k, err := record.SplitKey(key)
	if err != nil {
		return err
	}
	part := parts[k.Partition(len(parts))]
	if touched {
		return part.touch(k, o)
	}
	return part.apply(k, o, true)
}
