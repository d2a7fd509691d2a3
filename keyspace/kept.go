package keyspace

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// The dead that stay
//
// A dead item is absent for everybody. It is removed once it is purgeable, which may be later: while clients
// are paused, or while a former policy of its container may rule again. Until then:
//
//  1. readers leave it where it lies, in its indexes too, and figures leave it out. Of a container with a log
//     of deaths they leave all;
//  2. who writes or deletes its id buries it first, in the same transaction. If it could live again, its
//     removal is journalled and rolled back like a delete;
//  3. eviction does not draw it.

// KeepDeadUntil keeps the items that are dead in memory until a time (ms), as CLIENT PAUSE does: nothing
// removes them and no death is reported. They are absent for everybody nevertheless. 0 ends that. A write
// removes the dead item that it replaces.
func (ks *Keyspace) KeepDeadUntil(ms int64) {
	ks.keepDead.Store(ms)
	ks.holdTimers()
}

// purgeable returns the limits of a container's items that readers may remove at a moment in ms: none if the
// removal is journalled. A partition must be locked.
func (ks *Keyspace) purgeable(c *Container, now int64) expiry.Limits {
	if c.logs() {
		return expiry.NoLimits
	}
	if c.aside != nil {
		return ks.purgeableAside(c, now)
	}
	return ks.due(c, now)
}

// purgeableAside is purgeable for a container that is set aside. Nothing removes its dead, but backups leave
// them out, unless their deaths are to be logged once they are brought back. A partition must be locked.
func (ks *Keyspace) purgeableAside(c *Container, now int64) expiry.Limits {
	if listed := ks.catalogue.ByName[c.name]; now < ks.keepDead.Load() || listed != nil && listed.logs() {
		return expiry.NoLimits
	}
	entries := c.history.Load().Entries
	return expiry.RetentionOf(entries[:len(entries)-1]).Purgeable(c.Policy(), now) // the last says why it is set aside
}

// keeps reports whether dead items of a container stay at a moment in ms. A partition must be locked.
func (ks *Keyspace) keeps(c *Container, now int64) bool {
	return now < ks.keepDead.Load() || c.retention.Open(now) || c.logs()
}

// kept returns what selects the dead that stay in a container at a moment in ms, nil if none do. A partition
// must be locked.
func (ks *Keyspace) kept(c *Container, now int64) *memtable.Kept {
	if !ks.keeps(c, now) {
		return nil
	}
	return &memtable.Kept{Dead: c.Policy().DeadLimits(now), Purgeable: ks.purgeable(c, now)}
}

// buries reports whether the delete of an id removes the dead item there: a policy that rules again must not
// bring it back, and a death has to be logged, unless the disk fails.
func (tx *Tx) buries(c *Container) bool {
	return c.retention.Open(tx.now) || c.deaths != nil && tx.ks.Writable() == nil
}

// bury removes the item of an id from a table, which may be nil, if it is within limits of the dead and
// lookup has left it there. Else it removes the dead elements of a living one. Its partition must be locked.
func (tx *Tx) bury(t *table, id string, l expiry.Limits) {
	if t == nil {
		return
	}
	switch e := t.Find(id); {
	case e == nil:
	case e.Within(l):
		tx.buryEntry(t, e, id)
	case e.Collection() && !e.Dead(t.C.Policy(), tx.now): // else what ends in it stays with it
		tx.shedKey(t, e, l.ByOwnTTL, true)
	}
}

// buryEntry is bury for the entry of an id.
func (tx *Tx) buryEntry(t *table, e *memtable.Entry, id string) {
	if t.C.deaths != nil {
		tx.logDeath(t, e)
	}
	tx.removeItem(t, e)
	tx.ks.purge.CountLazy(1)
	switch {
	case tx.OnDeath != nil:
		tx.OnDeath(t.C, id)
		tx.willTell(t.P, t.C, id)
	case t.C.deaths != nil:
		tx.buried = append(tx.buried, tableEntry{Table: t, Entry: e})
		locked{tx.ks, t.P}.alertDeath(t, e)
	default:
		locked{tx.ks, t.P}.expire(t, e, tx.now)
	}
}

// mostAge is the age in ms of figures that need not be exact.
const mostAge = 1000
