package query

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"mayfly/json/jsontext"
)

// function is a built-in function.
type function struct {
	name        string
	least, most int // arguments
	run         func(e *Evaluator, args []Value) Value
}

// arity describes the number of arguments.
func (f *function) arity() string {
	switch {
	case f.most == MaxItems:
		return fmt.Sprintf("at least %d arguments", f.least)
	case f.least != f.most:
		return fmt.Sprintf("%d or %d arguments", f.least, f.most)
	case f.least == 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", f.least)
}

// functions are the built-in functions by name.
var functions = map[string]*function{}

// functionNames lists them for errors.
var functionNames string

func init() {
	isKind := func(kinds ...Kind) func(*Evaluator, []Value) Value {
		return func(_ *Evaluator, args []Value) Value { return BoolValue(slices.Contains(kinds, args[0].kind)) }
	}
	for _, f := range []*function{
		{"IS_DEFINED", 1, 1, isKind(Null, Bool, Number, String, Array, Object)},
		{"IS_NULL", 1, 1, isKind(Null)},
		{"IS_BOOL", 1, 1, isKind(Bool)},
		{"IS_NUMBER", 1, 1, isKind(Number)},
		{"IS_STRING", 1, 1, isKind(String)},
		{"IS_ARRAY", 1, 1, isKind(Array)},
		{"IS_OBJECT", 1, 1, isKind(Object)},
		{"IS_PRIMITIVE", 1, 1, isKind(Null, Bool, Number, String)},
		{"LOWER", 1, 1, ofString(func(e *Evaluator, s string) Value { return e.mapped(s, unicode.ToLower) })},
		{"UPPER", 1, 1, ofString(func(e *Evaluator, s string) Value { return e.mapped(s, unicode.ToUpper) })},
		{"LENGTH", 1, 1, ofString(func(_ *Evaluator, s string) Value { return NumberValue(float64(utf8.RuneCountInString(s))) })},
		{"CONCAT", 2, MaxItems, func(e *Evaluator, args []Value) Value { return e.join(args...) }},
		{"SUBSTRING", 3, 3, substring},
		{"ABS", 1, 1, ofNumber(math.Abs)},
		{"FLOOR", 1, 1, ofNumber(math.Floor)},
		{"CEILING", 1, 1, ofNumber(math.Ceil)},
		{"ROUND", 1, 1, ofNumber(math.Round)}, // halves away from zero
		{"ARRAY_CONTAINS", 2, 3, arrayContains},
		{"ARRAY_LENGTH", 1, 1, arrayLength},
		{"IIF", 3, 3, iif},
		{"ST_DISTANCE", 2, 2, distance},
		{"ST_WITHIN", 2, 2, within},
		{"ST_BOX", 4, 4, box},
	} {
		functions[f.name] = f
	}
	for name, match := range matches {
		functions[name] = &function{name, 2, 3, ofStrings(match)}
	}
	functionNames = strings.Join(slices.Sorted(maps.Keys(functions)), " ") + ", and in SELECT AVG COUNT MAX MIN SUM"
}

// ofNumber returns a function that is undefined for other values than numbers.
func ofNumber(f func(float64) float64) func(*Evaluator, []Value) Value {
	return func(_ *Evaluator, args []Value) Value {
		if args[0].kind != Number {
			return Value{}
		}
		return NumberValue(f(args[0].num))
	}
}

// ofString returns a function that is undefined for other values than strings.
func ofString(f func(*Evaluator, string) Value) func(*Evaluator, []Value) Value {
	return func(e *Evaluator, args []Value) Value {
		if args[0].kind != String {
			return Value{}
		}
		if e.work(2 * len(args[0].text)); e.err != nil {
			return Value{}
		}
		return f(e, args[0].text)
	}
}

// mapped returns s with every character mapped. It is up to three times as long.
func (e *Evaluator) mapped(s string, mapping func(rune) rune) Value {
	if !e.fits(len(s)) {
		return Value{}
	}
	return StringValue(strings.Map(mapping, s))
}

// ofStrings returns a function of two strings. A third argument, true, compares in any case.
func ofStrings(f func(s, t string) bool) func(*Evaluator, []Value) Value {
	return func(e *Evaluator, args []Value) Value {
		if args[0].kind != String || args[1].kind != String {
			return Value{}
		}
		s, t := args[0].text, args[1].text
		if e.work(2 * len(s)); e.err != nil {
			return Value{}
		}
		if len(args) == 3 {
			if args[2].kind != Bool {
				return Value{}
			}
			if args[2].isTrue() {
				if s, t = e.foldCase(s), e.foldCase(t); e.err != nil {
					return Value{}
				}
			}
		}
		return BoolValue(f(s, t))
	}
}

// foldCase returns a text that is the same for strings that differ in case only.
func (e *Evaluator) foldCase(s string) string {
	if e.work(8 * len(s)); e.err != nil {
		return ""
	}
	return strings.ToLower(strings.ToUpper(s))
}

// substring is SUBSTRING(s, start, length), in characters from 0. It is empty if start is outside of s.
func substring(e *Evaluator, args []Value) Value {
	s, start, length := args[0], args[1], args[2]
	if s.kind != String || start.kind != Number || length.kind != Number || start.num != math.Trunc(start.num) || length.num != math.Trunc(length.num) {
		return Value{}
	}
	if start.num < 0 {
		return StringValue("")
	}
	e.work(len(s.text))
	left := int64(min(start.num, float64(len(s.text))))
	want := int64(min(max(length.num, 0), float64(len(s.text))))
	text := s.text
	for ; left > 0 && text != ""; left-- {
		_, size := utf8.DecodeRuneInString(text)
		text = text[size:]
	}
	end := 0
	for ; want > 0 && end < len(text); want-- {
		_, size := utf8.DecodeRuneInString(text[end:])
		end += size
	}
	return StringValue(text[:end])
}

// arrayContains is ARRAY_CONTAINS(array, value [, partial]). An object matches in part an element that has
// all its members.
func arrayContains(e *Evaluator, args []Value) Value {
	array, value := args[0], args[1]
	partial := false
	if len(args) == 3 && args[2].kind != Undefined {
		if args[2].kind != Bool {
			return Value{}
		}
		partial = args[2].isTrue()
	}
	if array.kind != Array || value.kind == Undefined {
		return Value{}
	}
	if e.work(walkWork * len(array.text)); e.err != nil {
		return Value{}
	}
	var members []member
	var canonical string
	if value.kind >= Array {
		canonical = string(e.canonical(nil, value))
		if e.err != nil {
			return Value{}
		}
		if partial && value.kind == Object {
			members = membersOf(canonical)
		}
	}
	for w := jsontext.WalkAt(array.text, 0); w.Next(); {
		element := ValueOf(w.Value())
		if element.kind != value.kind {
			continue
		}
		found := false
		switch {
		case value.kind < Array:
			found = Compare(element, value) == 0
		case partial && value.kind == Object:
			found = e.hasMembers(element, members)
		default:
			found = element.text == value.text || string(e.canonical(nil, element)) == canonical
		}
		switch {
		case e.err != nil:
			return Value{}
		case found:
			return BoolValue(true)
		}
	}
	return BoolValue(false)
}

// member is a member of an object with the canonical text of its value.
type member struct{ name, canonical string }

// membersOf returns the members of an object in canonical text, which leaves out repeated names.
func membersOf(canonical string) (members []member) {
	for w := jsontext.WalkAt(canonical, 0); w.Next(); {
		members = append(members, member{w.Name(), w.Value()})
	}
	return members
}

// hasMembers reports whether an object has all the members.
func (e *Evaluator) hasMembers(object Value, members []member) bool {
	for _, m := range members {
		if e.work(walkWork * len(object.text)); e.err != nil {
			return false
		}
		if v := object.at(step{m.name, -1}); v.kind == Undefined || string(e.canonical(nil, v)) != m.canonical {
			return false
		}
	}
	return true
}

func arrayLength(e *Evaluator, args []Value) Value {
	if args[0].kind != Array {
		return Value{}
	}
	if e.work(walkWork * len(args[0].text)); e.err != nil {
		return Value{}
	}
	n := 0
	for w := jsontext.WalkAt(args[0].text, 0); w.Next(); {
		n++
	}
	return NumberValue(float64(n))
}

// iif is IIF(condition, a, b): b unless the condition is true.
func iif(_ *Evaluator, args []Value) Value {
	if args[0].isTrue() {
		return args[1]
	}
	return args[2]
}
