package keyspace

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/figures"
	"mayfly/keyspace/memtable"
)

// ContainerStats are figures of one container.
type ContainerStats struct {
	Container *Container
	Policy    expiry.Policy
	Created   int64  // ms; when the container was made
	Etag      uint64 // of its settings
	figures.Items

	// AverageTTL is the mean time left to the items that will die, in ms. It is estimated from a random few; 0 if
	// there are none. [Tx.Stats] leaves it 0.
	AverageTTL int64

	leftSum, drawn int64 // ms left to the random few, and how many they are
}

// Expiring returns how many of the items will die.
func (s *ContainerStats) Expiring() int { return s.Items.Expiring(&s.Policy) }

// addLocked adds a table, without the dead that stay in it. The lock of its partition must be held.
func (s *ContainerStats) addLocked(t *table, dead memtable.Stats) {
	entries, bytes := t.Indexed.Size()
	s.Add(t.Table.Stats(), dead, entries, bytes)
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
	tx.withAllLocked(c, func() {
		s.Policy, s.Created, s.Etag = *c.Policy(), c.created, c.Etag()
		for t := range c.each {
			s.addLocked(t, t.KeptStats(tx.now, 0))
		}
	})
	return s
}

const (
	statsTables = 256 // tables that AllStats looks at while a partition stays locked
	statsDraws  = 16  // items that AllStats draws from a container in all partitions, about
)

// AllStats returns the figures of all containers that have living items, by name in ascending order. Empty containers
// cost nothing. It removes the dead on the way. Those that stay are left out as they were up to a second ago.
//
// It locks one partition at a time and that in portions. So the figures are not of one moment, unlike those of [Tx.Stats],
// unless the transaction has locked everything.
func (tx *Tx) AllStats() []*ContainerStats {
	tables := make([][]*table, len(tx.ks.partitions))
	for _, t := range tx.ks.tables.Some(nil, 0, math.MaxInt) {
		tables[t.P.Number] = append(tables[t.P.Number], t)
	}
	found := make(map[*Container]*ContainerStats)
	for number, list := range tables {
		for portion := range slices.Chunk(list, statsTables) {
			tx.within(tx.ks.partitions[number], func(*partition) (more bool) {
				for _, t := range portion {
					if !t.Gone() && t.C.hidden == nil {
						tx.addStats(t, found)
					}
				}
				return true
			})
		}
	}
	var all []*ContainerStats
	for _, s := range found {
		if s.drawn > 0 {
			s.AverageTTL = s.leftSum / s.drawn
		}
		all = append(all, s)
	}
	slices.SortFunc(all, func(a, b *ContainerStats) int { return strings.Compare(a.Container.name, b.Container.name) })
	return all
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
	s.addLocked(t, dead)
	for range 1 + statsDraws/len(tx.ks.partitions) {
		_, e := t.RandomExpiring(c.Policy(), rand.IntN)
		if e == nil {
			return
		}
		if end, _ := e.End(c.Policy()); end > tx.now {
			s.leftSum += end - tx.now
			s.drawn++
		}
	}
}
