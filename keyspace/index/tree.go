package index

import (
	"math"
	"strings"
	"unsafe"

	"mayfly/query"

	"github.com/tidwall/btree"
)

// Tree holds the keys of the items of one table. Equal keys are in the order of ids. It is not safe for
// concurrent use.
type Tree struct {
	items *btree.BTreeG[entry]
	ids   func(handle uint32) string
	texts []text // by number; the first is that of the probe
	free  []uint32
	probe position
	hint  btree.PathHint // to the last change
	order idOrder
	next  int   // the number of entries at which order is chosen anew
	bytes int64 // of texts
	cut   int   // entries whose key cuts a string
}

// entry is a key and an item. It holds no pointers, so the collector does not look at it.
type entry struct {
	prefix uint64
	more   uint32 // the kind of the first value; below hasText and the number of the text, or the number of the id
	handle uint32 // probeHandle: the item is the probe
}

// text is a text of the dictionary, with the number of entries that have it. 0 is a free place.
type text struct {
	text  string
	count uint32
}

const (
	kindShift = 29
	hasText   = 1 << idBits
	lowMask   = hasText - 1

	noText    = 0
	probeText = 1

	probeHandle = 0 // no item has it
)

// position is a place between entries.
type position struct {
	id    string
	after bool // after all ids
}

// New returns an empty tree. ids returns the id of an item in the tree; it is called under the tree's lock.
func New(ids func(handle uint32) string) *Tree {
	t := &Tree{ids: ids, texts: make([]text, probeText+1), next: firstOrder}
	t.items = btree.NewBTreeGOptions(t.less, btree.Options{NoLocks: true})
	return t
}

// text returns the number of the entry's text, noText without.
func (e entry) text() uint32 {
	if e.more&hasText == 0 {
		return noText
	}
	return e.more & lowMask
}

// less is the order of the tree: kind, prefix, text, id.
func (t *Tree) less(a, b entry) bool {
	if ka, kb := a.more>>kindShift, b.more>>kindShift; ka != kb {
		return ka < kb
	}
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	if a.more != b.more {
		if (a.more|b.more)&hasText == 0 {
			return a.more < b.more
		}
		if c := strings.Compare(t.texts[a.text()].text, t.texts[b.text()].text); c != 0 {
			return c < 0
		}
	}
	if a.handle == b.handle {
		return false
	}
	if a.handle == probeHandle {
		return !t.probe.after && t.probe.id < t.ids(b.handle)
	}
	if b.handle == probeHandle {
		return t.probe.after || t.ids(a.handle) < t.probe.id
	}
	return t.ids(a.handle) < t.ids(b.handle)
}

// pivot returns an entry at a key and a position among the ids of that key. It is valid while they are the
// probe.
func (t *Tree) pivot(k *Key, at position) entry {
	t.setProbe(k, at)
	e := t.probeOf(k, probeHandle)
	switch {
	case k.text != "":
	case at.after:
		e.more |= lastOrder
	default:
		e.more |= t.order.of(at.id)
	}
	return e
}

// setProbe makes a key and a position the probe.
func (t *Tree) setProbe(k *Key, at position) {
	t.probe = at
	t.texts[probeText].text = k.text
}

// probeOf returns the entry of an item at a key, without the number of its id. If the key has a text, it is
// valid while that is the probe.
func (t *Tree) probeOf(k *Key, handle uint32) entry {
	e := entry{prefix: k.prefix, more: uint32(k.kind) << kindShift, handle: handle}
	if k.text != "" {
		e.more |= hasText | probeText
	}
	return e
}

// textOf returns the number of a text of a key in the dictionary, and adds it if need be.
func (t *Tree) textOf(k *Key) uint32 {
	number := uint32(noText)
	t.items.AscendHint(t.pivot(k, position{}), func(there entry) bool {
		if n := there.text(); there.more>>kindShift == uint32(k.kind) && there.prefix == k.prefix && t.texts[n].text == k.text {
			number = n
		}
		return false
	}, &t.hint)
	t.texts[probeText].text = "" // a view of a document
	if number == noText {
		return t.addText(k.text)
	}
	return number
}

// addText adds a text to the dictionary and returns its number.
func (t *Tree) addText(s string) uint32 {
	s = strings.Clone(s)
	t.bytes += int64(len(s))
	if n := len(t.free); n > 0 {
		number := t.free[n-1]
		t.free = t.free[:n-1]
		t.texts[number].text = s
		return number
	}
	t.texts = append(t.texts, text{text: s})
	return uint32(len(t.texts) - 1)
}

