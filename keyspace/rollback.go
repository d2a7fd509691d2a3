package keyspace

import (
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// inverse takes back one change of a transaction. An item has one, back to its state before the transaction,
// however often the transaction has changed it.
type inverse struct {
	t   *table
	e   *memtable.Entry
	was int    // index in Tx.was of the former state, notThere if there was none
	f   func() // instead of all that: takes back a change of the catalogue
}

const notThere = -1

// Rollback takes back all changes of the transaction and closes it. Only versions are used up, and items that
// were found dead stay removed: they are dead without the transaction too. The returned LSN covers what the
// transaction has revealed.
//
// It is for a command that has panicked. If even the rollback panics, the process ends: the journal on disk is
// sound, memory may not be.
func (tx *Tx) Rollback() LSN {
	defer endProcessOnPanic()
	for _, u := range slices.Backward(tx.undos) {
		if u.f != nil {
			u.f()
		} else {
			tx.revert(u)
		}
	}
	clear(tx.changes)
	clear(tx.removed)
	tx.changes, tx.removed, tx.group, tx.alerted = tx.changes[:0], tx.removed[:0], tx.group[:0], nil
	tx.replaced, tx.buried, tx.logged = false, nil, nil
	return tx.Close()
}

// revert restores an item to its former state.
func (tx *Tx) revert(u inverse) {
	switch {
	case u.was != notThere:
		u.t.Restore(u.e, &tx.was[u.was])
		if u.t.timer != nil {
			u.t.noteDueLocked(u.e.Moments())
		}
	case u.e.Present():
		u.t.Remove(u.e)
		u.t.p.releaseLocked(u.t, u.e)
	}
}

// onRollback has Rollback call f, before the functions that were passed earlier.
func (tx *Tx) onRollback(f func()) { tx.undos = append(tx.undos, inverse{f: f}) }

// noteChange records an entry before the transaction changes or removes it for the first time.
func (tx *Tx) noteChange(t *table, e *memtable.Entry) {
	tx.undos = append(tx.undos, inverse{t: t, e: e, was: len(tx.was)})
	tx.was = append(tx.was, *e)
}

// noteInsert records that the transaction has inserted an entry.
func (tx *Tx) noteInsert(t *table, e *memtable.Entry) {
	tx.undos = append(tx.undos, inverse{t: t, e: e, was: notThere})
}

// noteDeath is noteChange for an entry that is found dead: an item that has died by a rule which the transaction
// itself has changed lives after a rollback.
func (tx *Tx) noteDeath(t *table, e *memtable.Entry) {
	if tx.changed && !e.Changing() {
		tx.noteChange(t, e)
	}
}

// noteDeaths is noteDeath for all entries that a sweep of a table would remove.
func (tx *Tx) noteDeaths(t *table, purgeable expiry.Limits) {
	if tx.changed {
		t.EachDead(purgeable, func(e *memtable.Entry) { tx.noteDeath(t, e) })
	}
}

// noteContainer records a container, but for its tables, before it is made, changed or dropped.
func (tx *Tx) noteContainer(c *Container) {
	cat := &tx.ks.catalogue
	listed, dropped := cat.byName[c.name] == c, len(cat.dropped)
	created, number, lastDB, policy, history := c.created, c.number, c.lastDB, c.policy.Load(), c.history.Load()
	replaced, swapped, gone := c.replaced, c.swapped, c.dropped
	revived, undone, deaths, log := c.revived, c.undone, c.deaths, c.log
	tx.onRollback(func() {
		if cat.dirty[c.number] == c {
			cat.dirty[c.number] = nil
		}
		c.created, c.number, c.lastDB = created, number, lastDB
		c.replaced, c.swapped, c.dropped = replaced, swapped, gone
		c.revived, c.undone, c.deaths, c.log = revived, undone, deaths, log
		c.policy.Store(policy)
		cat.setHistory(c, history)
		switch is := cat.byName[c.name] == c; {
		case listed && !is:
			cat.add(c)
		case is && !listed:
			cat.remove(c)
		}
		if cat.dirty[number] = nil; listed {
			cat.dirty[number] = c
		}
		cat.dropped = cat.dropped[:dropped]
	})
}

// noteTable records that the transaction has made a table.
func (tx *Tx) noteTable(t *table) {
	tx.onRollback(t.detachLocked)
}

// noteDetach records the tables of a container before they are detached.
func (tx *Tx) noteDetach(c *Container) {
	tables := slices.Clone(c.tables)
	tx.onRollback(func() {
		for t := range tables.each {
			t.attachLocked()
		}
	})
}

// noteSwap records that two containers exchange their tables.
func (tx *Tx) noteSwap(a, b *Container) {
	tx.onRollback(func() { swapTablesLocked(a, b) })
}
