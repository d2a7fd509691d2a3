package memtable

import (
	"math"

	"mayfly/expiry"
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

// Sweep removes everything that is dead at a moment in ms. It calls removed for each entry, which must release it. It
// looks at few entries besides the dead.
func (t *Table) Sweep(p *expiry.Policy, now int64, removed func(*Entry)) {
	byDefault, byOwnTTL := p.DeadTo(now)
	for t.byDefault.due(byDefault) {
		t.reap(&t.byDefault, byDefault, math.MaxInt, removed)
	}
	for t.byOwnTTL.due(byOwnTTL) {
		t.reap(&t.byOwnTTL, byOwnTTL, math.MaxInt, removed)
	}
}

// Sample removes up to n of the dead at a moment in ms. It calls removed for each entry, which must release it. It
// looks at a few buckets at most and leaves the rest to the next call.
func (t *Table) Sample(p *expiry.Policy, now int64, n int, removed func(*Entry)) (got expiry.Sample) {
	byDefault, byOwnTTL := p.DeadTo(now)
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

// EachDead visits the entries that are dead at a moment in ms. It looks at few others.
func (t *Table) EachDead(p *expiry.Policy, now int64, visit func(*Entry)) {
	byDefault, byOwnTTL := p.DeadTo(now)
	dead := func(limit int64) func(h Handle) {
		return func(h Handle) {
			if e := t.slab.at(h); e.moment() <= limit {
				visit(e)
			}
		}
	}
	t.byDefault.each(byDefault, dead(byDefault))
	t.byOwnTTL.each(byOwnTTL, dead(byOwnTTL))
}

// DeadStats returns the figures of the items that are dead at a moment in ms, without their memory. It looks at few
// others.
func (t *Table) DeadStats(p *expiry.Policy, now int64) (s Stats) {
	t.EachDead(p, now, func(e *Entry) {
		s.Items++
		s.Bytes += t.size(e)
		if e.has(plain) {
			s.Plain++
		}
		if e.expireAt == expiry.Inherit {
			s.ByDefault++
		} else {
			s.ByOwnTTL++
		}
	})
	return s
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
// and those with one. They are drawn at random from the ones that die first, possibly more than once. end is the
// moment in ms at which the entry dies. intN returns a random number in [0,n).
func (t *Table) NearestExpiring(p *expiry.Policy, n int, intN func(n int) int, visit func(h Handle, e *Entry, end int64)) {
	byDefault, byOwnTTL := t.expiring(p)
	draw := func(q *expiryQueue, of int) {
		for range min(n, of) {
			h := q.at(intN(min(of, bucketSize)))
			e := t.slab.at(h)
			if end, ok := e.End(p); ok {
				visit(h, e, end)
			}
		}
	}
	draw(&t.byDefault, byDefault)
	draw(&t.byOwnTTL, byOwnTTL)
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
