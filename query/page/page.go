package page

import (
	"fmt"
	"strings"

	"mayfly/query"
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

// Options say what a page may hold.
type Options struct {
	Count int // rows
	// Moment is when the time left of documents counts, in ms since 1970. Cursors keep it, so that rows stay in
	// order from page to page.
	Moment int64
	// Ordered says that documents come in the order of ORDER BY.
	Ordered bool
	// Defined says that the first value of ORDER BY is defined in documents marked as proven.
	Defined bool
	// Shared says that the memory of documents does not change, so that rows may share it.
	Shared bool
	// Proven are the numbers of the conditions that documents marked as proven fulfil.
	Proven []int
	// Whole returns the row of SELECT *; nil for the text of the document.
	Whole func(*query.Document) string
}

// Row is a row of the reply. Its memory is its own, or that of its document: see [Options].
type Row struct {
	ID   string // "" of a group
	Text string // JSON
}

// Page gathers the rows of one page. It is not safe for concurrent use.
type Page struct {
	q       *query.Query
	e       *query.Evaluator
	options Options
	after   *sortedRow // the last row of the page before, of rows in order

	Matched int // documents that WHERE selected

	offset, limit int64 // that are left
	rows          []Row
	bytes         int

	sorted sortedRows
	held   int   // bytes of sorted
	most   int64 // rows that sorted keeps
	cut    bool  // sorted had more, but not enough memory

	distinct   map[string]int // the canonical text of a row, and its index in sorted
	groups     map[string]*group
	only       *group // without GROUP BY
	groupPaths int
	aggregates []aggregate
	key        []byte
	keys       []query.Value // of the current document
	buffer     []byte        // of a row
}

// New returns an empty page that begins at a cursor.
func New(q *query.Query, options Options, from Cursor) (*Page, error) {
	p := &Page{q: q, e: q.Evaluator(), options: options, offset: from.Offset, limit: from.Limit}
	if len(options.Proven) > 0 {
		p.e.Prove(options.Proven)
	}
	p.sorted.desc, p.most = q.Directions(), p.keep()
	if from.key != nil {
		p.after = &sortedRow{keys: from.key, id: from.id}
	}
	switch {
	case q.Grouped():
		p.groupPaths, p.aggregates = q.GroupPaths(), aggregatesOf(q)
		p.groups = map[string]*group{}
		p.sorted.desc = make([]bool, p.groupPaths)
		if p.groupPaths == 0 {
			p.only = p.newGroup(nil)
			p.groups[""] = p.only
		}
	case q.Distinct():
		p.distinct = map[string]int{}
	case q.Sorts() && !options.Ordered && p.most > MaxSorted: // the page ends earlier
		p.most = MaxSorted
		p.options.Count = int(max(1, MaxSorted-p.offset))
	}
	return p, nil
}

// Streams reports whether rows come in the order in which documents are added. Then a page can end before all
// documents are examined.
func (p *Page) Streams() bool {
	return p.groups == nil && p.distinct == nil && (!p.q.Sorts() || p.options.Ordered)
}

// keep returns how many rows in order are worth keeping.
func (p *Page) keep() int64 {
	rows := int64(p.options.Count)
	if p.limit >= 0 {
		rows = min(rows, p.limit)
	}
	return p.offset + rows
}

// Add examines a document, and adds its row if the query selects it. It returns false if the page is
// full. The document need not stay.
func (p *Page) Add(doc *query.Document) (more bool, err error) {
	e := p.e
	e.Load(doc)
	if p.limit == 0 { // LIMIT 0 or TOP 0
		return false, nil
	}
	if !e.Match() {
		return true, e.Err()
	}
	p.Matched++
	switch {
	case p.groups != nil:
		return true, p.addToGroup()
	case p.q.Sorts() && !(doc.Proven && p.options.Defined) && e.OrderValue(0).Kind() == query.Undefined:
		p.Matched--
		return true, e.Err()
	case !p.Streams():
		return p.addSorted()
	case p.offset > 0 && !p.q.Value():
		p.offset--
		return true, nil
	}
	text, ok := p.row()
	if !ok || e.Err() != nil {
		return true, e.Err()
	}
	if p.offset > 0 { // VALUE of undefined is no row, so only the row says that it counts
		p.offset--
		return true, nil
	}
	id := doc.ID
	if !p.options.Shared {
		id = strings.Clone(id)
	}
	p.emit(Row{ID: id, Text: text})
	return p.limit != 0 && !p.full(), nil
}

// Work returns what the last document cost: see [query.Evaluator.Work].
func (p *Page) Work() int { return p.e.Work() }

// Count adds a number of documents that WHERE selects, and that are not read. The query must be one that only
// counts.
func (p *Page) Count(n int) {
	p.Matched += n
	for i := range p.only.totals {
		p.only.totals[i].count += int64(n)
	}
}

// Wanted returns how many of the first rows in order the page needs.
func (p *Page) Wanted() int { return int(p.most) }

// Within returns how many of the rows kept have a first ORDER BY value of at most a limit.
func (p *Page) Within(limit float64) (n int) {
	for i := range p.sorted.rows {
		if p.sorted.rows[i].keys[0].Float() <= limit {
			n++
		}
	}
	return n
}

// row returns the row of the current document.
func (p *Page) row() (string, bool) {
	if p.q.Whole() && p.options.Whole != nil {
		return p.options.Whole(p.e.Document()), true
	}
	if p.q.Whole() && p.options.Shared && p.Streams() {
		return p.e.Document().Text, true
	}
	var ok bool
	p.buffer, ok = p.e.Row(p.buffer[:0])
	return string(p.buffer), ok
}

// emit adds a row to the page.
func (p *Page) emit(row Row) {
	p.rows = append(p.rows, row)
	p.bytes += len(row.ID) + len(row.Text)
	if p.limit > 0 {
		p.limit--
	}
}

// full reports whether the page holds as much as it may.
func (p *Page) full() bool { return len(p.rows) >= p.options.Count || p.bytes >= pageBytes }

// Finish returns the rows of the page and the next cursor, "0" at the end. position is where the documents
// go on that have not been added; "" if all have been.
func (p *Page) Finish(position string) (rows []Row, next string, err error) {
	if p.Streams() {
		if p.limit == 0 || position == "" {
			return p.rows, "0", nil
		}
		next = (&Cursor{Position: position, Offset: p.offset, Limit: p.limit, Moment: p.options.Moment}).encode(p.q)
		return p.rows, next, checkCursor(next)
	}
	switch {
	case p.groups != nil:
		if err := p.finishGroups(); err != nil {
			return nil, "", err
		}
	case p.q.Sorts():
		p.sort()
	}
	for i, row := range p.sorted.rows {
		if p.offset > 0 {
			p.offset--
			continue
		}
		if p.limit == 0 {
			break
		}
		p.emit(row.Row)
		last := i+1 == len(p.sorted.rows)
		if p.distinct == nil && p.limit != 0 && (p.full() && !(last && p.groups != nil) || p.cut && last) {
			next = (&Cursor{Limit: p.limit, Moment: p.options.Moment, key: row.keys, id: row.id}).encode(p.q)
			return p.rows, next, checkCursor(next)
		}
	}
	return p.rows, "0", nil
}

// checkCursor refuses a cursor that clients cannot send back.
func checkCursor(next string) error {
	if len(next) > maxCursor {
		return fmt.Errorf("the last row of the page has a value of ORDER BY too long for a cursor of %d bytes: another COUNT or LIMIT ends the page elsewhere", maxCursor)
	}
	return nil
}