// Add adds an item under a key, unless it is there already.
func (t *Tree) Add(k Key, handle uint32) {
	e := entry{prefix: k.prefix, more: uint32(k.kind) << kindShift, handle: handle}
	if k.text == "" {
		e.more |= t.order.of(t.ids(handle))
	} else {
		e.more |= hasText | t.textOf(&k)
	}
	if _, there := t.items.SetHint(e, &t.hint); there {
		return
	}
	if n := e.text(); n != noText {
		t.texts[n].count++
	}
	if k.Cut && len(k.text) >= MaxText {
		t.cut++
	}
	if t.items.Len() >= t.next {
		t.chooseOrder()
	}
}

// The numbers of entries at which the order of ids is chosen: it must not take long, under the lock of a
// partition.
const (
	firstOrder = 64
	lastChoice = 1024
)

// chooseOrder chooses an order of ids like those in the tree. Entries stay where they are: all orders agree.
func (t *Tree) chooseOrder() {
	if t.next = lastChoice; t.items.Len() >= lastChoice {
		t.next = math.MaxInt
	}
	t.order = idOrderOf(func(visit func(id string)) {
		t.items.Scan(func(e entry) bool {
			visit(t.ids(e.handle))
			return true
		})
	})
	t.items.Walk(func(entries []entry) bool {
		for i := range entries {
			if e := &entries[i]; e.more&hasText == 0 {
				e.more = e.more&^lowMask | t.order.of(t.ids(e.handle))
			}
		}
		return true
	})
}

// Remove removes an item from under a key.
func (t *Tree) Remove(k Key, handle uint32) {
	e := t.probeOf(&k, handle)
	if k.text == "" {
		e.more |= t.order.of(t.ids(handle))
	} else {
		t.setProbe(&k, position{})
	}
	there, ok := t.items.DeleteHint(e, &t.hint)
	t.texts[probeText].text = "" // a view of a document
	if !ok {
		return
	}
	if k.Cut && len(k.text) >= MaxText {
		t.cut--
	}
	if n := there.text(); n != noText {
		if t.texts[n].count--; t.texts[n].count == 0 {
			t.bytes -= int64(len(t.texts[n].text))
			t.texts[n].text = ""
			t.free = append(t.free, n)
		}
	}
	if t.items.Len() == 0 {
		t.texts, t.free = make([]text, probeText+1), nil
	}
}

// Cut returns the number of entries whose key cuts a string, or a little more. Without any, the order of the
// tree is that of the values.
func (t *Tree) Cut() int { return t.cut }

// Len returns the number of entries.
func (t *Tree) Len() int { return t.items.Len() }

// entryBytes is the memory of an entry in a tree that is filled at random.
const entryBytes = int64(unsafe.Sizeof(entry{})) * 7 / 4

// Bytes returns the memory of the tree, about.
func (t *Tree) Bytes() int64 {
	return int64(t.items.Len())*entryBytes + t.bytes + int64(cap(t.texts))*int64(unsafe.Sizeof(text{})) + int64(cap(t.free))*4
}

// Bound is one end of a range: before or after all items of a key, or at an id among them.
type Bound struct {
	Key   Key
	ID    string
	After bool // after all ids of the key; ID is not used
}

// Cursor goes through the entries of a range.
type Cursor struct {
	t       *Tree
	it      btree.IterG[entry]
	end     Bound
	endAt   entry // of end
	hasEnd  bool
	desc    bool
	current entry
	idOf    uint32 // the item that idText is the id of
	idText  string

	ahead   []entry // read ahead, behind the current one
	buffer  []entry // the memory of ahead
	batch   int     // how many are read ahead next; 0 for none
	atEnd   bool    // nothing follows those read ahead
	touched int     // keeps reads of ids from being optimised away
}

// mostAhead bounds the entries that a cursor reads ahead.
const mostAhead = 16

// ReadAhead makes the cursor read entries and their ids ahead, a few at first, so that their cache misses
// overlap. It is for merges, which compare ids.
func (c *Cursor) ReadAhead() { c.batch = 2 }

