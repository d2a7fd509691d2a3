package memtable

import "mayfly/keyspace/record"

// Observer learns of every change of a table's items, once each, under the lock of the table's owner. The
// items are views. A handle is the item's for as long as it lives.
type Observer interface {
	Added(h Handle, it record.Item)
	Replaced(h Handle, was, is record.Item)
	Removed(h Handle, it record.Item)
}

// Observe sets the observer; nil ends observation.
func (t *Table) Observe(o Observer) { t.observer = o }

// AddMemory adds to the memory of the table what its owner keeps besides the items, in bytes.
func (t *Table) AddMemory(bytes int64) {
	t.memory += bytes
	t.extra += bytes
	if !t.detached {
		t.shard.memory.Add(bytes)
	}
}

// At returns the entry of a handle, which must be that of an item in the table.
func (t *Table) At(h Handle) *Entry { return t.slab.at(h) }

// Handle returns the handle of an entry that is in the table.
func (t *Table) Handle(e *Entry) Handle {
	h, _ := t.order.at(int(e.pos))
	return h
}

func (t *Table) added(h Handle, e *Entry) {
	if t.observer != nil {
		t.observer.Added(h, t.Item(e))
	}
}

func (t *Table) removed(h Handle, e *Entry) {
	if t.observer != nil {
		t.observer.Removed(h, t.Item(e))
	}
}
