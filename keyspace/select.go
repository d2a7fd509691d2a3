package keyspace

import (
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/selection"
	"mayfly/query"
	"mayfly/query/predicates"
)

// What queries read; see package selection.
type (
	Selected  = selection.Item
	Slice     = selection.Slice
	Plan      = selection.Plan
	Place     = selection.Place
	EndsRange = selection.EndsRange
	EndPlace  = selection.EndPlace
)

// ErrIndexGone is the error of a query whose index was dropped since it was planned.
var ErrIndexGone = selection.ErrIndexGone

// ParsePlace reads what [Place.Text] has written.
func ParsePlace(text string) (p Place, ok bool) { return selection.ParsePlace(text) }

// PrefetchItems reads the beginnings of items that are examined soon into the processor's cache. The caller keeps the
// sum, so that the reads are not optimised away.
func PrefetchItems(items []Selected) (sum int) { return selection.Prefetch(items) }

// ParseEndPlace reads what [EndPlace.Text] has written.
func ParseEndPlace(text string) (p EndPlace, ok bool) { return selection.ParseEndPlace(text) }

// AdviseIndex returns the paths of an index that would serve a query better than its plan, for INDEX.CREATE. It returns
// "" if there is none. p is nil for a query without an index. few says that the query wants few rows.
func AdviseIndex(q *query.Query, p *Plan, few bool) string { return selection.Advise(q, p, few) }

// UnfitIndex returns why the index with a definition does not serve a query, although its paths are those of the query.
// ok is false if there is no such index.
func (c *Container) UnfitIndex(definition string) (why string, ok bool) {
	return selection.Unfit(c.indexes.Load(), definition)
}

// Plan returns the plan of the index that serves a query best. A definition other than "" restricts it to that index. ok
// is false if none does. Then the query scans.
func (c *Container) Plan(q *query.Query, definition string) (p Plan, ok bool) {
	return selection.Choose(c.indexes.Load(), q, definition)
}

// PlanNear returns the plan of an index that reads the documents within a distance in metres. ok is false if no index
// serves.
func (c *Container) PlanNear(n predicates.Nearest, metres float64) (p Plan, ok bool) {
	return selection.Near(c.indexes.Load(), n, metres)
}

// Select passes the living items of a container to visit in slices, until visit returns false. Those of a partition come
// from the newest to the oldest. It removes the dead that it meets.
//
// The partition of a slice is locked while it is gathered. No partition is locked while visit runs, but those that the
// transaction has locked. visit must not keep the slice itself.
func (tx *Tx) Select(c *Container, visit func(s Slice) (more bool)) {
	tx.scan(c, selection.NewScanReader(len(tx.ks.partitions), false), visit)
}

// SelectCount is [Tx.Select] for documents that are counted and not read: a slice has no items.
func (tx *Tx) SelectCount(c *Container, visit func(s Slice) (more bool)) {
	tx.scan(c, selection.NewScanReader(len(tx.ks.partitions), true), visit)
}

// SelectInHashOrder is [Tx.Select] in an order that survives restarts. It begins behind an id if goesOn is true. An item
// comes once at most, and once if it lives throughout.
func (tx *Tx) SelectInHashOrder(c *Container, after string, goesOn bool, visit func(s Slice) (more bool)) {
	r := selection.NewHashReader(len(tx.ks.partitions))
	if goesOn {
		r.GoOn(tx.ks.partitionOf(after).number, after)
	}
	tx.scan(c, r, visit)
}

// scan passes the slices of a reader to visit until visit returns false.
func (tx *Tx) scan(c *Container, r selection.PartitionReader, visit func(s Slice) (more bool)) {
	for {
		var s Slice
		tx.within(tx.ks.partitions[r.Partition()], func(p *partition) (more bool) {
			tx.saw(p.lastWrite)
			t := c.tables[p.number]
			if t == nil {
				s = r.Read(nil, nil, 0)
				return true
			}
			s = r.Read(&t.Table, c.Policy(), tx.now)
			tx.removeDead(t, r.Dead())
			return true
		})
		if r.Examined() > 0 && !visit(s) || s.Last {
			return
		}
	}
}

// HashCheck returns a number that tells the order of [Tx.SelectInHashOrder] from that in other data folders.
func (ks *Keyspace) HashCheck() uint32 { return ks.storage.Seed().Check() }

// SelectIndex passes the living items in the ranges of a plan to visit in slices, from a place on, until visit returns
// false. The items of an ordered plan come in its order, those of another by partition. SelectIndex removes the dead
// that it meets.
//
// All partitions are locked while a slice is gathered, and no partition is while visit runs, but those that the
// transaction has locked. An item comes once, unless its keys change meanwhile.
func (tx *Tx) SelectIndex(c *Container, p *Plan, from Place, visit func(s Slice, place func(i int) Place) (more bool)) error {
	r := selection.NewIndexReader(p, from)
	for {
		var s Slice
		var err error
		tx.withinAll(func() {
			s, err = r.Read(tx.viewLocked(c))
			s.Dead = tx.removeMet(c, r.Dead())
		})
		if err != nil {
			return err
		}
		if r.Examined() > 0 && !visit(s, r.Place) || s.Last {
			return nil
		}
	}
}

// viewLocked returns what a query sees of a container. The locks of all partitions must be held.
func (tx *Tx) viewLocked(c *Container) selection.View {
	return selection.View{
		Partitions: len(tx.ks.partitions), Policy: c.Policy(), Now: tx.now,
		Part: func(partition int) (*memtable.Table, *indexing.Table) {
			tx.saw(tx.ks.partitions[partition].lastWrite)
			if t := c.tables[partition]; t != nil {
				return &t.Table, t.indexed
			}
			return nil, nil
		},
	}
}

// removeMet removes the purgeable of the dead that a query has met. It returns how many the dead are. The locks of all
// partitions must be held.
func (tx *Tx) removeMet(c *Container, dead []selection.DeadEntry) (n int) {
	for _, d := range dead {
		if d.Entry.Present() { // an item may have several entries
			tx.removeDead(c.tables[d.Partition], []*memtable.Entry{d.Entry})
			n++
		}
	}
	return n
}

// removeDead removes the purgeable of the dead entries that a query has met. The partition of t must be locked.
func (tx *Tx) removeDead(t *table, dead []*memtable.Entry) {
	if len(dead) == 0 {
		return
	}
	purgeable, removed := tx.ks.purgeable(t.c, tx.now), 0
	for _, e := range dead {
		if e.Within(purgeable) {
			tx.noteDeath(t, e)
			t.Remove(e)
			tx.expire(t, e)
			removed++
		}
	}
	if removed > 0 {
		tx.ks.purge.CountLazy(removed)
	}
}
