package keyspace

import "mayfly/keyspace/selection"

// SelectIDs passes the living items of some ids to visit in slices, in the order of ids, until visit returns false. It
// removes the dead that it meets.
//
// The partitions of a slice's ids are locked while it is gathered, and no partition is while visit runs, but those that
// the transaction has locked.
func (tx *Tx) SelectIDs(c *Container, ids []string, visit func(s Slice) (more bool)) {
	for len(ids) > 0 {
		some := ids[:min(len(ids), selection.Entries)]
		ids = ids[len(some):]
		s := tx.gatherIDs(c, some)
		if s.Last = len(ids) == 0; !visit(s) {
			return
		}
	}
}

// gatherIDs returns the items of some ids at one moment.
func (tx *Tx) gatherIDs(c *Container, ids []string) (s Slice) {
	wanted := make([]bool, len(tx.ks.partitions))
	for _, id := range ids {
		wanted[tx.ks.partitionOf(id).number] = true
	}
	for _, p := range tx.ks.partitions {
		if wanted[p.number] && !tx.holds(p) {
			p.mu.Lock()
			defer p.mu.Unlock()
			defer p.cleanLocked()
		}
	}
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
		} else {
			s.Dead += there - t.Len()
		}
	}
	return s
}
