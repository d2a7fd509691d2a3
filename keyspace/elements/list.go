package elements

import (
	"cmp"
	"slices"
)

// The pages of a list have an order, that of their numbers. These begin in the middle and leave gaps, so that
// a page finds room on either side and between two others. All have sixteen hexadecimal digits: the order of
// their ids is that of the pages.
const (
	FirstOfList = 1 << 63 // of the first page of a list
	Gap         = 1 << 24 // to the next page
	leastOfList = 1 << 60
	mostOfList  = 1<<64 - 1<<60
)

// ListPageSize is the mean size of the pages of lists in bytes.
const ListPageSize = 512

// IsOfList reports whether the page with a number is one of a list: no bucket has so great a number.
func IsOfList(number uint64) bool { return number >= leastOfList }

// Between returns a number between those of two pages of a list that follow each other, 0 for none: before
// the first, behind the last. If there is no room, it returns false.
func Between(before, after uint64) (number uint64, ok bool) {
	switch {
	case before == 0 && after == 0:
		return FirstOfList, true
	case before == 0:
		return after - Gap, after >= leastOfList+Gap
	case after == 0:
		return before + Gap, before <= mostOfList-Gap
	}
	return before + (after-before)/2, after-before > 1
}

// ListPage is a page of a list.
type ListPage struct {
	Number uint64
	Count  int // entries
}

// Directory is the pages of a list in their order. It finds that of an entry in about the root of their
// number.
type Directory struct {
	parts []*part // none is empty
	count int     // entries
}

// part is pages that follow each other.
type part struct {
	pages []ListPage
	count int // entries
}

const mostInPart = 512

// Len returns the number of entries.
func (d *Directory) Len() int { return d.count }

// place returns the part of the page with a number and its place there, or those that it would have.
func (d *Directory) place(number uint64) (p, i int, found bool) {
	p, found = slices.BinarySearchFunc(d.parts, number, func(p *part, number uint64) int {
		return cmp.Compare(p.pages[0].Number, number)
	})
	if !found {
		if p == 0 {
			return 0, 0, false
		}
		p--
	}
	i, found = slices.BinarySearchFunc(d.parts[p].pages, number, func(p ListPage, number uint64) int { return cmp.Compare(p.Number, number) })
	return p, i, found
}

// Add notes that a page has some entries more, or fewer. One that has none is no page any more.
func (d *Directory) Add(number uint64, entries int) {
	p, i, found := d.place(number)
	if !found {
		if entries > 0 {
			d.insert(p, i, ListPage{number, entries})
		}
		return
	}
	at := d.parts[p]
	d.grow(p, entries)
	if at.pages[i].Count += entries; at.pages[i].Count > 0 {
		return
	}
	if at.pages = slices.Delete(at.pages, i, i+1); len(at.pages) == 0 {
		d.parts = slices.Delete(d.parts, p, p+1)
	}
}

// insert inserts a page at a place of a part.
func (d *Directory) insert(p, i int, page ListPage) {
	if len(d.parts) == 0 {
		d.parts = append(d.parts, new(part))
	}
	at := d.parts[p]
	at.pages = slices.Insert(at.pages, i, page)
	if d.grow(p, page.Count); len(at.pages) <= mostInPart {
		return
	}
	next := &part{pages: slices.Clone(at.pages[mostInPart/2:])}
	for _, page := range next.pages {
		next.count += page.Count
	}
	at.pages, at.count = at.pages[:mostInPart/2], at.count-next.count
	d.parts = slices.Insert(d.parts, p+1, next)
}

func (d *Directory) grow(p, entries int) {
	d.parts[p].count += entries
	d.count += entries
}

// At returns the page of the entry with an index, and the index of its first entry. There must be such an
// entry.
func (d *Directory) At(index int) (page ListPage, first int) {
	for _, p := range d.parts {
		if index >= first+p.count {
			first += p.count
			continue
		}
		for _, page := range p.pages {
			if index < first+page.Count {
				return page, first
			}
			first += page.Count
		}
	}
	return ListPage{}, first
}

