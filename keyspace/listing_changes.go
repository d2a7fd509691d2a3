package keyspace

import (
	"maps"
	"slices"
	"sync"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// catalogChanges are containers whose records files lack, by number; nil: removed.
type catalogChanges map[uint32]*Container

// atOnce is the number of containers that are captured while the catalogue does not change: a fraction of a
// ms.
const atOnce = 1024

// Ops returns the changes as commands. It holds the lock of a partition for some containers at a time, and
// encodes records without. Of a container that changes meanwhile it has a later state, which the journal that
// stays has too.
func (ch catalogChanges) Ops(lock sync.Locker) (ops []aof.Op) {
	for numbers := range slices.Chunk(slices.Collect(maps.Keys(ch)), atOnce) {
		var present []record.Container
		lock.Lock()
		for _, number := range numbers {
			if c := ch[number]; c != nil {
				if r := c.record(); r.Number == number && (r.Name != "" || r.Hidden != nil) {
					present = append(present, r)
					continue
				}
			}
			ops = append(ops, aof.Op{Key: record.ContainerKey(number), Del: true})
		}
		lock.Unlock()
		for _, r := range present {
			ops = append(ops, aof.Op{Key: record.ContainerKey(r.Number), Rec: string(r.Append(nil))})
		}
	}
	return ops
}
