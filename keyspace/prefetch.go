package keyspace

import (
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
)

// A Prefetcher loads the memory that coming look-ups read into the processor's cache; see
// [memtable.Prefetcher]. It changes nothing and skips locked partitions. The zero value is ready. Not safe
// for concurrent use.
type Prefetcher struct {
	lookups memtable.Prefetcher
	locked  locks.Some
}

// Prefetch reads prefetchBytes of a key and its record. The processor itself prefetches the rest of longer
// ones.
const prefetchBytes = 384

// BeyondCache reports whether the items take more memory than a processor's caches hold.
func (ks *Keyspace) BeyondCache() bool {
	const cache = 16 << 20                                                   // bytes
	return ks.partitions[0].Shard.Memory()*int64(len(ks.partitions)) > cache // partitions share evenly
}

// Prefetch prepares look-ups of ids, each in the container of the name beside it. The caller holds no lock.
func (w *Prefetcher) Prefetch(ks *Keyspace, containers, ids []string) {
	defer w.lookups.Reset()
	defer w.locked.Release()
	var c *Container
	for i, id := range ids {
		p := ks.partitionOf(id)
		if !w.locked.Try(&p.Mu) {
			continue
		}
		if c == nil || c.name != containers[i] {
			if c = ks.catalogue.ByName[containers[i]]; c == nil {
				continue
			}
		}
		if t := c.tables[p.Number]; t != nil {
			w.lookups.Add(&t.Table, id)
		}
	}
	w.lookups.Run(prefetchBytes)
}
