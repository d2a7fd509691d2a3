package keyspace

import (
	"iter"
	"math"
	"slices"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/tables"
)

// ElementsEdit changes the elements of a hash or a set for one command. Close ends it. What it changes
// restarts the clock of the key, and keeps its end.
type ElementsEdit struct {
	Elements      // as they are
	kind     Kind // of what is written
	tx       *Tx
	k        *Container
	id       string
	p        *partition
	t        *table // nil: not made yet
	h        memtable.Handle
	e        *memtable.Entry // nil: there is no such key
	End      int64           // expireAt of the key
	ts       int64           // of what is written

	begun, vetoed bool
	had           int64  // elements in pages, if a log wants to know
	small         []byte // the body, once it was changed and as long as there are no pages
	head          elements.Head
	headChanged   bool
	ending        bool       // elements may have ends
	at            page       // that was looked up last
	buf           []byte     // its body while it is dirty
	gather        *gathering // of many changes, those of a page are stored together; nil: each at once
	version       uint64     // of the page that was written last
}

// gathering is how far many changes are that come in the order of pages.
type gathering struct {
	before int64  // the weight of the collection
	place  uint64 // of the change, as [elements.Place] says
}

// EditElements begins to change the collection of a kind under an id. There may be none: was is the kind of
// what is there, 0 for nothing. If it is another one, only Replace may be called.
func (tx *Tx) EditElements(c *Container, id string, kind Kind) (x ElementsEdit, was Kind) {
	p := tx.partition(id)
	x = ElementsEdit{tx: tx, kind: kind, k: c, id: id, p: p, ts: tx.now}
	x.h, x.e = tx.lookup(p, c, id)
	x.t = c.tables[p.Number]
	x.Limit = c.Policy().DeadLimits(tx.now).ByOwnTTL
	if x.e == nil {
		return x, 0
	}
	if k := tx.ks.evictor.Tracker(); k != nil {
		tx.touch(k, x.t, x.h, x.e)
	}
	it := x.t.Item(x.e)
	if it.Kind == kind {
		x.Elements = tx.elementsOf(x.t, it.Body)
		x.End = it.ExpireAt
	}
	if x.Collection != nil {
		x.head, x.ending = x.Collection.Head, x.Collection.Ending > 0
	}
	return x, it.Kind
}

// Exists reports whether there was such a key, and no field of it was changed.
func (x *ElementsEdit) Exists() bool { return x.e != nil }

// begin prepares the first change. It returns false if a hold forbids it.
func (x *ElementsEdit) begin() bool {
	if x.begun {
		return !x.vetoed
	}
	x.begun = true
	if x.e != nil && x.k.Policy().Hold != "" && x.tx.vetoes(x.k, x.e) {
		x.vetoed = true
		return false
	}
	if x.e == nil && x.tx.kept {
		x.tx.bury(x.t, x.id, x.k.Policy().DeadLimits(x.tx.now))
	}
	switch {
	case x.Collection == nil:
		x.small = append(x.small, x.Body...)
	case x.logsDeletes():
		x.had = int64(x.Elements.Len())
	}
	return true
}

// logsDeletes reports whether the deletion of the key is logged.
func (x *ElementsEdit) logsDeletes() bool { return x.k.deaths != nil && x.k.log.Deletes }

// ByPage yields the indexes of arguments, every step of them, that name elements to change by Get, Set and
// Delete alone. Of many, those of a page come together, and it is stored once. Those that are equal come in
// their order, as all do while there are no pages.
func (x *ElementsEdit) ByPage(args []string, step int) iter.Seq[int] {
	return func(yield func(int) bool) {
		const many, most = 32, 1 << 24
		at := 0
		for ; at < len(args) && (x.Collection == nil || len(args)-at < many*step || len(args) > most); at += step {
			if !yield(at) {
				return
			}
		}
		if at >= len(args) {
			return
		}
		x.gather = &gathering{before: x.Collection.Weight}
		for _, place := range x.head.InOrder(args, at, step) {
			if x.gather.place = place; !yield(elements.IndexIn(place)) {
				return
			}
		}
	}
}

