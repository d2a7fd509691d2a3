package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// Etag returns the version of the container's settings. It changes with them and is never used twice.
func (c *Container) Etag() uint64 { return c.history.Load().Etag }

// History returns the newest changes of a container, oldest first: at least one. The slice does not change.
func (tx *Tx) History(c *Container) (entries []expiry.HistoryEntry) {
	tx.readCatalogue(func(*catalogue) { entries = c.history.Load().Entries })
	return entries
}

// setHistory replaces the history of a container, which may be listed.
func (cat *catalogue) setHistory(c *Container, h *record.History) {
	if c.aside != nil || cat.ByName[c.name] == c {
		cat.AddMemory(h.Memory - c.history.Load().Memory)
	}
	c.history.Store(h)
	c.retention = h.Retention
}

// addHistory adds an entry for the policy that the container has now. A change of settings gives it a new etag. The
// caller notes the container before, and records it afterwards.
func (tx *Tx) addHistory(c *Container, e expiry.HistoryEntry) {
	before := c.history.Load()
	e.At, e.Policy, e.Etag, e.By = tx.now, *c.Policy(), before.Etag, tx.By
	if e.What != expiry.Flushed && e.What != expiry.Swapped {
		e.Etag = tx.ks.partitions[0].NextVersion()
	}
	tx.ks.catalogue.setHistory(c, before.With(e))
}
