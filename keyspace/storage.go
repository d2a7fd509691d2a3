package keyspace

import (
	"errors"
	"maps"
	"slices"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/aof"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/lease"
	"mayfly/keyspace/record"
	"mayfly/keyspace/scrub"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/store"
)

// Dir is the data folder.
func (ks *Keyspace) Dir() string { return ks.opt.Dir }

// Save makes a checkpoint; see [storage.Engine.Save]. It blocks until that is done; transactions continue meanwhile.
func (ks *Keyspace) Save() error { return ks.storage.Save() }

// SaveInBackground requests a checkpoint. It returns at once; false if an earlier request has not finished.
func (ks *Keyspace) SaveInBackground() bool { return ks.storage.SaveInBackground() }

// LastSave returns the time in ms of the last checkpoint, or of the start if there was none.
func (ks *Keyspace) LastSave() int64 { return ks.storage.LastSave() }

// Compaction says when a store is worth compacting.
type Compaction = store.Compaction

// DefaultCompaction applies until [Keyspace.SetCompaction].
var DefaultCompaction = store.DefaultCompaction

// SetCompaction changes when stores are compacted automatically.
func (ks *Keyspace) SetCompaction(c Compaction) { ks.storage.SetCompaction(c) }

// Compact requests a checkpoint and a compaction of all stores with waste, in the background. It returns at once;
// false if one is running already.
func (ks *Keyspace) Compact() bool { return ks.storage.Compact() }

// SetEraseWithin sets erase-within: what is gone is in no file of the data folder after this time. 0 promises nothing.
func (ks *Keyspace) SetEraseWithin(d time.Duration) { ks.storage.SetEraseWithin(d) }

// InTheWayError is the error of [Keyspace.Backup] for something at path.part that it must not take over.
type InTheWayError = datadir.InTheWayError

// Backup writes a copy of the data folder, the state of one moment, to a path that does not exist, while reads and
// writes continue; see [storage.Engine.Backup].
func (ks *Keyspace) Backup(path string) error { return ks.storage.Backup(path) }

// Scrubber checks the files on disk, in the background.
func (ks *Keyspace) Scrubber() *scrub.Scrubber { return ks.storage.Scrub }

// Damage says which files on disk are damaged and could not be written anew yet; nil if there are none. Nothing is lost
// while the server runs, but the next start would refuse them.
func (ks *Keyspace) Damage() error {
	s := ks.storage.Scrub.Stats()
	if s.Damaged == 0 {
		return nil
	}
	return ks.ForClients(errors.New(s.Damage))
}

// Writable returns the error because of which writes are refused for now (MISCONF), or nil.
func (ks *Keyspace) Writable() error {
	if err := ks.storage.Err(); err != nil {
		return ks.ForClients(err)
	}
	return ks.storage.Disk.Err()
}

// Freeing returns the error because of which even transactions that free space are refused for now, or nil. On a full disk
// only these are admitted: see package reserve.
func (ks *Keyspace) Freeing() error {
	if err := ks.storage.Err(); err != nil {
		return ks.ForClients(err)
	}
	return ks.storage.Disk.FreeingErr()
}

// Unsaved returns why a stop now would lose writes, or nil.
func (ks *Keyspace) Unsaved() error {
	if !ks.journal.Begun() {
		return nil
	}
	return ks.ForClients(ks.storage.Err())
}

// ForClients returns an error without the path of the data folder, which is not for clients; the log has it.
func (ks *Keyspace) ForClients(err error) error { return datadir.WithoutPath(err, ks.opt.Dir) }

// memory is the keyspace as a [storage.Memory].
type memory struct{ ks *Keyspace }

func (m memory) Clock() lease.Record { return m.ks.clockRecord(m.ks.lease.End()) }

func (m memory) Changes() (records []aof.Op, dropped []storage.Dropped) {
	ks, cat := m.ks, &m.ks.catalogue
	var tx Tx
	ks.lockAll(&tx)
	dirty := cat.dirty
	cat.dirty = make(map[uint32]*Container)
	gone := cat.dropped
	cat.dropped = nil
	clock := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}
	tx.Close()
	for _, t := range gone {
		dropped = append(dropped, storage.Dropped{Partition: t.p.number, Table: &t.Table})
	}
	return append([]aof.Op{clock}, ks.containerOps(dirty)...), dropped
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
	clock := aof.Op{Key: record.ClockKey, Rec: string(m.Clock())}
	tx.Close()
	return append([]aof.Op{clock}, ks.containerOps(all)...)
}

func (m memory) Purgeable() map[uint32]expiry.Limits {
	p := m.ks.partitions[0]
	p.mu.Lock()
	list := slices.Clone(m.ks.catalogue.list)
	p.mu.Unlock()
	limits := make(map[uint32]expiry.Limits, len(list))
	for some := range slices.Chunk(list, containersAtOnce) {
		p.mu.Lock()
		now := m.ks.Now()
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
			if c := dirty[number]; c != nil && c.name != "" && c.number == number {
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

// signal sends unless the channel is full.
func signal(to chan<- struct{}) {
	select {
	case to <- struct{}{}:
	default:
	}
}
