package keyspace

import "mayfly/keyspace/elements"

// Sorted returns the elements of a sorted set in their order. They are those of now: a change of the set may or may
// not show.
func (h *Elements) Sorted() elements.Living {
	if h.c == nil {
		return elements.LivingOf(elements.OrderOf(h.body), func(func(Element)) {})
	}
	return elements.LivingOf(h.c.Order, func(visit func(Element)) { h.cs.EachDead(h.c, h.limit, visit) })
}
