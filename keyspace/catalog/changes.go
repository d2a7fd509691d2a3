package catalog

import (
	"maps"
	"slices"
	"sync"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/record"
)

// Changes are containers whose records files lack.
type Changes[C Container] struct {
	of       Accessors[C]
	byNumber map[uint32]C
}

// atOnce is the number of containers that are captured while the catalogue does not change: a fraction of a ms.
const atOnce = 1024

// Ops returns the changes as commands. It holds the lock of a partition for some containers at a time, and encodes records
// without. Of a container that changes meanwhile it has a later state, which the journal that stays has too.
func (ch *Changes[C]) Ops(lock sync.Locker) (ops []aof.Op) {
	var none C
	for numbers := range slices.Chunk(slices.Collect(maps.Keys(ch.byNumber)), atOnce) {
		var present []record.Container
		lock.Lock()
		for _, number := range numbers {
			if c := ch.byNumber[number]; c != none {
				if r := ch.of.Record(c); r.Number == number && (r.Name != "" || r.Hidden != nil) {
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
