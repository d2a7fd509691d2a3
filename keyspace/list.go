package keyspace

import (
	"slices"
	"strings"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/record"
)

// ListEdit changes the entries of a list for one command. Close ends it. A page is written once, when another
// one is changed, or at the end: buf has what is to become of the page that was looked up last. What is
// popped stays in its page: see [elements.Popped].
type ListEdit struct{ ElementsEdit }

// EditList is [Tx.EditElements] for a list.
func (tx *Tx) EditList(c *Container, id string) (x ListEdit, was Kind) {
	x.ElementsEdit, was = tx.EditElements(c, id, ListKind)
	return x, was
}

// entry returns an entry as it is in a body.
func entry(value string) []byte {
	return elements.Append(make([]byte, 0, 64), Element{Field: value})
}

// Len returns the number of entries, with what was changed.
func (x *ListEdit) Len() int {
	if x.Collection == nil {
		return elements.SumOf(x.now()).Count
	}
	x.flush()
	return x.Collection.Len()
}

// load makes a page the one that is changed.
func (x *ListEdit) load(page uint64) {
	if x.buf == nil {
		x.buf, x.tx.page = x.tx.page, nil // until Close
	}
	if !x.at.known || x.at.number != page {
		x.flush()
		x.buf = append(x.buf[:0], x.find(page).body...)
	}
}

// beginPage makes a new page the one that is changed.
func (x *ListEdit) beginPage(page uint64, entries []byte) {
	x.flush()
	x.find(page).dirty = true
	x.buf = append(x.buf[:0], entries...)
}

// edge returns the number of the first page or the last, 0 if there is none.
func (x *ListEdit) edge(left bool) uint64 {
	number := x.Collection.List.Edge(left).Number
	if isNew := number == 0 || left && x.at.number < number || !left && x.at.number > number; x.at.dirty && isNew {
		return x.at.number
	}
	return number
}

// Push adds an entry at the left end or at the right one. If a hold forbids it, it returns false.
func (x *ListEdit) Push(left bool, value string) bool {
	if !x.begin() {
		return false
	}
	if x.Collection == nil {
		if left {
			x.small = slices.Insert(x.small, 0, entry(value)...)
		} else {
			x.small = append(x.small, entry(value)...)
		}
		x.openIfLarge()
		return true
	}
	number := x.edge(left)
	if number == 0 {
		number = elements.FirstOfList
	}
	x.load(number)
	if e := entry(value); len(x.buf) > 0 && len(x.buf)+len(e) > elements.ListPageSize {
		next, ok := elements.Between(0, number)
		if !left {
			next, ok = elements.Between(number, 0)
		}
		if !ok {
			x.renumber()
			return x.Push(left, value)
		}
		x.at.dirty = x.at.dirty || x.head.Popped(number) > 0 // it is the edge no more
		x.beginPage(next, e)
	} else if left {
		x.buf = slices.Insert(x.buf, 0, e...)
	} else {
		x.buf = append(x.buf, e...)
	}
	x.at.dirty = true
	return true
}

// renumber writes the list anew: there is no room between its pages.
func (x *ListEdit) renumber() {
	x.flush()
	x.Replace(x.All())
}

// Replace makes a list of entries, whatever is under the id. It keeps End.
func (x *ListEdit) Replace(all func(yield func(Element) bool)) (n int) {
	if !x.begin() {
		return 0
	}
	x.clear()
	for e := range all {
		x.Push(false, e.Field)
		n++
	}
	return n
}

// openIfLarge gives the list pages, if it is no small one any more.
func (x *ListEdit) openIfLarge() {
	if len(x.small) <= elements.SmallSize {
		return
	}
	x.openPages()
	x.put(elements.FirstOfList, x.small)
	x.Collection = x.Collections.ByNumber(x.head.Number)
	x.load(elements.FirstOfList)
	x.cut()
}

// Pop removes the entry at an end, which must exist, and returns it.
func (x *ListEdit) Pop(left bool) (value string, ok bool) {
	if !x.begin() {
		return "", false
	}
	buf := &x.small
	if x.Collection != nil {
		x.flush()
		edge := x.Collection.List.Edge(left)
		if body := x.Collections.Stored(x.Collection, edge.Number); len(body) <= 2*elements.ListPageSize {
			return x.popOff(left, edge, body), true
		}
		x.load(edge.Number) // it is not worth the room
		buf = &x.buf
	}
	index := -1
	if left {
		index = 0
	}
	value, from, to := elements.EntryAt(record.View(*buf), index)
	value = strings.Clone(value) // the buffer changes
	*buf = slices.Delete(*buf, from, to)
	if x.Collection != nil {
		x.changed()
	}
	return value, true
}

