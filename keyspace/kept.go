package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// The dead that stay
//
// A dead item is absent for everybody. It is removed once it is purgeable, which may be later: while clients are paused,
// or while a former policy of its container may rule again. Until then:
//
//  1. readers leave it where it lies, in its indexes too, and figures leave it out;
//  2. who writes or deletes its id buries it first, in the same transaction. If it could live again, its removal is
//     journalled and rolled back like a delete;
//  3. eviction does not draw it.

// KeepDeadUntil keeps the items that are dead in memory until a time (ms), as CLIENT PAUSE does: nothing removes them
// and no death is reported. They are absent for everybody nevertheless. 0 ends that. A write removes the dead item
// that it replaces.
func (ks *Keyspace) KeepDeadUntil(ms int64) { ks.keepDead.Store(ms) }

// purgeable returns the limits of a container's items that may be removed at a moment in ms. A partition must be locked.
func (ks *Keyspace) purgeable(c *Container, now int64) expiry.Limits {
	if now < ks.keepDead.Load() {
		return expiry.NoLimits
	}
	return c.retention.Purgeable(c.Policy(), now)
}

// keeps reports whether dead items of a container stay at a moment in ms. A partition must be locked.
func (ks *Keyspace) keeps(c *Container, now int64) bool {
	return now < ks.keepDead.Load() || c.retention.Open(now)
}

// kept returns what selects the dead that stay in a container at a moment in ms, nil if none do. A partition must be
// locked.
func (ks *Keyspace) kept(c *Container, now int64) *memtable.Kept {
	if !ks.keeps(c, now) {
		return nil
	}
	return &memtable.Kept{Dead: c.Policy().DeadLimits(now), Purgeable: ks.purgeable(c, now)}
}

// bury removes the item of an id from a table if it is dead and lookup has left it there. Its partition must be locked.
func (tx *Tx) bury(t *table, id string) {
	e := t.Find(id)
	if e == nil {
		return
	}
	if !e.Changing() {
		tx.noteChange(t, e)
	}
	tx.changes = append(tx.changes, itemChange{deleted: t.Key(e)})
	tx.ks.purge.CountLazy(1)
	t.Remove(e)
	if tx.OnDeath != nil {
		tx.OnDeath(t.c, id)
	} else {
		tx.ks.expireLocked(t, e, tx.now)
	}
	tx.removals = append(tx.removals, removal{t, e})
	tx.removed = append(tx.removed, t.p)
}

// deadFigures are figures of the dead that stay in a table, as of a moment.
type deadFigures struct {
	memtable.Stats
	policy *expiry.Policy // nil: not counted yet
	at     int64          // ms
}

// mostAge is the age in ms of figures that need not be exact.
const mostAge = 1000

// deadStats returns figures of the dead items that stay in a swept table. They are at most some ms old. To count the
// dead takes 12 ms a million. The lock of the table's partition must be held.
func (t *table) deadStats(now, old int64) memtable.Stats {
	if !t.ks.keeps(t.c, now) {
		return memtable.Stats{}
	}
	d, policy := &t.dead, t.c.Policy()
	if old == 0 || d.policy != policy || now-d.at > old {
		*d = deadFigures{t.DeadStats(policy.DeadLimits(now)), policy, now}
	}
	return d.Stats
}

// living returns the number of living items of a swept table. The lock of its partition must be held.
func (t *table) living(now int64) int { return t.Len() - t.deadStats(now, 0).Items }
