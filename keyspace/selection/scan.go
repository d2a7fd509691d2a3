package selection

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// partitionReader reads one partition after the other in slices.
type partitionReader interface {
	Partition() int          // of the next slice
	Examined() int           // items that were examined for the last slice
	Dead() []*memtable.Entry // that were met in the last slice

	// Read reads the next slice at a moment in ms. t has the items of the partition; nil if there are none.
	// The items of the slice are valid until the next call.
	Read(t *memtable.Table, policy *expiry.Policy, now int64) Slice
}

// scanReader reads the living items of one partition after the other in slices, from the newest to the
// oldest.
type scanReader struct {
	partitions uint64
	number     uint64 // the partition that is read
	below      uint64 // the sequence number behind which the next slice begins; 0 for the newest
	count      bool

	slice    Slice
	dead     []*memtable.Entry
	found    [Entries + 1]memtable.Placed // one more says whether the partition has more
	examined int
}

// newScanReader returns a reader. If count is true, documents are counted and not read: slices have no items.
func newScanReader(partitions int, count bool) *scanReader {
	return &scanReader{partitions: uint64(partitions), count: count}
}

// Partition returns the partition of the next slice.
func (r *scanReader) Partition() int { return int(r.number) }

// Examined returns the number of items that were examined for the last slice.
func (r *scanReader) Examined() int { return r.examined }

// Dead returns the dead that were met in the last slice.
func (r *scanReader) Dead() []*memtable.Entry { return r.dead }

// Read reads the next slice at a moment in ms. t has the items of the partition; nil if there are none. The
// items of the slice are valid until the next call.
func (r *scanReader) Read(t *memtable.Table, policy *expiry.Policy, now int64) Slice {
	r.slice, r.dead, r.examined = Slice{Items: r.slice.Items[:0]}, r.dead[:0], 0
	end := true
	if t != nil {
		if r.examined = t.Newest(r.below, r.found[:]); r.examined > Entries {
			r.examined, end = Entries, false
		}
		r.examine(t, policy, now)
		r.slice.Dead = len(r.dead)
	}
	if end {
		r.number, r.below = r.number+1, 0
	} else {
		r.below = r.found[r.examined-1].Seq
	}
	r.slice.Last = r.number == r.partitions
	return r.slice
}

// examine adds the items found to the slice, or to the dead.
func (r *scanReader) examine(t *memtable.Table, policy *expiry.Policy, now int64) {
	dead := policy.DeadLimits(now)
	for _, f := range r.found[:r.examined] {
		switch e := f.Entry; {
		case e.Within(dead):
			r.dead = append(r.dead, e)
		case !r.count:
			var it Item
			it.ID, it.Item = t.IDAndItem(e)
			r.slice.Items = append(r.slice.Items, it)
		case e.Plain():
			r.slice.Plain++
		default:
			r.slice.Counted++
		}
	}
}
