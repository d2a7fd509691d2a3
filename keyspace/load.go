package keyspace

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/tables"
)

// loadStats are figures of the start.
type loadStats struct {
	items atomic.Int64
	took  int64 // ms
}

// loader takes the items and containers of the files into memory. It implements [storage.Loader].
type loader struct {
	ks        *Keyspace
	inventory inventory
	clock     int64 // ms; the latest moment read, from finish on

	mu       sync.Mutex            // protects byNumber
	byNumber map[uint32]*Container // described by finish
}

// restore opens the files and loads their state; see [storage.Engine.Load].
func (ks *Keyspace) restore() (err error) {
	begin := ks.wall.Now()
	ks.storage, err = storage.Open(storage.Options{
		FS: ks.opt.FS, Preallocate: ks.opt.preallocate, Dir: ks.opt.Dir, Partitions: ks.opt.Partitions, Policy: ks.opt.Fsync, Reserve: ks.opt.Reserve, Log: ks.opt.Log,
		Loaded: ks.opt.Loaded, Now: ks.wall.Now, Tick: ks.tick, Stop: ks.stop, Role: ks.role, Next: ks.catalogue.Next,
	})
	if err != nil {
		return err
	}
	if ks.role != nil {
		if err := ks.storage.AllowReplicas(); err != nil {
			return err
		}
	}
	ks.Service = ks.storage.Service()
	l := &loader{ks: ks, byNumber: make(map[uint32]*Container)}
	var parts []storage.Partition
	for n := range ks.storage.Partitions() {
		p := tables.NewPartition[*Container](n)
		p.Watchers.Notes().Counts, p.Watchers.Notes().Caches = &ks.teller.counts, ks.opt.Caches
		if !ks.opt.Stepped { // else what hashes decide, the order of SCAN for example, follows from the commands alone
			p.Shard.Seed = ks.storage.Seed()
		}
		ks.partitions = append(ks.partitions, p)
		ks.locks.Add(&p.Mu)
		parts = append(parts, storage.Partition{Lock: &p.Mu, Shard: &p.Shard})
	}
	ks.catalogue.init()
	ks.tables.Init(host{ks}, ks.purge, len(ks.partitions))
	latest, err := ks.storage.Load(parts, memory{ks}, l)
	if err != nil {
		return err
	}
	l.finish(latest)
	if err := ks.loadGroups(); err != nil {
		return err
	}
	for _, t := range ks.tables.Some(nil, 0, math.MaxInt) {
		if t.C.hidden == nil && t.Collections == nil {
			ks.load.items.Add(int64(t.Len()))
		}
	}
	if err := ks.storage.Begin(); err != nil {
		return err
	}
	ks.journal = ks.storage.Journal
	ks.load.took = ks.wall.Now() - begin
	if c, ok := ks.opt.Clock.(interface{ CatchUp(int64, time.Duration) }); ok {
		c.CatchUp(l.clock, leaseTime)
	}
	if c := clock.SystemOf(ks.opt.Clock); c != nil {
		ks.clockLog.Begin(c)
		ks.watchClock()
	}
	ks.opt.Log.Info().Int64("items", ks.load.items.Load()).Int("partitions", len(ks.partitions)).
		Int64("ms", ks.load.took).Msg("data loaded")
	return nil
}

// Table returns the table of items with keys as this one in a partition, and makes it if need be.
func (l *loader) Table(partition int, k record.Key) *memtable.Table {
	c := l.container(k.Container, k.Log)
	t := c.tables[partition]
	if t == nil {
		t = l.ks.tables.Open(c, l.ks.partitions[partition])
	}
	if k.Page {
		t = t.LoadPages()
	}
	return &t.Table
}

// container returns the container of a number, which has its items until it is known. log says that these are
// of a log.
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
	r, err := l.inventory.Read(key, rec, deleted)
	if err != nil || r == nil {
		return err
	}
	c := l.container(r.Number, r.Hidden != nil && !r.Hidden.IsGroup())
	if journaled {
		l.ks.catalogue.Changed(c)
	}
	return nil
}

// finish builds the catalogue, drops items that belong to no container, and begins a new epoch of versions.
func (l *loader) finish(latest []storage.Latest) {
	cat := &l.ks.catalogue
	for number, c := range l.byNumber {
		cat.Used(number + 1)
		r, exists := l.inventory.Container(number)
		if exists {
			c.describe(r)
		}
		c.noteWindows(l.ks)
		if c.aside != nil {
			c.tables.Hide()
		}
		switch {
		case !exists:
			l.drop(c)
		case c.hidden != nil:
			cat.Hide(c)
		case c.aside != nil:
			cat.AddAside(c)
		}
	}
	list, rest := l.inventory.Listed()
	for _, r := range list {
		c := l.byNumber[r.Number]
		c.db = r.DB
		cat.Add(c)
	}
	for _, r := range rest {
		cat.unnumbered = append(cat.unnumbered, l.byNumber[r.Number])
	}
	for _, c := range l.byNumber {
		if c.log != nil {
			l.ks.loadLog(c)
		}
	}
	version := l.inventory.Version
	l.clock = l.inventory.Clock
	for _, read := range latest {
		version = max(version, read.Version)
		l.clock = max(l.clock, read.TS)
	}
	epoch := max(l.inventory.Epoch, version/tables.VersionLeap)
	l.ks.loadedRole(l.inventory.Tail, l.clock)
	if l.ks.role == nil {
		epoch++
	}
	l.ks.beginVersions(epoch)
	for n, p := range l.ks.partitions { // of a follower: a leader's epoch is not over
		p.Version = max(p.Version, latest[n].Version)
	}
	l.ks.partitions[0].Version = max(l.ks.partitions[0].Version, l.inventory.Version)
	for _, c := range l.byNumber {
		for t := range c.each {
			t.RaiseKeys()
		}
	}
	for _, p := range l.ks.partitions {
		for more := true; more; _, more = p.Collect(0) {
		}
	}
	l.buildIndexes()
}

// drop has the next checkpoint remove what the files have of a container that does not exist.
func (l *loader) drop(c *Container) {
	cat, held := &l.ks.catalogue, !whole{c}.empty()
	cat.drop(c)
	whole{c}.detach()
	if held || cat.NotesNumber(c.number) {
		cat.Gone(c.number)
	}
}

// buildIndexes builds the indexes of all containers.
func (l *loader) buildIndexes() {
	ks := l.ks
	begin := ks.Now()
	for _, c := range ks.catalogue.List() {
		if set := c.indexes.Load(); set != nil {
			whole{c}.attachIndexes(set)
		}
	}
	ks.builder = index.NewBuilder(len(ks.partitions), ks.indexedContainers, ks.stop)
	if count := ks.builder.BuildAtStart(); count > 0 {
		ks.opt.Log.Info().Int("indexes", count).Int64("ms", ks.Now()-begin).Msg("indexes built")
	}
}

// Untouched reports whether the data folder had no item when it was opened, and no container has been made.
func (ks *Keyspace) Untouched() bool {
	return ks.load.items.Load() == 0 && !slices.ContainsFunc(ks.containers(), func(c *Container) bool { return !c.IsDatabase() })
}
