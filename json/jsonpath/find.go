package jsonpath

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"mayfly/json/jsontext"
)

// Span is the place of a value in the text of a document, in bytes.
type Span struct{ From, To int }

// Text returns the value's JSON.
func (s Span) Text(doc string) string { return doc[s.From:s.To] }

// ErrBudget is the error of a path that would read the document too often.
var ErrBudget = errors.New("the path reads the document too often: name more members and use fewer .. and filters")

// MaxMatches is the largest number of values that a path, or a step of it, may match.
const MaxMatches = 1 << 20

// ErrMatches is the error of a path with more matches.
var ErrMatches = fmt.Errorf("the path matches too many values: legal are up to %d", MaxMatches)

// The bytes that an evaluation may read: passes times the document and a constant. A document whose values
// nest d deep is read up to 2d times by one step with "..".
const (
	passes     = 64
	leastBytes = 1 << 20
	memberCost = 8 // what a member or element costs beside its bytes
)

// Budget is how many bytes evaluations may still read.
type Budget int

// BudgetOf returns the budget of one path on a document. Several paths of a command share one.
func BudgetOf(doc string) Budget { return Budget(passes*len(doc) + leastBytes) }

// Find appends the spans of the matches to dst. doc is valid JSON with any root. No match comes twice. The
// order is that of RedisJSON. It takes what it reads from the budget. repeated reports that an object on the
// way may have a name twice: then older members may be among the matches. The error is [ErrBudget] or
// [ErrMatches].
func (p *Path) Find(budget *Budget, dst []Span, doc string) (spans []Span, repeated bool, err error) {
	e := newEvaluation(doc)
	e.left = int(*budget)
	for _, at := range e.run(p.steps, e.root) {
		if e.left < 0 {
			break
		}
		dst = append(dst, e.span(at))
	}
	*budget = Budget(e.left)
	return dst, e.repeated, e.err()
}

// First returns the span of the first match; ok is false if there is none. The error is [ErrBudget] or
// [ErrMatches].
func (p *Path) First(doc string) (s Span, ok bool, err error) {
	budget := BudgetOf(doc)
	s, ok, _, err = p.FirstWithin(&budget, doc)
	return s, ok, err
}

// FirstWithin is First with a budget, of which it takes what it reads. repeated is that of [Path.Find].
func (p *Path) FirstWithin(budget *Budget, doc string) (s Span, ok, repeated bool, err error) {
	e := newEvaluation(doc)
	e.left = int(*budget)
	at := -1
	if p.Static() {
		at = e.follow(p.steps, e.root)
	} else if found := e.run(p.steps, e.root); len(found) > 0 {
		at = found[0]
	}
	if at >= 0 && e.err() == nil {
		s, ok = e.span(at), true
	}
	*budget = Budget(e.left)
	return s, ok && e.err() == nil, e.repeated, e.err()
}

// Parents appends the spans of the objects to which a member of the path's last name can be added: those that
// the path without its last step matches, and that have no such member. ok is false if the last step is not
// one name. The error is [ErrBudget] or [ErrMatches].
func (p *Path) Parents(dst []Span, doc string) (spans []Span, name string, ok bool, err error) {
	if len(p.steps) == 0 {
		return dst, "", false, nil
	}
	last := &p.steps[len(p.steps)-1]
	if last.deep || last.kind != byName || len(last.names) != 1 {
		return dst, "", false, nil
	}
	e := newEvaluation(doc)
	for _, at := range e.run(p.steps[:len(p.steps)-1], e.root) {
		if doc[at] == '{' && e.member(at, last.names[0]) < 0 {
			dst = append(dst, e.span(at))
		}
	}
	return dst, last.names[0], true, e.err()
}

// evaluation is the evaluation of a path on a document.
type evaluation struct {
	doc      string
	root     int           // the position of the root
	left     int           // bytes that may still be read; negative: it has ended
	many     bool          // it has ended because a step matches too many values
	repeated bool          // an object that was read may have a name twice
	rooted   map[int]value // the terms from the root, by their slots

	patterns map[string]pattern // those that come from the document
}

func newEvaluation(doc string) evaluation {
	return evaluation{doc: doc, root: jsontext.Skip(doc, 0, ' '), left: passes*len(doc) + leastBytes}
}

func (e *evaluation) err() error {
	switch {
	case e.many:
		return ErrMatches
	case e.left < 0:
		return ErrBudget
	}
	return nil
}

// add appends a match, and ends the evaluation if there are too many.
func (e *evaluation) add(dst []int, at int) []int {
	if len(dst) >= MaxMatches {
		e.many, e.left = true, -1
		return dst
	}
	return append(dst, at)
}

// span returns the span of the value at a position.
func (e *evaluation) span(at int) Span {
	s := Span{at, jsontext.ValueEnd(e.doc, at)}
	e.left -= s.To - at
	return s
}

