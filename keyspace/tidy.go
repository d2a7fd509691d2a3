package keyspace

import (
	"math"
	"runtime"
)

// drop lets go of a text, which nobody will ask for any more.
func (t *table) drop(text ref) {
	before := t.arena.dead
	t.arena.drop(text)
	t.countGarbage(before)
	if !t.untidy && t.arena.wasteful() {
		t.untidy = true
		t.p.untidy = append(t.p.untidy, t)
	}
}

// clean empties a segment of the arena.
func (t *table) clean() {
	before := t.arena.dead
	t.arena.clean(&t.slab)
	t.countGarbage(before)
}

// countGarbage tells the partition how much more there is than before. What belongs to a table that is gone
// is none of its.
func (t *table) countGarbage(before int64) {
	if !t.gone {
		t.p.garbage.Add(t.arena.dead - before)
	}
}

// mostCleaned is how many segments are cleaned while a partition is locked, so that nobody waits for long. As
// between two times no more is written or dropped than a segment holds, or a text of its own segment, that is
// enough.
const mostCleaned = 2

// tidy cleans the arenas of tables in which too much is dead, a little at a time. The lock must be held, and
// no transaction may have changes in the partition that can be rolled back: of what it has overwritten the
// arena knows that it lives, but no entry refers to it.
func (p *partition) tidy() {
	for left := mostCleaned; len(p.untidy) > 0; {
		last := len(p.untidy) - 1
		t := p.untidy[last]
		if t.gone || !t.arena.wasteful() {
			t.untidy = false
			p.untidy[last] = nil
			p.untidy = p.untidy[:last]
			continue
		}
		if left == 0 {
			return
		}
		left--
		t.clean()
	}
}

// Garbage is how many bytes of memory the items' former keys and values take, about: what of [Keyspace.Tidy]
// can be hoped for.
func (ks *Keyspace) Garbage() (n int64) {
	for _, p := range ks.partitions {
		n += p.garbage.Load()
	}
	return n
}

// tidyDeadShare is what Tidy leaves: one part in so many of an arena.
const tidyDeadShare = 32

// Tidy moves items closer together in memory than is worth while when much is written. It may take a second
// for some million items, but holds others up for moments only. It is safe for concurrent use.
func (ks *Keyspace) Tidy() { ks.tidy(new(Tx)) }

// Tidy is [Keyspace.Tidy], but for the partitions that the transaction has locked.
func (tx *Tx) Tidy() { tx.ks.tidy(tx) }

func (ks *Keyspace) tidy(tx *Tx) {
	for _, o := range ks.poolList.some(nil, 0, math.MaxInt) {
		for !tx.holds(o.p) && o.tidy() {
			runtime.Gosched() // who waits for the lock comes first
		}
	}
}

// tidy cleans a little, and tells whether there is more to be cleaned.
func (o *pool) tidy() (more bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	for left := mostCleaned; t != nil && t.arena.dead > t.arena.used/tidyDeadShare+deadSlack; left-- {
		if left == 0 {
			return true
		}
		t.clean()
	}
	return false
}
