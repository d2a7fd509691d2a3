package keyspace

import (
	"errors"
	"fmt"
	"math"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/fileset"
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/manifest"
	"mayfly/keyspace/record"
	"mayfly/keyspace/reserve"
	"mayfly/keyspace/store"
)

// loadStats are figures of the start.
type loadStats struct {
	items atomic.Int64
	took  int64 // ms
}

// loader reads the stores and the journals into memory. Partitions are loaded side by side.
type loader struct {
	ks       *Keyspace
	manifest *manifest.Manifest
	parts    []*partitionLoader
	clock    int64  // ms; the latest moment read
	epoch    uint64 // the latest read

	mu       sync.Mutex            // protects byNumber
	byNumber map[uint32]*Container // one without a name has items of a container that is not known (yet)
}

// restore opens the files and loads their state:
//
//  1. the catalogue's store and the partitions' stores. The last checkpoint may have been interrupted;
//  2. the journals in order. Every change is the whole state of an item, so those that the stores already have do no
//     harm;
//  3. items that then belong to no container were dropped. They are deleted from the stores in the background.
func (ks *Keyspace) restore() error {
	begin := ks.Now()
	var err error
	if ks.folder, err = datadir.Open(ks.opt.Dir, ks.opt.Partitions, ks.opt.Log); err != nil {
		return err
	}
	if ks.disk, err = reserve.NewGuard(ks.opt.Dir, ks.opt.Reserve, ks.opt.Log, ks.wakeCheckpoint); err != nil {
		return err
	}
	m, err := fileset.ReadManifest(ks.opt.Dir)
	if err != nil {
		return err
	}
	l := &loader{ks: ks, manifest: m, byNumber: make(map[uint32]*Container)}
	for n := range ks.folder.Partitions {
		p := newPartition(n)
		ks.partitions = append(ks.partitions, p)
		l.parts = append(l.parts, &partitionLoader{loader: l, p: p, tables: make(map[uint32]*table)})
	}
	if err := l.loadCatalogue(); err != nil {
		return err
	}
	if err := l.loadPartitions(); err != nil {
		return err
	}
	ks.catalogue.dirty = make(map[uint32]*Container)
	files, last, err := journal.Replay(journal.ReplayOptions{
		Dir: ks.opt.Dir, Log: ks.opt.Log, Now: begin, Check: m.CheckJournal, Visit: l.replay,
	})
	if err != nil {
		return err
	}
	l.finish()
	ks.load.items.Store(0) // so far those of the stores were counted, with what the journals delete
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		ks.load.items.Add(int64(t.Len()))
	}
	ks.journal, err = journal.Open(journal.Options{
		Dir: ks.opt.Dir, Finished: files, First: last + 1, Policy: ks.opt.Fsync, Log: ks.opt.Log, Full: func() { signal(ks.full) },
		MakeRoom: ks.disk.MakeRoom, Around: func(makeFile func() error) error { return ks.files.Begin(m, makeFile) },
	})
	if err != nil {
		return err
	}
	ks.files = &fileset.Set{Folder: ks.folder, Stores: ks.stores(), Journal: ks.journal}
	if err := ks.disk.Begin(ks.journal); err != nil {
		return err
	}
	ks.limitJournal()
	ks.load.took = ks.Now() - begin
	if c, ok := ks.opt.Clock.(interface{ CatchUp(int64, time.Duration) }); ok {
		c.CatchUp(l.clock, leaseTime)
	}
	if c, ok := ks.opt.Clock.(*clock.System); ok {
		ks.clockLog.watch = c.Watch()
		ks.watchClock()
	}
	ks.checkpoint.last.Store(ks.Now())
	ks.opt.Log.Info().Int64("items", ks.load.items.Load()).Int("partitions", len(ks.partitions)).
		Int64("ms", ks.load.took).Msg("data loaded")
	return nil
}

// openStore opens a store and compares it with the manifest.
func (l *loader) openStore(path string, visit func(aof.Op) error) (*store.Store, error) {
	check := func(mark uint32, end int64) (int64, error) { return l.manifest.CheckStore(path, mark, end) }
	return store.Open(path, store.Options{Log: l.ks.opt.Log, Now: l.ks.Now(), Check: check, Visit: visit})
}

