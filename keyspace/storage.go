package keyspace

import (
	"maps"
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

// memory is the keyspace as a [storage.Memory].
type memory struct{ ks *Keyspace }

func (m memory) Clock() lease.Record { return m.ks.clockRecord(m.ks.lease.End()) }

func (m memory) Touch() error {
	p := m.ks.partitions[0]
	p.mu.Lock() // so that the node begins to lead or to follow before or after
	defer p.mu.Unlock()
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
	dirty := cat.dirty
	cat.dirty = make(map[uint32]*Container)
	gone := cat.dropped
	cat.dropped = nil
	clock, tail := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}, ks.tailOps()
	tx.Close()
	for _, t := range gone {
		dropped = append(dropped, storage.Dropped{Partition: t.p.number, Table: &t.Table})
	}
	return append(append(tail, clock), ks.containerOps(dirty)...), dropped
}

func (m memory) Records() []aof.Op {
	ks := m.ks
	var tx Tx
	ks.lockAll(&tx)
	all := make(map[uint32]*Container, len(ks.catalogue.list))
	for c := range ks.catalogue.asides.All() {
		all[c.number] = c
	}
	for _, c := range ks.catalogue.list {
		all[c.number] = c
	}
	maps.Copy(all, ks.catalogue.hidden)
	clock, tail := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}, ks.tailOps()
	tx.Close()
	return append(append(tail, clock), ks.containerOps(all)...)
}

func (m memory) Purgeable() map[uint32]expiry.Limits {
	m.ks.EndWindows() // what has ended since the last second is gone
	p := m.ks.partitions[0]
	p.mu.Lock()
	list := slices.Clone(m.ks.catalogue.list)
	list = slices.AppendSeq(list, m.ks.catalogue.asides.All())
	p.mu.Unlock()
	limits := make(map[uint32]expiry.Limits, len(list))
	for some := range slices.Chunk(list, containersAtOnce) {
		p.mu.Lock()
		now := m.ks.leasedNow()
		for _, c := range some {
			limits[c.number] = m.ks.purgeable(c, now)
		}
		p.mu.Unlock()
	}
	return limits
}

// containersAtOnce is the number of containers that are captured while the catalogue does not change: a fraction of
// a ms.
const containersAtOnce = 1024

// containerOps returns the changes of containers that were dirty. Of one that changes meanwhile it has a later
// state, which the journal that stays has too.
func (ks *Keyspace) containerOps(dirty map[uint32]*Container) (ops []aof.Op) {
	for numbers := range slices.Chunk(slices.Collect(maps.Keys(dirty)), containersAtOnce) {
		var present []record.Container // encoded when no lock is held
		p := ks.partitions[0]
		p.mu.Lock()
		for _, number := range numbers {
			if c := dirty[number]; c != nil && (c.name != "" || c.hidden != nil) && c.number == number {
				present = append(present, c.record())
			} else {
				ops = append(ops, aof.Op{Key: record.ContainerKey(number), Del: true})
			}
		}
		p.mu.Unlock()
		for _, c := range present {
			ops = append(ops, aof.Op{Key: record.ContainerKey(c.Number), Rec: string(c.Append(nil))})
		}
	}
	return ops
}
