package keyspace

import (
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/tables"
)

// Elements with an end of their own
//
// An element that is dead by the policy of its container, as an item with an end would be, is absent for
// everybody. Readers pass over it. It is removed
//
//  1. by the purge, which takes the dead out of pages that are due, as one atomic group with the entries of
//     the log. Only a leader does: others get the pages. A page so shed keeps its time, and so its key the
//     clock; the last element takes the key along;
//  2. by who writes its field, in the same transaction;
//  3. with its key. Then only the log learns of it.

// shedKey is a key of which elements have died.
type shedKey struct {
	c    *Container
	id   string
	kind Kind
	gone bool // with the last of them
}

// logElement adds the entry of an element that has died, unless that was before the log was switched on.
func (tx *Tx) logElement(t *table, key *memtable.Entry, page Item, el elements.Element) {
	if t.C.deaths == nil {
		return
	}
	page.Kind = t.Item(key).Kind
	d := deathlog.ElementDeath(t.ID(key), page, el, t.C.history.Load(), tx.now, t.C.log.Bodies)
	if d.At >= t.C.deaths.c.created {
		tx.addEntry(t, &d)
	}
}

// shedElement notes the death of an element of a key that is about to be overwritten.
func (tx *Tx) shedElement(t *table, key *memtable.Entry, el elements.Element) {
	tx.logElement(t, key, t.Item(key), el)
	tx.ks.shed.Add(1)
	tx.noteShed(t, key, false)
}

// noteShed has the end of the transaction report that elements of a key have died.
func (tx *Tx) noteShed(t *table, key *memtable.Entry, gone bool) {
	id := t.ID(key)
	if n := len(tx.sheds); n > 0 && tx.sheds[n-1].c == t.C && tx.sheds[n-1].id == id {
		tx.sheds[n-1].gone = tx.sheds[n-1].gone || gone
		return
	}
	tx.sheds = append(tx.sheds, shedKey{t.C, strings.Clone(id), t.Item(key).Kind, gone})
}

// logDead adds the entries of the elements in pages of a key that are dead by a limit, in the order of
// fields, and returns how many they are.
func (tx *Tx) logDead(t *table, key *memtable.Entry, pages []*memtable.Entry, limit int64) int64 {
	dead := t.Pages.Collections.DeadIn(pages, limit)
	for i := range dead {
		tx.logElement(t, key, dead[i].Page, dead[i].Element)
	}
	return int64(len(dead))
}

// shedPage leaves the rest of a page, whose other elements are dead and in the log.
func (tx *Tx) shedPage(t *table, page *memtable.Entry, rest []byte, done *shedding) {
	if len(rest) == 0 {
		tx.removeItem(t.Pages, page)
		done.pagesGone = true
		return
	}
	id, it := t.Pages.IDAndItem(page)
	done.version = tx.putPage(t.Pages, t.Pages.Handle(page), page, strings.Clone(id), record.View(rest), it.TS, elements.EndOf(record.View(rest), 0))
}

// shedding is what was done to the pages of a collection.
type shedding struct {
	c         *tables.Collection
	pagesGone bool
	version   uint64 // of the page that was written last
}

// shedKey takes the elements that are dead by a limit out of all pages of a key, and settles it.
func (tx *Tx) shedKey(t *table, key *memtable.Entry, limit int64, report bool) (gone bool) {
	c := collectionOf(t, key)
	if c == nil {
		return false
	}
	due := t.Pages.Collections.Due(c, limit)
	tx.ks.shed.Add(tx.logDead(t, key, due, limit))
	done := shedding{c: c}
	for _, page := range due {
		tx.shedPage(t, page, elements.Shed(t.Pages.Item(page).Body, limit), &done)
	}
	if done.version == 0 && !done.pagesGone {
		return false // none is due
	}
	return tx.settleShed(t, &done, report)
}

// settleShed ends the removal of dead elements of a collection: the key goes with the last. If pages have
// gone, it is written with the time that it has, as a start might have learnt that from them.
func (tx *Tx) settleShed(t *table, done *shedding, report bool) (gone bool) {
	c := done.c
	key := t.At(c.Key)
	id := t.ID(key)
	tx.alert(t.P, t.C, id)
	if gone = c.Count == 0; gone || report {
		tx.noteShed(t, key, gone && report)
	}
	if gone {
		tx.removeItem(t, key)
		return true
	}
	if !done.pagesGone {
		tx.changes.Refreshed(t, key)
		t.Refresh(c.Key, key, key.TS(), done.version)
		return false
	}
	tx.rewriteKey(t, c, t.Item(key).Body)
	return false
}

// rewriteKey writes the key of a collection with a body, and the time that it has.
func (tx *Tx) rewriteKey(t *table, c *tables.Collection, body string) {
	key := t.At(c.Key)
	id, it := t.IDAndItem(key)
	it.Body, it.Version = body, t.P.NextVersion()
	tx.setEntry(t, c.Key, key, id, it, nil)
}

