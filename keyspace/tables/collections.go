package tables

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"mayfly/expiry"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// Collections are those of a table whose elements lie in pages. What is known of them is derived from their
// keys and pages, whatever changes these: transactions, their rollback, a leader's batch, or the start.
//
// A collection belongs to the key whose item names it last. One without a key is an orphan until the end of
// the transaction, and garbage from then on: its pages go in small steps, and are not journalled. A start
// drops them.
type Collections struct {
	keys, pages *memtable.Table
	byNumber    map[uint64]*Collection
	orphans     []*Collection // or have got a key again
	garbage     []*Collection
	popped      []poppedList
	ending      int  // those with elements that have an end
	listed      bool // in the list of the partition
	list        func()
}

// Collection is a collection whose elements lie in pages.
type Collection struct {
	elements.Head
	Key    memtable.Handle // of its key; 0: none
	former memtable.Handle // of the key that it had before, while both are there: a rename can be taken back
	Count  int             // elements, with the dead and the popped that were not removed
	Ending int             // those with an end
	Weight int64           // bytes: see [elements.Sum]
	Memory int64           // bytes of the pages, an estimate
	Pages  int             // how many there are

	Order *elements.Order    // of a sorted set, once its key is known
	List  elements.Directory // of the pages of a list

	waits bool // in popped

	handles []memtable.Handle // of the pages of buckets, as far as they were looked up; 0: not known
	counts  []uint16          // of their elements, with the dead

	first int64  // ms; no element ends before
	alive uint32 // the bucket in which a living element was found last
	above uint64 // no bucket has this number or a greater one: the head may not be known

	// The latest write of a page. Only a follower and the start look at it: see [Table.RaiseKey].
	ts      int64
	version uint64
}

// poppedList is a list whose pages have entries that were popped. It may be gone, or have none any more.
type poppedList struct {
	number uint64
	since  int64 // ms, about; 0: since a moment ago
}

// poppedSize is the memory of a poppedList in bytes, about.
const poppedSize = 24

// Len returns the number of elements, with the dead that were not removed.
func (c *Collection) Len() int { return c.Count - int(c.Left.Count) - int(c.Right.Count) }

// At returns the page of the entry of a list with an index, and the index of the first entry in it.
func (c *Collection) At(index int) (page uint64, first int) {
	popped := int(c.Left.Count)
	at, first := c.List.At(index + popped)
	return at.Number, max(first-popped, 0)
}

// collectionOverhead is the memory of a collection besides its pages, in bytes.
const collectionOverhead = 160

// OpenPages returns the table of the pages, and makes it if need be.
func (t *Table[C]) OpenPages() *Table[C] {
	if t.Pages != nil {
		return t.Pages
	}
	pages := &Table[C]{set: t.set, P: t.P, C: t.C}
	pages.InitPages(&t.P.Shard, t.Container())
	p := t.P
	cs := &Collections{keys: &t.Table, pages: &pages.Table, byNumber: make(map[uint64]*Collection)}
	cs.list = func() { p.Garbage = append(p.Garbage, cs) }
	pages.Collections = cs
	pages.Observe((*pageObserver)(cs))
	t.ObserveCollections((*keyObserver)(cs))
	t.Pages = pages
	if !t.Gone() {
		t.set.add(pages)
		pages.SetTimer(0)
	}
	return pages
}

// LoadPages is OpenPages for a table that may have keys of collections already, which the start has read.
func (t *Table[C]) LoadPages() *Table[C] {
	if t.Pages == nil {
		t.OpenPages()
		t.Descend(0, func(_ uint64, e *memtable.Entry) (more bool) {
			if e.Collection() {
				(*keyObserver)(t.Pages.Collections).Added(t.Handle(e), t.Item(e))
			}
			return true
		})
	}
	return t.Pages
}

// Of returns the collection with the head that is the body of an item; nil: its elements lie in no pages.
func (cs *Collections) Of(body string) *Collection {
	if !elements.IsHead(body) {
		return nil
	}
	return cs.byNumber[numberOf(body)]
}

