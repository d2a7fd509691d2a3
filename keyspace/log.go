package keyspace

import (
	"math"
	"sync"
	"sync/atomic"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/streamid"
)

// The log of deaths
//
// A container may log its deaths by a rule, and what clients delete: see package deathlog for the entries.
// They are items of a hidden container.
//
//  1. The purge and writers bury a dead item: its delete and its entry are one atomic group of the journal.
//     Readers leave it where it lies.
//  2. An entry lies in the partition of the item that died, so a burial needs one lock.
//  3. Ids are drawn under that lock. So a reader that notes the last id before it locks one partition after
//     the other misses no entry up to that id: the transaction that drew it holds the lock until the entry is
//     there.
//  4. Whenever entries leave a partition, the item of the log's state is written in the same group.

// LogSettings are those of a container's log of deaths.
type LogSettings struct {
	Seconds int64 // for which an entry is kept; 0: no log
	MaxLen  int64 // the most entries
	Bodies  bool  // entries have the bodies of the items
	Deletes bool  // what clients delete has entries, too
}

// deathLog is the log of a container in memory.
type deathLog struct {
	ids    deathlog.Generator
	length atomic.Int64          // entries, with the expired ones that were not removed yet
	c      *Container            // the hidden container of the entries
	owner  *Container            // changed while all partitions are locked
	groups map[string]*Container // those of the groups that read it, by name
}

// Log returns the settings of the container's log. ok is false if there is none. A partition must be locked.
func (c *Container) Log() (s LogSettings, ok bool) {
	if c.deaths == nil {
		return s, false
	}
	return LogSettings{int64(c.deaths.c.Policy().Default), c.log.MaxLen, c.log.Bodies, c.log.Deletes}, true
}

// logs reports whether the removal of the dead of a container is journalled: their deaths are logged, or it
// is a log.
func (c *Container) logs() bool { return c.deaths != nil || c.hidden != nil }

// due returns the limits of a container's items that the purge and writers may remove at a moment in ms. A
// partition must be locked.
func (ks *Keyspace) due(c *Container, now int64) expiry.Limits {
	if now < ks.keepDead.Load() {
		return expiry.NoLimits
	}
	return c.retention.Purgeable(c.Policy(), now)
}

// logDeath adds the entry of an item that is about to be removed because it is dead, or was, unless it died
// before the log was switched on. Its partition must be locked.
func (tx *Tx) logDeath(t *table, e *memtable.Entry) {
	log := t.C.deaths
	id, it := t.IDAndItem(e)
	d := deathlog.Death(id, it, t.C.history.Load(), tx.now, t.C.log.Bodies)
	d.Elements = tx.logElementsUntil(t, e, d.At)
	if d.At < log.c.created { // whether it was found before depends on the purge, and on crashes
		return
	}
	tx.addEntry(t, &d)
}

// logDeletion adds the entry of an item that a client is about to delete. Of a key in pages it has removed
// some elements before.
func (tx *Tx) logDeletion(t *table, e *memtable.Entry, before int64) {
	id, it := t.IDAndItem(e)
	d := deathlog.Deletion(id, it, t.C.history.Load(), tx.now, t.C.log.Bodies)
	d.Elements = tx.logElementsUntil(t, e, tx.now) + before
	tx.addEntry(t, &d)
}

// addEntry adds an entry of an item of a table. It gets its id.
func (tx *Tx) addEntry(t *table, d *deathlog.Entry) {
	log := t.C.deaths
	lt := tx.openLog(log, t.P)
	d.ID = log.ids.Next(tx.now)
	var entry *memtable.Entry
	entry, tx.buf = lt.Part.Insert(d, tx.now, tx.buf)
	tx.changes.Inserted(lt, entry)
	tx.changes.Written(lt, entry)
	lt.NoteDue(entry.Moments())
	if len(tx.logged) == 0 || tx.logged[len(tx.logged)-1] != t.C {
		tx.logged = append(tx.logged, t.C)
	}
}

// openLog returns the table of a log in a partition, and makes it if need be. The state comes first in it.
func (tx *Tx) openLog(log *deathLog, p *partition) *table {
	t := log.c.tables[p.Number]
	if t == nil {
		t = tx.ks.tables.Open(log.c, p)
		tx.noteTable(t)
		tx.saveLogState(t, streamid.ID{})
	}
	return t
}

// saveLogState writes the state of a log in a partition before entries leave it. deleted is the greatest id
// that XDEL is about to remove, zero for none.
func (tx *Tx) saveLogState(t *table, deleted streamid.ID) {
	s := t.Part.Stored(deleted)
	tx.setItem(t, t.Part.StateID(), s.Item(tx.now, t.P.NextVersion()))
}

// setItem stores an item in a table of a hidden container.
func (tx *Tx) setItem(t *table, id string, it Item) {
	h, e := t.Lookup(id)
	tx.setEntry(t, h, e, id, it, nil)
}

// removeItem removes an item from a table.
func (tx *Tx) removeItem(t *table, e *memtable.Entry) {
	if !e.Changing() {
		tx.changes.Before(t, e)
	}
	t.Remove(e)
	tx.noteRemoved(t, e)
}

// noteRemoved journals the removal of an item and releases it when the transaction closes.
func (tx *Tx) noteRemoved(t *table, e *memtable.Entry) {
	tx.changes.Deleted(t, e)
	tx.changes.Removed(t, e)
	if len(tx.removed) == 0 || tx.removed[len(tx.removed)-1] != t.P {
		tx.removed = append(tx.removed, t.P)
	}
}