// poppedStay is the time in ms for which entries that were popped stay in their page, about: a page of a busy
// list goes before that, and one whose list rests is written once.
const poppedStay = 60_000

// trimPages writes the pages of a list without the entries that were popped, and the key, with the times that
// they have. It is no change of the list.
func (tx *Tx) trimPages(t *table, c *tables.Collection) {
	head, cs := c.Head, t.Pages.Collections
	for _, number := range []uint64{head.Left.Page, head.Right.Page} {
		if !head.Forget(number) {
			continue
		}
		h, page := cs.Page(c, number)
		id, it := t.Pages.IDAndItem(page)
		tx.putPage(t.Pages, h, page, strings.Clone(id), strings.Clone(cs.Body(c, number)), it.TS, expiry.Never)
	}
	tx.rewriteKey(t, c, string(head.Append(nil)))
}

// samplePages is Sample for a table of pages: it removes some that have no key any more, and takes the dead
// out of some of those that are due. The lock of its partition is held, and released at the end.
func (ks *Keyspace) samplePages(pages *table, n int) (s expiry.Sample) {
	p, t := pages.P, pages.C.tables[pages.P.Number]
	removed, more := p.Collect(0)
	s = expiry.Sample{Drawn: removed, Dead: removed, All: pages.Len(), More: more, Internal: true}
	if ks.Writable() != nil || ks.follows() || t == nil || t.Pages != pages {
		pages.Collections.PutOffPopped(ks.Now(), poppedStay, n)
		pages.SetTimer(ks.Now())
		p.Mu.Unlock()
		return s
	}
	tx := buriers.Get().(*Tx)
	tx.beginLocked(ks, p, "")
	due := ks.due(t.C, tx.now)
	popped := 0
	if tx.now >= ks.keepDead.Load() {
		for _, c := range pages.Collections.TakePopped(tx.now, poppedStay, n) {
			tx.trimPages(t, c)
			popped++
		}
	}
	found := tx.shedDue(t, due, n)
	s.Drawn, s.Dead, s.More = s.Drawn+found+popped, s.Dead+found+popped, s.More || found == n || popped == n
	t.TightenPages(due, tx.now)
	pages.SetTimer(tx.now)
	if tx.Close() == ks.journal.Last() {
		ks.uncommitted.Store(true)
	}
	buriers.Put(tx)
	_ = ks.Throttle(0) // a failure is noted, and tried again
	return s
}

// shedDue takes the dead out of up to n pages of a table within limits, and returns how many it has looked
// at.
func (tx *Tx) shedDue(t *table, due expiry.Limits, n int) int {
	var found []*memtable.Entry
	t.EachDuePage(due, tx.now, n, func(_ *tables.Collection, page *memtable.Entry) { found = append(found, page) })
	var all []*shedding
	of := make(map[*tables.Collection]*shedding)
	for _, page := range found {
		c := t.Pages.Collections.OfPage(t.Pages.ID(page))
		if c == nil || c.Key == 0 || !page.Present() {
			continue // it has become garbage
		}
		if key := t.At(c.Key); key.Within(due) {
			tx.buryEntry(t, key, t.ID(key)) // first, so that the log knows what lived
			continue
		}
		if of[c] == nil {
			of[c] = &shedding{c: c}
			all = append(all, of[c])
		}
		tx.ks.shed.Add(tx.logDead(t, t.At(c.Key), []*memtable.Entry{page}, due.ByOwnTTL))
		tx.shedPage(t, page, elements.Shed(t.Pages.Item(page).Body, due.ByOwnTTL), of[c])
	}
	for _, done := range all {
		tx.settleShed(t, done, true)
	}
	return len(found)
}

// logElements adds the entries of the dead elements of a key that is about to be replaced by an item, or
// removed. There are none to add if they stay, or if RENAME has made them those of another key.
func (tx *Tx) logElements(t *table, key *memtable.Entry, by Item) {
	if t.C.deaths != nil {
		if c := collectionOf(t, key); c != nil && t.At(c.Key) == key && (!by.Kind.IsCollection() || t.Pages.Collections.Of(by.Body) != c) {
			tx.logElementsUntil(t, key, tx.now)
		}
	}
}

// logElementsUntil is logElements for those that have died by a moment in ms. It returns how many elements
// the key had then.
func (tx *Tx) logElementsUntil(t *table, key *memtable.Entry, at int64) (left int64) {
	if !key.Collection() {
		return 0
	}
	h := tx.elementsOf(t, t.Item(key).Body)
	c := h.Collection
	if c == nil {
		return int64(h.Len())
	}
	limit := min(h.Limit, at)
	return int64(c.Len()) - tx.logDead(t, key, t.Pages.Collections.Due(c, limit), limit)
}
