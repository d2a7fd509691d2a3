package storage

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/fileset"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/record"
	"mayfly/keyspace/reserve"
	"mayfly/keyspace/scrub"
	"mayfly/keyspace/store"
)

// Loader takes what the files hold into memory. Texts are views: what is kept must be cloned.
type Loader interface {
	// Catalogue applies a record of the catalogue, or its delete, of the store or of a journal.
	Catalogue(key, rec string, deleted, journaled bool) error

	// Item applies a change of an item of a container, of the partition's store or of a journal. The store lacks those
	// of journals. Calls for different partitions are concurrent.
	Item(partition int, container uint32, id string, o aof.Op, journaled bool) error

	// Touch applies a touch of a journal.
	Touch(partition int, container uint32, id string, o aof.Op) error

	// Loaded is called when a partition's store was read.
	Loaded(partition int)
}

// Open opens a data folder, or makes it. Errors are one clear line.
func Open(opt Options) (_ *Engine, err error) {
	opt.Piece, opt.Between, opt.Pace, opt.Least = 256, runtime.Gosched, store.DefaultPace, journal.MinLimit
	e := &Engine{Options: opt, wake: make(chan struct{}, 1), full: make(chan struct{}, 1)}
	e.Scrub = scrub.New(scrub.Options{Folder: scrubFolder{e}, Log: opt.Log, Now: opt.Now, Stop: opt.Stop})
	e.SetCompaction(store.DefaultCompaction)
	if e.folder, err = datadir.Open(opt.Dir, opt.Partitions, opt.Log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			e.Abandon()
		}
	}()
	e.items = make([]*store.Store, e.folder.Partitions)
	if e.Disk, err = reserve.NewGuard(opt.Dir, opt.Reserve, opt.Log, e.Wake); err != nil {
		return nil, err
	}
	e.manifest, err = fileset.ReadManifest(opt.Dir)
	return e, err
}

// Load loads the state of the files:
//
//  1. the catalogue's store and the partitions' stores. The last checkpoint may have been interrupted;
//  2. the journals in order. Every change is the whole state of an item, so those that the stores already have do no
//     harm;
//  3. items that then belong to no container were dropped. The loader has them deleted.
func (e *Engine) Load(partitions []Partition, m Memory, l Loader) (err error) {
	e.partitions, e.memory = partitions, m
	begin := e.Options.Now()
	if err := e.loadCatalogue(l); err != nil {
		return err
	}
	if err := e.loadPartitions(l); err != nil {
		return err
	}
	e.finished, e.lastLSN, err = journal.Replay(journal.ReplayOptions{
		Dir: e.Options.Dir, Log: e.Options.Log, Now: begin, Check: e.manifest.CheckJournal,
		Visit: func(o aof.Op) error { return e.replay(l, o) },
	})
	return err
}

// Begin begins a new journal. The items that belong to no container are gone from memory.
func (e *Engine) Begin() (err error) {
	for i, s := range e.items {
		s.SetLive(e.partitions[i].Shard.LiveBytes())
	}
	m := e.manifest
	e.Journal, err = journal.Open(journal.Options{
		Dir: e.Options.Dir, Finished: e.finished, First: e.lastLSN + 1, Policy: e.Options.Policy, Log: e.Options.Log,
		Full: func() { signal(e.full) }, MakeRoom: e.Disk.MakeRoom,
		Around: func(makeFile func() error) error { return e.Files.Begin(m, makeFile) },
	})
	if err != nil {
		return err
	}
	e.manifest, e.finished = nil, nil
	e.Files = &fileset.Set{Folder: e.folder, Stores: e.Stores(), Journal: e.Journal}
	if err := e.Disk.Begin(e.Journal); err != nil {
		return err
	}
	e.LimitJournal()
	e.checkpoint.last.Store(e.Options.Now())
	return nil
}

// openStore opens a store and compares it with the manifest.
func (e *Engine) openStore(path string, visit func(aof.Op) error) (*store.Store, error) {
	check := func(mark uint32, end int64) (int64, error) { return e.manifest.CheckStore(path, mark, end) }
	return store.Open(path, store.Options{Log: e.Options.Log, Now: e.Options.Now(), Check: check, Visit: visit})
}

func (e *Engine) loadCatalogue(l Loader) (err error) {
	path := filepath.Join(e.Options.Dir, datadir.CatalogueName)
	present := make(map[string]string)
	e.catalogue, err = e.openStore(path, func(o aof.Op) error {
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
		if err := l.Catalogue(key, rec, false, false); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// loadPartitions loads all partitions, as many at a time as there are processors.
func (e *Engine) loadPartitions(l Loader) error {
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(e.items))
	for i := range e.items {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if errs[i] = e.loadPartition(i, l); errs[i] == nil {
				l.Loaded(i)
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

func (e *Engine) loadPartition(i int, l Loader) (err error) {
	path := filepath.Join(e.Options.Dir, datadir.PartitionName(i))
	e.items[i], err = e.openStore(path, func(o aof.Op) error {
		number, id, err := record.SplitKey(o.Key)
		if err == nil {
			err = l.Item(i, number, id, o, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	return err
}

// replay applies one change of a journal.
func (e *Engine) replay(l Loader, o aof.Op) error {
	if record.InCatalogue(o.Key) {
		return l.Catalogue(o.Key, o.Rec, o.Del, true)
	}
	key, touched := record.TouchedKey(o.Key)
	number, id, err := record.SplitKey(key)
	if err != nil {
		return err
	}
	partition := record.Partition(id, len(e.items))
	if touched {
		return l.Touch(partition, number, id, o)
	}
	return l.Item(partition, number, id, o, true)
}
