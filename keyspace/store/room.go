package store

import (
	"errors"

	"mayfly/keyspace/aof"
	"mayfly/vfs"
)

// ApplyInLittleRoom is Apply on a full disk. It compacts the store first if that makes room: the deletes of many items take
// more than there may be. compact is a compaction that leaves out every item that the changes delete. ApplyInLittleRoom
// returns the changes that are left to apply after an error.
func (s *Store) ApplyInLittleRoom(ops []aof.Op, compact func() error) (left []aof.Op, err error) {
	if len(ops) == 0 {
		return ops, nil
	}
	compacted, tried := error(nil), false
	compactFirst := func() {
		live := s.Live()
		tried = true
		if compacted = s.Sync(s.LSN()); compacted == nil {
			compacted = compact()
		}
		if compacted == nil { // none of the deletes is left to apply
			s.SetLive(live) // with what is applied now
			ops = aof.LastSets(ops)
		}
	}
	if s.wasteful() {
		compactFirst()
	}
	err = s.Apply(ops)
	if vfs.IsFull(err) && !tried {
		if compactFirst(); compacted == nil {
			err = s.Apply(ops)
		}
	}
	if err != nil {
		return ops, errors.Join(err, compacted)
	}
	return ops, nil
}

// wasteful reports whether a store is compacted before changes are applied to it on a full disk.
func (s *Store) wasteful() bool { return s.Waste() > s.Size()/2 }

// CompactionGain returns how many bytes [Store.ApplyInLittleRoom] frees by a compaction if so many are free, 0 if it does
// not begin with one, or has no room for it.
func (s *Store) CompactionGain(free int64) int64 {
	if !s.wasteful() || free < s.compactionRoom() {
		return 0
	}
	return s.Waste()
}
