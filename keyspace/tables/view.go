package tables

import (
	"math/bits"
	"math/rand/v2"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
)

// Elements is what lives of a collection as a transaction sees it. Its methods need the lock of the
// partition; strings are safe to keep. The zero value has none.
type Elements struct {
	Body  string // of one item, with all fields
	Limit int64  // of the dead: see [elements.Element.Dead]

	Collections *Collections // with the pages; nil: there are none
	Collection  *Collection

	still *snapshot // instead of cs and c
}

// ElementsOf returns the elements in the body of an item. limit is that of the dead.
func (t *Table[C]) ElementsOf(body string, limit int64) Elements {
	h := Elements{Body: body, Limit: limit}
	if t.Pages != nil {
		h.Collections = t.Pages.Collections
		h.Collection = h.Collections.Of(body)
	}
	if h.Collection == nil {
		h.Collections = nil
	}
	return h
}

// Get returns the element of a field.
func (h *Elements) Get(field string) (e elements.Element, ok bool) {
	body := h.Body
	switch {
	case h.Collection != nil:
		body = h.Collections.Body(h.Collection, uint64(h.Collection.Bucket(field)))
	case h.still != nil:
		body = h.still.pages[h.still.head.Bucket(field)]
	}
	if e, _, _, ok = elements.Find(body, field); !ok || e.Dead(h.Limit) {
		return elements.Element{}, false
	}
	return e, true
}

// Len returns the number of elements. Not of a snapshot.
func (h *Elements) Len() int {
	if h.Collection == nil {
		return elements.SumOf(h.Body).Count
	}
	return h.Collection.Len() - h.Collections.Dead(h.Collection, h.Limit)
}

// Size estimates the bytes of the elements. Not of a snapshot.
func (h *Elements) Size() int64 {
	if h.Collection == nil {
		return int64(len(h.Body))
	}
	return h.Collection.Size()
}

// snapshot is all pages of a collection, by bucket or in the order of a list.
type snapshot struct {
	head  elements.Head
	pages []string
}

// Snapshot returns the same elements for use without locks. It takes time by the number of pages.
func (h *Elements) Snapshot() Elements {
	if h.Collection == nil {
		return *h
	}
	if h.Collection.List.Len() > 0 {
		var pages []string
		for page := range h.Collection.List.Ascend(0) {
			pages = append(pages, h.Collections.Body(h.Collection, page.Number))
		}
		return Elements{Limit: h.Limit, still: &snapshot{pages: pages}}
	}
	s := &snapshot{h.Collection.Head, make([]string, h.Collection.Buckets)}
	for b := range s.pages {
		s.pages[b] = h.Collections.Body(h.Collection, uint64(b))
	}
	return Elements{Limit: h.Limit, still: s}
}

// Bodies returns the elements as they are stored, in pieces, which need no locks and stay as they are; see
// [elements.Each]. Those of pages with dead ones are copies.
func (h *Elements) Bodies() []string {
	s := h.Snapshot()
	if s.still == nil {
		return []string{h.Body}
	}
	if h.Collections.Dead(h.Collection, h.Limit) == 0 {
		return s.still.pages
	}
	for i, page := range s.still.pages {
		if elements.SumOf(page).Earliest <= h.Limit {
			s.still.pages[i] = string(elements.Shed(page, h.Limit))
		}
	}
	return s.still.pages
}

// All yields the elements.
func (h *Elements) All() func(yield func(elements.Element) bool) {
	pages := []string{h.Body}
	if s := h.Snapshot(); s.still != nil {
		pages = s.still.pages
	}
	return func(yield func(elements.Element) bool) {
		for _, page := range pages {
			for e := range elements.Each(page) {
				if !e.Dead(h.Limit) && !yield(e) {
					return
				}
			}
		}
	}
}

// Scan visits about count elements from a cursor on, and returns the next; 0: there are no more. One that is
// there throughout is visited once. All elements of one item are visited at once.
func (h *Elements) Scan(cursor uint64, count int, visit func(elements.Element)) (next uint64) {
	if h.Collection == nil {
		for e := range h.All() {
			visit(e)
		}
		return 0
	}
	const mostBuckets = 10 // for each element that is asked for
	for buckets := 0; count > 0 && buckets < mostBuckets*count+mostBuckets; buckets++ {
		bucket, to := h.Collection.From(cursor)
		for e := range elements.Each(h.Collections.Body(h.Collection, uint64(bucket))) {
			if elements.Place(h.Collection.Hash(e.Field)) >= cursor && !e.Dead(h.Limit) {
				visit(e)
				count--
			}
		}
		if cursor = to; cursor == 0 {
			break
		}
	}
	return cursor
}

// Paged reports whether the elements lie in pages.
func (h *Elements) Paged() bool { return h.Collection != nil }

