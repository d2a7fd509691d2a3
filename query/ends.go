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
	Proven    bool   // the range says all that WHERE does
	Range     string // in words, for EXPLAIN
}

// Ends returns what the query demands of the end of documents, at a moment in ms. ok is false if it demands nothing:
// then it also selects documents that do not die.
func (q *Query) Ends(now int64) (e Ends, ok bool) {
	e = Ends{Low: math.MinInt64, High: math.MaxInt64}
	var words []string
	conditions := 0
	if q.where != nil {
		all := []node{q.where}
		if l, isLogical := q.where.(*logical); isLogical && !l.or {
			all = l.terms
		}
		for _, n := range all {
			if text, narrowed := e.narrow(n, now); narrowed {
				words = append(words, text)
			}
		}
		conditions = len(all)
	}
	e.Proven = len(words) == conditions
	if len(q.orderBy) == 1 && !q.orderBy[0].desc {
		_, e.Ordered = endOf(q.orderBy[0].expr)
	}
	if e.Range = strings.Join(words, ", "); words == nil {
		e.Range = "all that die"
	}
	return e, e.Ordered || words != nil
}

// endOf returns the pseudo member of an expression that is _expiresat or _ttlleft.
func endOf(n node) (p pseudo, ok bool) {
	ref, isPath := n.(*pathRef)
	if !isPath || len(ref.path) != 1 || ref.pseudo != pseudoExpiresAt && ref.pseudo != pseudoTTLLeft {
		return stored, false
	}
	return ref.pseudo, true
}

// narrow narrows the range to what a condition demands, and returns that in words.
func (e *Ends) narrow(n node, now int64) (text string, ok bool) {
	switch n := n.(type) {
	case *comparison:
		left, right, op := n.left, n.right, n.op
		if _, isLiteral := left.(*literal); isLiteral {
			left, right, op = right, left, op.mirrored()
		}
		p, isEnd := endOf(left)
		seconds, isNumber := numberOf(right)
		if !isEnd || !isNumber {
			return "", false
		}
		switch op {
		case equal:
			e.atLeast(p, seconds, now)
			e.atMost(p, seconds, now)
		case less:
			e.High = min(e.High, before(endAt(p, seconds, false, now)))
		case lessOrEqual:
			e.atMost(p, seconds, now)
		case greater:
			e.Low = max(e.Low, endAt(p, seconds, true, now))
		case greaterOrEqual:
			e.atLeast(p, seconds, now)
		default:
			return "", false
		}
		return p.name() + " " + opText[op] + " " + shortNumber(seconds), true
	case *between:
		p, isEnd := endOf(n.term)
		low, ok1 := numberOf(n.low)
		high, ok2 := numberOf(n.high)
		if !isEnd || !ok1 || !ok2 {
			return "", false
		}
		e.atLeast(p, low, now)
		e.atMost(p, high, now)
		return p.name() + " >= " + shortNumber(low) + ", " + p.name() + " <= " + shortNumber(high), true
	}
	return "", false
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

// opText are the operators that narrow handles.
var opText = map[operator]string{equal: "=", less: "<", lessOrEqual: "<=", greater: ">", greaterOrEqual: ">="}

func (p pseudo) name() string {
	if p == pseudoTTLLeft {
		return "_ttlleft"
	}
	return "_expiresat"
}

func (e *Ends) atLeast(p pseudo, seconds float64, now int64) {
	e.Low = max(e.Low, endAt(p, seconds, false, now))
}

func (e *Ends) atMost(p pseudo, seconds float64, now int64) {
	e.High = min(e.High, before(endAt(p, seconds, true, now)))
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
