package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/indexing"
	"mayfly/keyspace/memtable"
)

// table holds the items of one container in one partition. It is a pool of the active purge. The partition's
// lock protects it.
type table struct {
	memtable.Table
	ks      *Keyspace
	p       *partition
	c       *Container
	place   int             // in the rotation of tables
	indexed *indexing.Table // nil without indexes
	dead    deadFigures
	part    *deathlog.Part // not nil: the table is of a log
	timer   *expiry.Timer  // nil if nobody needs its deaths to be punctual
}

// tables are those of a container by partition, nil where there were no items. Each is protected by its partition's lock.
type tables []*table

// each calls f for the tables that there are, until f returns false.
func (ts tables) each(f func(t *table) (more bool)) {
	for _, t := range ts {
		if t != nil && !f(t) {
			return
		}
	}
}

// hideLocked hides all tables. The locks of all partitions must be held.
func (ts tables) hideLocked() {
	for t := range ts.each {
		t.hideLocked()
	}
}

// showLocked ends hideLocked.
func (ts tables) showLocked() {
	for t := range ts.each {
		t.showLocked()
	}
}

// Place implements [rotation.Member].
func (t *table) Place() *int { return &t.place }

// openTableLocked makes the table of a container in a partition that has none yet. p.mu must be held.
func (ks *Keyspace) openTableLocked(c *Container, p *partition) *table {
	t := &table{ks: ks, p: p, c: c}
	if c.isLog() {
		t.InitLog(&p.shard, c.number)
	} else {
		t.Init(&p.shard, c.number)
	}
	ks.tables.Add(t)
	c.tables[p.number] = t
	if c.owner != nil {
		t.openPartLocked()
	}
	if set := c.indexes.Load(); set != nil {
		t.attachTreesLocked(set)
	}
	t.setTimerLocked(0)
	return t
}

// openPartLocked makes the part of a log over the table. p.mu must be held.
func (t *table) openPartLocked() {
	if t.c.isLog() {
		t.part = deathlog.NewPart(&t.Table, t.p.number, len(t.ks.partitions), &t.c.owner.deaths.length)
	}
}

// attachLocked adds a detached table to its container and partition again. p.mu must be held.
func (t *table) attachLocked() {
	t.Attach()
	t.indexed.Attach()
	t.ks.tables.Add(t)
	t.c.tables[t.p.number] = t
	t.setTimerLocked(0)
}

// detachLocked takes the table from its container and partition. p.mu must be held.
func (t *table) detachLocked() {
	t.Detach()
	t.stopTimerLocked()
	t.indexed.Detach()
	t.ks.tables.Remove(t)
	t.ks.evictor.Forget()
	t.c.tables[t.p.number] = nil
}

// gone reports whether the table has left its container since it was listed: it was detached or set aside. The lock of its
// partition must be held.
func (t *table) gone() bool {
	return t.Detached() || t.c.aside != nil || t.c.owner != nil && t.c.owner.aside != nil
}

// hideLocked keeps the table of a container that is set aside from the purge, eviction and figures. It stays in its
// partition. p.mu must be held.
func (t *table) hideLocked() {
	t.stopTimerLocked()
	t.indexed.Detach()
	t.ks.tables.Remove(t)
	t.ks.evictor.Forget()
}

// showLocked ends hideLocked. p.mu must be held.
func (t *table) showLocked() {
	t.indexed.Attach()
	t.ks.tables.Add(t)
	t.setTimerLocked(0)
}

// Sample removes up to n of the purgeable dead. It locks the partition for that long.
func (t *table) Sample(n int) expiry.Sample {
	t.p.mu.Lock()
	if t.c.logs() && !t.gone() {
		return t.sampleLogged(n)
	}
	defer t.p.mu.Unlock()
	if t.gone() {
		return expiry.Sample{}
	}
	defer t.p.cleanLocked()
	now := t.ks.leasedNow()
	defer t.setTimerLocked(now)
	return t.Table.Sample(t.ks.purgeable(t.c, now), n, func(e *memtable.Entry) {
		t.ks.expireLocked(t, e, now)
		t.Release(e)
	})
}
