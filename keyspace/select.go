package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/selection"
)

// Reader returns a reader of a container's items, which removes the dead that it meets.
func (tx *Tx) Reader(c *Container) selection.Reader { return selection.NewReader(source{tx, c}) }

// HashCheck returns a number that tells the order of [selection.Reader.HashOrder] from that in other data
// folders.
func (ks *Keyspace) HashCheck() uint32 { return ks.storage.Seed().Check() }

// source is a container as a [selection.Source].
type source struct {
	tx *Tx
	c  *Container
}

func (s source) Partitions() int           { return len(s.tx.ks.partitions) }
func (s source) PartitionOf(id string) int { return s.tx.ks.partitionOf(id).Number }
func (s source) Now() int64                { return s.tx.now }
func (s source) Policy() *expiry.Policy    { return s.c.Policy() }
func (s source) All(f func())              { s.tx.withinAll(f) }

func (s source) One(number int, f func()) {
	s.tx.within(s.tx.ks.partitions[number], func(*partition) bool { f(); return true })
}

func (s source) Part(partition int) (*memtable.Table, *index.Table) {
	s.tx.saw(s.tx.ks.partitions[partition].LastWrite)
	if t := s.c.tables[partition]; t != nil {
		return &t.Table, t.Indexed
	}
	return nil, nil
}

func (s source) Find(id string) (it selection.Item, ok bool, removed int) {
	p := s.tx.ks.partitionOf(id)
	t := s.c.tables[p.Number]
	if t == nil {
		s.tx.saw(p.LastRemoval)
		return it, false, 0
	}
	there := t.Len()
	e := s.tx.find(p, s.c, id)
	if e != nil {
		it.ID, it.Item = t.IDAndItem(e)
	}
	return it, e != nil, there - t.Len()
}

func (s source) Remove(partition int, dead []*memtable.Entry) {
	s.tx.removeDead(s.c.tables[partition], dead)
}

func (s source) RemoveSome(partition, most int) (removed int, more bool) {
	t := s.c.tables[partition]
	if t == nil {
		return 0, false
	}
	more = t.RemoveDead(s.tx.ks.purgeable(s.c, s.tx.now), most, func(e *memtable.Entry) {
		s.tx.removeDead(t, []*memtable.Entry{e})
		removed++
	})
	return removed, more
}

// removeDead removes the purgeable of dead entries. The partition of t must be locked.
func (tx *Tx) removeDead(t *table, dead []*memtable.Entry) {
	if len(dead) == 0 {
		return
	}
	purgeable, removed := tx.ks.purgeable(t.C, tx.now), 0
	for _, e := range dead {
		if e.Within(purgeable) {
			tx.noteDeath(t, e)
			t.Remove(e)
			tx.expire(t, e)
			removed++
		}
	}
	if removed > 0 {
		tx.ks.purge.CountLazy(removed)
	}
}