// Get is that of [Elements], with what was changed.
func (x *ElementsEdit) Get(field string) (e Element, ok bool) {
	if x.Collection == nil {
		e, _, _, ok = elements.Find(x.now(), field)
		if x.begun {
			e.Value = strings.Clone(e.Value) // the buffer changes
		}
		return e, ok
	}
	page := x.pageOf(field)
	if e, _, _, ok = elements.Find(page.body, field); !ok || e.Dead(x.Limit) {
		return Element{}, false // who writes the field anew must not see the old end
	}
	if page.dirty {
		e.Value = strings.Clone(e.Value)
	}
	return e, true
}

// now returns the body without pages as it is.
func (x *ElementsEdit) now() string {
	if x.begun {
		return record.View(x.small)
	}
	return x.Body
}

// Set gives a field a value and an end, and reports whether it is new.
func (x *ElementsEdit) Set(e Element) (isNew bool) {
	if !x.begin() {
		return false
	}
	x.ending = x.ending || e.End != 0
	if x.Collection == nil {
		_, from, to, found := elements.Find(record.View(x.small), e.Field)
		if found {
			x.small = slices.Replace(x.small, from, to, elements.Append(make([]byte, 0, 64), e)...)
		} else {
			x.small = elements.Append(x.small, e)
		}
		if e.End != 0 || len(x.small) > elements.SmallSize {
			x.open()
		}
		return !found
	}
	page := x.pageOf(e.Field)
	old, from, to, found := elements.Find(page.body, e.Field)
	if found && old.Dead(x.Limit) {
		x.tx.shedElement(x.t, x.e, old)
		isNew = true
	}
	if !found {
		from, to, isNew = len(page.body), len(page.body), true
	}
	x.change(page, append(elements.Append(append(x.tx.page[:0], page.body[:from]...), e), page.body[to:]...))
	x.grow(2)
	return isNew
}

// Delete removes a field, and reports whether there was one.
func (x *ElementsEdit) Delete(field string) bool {
	body := x.now()
	var page *page
	if x.Collection != nil {
		page = x.pageOf(field)
		body = page.body
	}
	old, from, to, found := elements.Find(body, field)
	dead := old.Dead(x.Limit)
	switch {
	case !x.begun && (dead || x.e == nil && x.tx.kept):
		x.buryElement(field) // this is no write of the key
		return false
	case !found || dead && !x.tx.buries(x.k) || !x.begin():
		return false
	case x.Collection == nil:
		x.small = append(x.small[:from], x.small[to:]...)
		return true
	case dead:
		x.tx.shedElement(x.t, x.e, old)
	}
	x.change(page, append(append(x.tx.page[:0], body[:from]...), body[to:]...))
	x.shrink(2)
	return !dead
}

// buryElement removes a dead element, whose key may have no living one, if it could live again. The key keeps
// its clock. Nothing was changed yet.
func (x *ElementsEdit) buryElement(field string) {
	if x.t == nil || x.k.Policy().Hold != "" || !x.tx.buries(x.k) {
		return
	}
	key := x.t.Find(x.id)
	if key == nil || key.Dead(x.k.Policy(), x.tx.now) || x.t.Item(key).Kind != x.kind || collectionOf(x.t, key) == nil {
		return
	}
	done := shedding{c: collectionOf(x.t, key)}
	_, e := x.t.Pages.Collections.Page(done.c, uint64(done.c.Bucket(field)))
	if e == nil {
		return
	}
	body := x.t.Pages.Item(e).Body
	if old, from, to, found := elements.Find(body, field); found {
		x.tx.shedElement(x.t, key, old)
		x.tx.shedPage(x.t, e, []byte(body[:from]+body[to:]), &done)
		x.tx.settleShed(x.t, &done, true)
		x.at = page{}
	}
}

