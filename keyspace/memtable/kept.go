package memtable

import (
	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

// Kept selects the entries that are dead and must stay in the table: those within the limits of the dead that
// are not purgeable, be it that only their elements are. nil selects none.
type Kept struct {
	Dead      expiry.Limits
	Purgeable expiry.Limits
}

// keeps reports whether an entry must stay.
func (t *Table) keeps(k *Kept, e *Entry) bool {
	switch {
	case k == nil || e.Within(k.Purgeable):
		return false
	case e.Within(k.Dead):
		return true
	}
	return t.IsHollow(e, k.Dead) && !t.IsHollow(e, k.Purgeable)
}

// tries is the number of draws for one entry that is not kept.
func (k *Kept) tries() int {
	if k == nil {
		return 1
	}
	return 16
}

// DeadStats returns the figures of the items within limits. It looks at few others.
func (t *Table) DeadStats(l expiry.Limits) (s Stats) {
	t.EachDead(l, func(e *Entry) {
		s.Items++
		bytes, memory := t.elsewhere(e)
		s.Bytes += t.size(e) + bytes
		s.Memory += e.Memory() + memory
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

// drawFirst is Draw for a table in which chance has found none but kept entries: it looks at all.
func (t *Table) drawFirst(by eviction.Policy, p *expiry.Policy, kept *Kept, n int, visit func(h Handle, e *Entry, end int64)) {
	t.Descend(0, func(_ uint64, e *Entry) (more bool) {
		end, dies := e.End(p)
		if !t.keeps(kept, e) && (dies || !by.Volatile()) {
			visit(t.Handle(e), e, end)
			n--
		}
		return n > 0
	})
}

// firstLiving returns how many items of a queue lie in buckets that end before a limit: few of them live.
func (q *expiryQueue) firstLiving(limit int64) (n int) {
	if len(q.order) == 0 {
		return 0
	}
	for _, s := range q.order[:q.bucketFor(limit)] {
		n += len(q.buckets[s.bucket].items)
	}
	return n
}
