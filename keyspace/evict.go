package keyspace

import (
	"cmp"
	"math/rand/v2"
	"slices"

	"mayfly/expiry"
)

// Used is how much memory the items take, in bytes: ids, values and what it takes to keep them, the
// containers among that. It
// is an estimate of our own, not the size of the process, which has garbage and buffers besides.
func (ks *Keyspace) Used() int64 {
	used := ks.catalogue.memory.Load()
	for _, p := range ks.partitions {
		used += p.used.Load()
	}
	return used
}

// Eviction works in rounds. A round draws a small sample from pools that have items with an end, of those
// nearest to their death in each, and
// deletes the nearest: one of every evictionSample drawn, which is what Redis calls
// maxmemory-samples. Where there are more pools than evictionPools the next round goes on with others;
// if that many are empty of what could be evicted, up to evictionRounds times.
const (
	evictionSample = 5
	evictionPools  = 1024
	evictionRounds = 16
)

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
// to keep it. ok tells whether it succeeded: not if what is left has no end, or if that was so wherever
// it looked. What it deletes is
// journalled as any delete is; the ticket covers it. No transaction may be open in the calling
// goroutine.
func (ks *Keyspace) Evict(limit int64, gone func(c *Container, id string)) (t LSN, ok bool) {
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

// drawDoomed gives the nearest to their death of a sample of the pools, nearest first.
func (ks *Keyspace) drawDoomed() []doomed {
	var drawn []doomed
	var pools []*pool
	for round := 0; round < evictionRounds && len(drawn) == 0; round++ {
		from := int(ks.evictAt.Add(evictionPools) - evictionPools)
		pools = ks.poolList.some(pools[:0], from, evictionPools)
		for _, o := range pools {
			drawn = o.draw(evictionSample, drawn)
		}
		if len(pools) < evictionPools {
			break // these are all
		}
	}
	slices.SortFunc(drawn, func(a, b doomed) int { return cmp.Compare(a.end, b.end) })
	return drawn[:(len(drawn)+evictionSample-1)/evictionSample]
}

// draw appends up to n items of each class that have an end, at random from those that die soonest.
func (o *pool) draw(n int, drawn []doomed) []doomed {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	if t == nil {
		return drawn
	}
	policy := o.c.Policy()
	from := func(c *class) {
		for range min(n, c.n) {
			e := t.slab.at(c.at(rand.IntN(min(c.n, bucketSize))))
			if end, ok := policy.End(e.ts, e.own); ok {
				drawn = append(drawn, doomed{o.p, o.c, t.id(e), e.version, end})
			}
		}
	}
	if policy.Default > 0 {
		from(&t.heirs)
	}
	if policy.Default != expiry.Off {
		from(&t.mortals)
	}
	return drawn
}

// evict deletes an item if it is still the one that was drawn.
func (ks *Keyspace) evict(d doomed, gone func(c *Container, id string)) LSN {
	var tx Tx
	ks.BeginKey(&tx, d.id)
	if it, ok := tx.Get(d.c, d.id); ok && it.Version == d.version && tx.Delete(d.c, d.id) {
		gone(d.c, d.id)
	}
	return tx.Close()
}