// change gives a page another body, in the memory of tx.page.
func (x *ElementsEdit) change(p *page, body []byte) {
	if x.gather != nil && len(body) <= 4*elements.PageSize { // a longer one is about to be split
		x.tx.page, x.buf = x.buf, body
		p.body, p.dirty = record.View(body), true
		return
	}
	x.store(p, body)
	x.tx.keepPage(body)
}

// flush stores the page that was changed.
func (x *ElementsEdit) flush() {
	if x.at.dirty {
		x.store(&x.at, x.buf)
	}
}

// grow adds buckets until the pages have their mean size, but not more than most. Amid many changes it is
// that which they will have if the others add as much, as hashes spread them evenly.
func (x *ElementsEdit) grow(most int) {
	if x.at.dirty {
		return
	}
	weight := float64(x.Collection.Weight)
	if x.gather != nil {
		before := float64(x.gather.before)
		if done := math.Ldexp(float64(x.gather.place), -64); done > 0.01 {
			weight = before + (weight-before)/done
		}
	}
	for ; most > 0 && weight > float64(x.head.Buckets)*elements.PageSize && x.head.Buckets < elements.MostBuckets; most-- {
		x.split()
	}
}

// shrink removes buckets of sparse pages, but not more than most.
func (x *ElementsEdit) shrink(most int) {
	const sparse = elements.PageSize / 4
	for ; most > 0 && !x.at.dirty && x.head.Buckets > 1 && x.Collection.Weight < int64(x.head.Buckets)*sparse; most-- {
		x.merge()
	}
}

// open gives the hash pages.
func (x *ElementsEdit) open() {
	x.openPages()
	all := record.View(x.small)
	x.head.Buckets = uint32(max(1, min(elements.SumOf(all).Weight/elements.PageSize, 1<<16)))
	pages := make([][]byte, x.head.Buckets)
	for e := range elements.Each(all) {
		b := x.head.Bucket(e.Field)
		pages[b] = elements.Append(pages[b], e)
	}
	for b, body := range pages {
		x.put(uint64(b), body)
	}
	x.Collection = x.Collections.ByNumber(x.head.Number)
}

// openPages prepares a head, and the tables of the container if there are none yet.
func (x *ElementsEdit) openPages() {
	if x.t = x.k.tables[x.p.Number]; x.t == nil {
		x.t = x.tx.ks.tables.Open(x.k, x.p)
		x.tx.noteTable(x.t)
	}
	salt := x.head.Salt
	if x.head = elements.NewHead(x.p.NextVersion(), x.p.Shard.Seed[0]^x.p.Shard.Seed[1]); salt != 0 {
		x.head.Salt = salt // made anew, it keeps the order of its elements, on which cursors rely
	}
	x.headChanged = true
	x.Collections = x.t.OpenPages().Collections
}

// bucket returns the number of the page of a field.
func (x *ElementsEdit) bucket(field string) uint64 { return uint64(x.head.Bucket(field)) }

// page is a place for elements in pages, and what is there.
type page struct {
	number uint64
	h      memtable.Handle
	e      *memtable.Entry // nil: nothing
	body   string
	known  bool // it is as it was looked up, but for the body if it is dirty
	dirty  bool // the body is to be stored
}

// find returns the page with a number. It holds until the next is looked up or stored.
func (x *ElementsEdit) find(number uint64) *page {
	if x.at.known && x.at.number == number {
		return &x.at
	}
	x.at = page{number: number, known: true}
	if x.Collection != nil { // else its pages are being made
		if x.at.h, x.at.e = x.Collections.Page(x.Collection, number); x.at.e != nil {
			x.at.body = x.head.Trim(number, x.t.Pages.Item(x.at.e).Body)
		}
	}
	return &x.at
}

