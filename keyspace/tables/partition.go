package tables

import (
	"mayfly/keyspace/aof"
	"mayfly/keyspace/journal"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/watch"
)

// Partition has a share of all containers' items: those with ids of its slots.
//
// Locks: Mu protects everything below it, and every table and entry of the partition. The methods need it.
// The catalogue of containers is read while any partition's Mu is held and changed while all are. Partitions
// are locked in ascending order of number.
type Partition[C comparable] struct {
	Number int

	Mu          locks.Lock
	Shard       memtable.Shard // its Memory and Garbage need no lock
	Version     uint64         // of the last write; see NextVersion
	LastWrite   journal.LSN    // covers every write
	LastRemoval journal.LSN    // covers every removal
	Watchers    watch.Lists[C]
	Garbage     []*Collections // those with pages without a key, see [Collections.Settle]
}

// NewPartition returns an empty partition.
func NewPartition[C comparable](number int) *Partition[C] {
	p := &Partition[C]{Number: number, Version: uint64(number)}
	p.Shard.SetSize = aof.SetSize
	return p
}

// VersionLeap is the distance between the versions of two epochs. Each partition counts versions, with its
// number in the low byte. So they are unique without a shared counter. Every start begins a new epoch, which
// is on disk before anything is written. So no version is used again, even if a power cut took it back after
// a client had seen it.
const VersionLeap = 1 << 40

// NextVersion returns a new version.
func (p *Partition[C]) NextVersion() uint64 {
	p.Version += record.MaxPartitions
	return p.Version
}

// Begin begins an epoch of versions.
func (p *Partition[C]) Begin(epoch uint64) { p.Version = epoch*VersionLeap + uint64(p.Number) }

// Clean does one step of cleaning if a table needs it. No transaction may have changes in the partition that
// it can roll back.
func (p *Partition[C]) Clean() {
	if p.Shard.Unclean() {
		p.cleanStep()
	}
}

// garbageAtOnce is the number of pages without a key that are removed while the partition is locked: about
// 0.1 ms.
const garbageAtOnce = 64

// Collect removes some of the pages that have no key any more, and as many as besides. It returns how many,
// and reports whether there are more. No transaction may have changes in the partition that it can roll back.
func (p *Partition[C]) Collect(besides int) (removed int, more bool) {
	if len(p.Garbage) == 0 {
		return 0, false
	}
	defer locks.EndProcessOnPanic()
	most := garbageAtOnce + besides
	left := most
	for left > 0 && len(p.Garbage) > 0 {
		cs := p.Garbage[len(p.Garbage)-1]
		if left = cs.collect(left); left > 0 {
			p.Garbage = p.Garbage[:len(p.Garbage)-1]
			cs.listed = false
		}
	}
	return most - left, len(p.Garbage) > 0
}

// cleanStep does one step of cleaning. A failure inside leaves items that nothing finds, and the partition
// may stay locked: the process ends.
func (p *Partition[C]) cleanStep() {
	defer locks.EndProcessOnPanic()
	p.Shard.Clean()
}
