package query

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/query/jsontext"
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
	// text is what a string holds, the JSON of an array or object, and the spelling of a number, if it
	// is other than the shortest.
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
	return Value{kind: Number, num: parseNumber(text), text: text}
}

// parseNumber reads a number of JSON. One beyond the doubles is infinite.
func parseNumber(text string) float64 {
	if len(text) < 16 { // an integer below 2^53 is exact
		n, digits := 0, text
		if digits[0] == '-' {
			digits = digits[1:]
		}
		for i := 0; ; i++ {
			if i == len(digits) {
				if len(digits) < len(text) {
					return -float64(n)
				}
				return float64(n)
			}
			c := digits[i] - '0'
			if c > 9 {
				break
			}
			n = n*10 + int(c)
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond the range f is infinite
	return f
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
		out, _ = appendCanonicalAt(out, v.text, 0)
		return out
	case Number:
		return appendNumber(out, v.num)
	}
	return v.AppendJSON(out)
}

// appendCanonicalAt is appendCanonical for the value at i, in one pass. It returns its end.
func appendCanonicalAt(out []byte, text string, i int) (_ []byte, end int) {
	if text[i] != '[' && text[i] != '{' {
		end = jsontext.ValueEnd(text, i)
		return appendCanonical(out, ValueOf(text[i:end])), end
	}
	out = append(out, text[i])
	from := len(out)
	w := jsontext.WalkAt(text, i)
	if w.Array {
		for w.Step() {
			if len(out) > from {
				out = append(out, ',')
			}
			out, w.Pos = appendCanonicalAt(out, text, w.ValueFrom)
		}
		return append(out, ']'), w.Start + 1
	}
	var members []canonicalMember
	sorted := true
	for w.Step() {
		m := canonicalMember{name: w.Name(), from: len(out)}
		out = append(appendString(out, m.name), ':')
		out, w.Pos = appendCanonicalAt(out, text, w.ValueFrom)
		out = append(out, ',')
		m.to = len(out)
		sorted = sorted && (len(members) == 0 || members[len(members)-1].name < m.name)
		members = append(members, m)
	}
	if !sorted {
		out = append(out[:from], sortMembers(out, members)...)
	}
	if len(out) > from {
		out = out[:len(out)-1] // the last comma
	}
	return append(out, '}'), w.Start + 1
}

// canonicalMember is a member and where its text is, with a comma.
type canonicalMember struct {
	name     string
	from, to int
}

// sortMembers returns the text of the members in the order of names, without repeated names.
func sortMembers(text []byte, members []canonicalMember) []byte {
	slices.SortFunc(members, func(a, b canonicalMember) int { return strings.Compare(a.name, b.name) })
	var out []byte
	for i, m := range members {
		if i > 0 && members[i-1].name == m.name || i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		out = append(out, text[m.from:m.to]...)
	}
	return out
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
		return appendNumber(out, v.num)
	case String:
		return appendString(out, v.text)
	case Array, Object:
		return append(out, v.text...)
	}
	return out
}

// appendNumber appends the shortest JSON of a number, as encoding/json and JavaScript write it.
func appendNumber(out []byte, n float64) []byte {
	switch magnitude := math.Abs(n); {
	case n == 0:
		return append(out, '0') // -0 equals 0
	case math.IsInf(n, 0): // a document may say 1e999
		return append(out, map[bool]string{true: "1e999", false: "-1e999"}[n > 0]...)
	case magnitude < 1e-6 || magnitude >= 1e21:
		return strconv.AppendFloat(out, n, 'e', -1, 64)
	}
	return strconv.AppendFloat(out, n, 'f', -1, 64)
}

// appendString appends a string of JSON. What is no UTF-8 becomes U+FFFD.
func appendString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				out = append(append(out, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		out = append(out, s[from:i]...)
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(out, s[from:]...), '"')
}