// pageOf returns the page of a field. It stores that which was changed before, if it is another.
func (x *ElementsEdit) pageOf(field string) *page {
	if x.at.dirty && x.at.number != x.bucket(field) {
		x.flush()
		x.grow(math.MaxInt)
	}
	return x.find(x.bucket(field))
}

// put stores the elements of the page with a number.
func (x *ElementsEdit) put(number uint64, body []byte) { x.store(x.find(number), body) }

// store stores the elements of a page that was looked up.
func (x *ElementsEdit) store(p *page, body []byte) {
	if p.known, p.dirty = false, false; x.head.Forget(p.number) {
		x.noteHead()
	}
	switch {
	case len(body) > 0:
		var buf [40]byte
		end := int64(expiry.Never)
		if x.ending {
			end = elements.EndOf(record.View(body), p.number)
		}
		x.version = x.tx.putPage(x.t.Pages, p.h, p.e, record.View(x.head.PageID(buf[:0], p.number)), record.View(body), x.ts, end)
		x.headChanged = x.headChanged || p.e == nil
	case p.e != nil:
		x.tx.removeItem(x.t.Pages, p.e)
		x.headChanged = true
	}
}

// keepPage keeps the memory of a page that was written for the next one.
func (tx *Tx) keepPage(buf []byte) {
	if cap(buf) <= 64<<10 {
		tx.page = buf
	}
}

// putPage stores a page, in the place of an entry if that is not nil, and returns its version.
func (tx *Tx) putPage(pages *table, h memtable.Handle, e *memtable.Entry, id, body string, ts, end int64) uint64 {
	it := Item{Kind: record.Page, Body: body, TS: ts, ExpireAt: end, Version: pages.P.NextVersion()}
	tx.setEntry(pages, h, e, id, it, nil)
	pages.NoteDue(it.TS, it.ExpireAt)
	return it.Version
}

// split adds a bucket, which takes some of the elements of another.
func (x *ElementsEdit) split() {
	from, to := uint64(x.head.Splits()), uint64(x.head.Buckets)
	x.head.Buckets++
	x.headChanged = true
	body := x.Collections.Body(x.Collection, from)
	stay, go_ := make([]byte, 0, len(body)), make([]byte, 0, len(body))
	for e := range elements.Each(body) {
		if x.bucket(e.Field) == from {
			stay = elements.Append(stay, e)
		} else {
			go_ = elements.Append(go_, e)
		}
	}
	if len(go_) > 0 {
		x.putBoth(from, stay, to, go_)
	}
}

// putBoth stores two pages between which elements have moved. An order of them stays as it is.
func (x *ElementsEdit) putBoth(a uint64, bodyA []byte, b uint64, bodyB []byte) {
	defer func(c *tables.Collection, order *elements.Order) { c.Order = order }(x.Collection, x.Collection.Order)
	x.Collection.Order = nil
	x.put(a, bodyA)
	x.put(b, bodyB)
}

// merge removes the last bucket, whose elements go where they came from.
func (x *ElementsEdit) merge() {
	x.head.Buckets--
	x.headChanged = true
	last, into := uint64(x.head.Buckets), uint64(x.head.Splits())
	if body := x.Collections.Body(x.Collection, last); body != "" {
		x.putBoth(into, []byte(x.Collections.Body(x.Collection, into)+body), last, nil)
	}
}

// Close stores what was changed. It reports whether the last field is gone, and the key with it.
func (x *ElementsEdit) Close() (gone bool) {
	if !x.begun || x.vetoed {
		return false
	}
	if x.gather != nil {
		x.flush()
		x.gather = nil
		x.grow(math.MaxInt)
		x.shrink(math.MaxInt)
	}
	tx := x.tx
	if x.Collection != nil {
		x.Collection.Head = x.head // what follows may not write it
	}
	switch {
	case x.Collection == nil && len(x.small) == 0, x.Collection != nil && x.Collection.Count == 0:
		return x.remove()
	case x.Collection != nil && x.Collections.Empty(x.Collection, x.Limit):
		return x.e != nil && tx.shedKey(x.t, x.e, x.Limit, false)
	case x.Collection == nil:
		x.putKey(record.View(x.small))
	case x.headChanged || x.e == nil:
		var buf [64]byte
		x.putKey(record.View(x.head.Append(buf[:0])))
	default:
		tx.changes.Refreshed(x.t, x.e)
		x.t.Refresh(x.h, x.e, x.ts, x.version)
		tx.alert(x.p, x.k, x.id)
	}
	return false
}

