package query

import (
	"slices"

	"mayfly/query/geo"
)

// Term is a condition that an index can answer: what WHERE demands of one path, whatever else it demands.
// Either Equal or Low and High are set, or Near.
type Term struct {
	Path     []string // names of members; ["_ts"] is the time of the last write
	Elements bool     // an element of the array at Path is equal

	Equal []Value // one of these; nil for a range

	Low, High         Value  // of the same kind; undefined without
	LowOpen, HighOpen bool   // the bound itself is not in the range
	Prefix            string // of a string: the range of those that begin with it; "" without

	Area *geo.Area // the point at Path lies in an area

	whole  bool  // the condition says no more than the term
	proves []int // the numbers of the conditions that it stands for
}

// Terms returns the conditions of WHERE's AND that indexes can answer, one for each path.
func (q *Query) Terms() []Term {
	return slices.DeleteFunc(q.allTerms(), func(t Term) bool { return OfID(t.Path) })
}

// allTerms is Terms with those of the id.
func (q *Query) allTerms() (terms []Term) {
	for i, c := range q.conjuncts {
		if t, ok := termOf(c.node); ok {
			if t.whole {
				t.proves = []int{i}
			}
			terms = addTerm(terms, t)
		}
	}
	return terms
}

// Proves returns the numbers of the conditions that are true if an index tells that the term holds.
func (t *Term) Proves() []int { return t.proves }

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
		if c := Compare(t.Low, there.Low); t.Low.kind != Undefined && (there.Low.kind == Undefined || c > 0 || c == 0 && t.LowOpen) {
			there.Low, there.LowOpen = t.Low, t.LowOpen
		}
		if c := Compare(t.High, there.High); t.High.kind != Undefined && (there.High.kind == Undefined || c < 0 || c == 0 && t.HighOpen) {
			there.High, there.HighOpen = t.High, t.HighOpen
		}
		there.proves = append(there.proves, t.proves...)
		return terms
	}
	return append(terms, t)
}

// kind returns the type of a range's values.
func (t *Term) kind() Kind { return max(t.Low.kind, t.High.kind) }

// termOf returns the term of a condition.
func termOf(n node) (t Term, ok bool) {
	switch n := n.(type) {
	case *comparison:
		path, value, op := n.left, n.right, n.op
		if _, isLiteral := path.(*literal); isLiteral {
			path, value, op = value, path, op.mirrored()
		}
		if t, ok = termOfDistance(path, value, op); ok {
			return t, true
		}
		v, isLiteral := value.(*literal)
		if t.Path, ok = namesOf(path); !ok || !isLiteral || v.value.kind == Undefined {
			return t, false
		}
		t.whole = v.value.kind < Array
		switch op {
		case equal:
			t.Equal = []Value{v.value}
		case less, lessOrEqual:
			t.High, t.HighOpen = v.value, op == less
		case greater, greaterOrEqual:
			t.Low, t.LowOpen = v.value, op == greater
		default:
			return t, false
		}
		return t, t.Equal != nil || v.value.kind < Array
	case *between:
		low, ok1 := n.low.(*literal)
		high, ok2 := n.high.(*literal)
		if t.Path, ok = namesOf(n.term); !ok || !ok1 || !ok2 || low.value.kind != high.value.kind || low.value.kind == Undefined || low.value.kind >= Array {
			return t, false
		}
		t.Low, t.High, t.whole = low.value, high.value, true
		return t, true
	case *in:
		if t.Path, ok = namesOf(n.term); !ok || n.set == nil {
			return t, false
		}
		t.whole = true
		for _, v := range n.values {
			value := v.(*literal).value
			if value.kind == Undefined {
				continue
			}
			t.whole = t.whole && value.kind < Array
			if !slices.ContainsFunc(t.Equal, func(there Value) bool { return Equal(there, value) }) {
				t.Equal = append(t.Equal, value)
			}
		}
		return t, t.Equal != nil
	case *logical:
		return termOfOr(n)
	case *likeExpr:
		if t.Path, ok = namesOf(n.term); !ok || n.compiled == nil {
			return t, false
		}
		prefix, exact, whole := n.compiled.Prefix()
		if t.whole = whole; exact {
			t.Equal = []Value{StringValue(prefix)}
			return t, true
		}
		t.Prefix = prefix
		return t, prefix != ""
	case *call:
		return termOfCall(n)
	}
	return t, false
}

// termOfOr returns the term of an OR of equalities of one path.
func termOfOr(n *logical) (t Term, ok bool) {
	if !n.or {
		return t, false
	}
	for i, part := range n.terms {
		one, ok := termOf(part)
		if !ok || one.Equal == nil || one.Elements || i > 0 && !slices.Equal(one.Path, t.Path) {
			return t, false
		}
		if i == 0 {
			t = one
			t.Equal = slices.Clone(t.Equal)
			continue
		}
		t.whole = t.whole && one.whole
		for _, v := range one.Equal {
			if !slices.ContainsFunc(t.Equal, func(there Value) bool { return Equal(there, v) }) {
				t.Equal = append(t.Equal, v)
			}
		}
	}
	return t, true
}

