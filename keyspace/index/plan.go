package index

import (
	"fmt"
	"slices"
	"strings"

	"mayfly/query"
	"mayfly/query/predicates"
)

// Span is a range of keys.
type Span struct{ Low, High Bound }

// Plan is how an index answers a query.
type Plan struct {
	Index   int    // its number among the definitions
	Spans   []Span // ascending and apart
	Desc    bool   // the spans are read from high to low
	Ordered bool   // the documents come in the order of ORDER BY
	Ties    bool   // the order is also that of strings that keys may cut: see [Definition.Run]
	Defined bool   // the first value of ORDER BY is defined in entries whose key is not cut
	Proven  bool   // the spans prove all conditions of entries whose key is not cut
	Proves  []int  // the numbers of the conditions that they prove
	Range   string // what is read, for EXPLAIN

	equalities int  // leading paths that are equal to one value
	closed     bool // the spans have two ends
	bounded    int  // paths that the spans bound
}

// Choose returns the plan of the index that serves a query best. ok is false if none does. The rules are
// fixed: most leading equalities, then the order of ORDER BY, then a closed range, then more paths that WHERE
// bounds, then the older index. exact reports whether the trees of an index give the order of values: see
// [Tree.Cut]. Another index gives it if WHERE leaves no strings that a key may cut.
func Choose(definitions []Definition, exact func(number int) bool, q *query.Query) (best Plan, ok bool) {
	if q.Never() || len(definitions) == 0 {
		return best, false
	}
	terms, conditions := predicates.TermsOf(q), len(q.Conditions())
	order, orderable := predicates.OrderOf(q)
	if !orderable {
		order = nil
	}
	for i := range definitions {
		by, cut := order, order != nil && mayBeCut(&definitions[i], terms)
		if cut && !exact(i) {
			by = nil
		}
		p, usable := planOf(&definitions[i], terms, conditions, by)
		if p.Index, p.Ties = i, p.Ordered && cut; usable && (!ok || p.better(&best)) {
			best, ok = p, true
		}
	}
	return best, ok
}

// mayBeCut reports whether a document that fulfils terms may have a string in an index that its key cuts.
func mayBeCut(d *Definition, terms []predicates.Term) bool {
	return slices.ContainsFunc(d.paths, func(path []string) bool {
		i := slices.IndexFunc(terms, func(t predicates.Term) bool { return slices.Equal(t.Path, path) && !t.Elements && t.Area == nil })
		switch {
		case i < 0:
			return path[0] != timeMember
		case terms[i].Equal != nil:
			return slices.ContainsFunc(terms[i].Equal, isCut)
		}
		return terms[i].Prefix != "" || max(terms[i].Low.Kind(), terms[i].High.Kind()) == query.String
	})
}

// Unorder makes the plan one of documents in no order.
func (p *Plan) Unorder() { p.Ordered, p.Ties, p.Desc = false, false, false }

// Advise returns the paths of an index that would serve a query better than a plan, nil for a scan: the paths
// that are equal to one value, then those of ORDER BY or of a range. It returns "" if there is none.
func Advise(q *query.Query, p *Plan) string {
	terms := predicates.TermsOf(q)
	order, orderable := predicates.OrderOf(q)
	var paths []string
	add := func(names []string) {
		d := Definition{paths: [][]string{names}}
		if pointer := d.Pointers()[0]; !slices.Contains(paths, pointer) {
			paths = append(paths, pointer)
		}
	}
	equalities := 0
	for _, t := range terms {
		if len(t.Equal) == 1 && !t.Elements && equalities < MaxPaths-1 {
			add(t.Path)
			equalities++
		}
	}
	wantsOrder := orderable && len(order) > 0 && !predicates.Mixed(order)
	if wantsOrder && predicates.IsID(order[len(order)-1].Path) {
		order = order[:len(order)-1] // equal keys are in the order of ids
		wantsOrder = len(paths)+len(order) > 0
	}
	if wantsOrder = wantsOrder && len(paths)+len(order) <= MaxPaths; wantsOrder {
		for _, o := range order {
			add(o.Path)
		}
	}
	if p != nil && p.equalities >= equalities && (p.Ordered || !wantsOrder) {
		return ""
	}
	for _, t := range terms {
		if len(paths) > 0 {
			if len(t.Equal) != 1 && t.Area == nil && !t.Elements && !wantsOrder && len(paths) < MaxPaths {
				add(t.Path)
				break
			}
			continue
		}
		add(t.Path)
		switch {
		case t.Area != nil:
			return paths[0] + " GEO"
		case t.Elements:
			return paths[0] + "/" + elementsToken
		}
		break
	}
	return strings.Join(paths, " ")
}

// AdviseOrder returns the paths of an index that would give the order of a query if it were in one direction.
// It returns "" if the query orders by no paths, or in one direction already.
func AdviseOrder(q *query.Query) string {
	order, orderable := predicates.OrderOf(q)
	if !orderable || !predicates.Mixed(order) {
		return ""
	}
	var d Definition
	for _, by := range order {
		if !predicates.IsID(by.Path) && !slices.ContainsFunc(d.paths, func(there []string) bool { return slices.Equal(there, by.Path) }) {
			d.paths = append(d.paths, by.Path)
		}
	}
	return strings.Join(d.Pointers(), " ")
}

