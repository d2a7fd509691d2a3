package keyspace

import "mayfly/keyspace/memtable"

// Selected is a living item that a query examines. It is safe to keep.
type Selected struct {
	ID     string
	Item   Item
	After  uint64 // of a scan: the cursor that goes on behind the item
	Proven bool   // the plan proves all conditions of the query

	partition int
}

// Slice is the part of a container that a query sees at one moment.
type Slice struct {
	Items []Selected
	Dead  int  // items met that are dead, and are removed now
	Last  bool // nothing follows

	Counted int // living documents that a counting plan selects, and has not read
	Ordered int // items that were brought into order for this and later queries
}

// sliceEntries bounds the entries of a slice, and so the time for which a partition is locked.
const sliceEntries = 512

// firstSlice returns the entries of the first slice of a query that is probably content with some; 0 if it wants all.
func firstSlice(wanted int) int {
	if wanted <= 0 {
		return sliceEntries
	}
	return min(wanted, sliceEntries)
}

// nextSlice returns the entries of the slice behind one of a size.
func nextSlice(size int) int { return min(4*size, sliceEntries) }

// Select passes the living items of a container to visit in slices, from a cursor on, until visit returns
// false. 0 is the first cursor. The slices follow the order of [Tx.Scan], whose guarantees hold. Select removes the
// dead that it meets.
//
// The partition of a slice is locked while it is gathered, and no partition is while visit runs, but those that the
// transaction has locked. visit must not keep the slice itself. next is the cursor behind the last slice, 0 at the
// end.
func (tx *Tx) Select(c *Container, cursor uint64, visit func(s Slice) (more bool)) (next uint64) {
	partitions := uint64(len(tx.ks.partitions))
	number, below := cursor%partitions, cursor/partitions
	var items []Selected
	var dead []*memtable.Entry
	for number < partitions {
		items, dead = items[:0], dead[:0]
		examined, end := 0, true
		tx.within(tx.ks.partitions[number], func(p *partition) (more bool) {
			tx.saw(p.lastWrite)
			t := c.tables[p.number]
			if t == nil {
				return true
			}
			policy := c.Policy()
			t.Descend(below, func(seq uint64, e *memtable.Entry) (more bool) {
				if examined == sliceEntries {
					end = false
					return false
				}
				examined++
				below = seq
				if e.Dead(policy, tx.now) {
					dead = append(dead, e)
				} else {
					items = append(items, Selected{ID: t.ID(e), Item: t.Item(e), After: seq*partitions + number})
				}
				return true
			})
			if !tx.ks.keepsDead(tx.now) {
				tx.removeDead(t, dead)
			}
			return true
		})
		if end {
			number, below = number+1, 0
		}
		if examined > 0 && !visit(Slice{Items: items, Dead: len(dead), Last: number == partitions}) {
			break
		}
	}
	if number == partitions {
		return 0
	}
	return below*partitions + number
}

// removeDead removes dead entries that a query has met. The partition of t must be locked.
func (tx *Tx) removeDead(t *table, dead []*memtable.Entry) {
	for _, e := range dead {
		tx.noteDeath(t, e)
		t.Remove(e)
		tx.expire(t, e)
	}
	if len(dead) > 0 {
		tx.ks.purge.CountLazy(len(dead))
	}
}
