package keyspace

import (
	"math/rand/v2"

	"mayfly/expiry"
)

// sweep removes what is dead in a container's part of a partition and returns that part, nil if
// it is empty.
func (tx *Tx) sweep(p *partition, c *Container) *table {
	tx.saw(p.lastWrite)
	t := c.tables[p.number]
	if t == nil {
		return nil
	}
	removed := 0
	tx.noteDeaths(t, c.Policy())
	t.sweep(c.Policy(), tx.now, func(e *entry) {
		tx.bury(p, c, t, e)
		removed++
	})
	if removed > 0 {
		tx.ks.purge.CountLazy(removed)
	}
	return t
}

// wholly calls f with all partitions locked, after what is dead in a container has been removed. The
// removal, which may take long, is done with one partition locked at a time; what f then sees, and
// what it adds up, is the state of one moment.
func (tx *Tx) wholly(c *Container, f func()) {
	tx.eachPartition(func(p *partition) bool {
		tx.sweep(p, c)
		return true
	})
	for _, p := range tx.ks.partitions {
		if !tx.holds(p) {
			p.mu.Lock()
			defer p.mu.Unlock()
		}
	}
	for _, p := range tx.ks.partitions {
		tx.sweep(p, c) // again: the policy may have changed meanwhile
	}
	f()
}

// Count gives the exact number of living items. It takes constant time a partition unless items
// have died since the last count: then it takes as long as removing those.
func (tx *Tx) Count(c *Container) (n int) {
	tx.wholly(c, func() { n = c.count() })
	return n
}

// count is the number of items in memory. All partitions must be locked.
func (c *Container) count() (n int) {
	for _, t := range c.tables {
		if t != nil {
			n += t.count()
		}
	}
	return n
}

// ContainerStats are figures of one container.
type ContainerStats struct {
	Policy    expiry.Policy
	Created   int64 // ms; when the container was made or last emptied
	Documents int   // living items, exact
	Plain     int   // those of them that are plain keys
	InMemory  int   // items in memory when asked, those dead and not yet purged among them
	Bytes     int64 // of the ids and bodies of the living
	Memory    int64 // bytes that the living take in memory, an estimate; see [Keyspace.Used]
	Mortal    int   // living items with an end of their own
	Heirs     int   // living items that inherit the container's default
}

// Stats gives a container's figures as of one moment.
func (tx *Tx) Stats(c *Container) ContainerStats {
	var s ContainerStats
	tx.eachPartition(func(p *partition) bool { // before the dead are removed
		if t := c.tables[p.number]; t != nil {
			s.InMemory += t.count()
		}
		return true
	})
	tx.wholly(c, func() {
		s.Policy, s.Created = *c.Policy(), c.created
		for _, t := range c.tables {
			if t != nil {
				s.add(t)
			}
		}
	})
	return s
}

// Scan visits about count living items from a cursor on (0 starts) and returns the cursor to go on
// from, 0 at the end. Every item that lives throughout a whole scan is visited exactly once; one
// that comes after the scan has reached its partition is not visited, so that a scan always ends.
// id and item are safe to keep.
//
// A cursor is a sequence number of the roster times the number of partitions plus the partition:
// the scan goes through the partitions in order and through each roster from its newest to its
// oldest berth, next below that sequence number.
func (tx *Tx) Scan(c *Container, cursor uint64, count int, visit func(id string, it Item)) uint64 {
	partitions := uint64(len(tx.ks.partitions))
	number, below := int(cursor%partitions), cursor/partitions
	for ; number < len(tx.ks.partitions); number++ {
		next := uint64(0)
		tx.within(tx.ks.partitions[number], func(p *partition) bool {
			tx.saw(p.lastWrite)
			t := c.tables[p.number]
			if t == nil {
				return true
			}
			if below == 0 { // a partition is entered at its top
				below = t.roster.next
			}
			policy := c.Policy()
			for i := t.roster.before(below); i >= 0; i-- {
				h, seq := t.roster.at(i)
				if h == 0 {
					continue
				}
				e := t.slab.at(h)
				if e.dead(policy, tx.now) {
					continue
				}
				if count <= 0 {
					next = (seq+1)*partitions + uint64(number)
					return true
				}
				visit(t.id(e), t.item(e))
				count--
			}
			return true
		})
		if next != 0 {
			return next
		}
		below = 0
	}
	return 0
}

// Random gives a random living item; false if there is none.
func (tx *Tx) Random(c *Container) (id string, it Item, ok bool) {
	tx.wholly(c, func() {
		total := c.count()
		if total == 0 {
			return
		}
		rank := rand.IntN(total)
		for _, t := range c.tables {
			if t == nil {
				continue
			}
			if rank < t.count() {
				e := t.random()
				id, it, ok = t.id(e), t.item(e), true
				return
			}
			rank -= t.count()
		}
	})
	return id, it, ok
}

// random gives a random entry of a table that is not empty.
func (t *table) random() *entry {
	// Holes are never the majority for long: a few draws do. Otherwise the first entry after a random
	// berth is taken.
	n, start := t.roster.berths.n, 0
	for range 16 {
		start = rand.IntN(n)
		if h, _ := t.roster.at(start); h != 0 {
			return t.slab.at(h)
		}
	}
	for i := range n {
		if h, _ := t.roster.at((start + i) % n); h != 0 {
			return t.slab.at(h)
		}
	}
	panic("keyspace: a table that is not empty has no entries")
}
