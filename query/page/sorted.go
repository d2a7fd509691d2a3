package page

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"mayfly/json/jsontext"
	"mayfly/query"
)

// sortedRow is a row with what it is ordered by.
type sortedRow struct {
	Row
	keys []query.Value
	id   string // the order of equal keys: the document's id, or what tells groups apart
}

// size returns the memory of a row in bytes, about.
func (s *sortedRow) size() int {
	n := 96 + len(s.id) + len(s.Text)
	for _, k := range s.keys {
		n += 32 + len(k.Text())
	}
	return n
}

// sortedRows is a heap of rows, the last in order first.
type sortedRows struct {
	desc []bool // of ORDER BY
	rows []sortedRow
}

// compare returns the order of two rows. Equal ones are in the order of ids, in the direction of the first
// item of ORDER BY.
func (s *sortedRows) compare(a, b *sortedRow) int {
	for i, desc := range s.desc {
		if c := query.Compare(a.keys[i], b.keys[i]); c != 0 {
			if desc {
				return -c
			}
			return c
		}
	}
	c := strings.Compare(a.id, b.id)
	if len(s.desc) > 0 && s.desc[0] {
		return -c
	}
	return c
}

func (s *sortedRows) Len() int           { return len(s.rows) }
func (s *sortedRows) Less(i, j int) bool { return s.compare(&s.rows[i], &s.rows[j]) > 0 }
func (s *sortedRows) Swap(i, j int)      { s.rows[i], s.rows[j] = s.rows[j], s.rows[i] }
func (s *sortedRows) Push(x any)         { s.rows = append(s.rows, x.(sortedRow)) }
func (s *sortedRows) Pop() any {
	last := s.rows[len(s.rows)-1]
	s.rows = s.rows[:len(s.rows)-1]
	return last
}

// addSorted adds the row of the current document to those in order.
func (p *Page) addSorted() (more bool, err error) {
	p.keys = p.keys[:0]
	for i := range p.sorted.desc {
		p.keys = append(p.keys, p.e.OrderValue(i))
	}
	row := sortedRow{id: p.e.Document().ID, keys: p.keys}
	if p.distinct == nil {
		if p.offset >= MaxSorted && p.sorted.Len() == MaxSorted {
			return false, fmt.Errorf("query would sort more than %d rows with OFFSET %d: an index gives the order without sorting", MaxSorted, p.offset)
		}
		if p.after != nil && p.sorted.compare(&row, p.after) <= 0 {
			return true, p.e.Err()
		}
		if p.sorted.Len() > 0 && int64(p.sorted.Len()) >= p.most && p.sorted.compare(&row, &p.sorted.rows[0]) >= 0 {
			return true, p.e.Err()
		}
	}
	var ok bool
	if row.Text, ok = p.row(); !ok || p.e.Err() != nil {
		return true, p.e.Err()
	}
	row.id = strings.Clone(row.id)
	row.ID = row.id
	row.keys = make([]query.Value, len(p.keys))
	for i, key := range p.keys {
		row.keys[i] = key.Clone()
	}
	if p.distinct != nil {
		return p.addDistinct(row)
	}
	p.held += row.size()
	heap.Push(&p.sorted, row)
	if int64(p.sorted.Len()) > p.most {
		last := heap.Pop(&p.sorted).(sortedRow)
		p.held -= last.size()
	}
	return true, p.bound()
}

// bound drops the rows that the page has no place for, and refuses to hold more.
func (p *Page) bound() error {
	if p.held <= heldBytes {
		return nil
	}
	p.sort()
	bytes := 0
	for i := range p.sorted.rows {
		if int64(i) < p.offset {
			continue
		}
		if bytes += p.sorted.rows[i].size(); bytes > pageBytes {
			clear(p.sorted.rows[i+1:])
			p.sorted.rows = p.sorted.rows[:i+1]
			p.most, p.cut = int64(i+1), true
			break
		}
	}
	p.held = 0
	for i := range p.sorted.rows {
		p.held += p.sorted.rows[i].size()
	}
	slices.Reverse(p.sorted.rows) // the order of a heap with the last one first
	if p.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of rows: a smaller OFFSET or shorter rows help", heldBytes)
	}
	return nil
}

// sort puts the rows in order.
func (p *Page) sort() {
	slices.SortFunc(p.sorted.rows, func(a, b sortedRow) int { return p.sorted.compare(&a, &b) })
}

// addDistinct adds a row that differs from all others.
func (p *Page) addDistinct(row sortedRow) (more bool, err error) {
	canonical := string(p.e.Canonical(nil, query.ValueOf(strings.Trim(row.Text, jsontext.Space))))
	if p.e.Err() != nil {
		return false, p.e.Err()
	}
	if i, ok := p.distinct[canonical]; ok {
		if !p.q.Sorts() || p.sorted.compare(&row, &p.sorted.rows[i]) >= 0 {
			return true, nil
		}
		p.held += row.size() - p.sorted.rows[i].size()
		p.sorted.rows[i] = row
		return true, p.boundDistinct()
	}
	if len(p.distinct) == MaxGroups {
		return false, fmt.Errorf("query finds more than %d distinct rows", MaxGroups)
	}
	p.distinct[canonical] = p.sorted.Len()
	p.sorted.rows = append(p.sorted.rows, row)
	p.held += row.size() + len(canonical)
	if err := p.boundDistinct(); err != nil {
		return false, err
	}
	return p.q.Sorts() || p.limit < 0 || int64(p.sorted.Len()) < p.offset+p.limit, nil
}

// boundDistinct refuses to hold more.
func (p *Page) boundDistinct() error {
	if p.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of distinct rows", heldBytes)
	}
	return nil
}
