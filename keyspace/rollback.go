package keyspace

import (
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/locks"
	"mayfly/keyspace/memtable"
)

// Rollback takes back all changes of the transaction and closes it. Only versions are used up, and items that
// were found dead stay removed: they are dead without the transaction too. The returned LSN covers what the
// transaction has revealed.
//
// It is for a command that has panicked. If even the rollback panics, the process ends: the journal on disk
// is sound, memory may not be.
func (tx *Tx) Rollback() LSN {
	defer locks.EndProcessOnPanic()
	tx.changes.Rollback()
	clear(tx.removed)
	tx.group.Reset()
	tx.removed, tx.alerted = tx.removed[:0], nil
	tx.replaced, tx.buried, tx.logged, tx.sheds = false, nil, nil, nil
	tx.untell()
	return tx.Close()
}

// onRollback has Rollback call f, before the functions that were passed earlier.
func (tx *Tx) onRollback(f func()) { tx.changes.OnRollback(f) }

// noteDeath notes an entry that is found dead before it is removed: an item that has died by a rule which the
// transaction itself has changed lives after a rollback.
func (tx *Tx) noteDeath(t *table, e *memtable.Entry) {
	if tx.changed && !e.Changing() {
		tx.changes.Before(t, e)
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
	tx.noteState(c)
	cat := &tx.ks.catalogue
	listed, dropped := cat.ByName[c.name] == c, len(cat.dropped)
	created, number, lastDB, policy, history := c.created, c.number, c.lastDB, c.policy.Load(), c.history.Load()
	replaced, swapped, gone := c.replaced, c.swapped, c.dropped
	revived, undone, deaths, log := c.revived, c.undone, c.deaths, c.log
	tx.onRollback(func() {
		if cat.IsChanged(c) {
			cat.Gone(c.number)
		}
		c.created, c.number, c.lastDB = created, number, lastDB
		c.replaced, c.swapped, c.dropped = replaced, swapped, gone
		c.revived, c.undone, c.deaths, c.log = revived, undone, deaths, log
		c.policy.Store(policy)
		cat.setHistory(c, history)
		switch is := cat.ByName[c.name] == c; {
		case listed && !is:
			cat.Add(c)
		case is && !listed:
			cat.Remove(c)
		}
		if cat.Gone(number); listed {
			cat.Changed(c)
		}
		cat.dropped = cat.dropped[:dropped]
		tx.recorded = append(tx.recorded, c) // Close sets the timers of its tables
	})
}

// noteTable records that the transaction has made a table.
func (tx *Tx) noteTable(t *table) {
	tx.onRollback(t.Leave)
}

// noteDetach records the tables of a container before they are detached.
func (tx *Tx) noteDetach(c *Container) {
	tables := slices.Clone(c.tables)
	tx.onRollback(func() {
		for t := range tables.Each {
			t.Return()
		}
	})
}
