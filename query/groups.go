package query

import (
	"fmt"
	"slices"
	"strings"
)

// group is what the documents of a group add up to.
type group struct {
	keys   []Value // of GROUP BY
	totals []total // of the aggregates
}

// total is the state of an aggregate.
type total struct {
	count int64 // of defined values
	sum   float64
	best  Value // of MIN and MAX
	bad   bool  // a value that the aggregate cannot use was added
}

// totalSize is the memory of a total in bytes.
const totalSize = 64

func (q *Query) newGroup(keys []Value) *group {
	return &group{keys: keys, totals: make([]total, len(q.aggregates))}
}

// addToGroup adds the current document to its group.
func (r *Results) addToGroup() error {
	e := r.e
	r.key = r.key[:0]
	var few [MaxPaths]Value
	keys := few[:0]
	for _, by := range r.q.groupBy {
		v := by.eval(e)
		keys = append(keys, v)
		r.key = append(e.canonical(r.key, v), ' ')
	}
	if e.err != nil {
		return e.err
	}
	g := r.groups[string(r.key)]
	if g == nil {
		if len(r.groups) == MaxGroups {
			return fmt.Errorf("query makes more than %d groups", MaxGroups)
		}
		own := make([]Value, len(keys))
		for i, v := range keys {
			v.text = strings.Clone(v.text)
			own[i] = v
		}
		g = r.q.newGroup(own)
		r.groups[string(r.key)] = g
		if r.held += 2*len(r.key) + 128 + totalSize*len(g.totals); r.held > heldBytes {
			return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
		}
	}
	for i, a := range r.q.aggregates {
		e.work(evalWork)
		g.totals[i].add(a, a.arg.eval(e), &r.held)
	}
	if r.held > heldBytes {
		return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
	}
	return e.err
}

// add adds a value. Undefined is passed over.
func (t *total) add(a *aggregate, v Value, held *int) {
	if v.kind == Undefined {
		return
	}
	t.count++
	switch a.name {
	case "SUM", "AVG":
		t.sum += v.num
		t.bad = t.bad || v.kind != Number
	case "MIN", "MAX":
		if v.kind >= Array {
			t.bad = true
			return
		}
		if c := Compare(v, t.best); t.best.kind == Undefined || a.name == "MIN" && c < 0 || a.name == "MAX" && c > 0 {
			*held += len(v.text) - len(t.best.text)
			v.text = strings.Clone(v.text)
			t.best = v
		}
	}
}

// value returns the result of the aggregate.
func (t *total) value(a *aggregate) Value {
	switch {
	case a.name == "COUNT":
		return NumberValue(float64(t.count))
	case t.bad:
		return Value{}
	case a.name == "SUM":
		return NumberValue(t.sum)
	case a.name == "AVG":
		if t.count == 0 {
			return Value{}
		}
		return NumberValue(t.sum / float64(t.count))
	}
	return t.best
}

// finishGroups makes a row of each group, in order, and drops those of earlier pages. DISTINCT needs them.
func (r *Results) finishGroups() error {
	e := r.e
	for _, g := range r.groups {
		row := sortedRow{keys: g.keys, id: groupID(g.keys)}
		e.done, e.most = 0, maxWork
		e.groups, e.totals = g.keys, e.totals[:0]
		for i, a := range r.q.aggregates {
			e.totals = append(e.totals, g.totals[i].value(a))
		}
		out, ok := e.Row(nil)
		if e.err != nil {
			return e.err
		}
		if ok {
			row.Text = string(out)
			r.sorted.rows = append(r.sorted.rows, row)
		}
		if r.held += len(out); r.held > heldBytes {
			return fmt.Errorf("query holds more than %d bytes of groups", heldBytes)
		}
	}
	r.sort()
	seen := map[string]bool{}
	r.sorted.rows = slices.DeleteFunc(r.sorted.rows, func(row sortedRow) bool {
		if r.q.distinct {
			text := Canonical(ValueOf(row.Text))
			if seen[text] {
				return true
			}
			seen[text] = true
		}
		return r.after != nil && r.sorted.compare(&row, r.after) <= 0
	})
	return nil
}

// groupID tells groups apart whose keys have no order among themselves, arrays and objects.
func groupID(keys []Value) string {
	var out []byte
	for _, k := range keys {
		if k.kind >= Array {
			out = append(appendCanonical(out, k), ' ')
		}
	}
	return string(out)
}
