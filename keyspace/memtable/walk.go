package memtable

import "mayfly/expiry"

// Walk calls f for the entries in blocks of memory, from one block on, until about most places were passed.
// It returns the block that follows, and whether there is one. 0 is the first.
//
// An entry never moves. So a walk in pieces meets each item that is neither written nor removed meanwhile
// exactly once.
func (t *Table) Walk(from, most int, f func(e *Entry)) (next int, more bool) {
	blocks := t.slab.blocks
	for ; from < len(blocks) && most > 0; from++ {
		entries := blocks[from].entries
		for i := range entries {
			if entries[i].has(present) {
				f(&entries[i])
			}
		}
		most -= max(len(entries), 1)
	}
	return from, from < len(blocks)
}

// Size returns the bytes of an item's id and body, with those of its elements.
func (t *Table) Size(e *Entry) int64 {
	bytes, _ := t.elsewhere(e)
	return t.size(e) + bytes
}

// ExpireAt returns the item's expireAt; see package expiry.
func (e *Entry) ExpireAt() int64 { return e.expireAt }

// CountKilled counts the items that live by one policy and are dead by another at a moment in ms, up to a
// limit. It reads the expiry queues from the front, so it costs what dies, and what is dead already.
func (t *Table) CountKilled(by, next *expiry.Policy, now int64, limit int) (n int) {
	dead, killed := by.DeadLimits(now), next.DeadLimits(now)
	lives := func(e *Entry) bool { return !e.Within(dead) && !t.IsHollow(e, dead) }
	n = t.countBetween(&t.byDefault, dead.ByDefault, killed.ByDefault, limit, lives)
	return n + t.countBetween(&t.byOwnTTL, dead.ByOwnTTL, killed.ByOwnTTL, limit-n, func(e *Entry) bool {
		return lives(e) && !(e.capped() && e.ts <= killed.ByDefault) // else it is counted already
	})
}

// countBetween counts the items of a queue with a moment after one and up to another that also selects, up to
// a limit.
func (t *Table) countBetween(q *expiryQueue, after, to int64, limit int, also func(*Entry) bool) (n int) {
	if after >= to {
		return 0
	}
	for i := range q.order {
		if q.order[i].from > to {
			return n
		}
		for _, h := range q.buckets[q.order[i].bucket].items {
			if n >= limit {
				return n
			}
			e := t.slab.at(h)
			if moment := q.moment(e); moment > after && moment <= to && also(e) {
				n++
			}
		}
	}
	return n
}
