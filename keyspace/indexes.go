package keyspace

import (
	"fmt"
	"slices"
	"sync/atomic"

	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Index is an index of a container. Its trees are in the container's tables.
type Index struct {
	Definition index.Definition

	ready atomic.Bool
	built atomic.Int64 // items that the builder has read
	uses  atomic.Int64
	cut   atomic.Int64 // entries of attached tables whose key is cut
}

// Ready reports whether queries can use the index.
func (x *Index) Ready() bool { return x.ready.Load() }

// Used counts a query that uses the index.
func (x *Index) Used() { x.uses.Add(1) }

// indexes are those of a container, in the order of their creation. The value does not change; other indexes are
// another value.
type indexes struct {
	list        []*Index
	definitions []index.Definition // of list
	timed       bool               // one is over the time of the last write
}

// Epoch returns a number that grows with every start.
func (ks *Keyspace) Epoch() uint64 { return ks.epoch }

// Indexes returns the indexes of a container, in the order of their creation.
func (c *Container) Indexes() []*Index {
	if set := c.indexes.Load(); set != nil {
		return set.list
	}
	return nil
}

// IndexStats are figures of an index.
type IndexStats struct {
	Definition index.Definition
	Ready      bool
	Percent    int // of the building
	Entries    int
	Bytes      int64
	Uses       int64
}

// IndexStats returns the figures of a container's indexes, in the order of their creation.
func (tx *Tx) IndexStats(c *Container) []IndexStats {
	list := c.Indexes()
	stats := make([]IndexStats, len(list))
	items := 0
	tx.eachPartition(func(p *partition) (more bool) {
		t := c.tables[p.number]
		if t == nil {
			return true
		}
		items += t.Len()
		for i, x := range list {
			if tree := t.treeOf(x); tree != nil {
				stats[i].Entries += tree.Len()
				stats[i].Bytes += tree.Bytes()
			}
		}
		return true
	})
	for i, x := range list {
		stats[i].Definition, stats[i].Ready, stats[i].Uses = x.Definition, x.Ready(), x.uses.Load()
		stats[i].Percent = 100
		if !stats[i].Ready {
			stats[i].Percent = int(min(99, x.built.Load()*100/int64(max(items, 1))))
		}
	}
	return stats
}

// CreateIndex adds an index to a container. It reports whether the container had none of that definition. The index is
// built in the background: see [Index.Ready]. It needs BeginAll.
func (tx *Tx) CreateIndex(c *Container, d index.Definition) bool {
	if c.HasIndex(d) {
		return false
	}
	tx.setIndexes(c, append(slices.Clone(c.Indexes()), &Index{Definition: d}))
	tx.ks.buildIndexes()
	return true
}

// HasIndex reports whether the container has an index of a definition.
func (c *Container) HasIndex(d index.Definition) bool {
	return slices.ContainsFunc(c.Indexes(), func(x *Index) bool { return x.Definition.Equal(&d) })
}

// DropIndex removes an index from a container, and reports whether it had one. It needs BeginAll.
func (tx *Tx) DropIndex(c *Container, d index.Definition) bool {
	list := c.Indexes()
	rest := slices.DeleteFunc(slices.Clone(list), func(x *Index) bool { return x.Definition.Equal(&d) })
	if len(rest) == len(list) {
		return false
	}
	tx.setIndexes(c, rest)
	return true
}

// setIndexes changes the indexes of a container.
func (tx *Tx) setIndexes(c *Container, list []*Index) {
	tx.writeCatalogue()
	tx.noteContainer(c)
	before := c.indexes.Load()
	tx.undos = append(tx.undos, undo{f: func() {
		c.attachIndexesLocked(before)
		tx.ks.buildIndexes() // a dropped index is built anew
	}})
	c.attachIndexesLocked(newIndexes(list))
	tx.recordContainer(c)
}

// newIndexes returns nil for an empty list.
func newIndexes(list []*Index) *indexes {
	if len(list) == 0 {
		return nil
	}
	set := &indexes{list: list}
	for _, x := range list {
		set.definitions = append(set.definitions, x.Definition)
		set.timed = set.timed || x.Definition.Timed()
	}
	return set
}

// GeoMark ends the paths of an index over points, in the record of a container.
const GeoMark = "geo"

// indexesOf returns the indexes in the record of a container. It leaves out those that this version does not know.
func indexesOf(recorded [][]string) *indexes {
	var list []*Index
	for _, paths := range recorded {
		if d, err := definitionOf(paths); err == nil {
			list = append(list, &Index{Definition: d})
		}
	}
	return newIndexes(list)
}

// CheckIndexes checks definitions of indexes as a record of a container has them. The error is one line.
func CheckIndexes(recorded [][]string) error {
	if n := len(recorded); n > index.MaxIndexes {
		return fmt.Errorf("%d indexes: legal are at most %d a container", n, index.MaxIndexes)
	}
	for _, paths := range recorded {
		if _, err := definitionOf(paths); err != nil {
			return fmt.Errorf("index %q: %w", paths, err)
		}
	}
	return nil
}

// definitionOf returns the definition of an index in a record.
func definitionOf(paths []string) (index.Definition, error) {
	geo := len(paths) > 1 && paths[len(paths)-1] == GeoMark
	if geo {
		paths = paths[:len(paths)-1]
	}
	return index.Define(paths, geo)
}

// recorded is the inverse of indexesOf.
func (set *indexes) recorded() (list [][]string) {
	if set == nil {
		return nil
	}
	for _, d := range set.definitions {
		paths := d.Pointers()
		if d.Geo() {
			paths = append(paths, GeoMark)
		}
		list = append(list, paths)
	}
	return list
}

// attachIndexesLocked gives the container's tables trees of other indexes. Indexes that stay keep theirs. The locks of
// all partitions must be held.
func (c *Container) attachIndexesLocked(set *indexes) {
	c.indexes.Store(set)
	for _, t := range c.tables {
		if t != nil {
			t.attachTreesLocked(set)
		}
	}
}

// indexedTable is what a table has if its container has indexes.
type indexedTable struct {
	set      *indexes
	was, is  *index.Reader
	trees    []*index.Tree // by index
	built    []bool        // by index: all items are in the tree
	below    []uint64      // by index: the builder goes on below this number of the insertion order
	old, new []index.Key   // buffers
	bytes    int64         // of the trees, as counted in the table's memory
	cut      []int         // by index: entries whose key is cut, as counted in the index
}

// attachTreesLocked gives the table trees for the indexes of its container; nil for none. Those that it has already
// stay. The lock of its partition must be held.
func (t *table) attachTreesLocked(set *indexes) {
	before := t.indexed
	if before != nil {
		t.AddMemory(-before.bytes)
		before.addCut(-1)
	}
	if set == nil {
		t.indexed = nil
		t.Observe(nil)
		return
	}
	x := &indexedTable{set: set, was: index.NewReader(set.definitions), is: index.NewReader(set.definitions)}
	for _, ix := range set.list {
		tree, built, below := (*index.Tree)(nil), false, uint64(0)
		if before != nil {
			if at := slices.Index(before.set.list, ix); at >= 0 {
				tree, built, below = before.trees[at], before.built[at], before.below[at]
			}
		}
		if tree == nil {
			tree, built = index.New(t.idOfHandle), t.Len() == 0
		}
		if !built {
			ix.ready.Store(false) // a rollback may bring back an index without its trees
		}
		x.trees, x.built, x.below = append(x.trees, tree), append(x.built, built), append(x.below, below)
	}
	x.cut = make([]int, len(x.trees))
	t.indexed = x
	t.Observe(t)
	t.countTrees()
}

// addCut adds the cut keys of the table to its indexes (times 1) or subtracts them (-1).
func (x *indexedTable) addCut(times int) {
	for i, ix := range x.set.list {
		ix.cut.Add(int64(times * x.cut[i]))
	}
}

// idOfHandle returns the id of an item, for the order of trees.
func (t *table) idOfHandle(h uint32) string { return t.ID(t.At(memtable.Handle(h))) }

// treeOf returns the table's tree of an index, nil if there is none. The lock of its partition must be held.
func (t *table) treeOf(ix *Index) *index.Tree {
	if t.indexed == nil {
		return nil
	}
	if at := slices.Index(t.indexed.set.list, ix); at >= 0 {
		return t.indexed.trees[at]
	}
	return nil
}

// countTrees brings the table's memory and the cut keys of the indexes up to those of its trees.
func (t *table) countTrees() {
	x := t.indexed
	bytes := int64(0)
	for i, tree := range x.trees {
		bytes += tree.Bytes()
		if cut := tree.Cut(); cut != x.cut[i] {
			x.set.list[i].cut.Add(int64(cut - x.cut[i]))
			x.cut[i] = cut
		}
	}
	if bytes != x.bytes {
		t.AddMemory(bytes - x.bytes)
		x.bytes = bytes
	}
}

// Added adds the keys of a new item to the trees.
func (t *table) Added(h memtable.Handle, it record.Item) { t.eachKey(h, it, (*index.Tree).Add) }

// Removed removes the keys of an item from the trees.
func (t *table) Removed(h memtable.Handle, it record.Item) { t.eachKey(h, it, (*index.Tree).Remove) }

// eachKey changes every tree by every key that an item has in it.
func (t *table) eachKey(h memtable.Handle, it record.Item, change func(*index.Tree, index.Key, uint32)) {
	if it.Kind != record.Document {
		return
	}
	x := t.indexed
	x.is.Load(it.Body, it.TS)
	for i, tree := range x.trees {
		x.new = x.is.Keys(i, x.new[:0])
		for _, k := range x.new {
			change(tree, k, uint32(h))
		}
	}
	t.countTrees()
	x.forget()
}

// Replaced moves an item in the trees whose keys of it differ.
func (t *table) Replaced(h memtable.Handle, was, is record.Item) {
	if was.Kind != record.Document || is.Kind != record.Document {
		t.Removed(h, was)
		t.Added(h, is)
		return
	}
	x := t.indexed
	if was.Body == is.Body && !x.set.timed {
		return // touched, or given another time to live
	}
	x.was.Load(was.Body, was.TS)
	x.is.Load(is.Body, is.TS)
	moved := false
	for i, tree := range x.trees {
		x.old, x.new = x.was.Keys(i, x.old[:0]), x.is.Keys(i, x.new[:0])
		if slices.EqualFunc(x.old, x.new, func(a, b index.Key) bool { return a.Equal(&b) }) {
			continue
		}
		moved = true
		for _, k := range x.old {
			tree.Remove(k, uint32(h))
		}
		for _, k := range x.new {
			tree.Add(k, uint32(h))
		}
	}
	if moved {
		t.countTrees()
	}
	x.forget()
}

// mostBuffered is the number of keys in a buffer that is kept.
const mostBuffered = 256

// forget lets go of the documents that were read last, and of large buffers: they would stay in memory uncounted.
func (x *indexedTable) forget() {
	x.was.Load("", 0)
	x.is.Load("", 0)
	for _, keys := range []*[]index.Key{&x.old, &x.new} {
		if cap(*keys) > mostBuffered {
			*keys = nil
		}
		clear((*keys)[:min(cap(*keys), mostBuffered)])
	}
}

// What the builder reads at most while a partition is locked, but for the rest of the last item.
const (
	buildItems = 128
	buildBytes = 128 << 10
)

// buildIndexes wakes the builder. It may be called under locks.
func (ks *Keyspace) buildIndexes() {
	select {
	case ks.indexWake <- struct{}{}:
	default:
	}
}

// runIndexBuilder builds the indexes that are not ready, in the background.
func (ks *Keyspace) runIndexBuilder() {
	defer ks.background.Done()
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
		for _, ix := range c.Indexes() {
			if ix.Ready() {
				continue
			}
			more = true
			for _, p := range ks.partitions {
				if !ks.buildIn(p, c, ix) {
					return true // the keyspace is closed
				}
			}
			ks.finishIndex(c, ix)
		}
	}
	return more
}