// reportBurials reports the deaths that the transaction has logged, which its group holds. The locks are
// held.
func (tx *Tx) reportBurials(lsn LSN) {
	if report := tx.ks.opt.OnDeath; report != nil {
		for _, b := range tx.buried {
			report(b.Table.C, b.Table.ID(b.Entry), lsn)
		}
	}
	if report := tx.ks.opt.OnShed; report != nil {
		for _, s := range tx.sheds {
			report(s.c, s.id, s.kind, s.gone, lsn)
		}
	}
	if report := tx.ks.opt.OnLogged; report != nil {
		for _, c := range tx.logged {
			report(c.name)
		}
	}
}

// buriers has transactions of the purge for reuse.
var buriers = sync.Pool{New: func() any { return new(Tx) }}

// sampleLogged is Sample for items whose removal is journalled: as one atomic group. Nothing is buried while
// the disk fails. The lock of the table's partition is held, and released at the end.
func (ks *Keyspace) sampleLogged(t *table, n int) (s expiry.Sample) {
	if ks.Writable() != nil || ks.follows() {
		t.SetTimer(ks.Now())
		t.P.Mu.Unlock()
		return s
	}
	tx := buriers.Get().(*Tx)
	tx.beginLocked(ks, t.P, "")
	log, due := t.C.deaths, ks.due(t.C, tx.now)
	if t.Part != nil && !t.NoneWithin(due) {
		tx.saveLogState(t, streamid.ID{})
	}
	s = t.Table.Sample(due, n, func(e *memtable.Entry) {
		if log != nil {
			tx.logDeath(t, e)
			tx.buried = append(tx.buried, tableEntry{Table: t, Entry: e})
			locked{ks, t.P}.alertDeath(t, e)
		}
		tx.noteRemoved(t, e)
	})
	t.SetTimer(tx.now)
	if tx.Close() == ks.journal.Last() {
		ks.uncommitted.Store(true)
	}
	buriers.Put(tx)
	_ = ks.Throttle(0) // a failure is noted, and tried again
	if s.Internal = log == nil; t.Part != nil {
		ks.trimLog(t, &s)
	}
	return s
}

// commitBurials commits what the purge has journalled: it may be that no client waits for it.
func (ks *Keyspace) commitBurials() {
	if last := ks.journal.Last(); ks.uncommitted.Swap(false) && !ks.Committed(last) {
		_ = ks.journal.Wait(last) // a failure is noted, and tried again
	}
}

// trimPiece is the number of entries that trimLog removes at a time.
const trimPiece = 2048

// trimLog removes the oldest entries of the log to which a table belongs, if there are more than may be: some
// of them.
func (ks *Keyspace) trimLog(t *table, s *expiry.Sample) {
	t.P.Mu.Lock()
	var log *deathLog
	excess := int64(0)
	owner := t.C.owner()
	if !t.Gone() && owner != nil && owner.Policy().Hold == "" {
		log = owner.deaths
		excess = log.length.Load() - owner.log.MaxLen
	}
	t.P.Mu.Unlock()
	if excess <= 0 {
		return
	}
	var tx Tx
	ks.BeginSweep(&tx)
	cut, n := tx.Deaths(owner).Oldest(min(excess, trimPiece))
	tx.Close()
	for _, p := range ks.partitions {
		s.Dead += ks.trimPart(log, p, cut)
	}
	s.More = s.More || excess > n && n > 0
}

// trimPart removes the entries of a log in a partition up to an id.
func (ks *Keyspace) trimPart(log *deathLog, p *partition, cut streamid.ID) (n int) {
	p.Mu.Lock()
	tx := buriers.Get().(*Tx)
	tx.beginLocked(ks, p, "")
	defer buriers.Put(tx)
	defer tx.Close()
	t := log.c.tables[p.Number]
	if t == nil || t.Gone() || t.C.Policy().Hold != "" { // on hold since trimLog has looked
		return 0
	}
	return tx.removeEntries(t, t.Part.Upto(cut), streamid.ID{})
}

// removeEntries removes entries from a table of a log. deleted is as in saveLogState.
func (tx *Tx) removeEntries(t *table, list []*memtable.Entry, deleted streamid.ID) int {
	if len(list) > 0 {
		tx.saveLogState(t, deleted)
	}
	for _, e := range list {
		tx.removeItem(t, e)
	}
	return len(list)
}

// buryWithin buries the items of a container within limits. It takes time in proportion to them. The locks of
// all partitions must be held.
func (tx *Tx) buryWithin(c *Container, l expiry.Limits) {
	if tx.ks.Writable() != nil {
		return
	}
	for t := range c.each {
		tx.shedDue(t, l, math.MaxInt)
		var dead []*memtable.Entry
		t.EachDead(l, func(e *memtable.Entry) { dead = append(dead, e) })
		for _, e := range dead {
			tx.buryEntry(t, e, t.ID(e))
		}
	}
}

// buryBefore buries the dead of a container whose items are about to go, but for those that Undo may bring
// back. to is where they go. It does nothing if neither has a log.
func (tx *Tx) buryBefore(c, to *Container) {
	if c.deaths == nil && to.deaths == nil { // else the deaths would be logged there
		return
	}
	due := c.Policy().DeadLimits(tx.now)
	if tx.ks.undo.End(tx.now) != 0 {
		due = c.retention.Purgeable(c.Policy(), tx.now)
	}
	tx.buryWithin(c, due)
}

// evictEntry removes an entry of a log to free memory, if it is the one that was drawn.
func (ks *Keyspace) evictEntry(v evictable) LSN {
	p := v.t.P
	p.Mu.Lock()
	var tx Tx
	tx.beginLocked(ks, p, "")
	if t := v.t; !t.Gone() && t.C.Policy().Hold == "" {
		if e := t.Find(v.id); e != nil && e.Version() == v.version {
			id, _, _ := deathlog.SplitID(v.id)
			tx.removeEntries(t, []*memtable.Entry{e}, id)
		}
	}
	return tx.Close()
}
