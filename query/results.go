package query

import (
	"container/heap"
	"fmt"
	"slices"
	"strings"

	"mayfly/query/jsontext"
)

// Limits of a page.
const (
	MaxCount     = 10_000   // rows of a page
	MaxSorted    = 10_000   // rows that ORDER BY without an index holds, OFFSET included
	MaxGroups    = 10_000   // groups, and rows of DISTINCT
	maxCursor    = 15 << 20 // clients send a cursor back as an argument
	pageBytes    = 8 << 20  // a page ends after
	heldBytes    = 64 << 20
	DefaultCount = 1000 // rows of a page unless COUNT says otherwise
)

// Page says what a page may hold.
type Page struct {
	Count int // rows
	// Ordered says that documents come in the order of ORDER BY.
	Ordered bool
	// Whole returns the row of SELECT *; nil for the text of the document.
	Whole func(*Document) string
}

// Row is a row of the reply. Its memory is its own.
type Row struct {
	ID   string // "" of a group
	Text string // JSON
}

// Results gathers the rows of one page. It is not safe for concurrent use.
type Results struct {
	q     *Query
	e     *Evaluator
	page  Page
	from  Cursor
	after *sortedRow // the last row of the page before, of rows in order

	Matched int // documents that WHERE selected

	offset, limit int64 // that are left
	rows          []Row
	bytes         int

	sorted sortedRows
	held   int   // bytes of sorted
	most   int64 // rows that sorted keeps
	cut    bool  // sorted had more, but not enough memory

	distinct map[string]int // the canonical text of a row, and its index in sorted
	groups   map[string]*group
	key      []byte
}

// Results returns an empty page that begins at a cursor.
func (q *Query) Results(page Page, from Cursor) (*Results, error) {
	r := &Results{q: q, e: q.Evaluator(), page: page, from: from, offset: from.Offset, limit: from.Limit}
	r.sorted.by, r.most = q.orderBy, r.keep()
	if from.key != nil {
		r.after = &sortedRow{keys: from.key, id: from.id}
	}
	switch {
	case q.grouped:
		r.groups = map[string]*group{}
		r.sorted.by = make([]orderItem, len(q.groupBy))
		if len(q.groupBy) == 0 {
			r.groups[""] = q.newGroup(nil)
		}
	case q.distinct:
		r.distinct = map[string]int{}
	case q.orderBy != nil && !page.Ordered && r.most > MaxSorted:
		return nil, fmt.Errorf("query would sort more than %d rows with OFFSET %d: an index gives the order without sorting", MaxSorted, r.offset)
	}
	return r, nil
}

// Streams reports whether rows come in the order in which documents are added. Then a page can end before all
// documents are examined.
func (r *Results) Streams() bool {
	return r.groups == nil && r.distinct == nil && (r.q.orderBy == nil || r.page.Ordered)
}

// keep returns how many rows in order are worth keeping.
func (r *Results) keep() int64 {
	rows := int64(r.page.Count)
	if r.limit >= 0 {
		rows = min(rows, r.limit)
	}
	return r.offset + rows
}

// Add examines a document, and adds its row if the query selects it. It returns false if the page is
// full. The document need not stay.
func (r *Results) Add(doc *Document) (more bool, err error) {
	if r.limit == 0 {
		return false, nil
	}
	e := r.e
	e.Load(doc)
	if !doc.Proven && !e.Match() {
		return true, e.err
	}
	r.Matched++
	switch {
	case r.groups != nil:
		return true, r.addToGroup()
	case r.q.orderBy != nil && r.q.orderBy[0].expr.eval(e).kind == Undefined:
		r.Matched--
		return true, e.err
	case !r.Streams():
		return r.addSorted()
	case r.offset > 0 && !r.q.value:
		r.offset--
		return true, nil
	}
	text, ok := r.row()
	if !ok || e.err != nil {
		return true, e.err
	}
	if r.offset > 0 { // VALUE of undefined is no row, so only the row says that it counts
		r.offset--
		return true, nil
	}
	r.emit(Row{ID: strings.Clone(doc.ID), Text: text})
	return r.limit != 0 && !r.full(), nil
}

// Work returns what the last document cost: see [Evaluator.Work].
func (r *Results) Work() int { return r.e.done }

// row returns the row of the current document.
func (r *Results) row() (string, bool) {
	if r.q.items == nil && r.page.Whole != nil {
		return r.page.Whole(r.e.doc), true
	}
	out, ok := r.e.Row(nil)
	return string(out), ok
}

// emit adds a row to the page.
func (r *Results) emit(row Row) {
	r.rows = append(r.rows, row)
	r.bytes += len(row.ID) + len(row.Text)
	if r.limit > 0 {
		r.limit--
	}
}

// full reports whether the page holds as much as it may.
func (r *Results) full() bool { return len(r.rows) >= r.page.Count || r.bytes >= pageBytes }

// sortedRow is a row with what it is ordered by.
type sortedRow struct {
	Row
	keys []Value
	id   string // the order of equal keys: the document's id, or what tells groups apart
}

// size returns the memory of a row in bytes, about.
func (s *sortedRow) size() int {
	n := 96 + len(s.id) + len(s.Text)
	for _, k := range s.keys {
		n += 32 + len(k.text)
	}
	return n
}

// sortedRows is a heap of rows, the last in order first.
type sortedRows struct {
	by   []orderItem
	rows []sortedRow
}

