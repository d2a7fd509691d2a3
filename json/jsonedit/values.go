package jsonedit

import (
	"bytes"
	"strconv"
	"strings"

	"mayfly/json/jsontext"
	"mayfly/longtext"
)

// Kind returns the name of a value's type as JSON.TYPE shows it. A number without fraction and exponent is an
// integer if it fits into 64 bits, with or without a sign.
func Kind(value string) string {
	switch value[0] {
	case '{':
		return "object"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "boolean"
	case 'n':
		return "null"
	}
	if _, err := strconv.ParseInt(value, 10, 64); err == nil {
		return "integer"
	}
	if _, err := strconv.ParseUint(value, 10, 64); err == nil {
		return "integer"
	}
	return "number"
}

// Sought is a value to look for. It is read once, however many values it is compared with: a comparison takes
// as long as the other value asks for.
type Sought struct {
	value string
	exact []byte // the same text for equal values
	other []byte // the exact text of the last value that was compared; reused
}

// Seek returns a value to look for.
func Seek(value string) *Sought { return &Sought{value: value, exact: appendExact(nil, value)} }

// Equals reports whether the value equals another one: numbers by value, an integer never one with a
// fraction; objects whatever the order of their members. Of a repeated name the last one counts.
func (s *Sought) Equals(other string) bool {
	switch a, b := s.value[0], other[0]; {
	case s.value == other:
		return true
	case a != b && !(startsNumber(a) && startsNumber(b)):
		return false
	}
	s.other = appendExact(s.other[:0], other)
	return bytes.Equal(s.exact, s.other)
}

func startsNumber(c byte) bool { return c == '-' || c >= '0' && c <= '9' }

// appendExact appends the same text for equal values.
func appendExact(out []byte, value string) []byte {
	return jsontext.AppendCanonicalWith(out, Unrepeated(value), func(out []byte, number string) []byte {
		switch {
		case number == "-0":
			return append(out, '0')
		case Kind(number) == "integer":
			return append(out, number...)
		}
		// No integer is spelled like this. The sum makes -0.0 equal to 0.0.
		return strconv.AppendFloat(out, jsontext.ParseNumber(number)+0, 'e', -1, 64)
	})
}

// AppendToString returns a string with another one after it, both as JSON, and the length of the content in
// bytes.
func AppendToString(value, suffix string) (text string, length int) {
	text = value[:len(value)-1] + suffix[1:]
	return text, len(jsontext.Unquote(text))
}

// Toggle returns the other boolean.
func Toggle(value string) string {
	if value == "true" {
		return "false"
	}
	return "true"
}

// Clear returns the empty object or array or the number 0; changed is false if the value is that already, or
// of another type.
func Clear(value string) (text string, changed bool) {
	switch kind := Kind(value); {
	case kind == "object" && !Empty(value):
		return "{}", true
	case kind == "array" && !Empty(value):
		return "[]", true
	case (kind == "integer" || kind == "number") && jsontext.ParseNumber(value) != 0:
		return "0", true
	}
	return value, false
}

// Empty reports whether a value is an object or an array with nothing in it.
func Empty(value string) bool {
	if value[0] != '{' && value[0] != '[' {
		return false
	}
	w := jsontext.WalkAt(value, 0)
	return !w.Next()
}

// Length returns the number of elements of an array, or of members of an object. A repeated name counts once.
func Length(value string) int {
	if value[0] == '{' {
		return len(Names(value))
	}
	n := 0
	for w := jsontext.WalkAt(value, 0); w.Next(); {
		n++
	}
	return n
}

// Names returns the names of an object's members, without repeated ones.
func Names(object string) []string {
	var names []string
	seen := repetitions{}
	for w := jsontext.WalkAt(object, 0); w.Next(); {
		if name := w.Name(); seen.add(name) < 0 {
			names = append(names, name)
		}
	}
	return names
}

// repetitions finds repeated names. The zero value is ready.
type repetitions struct {
	names  []string
	byName map[string]int // indices of names; nil for few
}