// finishIndex makes an index of a container ready if it is built. It may not be: SWAPDB has moved it, or a rollback has
// brought it back without its trees.
func (ks *Keyspace) finishIndex(c *Container, ix *Index) {
	var tx Tx
	ks.lockAll(&tx)
	defer tx.Close()
	at := slices.Index(c.Indexes(), ix)
	if at < 0 {
		return
	}
	for _, t := range c.tables {
		if t != nil && !t.indexed.built[at] {
			return
		}
	}
	ix.ready.Store(true)
}

// buildIn builds the part of an index in a partition. It returns false if the keyspace is closed.
func (ks *Keyspace) buildIn(p *partition, c *Container, ix *Index) bool {
	for end := false; !end; {
		select {
		case <-ks.stop:
			return false
		default:
		}
		p.mu.Lock()
		end = true // if the index was dropped, or SWAPDB has moved it
		if t := c.tables[p.number]; t != nil && t.treeOf(ix) != nil {
			end = t.buildLocked(slices.Index(t.indexed.set.list, ix))
		}
		p.mu.Unlock()
	}
	return true
}

// buildLocked adds the next items to the tree of an index: up to 128, or fewer of many bytes. Writers keep the tree up to
// date, so an item may be there already. It reports whether the tree is built.
func (t *table) buildLocked(at int) (built bool) {
	x := t.indexed
	if x.built[at] {
		return true
	}
	tree, items, bytes := x.trees[at], 0, 0
	built = true
	t.Descend(x.below[at], func(seq uint64, e *memtable.Entry) (more bool) {
		if items == buildItems || bytes >= buildBytes {
			built = false
			return false
		}
		items++
		x.below[at] = seq
		it := t.Item(e)
		bytes += len(it.Body)
		if it.Kind == record.Document {
			x.is.Load(it.Body, it.TS)
			x.new = x.is.Keys(at, x.new[:0])
			for _, k := range x.new {
				tree.Add(k, uint32(t.Handle(e)))
			}
		}
		return true
	})
	x.built[at] = built
	x.set.list[at].built.Add(int64(items))
	t.countTrees()
	x.forget()
	return built
}
