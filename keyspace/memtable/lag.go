package memtable

import "mayfly/expiry"

// FirstDead visits the entries within limits that have died first: of those that inherit the container's
// default, and of those with an end of their own. It looks at few others.
func (t *Table) FirstDead(l expiry.Limits, visit func(*Entry)) {
	t.byDefault.visitFirst(&t.slab, l.ByDefault, visit)
	t.byOwnTTL.visitFirst(&t.slab, l.ByOwnTTL, visit)
}

func (q *expiryQueue) visitFirst(s *slab, limit int64, visit func(*Entry)) {
	var first *Entry
	for i := 0; i < len(q.order) && q.order[i].from <= limit && (i > 0 || q.due(limit)); i++ {
		for _, h := range q.buckets[q.order[i].bucket].items {
			if e := s.at(h); q.moment(e) <= limit {
				first, limit = e, q.moment(e)-1
			}
		}
	}
	if first != nil {
		visit(first)
	}
}
