package page

import (
	"fmt"
	"slices"

	"mayfly/query"
)

// group is what the documents of a group add up to.
type group struct {
	keys   []query.Value // of GROUP BY
	totals []total       // of the aggregates
}

// total is the state of an aggregate.
type total struct {
	count int64 // of defined values
	sum   float64
	best  query.Value // of MIN and MAX
	bad   bool        // a value that the aggregate cannot use was added
}

// totalSize is the memory of a total in bytes.
const totalSize = 64

// aggregate is a function of the values of a group.
type aggregate uint8

const (
	count aggregate = iota
	sum
	average
	least
	greatest
)

// aggregatesOf returns the aggregates of a query.
func aggregatesOf(q *query.Query) (list []aggregate) {
	for _, name := range q.Aggregates() {
		list = append(list, map[string]aggregate{"COUNT": count, "SUM": sum, "AVG": average, "MIN": least, "MAX": greatest}[name])
	}
	return list
}

func (p *Page) newGroup(keys []query.Value) *group {
	return &group{keys: keys, totals: make([]total, len(p.aggregates))}
}

// addToGroup adds the current document to its group.
func (p *Page) addToGroup() error {
	if p.only != nil {
		return p.addTo(p.only)
	}
	e := p.e
	p.key = p.key[:0]
	var few [query.MaxPaths]query.Value
	keys := few[:0]
	for i := range p.groupPaths {
		v := e.GroupValue(i)
		keys = append(keys, v)
		p.key = append(e.Canonical(p.key, v), ' ')
	}
	if err := e.Err(); err != nil {
		return err
	}
	g := p.groups[string(p.key)]
	if g == nil {
		if len(p.groups) == MaxGroups {
			return fmt.Errorf("query makes more than %d groups", MaxGroups)
		}
		own := make([]query.Value, len(keys))
		for i, v := range keys {
			own[i] = v.Clone()
		}
		g = p.newGroup(own)
		p.groups[string(p.key)] = g
		if p.held += 2*len(p.key) + 128 + totalSize*len(g.totals); p.held > heldBytes {
			return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
		}
	}
	return p.addTo(g)
}

// addTo adds the current document to a group.
func (p *Page) addTo(g *group) error {
	e := p.e
	for i, a := range p.aggregates {
		g.totals[i].add(a, e.Argument(i), &p.held)
	}
	if p.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
	}
	return e.Err()
}

// add adds a value. Undefined is passed over.
func (t *total) add(a aggregate, v query.Value, held *int) {
	if v.Kind() == query.Undefined {
		return
	}
	t.count++
	switch a {
	case sum, average:
		t.sum += v.Float()
		t.bad = t.bad || v.Kind() != query.Number
	case least, greatest:
		if v.Kind() >= query.Array {
			t.bad = true
			return
		}
		if c := query.Compare(v, t.best); t.best.Kind() == query.Undefined || a == least && c < 0 || a == greatest && c > 0 {
			*held += len(v.Text()) - len(t.best.Text())
			t.best = v.Clone()
		}
	}
}

// value returns the result of the aggregate.
func (t *total) value(a aggregate) query.Value {
	switch {
	case a == count:
		return query.NumberValue(float64(t.count))
	case t.bad:
		return query.Value{}
	case a == sum:
		return query.NumberValue(t.sum)
	case a == average:
		if t.count == 0 {
			return query.Value{}
		}
		return query.NumberValue(t.sum / float64(t.count))
	}
	return t.best
}

// finishGroups makes a row of each group, in order, and drops those of earlier pages. DISTINCT needs them.
func (p *Page) finishGroups() error {
	e := p.e
	totals := make([]query.Value, len(p.aggregates))
	for _, g := range p.groups {
		row := sortedRow{keys: g.keys, id: groupID(g.keys)}
		for i, a := range p.aggregates {
			totals[i] = g.totals[i].value(a)
		}
		e.LoadGroup(g.keys, totals)
		out, ok := e.Row(nil)
		if err := e.Err(); err != nil {
			return err
		}
		if ok {
			row.Text = string(out)
			p.sorted.rows = append(p.sorted.rows, row)
		}
		if p.held += len(out); p.held > heldBytes {
			return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
		}
	}
	p.sort()
	seen := map[string]bool{}
	p.sorted.rows = slices.DeleteFunc(p.sorted.rows, func(row sortedRow) bool {
		if p.q.Distinct() {
			text := query.Canonical(query.ValueOf(row.Text))
			if seen[text] {
				return true
			}
			seen[text] = true
		}
		return p.after != nil && p.sorted.compare(&row, p.after) <= 0
	})
	return nil
}

// groupID tells groups apart whose keys have no order among themselves, arrays and objects.
func groupID(keys []query.Value) string {
	var out []byte
	for _, k := range keys {
		if k.Kind() >= query.Array {
			out = append(append(out, query.Canonical(k)...), ' ')
		}
	}
	return string(out)
}
