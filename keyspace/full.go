package keyspace

import (
	"errors"

	"mayfly/keyspace/store"
)

// Freeing returns the error because of which even transactions that free space are refused for now, or nil. On a full disk
// only these are admitted: see package reserve.
func (ks *Keyspace) Freeing() error {
	if err := ks.failed(); err != nil {
		return ks.ForClients(err)
	}
	return ks.disk.FreeingErr()
}

// failed returns why nothing can be committed, or nil.
func (ks *Keyspace) failed() error {
	if err := ks.broken.Load(); err != nil {
		return *err
	}
	return ks.journal.Err()
}

// Unsaved returns why a stop now would lose writes, or nil.
func (ks *Keyspace) Unsaved() error {
	if !ks.journal.Begun() {
		return nil
	}
	return ks.ForClients(ks.failed())
}

// saveMakingRoom is saveLocked, with the reserve if the disk is full.
func (ks *Keyspace) saveMakingRoom() error {
	return ks.disk.Save(ks.saveLocked, func() int64 {
		_, bytes := store.Sizes(ks.stores())
		for _, p := range ks.partitions {
			p.mu.Lock()
			bytes -= p.shard.LiveBytes()
			p.mu.Unlock()
		}
		return bytes
	})
}

// applyInLittleRoom applies the captured changes of a partition to its store on a full disk. checkpoint.mu must be held, and
// no store may be in use. The journals have the changes, so a compaction may come before they are applied.
func (ks *Keyspace) applyInLittleRoom(i int) (err error) {
	f, p := &ks.checkpoint, ks.partitions[i]
	f.captured[i], err = p.store.ApplyInLittleRoom(f.captured[i], func() error {
		return errors.Join(p.store.Compact(ks.livenessOf(p), nil, ks.files.Announce(p.store)), ks.files.Settle(p.store))
	})
	return err
}