// AdviseNearest returns the paths of an index that would give the order of a query that wants the nearest
// points first, "" for another query.
func AdviseNearest(q *query.Query) string {
	n, ok := predicates.NearestOf(q)
	if !ok {
		return ""
	}
	d := Definition{paths: [][]string{n.Path}, geo: true}
	return d.String()
}

// better reports whether a plan goes before another of an older index.
func (p *Plan) better(other *Plan) bool {
	switch {
	case p.equalities != other.equalities:
		return p.equalities > other.equalities
	case p.Ordered != other.Ordered:
		return p.Ordered
	}
	if p.closed != other.closed {
		return p.closed
	}
	return p.bounded > other.bounded
}

// planOf returns the plan of an index.
func planOf(d *Definition, terms []predicates.Term, conditions int, order []predicates.Order) (p Plan, ok bool) {
	find := func(path []string) *predicates.Term {
		for i := range terms {
			t := &terms[i]
			if slices.Equal(t.Path, path) && t.Elements == d.elements && (t.Area != nil) == d.geo {
				return t
			}
		}
		return nil
	}
	if d.geo {
		t := find(d.paths[0])
		if t == nil {
			return p, false
		}
		return Plan{Spans: cells(t.Area), closed: true, Range: fmt.Sprintf("%s in longitudes %g to %g, latitudes %g to %g", d.Pointers()[0], t.Area.West, t.Area.East, t.Area.South, t.Area.North)}, true
	}
	if d.elements {
		order = nil // a document has an entry for each element, and none unless it has an array
	}
	var equal []query.Value // of the leading paths
	var words []string
	pointers := d.Pointers()
	i := 0
	for ; i < len(d.paths); i++ {
		t := find(d.paths[i])
		if t == nil || len(t.Equal) != 1 || t.Area != nil {
			break
		}
		equal = append(equal, t.Equal[0])
		p.Proves = append(p.Proves, t.Proves...)
		words = append(words, pointers[i]+" = "+query.Short(t.Equal[0]))
	}
	p.equalities, p.bounded = i, i
	if !d.elements || i > 0 { // the order of elements is not that of their arrays; all arrays are equal in order
		p.Ordered, p.Desc = gives(d.paths, i, order)
	}
	single := len(d.paths) == 1
	var last *predicates.Term
	if i < len(d.paths) {
		if last = find(d.paths[i]); last != nil {
			p.bounded++
		}
	}
	switch {
	case last == nil:
		if i == 0 && !p.Ordered {
			return p, false
		}
		if i > 0 {
			p.Spans = []Span{spanOf(equal, nil, single)}
			p.closed = true
		} else {
			p.Spans = []Span{Everything()}
			words = append(words, "all of "+strings.Join(pointers, " "))
		}
	case last.Equal != nil: // several values
		p.Proves = append(p.Proves, last.Proves...)
		p.closed = true
		for _, v := range last.Equal {
			p.Spans = append(p.Spans, spanOf(append(slices.Clone(equal), v), nil, single))
		}
		slices.SortFunc(p.Spans, func(a, b Span) int { return a.Low.Key.compare(&b.Low.Key) })
		p.Spans = slices.CompactFunc(p.Spans, func(a, b Span) bool { return a.Low.Key.compare(&b.Low.Key) == 0 }) // cut keys
		words = append(words, fmt.Sprintf("%s of %d values", pointers[i], len(last.Equal)))
		if i == 0 {
			p.equalities = 1
		}
		// After one of several values the index is not in the order of what follows.
		if p.Ordered && !slices.Equal(order[0].Path, d.paths[i]) {
			p.Ordered, p.Desc = false, false
		}
	default:
		p.Proves = append(p.Proves, last.Proves...)
		p.closed = i > 0 || last.Prefix != "" || last.Low.Kind() != query.Undefined && last.High.Kind() != query.Undefined
		p.Spans = []Span{spanOf(equal, last, single)}
		words = append(words, rangeWords(pointers[i], last))
	}
	if d.elements {
		p.Spans = append([]Span{{Low: Bound{Key: manyElements}, High: Bound{Key: manyElements, After: true}}}, p.Spans...)
	}
	if p.Ordered {
		first := slices.IndexFunc(d.paths, func(p []string) bool { return slices.Equal(p, order[0].Path) })
		p.Defined = first == 0 || first > 0 && first < p.bounded // an entry has the first path; conditions prove the others
	}
	p.Proven = len(p.Proves) == conditions
	p.Range = strings.Join(words, ", ")
	return p, true
}

// Everything returns the span of all keys.
func Everything() Span { return Span{High: Bound{Key: Key{kind: query.Object + 1}}} }