// ByNumber returns the collection of a number, nil if there is none.
func (cs *Collections) ByNumber(number uint64) *Collection { return cs.byNumber[number] }

// Moved returns the collection of a number, which has the pages of another: see [Elements.Moved]. If it has
// all of their elements, it gets the order of them.
func (cs *Collections) Moved(number uint64, from *Collection) *Collection {
	c := cs.byNumber[number]
	if c != nil && from.Order != nil && c.Count == from.Count {
		c.Order = from.Order.Copy()
		cs.pages.AddMemory(c.Order.Bytes())
	}
	return c
}

// OfPage returns the collection of a page, nil if there is none.
func (cs *Collections) OfPage(id string) *Collection {
	number, _, _ := record.SplitPageID(id)
	return cs.byNumber[number]
}

func (cs *Collections) open(number uint64) *Collection {
	c := cs.byNumber[number]
	if c == nil {
		c = &Collection{Head: elements.Head{Number: number, Buckets: 1}, first: math.MaxInt64}
		cs.byNumber[number] = c
		cs.pages.AddMemory(collectionOverhead)
		cs.orphan(c)
	}
	return c
}

// orphan notes that a collection has no key.
func (cs *Collections) orphan(c *Collection) {
	cs.orphans = append(cs.orphans, c)
	if !cs.listed {
		cs.listed = true
		cs.list()
	}
}

// keyObserver follows the keys.
type keyObserver Collections

func (o *keyObserver) Added(h memtable.Handle, it record.Item) {
	head, ok := elements.HeadOf(it.Body)
	if !ok || !it.Kind.IsCollection() {
		return
	}
	cs := (*Collections)(o)
	c := cs.open(head.Number)
	if c.Key != h {
		c.former = c.Key
	}
	if c.Head, c.Key = head, h; it.Kind == record.SortedSet && c.Order == nil {
		c.Order = elements.NewOrder()
		for page := range c.above { // the head may be an old one
			c.Order.Replace("", cs.Body(c, page))
		}
		cs.pages.AddMemory(c.Order.Bytes())
	}
	if c.Count > c.Len() && !c.waits {
		cs.await(c, 0)
	}
}

// await notes that pages of a list have entries that were popped.
func (cs *Collections) await(c *Collection, since int64) {
	c.waits = true
	cs.popped = append(cs.popped, poppedList{c.Number, since})
	cs.pages.AddMemory(poppedSize)
}

// TakePopped returns up to n lists whose pages have had entries that were popped for an age, both in ms.
func (cs *Collections) TakePopped(now, age int64, n int) (list []*Collection) {
	for i := len(cs.popped) - 1; i >= 0 && cs.popped[i].since == 0; i-- {
		cs.popped[i].since = now
	}
	taken := 0
	const most = 1 << 10 // of those that are gone, too: a fraction of a ms
	for ; taken < min(len(cs.popped), most) && len(list) < n && now-cs.popped[taken].since >= age; taken++ {
		if c := cs.byNumber[cs.popped[taken].number]; c != nil {
			if c.waits = false; c.Key != 0 && c.Count > c.Len() {
				list = append(list, c)
			}
		}
	}
	if cs.popped = cs.popped[taken:]; len(cs.popped) == 0 {
		cs.popped = nil
	}
	cs.pages.AddMemory(-poppedSize * int64(taken))
	return list
}

// PutOffPopped has lists wait for the same time once more that TakePopped would return. It is for a node that
// may not write.
func (cs *Collections) PutOffPopped(now, age int64, n int) {
	for _, c := range cs.TakePopped(now, age, n) {
		cs.await(c, now)
	}
}

func (o *keyObserver) Replaced(h memtable.Handle, was, is record.Item) {
	if was.Kind.IsCollection() && !(is.Kind.IsCollection() && elements.SameCollection(was.Body, is.Body)) {
		o.Removed(h, was)
	}
	o.Added(h, is)
}