// follow returns the position of the only match of static steps; -1 if there is none.
func (e *evaluation) follow(steps []step, at int) int {
	for i := range steps {
		if s := &steps[i]; s.kind == byName {
			at = e.member(at, s.names[0])
		} else {
			at = e.element(at, s.indices[0])
		}
		if at < 0 {
			return -1
		}
	}
	return at
}

// run returns the positions of the matches of steps from a value. A step after the other maps the list of
// values: so the list never has more than the document, however many ways lead to a value.
func (e *evaluation) run(steps []step, from int) []int {
	if static(steps) {
		if at := e.follow(steps, from); at >= 0 {
			return []int{at}
		}
		return nil
	}
	values := []int{from}
	for i := range steps {
		s := &steps[i]
		var next []int
		var visited map[int]struct{}
		if s.deep && len(values) > 1 {
			visited = make(map[int]struct{}, len(values))
		}
		for _, at := range values {
			if s.deep {
				next = e.descend(next, s, at, visited)
			} else {
				next = e.apply(next, s, at)
			}
			if e.left < 0 {
				return nil
			}
		}
		if values = next; s.repeats() {
			values = unique(values)
		}
	}
	return values
}

// repeats reports whether a step may lead to a value several times. A filter may: a scalar that it judges is
// selected itself, and so is an element by its array.
func (s *step) repeats() bool {
	return s.deep || s.kind == byFilter || len(s.names)+len(s.indices) > 1
}

// unique removes what comes again.
func unique(values []int) []int {
	if len(values) < 2 {
		return values
	}
	seen := make(map[int]struct{}, len(values))
	return slices.DeleteFunc(values, func(at int) bool {
		_, again := seen[at]
		seen[at] = struct{}{}
		return again
	})
}

// descend applies a step to a value and to all values below it, each before those below it. A value in
// visited has been reached from above already, with all values below it; visited may be nil.
func (e *evaluation) descend(dst []int, s *step, at int, visited map[int]struct{}) []int {
	if _, again := visited[at]; again {
		return dst
	}
	if visited != nil {
		visited[at] = struct{}{}
	}
	dst = e.apply(dst, s, at)
	if c := e.doc[at]; c != '{' && c != '[' || e.left < 0 {
		return dst
	}
	var names jsontext.NameSet
	deeper := false
	for w := jsontext.WalkAt(e.doc, at); e.next(&w); {
		c := e.doc[w.ValueFrom]
		if deeper = deeper || c == '{' || c == '['; deeper { // a scalar that is repeated changes nothing here
			e.repeated = names.Meet(&w) || e.repeated
		}
		if c == '{' || c == '[' || s.kind == byFilter {
			dst = e.descend(dst, s, w.ValueFrom, visited)
		}
	}
	return dst
}

// next moves a walker to the next member and counts what it reads.
func (e *evaluation) next(w *jsontext.Walker) bool {
	if e.left < 0 || !w.Next() {
		return false
	}
	e.left -= w.Pos - w.Start + memberCost
	return true
}

// apply appends the positions of the values that a step selects in the value at a position.
func (e *evaluation) apply(dst []int, s *step, at int) []int {
	isObject, isArray := e.doc[at] == '{', e.doc[at] == '['
	switch s.kind {
	case byName:
		for _, name := range s.names {
			if found := e.member(at, name); found >= 0 {
				dst = e.add(dst, found)
			}
		}
	case byIndex:
		for _, n := range s.indices {
			if found := e.element(at, n); found >= 0 {
				dst = e.add(dst, found)
			}
		}
	case bySlice:
		if isArray {
			dst = e.slice(dst, s.slice, at)
		}
	case all:
		if isObject || isArray {
			dst = e.values(dst, at)
		}
	case byFilter:
		if !isObject && !isArray {
			if e.selects(&s.filter, at) {
				dst = e.add(dst, at)
			}
			break
		}
		var names jsontext.NameSet
		for w := jsontext.WalkAt(e.doc, at); e.next(&w); {
			e.repeated = names.Meet(&w) || e.repeated
			if e.selects(&s.filter, w.ValueFrom) {
				dst = e.add(dst, w.ValueFrom)
			}
		}
	}
	return dst
}

// values appends the positions of all members or elements.
func (e *evaluation) values(dst []int, at int) []int {
	var names jsontext.NameSet
	for w := jsontext.WalkAt(e.doc, at); e.next(&w); {
		e.repeated = names.Meet(&w) || e.repeated
		dst = e.add(dst, w.ValueFrom)
	}
	return dst
}

// member returns the position of a member's value; -1 if there is none. Of a repeated name the last one
// counts.
func (e *evaluation) member(at int, name string) int {
	if e.doc[at] != '{' {
		return -1
	}
	found := -1
	for w := jsontext.WalkAt(e.doc, at); e.next(&w); {
		if raw := e.doc[w.Start+1 : w.NameEnd-1]; len(raw) >= len(name) && (raw == name || strings.IndexByte(raw, '\\') >= 0) && w.Name() == name {
			e.repeated = e.repeated || found >= 0
			found = w.ValueFrom
		}
	}
	return found
}

