package keyspace

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"mayfly/expiry"
)

// Used is how much memory the items take, in bytes: ids, values and what it takes to keep them. It
// is an estimate of our own, not the size of the process, which has garbage and buffers besides.
func (ks *Keyspace) Used() int64 {
	used := int64(0)
	for _, p := range ks.partitions {
		used += p.used.Load()
	}
	return used
}

// Eviction works in rounds. A round draws a small sample from every pool that has items with an end
// and deletes those nearest to their death: one of every evictionSample drawn, which is what Redis
// calls maxmemory-samples.
const evictionSample = 5

// doomed is an item that is to be evicted, as it was when drawn.
type doomed struct {
	p       *partition
	c       *Container
	id      string
	version uint64
	end     int64
}

// Evict deletes items that have an end, of those drawn the nearest to their death first
// (maxmemory-policy volatile-ttl), until no more than limit bytes are used. It calls gone for each,
// with the item's partition locked: that must return soon and not use the keyspace, and clone the id
// to keep it. ok tells whether it succeeded: not if what is left has no end. What it deletes is
// journalled as any delete is; the ticket covers it. No transaction may be open in the calling
// goroutine.
func (ks *Keyspace) Evict(limit int64, gone func(c *Container, id string)) (t Ticket, ok bool) {
	for ks.Used() > limit {
		batch := ks.drawDoomed()
		if len(batch) == 0 {
			return t, false
		}
		for _, d := range batch {
			if ks.Used() <= limit {
				break
			}
			t = max(t, ks.evict(d, gone))
		}
	}
	return t, true
}

// drawDoomed gives the nearest to their death of a sample of all pools, nearest first.
func (ks *Keyspace) drawDoomed() []doomed {
	var drawn []doomed
	for _, o := range ks.allPools() {
		drawn = o.draw(evictionSample, drawn)
	}
	slices.SortFunc(drawn, func(a, b doomed) int { return cmp.Compare(a.end, b.end) })
	return drawn[:(len(drawn)+evictionSample-1)/evictionSample]
}

// draw appends up to n random items that have an end.
func (o pool) draw(n int, drawn []doomed) []doomed {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	if t == nil {
		return drawn
	}
	policy := o.c.Policy()
	heirs, mortals := 0, 0
	if policy.Default > 0 {
		heirs = len(t.heirs.list)
	}
	if policy.Default != expiry.Off {
		mortals = len(t.mortals.list)
	}
	for range min(n, heirs+mortals) {
		list, at := t.heirs.list, rand.IntN(heirs+mortals)
		if at >= heirs {
			list, at = t.mortals.list, at-heirs
		}
		e := list[at].e
		if end, ok := policy.End(e.ts, e.own); ok {
			drawn = append(drawn, doomed{o.p, o.c, t.id(e), e.version, end})
		}
	}
	return drawn
}

// evict deletes an item if it is still the one that was drawn.
func (ks *Keyspace) evict(d doomed, gone func(c *Container, id string)) Ticket {
	var tx Tx
	ks.BeginKey(&tx, d.id)
	if it, ok := tx.Get(d.c, d.id); ok && it.Version == d.version && tx.Delete(d.c, d.id) {
		gone(d.c, d.id)
	}
	return tx.Close()
}