// compare returns the order of two rows. Equal ones are in the order of ids, in the direction of the first
// item of ORDER BY.
func (s *sortedRows) compare(a, b *sortedRow) int {
	for i, by := range s.by {
		if c := Compare(a.keys[i], b.keys[i]); c != 0 {
			if by.desc {
				return -c
			}
			return c
		}
	}
	c := strings.Compare(a.id, b.id)
	if len(s.by) > 0 && s.by[0].desc {
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
func (r *Results) addSorted() (more bool, err error) {
	row := sortedRow{id: r.e.doc.ID}
	for _, by := range r.q.orderBy {
		row.keys = append(row.keys, by.expr.eval(r.e))
	}
	if r.distinct == nil {
		if r.after != nil && r.sorted.compare(&row, r.after) <= 0 {
			return true, r.e.err
		}
		if r.sorted.Len() > 0 && int64(r.sorted.Len()) >= r.most && r.sorted.compare(&row, &r.sorted.rows[0]) >= 0 {
			return true, r.e.err
		}
	}
	var ok bool
	if row.Text, ok = r.row(); !ok || r.e.err != nil {
		return true, r.e.err
	}
	row.id = strings.Clone(row.id)
	row.ID = row.id
	for i := range row.keys {
		row.keys[i].text = strings.Clone(row.keys[i].text)
	}
	if r.distinct != nil {
		return r.addDistinct(row)
	}
	r.held += row.size()
	heap.Push(&r.sorted, row)
	if int64(r.sorted.Len()) > r.most {
		last := heap.Pop(&r.sorted).(sortedRow)
		r.held -= last.size()
	}
	return true, r.bound()
}

// bound drops the rows that the page has no place for, and refuses to hold more.
func (r *Results) bound() error {
	if r.held <= heldBytes {
		return nil
	}
	r.sort()
	bytes := 0
	for i := range r.sorted.rows {
		if int64(i) < r.offset {
			continue
		}
		if bytes += r.sorted.rows[i].size(); bytes > pageBytes {
			clear(r.sorted.rows[i+1:])
			r.sorted.rows = r.sorted.rows[:i+1]
			r.most, r.cut = int64(i+1), true
			break
		}
	}
	r.held = 0
	for i := range r.sorted.rows {
		r.held += r.sorted.rows[i].size()
	}
	slices.Reverse(r.sorted.rows) // the order of a heap with the last one first
	if r.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of rows: a smaller OFFSET or shorter rows help", heldBytes)
	}
	return nil
}

// sort puts the rows in order.
func (r *Results) sort() {
	slices.SortFunc(r.sorted.rows, func(a, b sortedRow) int { return r.sorted.compare(&a, &b) })
}

// addDistinct adds a row that differs from all others.
func (r *Results) addDistinct(row sortedRow) (more bool, err error) {
	canonical := string(r.e.canonical(nil, ValueOf(strings.Trim(row.Text, jsontext.Space))))
	if r.e.err != nil {
		return false, r.e.err
	}
	if i, ok := r.distinct[canonical]; ok {
		if r.sorted.by == nil || r.sorted.compare(&row, &r.sorted.rows[i]) >= 0 {
			return true, nil
		}
		r.held += row.size() - r.sorted.rows[i].size()
		r.sorted.rows[i] = row
		return true, r.boundDistinct()
	}
	if len(r.distinct) == MaxGroups {
		return false, fmt.Errorf("query finds more than %d distinct rows", MaxGroups)
	}
	r.distinct[canonical] = r.sorted.Len()
	r.sorted.rows = append(r.sorted.rows, row)
	r.held += row.size() + len(canonical)
	if err := r.boundDistinct(); err != nil {
		return false, err
	}
	return r.q.orderBy != nil || r.limit < 0 || int64(r.sorted.Len()) < r.offset+r.limit, nil
}

// boundDistinct refuses to hold more.
func (r *Results) boundDistinct() error {
	if r.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of distinct rows", heldBytes)
	}
	return nil
}

// Finish returns the rows of the page and the next cursor, "0" at the end. position is where the documents
// go on that have not been added; "" if all have been.
func (r *Results) Finish(position string) (rows []Row, next string, err error) {
	if r.Streams() {
		if r.limit == 0 || position == "" {
			return r.rows, "0", nil
		}
		return r.rows, r.q.encode(Cursor{Position: position, Offset: r.offset, Limit: r.limit}), nil
	}
	switch {
	case r.groups != nil:
		if err := r.finishGroups(); err != nil {
			return nil, "", err
		}
	case r.q.orderBy != nil:
		r.sort()
	}
	for i, row := range r.sorted.rows {
		if r.offset > 0 {
			r.offset--
			continue
		}
		if r.limit == 0 {
			break
		}
		r.emit(row.Row)
		last := i+1 == len(r.sorted.rows)
		if r.distinct == nil && r.limit != 0 && (r.full() && !(last && r.groups != nil) || r.cut && last) {
			next = r.q.encode(Cursor{Limit: r.limit, key: row.keys, id: row.id})
			if len(next) > maxCursor {
				return nil, "", fmt.Errorf("the last row of the page has a value of ORDER BY too long for a cursor of %d bytes: another COUNT or LIMIT ends the page elsewhere", maxCursor)
			}
			return r.rows, next, nil
		}
	}
	return r.rows, "0", nil
}
