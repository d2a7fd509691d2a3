package keyspace

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/watch"
)

// partition has a share of all containers' items: those with ids of its slots.
//
// Locks: mu protects everything below it, and every table and entry of the partition. The catalogue of containers
// is read while any partition's mu is held and changed while all are. Partitions are locked in ascending order of
// number.
type partition struct {
	number int

	mu          locks.Lock
	shard       memtable.Shard // its Memory and Garbage need no lock
	version     uint64         // of the last write; see nextVersionLocked
	lastWrite   LSN            // covers every write
	lastRemoval LSN            // covers every removal
	watchers    watch.Lists[*Container]
}

func newPartition(number int) *partition {
	p := &partition{number: number, version: uint64(number)}
	p.shard.SetSize = aof.SetSize
	return p
}

// versionLeap is the distance between the versions of two epochs. Each partition counts versions, with its number in
// the low byte. So they are unique without a shared counter. Every start begins a new epoch, which is on disk before
// anything is written. So no version is used again, even if a power cut took it back after a client had seen it.
const versionLeap = 1 << 40

// nextVersionLocked returns a new version. mu must be held.
func (p *partition) nextVersionLocked() uint64 {
	p.version += record.MaxPartitions
	return p.version
}

func (p *partition) begin(epoch uint64) { p.version = epoch*versionLeap + uint64(p.number) }

// Release releases an entry that was removed from the table. The lock of its partition must be held.
func (t *table) Release(e *memtable.Entry) {
	t.p.lastRemoval = max(t.p.lastRemoval, LSN(e.LSN()))
	t.Table.Release(e)
}

// Restore takes back what was done to an entry; see [memtable.Table.Restore]. The lock of the partition must be held.
func (t *table) Restore(e, was *memtable.Entry) {
	t.Table.Restore(e, was)
	if t.timer != nil {
		t.noteDueLocked(e.Moments())
	}
}
