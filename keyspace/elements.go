package keyspace

import (
	"math"
	"math/rand/v2"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/tables"
)

// Element is a field of a hash with its value, or a member of a set with an empty one, and its end in ms, 0 for
// none.
type Element = elements.Element

// Elements is what lives of a hash or a set as a transaction sees it. Strings are safe to keep. The zero value has
// none.
type Elements struct {
	body  string // of one item, with all fields
	limit int64  // of the dead: see [elements.Element.Dead]

	cs *tables.Collections // with the pages; nil: there are none
	c  *tables.Collection

	still *snapshot // instead of cs and c
}

// Elements returns the elements of the hash or the set under an id, and of what kind the item there is.
func (tx *Tx) Elements(c *Container, id string) (h Elements, kind Kind, found bool) {
	p := tx.partition(id)
	handle, e := tx.lookup(p, c, id)
	if e == nil {
		return h, kind, false
	}
	t := c.tables[p.Number]
	if k := tx.ks.evictor.Tracker(); k != nil {
		tx.touch(k, t, handle, e)
	}
	it := t.Item(e)
	if it.Kind.IsCollection() {
		h = tx.elementsOf(t, it.Body)
	}
	return h, it.Kind, true
}

// elementsOf returns the elements of a body.
func (tx *Tx) elementsOf(t *table, body string) Elements {
	h := Elements{body: body, limit: t.C.Policy().DeadLimits(tx.now).ByOwnTTL}
	if t.Pages != nil {
		h.cs = t.Pages.Collections
		h.c = h.cs.Of(body)
	}
	if h.c == nil {
		h.cs = nil
	}
	return h
}

// Get returns the element of a field.
func (h *Elements) Get(field string) (e Element, ok bool) {
	body := h.body
	switch {
	case h.c != nil:
		body = h.cs.Body(h.c, uint64(h.c.Bucket(field)))
	case h.still != nil:
		body = h.still.pages[h.still.head.Bucket(field)]
	}
	if e, _, _, ok = elements.Find(body, field); !ok || e.Dead(h.limit) {
		return Element{}, false
	}
	return e, true
}

// Len returns the number of elements. Not of a snapshot.
func (h *Elements) Len() int {
	if h.c == nil {
		return elements.SumOf(h.body).Count
	}
	return h.c.Count - h.cs.Dead(h.c, h.limit)
}

// Size estimates the bytes of the elements. Not of a snapshot.
func (h *Elements) Size() int64 {
	if h.c == nil {
		return int64(len(h.body))
	}
	return h.c.Size()
}

// snapshot is all pages of a collection, by bucket or in the order of a list.
type snapshot struct {
	head  elements.Head
	pages []string
}

// Snapshot returns the same elements for use without locks. It takes time by the number of pages.
func (h *Elements) Snapshot() Elements {
	if h.c == nil {
		return *h
	}
	if h.c.List.Len() > 0 {
		return Elements{limit: h.limit, still: &snapshot{pages: h.pagesFrom(0, math.MaxInt)}}
	}
	s := &snapshot{h.c.Head, make([]string, h.c.Buckets)}
	for b := range s.pages {
		s.pages[b] = h.cs.Body(h.c, uint64(b))
	}
	return Elements{limit: h.limit, still: s}
}

// All yields the elements.
func (h *Elements) All() func(yield func(Element) bool) {
	pages := []string{h.body}
	if s := h.Snapshot(); s.still != nil {
		pages = s.still.pages
	}
	return func(yield func(Element) bool) {
		for _, page := range pages {
			for e := range elements.Each(page) {
				if !e.Dead(h.limit) && !yield(e) {
					return
				}
			}
		}
	}
}

// Scan visits about count elements from a cursor on, and returns the next; 0: there are no more. One that is
// there throughout is visited once. All elements of one item are visited at once.
func (h *Elements) Scan(cursor uint64, count int, visit func(Element)) (next uint64) {
	if h.c == nil {
		for e := range h.All() {
			visit(e)
		}
		return 0
	}
	const mostBuckets = 10 // for each element that is asked for
	for buckets := 0; count > 0 && buckets < mostBuckets*count+mostBuckets; buckets++ {
		bucket, to := h.c.From(cursor)
		for e := range elements.Each(h.cs.Body(h.c, uint64(bucket))) {
			if elements.Place(h.c.Hash(e.Field)) >= cursor && !e.Dead(h.limit) {
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
func (h *Elements) Paged() bool { return h.c != nil }

// Random returns a random element, each with the same chance. There must be one.
//
// A page is drawn, and taken with a chance by its elements. Pages of the linear hash that were not split have twice
// as many as the others, and chance adds to that.
func (h *Elements) Random() (e Element) {
	if h.c != nil {
		most := 4*h.c.Count/int(h.c.Buckets) + 8 // in a page, but for one in many millions
		for range 256 {
			living := 0
			var one Element
			for e := range elements.Each(h.cs.Body(h.c, uint64(rand.Uint32N(h.c.Buckets)))) {
				if !e.Dead(h.limit) {
					living++
					if rand.IntN(living) == 0 {
						one = e
					}
				}
			}
			if living > most {
				most = living // what was refused before had too small a chance
			}
			if rand.IntN(most) < living {
				return one
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

// AppendElement appends an element to a body as [Tx.Restore] takes it.
func AppendElement(body []byte, e Element) []byte { return elements.Append(body, e) }

// EachElement yields the elements of such a body.
func EachElement(body string) func(yield func(Element) bool) { return elements.Each(body) }

// CheckElements returns why a text is not the elements of a collection of a kind, as an export has them, or nil.
func CheckElements(text string, kind Kind) error { return elements.CheckAll(text, kind) }

// CollectionsAllowed reports whether AllowCollections has nothing to do. It is cheap.
func (ks *Keyspace) CollectionsAllowed() bool { return ks.storage.CollectionsAllowed() }

// AllowCollections raises the version of the data folder, the first time, to the one in which items may have
// elements. It writes to the disk, so no partition may be locked.
func (ks *Keyspace) AllowCollections() error { return ks.ForClients(ks.storage.AllowCollections()) }
