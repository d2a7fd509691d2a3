package selection

import (
	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Source is a container within a transaction, as a [Reader] reads it. It has the locks.
type Source interface {
	Partitions() int
	PartitionOf(id string) int
	Now() int64 // ms; frozen

	// One calls f with a partition locked, and All with all of them. A partition that the transaction has
	// locked stays locked afterwards.
	One(partition int, f func())
	All(f func())

	// The rest is called by such an f only, for partitions that are locked.

	Policy() *expiry.Policy

	// Part returns the items of the container in a partition and their trees; nil if there are none.
	Part(partition int) (*memtable.Table, *index.Table)

	// Find returns the item of an id if it lives, and the number of items that it has removed because they
	// are dead.
	Find(id string) (it Item, ok bool, removed int)

	// Remove removes the purgeable of dead entries of a partition. RemoveSome removes up to a number of all
	// that are purgeable there, and reports how many and whether there are more.
	Remove(partition int, dead []*memtable.Entry)
	RemoveSome(partition, most int) (removed int, more bool)
}

// Reader reads the living items of a container in slices, and passes each to visit until that returns false.
// It removes the dead that it meets.
//
// Partitions are locked while a slice is gathered: one, or all where the order is that of the whole
// container. None is while visit runs, but those that the transaction has locked. visit must not keep the
// slice itself.
type Reader struct{ source Source }

// NewReader returns a reader of a container.
func NewReader(s Source) Reader { return Reader{s} }

// Scan reads all items. Those of a partition come from the newest to the oldest.
func (r Reader) Scan(visit func(s Slice) (more bool)) {
	r.scan(newScanReader(r.source.Partitions(), false), visit)
}

// ScanCount is Scan for documents that are counted and not read: a slice has no items.
func (r Reader) ScanCount(visit func(s Slice) (more bool)) {
	r.scan(newScanReader(r.source.Partitions(), true), visit)
}

// HashOrder is Scan in an order that survives restarts. It begins behind an id if goesOn is true. An item
// comes once at most, and once if it lives throughout.
func (r Reader) HashOrder(after string, goesOn bool, visit func(s Slice) (more bool)) {
	h := newHashReader(r.source.Partitions())
	if goesOn {
		h.GoOn(r.source.PartitionOf(after), after)
	}
	r.scan(h, visit)
}

// scan passes the slices of a reader to visit until visit returns false.
func (r Reader) scan(p partitionReader, visit func(s Slice) (more bool)) {
	var s Slice
	read := func() {
		number := p.Partition()
		t, _ := r.source.Part(number)
		s = p.Read(t, r.source.Policy(), r.source.Now())
		if dead := p.Dead(); len(dead) > 0 {
			r.source.Remove(number, dead)
		}
	}
	for more := true; more && !s.Last; {
		r.source.One(p.Partition(), read)
		more = p.Examined() == 0 || visit(s)
	}
}

// Index reads the items in the ranges of a plan from a place on. The items of an ordered plan come in its
// order, those of another by partition. An item comes once, unless its keys change meanwhile. The error is
// [ErrIndexGone] or [ErrLongRun].
func (r Reader) Index(p *Plan, from Place, visit func(s Slice, place func(i int) Place) (more bool)) error {
	x := newIndexReader(r.source, p, from)
	for {
		var err error
		dead := 0
		r.source.All(func() {
			err = x.Read()
			dead = r.remove(x.Dead())
		})
		if err != nil {
			return err
		}
		s := x.Slice()
		s.Dead = dead
		if x.Examined() > 0 && !visit(s, x.Place) || s.Last {
			return nil
		}
	}
}

// remove removes the purgeable of the dead that were met in an index. It returns how many the dead are. All
// partitions must be locked.
func (r Reader) remove(dead []deadEntry) (n int) {
	one := make([]*memtable.Entry, 1)
	for _, d := range dead {
		if d.Entry.Present() { // an item may have several entries
			one[0] = d.Entry
			r.source.Remove(d.Partition, one)
			n++
		}
	}
	return n
}

// Ends reads the documents that die in a range of moments, in the order of their ends and of ids, from a
// place on. It reads the queues of the purge, so a changed default costs nothing. It removes the purgeable
// dead of the container first. A slice may be empty.
func (r Reader) Ends(of EndsRange, from EndPlace, visit func(s Slice, place func(i int) EndPlace) (more bool)) {
	x := newEndsReader(of, from)
	if !r.prepareEnds(x, func(dead int) bool { return visit(Slice{Dead: dead}, nil) }) {
		return
	}
	partitions, counted := r.source.Partitions(), 0
	for {
		var s Slice
		if of.Count { // one partition after the other: the order does not matter
			r.source.One(counted, func() { s = x.Read(r.ends(x, counted, counted+1), r.source.Policy(), r.source.Now()) })
			if s.Last {
				counted++
				x.Rewind()
			}
			s.Last = counted == partitions
		} else {
			r.source.All(func() { s = x.Read(r.ends(x, 0, partitions), r.source.Policy(), r.source.Now()) })
		}
		if !visit(s, x.Place) || s.Last {
			return
		}
	}
}

// prepareEnds removes the purgeable dead, and brings the queues into order where reading begins. It locks one
// partition at a time, for a few buckets. It tells visit how many items it has removed, and ends where visit
// returns false.
func (r Reader) prepareEnds(x *endsReader, visit func(dead int) (more bool)) (more bool) {
	for number := range r.source.Partitions() {
		for left := true; left; {
			removed := 0
			r.source.One(number, func() {
				if removed, left = r.source.RemoveSome(number, Entries/2); !left {
					left = !x.Prepare(r.ends(x, number, number+1))
				}
			})
			if removed > 0 && !visit(removed) {
				return false
			}
		}
	}
	return true
}

// ends returns the ends behind the place of a reader in some partitions, which must be locked.
func (r Reader) ends(x *endsReader, first, behind int) *memtable.Ends {
	ends := x.Ends(r.source.Policy())
	for number := first; number < behind; number++ {
		if t, _ := r.source.Part(number); t != nil {
			ends.Add(t, r.source.Now())
		}
	}
	return ends
}

// Page visits about count items from a cursor on and returns the next cursor. 0 begins and ends a scan. It
// visits every item that lives throughout a whole scan exactly once. It does not visit items that are created
// after the scan has reached their partition, so a scan always ends. It leaves the dead. visit runs while a
// partition is locked; id and item are safe to keep.
//
// A cursor is a sequence number of the insertion order times the number of partitions, plus the partition.
// The scan goes through the partitions in order, and through the items of each from the newest to the oldest.
func (r Reader) Page(cursor uint64, count int, visit func(id string, it record.Item)) (next uint64) {
	partitions, now := uint64(r.source.Partitions()), r.source.Now()
	below := cursor / partitions
	for number := cursor % partitions; number < partitions && next == 0; number++ {
		r.source.One(int(number), func() {
			t, _ := r.source.Part(int(number))
			if t == nil {
				return
			}
			policy := r.source.Policy()
			t.Descend(below, func(seq uint64, e *memtable.Entry) (more bool) {
				if e.Dead(policy, now) {
					return true
				}
				if count <= 0 {
					next = (seq+1)*partitions + number
					return false
				}
				visit(t.ID(e), t.Item(e))
				count--
				return true
			})
		})
		below = 0 // the next partition begins with its newest item
	}
	return next
}

// IDs reads the items of some ids, in their order.
func (r Reader) IDs(ids []string, visit func(s Slice) (more bool)) {
	for more := true; more && len(ids) > 0; {
		some := ids[:min(len(ids), Entries)]
		ids = ids[len(some):]
		s := Slice{Last: len(ids) == 0}
		gather := func() {
			for _, id := range some {
				it, ok, removed := r.source.Find(id)
				if ok {
					s.Items = append(s.Items, it)
				}
				s.Dead += removed
			}
		}
		if len(some) == 1 {
			r.source.One(r.source.PartitionOf(some[0]), gather)
		} else {
			r.source.All(gather)
		}
		more = visit(s)
	}
}
