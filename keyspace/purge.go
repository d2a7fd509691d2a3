package keyspace

import (
	"sync"

	"mayfly/expiry"
)

// pool is what the active purge draws samples from: a table, a container's part in a partition.
type pool struct {
	ks    *Keyspace
	p     *partition
	c     *Container // changed under the lock of p
	place int        // in the list of pools; protected by its mutex
}

// Sample removes up to n of the items that are dead. It holds the partition's lock for that long.
func (o *pool) Sample(n int) expiry.Sample {
	o.p.mu.Lock()
	defer o.p.mu.Unlock()
	t := o.c.tables[o.p.number]
	if t == nil {
		return expiry.Sample{}
	}
	defer o.p.tidy()
	now := o.ks.Now()
	return t.sample(o.c.Policy(), now, n, func(e *entry) {
		o.ks.bury(o.p, o.c, e, now)
		o.p.forget(t, e)
	})
}

// bury lets go of an entry that has been taken out of its table because it is dead now (ms): the one
// place where that happens, once a death, but for what a transaction is not certain of (see Tx.bury). The
// entry is still to be forgotten.
func (ks *Keyspace) bury(p *partition, c *Container, e *entry, now int64) {
	if ks.opt.OnDeath != nil {
		ks.opt.OnDeath(c, c.tables[p.number].id(e), max(e.ticket, ks.catalogue.ticket, ks.promised(now)))
	}
}

// poolList has the pools of all tables, so that whoever looks for what is dead or dying need not go
// through containers that hold nothing. Safe for concurrent use; its mutex is held for moments, by
// whoever else may hold the lock of a partition.
type poolList struct {
	mu   sync.Mutex // protects list
	list []*pool    // in no particular order
}

func (l *poolList) add(o *pool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	o.place = len(l.list)
	l.list = append(l.list, o)
}

// remove: the last in the list takes its place.
func (l *poolList) remove(o *pool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := len(l.list) - 1
	l.list[o.place] = l.list[end]
	l.list[o.place].place = o.place
	l.list[end] = nil
	l.list = l.list[:end]
	if cap(l.list) > 1024 && end < cap(l.list)/4 {
		l.list = append(make([]*pool, 0, cap(l.list)/2), l.list...)
	}
}

// some appends to list up to n pools, from a place on that is counted round and round, each at most
// once.
func (l *poolList) some(list []*pool, from, n int) []*pool {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range min(n, len(l.list)) {
		list = append(list, l.list[(from+i)%len(l.list)])
	}
	return list
}

// pools gives the purge some of the pools.
func (ks *Keyspace) pools(from, n int) []expiry.Pool {
	some := ks.poolList.some(nil, from, n)
	list := make([]expiry.Pool, len(some))
	for i, o := range some {
		list[i] = o
	}
	return list
}

// openTable makes the table of a container in a partition, which is locked and has none yet.
func (ks *Keyspace) openTable(c *Container, p *partition) *table {
	t := newTable(c.number, p)
	t.pool = &pool{ks: ks, p: p, c: c}
	ks.poolList.add(t.pool)
	p.adopt(t)
	p.used.Add(tableOverhead)
	c.tables[p.number] = t
	return t
}

// PurgeOnce runs one slow cycle of the active purge; tests drive the purge with it.
func (ks *Keyspace) PurgeOnce() { ks.purge.Slow() }