// numberOf returns the number in a head, which a start has checked; no collection has 0.
func numberOf(head string) uint64 {
	digits, _, _ := strings.Cut(head[1:], " ")
	number, err := strconv.ParseUint(digits, 16, 64)
	if err != nil {
		return 0
	}
	return number
}

func (o *keyObserver) Removed(h memtable.Handle, it record.Item) {
	c := (*Collections)(o).Of(it.Body)
	switch {
	case c == nil:
	case c.former == h:
		c.former = 0
	case c.Key == h:
		if c.Key, c.former = c.former, 0; c.Key == 0 {
			(*Collections)(o).orphan(c)
		}
	}
}

// Elsewhere implements [memtable.KeyObserver].
func (o *keyObserver) Elsewhere(it record.Item) (bytes, memory int64) {
	c := (*Collections)(o).Of(it.Body)
	if c == nil {
		return 0, 0
	}
	return c.Memory - int64(c.Pages)*memtable.ItemOverhead, collectionOverhead + c.Size()
}

// pageObserver follows the pages.
type pageObserver Collections

func (o *pageObserver) Added(h memtable.Handle, it record.Item) {
	cs := (*Collections)(o)
	number, page, size := cs.split(h)
	c := cs.open(number)
	cs.follow(c, page, "", it.Body)
	c.Memory += memtable.ItemOverhead + size
	c.Pages++
}

func (o *pageObserver) Replaced(h memtable.Handle, was, is record.Item) {
	cs := (*Collections)(o)
	number, page, _ := cs.split(h)
	if c := cs.byNumber[number]; c != nil {
		cs.follow(c, page, was.Body, is.Body)
	}
}

func (o *pageObserver) Removed(h memtable.Handle, it record.Item) {
	cs := (*Collections)(o)
	number, page, size := cs.split(h)
	if c := cs.byNumber[number]; c != nil {
		if page < uint64(len(c.handles)) {
			c.handles[page] = 0
		}
		cs.follow(c, page, it.Body, "")
		c.Memory -= memtable.ItemOverhead + size
		c.Pages--
	}
}

// split returns what the id of a page has, and its length.
func (cs *Collections) split(h memtable.Handle) (number, page uint64, size int64) {
	id := cs.pages.ID(cs.pages.At(h))
	number, page, _ = record.SplitPageID(id)
	return number, page, int64(len(id))
}

// follow follows a page whose body was one and is another; "": there is none.
func (cs *Collections) follow(c *Collection, page uint64, was, is string) {
	was, is = elements.Differing(was, is)
	before, after := elements.SumOf(was), elements.SumOf(is)
	if elements.IsOfList(page) {
		c.List.Add(page, after.Count-before.Count)
	} else {
		if page < uint64(len(c.handles)) && c.handles[page] != 0 {
			c.counts[page] += uint16(after.Count - before.Count)
		}
		c.first = min(c.first, after.Earliest)
		c.above = max(c.above, page+1)
	}
	cs.add(c, before, len(was), -1)
	cs.add(c, after, len(is), 1)
	if c.Order != nil {
		size := c.Order.Bytes()
		c.Order.Replace(was, is)
		cs.pages.AddMemory(c.Order.Bytes() - size)
	}
}

// Size returns the memory of a collection besides its key, in bytes, about.
func (c *Collection) Size() int64 {
	if c.Order != nil {
		return c.Memory + c.Order.Bytes()
	}
	return c.Memory
}

// add adds the sum of a body to what is counted (times 1) or subtracts it (-1).
func (cs *Collections) add(c *Collection, s elements.Sum, size, times int) {
	before := c.Ending
	c.Count += times * s.Count
	c.Ending += times * s.Ending
	switch {
	case before == 0 && c.Ending > 0:
		cs.ending++
	case before > 0 && c.Ending == 0:
		cs.ending--
	}
	c.Weight += int64(times * s.Weight)
	c.Memory += int64(times * size)
}