// readAhead reads the next entries. It returns false at the end of the range.
func (c *Cursor) readAhead() bool {
	if c.atEnd {
		return false
	}
	if c.buffer == nil {
		c.buffer = make([]entry, 0, mostAhead)
	}
	list := c.buffer[:0]
	for len(list) < c.batch && !c.atEnd {
		if c.atEnd = !c.move(); !c.atEnd {
			list = append(list, c.current)
		}
	}
	for _, e := range list {
		if id := c.t.ids(e.handle); id != "" {
			c.touched += int(id[0])
		}
	}
	c.ahead, c.batch = list, min(2*c.batch, mostAhead)
	return len(list) > 0
}

// Range returns a cursor before the first entry of a range, from low to high, or from high to low if desc. A
// nil bound is the end of the tree. The tree must not change while the cursor is used.
func (t *Tree) Range(low, high *Bound, desc bool) (c Cursor, ok bool) {
	c = Cursor{t: t, it: t.items.Iter(), desc: desc}
	begin, end := low, high
	if desc {
		begin, end = high, low
	}
	if end != nil {
		c.end, c.endAt, c.hasEnd = *end, t.pivot(&end.Key, position{end.ID, end.After}), true
	}
	switch {
	case begin == nil && !desc:
		ok = c.it.First()
	case begin == nil:
		ok = c.it.Last()
	default:
		ok = c.it.Seek(t.pivot(&begin.Key, position{begin.ID, begin.After}))
		if desc { // Seek finds the first entry at or behind the bound
			if ok {
				ok = c.it.Prev()
			} else {
				ok = c.it.Last()
			}
		}
	}
	t.texts[probeText].text = ""
	return c, ok && c.within()
}

// within reads the current entry and reports whether it is in the range.
func (c *Cursor) within() bool {
	c.current = c.it.Item()
	if !c.hasEnd {
		return true
	}
	a, b := &c.current, &c.endAt
	if ka, kb := a.more>>kindShift, b.more>>kindShift; ka != kb {
		return (ka < kb) != c.desc
	}
	if a.prefix != b.prefix {
		return (a.prefix < b.prefix) != c.desc
	}
	c.t.setProbe(&c.end.Key, position{c.end.ID, c.end.After})
	before := c.t.less(c.current, c.endAt)
	c.t.texts[probeText].text = ""
	return before != c.desc
}

// Next moves to the next entry. It returns false at the end of the range.
func (c *Cursor) Next() bool {
	if c.batch == 0 {
		return c.move()
	}
	if len(c.ahead) == 0 && !c.readAhead() {
		return false
	}
	c.current, c.ahead = c.ahead[0], c.ahead[1:]
	return true
}

// move is Next without reading ahead.
func (c *Cursor) move() bool {
	if c.desc {
		return c.it.Prev() && c.within()
	}
	return c.it.Next() && c.within()
}

// Handle returns the item of the current entry.
func (c *Cursor) Handle() uint32 { return c.current.handle }

// Key returns the key of the current entry. It is safe to keep.
func (c *Cursor) Key() Key {
	text := c.t.texts[c.current.text()].text
	kind := query.Kind(c.current.more >> kindShift)
	return Key{kind: kind, prefix: c.current.prefix, text: text, Cut: len(text) >= MaxText || kind == manyElements.kind}
}

// Less reports whether the current entry of c comes before that of another tree of the same index, in
// ascending order.
func (c *Cursor) Less(other *Cursor) bool {
	a, b := &c.current, &other.current
	if ka, kb := a.more>>kindShift, b.more>>kindShift; ka != kb {
		return ka < kb
	}
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	if order := strings.Compare(c.t.texts[a.text()].text, other.t.texts[b.text()].text); order != 0 {
		return order < 0
	}
	return c.id() < other.id()
}

// id returns the id of the current entry. Each is read once: a merge compares it several times.
func (c *Cursor) id() string {
	if c.idOf != c.current.handle {
		c.idOf, c.idText = c.current.handle, c.t.ids(c.current.handle)
	}
	return c.idText
}

// Behind returns the bound directly behind the entry at b in the direction of reading.
func (b Bound) Behind(desc bool) Bound {
	if !desc {
		b.ID += "\x00" // no id is between
	}
	return b
}

// Compare returns the order of two bounds of the same index.
func (b *Bound) Compare(other *Bound) int {
	if c := b.Key.compare(&other.Key); c != 0 {
		return c
	}
	switch {
	case b.After && other.After:
		return 0
	case b.After:
		return 1
	case other.After:
		return -1
	}
	return strings.Compare(b.ID, other.ID)
}
