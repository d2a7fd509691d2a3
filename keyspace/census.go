package keyspace

import (
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"mayfly/expiry"
)

// Populated is a container that holds something, as [Tx.Census] has found it.
type Populated struct {
	Container *Container
	ContainerStats
	// AverageTTL is the mean time that is left to the items that will die, in ms, estimated from a few
	// drawn at random; 0 if none was found.
	AverageTTL int64

	left, drawn int64 // of the items drawn that will die: the sum of what they have left, and how many
}

const (
	censusPortion = 256 // tables are looked at while a partition stays locked
	censusDraws   = 16  // from a container that is in all partitions, about
)

// Census gives the figures of all containers in which something lives, by name in ascending order. What is
// dead is removed on the way. It costs nothing for containers that are empty, and for the others a portion
// at a time with one partition locked, so that, unlike those of [Tx.Stats], the figures are not of one and
// the same moment unless the transaction has locked all partitions.
func (tx *Tx) Census() []*Populated {
	pools := make([][]*pool, len(tx.ks.partitions))
	for _, o := range tx.ks.poolList.some(nil, 0, math.MaxInt) {
		pools[o.p.number] = append(pools[o.p.number], o)
	}
	found := make(map[*Container]*Populated)
	for number, list := range pools {
		for portion := range slices.Chunk(list, censusPortion) {
			tx.within(tx.ks.partitions[number], func(p *partition) bool {
				for _, o := range portion {
					if t := o.c.tables[p.number]; t != nil && t.pool == o { // it has not gone meanwhile
						tx.count(p, t, o.c, found)
					}
				}
				return true
			})
		}
	}
	var all []*Populated
	for _, c := range found {
		if c.drawn > 0 {
			c.AverageTTL = c.left / c.drawn
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b *Populated) int { return strings.Compare(a.Container.name, b.Container.name) })
	return all
}

// count adds a table, the part of a container in a partition that is locked, to what has been found.
func (tx *Tx) count(p *partition, t *table, c *Container, found map[*Container]*Populated) {
	before := t.count()
	tx.sweep(p, c)
	if t.count() == 0 {
		return
	}
	f := found[c]
	if f == nil {
		f = &Populated{Container: c, ContainerStats: ContainerStats{Policy: *c.Policy(), Created: c.created}}
		found[c] = f
	}
	f.InMemory += before
	f.add(t)
	for range 1 + censusDraws/len(tx.ks.partitions) {
		e := t.randomDying(c.Policy())
		if e == nil {
			return
		}
		end, _ := c.Policy().End(e.ts, e.own)
		f.left += end - tx.now
		f.drawn++
	}
}

// Dying is how many of the items will die.
func (f *Populated) Dying() int {
	heirs, mortals := dying(&f.Policy)
	return heirs*f.Heirs + mortals*f.Mortal
}

// dying tells, by 1 or 0, whether items that inherit the default will die under a policy, and those with an
// end of their own.
func dying(policy *expiry.Policy) (heirs, mortals int) {
	switch {
	case policy.Default > 0:
		return 1, 1
	case policy.Default != expiry.Off:
		return 0, 1
	}
	return 0, 0
}

// randomDying gives a random entry of those that will die, nil if there is none.
func (t *table) randomDying(policy *expiry.Policy) *entry {
	heirs, mortals := dying(policy)
	heirs *= t.heirs.n
	mortals *= t.mortals.n
	if heirs+mortals == 0 {
		return nil
	}
	c, at := &t.heirs, rand.IntN(heirs+mortals)
	if at >= heirs {
		c, at = &t.mortals, at-heirs
	}
	return t.slab.at(c.at(at))
}

// add adds what lives in a table, from which the dead have been removed.
func (s *ContainerStats) add(t *table) {
	s.Documents += t.count()
	s.Plain += t.plain
	s.Bytes += t.bytes
	s.Memory += t.memory
	s.Mortal += t.mortals.n
	s.Heirs += t.heirs.n
}
