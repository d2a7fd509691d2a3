//go:build invariants || race

package keyspace

import (
	"fmt"

	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// checkIndexesLocked verifies the figures of a container's indexes. The locks of all partitions must be held.
func (c *Container) checkIndexesLocked() error {
	for at, ix := range c.Indexes() {
		cut := 0
		for i, t := range c.tables {
			if t == nil {
				continue
			}
			if t.indexed == nil || t.indexed.set != c.indexes.Load() {
				return fmt.Errorf("partition %d has other indexes", i)
			}
			if ix.Ready() && !t.indexed.built[at] {
				return fmt.Errorf("index %s is ready, but not built in partition %d", ix.Definition.String(), i)
			}
			cut += t.indexed.cut[at]
		}
		if counted := ix.cut.Load(); counted != int64(cut) {
			return fmt.Errorf("index %s has %d cut keys, counted are %d", ix.Definition.String(), cut, counted)
		}
	}
	return nil
}

// checkTreesLocked compares the trees of a table with those that its items make anew. The lock of its partition must be
// held.
func (t *table) checkTreesLocked() error {
	x := t.indexed
	if x == nil {
		if extra := t.ExtraMemory(); extra != 0 {
			return fmt.Errorf("%d bytes of memory are counted for trees, without any", extra)
		}
		return nil
	}
	bytes := int64(0)
	reader := index.NewReader(x.set.definitions)
	for at, tree := range x.trees {
		bytes += tree.Bytes()
		fresh, unbuilt := index.New(t.idOfHandle), make(map[uint32]bool)
		t.Descend(0, func(seq uint64, e *memtable.Entry) (more bool) {
			if it := t.Item(e); it.Kind == record.Document {
				for _, k := range reader.Load(it.Body, it.TS).Keys(at, nil) {
					fresh.Add(k, uint32(t.Handle(e)))
				}
			}
			unbuilt[uint32(t.Handle(e))] = !x.built[at] && (x.below[at] == 0 || seq < x.below[at])
			return true
		})
		if err := compareTrees(tree, fresh, unbuilt); err != nil {
			return fmt.Errorf("index %s: %w", x.set.definitions[at].String(), err)
		}
		if cut := tree.Cut(); cut != x.cut[at] || x.built[at] && cut != fresh.Cut() {
			return fmt.Errorf("index %s has %d cut keys, counted are %d, of the items %d", x.set.definitions[at].String(), cut, x.cut[at], fresh.Cut())
		}
	}
	if extra := t.ExtraMemory(); bytes != x.bytes || bytes != extra {
		return fmt.Errorf("trees take %d bytes, counted are %d, in the table %d", bytes, x.bytes, extra)
	}
	return nil
}

// compareTrees returns an error unless a tree holds the entries of another, but for items that may be missing.
func compareTrees(tree, want *index.Tree, missing map[uint32]bool) error {
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
