package keyspace

import (
	"unsafe"

	"mayfly/expiry"
)

// containerHistory is what a container knows of its changes. It is immutable: a change makes a new one.
type containerHistory struct {
	etag    uint64 // of the settings
	entries []expiry.HistoryEntry
	memory  int64 // bytes, an estimate; see newContainerHistory
}

// newContainerHistory returns a history and its size. The first entry, which every container has, counts as part of the
// container.
func newContainerHistory(etag uint64, entries []expiry.HistoryEntry) *containerHistory {
	h := &containerHistory{etag: etag, entries: entries}
	for i := 1; i < len(entries); i++ {
		h.memory += int64(unsafe.Sizeof(entries[i])) + int64(len(entries[i].By)+len(entries[i].Reason))
	}
	return h
}

// Etag returns the version of the container's settings. It changes with them and is never used twice.
func (c *Container) Etag() uint64 { return c.history.Load().etag }

// History returns the newest changes of a container, oldest first: at least one. The slice does not change. The first
// that EXPLAIN and [expiry.Death] need may be missing: see there.
func (c *Container) History() []expiry.HistoryEntry { return c.history.Load().entries }

// setHistory replaces the history of a container, which may be listed.
func (cat *catalogue) setHistory(c *Container, h *containerHistory) {
	if cat.byName[c.name] == c {
		cat.memory.Add(h.memory - c.history.Load().memory)
	}
	c.history.Store(h)
}

// addHistory adds an entry for the policy that the container has now. A change of settings gives it a new etag. The
// caller notes the container before, and records it afterwards.
func (tx *Tx) addHistory(c *Container, e expiry.HistoryEntry) {
	before := c.history.Load()
	etag := before.etag
	if e.What != expiry.Flushed && e.What != expiry.Swapped {
		etag = tx.ks.partitions[0].nextVersionLocked()
	}
	e.At, e.Policy, e.Etag, e.By = tx.now, *c.Policy(), etag, tx.By
	kept := before.entries[max(0, len(before.entries)+1-expiry.MostHistory):]
	entries := make([]expiry.HistoryEntry, len(kept), len(kept)+1)
	copy(entries, kept)
	tx.ks.catalogue.setHistory(c, newContainerHistory(etag, append(entries, e)))
}
