package memtable

import (
	"math"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

// queues reports in which queues items with an expireAt are.
func queues(expireAt int64) (byDefault, byOwnTTL bool) {
	return expireAt <= expiry.Inherit && expireAt != expiry.Never, expireAt != expiry.Inherit && expireAt != expiry.Never
}

func (t *Table) enqueue(e *Entry, h Handle) {
	e.queuePos = notQueued
	byDefault, byOwnTTL := queues(e.expireAt)
	if byDefault {
		t.byDefault.add(&t.slab, h, e)
	}
	if byOwnTTL {
		t.byOwnTTL.add(&t.slab, h, e)
	}
	if byDefault && byOwnTTL {
		t.capped++
	}
}

func (t *Table) dequeue(e *Entry, h Handle) {
	byDefault, byOwnTTL := queues(e.expireAt)
	if byDefault {
		t.byDefault.remove(&t.slab, h, e)
	}
	if byOwnTTL {
		t.byOwnTTL.remove(&t.slab, h, e)
	}
	if byDefault && byOwnTTL {
		t.capped--
	}
}

// requeue brings a queued entry whose moments were others before to its places. Its queues are the same.
func (t *Table) requeue(e *Entry, h Handle, byDefaultWas, byOwnTTLWas int64) {
	byDefault, byOwnTTL := queues(e.expireAt)
	if q := &t.byDefault; byDefault && !q.stays(&t.slab, h, e, byDefaultWas) {
		q.remove(&t.slab, h, e)
		q.add(&t.slab, h, e)
	}
	if q := &t.byOwnTTL; byOwnTTL && !q.stays(&t.slab, h, e, byOwnTTLWas) {
		q.remove(&t.slab, h, e)
		q.add(&t.slab, h, e)
	}
}

// Sweep removes everything within limits. It calls removed for each entry, which must release it. It looks at
// few entries besides those.
func (t *Table) Sweep(l expiry.Limits, removed func(*Entry)) {
	for t.byDefault.due(l.ByDefault) {
		t.reap(&t.byDefault, l.ByDefault, math.MaxInt, removed)
	}
	for t.byOwnTTL.due(l.ByOwnTTL) {
		t.reap(&t.byOwnTTL, l.ByOwnTTL, math.MaxInt, removed)
	}
}

// Sample removes up to n of the items within limits; these count as the dead. It calls removed for each
// entry, which must release it. It looks at a few buckets at most and leaves the rest to the next call.
func (t *Table) Sample(l expiry.Limits, n int, removed func(*Entry)) (got expiry.Sample) {
	byDefault, byOwnTTL := l.ByDefault, l.ByOwnTTL
	got.All = t.byDefault.n + t.byOwnTTL.n - t.capped
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
	t.byDefault.each(l.ByDefault, func(h Handle) {
		if e := t.slab.at(h); e.ts <= l.ByDefault {
			visit(e)
		}
	})
	t.byOwnTTL.each(l.ByOwnTTL, func(h Handle) {
		if e := t.slab.at(h); t.byOwnTTL.moment(e) <= l.ByOwnTTL && !(e.capped() && e.ts <= l.ByDefault) {
			visit(e)
		}
	})
}

// RandomLiving returns a random entry that is neither dead at a moment in ms nor left out. There must be one.
func (t *Table) RandomLiving(p *expiry.Policy, now int64, intN func(n int) int, leftOut func(*Entry) bool) (living *Entry) {
	for range 100 {
		if _, e := t.Random(intN); !e.Dead(p, now) && !leftOut(e) {
			return e
		}
	}
	t.Descend(0, func(_ uint64, e *Entry) (more bool) {
		living = e
		return e.Dead(p, now) || leftOut(e)
	})
	return living
}

// RandomExpiring returns a random entry of those that die under a policy and its handle, nil if there is
// none. intN returns a random number in [0,n).
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

// NearestExpiring visits up to n entries of each kind that die under a policy: by the container's default,
// and by an end of their own. They are drawn at random from the ones that die first, possibly more than once,
// but for kept ones. end is the moment in ms at which the entry dies. intN returns a random number in [0,n).
func (t *Table) NearestExpiring(p *expiry.Policy, kept *Kept, n int, intN func(n int) int, visit func(h Handle, e *Entry, end int64)) {
	byDefault, byOwnTTL := p.Expires()
	drawn := 0
	draw := func(q *expiryQueue, die bool, dead func(*Kept) int64) {
		first, span, of := 0, bucketSize, q.n
		if !die {
			of = 0
		}
		if kept != nil && of > 0 {
			first, span = q.firstLiving(dead(kept)), 2*bucketSize // the first of two buckets may be dead
		}
		for range min(n, of) {
			for range kept.tries() {
				h := q.at(first + intN(min(of-first, span)))
				e := t.slab.at(h)
				if end, ok := e.End(p); ok && !t.keeps(kept, e) {
					visit(h, e, end)
					drawn++
					break
				}
			}
		}
	}
	draw(&t.byDefault, byDefault, func(k *Kept) int64 { return k.Dead.ByDefault })
	draw(&t.byOwnTTL, byOwnTTL, func(k *Kept) int64 { return k.Dead.ByOwnTTL })
	if drawn == 0 && kept != nil && t.Evictable(eviction.VolatileTTL, p) > 0 {
		t.drawFirst(eviction.VolatileTTL, p, kept, n, visit)
	}
}

// expiring returns how many items of each kind die under a policy. Those with a cap, which die if any do,
// count as ones with an end of their own.
func (t *Table) expiring(p *expiry.Policy) (byDefault, byOwnTTL int) {
	d, o := p.Expires()
	if d {
		byDefault = t.byDefault.n - t.capped
	}
	if o {
		byOwnTTL = t.byOwnTTL.n
	}
	return byDefault, byOwnTTL
}
