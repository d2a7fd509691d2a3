package keyspace

import (
	"math/rand/v2"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/tables"
)

// Element is a field of a hash with its value, and its end in ms, 0 for none.
type Element = elements.Element

// Hash is the living fields of a hash as a transaction sees them. Strings are safe to keep. The zero value has
// none.
type Hash struct {
	body  string // of one item, with all fields
	limit int64  // of the dead: see [elements.Element.Dead]

	cs *tables.Collections // with the pages; nil: there are none
	c  *tables.Collection
}

// Hash returns the hash under an id, and of what kind the item there is.
func (tx *Tx) Hash(c *Container, id string) (h Hash, kind Kind, found bool) {
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
	if it.Kind == HashKind {
		h = tx.hashOf(t, it.Body)
	}
	return h, it.Kind, true
}

// hashOf returns the hash with a body.
func (tx *Tx) hashOf(t *table, body string) Hash {
	h := Hash{body: body, limit: t.C.Policy().DeadLimits(tx.now).ByOwnTTL}
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
func (h *Hash) Get(field string) (e Element, ok bool) {
	body := h.body
	if h.c != nil {
		body = h.cs.Body(h.c, h.c.Bucket(field))
	}
	if e, _, _, ok = elements.Find(body, field); !ok || e.Dead(h.limit) {
		return Element{}, false
	}
	return e, true
}

// Len returns the number of fields.
func (h *Hash) Len() int {
	if h.c == nil {
		return elements.SumOf(h.body).Count
	}
	return h.c.Count - h.cs.Dead(h.c, h.limit)
}

// Size estimates the bytes of the fields and values.
func (h *Hash) Size() int64 {
	if h.c == nil {
		return int64(len(h.body))
	}
	return h.c.Memory
}

// Bodies returns the texts that have the elements, the dead too: see [HashOf].
func (h *Hash) Bodies() (list []string) {
	if h.c == nil {
		return []string{h.body}
	}
	list = make([]string, 0, h.c.Buckets)
	for place, more := uint64(0), true; more; more = place != 0 {
		var bucket uint32
		bucket, place = h.c.From(place)
		if body := h.cs.Body(h.c, bucket); body != "" {
			list = append(list, body)
		}
	}
	return list
}

// Each yields the elements that live of those in bodies, in the order of Scan. It needs no lock.
func (h *Hash) Each(bodies []string) func(yield func(Element) bool) {
	return func(yield func(Element) bool) {
		for _, body := range bodies {
			for e := range elements.Each(body) {
				if !e.Dead(h.limit) && !yield(e) {
					return
				}
			}
		}
	}
}

// All yields the elements.
func (h *Hash) All() func(yield func(Element) bool) { return h.Each(h.Bodies()) }

// Scan visits about count elements from a cursor on, and returns the next; 0: there are no more. One that is
// there throughout is visited once. All elements of one item are visited at once.
func (h *Hash) Scan(cursor uint64, count int, visit func(Element)) (next uint64) {
	if h.c == nil {
		for e := range h.All() {
			visit(e)
		}
		return 0
	}
	const mostBuckets = 10 // for each element that is asked for
	for buckets := 0; count > 0 && buckets < mostBuckets*count+mostBuckets; buckets++ {
		bucket, to := h.c.From(cursor)
		for e := range elements.Each(h.cs.Body(h.c, bucket)) {
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

// Random returns a random element. There must be one.
func (h *Hash) Random() (e Element) {
	if h.c != nil {
		most := 16
		for range 256 {
			living := 0
			var one Element
			for e := range elements.Each(h.cs.Body(h.c, rand.Uint32N(h.c.Buckets))) {
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

// CheckElements returns why a text is not the fields of a hash, as an export has them, or nil.
func CheckElements(text string) error { return elements.Check(text, true) }

// CollectionsAllowed reports whether AllowCollections has nothing to do. It is cheap.
func (ks *Keyspace) CollectionsAllowed() bool { return ks.storage.CollectionsAllowed() }

// AllowCollections raises the version of the data folder, the first time, to the one in which items may have
// elements. It writes to the disk, so no partition may be locked.
func (ks *Keyspace) AllowCollections() error { return ks.ForClients(ks.storage.AllowCollections()) }
