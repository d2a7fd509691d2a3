package query

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"math"
)

// Value reports whether rows are values: SELECT VALUE.
func (q *Query) Value() bool { return q.value }

// Grouped reports whether rows are groups: of GROUP BY, or of aggregates over all documents.
func (q *Query) Grouped() bool { return q.grouped }

// Whole reports whether rows are whole documents: SELECT *.
func (q *Query) Whole() bool { return q.items == nil }

// Distinct reports whether equal rows are one.
func (q *Query) Distinct() bool { return q.distinct }

// Sorts reports whether ORDER BY gives the order of rows.
func (q *Query) Sorts() bool { return q.orderBy != nil }

// Offset returns the number of rows to skip.
func (q *Query) Offset() int64 { return q.offset }

// Limit returns the greatest number of rows, -1 without a limit.
func (q *Query) Limit() int64 { return q.limit }

// Directions returns an element for each item of ORDER BY: true for DESC.
func (q *Query) Directions() (desc []bool) {
	for _, by := range q.orderBy {
		desc = append(desc, by.desc)
	}
	return desc
}

// GroupPaths returns the number of paths of GROUP BY.
func (q *Query) GroupPaths() int { return len(q.groupBy) }

// Aggregates returns the names of the aggregates: COUNT, SUM, AVG, MIN or MAX.
func (q *Query) Aggregates() (names []string) {
	for _, a := range q.aggregates {
		names = append(names, a.name)
	}
	return names
}

// Counts reports whether the query does nothing but count the documents that WHERE selects. Then documents
// that an index proves need not be read.
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

// CountsAll reports whether the query counts all documents: [Query.Counts] without WHERE.
func (q *Query) CountsAll() bool { return q.where == nil && q.Counts() }

// Hash returns a number that tells the query and its parameters from others.
func (q *Query) Hash() uint64 { return q.hash }

// Scope makes the hash one of the query on one collection of documents, by its name. It is called once,
// before the query is used.
func (q *Query) Scope(name string) {
	h := fnv.New64a()
	fmt.Fprintf(h, "%x %s", q.hash, name)
	q.hash = h.Sum64()
}

// Document returns the current document.
func (e *Evaluator) Document() *Document { return e.doc }

// OrderValue returns the value of an item of ORDER BY.
func (e *Evaluator) OrderValue(item int) Value { return e.q.orderBy[item].expr.eval(e) }

// GroupValue returns the value of a path of GROUP BY.
func (e *Evaluator) GroupValue(path int) Value { return e.q.groupBy[path].eval(e) }

// Argument returns the value that the current document adds to an aggregate.
func (e *Evaluator) Argument(aggregate int) Value {
	e.work(evalWork)
	return e.q.aggregates[aggregate].arg.eval(e)
}

// LoadGroup makes a group the current one, for Row. keys are the values of GROUP BY, totals those of the
// aggregates.
func (e *Evaluator) LoadGroup(keys, totals []Value) {
	e.done, e.most, e.err = 0, maxWork, nil
	e.groups, e.totals = keys, totals
}

// Canonical appends a text that is the same for equal values and differs for others. It counts as work.
func (e *Evaluator) Canonical(out []byte, v Value) []byte { return e.canonical(out, v) }

// AppendBinary appends the place of a value in the order of values. [ParseBinary] reads it.
func (v Value) AppendBinary(out []byte) []byte {
	out = append(out, byte(v.kind))
	switch v.kind {
	case Bool, Number:
		out = binary.LittleEndian.AppendUint64(out, math.Float64bits(v.num))
	case String:
		out = append(binary.AppendUvarint(out, uint64(len(v.text))), v.text...)
	}
	return out
}

// ParseBinary reads what [Value.AppendBinary] has written, and returns the rest of the data. An array or
// object comes back without its content. The value has memory of its own.
func ParseBinary(data []byte) (v Value, rest []byte, ok bool) {
	if len(data) == 0 || Kind(data[0]) > Object {
		return Value{}, nil, false
	}
	v.kind, data = Kind(data[0]), data[1:]
	switch v.kind {
	case Bool, Number:
		if len(data) < 8 {
			return Value{}, nil, false
		}
		v.num, data = math.Float64frombits(binary.LittleEndian.Uint64(data)), data[8:]
	case String:
		n, size := binary.Uvarint(data)
		if size <= 0 || n > uint64(len(data)-size) {
			return Value{}, nil, false
		}
		v.text, data = string(data[size:size+int(n)]), data[size+int(n):]
	}
	return v, data, true
}