// noteHead makes the head that of the collection before Close writes it. A rollback takes that back with the
// key.
func (x *ElementsEdit) noteHead() {
	if x.e != nil {
		x.tx.changes.Refreshed(x.t, x.e)
	}
	x.headChanged, x.Collection.Head = true, x.head
}

// putKey writes the key.
func (x *ElementsEdit) putKey(body string) {
	x.tx.putEntry(x.p, x.k, x.h, x.e, x.id, Item{Kind: x.kind, Body: body, TS: x.ts, ExpireAt: x.End}, record.Chosen)
}

// remove removes a key without fields, which may have been made just now.
func (x *ElementsEdit) remove() (gone bool) {
	if x.e == nil {
		return true
	}
	if x.logsDeletes() {
		x.tx.logDeletion(x.t, x.e, x.had)
	}
	x.tx.alert(x.p, x.k, x.id)
	x.tx.removeItem(x.t, x.e)
	return true
}

// Move stores the collection under an id as that under another, of a container or of another one, with its
// ends. The key gets an end. If source is not needed any more, its elements stay where they are if that can
// be.
func (tx *Tx) Move(from *Container, source string, to *Container, id string, expireAt int64, copied bool) {
	h, kind, _ := tx.Elements(from, source)
	if !h.Paged() || !copied && from == to && tx.partition(source) == tx.partition(id) {
		tx.put(to, id, Item{Kind: kind, Body: h.Body, TS: tx.now, ExpireAt: expireAt}, record.Chosen)
		return
	}
	x, _ := tx.EditElements(to, id, kind)
	if x.End = expireAt; x.begin() {
		x.clear()
		x.openPages()
		x.head.Buckets, x.head.Salt = h.Collection.Buckets, h.Collection.Salt
		x.ending = h.Collection.Ending > 0
		for number, body := range h.Moved(to.Policy().SleepOn, x.Limit) {
			x.put(number, []byte(body))
		}
		x.Collection = x.Collections.Moved(x.head.Number, h.Collection)
	}
	x.Close()
}

// Replace makes a collection of all elements, which differ, whatever is under the id. It keeps End.
// It returns how many there are. The elements are not collected first: a slice of a million would hold up the
// garbage collector, and so everybody.
func (x *ElementsEdit) Replace(all func(yield func(Element) bool)) (n int) {
	if !x.begin() {
		return 0
	}
	x.clear()
	x.ending = false
	for e := range all {
		if !e.Dead(x.Limit) { // it may have slept elsewhere
			x.small = elements.Append(x.small, e)
			x.ending = x.ending || e.End != 0
			n++
		}
	}
	if x.ending || len(x.small) > elements.SmallSize {
		x.open()
	}
	return n
}

// clear begins anew, without elements.
func (x *ElementsEdit) clear() {
	if x.e != nil && x.tx.shedKey(x.t, x.e, x.Limit, false) { // the log gets what has died, while its pages are there
		x.h, x.e = 0, nil
	}
	x.Collection, x.Collections, x.small, x.at = nil, nil, nil, page{}
}

// collectionOf returns the collection of an entry, nil if its elements lie in no pages.
func collectionOf(t *table, e *memtable.Entry) *tables.Collection {
	if t.Pages == nil || !e.Collection() {
		return nil
	}
	return t.Pages.Collections.Of(t.Item(e).Body)
}