func (l *loader) loadCatalogue() (err error) {
	ks := l.ks
	path := filepath.Join(ks.opt.Dir, datadir.CatalogueName)
	present := make(map[string]string)
	ks.catStore, err = l.openStore(path, func(o aof.Op) error {
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
	ks.checkpoint.records = make(store.LiveRecords)
	for key, rec := range present {
		ks.catStore.AddLive(ks.checkpoint.records.Count([]aof.Op{{Key: key, Rec: rec}}))
		if err := l.catalogueRecord(key, rec, false); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// loadPartitions loads all partitions, as many at a time as there are processors.
func (l *loader) loadPartitions() error {
	ks := l.ks
	var wg sync.WaitGroup
	limit := make(chan struct{}, runtime.GOMAXPROCS(0))
	errs := make([]error, len(ks.partitions))
	var done atomic.Int64
	for i, part := range l.parts {
		limit <- struct{}{}
		wg.Go(func() {
			defer func() { <-limit }()
			if errs[i] = part.load(); errs[i] == nil {
				ks.opt.Log.Debug().Int("partition", part.p.number).Int64("of", done.Add(1)).
					Int64("items", ks.load.items.Load()).Msg("partition loaded")
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// partitionLoader loads the items of one partition, from its store and then from the journals.
type partitionLoader struct {
	*loader
	p      *partition
	tables map[uint32]*table // by container
	last   *table            // of the last change
	latest int64             // ms; the time of the latest write read
	read   int64             // bytes of changes that Options.Loaded does not count yet
}

// load opens the partition's store and applies its changes.
func (l *partitionLoader) load() (err error) {
	ks := l.ks
	path := filepath.Join(ks.opt.Dir, datadir.PartitionName(l.p.number))
	l.p.store, err = l.openStore(path, func(o aof.Op) error {
		number, id, err := record.SplitKey(o.Key)
		if err == nil {
			err = l.apply(number, id, o, false)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
	for _, t := range l.tables {
		ks.load.items.Add(int64(t.Len()))
	}
	return err
}

// apply applies one change of the store or of a journal. The store lacks those of journals.
func (l *partitionLoader) apply(number uint32, id string, o aof.Op, journaled bool) error {
	if l.read += aof.SetSize(len(o.Key), len(o.Rec)); l.read > 1<<20 && l.ks.opt.Loaded != nil {
		l.ks.opt.Loaded.Add(l.read)
		l.read = 0
	}
	t := l.last
	if t == nil || t.Container() != number {
		if t = l.tables[number]; t == nil {
			t = l.ks.openTableLocked(l.container(number), l.p)
			l.tables[number] = t
		}
		l.last = t
	}
	if o.Del {
		e := t.Find(id)
		switch {
		case e == nil:
			return nil
		case journaled:
			t.Remove(e)
			l.p.releaseLocked(t, e)
		default:
			t.Unload(e)
		}
		l.p.cleanLocked()
		return nil
	}
	it, _, err := record.Decode(o.Key, o.Rec)
	if err != nil {
		return err
	}
	if l.ks.partitionOf(id) != l.p {
		return fmt.Errorf("item %q does not belong to partition %d", o.Key, l.p.number)
	}
	l.p.version = max(l.p.version, it.Version)
	l.latest = max(l.latest, it.TS)
	h, e := t.Load(id, o.Rec, it)
	l.p.cleanLocked()
	if journaled {
		t.MarkDirty(h, e)
	} else {
		t.MarkStored(e)
	}
	return nil
}

// touch applies a touch of a journal. If it does not count, the item has a later state already, or will have.
func (l *partitionLoader) touch(number uint32, id string, o aof.Op) error {
	touch, base, err := record.ReadTouch(o.Key, o.Rec)
	if err != nil {
		return err
	}
	l.p.version = max(l.p.version, touch.Version)
	l.latest = max(l.latest, touch.TS)
	t := l.tables[number]
	if t == nil {
		return nil
	}
	if h, e := t.Lookup(id); e != nil && touch.Touches(base, e.Version()) {
		t.Overwrite(h, e, id, t.Item(e).Touched(touch), nil)
		l.p.cleanLocked()
	}
	return nil
}

// container returns the container of a number. If it is not known yet, it is one without a name that has the items
// until then.
func (l *loader) container(number uint32) *Container {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.byNumber[number]
	if c == nil {
		c = newContainer(record.Container{Number: number}, len(l.ks.partitions))
		l.byNumber[number] = c
	}
	return c
}

// replay applies one change of a journal.
func (l *loader) replay(o aof.Op) error {
	if record.InCatalogue(o.Key) {
		return l.catalogueRecord(o.Key, o.Rec, o.Del)
	}
	key, touched := record.TouchedKey(o.Key)
	number, id, err := record.SplitKey(key)
	if err != nil {
		return err
	}
	part := l.parts[record.Partition(id, len(l.parts))]
	if touched {
		return part.touch(number, id, o)
	}
	return part.apply(number, id, o, true)
}

// catalogueRecord applies a record of the catalogue, from its store or from a journal.
func (l *loader) catalogueRecord(key, rec string, deleted bool) error {
	var it Item
	if !deleted {
		var err error
		if it, _, err = record.Decode(key, rec); err != nil {
			return err
		}
		l.clock = max(l.clock, it.TS)
	}
	if key == record.ClockKey {
		l.epoch = max(l.epoch, it.Version)
		return nil
	}
	if !record.InCatalogue(key) { // a store under a wrong name
		return fmt.Errorf("item %q does not belong in the catalogue", key)
	}
	number, err := record.ContainerNumber(key)
	if err != nil {
		return err
	}
	c := l.container(number)
	if dirty := l.ks.catalogue.dirty; dirty != nil { // this comes from a journal
		dirty[number] = c
	}
	if deleted {
		c.name = ""
		return nil
	}
	r, err := record.ReadContainer(key, it.Body)
	if err != nil {
		return err
	}
	c.name, c.created, c.db, c.lastDB = r.Name, r.Created, r.DB, r.LastDB
	c.policy.Store(&r.Policy)
	c.recordedIndexes = r.Indexes
	l.clock = max(l.clock, r.Policy.OwnDeadTo, r.Policy.InheritDeadTo)
	return nil
}

// finish builds the catalogue, drops items that belong to no container, and begins a new epoch of versions.
func (l *loader) finish() {
	cat := &l.ks.catalogue
	var listed []*Container
	for number, c := range l.byNumber {
		cat.next = max(cat.next, number+1)
		if c.name != "" {
			listed = append(listed, c)
			continue
		}
		held := !c.emptyLocked()
		cat.drop(c)
		c.detachLocked()
		if _, journaled := cat.dirty[number]; held || journaled {
			cat.dirty[number] = nil
		}
	}
	cat.build(listed)
	for _, part := range l.parts {
		l.epoch = max(l.epoch, part.p.version/versionLeap)
		l.clock = max(l.clock, part.latest)
	}
	l.ks.epoch = l.epoch + 1
	for _, p := range l.ks.partitions {
		p.store.SetLive(p.shard.LiveBytes())
		p.begin(l.ks.epoch)
	}
	l.buildIndexes()
}

// buildIndexes builds the indexes of all containers, as many partitions at a time as there are processors.
func (l *loader) buildIndexes() {
	var indexed []*Container
	for _, c := range l.ks.catalogue.list {
		if set := indexing.FromRecord(c.recordedIndexes); set != nil {
			c.indexes.Store(set)
			indexed = append(indexed, c)
		}
		c.recordedIndexes = nil
	}
	if indexed == nil {
		return
	}
	begin := l.ks.Now()
	var wg sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, p := range l.ks.partitions {
		turns <- struct{}{}
		wg.Go(func() {
			defer func() { <-turns }()
			for _, c := range indexed {
				t := c.tables[p.number]
				if t == nil {
					continue
				}
				p.mu.Lock()
				t.attachTreesLocked(c.indexes.Load())
				t.indexed.BuildAll()
				p.mu.Unlock()
			}
		})
	}
	wg.Wait()
	count := 0
	for _, c := range indexed {
		for _, ix := range c.Indexes() {
			ix.MarkReady()
			count++
		}
	}
	l.ks.opt.Log.Info().Int("indexes", count).Int64("ms", l.ks.Now()-begin).Msg("indexes built")
}