// settle makes those of the orphans garbage that have no key.
func (cs *Collections) settle() {
	for _, c := range cs.orphans {
		if c.Key == 0 && cs.byNumber[c.Number] == c {
			delete(cs.byNumber, c.Number)
			if c.Ending > 0 {
				cs.ending--
			}
			cs.pages.AddMemory(-collectionOverhead - c.Size() + c.Memory)
			c.Order = nil
			cs.garbage = append(cs.garbage, c)
		}
	}
	cs.orphans = nil
}

// collect removes up to n pages of garbage, and returns how many it may still remove. A bucket without a page
// counts as one.
func (cs *Collections) collect(n int) (left int) {
	if cs.settle(); cs.pages.Detached() {
		cs.garbage = nil
	}
	var id []byte
	for n > 0 && len(cs.garbage) > 0 {
		c := cs.garbage[len(cs.garbage)-1]
		for ; n > 0 && (c.above > 0 || c.List.Len() > 0); n-- {
			last := c.List.Edge(false)
			number := last.Number
			if c.List.Add(number, -last.Count); number == 0 {
				c.above--
				number = c.above
			}
			id = c.PageID(id[:0], number)
			if e := cs.pages.Find(record.View(id)); e != nil {
				cs.pages.Remove(e)
				cs.pages.Release(e)
			}
		}
		if c.above == 0 && c.List.Len() == 0 {
			cs.garbage = cs.garbage[:len(cs.garbage)-1]
		}
	}
	return n
}

// Page returns the page with a number, nil if there is none: an empty bucket has none. It keeps the handles
// of buckets, which takes a few bytes for each: a look-up by id takes as long as one of a key.
func (cs *Collections) Page(c *Collection, number uint64) (h memtable.Handle, e *memtable.Entry) {
	if number < uint64(len(c.handles)) && c.handles[number] != 0 {
		return c.handles[number], cs.pages.At(c.handles[number])
	}
	var buf [40]byte
	const sparse = 4 // more buckets than pages: a page may have any number before its key is known
	if h, e = cs.pages.Lookup(record.View(c.PageID(buf[:0], number))); e != nil && number < sparse*uint64(c.Pages) {
		if missing := int(number) + 1 - len(c.handles); missing > 0 {
			c.handles = append(c.handles, make([]memtable.Handle, missing)...)
			c.counts = append(c.counts, make([]uint16, missing)...)
		}
		c.handles[number], c.counts[number] = h, uint16(elements.SumOf(cs.pages.Item(e).Body).Count)
	}
	return h, e
}

// CountOf returns the number of elements in a bucket, with the dead. It does not look at the page if that was
// looked up before.
func (cs *Collections) CountOf(c *Collection, bucket uint64) int {
	_, e := cs.Page(c, bucket)
	switch {
	case e == nil:
		return 0
	case bucket < uint64(len(c.handles)) && c.handles[bucket] != 0:
		return int(c.counts[bucket])
	}
	return elements.SumOf(cs.pages.Item(e).Body).Count
}

// Prefetch adds the look-up of the page that has a field, of the collection with a head.
func (cs *Collections) Prefetch(p *memtable.Prefetcher, head, field string) {
	c := cs.Of(head)
	if c == nil || c.List.Len() > 0 {
		return
	}
	number := c.Bucket(field)
	if int(number) < len(c.handles) && c.handles[number] != 0 {
		p.AddEntry(cs.pages, c.handles[number])
		return
	}
	var buf [40]byte
	p.Add(cs.pages, record.View(c.PageID(buf[:0], uint64(number))))
}

// Pages yields the pages of a collection, in the order of buckets or of a list.
func (cs *Collections) Pages(c *Collection) func(yield func(*memtable.Entry) bool) {
	return func(yield func(*memtable.Entry) bool) {
		for b := range uint64(c.Buckets) {
			if _, e := cs.Page(c, b); e != nil && !yield(e) {
				return
			}
		}
		for page := range c.List.Ascend(0) {
			if _, e := cs.Page(c, page.Number); e != nil && !yield(e) {
				return
			}
		}
	}
}