// element returns the position of an element; -1 if there is none. As in RedisJSON one before the first is
// the first.
func (e *evaluation) element(at, n int) int {
	if e.doc[at] != '[' {
		return -1
	}
	if n < 0 {
		n = max(n+e.length(at), 0)
	}
	for w := jsontext.WalkAt(e.doc, at); e.next(&w); n-- {
		if n == 0 {
			return w.ValueFrom
		}
	}
	return -1
}

// length returns the number of elements.
func (e *evaluation) length(at int) (n int) {
	for w := jsontext.WalkAt(e.doc, at); e.next(&w); {
		n++
	}
	return n
}

// slice appends the positions of the elements of a slice.
func (e *evaluation) slice(dst []int, s slice, at int) []int {
	length := 0
	if s.from < 0 || s.to < 0 {
		length = e.length(at)
	}
	from, to := absolute(s.from, length), absolute(s.to, length)
	n := 0
	for w := jsontext.WalkAt(e.doc, at); (s.open || n < to) && e.next(&w); n++ {
		if n >= from && (n-from)%s.by == 0 {
			dst = e.add(dst, w.ValueFrom)
		}
	}
	return dst
}

// absolute returns the position that n means in an array. The length is needed for negative ones only.
func absolute(n, length int) int {
	if n < 0 {
		return max(n+length, 0)
	}
	return n
}

// selects reports whether a filter holds for the value at a position.
func (e *evaluation) selects(f *filter, at int) bool {
any:
	for _, all := range f.any {
		for i := range all { // in place: a copy of a condition would be on the heap for each value
			if !e.holds(&all[i], at) {
				continue any
			}
		}
		return true
	}
	return false
}

func (e *evaluation) holds(c *condition, at int) bool {
	if e.left < 0 {
		return false
	}
	if c.nested != nil {
		return e.selects(c.nested, at)
	}
	left := e.term(&c.left, at)
	switch c.op {
	case exists:
		return left.kind != missing
	case matches:
		return e.matches(left, &c.right, at)
	}
	right := e.term(&c.right, at)
	if e.left -= costOfCompare(left, right); e.left < 0 {
		return false
	}
	return c.op.holds(left, right)
}

// term returns the value of a term. A path that leads to several values has none, as in RedisJSON.
func (e *evaluation) term(t *term, at int) value {
	switch t.kind {
	case literal:
		return t.value
	case fromRoot:
		if v, ok := e.rooted[t.slot]; ok {
			return v
		}
		v := e.single(t.steps, e.root)
		if e.rooted == nil {
			e.rooted = map[int]value{}
		}
		e.rooted[t.slot] = v
		return v
	}
	return e.single(t.steps, at)
}

// single returns the value of the only match of steps.
func (e *evaluation) single(steps []step, from int) value {
	found := -1
	if static(steps) {
		found = e.follow(steps, from)
	} else if all := e.run(steps, from); len(all) == 1 {
		found = all[0]
	}
	if found < 0 || e.left < 0 {
		return value{}
	}
	return jsonValue(e.span(found).Text(e.doc))
}

// matches reports whether a value is a string that matches the pattern that a term names.
func (e *evaluation) matches(v value, by *term, at int) bool {
	if v.kind != stringValue {
		return false
	}
	if by.kind == literal {
		return e.match(by.regex, v.text)
	}
	p := e.term(by, at)
	if p.kind != stringValue || len(p.text) > maxPattern {
		return false
	}
	if e.left -= compileCost + compileCostOfByte*len(p.text); e.left < 0 {
		return false
	}
	r, ok := e.patterns[p.text]
	if !ok {
		r = compilePattern(p.text)
		e.left -= compileCostOfStep * r.steps
		if e.patterns == nil || len(e.patterns) >= maxPatterns {
			e.patterns = map[string]pattern{}
		}
		e.patterns[p.text] = r
	}
	return e.match(r, v.text)
}

// match reports whether a pattern matches a text. It charges what that may cost before.
func (e *evaluation) match(p pattern, text string) bool {
	e.left -= (len(text) + 1) * (1 + matchCost*p.steps)
	return e.left >= 0 && p.regex != nil && p.regex.MatchString(text)
}

// What filters cost, in bytes that could be read in that time.
const (
	compileCost       = 1 << 10 // of a pattern
	compileCostOfByte = 16
	compileCostOfStep = 256
	matchCost         = 4  // of a byte of the text and a step of the pattern
	compareCostOfByte = 16 // of objects and arrays that are compared with others
)

// maxPatterns is the number of patterns from the document that an evaluation keeps.
const maxPatterns = 64

// costOfCompare returns what the comparison of two values costs.
func costOfCompare(v, w value) int {
	if v.kind == container && w.kind == container {
		return compareCostOfByte * (len(v.text) + len(w.text))
	}
	return len(v.text) + len(w.text)
}
