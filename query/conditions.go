package query

import "strings"

// conjunct is one of the conditions that WHERE joins by AND.
type conjunct struct {
	node node
	text string // as the query writes it
}

// conjunctsOf returns the conditions of WHERE that must be true, without those that always are. never reports
// that they are true of no document.
func conjunctsOf(where conjunct) (list []conjunct, never bool) {
	where = selecting(where)
	switch n := where.node.(type) {
	case *literal:
		return nil, !n.value.isTrue()
	case *logical:
		if !n.or {
			for i, term := range n.terms {
				list = append(list, conjunct{term, n.texts[i]})
			}
			return list, false
		}
	}
	return []conjunct{where}, false
}

// selecting returns a condition that is true of the same documents, with its constants decided. It need not
// tell false from undefined, so it is not for terms of NOT.
func selecting(c conjunct) conjunct {
	l, ok := c.node.(*logical)
	if !ok {
		if neverTrue(c.node) {
			return conjunct{node: &literal{BoolValue(false)}}
		}
		return c
	}
	left := &logical{or: l.or}
	for i, term := range l.terms {
		term := selecting(conjunct{term, l.texts[i]})
		constant, ok := term.node.(*literal)
		switch {
		case !ok:
			left.add(term)
		case constant.value.isTrue() == l.or:
			return conjunct{node: &literal{BoolValue(l.or)}} // it decides alone
		}
	}
	switch len(left.terms) {
	case 0:
		return conjunct{node: &literal{BoolValue(!l.or)}}
	case 1:
		return conjunct{left.terms[0], left.texts[0]}
	case len(l.terms):
		return conjunct{left, c.text}
	}
	return conjunct{left, left.text()}
}

// neverTrue reports whether a condition that is no constant is true of no document, as its constants tell.
func neverTrue(n node) bool {
	b, ok := n.(*between)
	if !ok {
		return false
	}
	low, lowIs := b.low.(*literal)
	high, highIs := b.high.(*literal)
	return lowIs && low.value.unordered() || highIs && high.value.unordered() || lowIs && highIs && low.value.kind != high.value.kind
}

// unordered reports whether no value is less or greater than v.
func (v Value) unordered() bool { return v.kind == Undefined || v.kind >= Array }

// text returns the terms with the operator between them.
func (n *logical) text() string {
	if n.or {
		return "(" + strings.Join(n.texts, " OR ") + ")"
	}
	return strings.Join(n.texts, " AND ")
}

// whereOf returns what documents are judged by, nil if all are selected.
func (q *Query) whereOf(list []conjunct) node {
	switch len(list) {
	case 0:
		if q.never {
			return &literal{BoolValue(false)}
		}
		return nil
	case 1:
		return list[0].node
	}
	all := &logical{}
	for _, c := range list {
		all.terms = append(all.terms, c.node)
	}
	return all
}

// Never reports whether WHERE selects no document, as its constants tell.
func (q *Query) Never() bool { return q.never }

// unproven returns the conditions but for those with the given numbers.
func (q *Query) unproven(proven []int) (left []conjunct) {
	is := make([]bool, len(q.conjuncts))
	for _, number := range proven {
		is[number] = true
	}
	for i, c := range q.conjuncts {
		if !is[i] {
			left = append(left, c)
		}
	}
	return left
}

// Filter returns the text of the conditions but for those with the given numbers, "" if none is left.
func (q *Query) Filter(proven []int) string {
	var texts []string
	for _, c := range q.unproven(proven) {
		texts = append(texts, c.text)
	}
	return strings.Join(texts, " AND ")
}

// Prove tells the numbers of the conditions that need not be judged on documents that are marked as proven.
func (e *Evaluator) Prove(proven []int) { e.unproven = e.q.whereOf(e.q.unproven(proven)) }
