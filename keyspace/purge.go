package keyspace

import (
	"iter"
	"slices"

	"mayfly/expiry"
)

// pool is what the active purge draws samples from: a container's part in a partition.
type pool struct {
	ks *Keyspace
	p  *partition
	c  *Container
}

// Sample draws n of the items that could be dead, spread over all of them, and removes those that
// are. It holds the partition's lock for that long.
func (o pool) Sample(n int) (drawn, dead int) {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	if t == nil {
		return 0, 0
	}
	now := o.ks.Now()
	return t.sample(o.c.Policy(), now, n, func(e *entry) { o.ks.bury(o.p, o.c, e, now) })
}

// bury lets go of an entry that has been taken out of its table because it is dead now (ms): the one
// place where that happens, once a death.
func (ks *Keyspace) bury(p *partition, c *Container, e *entry, now int64) {
	if ks.opt.OnDeath != nil {
		ks.opt.OnDeath(c, e.key[c.tables[p.number].prefix:], max(e.ticket, ks.catalogue.ticket, ks.promised(now)))
	}
	p.forget(e)
}

// poolList remembers the pools for as long as the containers stay the same. Only the purge, which
// asks for them in one cycle at a time, touches it.
type poolList struct {
	pools []expiry.Pool
	asOf  uint64 // catalogue.changes
}

// pools lists all pools, each partition's share of each container.
func (ks *Keyspace) pools() []expiry.Pool {
	p := ks.partitions[0] // any partition's lock is good for reading the catalogue
	p.mu.Lock()
	defer p.mu.Unlock()
	l, cat := &ks.poolList, &ks.catalogue
	if l.pools != nil && l.asOf == cat.changes {
		return l.pools
	}
	l.asOf = cat.changes
	l.pools = make([]expiry.Pool, 0, len(cat.byName)*len(ks.partitions))
	for o := range ks.eachPool() {
		l.pools = append(l.pools, o)
	}
	return l.pools
}

// allPools is a list of all pools.
func (ks *Keyspace) allPools() []pool {
	p := ks.partitions[0]
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Collect(ks.eachPool())
}

// eachPool goes through all pools. Some partition's lock must be held.
func (ks *Keyspace) eachPool() iter.Seq[pool] {
	return func(yield func(pool) bool) {
		for _, c := range ks.catalogue.byName {
			for _, p := range ks.partitions {
				if !yield(pool{ks, p, c}) {
					return
				}
			}
		}
	}
}

// PurgeOnce runs one slow cycle of the active purge; tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() { ks.purge.Slow() }
