package selection

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// hashReader reads the living items of one partition after the other in slices, in the order of the hashes of
// their ids. An id is enough to go on behind it, also after a restart. What is written meanwhile keeps its
// place.
type hashReader struct {
	partitions int
	number     int    // the partition that is read
	after      string // the id behind which the next slice begins
	begin      bool   // the next slice begins with the first item of the partition

	slice    Slice
	dead     []*memtable.Entry
	found    [Entries + 1]*memtable.Entry // one more says whether the partition has more
	examined int
}

// newHashReader returns a reader from the beginning on.
func newHashReader(partitions int) *hashReader {
	return &hashReader{partitions: partitions, begin: true}
}

// GoOn makes the reader begin behind an id of a partition.
func (r *hashReader) GoOn(partition int, id string) {
	r.number, r.after, r.begin = partition, id, false
}

// Partition returns the partition of the next slice.
func (r *hashReader) Partition() int { return r.number }

// Examined returns the number of items that were examined for the last slice.
func (r *hashReader) Examined() int { return r.examined }

// Dead returns the dead that were met in the last slice.
func (r *hashReader) Dead() []*memtable.Entry { return r.dead }

// Read reads the next slice at a moment in ms. t has the items of the partition; nil if there are none. The
// items of the slice are valid until the next call.
func (r *hashReader) Read(t *memtable.Table, policy *expiry.Policy, now int64) Slice {
	r.slice, r.dead, r.examined = Slice{Items: r.slice.Items[:0]}, r.dead[:0], 0
	end := true
	if t != nil {
		if r.examined = t.InHashOrder(r.after, r.begin, r.found[:]); r.examined > Entries {
			r.examined, end = Entries, false
		}
		r.examine(t, policy, now)
	}
	if end {
		r.number, r.after, r.begin = r.number+1, "", true
	} else {
		r.after, r.begin = t.ID(r.found[r.examined-1]), false
	}
	r.slice.Last = r.number == r.partitions
	return r.slice
}

// examine adds the items found to the slice, or to the dead.
func (r *hashReader) examine(t *memtable.Table, policy *expiry.Policy, now int64) {
	dead := policy.DeadLimits(now)
	for _, e := range r.found[:r.examined] {
		if e.Within(dead) {
			r.dead = append(r.dead, e)
			continue
		}
		var it Item
		it.ID, it.Item = t.IDAndItem(e)
		r.slice.Items = append(r.slice.Items, it)
	}
	r.slice.Dead = len(r.dead)
}
