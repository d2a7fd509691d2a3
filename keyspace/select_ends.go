package keyspace

import (
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/selection"
)

// SelectEnds passes the living documents that die in a range of moments to visit in slices, in the order of their ends
// and of ids, from a place on, until visit returns false. It removes the purgeable dead of the container first. It reads
// the queues of the purge, so a changed default costs nothing.
//
// All partitions are locked while a slice is gathered, and no partition is while visit runs, but those that the
// transaction has locked. A slice may be empty.
func (tx *Tx) SelectEnds(c *Container, r EndsRange, from EndPlace, visit func(s Slice, place func(i int) EndPlace) (more bool)) {
	x := endsReader{EndsReader: selection.NewEndsReader(r, from), tx: tx, c: c}
	if dead := x.prepare(); dead > 0 && !visit(Slice{Dead: dead}, nil) {
		return
	}
	for {
		var s Slice
		if r.Count {
			s = x.count()
		} else {
			tx.withinAll(func() { s = x.read(tx.ks.partitions) })
		}
		if !visit(s, x.Place) || s.Last {
			return
		}
	}
}

// endsReader is the state of SelectEnds.
type endsReader struct {
	*selection.EndsReader
	tx        *Tx
	c         *Container
	partition int // that is counted
}

// prepare removes the purgeable dead, and brings the queues into order where reading begins. It locks one partition at a
// time, for a few buckets. It returns the number of removed items.
func (x *endsReader) prepare() (dead int) {
	for _, p := range x.tx.ks.partitions {
		for more := true; more; {
			x.tx.within(p, func(p *partition) bool {
				t := x.c.tables[p.number]
				if more = false; t == nil {
					return true
				}
				more = t.RemoveDead(x.tx.ks.purgeable(x.c, x.tx.now), selection.Entries/2, func(e *memtable.Entry) {
					x.tx.removeDead(t, []*memtable.Entry{e})
					dead++
				})
				if !more {
					ends := x.Ends(x.c.Policy())
					ends.Add(&t.Table, x.tx.now)
					more = !x.Prepare(ends)
				}
				return true
			})
		}
	}
	return dead
}

// count reads a slice of documents that are counted, of one partition. Their order does not matter.
func (x *endsReader) count() (s Slice) {
	at := x.tx.ks.partitions[x.partition:]
	x.tx.within(at[0], func(*partition) bool {
		s = x.read(at[:1])
		return true
	})
	if s.Last {
		x.partition++
		x.Rewind()
	}
	s.Last = x.partition == len(x.tx.ks.partitions)
	return s
}

// read reads a slice of partitions, which are locked.
func (x *endsReader) read(partitions []*partition) Slice {
	ends := x.Ends(x.c.Policy())
	for _, p := range partitions {
		x.tx.saw(p.lastWrite)
		if t := x.c.tables[p.number]; t != nil {
			ends.Add(&t.Table, x.tx.now)
		}
	}
	return x.Read(ends, x.c.Policy(), x.tx.now)
}
