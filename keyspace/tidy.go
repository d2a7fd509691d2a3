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

// cleanedAtOnce is how many bytes of a segment are cleaned while a partition is locked: some microseconds' worth,
// and more than a write makes necessary.
const cleanedAtOnce = 8 << 10

// clean empties a part of a segment of the arena. If that fails inside, some texts are where nobody finds them, and
// the partition may stay locked for ever: the process ends.
func (t *table) clean() {
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
	before := t.arena.dead
	t.arena.clean(&t.slab, cleanedAtOnce)
	t.countGarbage(before)
}

// countGarbage tells the partition how much more there is than before. What belongs to a table that is gone
// is none of its.
func (t *table) countGarbage(before int64) {
	if !t.gone {
		t.p.garbage.Add(t.arena.dead - before)
	}
}

// tidy cleans the arenas of tables in which too much is dead, a little at a time. The lock must be held, and
// no transaction may have changes in the partition that can be rolled back: of what it has overwritten the
// arena knows that it lives, but no entry refers to it.
func (p *partition) tidy() {
	for cleaned := false; len(p.untidy) > 0; {
		last := len(p.untidy) - 1
		t := p.untidy[last]
		switch {
		case t.gone || !t.arena.wasteful():
			t.untidy = false
			p.untidy[last] = nil
			p.untidy = p.untidy[:last]
		case cleaned:
			return
		default:
			t.clean()
			cleaned = true
		}
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
func (ks *Keyspace) Tidy() {
	for _, o := range ks.poolList.some(nil, 0, math.MaxInt) {
		for done, more := 0, true; more; {
			done, more = o.tidy(done)
			runtime.Gosched() // who waits for the lock comes first
		}
	}
}

// Tidy is [Keyspace.Tidy] if the transaction has locked nothing. Else it does nothing: who waits for one partition
// after the other while it holds some may wait for somebody who waits for it.
func (tx *Tx) Tidy() {
	if !tx.all && len(tx.locked) == 0 {
		tx.ks.Tidy()
	}
}

// tidy cleans a piece of a segment when so many have been cleaned, and tells how many are then, and whether there
// is more to be cleaned. When it is all there are that is enough, however much has died meanwhile: so there is an
// end.
func (o *pool) tidy(done int) (now int, more bool) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	const pieces = segmentSize / cleanedAtOnce // of a segment
	if t == nil || done >= pieces*len(t.arena.segments) || t.arena.dead <= t.arena.used/tidyDeadShare+deadSlack {
		return done, false
	}
	t.clean()
	return done + 1, true
}