// popOff notes in the head that the entry at an end was popped off its page. The last one takes the page
// along.
func (x *ListEdit) popOff(left bool, edge elements.ListPage, body string) (value string) {
	popped, at := &x.head.Left, int(x.head.Left.Count)
	if !left {
		popped, at = &x.head.Right, edge.Count-1-int(x.head.Right.Count)
	}
	value, _, _ = elements.EntryAt(body, at)
	*popped = elements.Popped{Page: edge.Number, Count: popped.Count + 1, Of: uint32(edge.Count)}
	x.noteHead()
	if x.at = (page{}); x.head.Popped(edge.Number) == edge.Count {
		x.put(edge.Number, nil)
	}
	return value
}

// changed notes that the page was changed. An empty one is removed at once.
func (x *ListEdit) changed() {
	if x.at.dirty = true; len(x.buf) == 0 {
		x.flush()
	}
}

// Drop removes entries at an end.
func (x *ListEdit) Drop(left bool, n int) {
	for n > 0 && x.begin() {
		if x.Collection != nil {
			x.flush()
			page := x.Collection.List.Edge(left)
			if count := page.Count - x.head.Popped(page.Number); count <= n {
				n -= count
				x.load(page.Number)
				x.buf = x.buf[:0]
				x.changed()
				continue
			}
		}
		for ; n > 0; n-- {
			x.Pop(left)
		}
	}
}

// SetAt replaces the entry with an index, which must exist.
func (x *ListEdit) SetAt(index int, value string) { x.splice(index, value, true) }

// InsertAt inserts an entry before the one with an index, which must exist.
func (x *ListEdit) InsertAt(index int, value string) { x.splice(index, value, false) }

func (x *ListEdit) splice(index int, value string, replace bool) {
	if !x.begin() {
		return
	}
	buf := &x.small
	if x.Collection != nil {
		x.flush()
		page, first := x.Collection.At(index)
		x.load(page)
		buf, index = &x.buf, index-first
	}
	_, from, to := elements.EntryAt(record.View(*buf), index)
	if !replace {
		to = from
	}
	*buf = slices.Replace(*buf, from, to, entry(value)...)
	switch {
	case x.Collection != nil:
		if x.at.dirty = true; len(x.buf) > 2*elements.ListPageSize {
			x.cut()
		}
	default:
		x.openIfLarge()
	}
}

// cut divides the page that is changed, if it has two entries or more.
func (x *ListEdit) cut() {
	at := elements.Half(record.View(x.buf))
	if at == 0 {
		return
	}
	_, behind := x.Collection.List.Beside(x.at.number)
	next, ok := elements.Between(x.at.number, behind)
	if x.at.dirty = true; !ok {
		x.renumber()
		return
	}
	tail := slices.Clone(x.buf[at:])
	x.buf = x.buf[:at]
	x.beginPage(next, tail)
}

// Filter removes the entries, from the left end or from the right one, for which keep does not hold. It ends
// when that wants no more.
func (x *ListEdit) Filter(left bool, keep func(entry string) (keeps, more bool)) {
	numbers := []uint64{0}
	if x.Collection != nil {
		x.flush()
		numbers = numbers[:0]
		for page := range x.Collection.List.Ascend(0) {
			numbers = append(numbers, page.Number)
		}
	}
	if !left {
		slices.Reverse(numbers)
	}
	for _, number := range numbers {
		body := x.Body
		switch {
		case x.Collection != nil:
			body = x.Collections.Body(x.Collection, number)
		case x.begun:
			body = strings.Clone(record.View(x.small))
		}
		rest, more, changed := elements.Filter(body, left, keep)
		if changed {
			if !x.begin() {
				return
			}
			if x.Collection == nil {
				x.small = rest
			} else {
				x.put(number, rest)
			}
		}
		if !more {
			return
		}
	}
}

// Close is that of [ElementsEdit].
func (x *ListEdit) Close() (gone bool) {
	x.flush()
	x.tx.keepPage(x.buf)
	return x.ElementsEdit.Close()
}
