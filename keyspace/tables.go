package keyspace

import (
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/tables"
)

type (
	table     = tables.Table[*Container]
	partition = tables.Partition[*Container]
	tableList = tables.List[*Container]
)

// host is the keyspace as a [tables.Host].
type host struct{ ks *Keyspace }

func (host) Tables(c *Container) tableList           { return c.tables }
func (host) Number(c *Container) uint32              { return c.number }
func (host) Indexes(c *Container) *index.Set         { return c.indexes.Load() }
func (host) Retention(c *Container) expiry.Retention { return c.retention }
func (host) Away(c *Container) bool                  { return c.isHidden() }
func (h host) Punctual(c *Container) bool            { return h.ks.punctual(c) }
func (h host) Keeps(c *Container, now int64) bool    { return h.ks.keeps(c, now) }
func (h host) Left()                                 { h.ks.evictor.Forget() }

func (host) Entries(c *Container) (count *atomic.Int64, log bool) {
	if log = c.isLog(); log && c.owner() != nil {
		count = &c.owner().deaths.length
	}
	return count, log
}

func (h host) Sample(t *table, n int) expiry.Sample {
	if !t.P.Mu.LockUnlessLong() {
		return expiry.Sample{Locked: true}
	}
	if t.Collections != nil && !t.Gone() {
		return h.ks.samplePages(t, n)
	}
	if t.C.logs() && !t.Gone() {
		return h.ks.sampleLogged(t, n)
	}
	defer t.P.Mu.Unlock()
	if t.Gone() {
		return expiry.Sample{}
	}
	defer t.P.Clean()
	now := h.ks.leasedNow()
	defer t.SetTimer(now)
	return t.Table.Sample(h.ks.purgeable(t.C, now), n, func(e *memtable.Entry) {
		locked{h.ks, t.P}.expire(t, e, now)
		t.Release(e)
	})
}
