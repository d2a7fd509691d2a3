package storage

import (
	"fmt"
	"syscall"

	"mayfly/keyspace/aof"
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

// applyInLittleRoom applies the captured changes of a partition to its store on a full disk. The engine must
// be locked, and no store may be in use. The journals have the changes, so a compaction may come before they
// are applied.
func (e *Engine) applyInLittleRoom(i int) (err error) {
	f, s, p := &e.checkpoint, e.items[i], e.partitions[i]
	p.Lock.Lock()
	s.SetLive(p.Shard.LiveBytes()) // less than when they were captured if items have gone since: a compaction leaves those out
	p.Lock.Unlock()
	f.captured[i], err = s.ApplyInLittleRoom(f.captured[i], func() error { return e.RewriteStore(s, nil) })
	return err
}

// blockSize bounds the bytes of disk that a write to the end of a file takes besides its own.
const blockSize = 4 << 10

// fits returns an error if the disk is full and what is captured does not fit into the room that is left,
// with what compactions give back. A checkpoint that fails halfway would take the room of commands that free
// space, and free none. The engine must be locked.
func (e *Engine) fits() error {
	if !e.Disk.Full() {
		return nil
	}
	free, _, err := e.Options.FS.Room(e.Options.Dir)
	if err != nil {
		return nil // the checkpoint finds out
	}
	need := bytesOf(e.checkpoint.catalogue)
	for i, p := range e.partitions {
		p.Lock.Lock()
		e.items[i].SetLive(p.Shard.LiveBytes())
		p.Lock.Unlock()
		if gain := e.items[i].CompactionGain(free - need); gain > 0 {
			need -= gain
			continue
		}
		if need += bytesOf(e.checkpoint.captured[i]); free < need {
			return fmt.Errorf("a checkpoint takes more than the %d bytes that are free: %w", free, syscall.ENOSPC)
		}
	}
	return nil
}

// bytesOf bounds the bytes of disk that changes take in a store.
func bytesOf(ops []aof.Op) (bytes int64) {
	if len(ops) == 0 {
		return 0
	}
	for _, o := range ops {
		bytes += aof.SetSize(len(o.Key), len(o.Rec)+len(o.Body))
	}
	return bytes + aof.SealSize + blockSize
}
