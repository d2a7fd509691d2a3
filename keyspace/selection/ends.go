package selection

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// EndsRange says which documents an [endsReader] reads.
type EndsRange struct {
	Low, High int64 // ms; the documents that die then, both included
	Count     bool  // they are counted and not read, one partition after the other
	Plain     bool  // plain keys are read too
	First     int   // entries of the first slice: see firstSlice
}

// orderedAtOnce bounds the items that are brought into order while partitions are locked.
const orderedAtOnce = 2 * Entries

// endsReader reads the living documents that die in a range of moments in slices, in the order of their ends
// and of ids.
type endsReader struct {
	r  EndsRange
	at EndPlace

	slice Slice
	ends  []int64 // of the items
	size  int     // entries of the next slice
}

// newEndsReader returns a reader from a place on.
func newEndsReader(r EndsRange, from EndPlace) *endsReader {
	return &endsReader{r: r, at: from, size: firstSlice(r.First)}
}

// Place returns the place behind an item of the last slice.
func (x *endsReader) Place(i int) EndPlace { return EndPlace{x.ends[i], x.slice.Items[i].ID, true} }

// Rewind makes the reader go on from the beginning: in another partition.
func (x *endsReader) Rewind() { x.at = EndPlace{} }

// Ends returns the ends behind the place under a policy. The caller adds the tables.
func (x *endsReader) Ends(policy *expiry.Policy) *memtable.Ends {
	if x.at.Any && x.at.End >= x.r.Low {
		return memtable.NewEnds(policy, x.at.End, x.at.ID, false)
	}
	return memtable.NewEnds(policy, x.r.Low, "", true)
}

// Prepare brings a bounded number of the ends into order, where reading begins. It reports whether that is
// done.
func (x *endsReader) Prepare(ends *memtable.Ends) (done bool) { return ends.Ready(orderedAtOnce) }

// Read reads a slice at a moment in ms. Its items are valid until the next call.
func (x *endsReader) Read(ends *memtable.Ends, policy *expiry.Policy, now int64) Slice {
	x.slice, x.ends = Slice{Items: x.slice.Items[:0]}, x.ends[:0]
	x.slice.Last = x.read(ends, policy, now)
	return x.slice
}

// read fills the slice. end says that nothing follows.
func (x *endsReader) read(ends *memtable.Ends, policy *expiry.Policy, now int64) (end bool) {
	size := x.size
	x.size = nextSlice(size)
	var t *memtable.Table
	var e *memtable.Entry
	var at int64
	dead := policy.DeadLimits(now)
	defer func() {
		if e != nil {
			x.at = EndPlace{at, t.ID(e), true}
		}
	}()
	for range size {
		if !ends.Ready(orderedAtOnce) {
			x.slice.Ordered = ends.Looked()
			return false
		}
		if first, ok := ends.End(); !ok || first > x.r.High {
			return true
		}
		t, e, at = ends.Next()
		switch {
		case e.Plain() && !x.r.Plain || e.Within(dead) || t.IsHollow(e, dead):
		case x.r.Count:
			x.slice.Counted++
		default:
			x.slice.Items = append(x.slice.Items, Item{ID: t.ID(e), Item: t.Item(e)})
			x.ends = append(x.ends, at)
		}
	}
	return false
}
