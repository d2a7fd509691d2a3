package keyspace

import (
	"cmp"
	"slices"

	"mayfly/keyspace/memtable"
)

// Used estimates the memory of the items and containers in bytes: ids, values and their overhead. It is not the
// size of the process, which has garbage and buffers besides.
func (ks *Keyspace) Used() int64 {
	used := ks.catalogue.memory.Load()
	for _, p := range ks.partitions {
		used += p.shard.Memory()
	}
	return used
}

// Eviction works in rounds. A round draws a few items from each table, of those nearest to their death. It deletes
// the nearest: one of every evictionSample drawn, which Redis calls maxmemory-samples. A round looks at evictionTables tables at most, and the next goes on with others. If none of
// them has an item to evict, up to evictionRounds rounds are tried.
const (
	evictionSample = 5
	evictionTables = 1024
	evictionRounds = 16
)

// victim is an item to be evicted, as it was when drawn.
type victim struct {
	c       *Container
	id      string
	version uint64
	end     int64 // ms
}

// Evict deletes items that have an end until at most limit bytes are used: of those drawn the nearest to their
// death first (maxmemory-policy volatile-ttl). It calls evicted for each under the lock of a partition.
// evicted must return soon, not use the keyspace, and clone the id to keep it. ok reports whether the limit is reached.
// It is not if what is left has no end, or had none wherever Evict looked. The deletes are journalled; lsn covers
// them. The calling goroutine must have no transaction open.
func (ks *Keyspace) Evict(limit int64, evicted func(c *Container, id string)) (lsn LSN, ok bool) {
	for ks.Used() > limit {
		victims := ks.drawVictims()
		if len(victims) == 0 {
			return lsn, false
		}
		for _, v := range victims {
			if ks.Used() <= limit {
				break
			}
			lsn = max(lsn, ks.evict(v, evicted))
		}
	}
	return lsn, true
}

// drawVictims returns the nearest to their death of a sample, nearest first.
func (ks *Keyspace) drawVictims() []victim {
	var drawn []victim
	var tables []*table
	for round := 0; round < evictionRounds && len(drawn) == 0; round++ {
		from := int(ks.evictAt.Add(evictionTables) - evictionTables)
		tables = ks.tables.some(tables[:0], from, evictionTables)
		for _, t := range tables {
			drawn = t.drawVictims(evictionSample, drawn)
		}
		if len(tables) < evictionTables {
			break // these are all
		}
	}
	slices.SortFunc(drawn, func(a, b victim) int { return cmp.Compare(a.end, b.end) })
	return drawn[:(len(drawn)+evictionSample-1)/evictionSample]
}

// drawVictims appends up to n items that inherit the default and n with an end of their own.
func (t *table) drawVictims(n int, drawn []victim) []victim {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	if t.Detached() {
		return drawn
	}
	t.NearestExpiring(t.c.Policy(), n, func(e *memtable.Entry, end int64) {
		drawn = append(drawn, victim{t.c, t.ID(e), e.Version(), end})
	})
	return drawn
}

// evict deletes an item if it has not changed since it was drawn.
func (ks *Keyspace) evict(v victim, evicted func(c *Container, id string)) LSN {
	var tx Tx
	ks.BeginKey(&tx, v.id)
	if it, ok := tx.Get(v.c, v.id); ok && it.Version == v.version && tx.Delete(v.c, v.id) {
		evicted(v.c, v.id)
	}
	return tx.Close()
}
