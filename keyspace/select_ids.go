package keyspace

import "mayfly/keyspace/selection"

// SelectIDs passes the living items of some ids to visit in slices, in the order of ids, until visit returns false. It
// removes the dead that it meets. All partitions are locked while a slice is gathered, that of a single id alone.
func (tx *Tx) SelectIDs(c *Container, ids []string, visit func(s Slice) (more bool)) {
	for more := true; more && len(ids) > 0; {
		some := ids[:min(len(ids), selection.Entries)]
		ids = ids[len(some):]
		s := Slice{Last: len(ids) == 0}
		if len(some) == 1 {
			tx.within(tx.ks.partitionOf(some[0]), func(*partition) bool { tx.gatherLocked(c, some, &s); return true })
		} else {
			tx.withinAll(func() { tx.gatherLocked(c, some, &s) })
		}
		more = visit(s)
	}
}

// gatherLocked adds the living items of some ids to a slice. Their partitions must be locked.
func (tx *Tx) gatherLocked(c *Container, ids []string, s *Slice) {
	for _, id := range ids {
		p := tx.ks.partitionOf(id)
		t := c.tables[p.number]
		if t == nil {
			tx.saw(p.lastRemoval)
			continue
		}
		there := t.Len()
		if e := tx.find(p, c, id); e != nil {
			s.Items = append(s.Items, Selected{ID: t.ID(e), Item: t.Item(e)})
		}
		s.Dead += there - t.Len()
	}
}
