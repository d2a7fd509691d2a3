package predicates

import (
	"math"
	"sort"
	"strings"

	"mayfly/query"
)

// Ends is what a query demands of the moments at which documents die, so that those can be read in their
// order.
type Ends struct {
	Low, High int64  // ms since the epoch, both included; nothing is between if High is lower
	Ordered   bool   // ORDER BY is the order of ends
	Proves    []int  // the numbers of the conditions that the range proves
	Range     string // in words, for EXPLAIN
}

// EndsOf returns what a query demands of the end of documents, at a moment in ms. ok is false if it demands
// nothing. Then it also selects documents that do not die.
func EndsOf(q *query.Query, now int64) (e Ends, ok bool) {
	e = Ends{Low: math.MinInt64, High: math.MaxInt64}
	var words []string
	narrowed := false
	for i, c := range q.Conditions() {
		d, ok := demandOf(c, now)
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
	if order := q.OrderBy(); len(order) == 1 && !order[0].Desc {
		_, e.Ordered = endOf(order[0].Expr)
	}
	if e.Range = strings.Join(words, ", "); words == nil {
		e.Range = "all that die"
	}
	return e, e.Ordered || narrowed
}

// The pseudo members of the end of a document.
const (
	expiresAt = "_expiresat"
	ttlLeft   = "_ttlleft"
)

// endOf returns the name of an expression that is one of them.
func endOf(x query.Expr) (member string, ok bool) {
	names, ok := x.Names()
	if !ok || len(names) != 1 || names[0] != expiresAt && names[0] != ttlLeft {
		return "", false
	}
	return names[0], true
}

// demand is what a condition demands of the end of a document.
type demand struct {
	low, high int64  // ms, both included
	whole     bool   // the condition demands nothing else
	text      string // "" for all that die
}

// anyEnd demands that a document dies, and nothing that none does.
var (
	anyEnd  = demand{low: math.MinInt64, high: math.MaxInt64, whole: true}
	nothing = demand{low: math.MaxInt64, high: math.MinInt64}
)

// demandOf returns what a condition demands. ok is false if documents that do not die may fulfil it.
func demandOf(x query.Expr, now int64) (d demand, ok bool) {
	d = anyEnd
	if left, op, right, ok := x.Comparison(); ok {
		member, isEnd := endOf(left)
		seconds, isNumber := numberOf(right)
		if !isEnd || !isNumber || op == "!=" {
			return d, false
		}
		d.narrow(member, op, seconds, now)
		return d, true
	}
	if term, lowest, highest, ok := x.Between(); ok {
		member, isEnd := endOf(term)
		low, ok1 := numberOf(lowest)
		high, ok2 := numberOf(highest)
		if !isEnd || !ok1 || !ok2 {
			return d, false
		}
		d.narrow(member, ">=", low, now)
		d.narrow(member, "<=", high, now)
		return d, true
	}
	if term, values, ok := x.In(); ok {
		member, isEnd := endOf(term)
		return demandOfValues(member, values, now), isEnd
	}
	if terms, or, ok := x.Logical(); ok {
		if or {
			return demandOfOr(terms, now)
		}
		return demandOfAnd(terms, now)
	}
	if name, args, ok := x.Call(); ok && name == "IS_DEFINED" {
		_, isEnd := endOf(args[0])
		return d, isEnd
	}
	return d, false
}

// demandOfValues is demandOf for IN, which reads all between its values.
func demandOfValues(member string, values []query.Value, now int64) demand {
	d := nothing
	for _, v := range values {
		if v.Kind() == query.Number {
			one := anyEnd
			one.narrow(member, "=", v.Float(), now)
			d.widen(one)
		}
	}
	d.text = member + " between the values of IN"
	return d
}

// demandOfOr is demandOf for OR, which reads all between the ends that its terms demand.
func demandOfOr(terms []query.Expr, now int64) (d demand, ok bool) {
	d = nothing
	var words []string
	for _, term := range terms {
		one, ok := demandOf(term, now)
		if !ok {
			return d, false
		}
		d.widen(one)
		if words = append(words, one.text); one.text == "" {
			words[len(words)-1] = "all that die"
		}
	}
	d.text = "between " + strings.Join(words, " or ")
	return d, true
}

// demandOfAnd is demandOf for AND, which narrows.
func demandOfAnd(terms []query.Expr, now int64) (d demand, ok bool) {
	d = anyEnd
	var words []string
	for _, term := range terms {
		one, demands := demandOf(term, now)
		if !demands {
			d.whole = false
			continue
		}
		ok = true
		d.low, d.high, d.whole = max(d.low, one.low), min(d.high, one.high), d.whole && one.whole
		if one.text != "" {
			words = append(words, one.text)
		}
	}
	d.text = strings.Join(words, ", ")
	return d, ok
}

// widen makes the demand one for all ends between those of two. It is not whole.
func (d *demand) widen(other demand) {
	d.low, d.high, d.whole = min(d.low, other.low), max(d.high, other.high), false
}

// narrow adds a comparison with a number of seconds.
func (d *demand) narrow(member, op string, seconds float64, now int64) {
	if op == "=" || op == ">=" {
		d.low = max(d.low, endAt(member, seconds, false, now))
	}
	switch op {
	case "=", "<=":
		d.high = min(d.high, before(endAt(member, seconds, true, now)))
	case "<":
		d.high = min(d.high, before(endAt(member, seconds, false, now)))
	case ">":
		d.low = max(d.low, endAt(member, seconds, true, now))
	}
	if d.text != "" {
		d.text += ", "
	}
	d.text += member + " " + op + " " + query.Short(query.NumberValue(seconds))
}

// numberOf returns the number of an expression that is one.
func numberOf(x query.Expr) (float64, bool) {
	v, _ := x.Constant()
	return v.Float(), v.Kind() == query.Number
}

// before returns the millisecond before a moment.
func before(ms int64) int64 {
	if ms == math.MinInt64 {
		return ms
	}
	return ms - 1
}

// endAt returns the first end in ms whose member is at least a number of seconds, or greater than it. The
// numbers are compared as those of documents are: as doubles. Ends are after the epoch.
func endAt(member string, seconds float64, greater bool, now int64) int64 {
	if member == expiresAt {
		now = 0
	}
	return int64(sort.Search(math.MaxInt64, func(end int) bool {
		n := float64(int64(end)-now) / 1000
		return n > seconds || n == seconds && !greater
	}))
}