// fewNames is the number of names up to which a search is faster than a map.
const fewNames = 16

// add returns the index of a name that was added before. It adds another one and returns -1.
func (r *repetitions) add(name string) int {
	if r.byName != nil {
		if i, ok := r.byName[name]; ok {
			return i
		}
		r.byName[name] = len(r.names)
	} else {
		for i := range r.names {
			if r.names[i] == name {
				return i
			}
		}
	}
	r.names = append(r.names, name)
	if r.byName == nil && len(r.names) > fewNames {
		r.byName = make(map[string]int, 4*fewNames)
		for i, name := range r.names {
			r.byName[name] = i
		}
	}
	return -1
}

// elements returns the positions of the elements of an array: from, to.
func elements(array string) (spans [][2]int) {
	for w := jsontext.WalkAt(array, 0); w.Next(); {
		spans = append(spans, [2]int{w.ValueFrom, w.Pos})
	}
	return spans
}

// Insert returns an array with values before the element at index, and the new length. An index of the length
// appends; negative ones count from the end. ok is false if the index is out of range.
func Insert(array string, index int, values []string) (text string, length int, ok bool) {
	at := elements(array)
	if index < 0 {
		index += len(at)
	}
	if index < 0 || index > len(at) {
		return array, len(at), false
	}
	list := strings.Join(values, ",")
	switch {
	case len(at) == 0:
		text = "[" + list + "]"
	case index == len(at):
		end := at[index-1][1]
		text = longtext.Join(array[:end], ",", list, array[end:])
	default:
		text = longtext.Join(array[:at[index][0]], list, ",", array[at[index][0]:])
	}
	return text, len(at) + len(values), true
}

// Append returns an array with values at its end, and the new length.
func Append(array string, values []string) (text string, length int) {
	last := lastNonSpace(array, len(array)-1)
	list := strings.Join(values, ",")
	if array[last] != '[' {
		list = "," + list
	}
	return longtext.Join(array[:last+1], list, array[last+1:]), Length(array) + len(values)
}

// Pop removes an element from an array and returns it; "" if the array is empty. An index beyond the ends
// means the last or the first element; negative ones count from the end.
func Pop(array string, index int) (text, popped string) {
	at := elements(array)
	if len(at) == 0 {
		return array, ""
	}
	if index < 0 {
		index = max(index+len(at), 0)
	}
	index = min(index, len(at)-1)
	popped = array[at[index][0]:at[index][1]]
	switch {
	case len(at) == 1:
		return "[]", popped
	case index == 0:
		return longtext.Join(array[:at[0][0]], array[at[1][0]:]), popped
	}
	return longtext.Join(array[:at[index-1][1]], array[at[index][1]:]), popped
}

// Trim returns an array with the elements from start to stop, both included, and the new length. Negative
// indices count from the end; those before the first element are its own.
func Trim(array string, start, stop int) (text string, length int) {
	at := elements(array)
	if start < 0 {
		start = max(start+len(at), 0)
	}
	if stop < 0 {
		stop = max(stop+len(at), 0)
	}
	stop = min(stop, len(at)-1)
	if start > stop {
		return "[]", 0
	}
	return "[" + array[at[start][0]:at[stop][1]] + "]", stop - start + 1
}

// Index returns the index of the first element of an array from start on and before stop that equals the
// value; -1 if there is none. A stop of 0 means the end. Negative indices count from the end.
func (s *Sought) Index(array string, start, stop int) int {
	at := elements(array)
	if start < 0 {
		start = max(start+len(at), 0)
	} else {
		start = min(start, len(at)-1)
	}
	switch {
	case stop == 0:
		stop = len(at)
	case stop < 0:
		stop = max(stop+len(at), 0)
	default:
		stop = min(stop, len(at))
	}
	for i := max(start, 0); i < stop; i++ {
		if s.Equals(array[at[i][0]:at[i][1]]) {
			return i
		}
	}
	return -1
}
