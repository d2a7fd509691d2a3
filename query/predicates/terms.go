package predicates

import (
	"slices"

	"mayfly/query"
	"mayfly/query/geo"
)

// Term is a condition that an index can answer: what WHERE demands of one path, whatever else it demands.
// Either Equal or Low and High are set, or Near.
type Term struct {
	Path     []string // names of members; ["_ts"] is the time of the last write
	Elements bool     // an element of the array at Path is equal

	Equal []query.Value // one of these; nil for a range

	Low, High         query.Value // of the same kind; undefined without
	LowOpen, HighOpen bool        // the bound itself is not in the range
	Prefix            string      // of a string: the range of those that begin with it; "" without

	Area *geo.Area // the point at Path lies in an area

	// Proves are the numbers of the conditions that are true if an index tells that the term holds.
	Proves []int

	whole bool // the condition says no more than the term
}

// The work of planning, in bytes of the constants that are read for it. A query that names each parameter
// once stays below. Documents are judged by what is left out.
const (
	mostWork  = 2 << 20
	valueWork = 16 // of each constant besides
)

// planner finds the terms of a query.
type planner struct{ left int } // of mostWork

// may counts the work on a constant, and reports whether it may be done.
func (p *planner) may(v query.Value) bool {
	p.left -= len(v.Text()) + valueWork
	return p.left >= 0
}

// TermsOf returns the conditions of WHERE's AND that indexes can answer, one for each path.
func TermsOf(q *query.Query) []Term {
	return slices.DeleteFunc(termsOf(q), func(t Term) bool { return IsID(t.Path) })
}

// termsOf is TermsOf with those of the id.
func termsOf(q *query.Query) (terms []Term) {
	p := planner{mostWork}
	for i, c := range q.Conditions() {
		if t, ok := p.termOf(c); ok {
			if t.whole {
				t.Proves = []int{i}
			}
			terms = addTerm(terms, t)
		}
	}
	return terms
}

// addTerm adds a term, or narrows the range of one that has the same path.
func addTerm(terms []Term, t Term) []Term {
	for i := range terms {
		there := &terms[i]
		if !slices.Equal(there.Path, t.Path) || there.Elements || t.Elements || there.Area != nil || t.Area != nil {
			continue
		}
		switch {
		case there.Equal != nil || there.Prefix != "":
			return terms // it is judged on the document
		case t.Equal != nil || t.Prefix != "":
			*there = t
			return terms
		}
		if low, high := there.kind(), t.kind(); low != high {
			return terms // of different types nothing is selected: the document tells
		}
		if c := query.Compare(t.Low, there.Low); t.Low.Kind() != query.Undefined && (there.Low.Kind() == query.Undefined || c > 0 || c == 0 && t.LowOpen) {
			there.Low, there.LowOpen = t.Low, t.LowOpen
		}
		if c := query.Compare(t.High, there.High); t.High.Kind() != query.Undefined && (there.High.Kind() == query.Undefined || c < 0 || c == 0 && t.HighOpen) {
			there.High, there.HighOpen = t.High, t.HighOpen
		}
		there.Proves = append(there.Proves, t.Proves...)
		return terms
	}
	return append(terms, t)
}

// kind returns the type of a range's values.
func (t *Term) kind() query.Kind { return max(t.Low.Kind(), t.High.Kind()) }

// addEqual adds values of which one is equal, each once. seen has the canonical texts of those there. ok is
// false if the values are too many or too long.
func (p *planner) addEqual(t *Term, seen map[string]bool, values ...query.Value) (ok bool) {
	for _, v := range values {
		if v.Kind() == query.Undefined {
			continue
		}
		if !p.may(v) {
			return false
		}
		if key := query.Canonical(v); !seen[key] {
			seen[key] = true
			t.Equal = append(t.Equal, v)
			t.whole = t.whole && v.Kind() < query.Array
		}
	}
	return len(t.Equal) <= query.MaxIn
}

// termOf returns the term of a condition.
func (p *planner) termOf(x query.Expr) (t Term, ok bool) {
	if left, op, right, ok := x.Comparison(); ok {
		return p.termOfComparison(left, op, right)
	}
	if term, lowest, highest, ok := x.Between(); ok {
		low, _ := lowest.Constant()
		high, _ := highest.Constant()
		if t.Path, ok = pathOf(term); !ok || !p.may(low) || !p.may(high) || low.Kind() != high.Kind() || low.Kind() == query.Undefined || low.Kind() >= query.Array {
			return t, false
		}
		t.Low, t.High, t.whole = low, high, true
		return t, true
	}
	if term, values, ok := x.In(); ok {
		if t.Path, ok = pathOf(term); !ok {
			return t, false
		}
		t.whole = true
		ok = p.addEqual(&t, map[string]bool{}, values...)
		return t, ok && t.Equal != nil
	}
	if terms, or, ok := x.Logical(); ok && or {
		return p.termOfOr(terms)
	}
	if term, prefix, exact, whole, ok := x.Like(); ok {
		if t.Path, ok = pathOf(term); !ok {
			return t, false
		}
		if t.whole = whole; exact {
			t.Equal = []query.Value{query.StringValue(prefix)}
			return t, true
		}
		t.Prefix = prefix
		return t, prefix != ""
	}
	if name, args, ok := x.Call(); ok {
		return p.termOfCall(name, args)
	}
	return t, false
}

// termOfComparison returns the term of a comparison.
func (p *planner) termOfComparison(left query.Expr, op string, right query.Expr) (t Term, ok bool) {
	if t, ok = p.termOfDistance(left, op, right); ok {
		return t, true
	}
	v, _ := right.Constant()
	if t.Path, ok = pathOf(left); !ok || v.Kind() == query.Undefined || !p.may(v) {
		return t, false
	}
	t.whole = v.Kind() < query.Array
	switch op {
	case "=":
		t.Equal = []query.Value{v}
	case "<", "<=":
		t.High, t.HighOpen = v, op == "<"
	case ">", ">=":
		t.Low, t.LowOpen = v, op == ">"
	default:
		return t, false
	}
	return t, t.Equal != nil || v.Kind() < query.Array
}

