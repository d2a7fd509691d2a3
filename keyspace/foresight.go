package keyspace

import (
	"math"

	"mayfly/expiry"
	"mayfly/keyspace/foresight"
)

// Tally passes the items of a container to a tally in pieces, until goesOn returns false. An item that is
// neither written nor removed meanwhile counts once. All are judged by the policy that the container has at
// the beginning, whose etag it returns. A partition is locked for each piece. goesOn is called without a
// lock, but for those of the transaction.
func (tx *Tx) Tally(c *Container, tally foresight.Tally, goesOn func(entries int) bool) (etag uint64) {
	var walks foresight.Walks
	tx.withinAll(func() { // items may go to another container meanwhile, but not to another table
		for t := range c.each {
			walks.Add(t.P.Number, &t.Table)
		}
		tally.Under(c.Policy())
		etag = c.Etag()
		tx.saw(tx.ks.catalogue.lsn)
	})
	walks.Run(tally, tx.piece, goesOn)
	return etag
}

// TallyAll is [Tx.Tally] for all containers, each judged by its own policy. Empty ones cost nothing.
func (tx *Tx) TallyAll(tally foresight.Tally, goesOn func(entries int) bool) {
	var walks foresight.Walks
	tables, policies := make([][]*table, len(tx.ks.partitions)), make(map[*Container]*expiry.Policy)
	for _, t := range tx.ks.tables.Some(nil, 0, math.MaxInt) {
		if t.C.hidden != nil || t.Collections != nil {
			continue
		}
		walks.Add(t.P.Number, &t.Table)
		tables[t.P.Number] = append(tables[t.P.Number], t)
	}
	walks.Before = func(partition, at int) {
		t := tables[partition][at]
		if policies[t.C] == nil {
			policies[t.C] = t.C.Policy()
		}
		tally.Under(policies[t.C])
	}
	walks.Run(tally, tx.piece, goesOn)
}

func (tx *Tx) piece(number int, f func()) {
	tx.within(tx.ks.partitions[number], func(p *partition) bool { tx.saw(p.LastWrite); f(); return true })
}

// CountKills counts the living items of a container that another policy would kill at once, up to a limit. It
// takes time in proportion to what it counts, and to the dead that are not removed yet, elements among them.
// It needs BeginAll.
func (tx *Tx) CountKills(c *Container, next expiry.Policy, limit int) (n int) {
	dead, killed := c.Policy().DeadLimits(tx.now), next.DeadLimits(tx.now)
	for t := range c.each {
		n += t.CountKilled(c.Policy(), &next, tx.now, limit-n)
		for _, e := range t.Hollow(killed) {
			if n < limit && !e.Within(dead) && !t.IsHollow(e, dead) {
				n++
			}
		}
	}
	return n
}
