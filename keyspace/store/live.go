package store

import "mayfly/keyspace/aof"

// LiveRecords holds the size in bytes of the set commands that are live in a small store, by key.
type LiveRecords map[string]int64

// Count adds changes, and returns by how many bytes the live size of the store grows.
func (l LiveRecords) Count(ops []aof.Op) (more int64) {
	for _, o := range ops {
		more -= l[o.Key]
		delete(l, o.Key)
		if !o.Del {
			size := aof.SetSize(len(o.Key), len(o.Rec))
			l[o.Key] = size
			more += size
		}
	}
	return more
}
