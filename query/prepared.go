package query

import (
	"strings"

	"mayfly/json/jsontext"
)

// prepared is a call with a constant that is read once, and not for each document.
type prepared struct {
	match  func(s, t string) bool // of strings in any case; nil of ARRAY_CONTAINS
	ready  bool
	folded string          // the second string
	set    map[string]bool // the elements by setKey
}

// matches are the functions of two strings.
var matches = map[string]func(s, t string) bool{
	"STARTSWITH": strings.HasPrefix, "ENDSWITH": strings.HasSuffix, "CONTAINS": strings.Contains,
	"STRINGEQUALS": func(s, t string) bool { return s == t },
}

// preparedOf returns how to call a function with a constant second string in any case, or in a constant
// array. It returns nil for other calls.
func preparedOf(f *function, args []node) *prepared {
	constant := func(i int) Value {
		if i < len(args) {
			if l, ok := args[i].(*literal); ok {
				return l.value
			}
		}
		return Value{}
	}
	switch match := matches[f.name]; {
	case match != nil && constant(1).kind == String && constant(2).isTrue():
		return &prepared{match: match}
	case f.name == "ARRAY_CONTAINS" && constant(0).kind == Array && (len(args) == 2 || constant(2).kind == Bool && !constant(2).isTrue()):
		return &prepared{}
	}
	return nil
}

// run calls the function.
func (p *prepared) run(e *Evaluator, args []node) Value {
	if p.match == nil {
		return p.contains(e, args[0].(*literal).value, args[1].eval(e))
	}
	v := args[0].eval(e)
	if v.kind != String {
		return Value{}
	}
	if !p.ready {
		p.folded = e.foldCase(args[1].(*literal).value.text)
		p.ready = e.err == nil
	}
	s := e.foldCase(v.text)
	if e.work(2 * len(s)); e.err != nil {
		return Value{}
	}
	return BoolValue(p.match(s, p.folded))
}

// contains is ARRAY_CONTAINS of a constant array.
func (p *prepared) contains(e *Evaluator, array, v Value) Value {
	if v.kind == Undefined || e.err != nil {
		return Value{}
	}
	if !p.ready {
		if e.work(canonicalWork * len(array.text)); e.err != nil {
			return Value{}
		}
		p.set, p.ready = map[string]bool{}, true
		for w := jsontext.WalkAt(array.text, 0); w.Next(); {
			p.set[setKey(ValueOf(w.Value()))] = true
		}
	}
	e.work(len(v.text))
	if v.kind >= Array {
		e.work(canonicalWork * len(v.text))
	}
	if e.err != nil {
		return Value{}
	}
	return BoolValue(p.set[setKey(v)])
}