// Random returns a random element, each with the same chance. There must be one.
//
// A page is drawn, and a place in it: where there is no element, others are drawn. There are twice as many
// places as pages of the linear hash have elements that were not split, and some more, as chance adds to
// that.
func (h *Elements) Random() (e elements.Element) {
	if h.Collection != nil {
		unsplit := h.Collection.Count >> (bits.Len32(h.Collection.Buckets) - 1)
		places := 2*unsplit + 8 // more has one page in a million
		for range 256 {
			bucket := uint64(rand.Uint32N(h.Collection.Buckets))
			count := h.Collections.CountOf(h.Collection, bucket)
			places = max(places, count) // what was refused before had too small a chance
			if place := rand.IntN(places); place >= count {
				continue // without a look at the page
			} else if e, ok := h.living(h.Collections.Body(h.Collection, bucket), place); ok {
				return e
			}
		}
	}
	seen := 0
	for one := range h.All() {
		seen++
		if rand.IntN(seen) == 0 {
			e = one
		}
	}
	return e
}

// living returns the living element of a body that has n others before it, false if there are not as many.
func (h *Elements) living(body string, n int) (_ elements.Element, ok bool) {
	for e := range elements.Each(body) {
		if !e.Dead(h.Limit) {
			if n--; n < 0 {
				return e, true
			}
		}
	}
	return elements.Element{}, false
}

// pagesFrom returns the bodies of a list's pages from that with a number on, until they have so many entries.
// Both are with those that were popped.
func (h *Elements) pagesFrom(number uint64, entries int) (pages []string) {
	for page := range h.Collection.List.Ascend(number) {
		pages = append(pages, h.Collections.Stored(h.Collection, page.Number))
		if entries -= page.Count; entries <= 0 {
			break
		}
	}
	return pages
}

// Entries yields the entries of a list with the indexes from one up to below another, or the same backwards.
// What it yields needs no locks, and stays as it is.
func (h *Elements) Entries(from, to int, backwards bool) func(yield func(string) bool) {
	pages, first := []string{h.Body}, 0
	if h.Collection != nil && from < to {
		popped := int(h.Collection.Left.Count)
		page, at := h.Collection.List.At(from + popped)
		pages, first = h.pagesFrom(page.Number, to+popped-at), at-popped
	}
	return elements.Entries(pages, from-first, to-first, backwards)
}

// EntryBodies returns the entries of a list with the indexes from one up to below another as they are stored,
// in pieces: see [Elements.Bodies].
func (h *Elements) EntryBodies(from, to int) (bodies []string) {
	left := to - from
	if h.Collection == nil || left == 0 {
		body := elements.Skip(h.Body, from)
		return []string{body[:len(body)-len(elements.Skip(body, left))]}
	}
	from += int(h.Collection.Left.Count)
	first, before := h.Collection.List.At(from)
	skip := from - before
	for page := range h.Collection.List.Ascend(first.Number) {
		body, n := elements.Skip(h.Collections.Stored(h.Collection, page.Number), skip), page.Count-skip
		if n > left {
			body, n = body[:len(body)-len(elements.Skip(body, left))], left
		}
		if bodies, left, skip = append(bodies, body), left-n, 0; left == 0 {
			break
		}
	}
	return bodies
}

// Moved yields the pages of a collection, with their numbers, as they are of one elsewhere: ends become
// others there, and what is dead by a limit there is left out, too.
func (h *Elements) Moved(end func(end int64) int64, limit int64) func(yield func(number uint64, body string) bool) {
	return func(yield func(uint64, string) bool) {
		for page := range h.Collections.Pages(h.Collection) {
			id, it := h.Collections.pages.IDAndItem(page)
			_, number, _ := record.SplitPageID(id)
			body := h.Collection.Trim(number, it.Body)
			if h.Collection.Ending > 0 && elements.SumOf(body).Ending > 0 {
				var rest []byte
				for e := range elements.Each(body) {
					dead := e.Dead(h.Limit)
					if e.End != 0 {
						e.End = end(e.End)
					}
					if !dead && !e.Dead(limit) {
						rest = elements.Append(rest, e)
					}
				}
				body = string(rest)
			}
			if body != "" && !yield(number, body) {
				return
			}
		}
	}
}

// Sorted returns the elements of a sorted set in their order. They are those of now: a change of the set may
// or may not show.
func (h *Elements) Sorted() elements.Living {
	if h.Collection == nil {
		return elements.LivingOf(elements.OrderOf(h.Body), nil)
	}
	if h.Collection.Ending == 0 {
		return elements.LivingOf(h.Collection.Order, nil)
	}
	var dead []elements.Element
	h.Collections.EachDead(h.Collection, h.Limit, func(e elements.Element) { dead = append(dead, e) })
	return elements.LivingOf(h.Collection.Order, dead)
}
