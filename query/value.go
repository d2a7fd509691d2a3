package query

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"mayfly/json/jsontext"
)

// Kind is the type of a value. The kinds are in the order of values.
type Kind uint8

const (
	Undefined Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

// Value is a value of an expression. Values are ordered by kind, false before true, numbers as doubles,
// strings by their bytes. Arrays and objects are equal in order among themselves; [Equal] compares their
// contents. The zero value is undefined.
type Value struct {
	kind Kind
	num  float64 // of a number; 1 for true
	// text is what a string holds, or the JSON of an array or object. Of a number it is the spelling, if
	// that is not the shortest.
	text string
}

// Kind returns the value's type.
func (v Value) Kind() Kind { return v.kind }

// Float returns the number of a Number, and 1 for true.
func (v Value) Float() float64 { return v.num }

// Text returns the content of a String without quotes and escapes, and the JSON of an Array or Object.
func (v Value) Text() string { return v.text }

// NumberValue returns a number. Without a finite value it is undefined.
func NumberValue(n float64) Value {
	if math.IsInf(n, 0) || math.IsNaN(n) {
		return Value{}
	}
	return Value{kind: Number, num: n}
}

// SpelledNumber returns a number that compares as n and is written as spelling.
func SpelledNumber(n float64, spelling string) Value {
	return Value{kind: Number, num: n, text: spelling}
}

// StringValue returns a string.
func StringValue(s string) Value { return Value{kind: String, text: s} }

// BoolValue returns true or false.
func BoolValue(b bool) Value {
	if b {
		return Value{kind: Bool, num: 1}
	}
	return Value{kind: Bool}
}

// NullValue is null.
var NullValue = Value{kind: Null}

// ValueOf returns the value of a text of valid JSON without white space around it. "" is undefined. The
// value shares memory with the text.
func ValueOf(text string) Value {
	if text == "" {
		return Value{}
	}
	switch text[0] {
	case '{':
		return Value{kind: Object, text: text}
	case '[':
		return Value{kind: Array, text: text}
	case '"':
		return Value{kind: String, text: jsontext.Unquote(text)}
	case 't':
		return BoolValue(true)
	case 'f':
		return BoolValue(false)
	case 'n':
		return NullValue
	}
	return Value{kind: Number, num: jsontext.ParseNumber(text), text: text}
}

// isTrue reports whether v selects.
func (v Value) isTrue() bool { return v.kind == Bool && v.num == 1 }

// Compare returns the order of two values: negative, 0 or positive.
func Compare(a, b Value) int {
	if a.kind != b.kind {
		return int(a.kind) - int(b.kind)
	}
	switch a.kind {
	case Bool, Number:
		return cmp.Compare(a.num, b.num)
	case String:
		return strings.Compare(a.text, b.text)
	}
	return 0
}

// Equal reports whether two values are equal, arrays and objects by content. Undefined equals undefined.
func Equal(a, b Value) bool {
	if a.kind != b.kind {
		return false
	}
	if a.kind < Array {
		return Compare(a, b) == 0
	}
	return a.text == b.text || Canonical(a) == Canonical(b)
}

// Canonical returns a text that is the same for equal values and differs for others.
func Canonical(v Value) string { return string(appendCanonical(nil, v)) }

// appendCanonical appends JSON with sorted members, without repeated ones, with shortest numbers.
func appendCanonical(out []byte, v Value) []byte {
	switch v.kind {
	case Array, Object:
		return jsontext.AppendCanonical(out, v.text)
	case Number:
		return jsontext.AppendNumber(out, v.num)
	}
	return v.AppendJSON(out)
}

// AppendJSON appends the value as JSON. Undefined appends nothing.
func (v Value) AppendJSON(out []byte) []byte {
	switch v.kind {
	case Null:
		return append(out, "null"...)
	case Bool:
		return strconv.AppendBool(out, v.num == 1)
	case Number:
		if v.text != "" {
			return append(out, v.text...)
		}
		return jsontext.AppendNumber(out, v.num)
	case String:
		return jsontext.AppendString(out, v.text)
	case Array, Object:
		return append(out, v.text...)
	}
	return out
}
