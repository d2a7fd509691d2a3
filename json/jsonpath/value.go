package jsonpath

import (
	"cmp"
	"strconv"
	"strings"

	"mayfly/json/jsontext"
)

// value is a scalar of a filter, or the text of an object or array.
type value struct {
	kind    valueKind
	integer int64   // integerValue
	number  float64 // numberValue
	text    string  // the content of a string, the JSON of an object or array
}

type valueKind uint8

const (
	missing valueKind = iota // no value, or several
	nullValue
	falseValue
	trueValue
	integerValue
	numberValue
	stringValue
	container
)

// jsonValue reads the value of a text of JSON.
func jsonValue(text string) value {
	switch text[0] {
	case '{', '[':
		return value{kind: container, text: text}
	case '"':
		return value{kind: stringValue, text: jsontext.Unquote(text)}
	case 't':
		return value{kind: trueValue}
	case 'f':
		return value{kind: falseValue}
	case 'n':
		return value{kind: nullValue}
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return value{kind: integerValue, integer: n}
	}
	return value{kind: numberValue, number: jsontext.ParseNumber(text)}
}

// compare orders two scalars; ok is false if they have no order. Numbers compare by value, two integers
// exactly.
func (v value) compare(w value) (order int, ok bool) {
	switch {
	case v.kind == integerValue && w.kind == integerValue:
		return cmp.Compare(v.integer, w.integer), true
	case v.isNumber() && w.isNumber():
		return cmp.Compare(v.float(), w.float()), true
	case v.kind == stringValue && w.kind == stringValue:
		return strings.Compare(v.text, w.text), true
	case v.isBool() && w.isBool():
		return cmp.Compare(v.kind, w.kind), true
	case v.kind == nullValue && w.kind == nullValue:
		return 0, true
	}
	return 0, false
}

func (v value) isNumber() bool { return v.kind == integerValue || v.kind == numberValue }
func (v value) isBool() bool   { return v.kind == falseValue || v.kind == trueValue }

func (v value) float() float64 {
	if v.kind == integerValue {
		return float64(v.integer)
	}
	return v.number
}

// equals reports whether two values are equal. Objects and arrays are compared as a whole.
func (v value) equals(w value) bool {
	if v.kind == container && w.kind == container {
		return string(jsontext.AppendCanonical(nil, v.text)) == string(jsontext.AppendCanonical(nil, w.text))
	}
	order, ok := v.compare(w)
	return ok && order == 0
}

// holds reports whether an operator holds between two values, but for =~ and the existence of one.
func (op operator) holds(v, w value) bool {
	switch op {
	case equal:
		return v.equals(w)
	case notEqual:
		return !v.equals(w)
	}
	order, ok := v.compare(w)
	if !ok {
		return false
	}
	switch op {
	case less:
		return order < 0
	case lessOrEqual:
		return order <= 0
	case greater:
		return order > 0
	default:
		return order >= 0
	}
}
