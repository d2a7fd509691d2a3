package keyspace

import (
	"slices"

	"mayfly/expiry"
)

// undo takes one change of a transaction back. Of an item written or deleted there is one, however often
// the transaction has changed it: back to where it was before the first time.
type undo struct {
	t   *table
	e   *entry
	was int    // index in Tx.was of what it was, noRecord if it was not there
	f   func() // instead of all that: a change of the catalogue
}

const noRecord = -1

// Rollback takes back all that the transaction has changed, as if it had never been, and closes it. No
// trace of it is left but in the versions, which are not used again, and in what it has found dead,
// which is dead with it or without it. The ticket covers what it has revealed.
//
// It is for a command that has failed inside (a panic). If that has left a table in such a state that
// even this fails, the process ends: the journal knows better than the memory.
func (tx *Tx) Rollback() LSN {
	defer func() {
		if p := recover(); p != nil {
			endProcess(p)
		}
	}()
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
	return tx.Close()
}

// revert brings an item back to what it was.
func (tx *Tx) revert(u undo) {
	e, t := u.e, u.t
	switch {
	case u.was == noRecord && !e.has(present): // it came and went
	case u.was == noRecord:
		p := tx.ks.partitionOf(t.id(e))
		t.remove(e)
		p.forget(t, e)
	case !e.has(present):
		h, seq := e.next, e.leftSeq() // see remove
		t.revert(e, &tx.was[u.was])
		t.readmit(h, e, seq)
	default:
		h, before := t.handle(e), t.memory
		t.account(e, -1)
		t.discharge(e)
		t.revert(e, &tx.was[u.was])
		t.account(e, 1)
		t.p.used.Add(t.memory - before)
		t.enlist(e, h)
	}
}

// revert makes an entry what it was, but for its places in lists, the table's dirty list among them:
// what the store learns anew it has known already.
func (t *table) revert(e, was *entry) {
	if e.text != was.text {
		t.drop(e.text)
	}
	marked, next, place, rank := e.flags&dirty, e.next, e.place, e.rank
	*e = *was
	e.flags = e.flags&^dirty | marked
	e.next, e.place, e.rank = next, place, rank
}

// readmit puts an entry back that was removed and not forgotten, into its old berth, so that a scan which
// has passed that, or is yet to come to it, finds the item once.
func (t *table) readmit(h handle, e *entry, seq uint64) {
	t.index.insert(&t.slab, h, e)
	e.place = t.roster.refill(h, seq, func(h handle, place uint32) { t.slab.at(h).place = place })
	t.account(e, 1)
	t.p.used.Add(e.memory())
	t.enlist(e, h)
}

// noteChange remembers what an entry of a table is, before the transaction changes or removes it for the
// first time.
func (tx *Tx) noteChange(t *table, e *entry) {
	tx.undos = append(tx.undos, undo{t: t, e: e, was: len(tx.was)})
	tx.was = append(tx.was, *e)
}

// noteArrival remembers that an entry has come to a table.
func (tx *Tx) noteArrival(t *table, e *entry) {
	tx.undos = append(tx.undos, undo{t: t, e: e, was: noRecord})
}

// noteDeath is noteChange for an entry that is found dead: what has died by a rule that the transaction
// itself has changed lives without it.
func (tx *Tx) noteDeath(t *table, e *entry) {
	if tx.changed && !e.has(changing) {
		tx.noteChange(t, e)
	}
}

// noteDeaths is noteDeath for all entries of a table that a sweep would find dead.
func (tx *Tx) noteDeaths(t *table, policy *expiry.Policy) {
	if !tx.changed {
		return
	}
	heirs, mortals := policy.DeadTo(tx.now)
	note := func(limit int64) func(h handle) {
		return func(h handle) {
			if e := t.slab.at(h); e.when() <= limit {
				tx.noteDeath(t, e)
			}
		}
	}
	t.heirs.each(heirs, note(heirs))
	t.mortals.each(mortals, note(mortals))
}

// noteContainer remembers what a container is, but for its tables, before it is made, changed or dropped.
func (tx *Tx) noteContainer(c *Container) {
	cat := &tx.ks.catalogue
	listed, dropped := cat.byName[c.name] == c, len(cat.dropped)
	created, number, policy := c.created, c.number, c.policy.Load()
	tx.undos = append(tx.undos, undo{f: func() {
		if cat.dirty[c.number] == c {
			cat.dirty[c.number] = nil
		}
		c.created, c.number = created, number
		c.policy.Store(policy)
		switch is := cat.byName[c.name] == c; {
		case listed && !is:
			cat.byName[c.name] = c
			cat.memory.Add(c.memory())
		case is && !listed:
			delete(cat.byName, c.name)
			cat.memory.Add(-c.memory())
		}
		if cat.dirty[number] = nil; listed {
			cat.dirty[number] = c
		}
		cat.dropped = cat.dropped[:dropped]
	}})
}

// noteTable remembers that a table was made.
func (tx *Tx) noteTable(t *table) {
	tx.undos = append(tx.undos, undo{f: func() {
		t.part()
		tx.ks.poolList.remove(t.pool)
		t.pool.c.tables[t.pool.p.number] = nil
	}})
}

// noteLetGo remembers the tables of a container, before they are let go.
func (tx *Tx) noteLetGo(c *Container) {
	tables := slices.Clone(c.tables)
	tx.undos = append(tx.undos, undo{f: func() {
		for i, t := range tables {
			if t != nil {
				t.join()
				tx.ks.poolList.add(t.pool)
				c.tables[i] = t
			}
		}
	}})
}

// noteSwap remembers that two containers exchange their tables.
func (tx *Tx) noteSwap(a, b *Container) {
	tx.undos = append(tx.undos, undo{f: func() { swapTables(a, b) }})
}
