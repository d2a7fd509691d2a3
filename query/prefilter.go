package query

import "mayfly/json/jsontext"

// condition is a condition of WHERE's AND that depends on one path and is not true without it. It is judged
// as soon as the path is found, so the rest of the document need not be read if it is not true. What follows
// can only repeat a name: then the path is undefined, and the condition is not true either.
type condition struct {
	slot int
	node node

	// of a comparison with a number or string; else kind is Undefined
	op   operator
	kind Kind
	num  float64
	text string
	raw  bool // text is equal to a string of JSON if their bytes are
}

// prefilter sorts the conditions of WHERE: those that paths judge, and the rest.
func (e *Evaluator) prefilter() {
	all := []node{e.q.where}
	if l, ok := e.q.where.(*logical); ok && !l.or {
		all = l.terms
	}
	empty := &Evaluator{q: e.q, slots: make([]slot, len(e.q.paths)), root: pathNode{slot: -1}}
	for _, n := range all {
		empty.Load(&Document{Text: "{}"})
		empty.most = maxWork / 1000
		sole := soleSlot{-1}
		if !sole.of(n) || sole.slot < 0 || n.eval(empty).isTrue() || empty.err != nil {
			e.rest = append(e.rest, n)
			continue
		}
		node := &e.root
		for _, s := range e.q.paths[sole.slot] {
			node = node.child(s)
		}
		c := newCondition(n, sole.slot)
		node.conditions = append(node.conditions, c)
		e.conditions = append(e.conditions, c)
	}
}

func newCondition(n node, slot int) condition {
	c := condition{slot: slot, node: n}
	cmp, ok := n.(*comparison)
	if !ok {
		return c
	}
	path, value, op := cmp.left, cmp.right, cmp.op
	if _, isLiteral := path.(*literal); isLiteral {
		path, value, op = value, path, op.mirrored()
	}
	l, isLiteral := value.(*literal)
	if _, isPath := path.(*pathRef); isPath && isLiteral {
		c.op, c.kind, c.num, c.text = op, l.value.kind, l.value.num, l.value.text
		c.raw = c.kind == String && op == equal && jsontext.Unescaped(c.text)
	}
	return c
}

// soleSlot finds the slot of the only path that an expression reads.
type soleSlot struct{ slot int } // -1 until a path is found

// of reports whether an expression reads nothing but that path and constants.
func (s *soleSlot) of(list ...node) bool {
	for _, n := range list {
		ok := false
		switch n := n.(type) {
		case *literal:
			ok = true
		case *pathRef:
			ok = n.pseudo == stored && n.group < 0 && len(n.path) > 0 && (s.slot < 0 || s.slot == n.slot)
			s.slot = n.slot
		case *memberOf:
			ok = s.of(n.base)
		case *logical:
			ok = s.of(n.terms...)
		case *not:
			ok = s.of(n.term)
		case *negative:
			ok = s.of(n.term)
		case *comparison:
			ok = s.of(n.left, n.right)
		case *arithmetic:
			ok = s.of(n.left, n.right)
		case *concat:
			ok = s.of(n.left, n.right)
		case *in:
			ok = s.of(n.term) && s.of(n.values...)
		case *between:
			ok = s.of(n.term, n.low, n.high)
		case *likeExpr:
			ok = s.of(n.term, n.pattern)
		case *call:
			ok = s.of(n.args...)
		case *arrayOf:
			ok = s.of(n.elements...)
		case *objectOf:
			ok = s.of(n.values...)
		}
		if !ok {
			return false
		}
	}
	return true
}

// Match reports whether WHERE selects the current document.
func (e *Evaluator) Match() bool {
	switch {
	case e.q.where == nil || e.doc.Proven && e.unproven == nil:
		return true
	case e.doc.Proven:
		return e.unproven.eval(e).isTrue() && e.err == nil
	case !e.sorted:
		e.sorted = true
		e.prefilter()
	}
	if len(e.conditions) == 0 || e.located == e.turn {
		return e.q.where.eval(e).isTrue() && e.err == nil
	}
	e.judging, e.unsure = true, false
	e.locate()
	if !e.judging {
		return false
	}
	e.judging = false
	for i := range e.conditions {
		if s := &e.slots[e.conditions[i].slot]; s.turn != e.turn || s.times != 1 {
			return false
		}
	}
	if e.unsure {
		return e.q.where.eval(e).isTrue() && e.err == nil
	}
	for _, n := range e.rest {
		e.work(evalWork)
		if !n.eval(e).isTrue() || e.err != nil {
			return false
		}
	}
	return e.err == nil
}

// reject ends the search for paths: WHERE does not select the document. A later question about a path begins
// anew.
func (e *Evaluator) reject() {
	e.judging = false
	e.turn++
}

// judge judges the conditions of a path that leads to text[i:end], and rejects the document unless they hold.
func (n *pathNode) judge(e *Evaluator, text string) (rejected bool) {
	for k := range n.conditions {
		if !n.conditions[k].holds(e, text) {
			e.reject()
			return true
		}
	}
	return false
}

// differs reports whether the string at i is known to differ from that of a condition, before its end is
// found.
func (n *pathNode) differs(text string, i int) bool {
	if c := &n.conditions[0]; c.raw {
		equal, sure := jsontext.EqualsString(text, i, c.text)
		return sure && !equal
	}
	return false
}

// holds reports whether the condition is true of a value. The path of its slot leads there. What cannot be
// told without an error is told later, if at all.
func (c *condition) holds(e *Evaluator, text string) bool {
	switch first := text[0]; c.kind {
	case Number:
		if first != '-' && first-'0' > 9 {
			return false
		}
		n := jsontext.ParseNumber(text)
		switch c.op {
		case equal:
			return n == c.num
		case notEqual:
			return n != c.num
		case less:
			return n < c.num
		case lessOrEqual:
			return n <= c.num
		case greater:
			return n > c.num
		}
		return n >= c.num
	case String:
		if first != '"' {
			return false
		}
		if c.raw {
			if equal, sure := jsontext.EqualsString(text, 0, c.text); sure {
				return equal
			}
		}
	}
	done := e.done
	v := c.node.eval(e)
	if e.err != nil {
		e.err, e.done, e.unsure = nil, done, true
		return true
	}
	return v.isTrue()
}