// Body returns the elements in the page with a number.
func (cs *Collections) Body(c *Collection, number uint64) string {
	return c.Trim(number, cs.Stored(c, number))
}

// Stored returns the body of the page with a number, with what was popped off it.
func (cs *Collections) Stored(c *Collection, number uint64) string {
	if _, e := cs.Page(c, number); e != nil {
		return cs.pages.Item(e).Body
	}
	return ""
}

// Dead returns how many elements of a collection are dead by a limit. It looks at the pages that are due, or
// at those of the collection.
func (cs *Collections) Dead(c *Collection, limit int64) (n int) {
	cs.EachDead(c, limit, func(elements.Element) { n++ })
	return n
}

// EachDead visits the elements that Dead counts.
func (cs *Collections) EachDead(c *Collection, limit int64, visit func(elements.Element)) {
	cs.EachDue(c, limit, func(page *memtable.Entry) {
		for e := range elements.Each(cs.pages.Item(page).Body) {
			if e.Dead(limit) {
				visit(e)
			}
		}
	})
}

// EachDue visits the pages that have the elements that Dead counts.
func (cs *Collections) EachDue(c *Collection, limit int64, visit func(page *memtable.Entry)) {
	due := cs.pages.DueAtMost(limit)
	switch {
	case c.Ending == 0 || due == 0:
	case due < int(c.Buckets):
		cs.pages.EachDue(limit, math.MaxInt, func(page *memtable.Entry) {
			if cs.OfPage(cs.pages.ID(page)) == c {
				visit(page)
			}
		})
	default:
		for page := range cs.Pages(c) {
			if page.ExpireAt() > 0 && page.ExpireAt() <= limit {
				visit(page)
			}
		}
	}
}

// Due returns the pages that EachDue visits.
func (cs *Collections) Due(c *Collection, limit int64) (due []*memtable.Entry) {
	cs.EachDue(c, limit, func(page *memtable.Entry) { due = append(due, page) })
	return due
}

// DeadElement is an element that is dead, with the page that has it.
type DeadElement struct {
	elements.Element
	Page record.Item
}

// DeadIn returns the elements in pages that are dead by a limit, in the order of fields.
func (cs *Collections) DeadIn(pages []*memtable.Entry, limit int64) (dead []DeadElement) {
	for _, page := range pages {
		it := cs.pages.Item(page)
		for e := range elements.Each(it.Body) {
			if e.Dead(limit) {
				dead = append(dead, DeadElement{e, it})
			}
		}
	}
	slices.SortFunc(dead, func(a, b DeadElement) int { return strings.Compare(a.Field, b.Field) })
	return dead
}

// FirstEnd returns a lower bound of the ends of elements after a moment, later than that, in ms;
// math.MaxInt64: there are none. It looks at all elements when the bound that is known has passed.
func (cs *Collections) FirstEnd(c *Collection, after int64) int64 {
	if c.first > after {
		return c.first
	}
	first, dead := int64(math.MaxInt64), false
	for page := range cs.Pages(c) {
		for e := range elements.Each(cs.pages.Item(page).Body) {
			switch {
			case e.End > after:
				first = min(first, e.End)
			case e.End != 0:
				dead = true // an undo may bring it back
			}
		}
	}
	if !dead {
		c.first = first
	}
	return first
}

// Empty reports whether no element of a collection lives by a limit of the dead. It remembers where it has
// found one, and goes on there the next time.
func (cs *Collections) Empty(c *Collection, limit int64) bool {
	if c.Count == 0 {
		return true
	}
	if c.Count > c.Ending || cs.pages.DueAtMost(limit) == 0 {
		return false
	}
	for i := range c.Buckets {
		b := (c.alive + i) % c.Buckets
		for e := range elements.Each(cs.Body(c, uint64(b))) {
			if !e.Dead(limit) {
				c.alive = b
				return false
			}
		}
	}
	return true
}

