package jsonedit

import (
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

// Equal reports whether two values are equal: numbers by value, an integer never to one with a fraction;
// objects whatever the order of their members. It stops at the first difference.
func Equal(a, b string) bool {
	if a == b {
		return true
	}
	if a[0] == '{' && b[0] == '{' {
		return equalObjects(a, b)
	}
	if a[0] == '[' && b[0] == '[' {
		v, w := jsontext.WalkAt(a, 0), jsontext.WalkAt(b, 0)
		for {
			more := v.Next()
			if w.Next() != more || more && !Equal(v.Value(), w.Value()) {
				return false
			}
			if !more {
				return true
			}
		}
	}
	switch kind := Kind(a); {
	case kind != Kind(b):
		return false
	case kind == "string":
		return jsontext.Unquote(a) == jsontext.Unquote(b)
	case kind == "number":
		return jsontext.ParseNumber(a) == jsontext.ParseNumber(b)
	case kind == "integer":
		return a == "-0" && b == "0" || a == "0" && b == "-0"
	}
	return false
}

// equalObjects is Equal for objects. Of a repeated name the last one counts.
func equalObjects(a, b string) bool {
	members := make(map[string]string)
	for w := jsontext.WalkAt(a, 0); w.Next(); {
		members[w.Name()] = w.Value()
	}
	others := make(map[string]string, len(members))
	for w := jsontext.WalkAt(b, 0); w.Next(); {
		others[w.Name()] = w.Value()
	}
	if len(members) != len(others) {
		return false
	}
	for name, value := range members {
		if other, ok := others[name]; !ok || !Equal(value, other) {
			return false
		}
	}
	return true
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

// Index returns the index of the first element from start on and before stop that equals a value; -1 if there
// is none. A stop of 0 means the end. Negative indices count from the end.
func Index(array, value string, start, stop int) int {
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
		if Equal(array[at[i][0]:at[i][1]], value) {
			return i
		}
	}
	return -1
}