// Beside returns the numbers of the pages before and behind one, 0 for none.
func (d *Directory) Beside(number uint64) (before, after uint64) {
	for page := range d.Descend(number) {
		if page.Number != number {
			before = page.Number
			break
		}
	}
	for page := range d.Ascend(number) {
		if page.Number != number {
			after = page.Number
			break
		}
	}
	return before, after
}

// Edge returns the first page or the last; the zero page: there are none.
func (d *Directory) Edge(first bool) ListPage {
	switch {
	case len(d.parts) == 0:
		return ListPage{}
	case first:
		return d.parts[0].pages[0]
	}
	pages := d.parts[len(d.parts)-1].pages
	return pages[len(pages)-1]
}

// Ascend yields the pages from a number on. They may not change meanwhile.
func (d *Directory) Ascend(number uint64) func(yield func(ListPage) bool) {
	return func(yield func(ListPage) bool) {
		p, i, _ := d.place(number)
		for ; p < len(d.parts); p, i = p+1, 0 {
			for _, page := range d.parts[p].pages[i:] {
				if !yield(page) {
					return
				}
			}
		}
	}
}

// Descend yields the pages from a number down. They may not change meanwhile.
func (d *Directory) Descend(number uint64) func(yield func(ListPage) bool) {
	return func(yield func(ListPage) bool) {
		p, i, found := d.place(number)
		if !found {
			i--
		}
		for ; p >= 0 && p < len(d.parts); p-- {
			for ; i >= 0; i-- {
				if !yield(d.parts[p].pages[i]) {
					return
				}
			}
			if p > 0 {
				i = len(d.parts[p-1].pages) - 1
			}
		}
	}
}

// EntryAt returns the entry of a body with an index, and the place that it has there; with -1 the last one.
func EntryAt(body string, index int) (entry string, from, to int) {
	for at := 0; at < len(body); index-- {
		start, end, _, behind := next(body, at)
		if behind < 0 {
			break
		}
		entry, from, to = body[start:end], at, behind
		if at = behind; index == 0 {
			break
		}
	}
	return entry, from, to
}

// Half returns the place of the first entry in the second half of a body; 0: there is none but the first.
func Half(body string) (at int) {
	for at < len(body)/2 {
		_, _, _, behind := next(body, at)
		if behind < 0 || behind == len(body) {
			break
		}
		at = behind
	}
	return at
}

// Entries yields the entries of pages with the indexes from one up to below another, or the same backwards.
func Entries(pages []string, from, to int, backwards bool) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		if backwards {
			entriesBackwards(pages, from, to, yield)
			return
		}
		at := 0
		for _, page := range pages {
			for e := range Each(page) {
				if at >= to || at >= from && !yield(e.Field) {
					return
				}
				at++
			}
		}
	}
}

// entriesBackwards yields the entries of pages from the index before to down to from.
func entriesBackwards(pages []string, from, to int, yield func(string) bool) {
	at := 0
	for _, page := range pages {
		at += SumOf(page).Count
	}
	var list []string
	for _, page := range slices.Backward(pages) {
		list = list[:0]
		for e := range Each(page) {
			list = append(list, e.Field)
		}
		for _, entry := range slices.Backward(list) {
			if at--; at < from || at < to && !yield(entry) {
				return
			}
		}
	}
}

// Filter returns a body without the entries that keep does not keep.
func Filter(body string, left bool, keep func(entry string) (keeps, more bool)) (rest []byte, more, changed bool) {
	all := slices.Collect(Each(body))
	if !left {
		slices.Reverse(all)
	}
	kept := make([]Element, 0, len(all))
	more = true
	for _, e := range all {
		keeps := true
		if more {
			keeps, more = keep(e.Field)
		}
		if keeps {
			kept = append(kept, e)
		} else {
			changed = true
		}
	}
	if !changed {
		return nil, more, false
	}
	if !left {
		slices.Reverse(kept)
	}
	for _, e := range kept {
		rest = Append(rest, e)
	}
	return rest, more, true
}