// Hollow implements [memtable.KeyObserver].
func (o *keyObserver) Hollow(it record.Item, dead expiry.Limits) bool {
	cs := (*Collections)(o)
	if cs.pages.DueAtMost(dead.ByOwnTTL) == 0 {
		return false
	}
	c := cs.Of(it.Body)
	return c != nil && cs.Empty(c, dead.ByOwnTTL)
}

// Hollow returns the items that live by their own end and limits of the dead, but whose elements are all
// dead. It looks at the collections with pages that are due.
func (t *Table[C]) Hollow(dead expiry.Limits) (list []*memtable.Entry) {
	if t.Pages == nil || t.Pages.Len() == 0 {
		return nil
	}
	cs := t.Pages.Collections
	if t.Pages.DueAtMost(dead.ByOwnTTL) == 0 {
		return nil
	}
	seen := make(map[*Collection]bool)
	t.Pages.EachDue(dead.ByOwnTTL, math.MaxInt, func(page *memtable.Entry) {
		c := cs.OfPage(t.Pages.ID(page))
		if c == nil || c.Key == 0 || seen[c] {
			return
		}
		seen[c] = true
		if e := t.At(c.Key); !e.Within(dead) && cs.Empty(c, dead.ByOwnTTL) {
			list = append(list, e)
		}
	})
	return list
}

// EachDuePage visits about n of the pages that are due by limits of what may be removed, at least one if
// there is one. It passes over those of keys that are dead at a moment in ms and stay, and over garbage.
// Until another policy rules it need not look at these again: they go with their keys.
func (t *Table[C]) EachDuePage(due expiry.Limits, now int64, n int, visit func(c *Collection, page *memtable.Entry)) {
	if t.Pages == nil {
		return
	}
	cs, dead := t.Pages.Collections, t.C.Policy().DeadLimits(now)
	var c *Collection
	t.Pages.EachWaiting(t.C.Policy(), due.ByOwnTTL, n, func(page *memtable.Entry) bool {
		if c = cs.OfPage(t.Pages.ID(page)); c == nil || c.Key == 0 {
			return true
		}
		key := t.At(c.Key)
		return key.Within(dead) && !key.Within(due)
	}, func(page *memtable.Entry) { visit(c, page) })
}

// TightenPages notes what samples need not look at, after one that has left no page due.
func (t *Table[C]) TightenPages(due expiry.Limits, now int64) {
	t.Pages.Tighten(due.ByOwnTTL)
	t.EachDuePage(due, now, 0, nil)
}

// Ending returns how many collections have elements with an end.
func (t *Table[C]) Ending() int {
	if t.Pages == nil {
		return 0
	}
	return t.Pages.Collections.ending
}

// RaiseKey gives the key of a collection the time and the version of a page that was read or replicated:
// those of a key are the newest of its item and its pages.
func (t *Table[C]) RaiseKey(page *memtable.Entry) {
	c := t.Pages.Collections.OfPage(t.Pages.ID(page))
	if c == nil {
		return
	}
	c.ts, c.version = max(c.ts, page.TS()), max(c.version, page.Version())
	t.raise(c)
}

// RaiseOf is RaiseKey for a key that was read or replicated.
func (t *Table[C]) RaiseOf(e *memtable.Entry) {
	if t.Pages != nil && e.Collection() {
		if c := t.Pages.Collections.Of(t.Item(e).Body); c != nil {
			t.raise(c)
		}
	}
}

func (t *Table[C]) raise(c *Collection) {
	if c.Key == 0 {
		return
	}
	if e := t.At(c.Key); e.Version() < c.version || e.TS() < c.ts {
		t.Refresh(c.Key, e, max(e.TS(), c.ts), max(e.Version(), c.version))
	}
}

// RaiseKeys is RaiseKey for all pages of the table.
func (t *Table[C]) RaiseKeys() {
	if t.Pages == nil {
		return
	}
	t.Pages.Descend(0, func(_ uint64, page *memtable.Entry) bool {
		t.RaiseKey(page)
		return true
	})
}
