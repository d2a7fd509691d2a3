package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/streamid"
)

// Deaths returns the log of a container's deaths. Changes of it need BeginAll. For those of a container on
// hold see Veto.
func (tx *Tx) Deaths(c *Container) deathlog.Log { return deathlog.New(&logSource{tx: tx, c: c}) }

// Log is [Container.Log] for a transaction that may have locked nothing.
func (tx *Tx) Log(c *Container) (s LogSettings, ok bool) {
	tx.readCatalogue(func(*catalogue) { s, ok = c.Log() })
	return s, ok
}

// Unlogged returns the entry that the log would have of the dead item that lies under an id, which
// CONTAINER.UNDO may bring back. The partition of the id must be locked.
func (tx *Tx) Unlogged(c *Container, id string) (d deathlog.Entry, ok bool) {
	if t := c.tables[tx.partition(id).Number]; t != nil {
		if e := t.Find(id); e != nil && e.Dead(c.Policy(), tx.now) {
			d = deathlog.Death(id, t.Item(e), c.history.Load(), tx.now, c.log.Bodies)
			ok = d.At >= c.deaths.c.created
		}
	}
	return d, ok
}

// logSource is the log of a container as a [deathlog.Source].
type logSource struct {
	tx  *Tx
	c   *Container
	log *deathLog // the one that is open
}

func (s *logSource) Partitions() int             { return len(s.tx.ks.partitions) }
func (s *logSource) PartitionOf(item string) int { return s.tx.ks.partitionOf(item).Number }
func (s *logSource) Any(f func())                { s.tx.readCatalogue(func(*catalogue) { f() }) }
func (s *logSource) All(f func())                { s.tx.withinAll(f) }
func (s *logSource) IDs() *deathlog.Generator    { return &s.log.ids }
func (s *logSource) Expired() expiry.Limits      { return s.log.c.Policy().DeadLimits(s.tx.now) }
func (s *logSource) Held() bool                  { return s.tx.vetoes(s.c, nil) }

func (s *logSource) One(number int, f func(p *deathlog.Part)) {
	s.tx.within(s.tx.ks.partitions[number], func(*partition) bool { f(s.Part(number)); return true })
}

func (s *logSource) Open() bool {
	s.tx.saw(s.tx.ks.catalogue.lsn)
	s.log = s.c.deaths
	return s.log != nil
}

func (s *logSource) Part(partition int) *deathlog.Part {
	s.tx.saw(s.tx.ks.partitions[partition].LastWrite)
	if t := s.log.c.tables[partition]; t != nil {
		return t.Part
	}
	return nil
}

func (s *logSource) Remove(partition int, list []*memtable.Entry, deleted streamid.ID) {
	s.tx.removeEntries(s.log.c.tables[partition], list, deleted)
}

// LogMemory estimates the memory of a container's log in bytes, with its groups. It needs BeginAll.
func (tx *Tx) LogMemory(c *Container) (n int64) {
	for _, h := range c.hiddenOnes() {
		n += h.memory()
		for t := range h.each {
			n += t.Stats().Memory
		}
	}
	return n
}
