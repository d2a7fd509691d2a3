package index

import (
	"slices"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Table has the trees of one table of items. It implements [memtable.Observer]. Methods of a nil table, of a
// container without indexes, do nothing.
type Table struct {
	items    *memtable.Table
	set      *Set
	was, is  *Reader
	trees    []*Tree  // by index
	built    []bool   // by index: all items are in the tree
	below    []uint64 // by index: the builder goes on below this number of the insertion order
	old, new []Key    // buffers
	bytes    int64    // of the trees, as counted in the memory of the items' table
	cut      []int    // by index: entries whose key is cut, as counted in the index
}

// Observe makes trees for the indexes of a set, nil for none, and keeps them up to date with a table of
// items. before has the trees of the same table so far: those of indexes that stay are kept.
func Observe(items *memtable.Table, before *Table, set *Set) *Table {
	if before != nil {
		items.AddMemory(-before.bytes)
		before.addCut(-1)
	}
	if set == nil {
		items.Observe(nil)
		return nil
	}
	t := &Table{items: items, set: set, was: NewReader(set.definitions), is: NewReader(set.definitions)}
	for _, x := range set.list {
		tree, built, below := (*Tree)(nil), false, uint64(0)
		if at := before.indexOf(x); at >= 0 {
			tree, built, below = before.trees[at], before.built[at], before.below[at]
		}
		if tree == nil {
			tree, built = New(t.id), items.Len() == 0
		}
		if !built {
			x.ready.Store(false) // a rollback may bring back an index without its trees
		}
		t.trees, t.built, t.below = append(t.trees, tree), append(t.built, built), append(t.below, below)
	}
	t.cut = make([]int, len(t.trees))
	items.Observe(t)
	t.countTrees()
	return t
}

// Attach counts the cut keys of the table in its indexes again, after Detach.
func (t *Table) Attach() { t.addCut(1) }

// Detach ends to count the cut keys of the table in its indexes.
func (t *Table) Detach() { t.addCut(-1) }

// addCut adds the cut keys of the table to its indexes (times 1) or subtracts them (-1).
func (t *Table) addCut(times int) {
	if t == nil {
		return
	}
	for i, x := range t.set.list {
		x.cut.Add(int64(times * t.cut[i]))
	}
}

// id returns the id of an item, for the order of trees.
func (t *Table) id(h uint32) string { return t.items.ID(t.items.At(memtable.Handle(h))) }

// indexOf returns the position of an index, -1 if the table does not have it.
func (t *Table) indexOf(x *Index) int {
	if t == nil {
		return -1
	}
	return slices.Index(t.set.list, x)
}

// Tree returns the tree of an index, nil if there is none.
func (t *Table) Tree(x *Index) *Tree {
	if at := t.indexOf(x); at >= 0 {
		return t.trees[at]
	}
	return nil
}

// Size returns the entries of all trees and their memory in bytes, an estimate.
func (t *Table) Size() (entries int, bytes int64) {
	if t == nil {
		return 0, 0
	}
	for _, tree := range t.trees {
		entries += tree.Len()
	}
	return entries, t.bytes
}

// AddTo adds the trees of a list of indexes to the figures of each.
func (t *Table) AddTo(stats []Stats, list []*Index) {
	for i, x := range list {
		if tree := t.Tree(x); tree != nil {
			stats[i].Entries += tree.Len()
			stats[i].Bytes += tree.Bytes()
		}
	}
}

// countTrees brings the memory of the items' table and the cut keys of the indexes up to those of the trees.
func (t *Table) countTrees() {
	bytes := int64(0)
	for i, tree := range t.trees {
		bytes += tree.Bytes()
		if cut := tree.Cut(); cut != t.cut[i] {
			t.set.list[i].cut.Add(int64(cut - t.cut[i]))
			t.cut[i] = cut
		}
	}
	if bytes != t.bytes {
		t.items.AddMemory(bytes - t.bytes)
		t.bytes = bytes
	}
}

// Added adds the keys of a new item to the trees.
func (t *Table) Added(h memtable.Handle, it record.Item) { t.eachKey(h, it, (*Tree).Add) }

// Removed removes the keys of an item from the trees.
func (t *Table) Removed(h memtable.Handle, it record.Item) { t.eachKey(h, it, (*Tree).Remove) }

// eachKey changes every tree by every key that an item has in it.
func (t *Table) eachKey(h memtable.Handle, it record.Item, change func(*Tree, Key, uint32)) {
	if it.Kind != record.Document {
		return
	}
	t.is.Load(it.Body, it.TS)
	for i, tree := range t.trees {
		t.new = t.is.Keys(i, t.new[:0])
		for _, k := range t.new {
			change(tree, k, uint32(h))
		}
	}
	t.countTrees()
	t.forget()
}

// Replaced moves an item in the trees whose keys of it differ.
func (t *Table) Replaced(h memtable.Handle, was, is record.Item) {
	if was.Kind != record.Document || is.Kind != record.Document {
		t.Removed(h, was)
		t.Added(h, is)
		return
	}
	if was.Body == is.Body && !t.set.timed {
		return // touched, or given another time to live
	}
	t.was.Load(was.Body, was.TS)
	t.is.Load(is.Body, is.TS)
	moved := false
	for i, tree := range t.trees {
		if t.was.Same(t.is, i) {
			continue
		}
		t.old, t.new = t.was.Keys(i, t.old[:0]), t.is.Keys(i, t.new[:0])
		if slices.EqualFunc(t.old, t.new, func(a, b Key) bool { return a.Equal(&b) }) {
			continue
		}
		moved = true
		for _, k := range t.old {
			tree.Remove(k, uint32(h))
		}
		for _, k := range t.new {
			tree.Add(k, uint32(h))
		}
	}
	if moved {
		t.countTrees()
	}
	t.forget()
}

// mostBuffered is the number of keys in a buffer that is kept.
const mostBuffered = 256

// forget lets go of the documents that were read last, and of large buffers: they would stay in memory
// uncounted.
func (t *Table) forget() {
	t.was.Load("", 0)
	t.is.Load("", 0)
	for _, keys := range []*[]Key{&t.old, &t.new} {
		if cap(*keys) > mostBuffered {
			*keys = nil
		}
		clear((*keys)[:min(cap(*keys), mostBuffered)])
	}
}