// gives reports whether an index whose first paths are equal to one value gives the order of ORDER BY, and in
// which direction. It must be over all remaining paths: equal rows come by id.
func gives(paths [][]string, equal int, order []predicates.Order) (ok, desc bool) {
	if len(order) == 0 {
		return false, false
	}
	rest := paths[equal:]
	for _, by := range order {
		fixed := slices.ContainsFunc(paths[:equal], func(p []string) bool { return slices.Equal(p, by.Path) })
		switch {
		case by.Desc != order[0].Desc:
			return false, false
		case fixed:
			continue
		case predicates.IsID(by.Path):
			return len(rest) == 0, order[0].Desc // equal keys are in the order of ids
		case len(rest) == 0 || !slices.Equal(rest[0], by.Path):
			return false, false
		}
		rest = rest[1:]
	}
	if len(rest) > 0 {
		return false, false
	}
	return true, order[0].Desc
}

// highest is above every byte that begins a value in the text of a key of several values.
const highest = "\xff"

// spanOf returns the keys that begin with some values, and continue with a value in a range unless t is nil.
func spanOf(equal []query.Value, t *predicates.Term, single bool) Span {
	if single {
		if t == nil {
			k, _ := KeyOf(equal[0])
			return Span{Low: Bound{Key: k}, High: Bound{Key: k, After: true}}
		}
		return singleRange(t)
	}
	var begin []byte
	for _, v := range equal {
		begin, _ = appendOrdered(begin, v)
	}
	low, high := slices.Clone(begin), slices.Clone(begin)
	first := func(v query.Value) Key { // the kind and prefix of a key that begins with v
		k, _ := KeyOf(v)
		return Key{kind: k.kind, prefix: k.prefix}
	}
	if t == nil {
		k := first(equal[0])
		return Span{Low: Bound{Key: k.with(low)}, High: Bound{Key: k.with(append(high, highest...))}}
	}
	var lowKey, highKey Key
	if len(equal) > 0 {
		lowKey = first(equal[0])
		highKey = lowKey
	} else {
		s := singleRange(t)
		lowKey, highKey = s.Low.Key, s.High.Key
	}
	switch {
	case t.Prefix != "":
		low, _ = appendOrdered(low, query.StringValue(t.Prefix))
		low = low[:len(low)-2] // without the mark of the end
		high = append(low[:len(low):len(low)], highest...)
	default:
		kind := byte(max(t.Low.Kind(), t.High.Kind())) + 1
		if t.Low.Kind() == query.Undefined {
			low = append(low, kind)
		} else if low, _ = appendOrdered(low, t.Low); t.LowOpen && !isCut(t.Low) {
			low = append(low, highest...)
		}
		if t.High.Kind() == query.Undefined {
			high = append(high, kind+1)
		} else if high, _ = appendOrdered(high, t.High); !t.HighOpen || isCut(t.High) {
			high = append(high, highest...)
		}
	}
	return Span{Low: Bound{Key: lowKey.with(low)}, High: Bound{Key: highKey.with(high)}}
}

// with returns the key with a text.
func (k Key) with(text []byte) Key {
	k.text = string(text)
	return k
}

// isCut reports whether longer strings have the same key as v.
func isCut(v query.Value) bool { return v.Kind() == query.String && len(v.Text()) >= MaxText }

// singleRange is spanOf for an index with one path.
func singleRange(t *predicates.Term) Span {
	if t.Prefix != "" {
		low, _ := KeyOf(query.StringValue(t.Prefix))
		return Span{Low: Bound{Key: low}, High: prefixEnd(t.Prefix)}
	}
	kind := max(t.Low.Kind(), t.High.Kind())
	s := Span{Low: Bound{Key: Key{kind: kind}}, High: Bound{Key: Key{kind: kind + 1}}}
	if t.Low.Kind() != query.Undefined {
		s.Low.Key, _ = KeyOf(t.Low)
		s.Low.After = t.LowOpen && !isCut(t.Low)
	}
	if t.High.Kind() != query.Undefined {
		s.High.Key, _ = KeyOf(t.High)
		s.High.After = !t.HighOpen || isCut(t.High)
	}
	return s
}

// prefixEnd returns the bound behind all strings with a prefix.
func prefixEnd(prefix string) Bound {
	if len(prefix) > MaxText {
		prefix = prefix[:MaxText]
	}
	end := []byte(prefix)
	for len(end) > 0 && end[len(end)-1] == 0xFF {
		end = end[:len(end)-1]
	}
	if len(end) == 0 {
		return Bound{Key: Key{kind: query.String + 1}}
	}
	end[len(end)-1]++
	k, _ := KeyOf(query.StringValue(string(end)))
	return Bound{Key: k}
}

// rangeWords describes a range for EXPLAIN.
func rangeWords(pointer string, t *predicates.Term) string {
	if t.Prefix != "" {
		return pointer + " begins with " + query.Short(query.StringValue(t.Prefix))
	}
	var words []string
	if t.Low.Kind() != query.Undefined {
		op := " >= "
		if t.LowOpen {
			op = " > "
		}
		words = append(words, pointer+op+query.Short(t.Low))
	}
	if t.High.Kind() != query.Undefined {
		op := " <= "
		if t.HighOpen {
			op = " < "
		}
		words = append(words, pointer+op+query.Short(t.High))
	}
	return strings.Join(words, ", ")
}
