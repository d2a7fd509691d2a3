package keyspace

import (
	"math/rand/v2"
	"slices"

	"mayfly/keyspace/memtable"
)

// sweep removes the purgeable dead of a container in a partition and returns its table, nil if there is none.
func (tx *Tx) sweep(p *partition, c *Container) *table {
	tx.saw(p.LastWrite)
	t := c.tables[p.Number]
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

// withWhole removes the dead of a container and calls f with all partitions locked. The removal may take long
// and locks one partition at a time. f sees the state of one moment.
func (tx *Tx) withWhole(c *Container, f func(c whole)) {
	tx.eachPartition(func(p *partition) (more bool) {
		tx.sweep(p, c)
		return true
	})
	for _, p := range tx.ks.partitions {
		if !tx.held.Has(p.Number) {
			p.Mu.Lock()
			defer p.Mu.Unlock()
		}
	}
	for _, p := range tx.ks.partitions {
		tx.sweep(p, c) // again: the policy may have changed meanwhile
	}
	f(whole{c})
}

// Count returns the exact number of living items. It takes constant time per partition, and the time to
// remove the dead or to count those that stay.
func (tx *Tx) Count(c *Container) (n int) {
	tx.withWhole(c, func(c whole) { n = c.living(tx.now) })
	return n
}

// living returns the number of living items of a container that was swept.
func (c whole) living(now int64) (n int) {
	for t := range c.each {
		n += t.Living(now)
	}
	return n
}

// Scan visits about count living items from a cursor on and returns the next cursor; see
// [selection.Reader.Page].
func (tx *Tx) Scan(c *Container, cursor uint64, count int, visit func(id string, it Item)) uint64 {
	return tx.Reader(c).Page(cursor, count, func(id string, it Item) {
		if it.Kind.IsCollection() {
			t := c.tables[tx.ks.partitionOf(id).Number] // it is locked
			if e := t.Find(id); e != nil && t.IsHollow(e, c.Policy().DeadLimits(tx.now)) {
				return
			}
		}
		visit(id, it)
	})
}

// Random returns a random living item, false if there is none.
func (tx *Tx) Random(c *Container) (id string, it Item, ok bool) {
	tx.withWhole(c, func(c whole) {
		total := c.living(tx.now)
		if total == 0 {
			return
		}
		at := rand.IntN(total)
		for t := range c.each {
			if living := t.Living(tx.now); at >= living {
				at -= living
				continue
			}
			hollow := t.Hollow(c.Policy().DeadLimits(tx.now))
			e := t.RandomLiving(c.Policy(), tx.now, rand.IntN, func(e *memtable.Entry) bool { return slices.Contains(hollow, e) })
			id, it, ok = t.ID(e), t.Item(e), true
			return
		}
	})
	return id, it, ok
}
