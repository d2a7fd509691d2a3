package index

import (
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// What [Table.Build] reads at most in one call, but for the rest of the last item.
const (
	buildItems = 128
	buildBytes = 128 << 10
)

// Build adds the next items to the tree of an index: up to 128, or fewer of many bytes. Changes of the items
// keep the tree up to date, so an item may be there already. It reports whether the tree is built, or there
// is none.
func (t *Table) Build(x *Index) (built bool) {
	at := t.indexOf(x)
	return at < 0 || t.build(at)
}

// BuildAll builds all trees.
func (t *Table) BuildAll() {
	for at := range t.trees {
		for !t.build(at) {
		}
	}
}

// Built reports whether the tree of an index has all items.
func (t *Table) Built(x *Index) bool {
	at := t.indexOf(x)
	return at >= 0 && t.built[at]
}

func (t *Table) build(at int) (built bool) {
	if t.built[at] {
		return true
	}
	tree, items, bytes := t.trees[at], 0, 0
	built = true
	t.items.Descend(t.below[at], func(seq uint64, e *memtable.Entry) (more bool) {
		if items == buildItems || bytes >= buildBytes {
			built = false
			return false
		}
		items++
		t.below[at] = seq
		it := t.items.Item(e)
		bytes += len(it.Body)
		if it.Kind == record.Document {
			t.is.Load(it.Body, it.TS)
			t.new = t.is.Keys(at, t.new[:0])
			for _, k := range t.new {
				tree.Add(k, uint32(t.items.Handle(e)))
			}
		}
		return true
	})
	t.built[at] = built
	t.set.list[at].built.Add(int64(items))
	t.countTrees()
	t.forget()
	return built
}
