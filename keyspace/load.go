package keyspace

import (
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/memtable"
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
	clock int64  // ms; the latest moment read
	epoch uint64 // the latest read

	mu       sync.Mutex            // protects byNumber
	byNumber map[uint32]*Container // one that is not recorded has items of a container that is not known (yet)
	recorded map[uint32]bool       // the containers with a record
	claimed  map[uint32]bool       // the logs that a container says are its own, from claim on
}

// restore opens the files and loads their state; see [storage.Engine.Load].
func (ks *Keyspace) restore() (err error) {
	begin := ks.Now()
	ks.storage, err = storage.Open(storage.Options{
		Dir: ks.opt.Dir, Partitions: ks.opt.Partitions, Policy: ks.opt.Fsync, Reserve: ks.opt.Reserve, Log: ks.opt.Log,
		Loaded: ks.opt.Loaded, Now: ks.Now, Tick: ks.tick, Stop: ks.stop,
	})
	if err != nil {
		return err
	}
	ks.Service = ks.storage.Service()
	l := &loader{ks: ks, byNumber: make(map[uint32]*Container), recorded: make(map[uint32]bool)}
	var parts []storage.Partition
	for n := range ks.storage.Partitions() {
		p := newPartition(n)
		p.shard.Seed = ks.storage.Seed()
		ks.partitions = append(ks.partitions, p)
		parts = append(parts, storage.Partition{Lock: &p.mu, Shard: &p.shard})
	}
	ks.catalogue.dirty, ks.catalogue.hidden = make(map[uint32]*Container), make(map[uint32]*Container)
	latest, err := ks.storage.Load(parts, memory{ks}, l)
	if err != nil {
		return err
	}
	l.finish(latest)
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		if t.c.hidden == nil {
			ks.load.items.Add(int64(t.Len()))
		}
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
		ks.clockLog.Begin(c)
		ks.watchClock()
	}
	ks.opt.Log.Info().Int64("items", ks.load.items.Load()).Int("partitions", len(ks.partitions)).
		Int64("ms", ks.load.took).Msg("data loaded")
	return nil
}

// Table returns the table of a container in a partition, and makes it if need be.
func (l *loader) Table(partition int, container uint32, log bool) *memtable.Table {
	c := l.container(container, log)
	if t := c.tables[partition]; t != nil {
		return &t.Table
	}
	return &l.ks.openTableLocked(c, l.ks.partitions[partition]).Table
}

// container returns the container of a number. If it is not known yet, it is one without a record that has the items
// until then. log says that its items are of a log.
func (l *loader) container(number uint32, log bool) *Container {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.byNumber[number]
	if c == nil {
		c = newContainer(record.Container{Number: number}, len(l.ks.partitions))
		if log {
			c.hidden = new(record.Hidden)
		}
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
	var r record.Container
	if !deleted {
		if r, err = record.ReadContainer(key, it); err != nil {
			return err
		}
	}
	c := l.container(number, r.Hidden != nil && !r.Hidden.IsGroup())
	if journaled {
		l.ks.catalogue.dirty[number] = c
	}
	if l.recorded[number] = !deleted; deleted {
		return nil
	}
	c.name, c.created, c.db, c.lastDB = r.Name, r.Created, r.DB, r.LastDB
	c.policy.Store(&r.Policy)
	c.history.Store(record.NewHistory(r.Etag, r.History))
	c.aside, c.log, c.hidden = r.Aside, r.Log, r.Hidden
	c.recordedIndexes = r.Indexes
	l.clock = max(l.clock, r.Policy.OwnDeadTo, r.Policy.InheritDeadTo, r.History[len(r.History)-1].At)
	l.epoch = max(l.epoch, r.Etag/versionLeap)
	if r.Aside != nil {
		l.epoch = max(l.epoch, r.Aside.Order/versionLeap)
	}
	return nil
}

// exists reports whether a container that was read exists. A log exists if a container says that it is its own, a group if
// its log does.
func (l *loader) exists(c *Container) bool {
	switch {
	case !l.recorded[c.number]:
		return false
	case c.hidden == nil:
		return true
	case c.hidden.IsGroup():
		log := l.byNumber[c.hidden.GroupOf]
		return log != nil && log.isLog() && l.exists(log)
	default:
		return l.claimed[c.number]
	}
}

// claim notes which logs belong to a container.
func (l *loader) claim() {
	l.claimed = make(map[uint32]bool)
	for number, c := range l.byNumber {
		if l.recorded[number] && c.log != nil {
			l.claimed[c.log.Number] = true
		}
	}
}

// finish builds the catalogue, drops items that belong to no container, and begins a new epoch of versions.
func (l *loader) finish(latest []storage.Latest) {
	cat := &l.ks.catalogue
	var listed []*Container
	l.claim()
	for number, c := range l.byNumber {
		cat.next = max(cat.next, number+1)
		exists := l.exists(c)
		if !exists {
			c.aside = nil // it was dropped
		}
		c.loadWindows(l.ks)
		switch {
		case !exists:
		case c.hidden != nil:
			cat.hide(c)
			continue
		case c.aside != nil:
			c.indexes.Store(indexing.FromRecord(c.recordedIndexes)) // built when it is brought back
			cat.addAside(c)
			continue
		default:
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
	for _, c := range l.byNumber {
		if l.exists(c) && c.log != nil {
			l.ks.loadLog(c)
		}
	}
	for _, read := range latest {
		l.epoch = max(l.epoch, read.Version/versionLeap)
		l.clock = max(l.clock, read.TS)
	}
	l.ks.epoch = l.epoch + 1
	for _, p := range l.ks.partitions {
		p.begin(l.ks.epoch)
	}
	l.buildIndexes()
}

// buildIndexes builds the indexes of all containers.
func (l *loader) buildIndexes() {
	ks := l.ks
	begin := ks.Now()
	for _, c := range ks.catalogue.list {
		if set := indexing.FromRecord(c.recordedIndexes); set != nil {
			c.attachIndexesLocked(set)
		}
		c.recordedIndexes = nil
	}
	ks.builder = indexing.NewBuilder(len(ks.partitions), ks.indexedContainers, ks.stop)
	if count := ks.builder.BuildAtStart(); count > 0 {
		ks.opt.Log.Info().Int("indexes", count).Int64("ms", ks.Now()-begin).Msg("indexes built")
	}
}
