package tables

import (
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/index"
)

// Container is what has tables.
type Container interface {
	comparable
	Policy() *expiry.Policy
}

// Host is what tables need of their keyspace. The lock of a partition is held, but for Sample.
type Host[C Container] interface {
	// Tables returns the tables of a container by partition.
	Tables(c C) List[C]

	// Number returns the prefix of a container's keys.
	Number(c C) uint32

	// Entries counts the entries of the log that a container is; nil: it is none, or has no owner yet. log
	// says that its items are entries.
	Entries(c C) (count *atomic.Int64, log bool)

	// Indexes returns the indexes of a container, nil for none.
	Indexes(c C) *index.Set

	// Retention returns the policies of a container that may rule again.
	Retention(c C) expiry.Retention

	// Away reports whether a container is set aside, or belongs to one that is.
	Away(c C) bool

	// Punctual reports whether the deaths of a container are to be found when they happen.
	Punctual(c C) bool

	// Keeps reports whether dead items of a container stay at a moment in ms.
	Keeps(c C, now int64) bool

	// Sample removes up to n of the purgeable dead of a table, for the purge.
	Sample(t *Table[C], n int) expiry.Sample

	// Left is called when a table is not for eviction any more.
	Left()
}

// Set is the attached tables of a keyspace. The purge and eviction take some of them at a time, and skip
// empty containers. Safe for concurrent use after Init.
type Set[C Container] struct {
	rotation[C]
	host       Host[C]
	purge      *expiry.Purge
	partitions int
}

// Init makes the set ready for tables in a number of partitions.
func (s *Set[C]) Init(host Host[C], purge *expiry.Purge, partitions int) {
	s.host, s.purge, s.partitions = host, purge, partitions
}

// Open makes the table of a container in a partition that has none yet. The lock of the partition must be
// held.
func (s *Set[C]) Open(c C, p *Partition[C]) *Table[C] {
	t := &Table[C]{set: s, P: p, C: c}
	if _, log := s.host.Entries(c); log {
		t.InitLog(&p.Shard, s.host.Number(c))
	} else {
		t.Init(&p.Shard, s.host.Number(c))
	}
	s.add(t)
	s.host.Tables(c)[p.Number] = t
	t.OpenPart()
	if set := s.host.Indexes(c); set != nil {
		t.IndexBy(set)
	}
	t.SetTimer(0)
	return t
}

// OpenPart makes the part of a log over the table, if it is of one that has an owner.
func (t *Table[C]) OpenPart() {
	if count, _ := t.set.host.Entries(t.C); count != nil {
		t.Part = deathlog.NewPart(&t.Table, t.P.Number, t.set.partitions, count)
	}
}