// termOfOr returns the term of an OR of equalities of one path.
func (p *planner) termOfOr(parts []query.Expr) (t Term, ok bool) {
	seen := map[string]bool{}
	for i, part := range parts {
		one, ok := p.termOf(part)
		if !ok || one.Equal == nil || one.Elements || i > 0 && !slices.Equal(one.Path, t.Path) {
			return t, false
		}
		if i == 0 {
			t = Term{Path: one.Path, whole: true}
		}
		t.whole = t.whole && one.whole
		if !p.addEqual(&t, seen, one.Equal...) {
			return t, false
		}
	}
	return t, true
}

// termOfCall returns the term of a function that is a condition.
func (p *planner) termOfCall(name string, args []query.Expr) (t Term, ok bool) {
	switch name {
	case "STARTSWITH", "STRINGEQUALS":
		v, _ := args[1].Constant()
		if t.Path, ok = pathOf(args[0]); !ok || v.Kind() != query.String || len(args) == 3 && !isFalse(args[2]) || !p.may(v) {
			return t, false
		}
		t.whole = true
		if name == "STRINGEQUALS" {
			t.Equal = []query.Value{v}
			return t, true
		}
		t.Prefix = v.Text()
		return t, t.Prefix != ""
	case "ARRAY_CONTAINS":
		if len(args) == 3 && !isFalse(args[2]) {
			return t, false
		}
		if t, ok = p.termOfList(args[0], args[1]); ok {
			return t, true
		}
		v, _ := args[1].Constant()
		if t.Path, ok = pathOf(args[0]); !ok || v.Kind() == query.Undefined || IsID(t.Path) || !p.may(v) {
			return t, false
		}
		t.Elements, t.Equal, t.whole = true, []query.Value{v}, v.Kind() < query.Array
		return t, true
	case "ST_WITHIN":
		v, _ := args[1].Constant()
		if t.Path, ok = pathOf(args[0]); !ok || v.Kind() != query.Object || !p.may(v) {
			return t, false
		}
		polygon := geo.PolygonOf(v.Text())
		if polygon == nil {
			return t, false
		}
		t.Area = polygon.Area()
		return t, true
	}
	return t, false
}

// termOfList returns the term of ARRAY_CONTAINS(list, path), which is an IN.
func (p *planner) termOfList(list, path query.Expr) (t Term, ok bool) {
	array, _ := list.Constant()
	if t.Path, ok = pathOf(path); !ok || array.Kind() != query.Array {
		return t, false
	}
	t.whole = true
	seen, n := map[string]bool{}, 0
	array.Elements(func(v query.Value) bool {
		n++
		ok = p.addEqual(&t, seen, v)
		return ok && n <= query.MaxIn
	})
	return t, ok && n <= query.MaxIn && t.Equal != nil
}

// isFalse reports whether an expression is the constant false.
func isFalse(x query.Expr) bool {
	v, _ := x.Constant()
	return v.Kind() == query.Bool && v.Float() == 0
}

// termOfDistance returns the term of ST_DISTANCE(path, point) < metres.
func (p *planner) termOfDistance(left query.Expr, op string, right query.Expr) (t Term, ok bool) {
	limit, _ := right.Constant()
	if op != "<" && op != "<=" || limit.Kind() != query.Number {
		return t, false
	}
	path, v, ok := distanceOf(left)
	if !ok || !p.may(v) {
		return t, false
	}
	centre, ok := geo.Point(v.Text())
	if !ok {
		return t, false
	}
	t.Path, t.Area = path, centre.Around(limit.Float())
	return t, true
}

// distanceOf returns the path and the object that may be the point of ST_DISTANCE(path, point), in either
// order.
func distanceOf(x query.Expr) (path []string, v query.Value, ok bool) {
	name, args, ok := x.Call()
	if !ok || name != "ST_DISTANCE" {
		return nil, v, false
	}
	v, isConstant := args[1].Constant()
	at := args[0]
	if !isConstant {
		v, _ = args[0].Constant()
		at = args[1]
	}
	if path, ok = pathOf(at); !ok || IsID(path) || v.Kind() != query.Object {
		return nil, v, false
	}
	return path, v, true
}

// IsID reports whether the path of a term or order is the id. No index is over it.
func IsID(path []string) bool { return len(path) == 1 && path[0] == "_id" }

// pathOf returns the names of a path that indexes can be over, or that is the id.
func pathOf(x query.Expr) (names []string, ok bool) {
	if names, ok = x.Names(); ok && query.IsPseudo(names[0]) {
		ok = IsID(names) || len(names) == 1 && names[0] == "_ts"
	}
	return names, ok
}

// Order is an item of ORDER BY as an index can give it. The last one may be the id: see [IsID].
type Order struct {
	Path []string
	Desc bool
}

// OrderOf returns the items of ORDER BY, up to the id: no two documents have the same. ok is false if one of
// them is no path that an index can be over.
func OrderOf(q *query.Query) (order []Order, ok bool) {
	for _, by := range q.OrderBy() {
		names, ok := pathOf(by.Expr)
		if !ok {
			return nil, false
		}
		if order = append(order, Order{names, by.Desc}); IsID(names) {
			break
		}
	}
	return order, true
}

// Mixed reports whether items of ORDER BY are in different directions.
func Mixed(order []Order) bool {
	return slices.ContainsFunc(order, func(o Order) bool { return o.Desc != order[0].Desc })
}
