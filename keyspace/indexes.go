package keyspace

import (
	"slices"

	"mayfly/keyspace/index"
	"mayfly/keyspace/indexing"
)

// Index is an index of a container.
type Index = indexing.Index

// IndexStats are figures of an index.
type IndexStats = indexing.Stats

// GeoMark ends the paths of an index over points, in the record of a container.
const GeoMark = indexing.GeoMark

// CheckIndexes checks definitions of indexes as a record of a container has them. The error is one line.
func CheckIndexes(recorded [][]string) error { return indexing.CheckRecord(recorded) }

// Epoch returns a number that grows with every start.
func (ks *Keyspace) Epoch() uint64 { return ks.epoch }

// IndexSet returns the indexes of a container for the plans of package selection; nil: none. A set
// does not change: another takes its place.
func (c *Container) IndexSet() *indexing.Set { return c.indexes.Load() }

// Indexes returns the indexes of a container, in the order of their creation.
func (c *Container) Indexes() []*Index { return c.indexes.Load().List() }

// IndexStats returns the figures of a container's indexes, in the order of their creation.
func (tx *Tx) IndexStats(c *Container) []IndexStats {
	list := c.Indexes()
	stats := make([]IndexStats, len(list))
	items := 0
	tx.eachPartition(func(p *partition) (more bool) {
		if t := c.tables[p.number]; t != nil {
			items += t.Len()
			t.indexed.AddTo(stats, list)
		}
		return true
	})
	for i, x := range list {
		x.Describe(&stats[i], items)
	}
	return stats
}

// CreateIndex adds an index to a container. It reports whether the container had none of that definition. The index is
// built in the background: see [Index.Ready]. It needs BeginAll.
func (tx *Tx) CreateIndex(c *Container, d index.Definition) bool {
	if c.HasIndex(d) {
		return false
	}
	tx.setIndexes(c, c.indexes.Load().With(d))
	tx.ks.buildIndexes()
	return true
}

// HasIndex reports whether the container has an index of a definition.
func (c *Container) HasIndex(d index.Definition) bool { return c.indexes.Load().Find(d) != nil }

// DropIndex removes an index from a container, and reports whether it had one. It needs BeginAll.
func (tx *Tx) DropIndex(c *Container, d index.Definition) bool {
	x := c.indexes.Load().Find(d)
	if x == nil {
		return false
	}
	tx.setIndexes(c, c.indexes.Load().Without(x))
	return true
}

// setIndexes changes the indexes of a container.
func (tx *Tx) setIndexes(c *Container, set *indexing.Set) {
	tx.writeCatalogue()
	tx.noteContainer(c)
	before := c.indexes.Load()
	tx.onRollback(func() {
		c.attachIndexesLocked(before)
		tx.ks.buildIndexes() // a dropped index is built anew
	})
	c.attachIndexesLocked(set)
	tx.recordContainer(c)
}

// attachIndexesLocked gives the container's tables trees of other indexes. Indexes that stay keep theirs. The locks of
// all partitions must be held.
func (c *Container) attachIndexesLocked(set *indexing.Set) {
	c.indexes.Store(set)
	for t := range c.each {
		t.attachTreesLocked(set)
	}
}

// attachTreesLocked gives the table trees for a set of indexes. The lock of its partition must be held.
func (t *table) attachTreesLocked(set *indexing.Set) {
	t.indexed = indexing.Observe(&t.Table, t.indexed, set)
}

// buildIndexes wakes the builder. It may be called under locks.
func (ks *Keyspace) buildIndexes() { signal(ks.indexWake) }

// runIndexBuilder builds the indexes that are not ready, in the background.
func (ks *Keyspace) runIndexBuilder() {
	for {
		select {
		case <-ks.stop:
			return
		case <-ks.indexWake:
			ks.BuildIndexes()
		}
	}
}

// BuildIndexes builds all indexes that are not ready, and returns when they are or the keyspace is closed. A
// partition is locked for 128 items at a time.
func (ks *Keyspace) BuildIndexes() {
	for ks.buildSome() {
		select {
		case <-ks.stop:
			return
		default:
		}
	}
}

// buildSome builds what is not built of the containers that exist now. It reports whether it found something to do.
func (ks *Keyspace) buildSome() (more bool) {
	var tx Tx
	ks.BeginNone(&tx)
	defer tx.Close()
	for _, c := range tx.Containers() {
		for _, x := range c.Indexes() {
			if x.Ready() {
				continue
			}
			more = true
			for _, p := range ks.partitions {
				if !ks.buildIn(p, c, x) {
					return true // the keyspace is closed
				}
			}
			ks.finishIndex(c, x)
		}
	}
	return more
}

// buildIn builds the part of an index in a partition. It returns false if the keyspace is closed.
func (ks *Keyspace) buildIn(p *partition, c *Container, x *Index) bool {
	for end := false; !end; {
		select {
		case <-ks.stop:
			return false
		default:
		}
		p.mu.Lock()
		t := c.tables[p.number]
		end = t == nil || t.indexed.Build(x) // also if the index was dropped, or SWAPDB has moved it
		p.mu.Unlock()
	}
	return true
}

// finishIndex makes an index of a container ready if it is built. It may not be: SWAPDB has moved it, or a rollback has
// brought it back without its trees.
func (ks *Keyspace) finishIndex(c *Container, x *Index) {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	if !slices.Contains(c.Indexes(), x) {
		return
	}
	for t := range c.each {
		if !t.indexed.Built(x) {
			return
		}
	}
	x.MarkReady()
}
