package keyspace

import (
	"sync"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// table holds the items of one container in one partition. It is a pool of the active purge. The partition's
// lock protects it.
type table struct {
	memtable.Table
	ks      *Keyspace
	p       *partition
	c       *Container
	listPos int // in the list of tables, whose mutex protects it
}

// openTableLocked makes the table of a container in a partition that has none yet. p.mu must be held.
func (ks *Keyspace) openTableLocked(c *Container, p *partition) *table {
	t := &table{ks: ks, p: p, c: c}
	t.Init(&p.shard, c.number)
	ks.tables.add(t)
	c.tables[p.number] = t
	return t
}

// attachLocked adds a detached table to its container and partition again. p.mu must be held.
func (t *table) attachLocked() {
	t.Attach()
	t.ks.tables.add(t)
	t.c.tables[t.p.number] = t
}

// detachLocked takes the table from its container and partition. p.mu must be held.
func (t *table) detachLocked() {
	t.Detach()
	t.ks.tables.remove(t)
	t.c.tables[t.p.number] = nil
}

// Sample removes up to n of the dead. It locks the partition for that long.
func (t *table) Sample(n int) expiry.Sample {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if t.Detached() {
		return expiry.Sample{}
	}
	defer t.p.cleanLocked()
	now := t.ks.Now()
	return t.Table.Sample(t.c.Policy(), now, n, func(e *memtable.Entry) {
		t.ks.expireLocked(t, e, now)
		t.p.releaseLocked(t, e)
	})
}

// tableList has all attached tables, so that the purge and eviction skip empty containers. Safe for concurrent use.
// Its mutex is held briefly and may be taken under any partition's lock.
type tableList struct {
	mu   sync.Mutex // protects list
	list []*table   // in no order
}

func (l *tableList) add(t *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.listPos = len(l.list)
	l.list = append(l.list, t)
}

// remove puts the last table in the place of the removed one.
func (l *tableList) remove(t *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := len(l.list) - 1
	l.list[t.listPos] = l.list[end]
	l.list[t.listPos].listPos = t.listPos
	l.list[end] = nil
	l.list = l.list[:end]
	if cap(l.list) > 1024 && end < cap(l.list)/4 {
		l.list = append(make([]*table, 0, cap(l.list)/2), l.list...)
	}
}

// some appends up to n tables to list, each at most once, from a position on that wraps around.
func (l *tableList) some(list []*table, from, n int) []*table {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range min(n, len(l.list)) {
		list = append(list, l.list[(from+i)%len(l.list)])
	}
	return list
}
