package keyspace

import (
	"mayfly/keyspace/index"
)

// Index is an index of a container.
type Index = index.Index

// IndexStats are figures of an index.
type IndexStats = index.Stats

// GeoMark ends the paths of an index over points, in the record of a container.
const GeoMark = index.GeoMark

// CheckIndexes checks definitions of indexes as a record of a container has them. The error is one line.
func CheckIndexes(recorded [][]string) error { return index.CheckRecord(recorded) }

// Epoch returns a number that grows with every start.
func (ks *Keyspace) Epoch() uint64 { return ks.epoch.Load() }

// IndexSet returns the indexes of a container for the plans of package selection; nil: none. A set
// does not change: another takes its place.
func (c *Container) IndexSet() *index.Set { return c.indexes.Load() }

// Indexes returns the indexes of a container, in the order of their creation.
func (c *Container) Indexes() []*Index { return c.indexes.Load().List() }

// IndexStats returns the figures of a container's indexes, in the order of their creation.
func (tx *Tx) IndexStats(c *Container) []IndexStats {
	list := c.Indexes()
	stats := make([]IndexStats, len(list))
	items := 0
	tx.eachPartition(func(p *partition) (more bool) {
		if t := c.tables[p.Number]; t != nil {
			items += t.Len()
			t.Indexed.AddTo(stats, list)
		}
		return true
	})
	for i, x := range list {
		x.Describe(&stats[i], items)
	}
	return stats
}

// CreateIndex adds an index to a container. It reports whether the container had none of that definition. The
// index is built in the background: see [Index.Ready]. It needs BeginAll.
func (tx *Tx) CreateIndex(c *Container, d index.Definition) bool {
	if c.HasIndex(d) {
		return false
	}
	tx.setIndexes(c, c.indexes.Load().With(d))
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
func (tx *Tx) setIndexes(c *Container, set *index.Set) {
	tx.writeCatalogue()
	tx.noteContainer(c)
	tx.attachTrees(c, set)
	tx.recordContainer(c)
}

// attachTrees gives the tables of a container trees for a set of indexes, which are built in the background
// if need be.
func (tx *Tx) attachTrees(c *Container, set *index.Set) {
	before := c.indexes.Load()
	tx.onRollback(func() {
		tx.whole(c).attachIndexes(before)
		tx.ks.builder.Wake() // an index that was dropped is built anew
	})
	tx.whole(c).attachIndexes(set)
	tx.ks.builder.Wake()
}

// attachIndexes gives the container's tables trees of other indexes. Indexes that stay keep theirs.
func (c whole) attachIndexes(set *index.Set) {
	c.indexes.Store(set)
	for t := range c.each {
		t.IndexBy(set)
	}
}

// BuildIndexes builds all indexes that are not ready; see [index.Builder.Build].
func (ks *Keyspace) BuildIndexes() { ks.builder.Build() }

// indexed is a container as an [index.Container].
type indexed struct {
	*Container
	ks *Keyspace
}

// indexedContainers returns the containers that exist now.
func (ks *Keyspace) indexedContainers() (list []index.Container) {
	p := ks.partitions[0]
	p.Mu.Lock()
	defer p.Mu.Unlock()
	for _, c := range ks.catalogue.List() {
		list = append(list, indexed{c, ks})
	}
	return list
}

func (x indexed) One(partition int, f func(t *index.Table)) {
	p := x.ks.partitions[partition]
	p.Mu.Lock()
	defer p.Mu.Unlock()
	if t := x.tables[p.Number]; t != nil {
		f(t.Indexed)
	} else {
		f(nil)
	}
}

func (x indexed) All(f func(list []*index.Table)) {
	var tx Tx
	x.ks.lockAll(&tx)
	defer tx.Close()
	f(tx.whole(x.Container).indexed())
}

// indexed returns the trees of all tables of the container.
func (c whole) indexed() (list []*index.Table) {
	for t := range c.each {
		list = append(list, t.Indexed)
	}
	return list
}
