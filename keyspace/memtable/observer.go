package memtable

import (
	"mayfly/expiry"
	"mayfly/keyspace/record"
)

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

// KeyObserver is an observer that knows the elements of an item that are not in it.
type KeyObserver interface {
	Observer
	// Elsewhere returns what they take: the bytes of ids and bodies, and the memory, about.
	Elsewhere(it record.Item) (bytes, memory int64)
	// Hollow reports whether all of them are dead by limits.
	Hollow(it record.Item, dead expiry.Limits) bool
}

// ObserveCollections sets the observer of the items that have elements. It learns of no others.
func (t *Table) ObserveCollections(o KeyObserver) { t.collections = o }

// elsewhere returns what the elements of an item take that are not in it.
func (t *Table) elsewhere(e *Entry) (bytes, memory int64) {
	if !e.Collection() || t.collections == nil {
		return 0, 0
	}
	return t.collections.Elsewhere(t.Item(e))
}

// IsHollow reports whether an item has elements of its own, but none that lives by limits of the dead.
func (t *Table) IsHollow(e *Entry, dead expiry.Limits) bool {
	return e.Collection() && t.collections != nil && t.collections.Hollow(t.Item(e), dead)
}

func (t *Table) added(h Handle, e *Entry) {
	if t.observer != nil {
		t.observer.Added(h, t.Item(e))
	}
	if e.Collection() && t.collections != nil {
		t.collections.Added(h, t.Item(e))
	}
}

func (t *Table) replaced(h Handle, old record.Item, e *Entry) {
	if t.observer != nil {
		t.observer.Replaced(h, old, t.Item(e))
	}
	if t.collections != nil && (old.Kind.IsCollection() || e.Collection()) {
		t.collections.Replaced(h, old, t.Item(e))
	}
}

func (t *Table) removed(h Handle, e *Entry) {
	if t.observer != nil {
		t.observer.Removed(h, t.Item(e))
	}
	if e.Collection() && t.collections != nil {
		t.collections.Removed(h, t.Item(e))
	}
}

// Refresh gives an entry another time of its last write and another version, in memory only: what its record
// refers to was written.
func (t *Table) Refresh(h Handle, e *Entry, ts int64, version uint64) {
	byDefault, byOwnTTL := t.byDefault.moment(e), t.byOwnTTL.moment(e)
	e.ts, e.version = ts, version
	t.requeue(e, h, byDefault, byOwnTTL)
}

// EachDue visits about n entries with an end of their own at or before a limit, at least one if there is one.
func (t *Table) EachDue(limit int64, n int, visit func(*Entry)) {
	for _, s := range t.byOwnTTL.order {
		if s.from > limit {
			return
		}
		for _, h := range t.byOwnTTL.buckets[s.bucket].items {
			if e := t.slab.at(h); t.byOwnTTL.moment(e) <= limit {
				if n--; n < 0 {
					return
				}
				visit(e)
			}
		}
	}
}

// EachWaiting is EachDue without the entries that pass selects. As long as the policy is the same it does not
// look again at buckets that have none but these: they must stay as they are, or go.
func (t *Table) EachWaiting(by *expiry.Policy, limit int64, n int, pass func(*Entry) bool, visit func(*Entry)) {
	q := &t.byOwnTTL
	if q.waitBy != by {
		for _, s := range q.order {
			q.buckets[s.bucket].waiting = q.buckets[s.bucket].earliest
		}
		q.waitBy = by
	}
	for _, s := range q.order {
		b := &q.buckets[s.bucket]
		if s.from > limit {
			return
		}
		if b.waiting > limit {
			continue
		}
		waiting := expiry.NeverDue
		for _, h := range b.items {
			e := t.slab.at(h)
			moment := q.moment(e)
			if moment <= limit {
				if pass(e) {
					continue
				}
				if n--; n < 0 {
					return
				}
				visit(e)
			}
			waiting = min(waiting, moment)
		}
		b.waiting = waiting
	}
}

// EarliestWaiting returns a lower bound of the ends, in ms, of entries that [Table.EachWaiting] does not pass
// over under a policy; [expiry.NeverDue] if there are none.
func (t *Table) EarliestWaiting(by *expiry.Policy) int64 {
	q := &t.byOwnTTL
	if q.waitBy != by {
		return q.earliest()
	}
	first := expiry.NeverDue
	for _, s := range q.order {
		if s.from >= first {
			break
		}
		first = min(first, q.buckets[s.bucket].waiting)
	}
	return first
}

// Tighten raises the bound of ends of their own (see Earliest) beyond a limit, unless an entry is due.
func (t *Table) Tighten(limit int64) {
	q := &t.byOwnTTL
	for q.due(limit) {
		first := q.order[0].bucket
		if q.reap(&t.slab, limit, 0, nil); q.isFirst(first) && q.buckets[first].earliest <= limit {
			return
		}
	}
}

// DueAtMost returns about how many entries EachDue would look at.
func (t *Table) DueAtMost(limit int64) int {
	if !t.byOwnTTL.due(limit) {
		return 0
	}
	return t.byOwnTTL.estimateDue(limit) + bucketSize
}
