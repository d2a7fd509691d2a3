package memtable

// A table is sorted while its items lie in the insertion order by their ids, as those of a log of deaths do.
// Then an id is found by binary search.

// Reorder makes the insertion order that of a list with the handles of all items.
func (t *Table) Reorder(list []Handle) {
	t.order = insertionOrder{next: 1}
	for _, h := range list {
		t.slab.at(h).pos = t.order.push(h)
	}
}

// Seq returns the sequence number of an entry in the insertion order.
func (t *Table) Seq(e *Entry) uint64 {
	_, seq := t.order.at(int(e.pos))
	return seq
}

// Ascend visits the entries of a sorted table from an id on, in the order of ids, until visit returns false.
// No entry below a sequence number is present: the search leaves their holes out.
func (t *Table) Ascend(from string, above uint64, visit func(h Handle, e *Entry) (more bool)) {
	for i := t.search(from, above); i < t.order.slots.n; i++ {
		if h, _ := t.order.at(i); h != 0 && !visit(h, t.slab.at(h)) {
			return
		}
	}
}

// DescendFrom visits the entries of a sorted table below an id, in the reverse order of ids, until visit
// returns false. above is as in Ascend.
func (t *Table) DescendFrom(below string, above uint64, visit func(h Handle, e *Entry) (more bool)) {
	least := t.order.before(above)
	for i := t.search(below, above) - 1; i > least; i-- {
		if h, _ := t.order.at(i); h != 0 && !visit(h, t.slab.at(h)) {
			return
		}
	}
}

// search returns a position in the order of a sorted table: those before it have lesser ids or are holes, and
// those from it on have ids not less than id or are holes.
func (t *Table) search(id string, above uint64) int {
	low, high := t.order.before(above)+1, t.order.slots.n
	for low < high {
		mid := int(uint(low+high) >> 1)
		at := mid // the first from there that is no hole
		h, _ := t.order.at(at)
		for h == 0 && at+1 < high {
			at++
			h, _ = t.order.at(at)
		}
		if h != 0 && t.ID(t.slab.at(h)) < id {
			low = at + 1
		} else {
			high = mid
		}
	}
	return low
}

// First returns the sequence number of the first entry that is not below one; that of the next item if there
// is none.
func (t *Table) First(above uint64) uint64 {
	for i := t.order.before(above) + 1; i < t.order.slots.n; i++ {
		if h, seq := t.order.at(i); h != 0 {
			return seq
		}
	}
	return t.order.next
}
