package keyspace

import (
	"cmp"
	"strings"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// find returns the living entry of an id, nil if there is none. It removes a dead one that is purgeable:
//  1. the entry leaves the table and is absent for everybody from here on;
//  2. the removal is not journalled, unless this transaction has written the item: after a restart the policy
//     kept on disk makes it dead again (expiry.Policy);
//  3. the removal counts as lazy.
func (tx *Tx) find(p *partition, c *Container, id string) *memtable.Entry {
	_, e := tx.lookup(p, c, id)
	return e
}

// lookup is find with the entry's handle.
func (tx *Tx) lookup(p *partition, c *Container, id string) (memtable.Handle, *memtable.Entry) {
	t := c.tables[p.Number]
	if t == nil {
		tx.saw(p.LastRemoval)
		return 0, nil
	}
	h, e := t.Lookup(id)
	if e == nil {
		tx.saw(p.LastRemoval)
		return 0, nil
	}
	tx.saw(LSN(e.LSN()))
	if e.Dead(c.Policy(), tx.now) {
		if !e.Within(tx.ks.purgeable(c, tx.now)) {
			tx.kept = true
			return 0, nil
		}
		tx.noteDeath(t, e)
		t.Remove(e)
		tx.expire(t, e)
		tx.ks.purge.CountLazy(1)
		return 0, nil
	}
	if e.Collection() && t.IsHollow(e, c.Policy().DeadLimits(tx.now)) {
		tx.kept = true
		return 0, nil
	}
	return h, e
}

// expire reports and releases an entry that was removed because it is dead. If the transaction has changed
// the rules or written the item, the death is not certain before the transaction is.
func (tx *Tx) expire(t *table, e *memtable.Entry) {
	if !tx.changed && !e.Changing() {
		locked{tx.ks, t.P}.expire(t, e, tx.now)
	} else if tx.OnDeath != nil {
		tx.OnDeath(t.C, t.ID(e))
	}
	if !t.P.Watchers.Empty() && (tx.changed || e.Changing()) {
		tx.willTell(t.P, t.C, strings.Clone(t.ID(e)))
	}
	tx.release(t, e)
}

// release releases an entry that was found dead and removed. It waits for the end if the transaction still
// needs the entry, to write it or to take it back; then the partition is locked until the end.
//
// If the transaction itself has written the item, the write is not journalled (see encode), but its removal
// is: the overwritten item may have an end that has not come.
func (tx *Tx) release(t *table, e *memtable.Entry) {
	if e.Changing() {
		tx.changes.Deleted(t, e)
	}
	if tx.changed || e.Changing() {
		tx.changes.Removed(t, e)
	} else {
		t.Release(e)
	}
}

// Get returns the item under an id if it lives. It removes a dead one from memory.
func (tx *Tx) Get(c *Container, id string) (Item, bool) {
	it, _, found := tx.GetEncoded(c, id)
	return it, found
}

// GetEncoded returns what Get and Encoding return, at the cost of one of them.
func (tx *Tx) GetEncoded(c *Container, id string) (it Item, n Encoding, found bool) {
	p := tx.partition(id)
	h, e := tx.lookup(p, c, id)
	if e == nil {
		return it, n, false
	}
	t := c.tables[p.Number]
	if k := tx.ks.evictor.Tracker(); k != nil {
		tx.touch(k, t, h, e)
	}
	return t.Item(e), e.Encoding(), true
}

// Memory estimates the memory of the item under an id in bytes; false if there is none.
func (tx *Tx) Memory(c *Container, id string) (int64, bool) {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	if e == nil {
		return 0, false
	}
	memory := e.Memory()
	if elements := collectionOf(c.tables[p.Number], e); elements != nil {
		memory += elements.Size()
	}
	return memory, true
}

// Put stores an item under an id, whether there is one or not, and returns it. Its clock starts now. expireAt
// is expiry.Inherit, expiry.Never or a moment in ms; one that has passed makes sense only in a container that
// is off or on hold. A container on hold keeps an item that is there: see Veto.
//
// A large body is copied, unless it was prepared or is the one that Get has returned of this item: then only
// the header is written, in memory and to the journal.
func (tx *Tx) Put(c *Container, id string, kind Kind, body string, expireAt int64) Item {
	return tx.PutEncoded(c, id, kind, body, expireAt, record.Chosen)
}

// PutEncoded is Put and SetEncoding, at the cost of one of them. Chosen keeps the encoding of a body that was
// there.
func (tx *Tx) PutEncoded(c *Container, id string, kind Kind, body string, expireAt int64, n Encoding) Item {
	return tx.put(c, id, Item{Kind: kind, Body: body, TS: tx.now, ExpireAt: expireAt}, n)
}

// put stores an item as written at its TS. It gets a new version.
func (tx *Tx) put(c *Container, id string, it Item, n Encoding) Item {
	p := tx.partition(id)
	h, e := tx.lookup(p, c, id)
	if e != nil && c.Policy().Hold != "" && tx.vetoes(c, e) {
		return c.tables[p.Number].Item(e)
	}
	return tx.putEntry(p, c, h, e, id, it, n)
}

// putEntry is put in the place of an entry that was looked up; nil: there is none.
func (tx *Tx) putEntry(p *partition, c *Container, h memtable.Handle, e *memtable.Entry, id string, it Item, n Encoding) Item {
	t := c.tables[p.Number]
	if t == nil {
		t = tx.ks.tables.Open(c, p)
		tx.noteTable(t)
	}
	it.Version = p.NextVersion()
	own := tx.bodies.Find(it.Body)
	switch {
	case e != nil:
		tx.logElements(t, e, it)
	case tx.kept:
		tx.bury(t, id, c.Policy().DeadLimits(tx.now))
	}
	was := e
	e = tx.setEntry(t, h, e, id, it, own)
	if k := tx.ks.evictor.Tracker(); k != nil && was != nil {
		tx.touch(k, t, h, e)
	}
	if n != record.Chosen {
		e.SetEncoding(n)
	}
	t.NoteDue(it.TS, it.ExpireAt)
	tx.alert(p, c, id)
	return t.Item(e)
}

// setEntry stores an item in the place of an entry, which it returns; nil: there is none. own is the body, if
// it was prepared.
func (tx *Tx) setEntry(t *table, h memtable.Handle, e *memtable.Entry, id string, it Item, own *memtable.Body) *memtable.Entry {
	switch {
	case e == nil:
		_, e = t.Insert(id, it, own)
		tx.changes.Inserted(t, e)
	case e.Changing() && !tx.changes.IsQuiet(e):
		t.Overwrite(h, e, id, it, own) // Rollback needs only what was there before the transaction
	default:
		if !e.Changing() {
			tx.changes.Before(t, e)
		}
		t.Replace(h, e, id, it, own) // Close frees the old record
	}
	tx.changes.Written(t, e)
	return e
}

// Delete removes the item under an id for a client, living or dead, unless its container is on hold, and
// reports whether it lived. If the container's log has what clients delete, one that lived has an entry. With
// its body that frees no room, so a full disk vetoes it.
func (tx *Tx) Delete(c *Container, id string) bool {
	return tx.delete(c, id, c.deaths != nil && c.log.Deletes)
}

// Remove is Delete of what a client has not deleted: it has gone elsewhere, or is evicted.
func (tx *Tx) Remove(c *Container, id string) bool { return tx.delete(c, id, false) }

func (tx *Tx) delete(c *Container, id string, logged bool) bool {
	p := tx.partition(id)
	e := tx.find(p, c, id)
	t := c.tables[p.Number]
	if e == nil {
		if tx.kept && c.Policy().Hold == "" && tx.buries(c) {
			tx.bury(t, id, c.Policy().DeadLimits(tx.now))
		}
		return false
	}
	if tx.vetoes(c, e) {
		return false
	}
	if logged {
		if err := tx.ks.Writable(); err != nil && c.log.Bodies {
			tx.veto = cmp.Or(tx.veto, err)
			return false
		}
		tx.logDeletion(t, e, 0)
	} else {
		tx.logElements(t, e, Item{})
	}
	tx.alert(p, c, id)
	tx.removeItem(t, e)
	return true
}

// Encoding is how Redis holds a plain key: see [record.Chosen].
type Encoding = record.Encoding

const Chosen, Compact, Raw, Text = record.Chosen, record.Compact, record.Raw, record.Text

// Encoding returns how Redis holds the item under an id.
func (tx *Tx) Encoding(c *Container, id string) (n Encoding) {
	if e := tx.find(tx.partition(id), c, id); e != nil {
		n = e.Encoding()
	}
	return n
}

// SetEncoding sets how Redis holds the item under an id, until the next write of its body. It is not on disk.
func (tx *Tx) SetEncoding(c *Container, id string, n Encoding) {
	if e := tx.find(tx.partition(id), c, id); e != nil && tx.veto == nil {
		e.SetEncoding(n)
	}
}
