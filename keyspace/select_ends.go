package keyspace

import (
	"encoding/binary"

	"mayfly/keyspace/memtable"
)

// EndsRange says which documents [Tx.SelectEnds] reads.
type EndsRange struct {
	Low, High int64 // ms; the documents that die then, both included
	Count     bool  // they are counted and not read, one partition after the other
	First     int   // entries of the first slice: see firstSlice
}

// EndPlace is where a query goes on in the order of ends.
type EndPlace struct {
	End int64  // ms, of the last document
	ID  string // of the last document
	Any bool   // false for the beginning
}

// Text returns the place for a cursor. [ParseEndPlace] reads it.
func (p EndPlace) Text() string { return string(binary.AppendVarint(nil, p.End)) + p.ID }

// ParseEndPlace reads what [EndPlace.Text] has written.
func ParseEndPlace(text string) (p EndPlace, ok bool) {
	end, size := binary.Varint([]byte(text))
	if size <= 0 {
		return p, false
	}
	return EndPlace{End: end, ID: text[size:], Any: true}, true
}

// orderedAtOnce bounds the items that are brought into order while partitions are locked.
const orderedAtOnce = 2 * sliceEntries

// SelectEnds passes the living documents that die in a range of moments to visit in slices, in the order of their ends
// and of ids, from a place on, until visit returns false. It removes the dead of the container first. It reads the
// queues of the purge, so a changed default costs nothing.
//
// All partitions are locked while a slice is gathered, and no partition is while visit runs, but those that the
// transaction has locked. A slice may be empty.
func (tx *Tx) SelectEnds(c *Container, r EndsRange, from EndPlace, visit func(s Slice, place func(i int) EndPlace) (more bool)) {
	x := endsReader{tx: tx, c: c, r: r, at: from, size: firstSlice(r.First)}
	if dead := x.prepare(); dead > 0 && !visit(Slice{Dead: dead}, nil) {
		return
	}
	for {
		end := false
		if r.Count {
			end = x.count()
		} else {
			end = x.gather()
		}
		if !visit(Slice{Items: x.items, Last: end, Counted: x.counted, Ordered: x.ordered}, x.place) || end {
			return
		}
	}
}

// endsReader is the state of SelectEnds.
type endsReader struct {
	tx *Tx
	c  *Container
	r  EndsRange
	at EndPlace

	items   []Selected
	ends    []int64 // of items
	counted int
	ordered int // items brought into order

	size      int // entries of the next slice
	partition int // that is counted
}

func (x *endsReader) place(i int) EndPlace { return EndPlace{x.ends[i], x.items[i].ID, true} }

// reader returns a reader of the ends behind the place.
func (x *endsReader) reader() *memtable.Ends {
	if x.at.Any && x.at.End >= x.r.Low {
		return memtable.NewEnds(x.c.Policy(), x.at.End, x.at.ID, false)
	}
	return memtable.NewEnds(x.c.Policy(), x.r.Low, "", true)
}

// prepare removes the dead, and brings the queues into order where reading begins. It locks one partition at a time, for
// a few buckets. It returns the number of dead.
func (x *endsReader) prepare() (dead int) {
	for _, p := range x.tx.ks.partitions {
		for more := true; more; {
			x.tx.within(p, func(p *partition) bool {
				t := x.c.tables[p.number]
				if more = false; t == nil {
					return true
				}
				if !x.tx.ks.keepsDead(x.tx.now) {
					more = t.RemoveDead(x.c.Policy(), x.tx.now, sliceEntries/2, func(e *memtable.Entry) {
						x.tx.removeDead(t, []*memtable.Entry{e})
						dead++
					})
				}
				if !more {
					ends := x.reader()
					ends.Add(&t.Table, x.tx.now)
					more = !ends.Ready(orderedAtOnce)
				}
				return true
			})
		}
	}
	return dead
}

// gather reads the next slice, with all partitions locked. end says that nothing follows.
func (x *endsReader) gather() (end bool) {
	x.items, x.ends, x.counted, x.ordered = x.items[:0], x.ends[:0], 0, 0
	ends := x.reader()
	for _, p := range x.tx.ks.partitions {
		if !x.tx.holds(p) {
			p.mu.Lock()
			defer p.mu.Unlock()
			defer p.cleanLocked()
		}
		x.tx.saw(p.lastWrite)
		if t := x.c.tables[p.number]; t != nil {
			ends.Add(&t.Table, x.tx.now)
		}
	}
	return x.read(ends)
}

// count is gather for documents that are counted: it locks one partition. Their order does not matter.
func (x *endsReader) count() (end bool) {
	x.counted, x.ordered = 0, 0
	p := x.tx.ks.partitions[x.partition]
	x.tx.within(p, func(p *partition) bool {
		x.tx.saw(p.lastWrite)
		ends := x.reader()
		if t := x.c.tables[p.number]; t != nil {
			ends.Add(&t.Table, x.tx.now)
		}
		end = x.read(ends)
		return true
	})
	if end {
		x.partition, x.at = x.partition+1, EndPlace{}
	}
	return x.partition == len(x.tx.ks.partitions)
}

// read reads a slice. end says that nothing follows.
func (x *endsReader) read(ends *memtable.Ends) (end bool) {
	policy := x.c.Policy()
	size := x.size
	x.size = nextSlice(size)
	var t *memtable.Table
	var e *memtable.Entry
	var at int64
	defer func() {
		if e != nil {
			x.at = EndPlace{at, t.ID(e), true}
		}
	}()
	for range size {
		if !ends.Ready(orderedAtOnce) {
			x.ordered = ends.Looked()
			return false
		}
		if first, ok := ends.End(); !ok || first > x.r.High {
			return true
		}
		t, e, at = ends.Next()
		switch {
		case e.Plain() || e.Dead(policy, x.tx.now):
		case x.r.Count:
			x.counted++
		default:
			x.items = append(x.items, Selected{ID: t.ID(e), Item: t.Item(e)})
			x.ends = append(x.ends, at)
		}
	}
	return false
}
