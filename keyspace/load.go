package keyspace

import (
	"fmt"
	"math"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/record"
	"mayfly/keyspace/storage"
)

// loadStats are figures of the start.
type loadStats struct {
	items atomic.Int64
	took  int64 // ms
}

// loader takes the items and containers of the files into memory. It implements [storage.Loader].
type loader struct {
	ks    *Keyspace
	parts []*partitionLoader
	clock int64  // ms; the latest moment read
	epoch uint64 // the latest read

	mu       sync.Mutex            // protects byNumber
	byNumber map[uint32]*Container // one without a name has items of a container that is not known (yet)
}

// restore opens the files and loads their state; see [storage.Engine.Load].
func (ks *Keyspace) restore() (err error) {
	begin := ks.Now()
	ks.storage, err = storage.Open(storage.Options{
		Dir: ks.opt.Dir, Partitions: ks.opt.Partitions, Policy: ks.opt.Fsync, Reserve: ks.opt.Reserve, Log: ks.opt.Log,
		Now: ks.Now, Tick: ks.watchClock, Stop: ks.stop,
	})
	if err != nil {
		return err
	}
	l := &loader{ks: ks, byNumber: make(map[uint32]*Container)}
	var parts []storage.Partition
	for n := range ks.storage.Partitions() {
		p := newPartition(n)
		ks.partitions = append(ks.partitions, p)
		parts = append(parts, storage.Partition{Lock: &p.mu, Shard: &p.shard})
		l.parts = append(l.parts, &partitionLoader{loader: l, p: p, tables: make(map[uint32]*table)})
	}
	ks.catalogue.dirty = make(map[uint32]*Container)
	if err := ks.storage.Load(parts, memory{ks}, l); err != nil {
		return err
	}
	l.finish()
	ks.load.items.Store(0) // so far those of the stores were counted, with what the journals delete
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		ks.load.items.Add(int64(t.Len()))
	}
	if err := ks.storage.Begin(); err != nil {
		return err
	}
	ks.journal = ks.storage.Journal
	ks.load.took = ks.Now() - begin
	if c, ok := ks.opt.Clock.(interface{ CatchUp(int64, time.Duration) }); ok {
		c.CatchUp(l.clock, leaseTime)
	}
	if c, ok := ks.opt.Clock.(*clock.System); ok {
		ks.clockLog.watch = c.Watch()
		ks.watchClock()
	}
	ks.opt.Log.Info().Int64("items", ks.load.items.Load()).Int("partitions", len(ks.partitions)).
		Int64("ms", ks.load.took).Msg("data loaded")
	return nil
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

// Loaded counts the items of a partition's store.
func (l *loader) Loaded(partition int) {
	for _, t := range l.parts[partition].tables {
		l.ks.load.items.Add(int64(t.Len()))
	}
	l.ks.opt.Log.Debug().Int("partition", partition).Int64("items", l.ks.load.items.Load()).Msg("partition loaded")
}

// Item applies one change of the store or of a journal.
func (l *loader) Item(partition int, number uint32, id string, o aof.Op, journaled bool) error {
	return l.parts[partition].apply(number, id, o, journaled)
}

// Touch applies a touch of a journal.
func (l *loader) Touch(partition int, number uint32, id string, o aof.Op) error {
	return l.parts[partition].touch(number, id, o)
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

// Catalogue applies a record of the catalogue.
func (l *loader) Catalogue(key, rec string, deleted, journaled bool) error {
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
	if journaled {
		l.ks.catalogue.dirty[number] = c
	}
	if deleted {
		c.name = ""
		return nil
	}
	r, err := record.ReadContainer(key, it)
	if err != nil {
		return err
	}
	c.name, c.created, c.db, c.lastDB = r.Name, r.Created, r.DB, r.LastDB
	c.policy.Store(&r.Policy)
	c.history.Store(newContainerHistory(r.Etag, r.History))
	c.recordedIndexes = r.Indexes
	l.clock = max(l.clock, r.Policy.OwnDeadTo, r.Policy.InheritDeadTo, r.History[len(r.History)-1].At)
	l.epoch = max(l.epoch, r.Etag/versionLeap)
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
