package query

import (
	"math"
	"sort"
	"strings"
)

// Ends is what a query demands of the moments at which documents die, so that those can be read in their order.
type Ends struct {
	Low, High int64  // ms since the epoch, both included; nothing is between if High is lower
	Ordered   bool   // ORDER BY is the order of ends
	Proves    []int  // the numbers of the conditions that the range proves
	Range     string // in words, for EXPLAIN
}

// Ends returns what the query demands of the end of documents, at a moment in ms. ok is false if it demands nothing:
// then it also selects documents that do not die.
func (q *Query) Ends(now int64) (e Ends, ok bool) {
	e = Ends{Low: math.MinInt64, High: math.MaxInt64}
	var words []string
	narrowed := false
	for i, c := range q.conjuncts {
		d, ok := demandOf(c.node, now)
		if !ok {
			continue
		}
		e.Low, e.High, narrowed = max(e.Low, d.low), min(e.High, d.high), true
		if d.whole {
			e.Proves = append(e.Proves, i)
		}
		if d.text != "" {
			words = append(words, d.text)
		}
	}
	if len(q.orderBy) == 1 && !q.orderBy[0].desc {
		_, e.Ordered = endOf(q.orderBy[0].expr)
	}
	if e.Range = strings.Join(words, ", "); words == nil {
		e.Range = "all that die"
	}
	return e, e.Ordered || narrowed
}

// demand is what a condition demands of the end of a document.
type demand struct {
	low, high int64  // ms, both included
	whole     bool   // the condition demands nothing else
	text      string // "" for all that die
}

// endOf returns the pseudo member of an expression that is _expiresat or _ttlleft.
func endOf(n node) (p pseudo, ok bool) {
	ref, isPath := n.(*pathRef)
	if !isPath || len(ref.path) != 1 || ref.pseudo != pseudoExpiresAt && ref.pseudo != pseudoTTLLeft {
		return stored, false
	}
	return ref.pseudo, true
}

// demandOf returns what a condition demands. ok is false if documents that do not die may fulfil it.
func demandOf(n node, now int64) (d demand, ok bool) {
	d = demand{low: math.MinInt64, high: math.MaxInt64, whole: true}
	switch n := n.(type) {
	case *comparison:
		left, right, op := n.left, n.right, n.op
		if _, isLiteral := left.(*literal); isLiteral {
			left, right, op = right, left, op.mirrored()
		}
		p, isEnd := endOf(left)
		seconds, isNumber := numberOf(right)
		if !isEnd || !isNumber || op == notEqual {
			return d, false
		}
		d.narrow(p, op, seconds, now)
		return d, true
	case *between:
		p, isEnd := endOf(n.term)
		low, ok1 := numberOf(n.low)
		high, ok2 := numberOf(n.high)
		if !isEnd || !ok1 || !ok2 {
			return d, false
		}
		d.narrow(p, greaterOrEqual, low, now)
		d.narrow(p, lessOrEqual, high, now)
		return d, true
	case *in:
		p, isEnd := endOf(n.term)
		if !isEnd || n.set == nil {
			return d, false
		}
		d = nothing
		for _, value := range n.values {
			if seconds, isNumber := numberOf(value); isNumber {
				one := demand{low: math.MinInt64, high: math.MaxInt64}
				one.narrow(p, equal, seconds, now)
				d.widen(one)
			}
		}
		d.text = p.name() + " between the values of IN"
		return d, true
	case *logical:
		return demandOfTerms(n, now)
	case *call:
		_, isEnd := endOf(n.args[0])
		return d, isEnd && n.function.name == "IS_DEFINED"
	}
	return d, false
}

// nothing is the demand of a condition that no document fulfils.
var nothing = demand{low: math.MaxInt64, high: math.MinInt64}

// demandOfTerms is demandOf for AND, which narrows, and for OR, which reads all between the ends that its terms demand.
func demandOfTerms(n *logical, now int64) (d demand, ok bool) {
	d = demand{low: math.MinInt64, high: math.MaxInt64, whole: true}
	if n.or {
		d = nothing
	}
	var words []string
	for _, term := range n.terms {
		one, demands := demandOf(term, now)
		switch {
		case n.or && !demands:
			return d, false
		case n.or:
			d.widen(one)
		case demands:
			d.low, d.high, d.whole = max(d.low, one.low), min(d.high, one.high), d.whole && one.whole
		default:
			d.whole = false
		}
		if ok = ok || demands; demands && one.text != "" {
			words = append(words, one.text)
		}
	}
	if n.or {
		d.text = "between " + strings.Join(words, " or ")
	} else {
		d.text = strings.Join(words, ", ")
	}
	return d, ok
}

// widen makes the demand one for all ends between those of two. It is not whole.
func (d *demand) widen(other demand) {
	d.low, d.high, d.whole = min(d.low, other.low), max(d.high, other.high), false
}

// narrow adds a comparison with a number of seconds.
func (d *demand) narrow(p pseudo, op operator, seconds float64, now int64) {
	if op == equal || op == greaterOrEqual {
		d.low = max(d.low, endAt(p, seconds, false, now))
	}
	switch op {
	case equal, lessOrEqual:
		d.high = min(d.high, before(endAt(p, seconds, true, now)))
	case less:
		d.high = min(d.high, before(endAt(p, seconds, false, now)))
	case greater:
		d.low = max(d.low, endAt(p, seconds, true, now))
	}
	if d.text != "" {
		d.text += ", "
	}
	d.text += p.name() + " " + opText[op] + " " + shortNumber(seconds)
}

// numberOf returns the number of an expression that is one.
func numberOf(n node) (float64, bool) {
	l, isLiteral := n.(*literal)
	if !isLiteral || l.value.kind != Number {
		return 0, false
	}
	return l.value.num, true
}

func shortNumber(n float64) string { return string(NumberValue(n).AppendJSON(nil)) }

// opText are the operators that a demand handles.
var opText = map[operator]string{equal: "=", less: "<", lessOrEqual: "<=", greater: ">", greaterOrEqual: ">="}

func (p pseudo) name() string {
	if p == pseudoTTLLeft {
		return "_ttlleft"
	}
	return "_expiresat"
}

// before returns the millisecond before a moment.
func before(ms int64) int64 {
	if ms == math.MinInt64 {
		return ms
	}
	return ms - 1
}

// endAt returns the first end in ms whose member p is at least a number of seconds, or greater than it. The numbers are
// compared as those of documents are: as doubles. Ends are after the epoch.
func endAt(p pseudo, seconds float64, greater bool, now int64) int64 {
	if p == pseudoExpiresAt {
		now = 0
	}
	return int64(sort.Search(math.MaxInt64, func(end int) bool {
		n := float64(int64(end)-now) / 1000
		return n > seconds || n == seconds && !greater
	}))
}

// Counts reports whether the query does nothing but count the documents that WHERE selects. Then documents that an
// index proves need not be read.
func (q *Query) Counts() bool {
	if !q.grouped || len(q.groupBy) > 0 {
		return false
	}
	for _, a := range q.aggregates {
		if l, isLiteral := a.arg.(*literal); a.name != "COUNT" || !isLiteral || l.value.kind == Undefined {
			return false
		}
	}
	return true
}
