package figures

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// Items are figures of the living items of one container.
type Items struct {
	Documents int   // exact; plain keys among them
	Plain     int   // plain keys
	InMemory  int   // items in memory when asked, with the dead that were not purged yet
	Bytes     int64 // of ids and bodies
	Memory    int64 // bytes, an estimate
	ByOwnTTL  int   // items with an end of their own
	ByDefault int   // items that inherit the container's default

	IndexEntries int   // of all indexes, with those of the dead
	IndexBytes   int64 // of their memory, an estimate; part of Memory
}

// Expiring returns how many of the items will die under a policy.
func (i *Items) Expiring(p *expiry.Policy) (n int) {
	byDefault, byOwnTTL := p.Expires()
	if byDefault {
		n += i.ByDefault
	}
	if byOwnTTL {
		n += i.ByOwnTTL
	}
	return n
}

// Add adds the figures of a table, without the dead that stay in it, and those of its indexes.
func (i *Items) Add(table, dead memtable.Stats, indexEntries int, indexBytes int64) {
	i.Documents += table.Items - dead.Items
	i.Plain += table.Plain - dead.Plain
	i.Bytes += table.Bytes - dead.Bytes
	i.Memory += table.Memory
	i.ByOwnTTL += table.ByOwnTTL - dead.ByOwnTTL
	i.ByDefault += table.ByDefault - dead.ByDefault
	i.IndexEntries += indexEntries
	i.IndexBytes += indexBytes
}
