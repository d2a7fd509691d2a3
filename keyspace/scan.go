package keyspace

import (
	"math/rand/v2"

	"mayfly/keyspace/memtable"
)

// sweep removes the purgeable dead of a container in a partition and returns its table, nil if there is none.
func (tx *Tx) sweep(p *partition, c *Container) *table {
	tx.saw(p.lastWrite)
	t := c.tables[p.number]
	if t == nil {
		return nil
	}
	removed := 0
	purgeable := tx.ks.purgeable(c, tx.now)
	tx.noteDeaths(t, purgeable)
	t.Sweep(purgeable, func(e *memtable.Entry) {
		tx.expire(t, e)
		removed++
	})
	if removed > 0 {
		tx.ks.purge.CountLazy(removed)
	}
	return t
}

// withAllLocked removes the dead of a container and calls f with all partitions locked. The removal may take long
// and locks one partition at a time. f sees the state of one moment.
func (tx *Tx) withAllLocked(c *Container, f func()) {
	tx.eachPartition(func(p *partition) (more bool) {
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

// Count returns the exact number of living items. It takes constant time per partition, and the time to
// remove the dead or to count those that stay.
func (tx *Tx) Count(c *Container) (n int) {
	tx.withAllLocked(c, func() { n = tx.livingLocked(c) })
	return n
}

// livingLocked returns the number of living items of a container that was swept. The locks of all partitions must be
// held.
func (tx *Tx) livingLocked(c *Container) (n int) {
	for t := range c.each {
		n += t.living(tx.now)
	}
	return n
}

// Scan visits about count living items from a cursor on and returns the next cursor. 0 begins and ends a scan. It
// visits every item that lives throughout a whole scan exactly once. It does not visit items that are created
// after the scan has reached their partition, so a scan always ends. id and item are safe to keep.
//
// A cursor is a sequence number of the insertion order times the number of partitions, plus the partition. The
// scan goes through the partitions in order, and through the items of each from the newest to the oldest.
func (tx *Tx) Scan(c *Container, cursor uint64, count int, visit func(id string, it Item)) uint64 {
	partitions := uint64(len(tx.ks.partitions))
	number, below := int(cursor%partitions), cursor/partitions
	for ; number < len(tx.ks.partitions); number++ {
		next := uint64(0)
		tx.within(tx.ks.partitions[number], func(p *partition) (more bool) {
			tx.saw(p.lastWrite)
			t := c.tables[p.number]
			if t == nil {
				return true
			}
			policy := c.Policy()
			t.Descend(below, func(seq uint64, e *memtable.Entry) (more bool) {
				if e.Dead(policy, tx.now) {
					return true
				}
				if count <= 0 {
					next = (seq+1)*partitions + uint64(number)
					return false
				}
				visit(t.ID(e), t.Item(e))
				count--
				return true
			})
			return true
		})
		if next != 0 {
			return next
		}
		below = 0 // the next partition begins with its newest item
	}
	return 0
}

// Random returns a random living item, false if there is none.
func (tx *Tx) Random(c *Container) (id string, it Item, ok bool) {
	tx.withAllLocked(c, func() {
		total := tx.livingLocked(c)
		if total == 0 {
			return
		}
		at := rand.IntN(total)
		for t := range c.each {
			if living := t.living(tx.now); at >= living {
				at -= living
				continue
			}
			e := t.RandomLiving(c.Policy(), tx.now, rand.IntN)
			id, it, ok = t.ID(e), t.Item(e), true
			return
		}
	})
	return id, it, ok
}
