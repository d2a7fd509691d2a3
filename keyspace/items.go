package keyspace

import "mayfly/keyspace/record"

// find returns the living entry of an id, nil if there is none. A dead one is removed on the way:
//  1. it leaves the table, so that it is absent for everybody from here on;
//  2. the removal is not journalled, unless this transaction has written it: whoever loads the entry
//     again finds it dead again, since what killed it is kept (expiry.Policy);
//  3. it counts as removed lazily.
func (tx *Tx) find(p *partition, c *Container, id string) *entry {
	_, e := tx.locate(p, c, id)
	return e
}

// locate is find for those who need the entry's handle, too.
func (tx *Tx) locate(p *partition, c *Container, id string) (handle, *entry) {
	t := c.tables[p.number]
	if t == nil {
		tx.saw(p.lastRemoval)
		return 0, nil
	}
	h, e := t.locate(id)
	if e == nil {
		tx.saw(p.lastRemoval)
		return 0, nil
	}
	tx.saw(e.ticket)
	if e.dead(c.Policy(), tx.now) {
		tx.noteDeath(t, e)
		t.remove(e)
		tx.bury(p, c, t, e)
		tx.ks.purge.CountLazy(1)
		return 0, nil
	}
	return h, e
}

// bury lets go of an entry that has been taken out of its table because it is dead. What may have killed it
// is not certain yet if the transaction has changed the rules or has written it.
func (tx *Tx) bury(p *partition, c *Container, t *table, e *entry) {
	if !tx.changed && !e.has(changing) {
		tx.ks.bury(p, c, e, tx.now)
	} else if tx.OnDeath != nil {
		tx.OnDeath(c, t.id(e))
	}
	tx.forget(p, t, e)
}

// departure is an entry that the transaction has removed.
type departure struct {
	p *partition
	t *table
	e *entry
}

// forget has an entry forgotten that has been removed from its table: at once if it was found dead, and at
// the end if what the transaction remembers of it is still needed, to be written or to be taken back.
// Then its partition is locked until the end.
//
// If the transaction itself has written it, that is not journalled (see encode), but that it is gone is:
// what was overwritten may have an end that has not come.
func (tx *Tx) forget(p *partition, t *table, e *entry) {
	if e.has(changing) {
		tx.changes = append(tx.changes, itemChange{del: t.key(e)})
	}
	if tx.changed || e.has(changing) {
		tx.leaving = append(tx.leaving, departure{p, t, e})
	} else {
		p.forget(t, e)
	}
}

// Get returns the item under an id if it lives. One that is dead is removed from memory.
func (tx *Tx) Get(c *Container, id string) (Item, bool) {
	p := tx.partition(id)
	if e := tx.find(p, c, id); e != nil {
		return c.tables[p.number].item(e), true
	}
	return Item{}, false
}

// Memory estimates how much memory the item under an id takes, in bytes; false if there is none.
func (tx *Tx) Memory(c *Container, id string) (int64, bool) {
	if e := tx.find(tx.partition(id), c, id); e != nil {
		return e.memory(), true
	}
	return 0, false
}

// Put stores an item under an id, whether there is one or not; its clock starts now. It returns the
// item as stored. own is expiry.Inherit, expiry.Never or a moment in ms; one that has passed makes
// sense only in a container that is off.
func (tx *Tx) Put(c *Container, id string, kind Kind, body string, own int64) Item {
	p := tx.partition(id)
	h, e := tx.locate(p, c, id)
	t := c.tables[p.number]
	if t == nil {
		t = tx.ks.openTable(c, p)
		tx.noteTable(t)
	}
	it := Item{Kind: kind, Body: body, TS: tx.now, ExpireAt: own, Version: p.nextVersion()}

	tx.buf = record.AppendKey(tx.buf[:0], c.number, id)
	length := len(tx.buf)
	tx.buf = record.Append(tx.buf, record.View(tx.buf), it)
	key, rec := record.View(tx.buf[:length]), record.View(tx.buf[length:])

	switch {
	case e == nil:
		h, e = t.insert(key, rec, it)
		tx.noteArrival(t, e)
	case e.has(changing):
		t.drop(t.replace(h, e, key, rec, it)) // nobody goes back to what the transaction itself has written
	default:
		tx.noteChange(t, e)
		t.replace(h, e, key, rec, it) // see dropOld
	}
	p.touch(t, h, e)
	tx.alert(p, c, id)
	if !e.has(changing) {
		e.mark(changing)
		tx.changes = append(tx.changes, itemChange{t: t, e: e})
	}
	return t.item(e)
}

// Delete removes the item under an id and tells whether it lived.
func (tx *Tx) Delete(c *Container, id string) bool {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	if e == nil {
		return false
	}
	t := c.tables[p.number]
	if !e.has(changing) {
		tx.noteChange(t, e)
	}
	tx.changes = append(tx.changes, itemChange{del: t.key(e)})
	tx.alert(p, c, id)
	t.remove(e)
	tx.leaving = append(tx.leaving, departure{p, t, e})
	tx.removed = append(tx.removed, p)
	return true
}
