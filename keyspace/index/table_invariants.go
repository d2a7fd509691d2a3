//go:build invariants || race

package index

import (
	"fmt"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Check verifies the figures of the indexes. tables are those of all the container's tables of items.
func (s *Set) Check(tables []*Table) error {
	for at, x := range s.List() {
		cut := 0
		for _, t := range tables {
			if t == nil || t.set != s {
				return fmt.Errorf("a table has other indexes")
			}
			if x.Ready() && !t.built[at] {
				return fmt.Errorf("index %s is ready, but not built everywhere", x.Definition.String())
			}
			cut += t.cut[at]
		}
		if counted := x.cut.Load(); counted != int64(cut) {
			return fmt.Errorf("index %s has %d cut keys, counted are %d", x.Definition.String(), cut, counted)
		}
	}
	return nil
}

// Check compares the trees of a table with those that its items make anew.
func (t *Table) Check(items *memtable.Table) error {
	if t == nil {
		if extra := items.ExtraMemory(); extra != 0 {
			return fmt.Errorf("%d bytes of memory are counted for trees, without any", extra)
		}
		return nil
	}
	bytes := int64(0)
	reader := NewReader(t.set.definitions)
	for at, tree := range t.trees {
		bytes += tree.Bytes()
		fresh, unbuilt := New(t.id), make(map[uint32]bool)
		items.Descend(0, func(seq uint64, e *memtable.Entry) (more bool) {
			if it := items.Item(e); it.Kind == record.Document {
				for _, k := range reader.Load(it.Body, it.TS).Keys(at, nil) {
					fresh.Add(k, uint32(items.Handle(e)))
				}
			}
			unbuilt[uint32(items.Handle(e))] = !t.built[at] && (t.below[at] == 0 || seq < t.below[at])
			return true
		})
		if err := compareTrees(tree, fresh, unbuilt); err != nil {
			return fmt.Errorf("index %s: %w", t.set.definitions[at].String(), err)
		}
		if cut := tree.Cut(); cut != t.cut[at] || t.built[at] && cut != fresh.Cut() {
			return fmt.Errorf("index %s has %d cut keys, counted are %d, of the items %d", t.set.definitions[at].String(), cut, t.cut[at], fresh.Cut())
		}
	}
	if extra := items.ExtraMemory(); bytes != t.bytes || bytes != extra {
		return fmt.Errorf("trees take %d bytes, counted are %d, in the table %d", bytes, t.bytes, extra)
	}
	return nil
}

// compareTrees returns an error unless a tree holds the entries of another, but for items that may be
// missing.
func compareTrees(tree, want *Tree, missing map[uint32]bool) error {
	if err := tree.Check(); err != nil {
		return err
	}
	is, more := tree.Range(nil, nil, false)
	c, ok := want.Range(nil, nil, false)
	for ; ok; ok = c.Next() {
		if more {
			a, b := is.Key(), c.Key()
			if is.Handle() == c.Handle() && a.Equal(&b) {
				more = is.Next()
				continue
			}
		}
		if !missing[c.Handle()] {
			return fmt.Errorf("the entry %+v of item %d is missing", c.Key(), c.Handle())
		}
	}
	if more {
		return fmt.Errorf("the entry %+v of item %d belongs to no item", is.Key(), is.Handle())
	}
	return nil
}
