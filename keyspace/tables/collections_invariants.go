//go:build invariants || race

package tables

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// checkPages verifies what is known of the collections of a table.
func (t *Table[C]) checkPages() (err error) {
	found := make(map[uint64]*Collection)
	if t.Pages == nil {
		t.Descend(0, func(_ uint64, e *memtable.Entry) bool {
			if e.Collection() && elements.IsHead(t.Item(e).Body) {
				err = fmt.Errorf("%q has pages, and its table none", t.ID(e))
			}
			return err == nil
		})
		return err
	}
	cs := t.Pages.Collections
	switch {
	case t.P.Shard.Table(t.Container()) != &t.Table || t.Pages.Container() != t.Container() || t.Pages.C != t.C || t.Pages.P != t.P:
		return fmt.Errorf("the table of pages belongs elsewhere")
	case t.Gone() != t.Pages.Gone():
		return fmt.Errorf("the table of pages is gone %t, that of keys %t", t.Pages.Gone(), t.Gone())
	}
	t.Descend(0, func(_ uint64, e *memtable.Entry) bool {
		it := t.Item(e)
		if !e.Collection() {
			return true
		}
		if err = elements.Check(it.Body, it.Kind); err != nil || !elements.IsHead(it.Body) {
			return err == nil
		}
		head, _ := elements.ReadHead(it.Body)
		c := cs.byNumber[head.Number]
		if c == nil || t.At(c.Key) != e || c.Head != head || c.former != 0 {
			err = fmt.Errorf("%q has the head %+v, known is %+v", t.ID(e), head, c)
			return false
		}
		found[head.Number] = &Collection{Head: head, first: math.MaxInt64}
		if it.Kind == record.SortedSet {
			found[head.Number].Order = elements.NewOrder()
		}
		return true
	})
	if err != nil {
		return err
	}
	t.Pages.Descend(0, func(_ uint64, e *memtable.Entry) bool {
		err = cs.checkPage(e, found)
		return err == nil
	})
	for number, is := range found {
		if c := cs.byNumber[number]; err == nil && (c.Count != is.Count || c.Ending != is.Ending || c.Weight != is.Weight || c.Memory != is.Memory || c.Pages != is.Pages || c.Count == 0 ||
			c.first > is.first) {
			err = fmt.Errorf("collection %x has %+v, known is %+v", number, is, c)
		} else if err == nil {
			err = errors.Join(c.checkOrder(is), c.checkPopped(true, c.Left), c.checkPopped(false, c.Right))
		}
		if c := cs.byNumber[number]; err == nil {
			err = cs.checkHandles(c)
		}
	}
	return err
}

// checkPopped verifies what was popped off at an end of a list.
func (c *Collection) checkPopped(left bool, popped elements.Popped) error {
	if edge := c.List.Edge(left); popped.Count > 0 && (popped.Page != edge.Number || int(popped.Of) != edge.Count || c.Popped(edge.Number) >= edge.Count) {
		return fmt.Errorf("list %x has popped %+v at its end %+v", c.Number, popped, edge)
	}
	return nil
}

// checkHandles verifies what a collection keeps of its pages.
func (cs *Collections) checkHandles(c *Collection) error {
	for number, h := range c.handles {
		if h == 0 {
			continue
		}
		id := string(c.PageID(nil, uint64(number)))
		if e := cs.pages.Find(id); e == nil || e != cs.pages.At(h) {
			return fmt.Errorf("page %s has the handle %d, which is of another", id, h)
		} else if n := elements.SumOf(cs.pages.Item(e).Body).Count; n != int(c.counts[number]) {
			return fmt.Errorf("page %s has %d elements, known are %d", id, n, c.counts[number])
		}
	}
	return nil
}

// checkPage verifies a page and counts its elements.
func (cs *Collections) checkPage(e *memtable.Entry, found map[uint64]*Collection) error {
	id, it := cs.pages.IDAndItem(e)
	number, page, ok := record.SplitPageID(id)
	c := found[number]
	if !ok || c == nil {
		return nil // it is garbage
	}
	if err := elements.CheckPage(it.Body, page); err != nil {
		return fmt.Errorf("page %s: %w", id, err)
	}
	s := elements.SumOf(it.Body)
	if elements.IsOfList(page) {
		c.List.Add(page, s.Count)
	} else {
		for el := range elements.Each(it.Body) {
			if uint64(c.Bucket(el.Field)) != page {
				return fmt.Errorf("page %s has %q, which belongs to %x", id, el.Field, c.Bucket(el.Field))
			}
		}
	}
	if c.Order != nil {
		c.Order.Replace("", it.Body)
	}
	if want := max(it.ExpireAt, 0); s.Ending > 0 && s.Earliest != want || s.Ending == 0 && want != 0 {
		return fmt.Errorf("page %s ends at %d, its elements at %d", id, it.ExpireAt, s.Earliest)
	}
	c.first = min(c.first, s.Earliest)
	c.Count, c.Ending, c.Weight = c.Count+s.Count, c.Ending+s.Ending, c.Weight+int64(s.Weight)
	c.Memory += memtable.ItemOverhead + int64(len(id)+len(it.Body))
	c.Pages++
	return nil
}

// checkOrder verifies the order of a collection by that which its pages have.
func (c *Collection) checkOrder(is *Collection) error {
	if (c.Order == nil) != (is.Order == nil) {
		return fmt.Errorf("collection %x has an order: %t, and should: %t", c.Number, c.Order != nil, is.Order != nil)
	}
	if is.Order != nil {
		if !c.Order.Settled() {
			return fmt.Errorf("collection %x has a member twice", c.Number)
		}
		if c.Order.Bytes() != is.Order.Bytes() {
			return fmt.Errorf("the order of collection %x takes %d bytes, %d are known", c.Number, is.Order.Bytes(), c.Order.Bytes())
		}
		at := 0
		for s := range is.Order.Ascend(0) {
			if c.Order.At(at) != s {
				return fmt.Errorf("collection %x has %v as number %d, known is %v", c.Number, s, at, c.Order.At(at))
			}
			at++
		}
	}
	if known, found := slices.Collect(c.List.Ascend(0)), slices.Collect(is.List.Ascend(0)); !slices.Equal(known, found) || c.List.Len() != is.List.Len() {
		return fmt.Errorf("list %x has the pages %v, known are %v", c.Number, found, known)
	}
	return nil
}
