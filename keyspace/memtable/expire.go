package memtable

import (
	"math"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

// queueFor returns the queue of items with such an end, nil for those that never die.
func (t *Table) queueFor(expireAt int64) *expiryQueue {
	switch expireAt {
	case expiry.Inherit:
		return &t.byDefault
	case expiry.Never:
		return nil
	}
	return &t.byOwnTTL
}

func (t *Table) queueOf(e *Entry) *expiryQueue { return t.queueFor(e.expireAt) }

func (t *Table) enqueue(e *Entry, h Handle) {
	if q := t.queueOf(e); q != nil {
		q.add(&t.slab, h, e)
	} else {
		e.queuePos = notQueued
	}
}

func (t *Table) dequeue(e *Entry) {
	if q := t.queueOf(e); q != nil {
		q.remove(&t.slab, e)
	}
}

// Sweep removes everything within limits. It calls removed for each entry, which must release it. It looks at few
// entries besides those.
func (t *Table) Sweep(l expiry.Limits, removed func(*Entry)) {
	for t.byDefault.due(l.ByDefault) {
		t.reap(&t.byDefault, l.ByDefault, math.MaxInt, removed)
	}
	for t.byOwnTTL.due(l.ByOwnTTL) {
		t.reap(&t.byOwnTTL, l.ByOwnTTL, math.MaxInt, removed)
	}
}

// Sample removes up to n of the items within limits; these count as the dead. It calls removed for each entry, which
// must release it. It looks at a few buckets at most and leaves the rest to the next call.
func (t *Table) Sample(l expiry.Limits, n int, removed func(*Entry)) (got expiry.Sample) {
	byDefault, byOwnTTL := l.ByDefault, l.ByOwnTTL
	got.All = t.byDefault.n + t.byOwnTTL.n
	got.Due = t.byDefault.estimateDue(byDefault) + t.byOwnTTL.estimateDue(byOwnTTL)
	first, second, limit, secondLimit := &t.byDefault, &t.byOwnTTL, byDefault, byOwnTTL
	if t.turn {
		first, second, limit, secondLimit = second, first, secondLimit, limit
	}
	t.turn = !t.turn // neither queue waits until the other has nothing left
	t.sampleQueue(first, limit, n, &got, removed)
	t.sampleQueue(second, secondLimit, n, &got, removed)
	got.More = t.byDefault.due(byDefault) || t.byOwnTTL.due(byOwnTTL)
	got.Due = max(got.Due, got.Dead)
	return got
}

func (t *Table) sampleQueue(q *expiryQueue, limit int64, n int, got *expiry.Sample, removed func(*Entry)) {
	for got.Dead < n && got.Drawn < bucketSize && q.due(limit) {
		drawn, dead := t.reap(q, limit, n-got.Dead, removed)
		got.Drawn += drawn
		got.Dead += dead
	}
}

func (t *Table) reap(q *expiryQueue, limit int64, n int, removed func(*Entry)) (looked, dead int) {
	return q.reap(&t.slab, limit, n, func(e *Entry) {
		t.Remove(e)
		removed(e)
	})
}

// EachDead visits the entries within limits. It looks at few others.
func (t *Table) EachDead(l expiry.Limits, visit func(*Entry)) {
	dead := func(limit int64) func(h Handle) {
		return func(h Handle) {
			if e := t.slab.at(h); e.moment() <= limit {
				visit(e)
			}
		}
	}
	t.byDefault.each(l.ByDefault, dead(l.ByDefault))
	t.byOwnTTL.each(l.ByOwnTTL, dead(l.ByOwnTTL))
}

// RandomLiving returns a random entry that is not dead at a moment in ms. There must be one.
func (t *Table) RandomLiving(p *expiry.Policy, now int64, intN func(n int) int) (living *Entry) {
	for range 100 {
		if _, e := t.Random(intN); !e.Dead(p, now) {
			return e
		}
	}
	t.Descend(0, func(_ uint64, e *Entry) (more bool) {
		living = e
		return e.Dead(p, now)
	})
	return living
}

// RandomExpiring returns a random entry of those that die under a policy and its handle, nil if there is none.
// intN returns a random number in [0,n).
func (t *Table) RandomExpiring(p *expiry.Policy, intN func(n int) int) (Handle, *Entry) {
	byDefault, byOwnTTL := t.expiring(p)
	if byDefault+byOwnTTL == 0 {
		return 0, nil
	}
	q := &t.byDefault
	if intN(byDefault+byOwnTTL) >= byDefault {
		q = &t.byOwnTTL
	}
	h := q.random(intN)
	return h, t.slab.at(h)
}

// NearestExpiring visits up to n entries of each kind that die under a policy: those without an end of their own,
// and those with one. They are drawn at random from the ones that die first, possibly more than once, but for kept
// ones. end is the moment in ms at which the entry dies. intN returns a random number in [0,n).
func (t *Table) NearestExpiring(p *expiry.Policy, kept *Kept, n int, intN func(n int) int, visit func(h Handle, e *Entry, end int64)) {
	byDefault, byOwnTTL := t.expiring(p)
	drawn := 0
	draw := func(q *expiryQueue, of int, dead func(*Kept) int64) {
		first, span := 0, bucketSize
		if kept != nil && of > 0 {
			first, span = q.firstLiving(dead(kept)), 2*bucketSize // the first of two buckets may be dead
		}
		for range min(n, of) {
			for range kept.tries() {
				h := q.at(first + intN(min(of-first, span)))
				e := t.slab.at(h)
				if end, ok := e.End(p); ok && !kept.has(e) {
					visit(h, e, end)
					drawn++
					break
				}
			}
		}
	}
	draw(&t.byDefault, byDefault, func(k *Kept) int64 { return k.Dead.ByDefault })
	draw(&t.byOwnTTL, byOwnTTL, func(k *Kept) int64 { return k.Dead.ByOwnTTL })
	if drawn == 0 && kept != nil && byDefault+byOwnTTL > 0 {
		t.drawFirst(eviction.VolatileTTL, p, kept, n, visit)
	}
}

// expiring returns how many items of each kind die under a policy.
func (t *Table) expiring(p *expiry.Policy) (byDefault, byOwnTTL int) {
	d, o := p.Expires()
	if d {
		byDefault = t.byDefault.n
	}
	if o {
		byOwnTTL = t.byOwnTTL.n
	}
	return byDefault, byOwnTTL
}
