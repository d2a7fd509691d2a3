package keyspace

import (
	"math"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/foresight"
	"mayfly/keyspace/memtable"
)

// ContainerStats are figures of one container and of its living items.
type ContainerStats struct {
	Container *Container
	Policy    expiry.Policy
	Created   int64  // ms; when the container was made
	Etag      uint64 // of its settings

	Documents int   // exact; plain keys among them
	Plain     int   // plain keys
	InMemory  int   // items in memory when asked, with the dead that were not purged yet
	Bytes     int64 // of ids and bodies
	Memory    int64 // bytes, an estimate
	ByOwnTTL  int   // items with an end of their own
	ByDefault int   // items that inherit the container's default

	SubExpiry int // keys with elements that have an end

	IndexEntries int   // of all indexes, with those of the dead
	IndexBytes   int64 // of their memory, an estimate; part of Memory

	// AverageTTL is the mean time left to the items that will die, in ms. It is estimated from a random few;
	// 0 if there are none. [Tx.Stats] leaves it 0.
	AverageTTL int64

	left foresight.TimeLeft
}

// Expiring returns how many of the items will die.
func (s *ContainerStats) Expiring() (n int) {
	byDefault, byOwnTTL := s.Policy.Expires()
	if byDefault {
		n += s.ByDefault
	}
	if byOwnTTL {
		n += s.ByOwnTTL
	}
	return n
}

// addLocked adds a table, without the dead that stay in it. The lock of its partition must be held.
func (s *ContainerStats) addLocked(t *table, dead memtable.Stats, now int64) {
	items := t.Table.Stats()
	entries, bytes := t.Indexed.Size()
	hollow := len(t.Hollow(t.C.Policy().DeadLimits(now)))
	s.Documents += items.Items - dead.Items - hollow
	s.Plain += items.Plain - dead.Plain - hollow
	s.Bytes += items.Bytes - dead.Bytes
	s.Memory += items.Memory
	if t.Pages != nil {
		pages := t.Pages.Table.Stats()
		s.Bytes += pages.Bytes
		s.Memory += pages.Memory
		s.SubExpiry += t.Ending()
	}
	s.ByOwnTTL += items.ByOwnTTL - dead.ByOwnTTL
	s.ByDefault += items.ByDefault - dead.ByDefault
	s.IndexEntries += entries
	s.IndexBytes += bytes
}

// Stats returns a container's figures as of one moment.
func (tx *Tx) Stats(c *Container) ContainerStats {
	s := ContainerStats{Container: c}
	tx.eachPartition(func(p *partition) (more bool) { // before the dead are removed
		if t := c.tables[p.Number]; t != nil {
			s.InMemory += t.Len()
		}
		return true
	})
	tx.withWhole(c, func(c whole) {
		s.Policy, s.Created, s.Etag = *c.Policy(), c.created, c.Etag()
		for t := range c.each {
			s.addLocked(t, t.KeptStats(tx.now, 0), tx.now)
		}
	})
	return s
}

const (
	statsTables = 256 // tables that AllStats looks at while a partition stays locked
	statsDraws  = 16  // items that AllStats draws from a container in all partitions, about
)

// AllStats returns the figures of all containers that have living items, by name in ascending order. Empty
// containers cost nothing. It removes the dead on the way. Those that stay are left out as they were up to a
// second ago.
//
// died is the moment in ms at which the oldest dead item died that it found and nothing keeps, tx.Now if
// there was none. What UNDO may bring back is kept.
//
// It locks one partition at a time and that in portions. So the figures are not of one moment, unlike those
// of [Tx.Stats], unless the transaction has locked everything.
func (tx *Tx) AllStats() (all []*ContainerStats, died int64) {
	tables := make([][]*table, len(tx.ks.partitions))
	for _, t := range tx.ks.tables.Some(nil, 0, math.MaxInt) {
		tables[t.P.Number] = append(tables[t.P.Number], t)
	}
	died = tx.now
	found := make(map[*Container]*ContainerStats)
	for number, list := range tables {
		for portion := range slices.Chunk(list, statsTables) {
			tx.within(tx.ks.partitions[number], func(*partition) (more bool) {
				for _, t := range portion {
					if !t.Gone() && t.C.hidden == nil && t.Collections == nil {
						if t.C.aside == nil {
							purgeable := t.C.retention.Purgeable(t.C.Policy(), tx.now)
							died = min(died, foresight.FirstDeath(&t.Table, purgeable, t.C.history.Load().Entries, tx.now))
						}
						tx.addStats(t, found)
					}
				}
				return true
			})
		}
	}
	for _, s := range found {
		s.AverageTTL = s.left.Average()
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *ContainerStats) int { return strings.Compare(a.Container.name, b.Container.name) })
	return all, died
}

// addStats adds a table, whose partition is locked, to the figures of its container.
func (tx *Tx) addStats(t *table, found map[*Container]*ContainerStats) {
	c, before := t.C, t.Len()
	tx.sweep(t.P, c)
	dead := t.KeptStats(tx.now, mostAge)
	if t.Len() <= dead.Items {
		return
	}
	s := found[c]
	if s == nil {
		s = &ContainerStats{Container: c, Policy: *c.Policy(), Created: c.created, Etag: c.Etag()}
		found[c] = s
	}
	s.InMemory += before
	s.addLocked(t, dead, tx.now)
	s.left.Draw(&t.Table, c.Policy(), tx.now, 1+statsDraws/len(tx.ks.partitions))
}
