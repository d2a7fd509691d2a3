package store

import (
	"errors"

	"mayfly/keyspace/aof"
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
	if s.Waste() > s.Size()/2 {
		compactFirst()
	}
	err = s.Apply(ops)
	if aof.IsFull(err) && !tried {
		if compactFirst(); compacted == nil {
			err = s.Apply(ops)
		}
	}
	if err != nil {
		return ops, errors.Join(err, compacted)
	}
	return ops, nil
}
