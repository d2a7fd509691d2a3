package store

import (
	"errors"

	"mayfly/keyspace/aof"
	"mayfly/vfs"
)

// ApplyInLittleRoom is Apply on a full disk. It writes the store anew first if that makes room: the deletes
// of many items take more than there may be. rewrite writes what the changes leave. ApplyInLittleRoom returns
// the changes that are left to apply after an error.
func (s *Store) ApplyInLittleRoom(ops []aof.Op, rewrite func() error) (left []aof.Op, err error) {
	if len(ops) == 0 {
		return ops, nil
	}
	var tried error
	if s.wasteful() {
		if tried = rewrite(); tried == nil {
			return nil, nil
		}
	}
	err = s.Apply(ops)
	if vfs.IsFull(err) && tried == nil {
		if tried = rewrite(); tried == nil {
			return nil, nil
		}
	}
	if err != nil {
		return ops, errors.Join(err, tried)
	}
	return nil, nil
}

// wasteful reports whether a store is compacted before changes are applied to it on a full disk.
func (s *Store) wasteful() bool { return s.Waste() > s.Size()/2 }

// CompactionGain returns how many bytes [Store.ApplyInLittleRoom] frees by a compaction if so many are free,
// 0 if it does not begin with one, or has no room for it.
func (s *Store) CompactionGain(free int64) int64 {
	if !s.wasteful() || free < s.rewriteRoom() {
		return 0
	}
	return s.Waste()
}
