package keyspace

import (
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/record"
	"mayfly/keyspace/replica"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/store"
)

// Compaction says when a store is worth compacting.
type Compaction = store.Compaction

// DefaultCompaction applies until SetCompaction.
var DefaultCompaction = store.DefaultCompaction

// InTheWayError is the error of Backup for something at path.part that it must not take over.
type InTheWayError = datadir.InTheWayError

// ExistsError is the error of Backup for a path that exists: nothing was tried.
type ExistsError = datadir.ExistsError

// memory is the keyspace as a [storage.Memory].
type memory struct{ ks *Keyspace }

func (m memory) Clock() lease.Record { return m.ks.clockRecord(m.ks.lease.End()) }

func (m memory) Touch() error {
	p := m.ks.partitions[0]
	p.Mu.Lock() // so that the node begins to lead or to follow before or after
	defer p.Mu.Unlock()
	if m.ks.follows() {
		_, err := m.ks.journal.AppendReplicated(m.Clock(), replica.Tail{})
		return err
	}
	m.ks.journal.Append(m.Clock())
	return nil
}

func (m memory) Changes() (records []aof.Op, dropped []storage.Dropped) {
	ks, cat := m.ks, &m.ks.catalogue
	var tx Tx
	ks.lockAll(&tx)
	changed := cat.TakeChanged()
	gone := cat.dropped
	cat.dropped = nil
	clock, tail := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}, ks.tailOps()
	tx.Close()
	for _, t := range gone {
		dropped = append(dropped, storage.Dropped{Partition: t.P.Number, Table: &t.Table})
	}
	return append(append(tail, clock), changed.Ops(&ks.partitions[0].Mu)...), dropped
}

func (m memory) Records() []aof.Op {
	ks := m.ks
	var tx Tx
	ks.lockAll(&tx)
	all := ks.catalogue.Everything()
	clock, tail := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}, ks.tailOps()
	tx.Close()
	return append(append(tail, clock), all.Ops(&ks.partitions[0].Mu)...)
}

func (m memory) Purgeable() map[uint32]expiry.Limits {
	m.ks.EndWindows() // what has ended since the last second is gone
	p := m.ks.partitions[0]
	p.Mu.Lock()
	list := slices.Clone(m.ks.catalogue.List())
	list = slices.AppendSeq(list, m.ks.catalogue.Asides.All())
	p.Mu.Unlock()
	limits := make(map[uint32]expiry.Limits, len(list))
	for some := range slices.Chunk(list, containersAtOnce) {
		p.Mu.Lock()
		now := m.ks.leasedNow()
		for _, c := range some {
			limits[c.number] = m.ks.purgeable(c, now)
		}
		p.Mu.Unlock()
	}
	return limits
}

// containersAtOnce is the number of containers that are captured while the catalogue does not change: a
// fraction of a ms.
const containersAtOnce = 1024
