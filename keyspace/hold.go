package keyspace

import "mayfly/keyspace/memtable"

// KeepDeadUntil keeps the items that are dead in memory until a time (ms), as CLIENT PAUSE does: nothing removes them
// and no death is reported. They are absent for everybody nevertheless. 0 ends that. A write removes the dead item
// that it replaces.
func (ks *Keyspace) KeepDeadUntil(ms int64) { ks.keepDead.Store(ms) }

// keepsDead reports whether the dead stay at a moment in ms.
func (ks *Keyspace) keepsDead(now int64) bool { return now < ks.keepDead.Load() }

// removeKept removes the item of an id from a table if it is dead and lookup has left it there. Its partition must
// be locked.
func (tx *Tx) removeKept(t *table, id string) {
	if e := t.Find(id); e != nil {
		tx.removeDead(t, []*memtable.Entry{e})
	}
}

// deadStats returns figures of the dead items that stay in a table, whose partition is locked.
func (tx *Tx) deadStats(t *table) (s memtable.Stats) {
	if tx.ks.keepsDead(tx.now) {
		s = t.DeadStats(t.c.Policy(), tx.now)
	}
	return s
}

// living returns the number of living items of a table that was swept. Its partition must be locked.
func (tx *Tx) living(t *table) int { return t.Len() - tx.deadStats(t).Items }