// termOfCall returns the term of a function that is a condition.
func termOfCall(n *call) (t Term, ok bool) {
	switch n.function.name {
	case "STARTSWITH", "STRINGEQUALS":
		v, isLiteral := n.args[1].(*literal)
		if t.Path, ok = namesOf(n.args[0]); !ok || !isLiteral || v.value.kind != String || len(n.args) == 3 && !isFalse(n.args[2]) {
			return t, false
		}
		t.whole = true
		if n.function.name == "STRINGEQUALS" {
			t.Equal = []Value{v.value}
			return t, true
		}
		t.Prefix = v.value.text
		return t, t.Prefix != ""
	case "ARRAY_CONTAINS":
		if t, ok = termOfList(n); ok {
			return t, true
		}
		v, isLiteral := n.args[1].(*literal)
		if t.Path, ok = namesOf(n.args[0]); !ok || !isLiteral || v.value.kind == Undefined || len(n.args) == 3 && !isFalse(n.args[2]) {
			return t, false
		}
		t.Elements, t.Equal, t.whole = true, []Value{v.value}, v.value.kind < Array
		return t, !OfID(t.Path)
	case "ST_WITHIN":
		v, isLiteral := n.args[1].(*literal)
		if t.Path, ok = namesOf(n.args[0]); !ok || !isLiteral {
			return t, false
		}
		if v.value.kind != Object {
			return t, false
		}
		polygon := geo.PolygonOf(v.value.text)
		if polygon == nil {
			return t, false
		}
		t.Area = polygon.Area()
		return t, true
	}
	return t, false
}

// termOfList returns the term of ARRAY_CONTAINS(list, path), which is an IN.
func termOfList(n *call) (t Term, ok bool) {
	list, isLiteral := n.args[0].(*literal)
	if t.Path, ok = namesOf(n.args[1]); !ok || !isLiteral || len(n.args) == 3 && !isFalse(n.args[2]) {
		return t, false
	}
	t.whole = true
	seen := map[string]bool{}
	list.value.Elements(func(v Value) bool {
		if key := setKey(v); !seen[key] {
			seen[key] = true
			t.Equal = append(t.Equal, v)
			t.whole = t.whole && v.kind < Array
		}
		return len(t.Equal) <= MaxIn
	})
	return t, t.Equal != nil && len(t.Equal) <= MaxIn
}

// isFalse reports whether an expression is the constant false.
func isFalse(n node) bool {
	l, ok := n.(*literal)
	return ok && l.value.kind == Bool && l.value.num == 0
}

// termOfDistance returns the term of ST_DISTANCE(path, point) < metres.
func termOfDistance(left, right node, op operator) (t Term, ok bool) {
	c, isCall := left.(*call)
	limit, isLiteral := right.(*literal)
	if !isCall || !isLiteral || c.function.name != "ST_DISTANCE" || op != less && op != lessOrEqual || limit.value.kind != Number {
		return t, false
	}
	path, point := c.args[0], c.args[1]
	if _, isLiteral := path.(*literal); isLiteral {
		path, point = point, path
	}
	centre, isLiteral := point.(*literal)
	if t.Path, ok = namesOf(path); !ok || !isLiteral {
		return t, false
	}
	if centre.value.kind != Object {
		return t, false
	}
	p, ok := geo.Point(centre.value.text)
	if !ok {
		return t, false
	}
	t.Area = p.Around(limit.value.num)
	return t, true
}

// mirrored returns the operator with its sides exchanged.
func (op operator) mirrored() operator {
	switch op {
	case less:
		return greater
	case lessOrEqual:
		return greaterOrEqual
	case greater:
		return less
	case greaterOrEqual:
		return lessOrEqual
	}
	return op
}

// namesOf returns the names of a path that indexes can be over, or that is the id.
func namesOf(n node) (names []string, ok bool) {
	ref, isPath := n.(*pathRef)
	if !isPath || len(ref.path) == 0 || ref.pseudo != stored && (ref.pseudo != pseudoTS && ref.pseudo != pseudoID || len(ref.path) > 1) {
		return nil, false
	}
	for _, s := range ref.path {
		if s.index >= 0 {
			return nil, false
		}
		names = append(names, s.name)
	}
	return names, true
}

// Order is an item of ORDER BY as an index can give it. The last one may be the id: see [OfID].
type Order struct {
	Path []string
	Desc bool
}

// Order returns the items of ORDER BY, up to the id: no two documents have the same. ok is false if one of them is no
// path that an index can be over.
func (q *Query) Order() (order []Order, ok bool) {
	for _, by := range q.orderBy {
		names, ok := namesOf(by.expr)
		if !ok {
			return nil, false
		}
		if order = append(order, Order{names, by.desc}); OfID(names) {
			break
		}
	}
	return order, true
}

// Mixed reports whether items of ORDER BY are in different directions.
func Mixed(order []Order) bool {
	return slices.ContainsFunc(order, func(o Order) bool { return o.Desc != order[0].Desc })
}
