package storage

import (
	"errors"

	"mayfly/keyspace/store"
)

// saveMakingRoom is SaveLocked, with the reserve if the disk is full.
func (e *Engine) saveMakingRoom() error {
	return e.Disk.Save(e.SaveLocked, func() int64 {
		_, bytes := store.Sizes(e.Stores())
		for _, p := range e.partitions {
			p.Lock.Lock()
			bytes -= p.Shard.LiveBytes()
			p.Lock.Unlock()
		}
		return bytes
	})
}

// applyInLittleRoom applies the captured changes of a partition to its store on a full disk. The engine must be locked, and
// no store may be in use. The journals have the changes, so a compaction may come before they are applied.
func (e *Engine) applyInLittleRoom(i int) (err error) {
	f, s, p := &e.checkpoint, e.items[i], e.partitions[i]
	p.Lock.Lock()
	s.SetLive(p.Shard.LiveBytes()) // less than when they were captured if items have gone since: a compaction leaves those out
	p.Lock.Unlock()
	f.captured[i], err = s.ApplyInLittleRoom(f.captured[i], func() error {
		return errors.Join(s.Compact(e.Liveness(i), nil, e.Files.Announce(s)), e.Files.Settle(s))
	})
	return err
}
