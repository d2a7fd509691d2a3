package jsonpath

import "strings"

const (
	// MaxPath is the size in bytes of the longest legal path.
	MaxPath = 4 << 10
	// MaxSteps is the number of steps of the longest legal path, those in its filters included.
	MaxSteps = 128
)

// Path is a compiled path. It is immutable.
type Path struct {
	legacy bool
	large  bool // its patterns take much memory
	steps  []step
}

// step selects values among the members or elements of a value.
type step struct {
	kind    stepKind
	deep    bool     // of the value and of all values below it
	names   []string // byName
	indices []int    // byIndex
	slice   slice
	filter  filter
}

type stepKind uint8

const (
	byName stepKind = iota
	byIndex
	bySlice
	byFilter
	all
)

// slice is from:to:by. Negative positions count from the end.
type slice struct {
	from, to, by int
	open         bool // there is no end
}

// filter reports whether a value is selected. The nodes of a filter are conditions joined by && and ||, in
// disjunctive order: || binds weaker.
type filter struct {
	any []conjunction
}

type conjunction []condition

// condition is a comparison, a term that must exist, or a filter in parentheses.
type condition struct {
	left, right term
	op          operator
	nested      *filter // else the terms
}

type operator uint8

const (
	exists operator = iota // only the left term
	equal
	notEqual
	less
	lessOrEqual
	greater
	greaterOrEqual
	matches
)

// term is a literal, or a path from the value or from the root of the document.
type term struct {
	kind  termKind
	value value // literal
	steps []step
	regex pattern // of a literal on the right of =~
	slot  int     // of fromRoot: where the evaluation keeps the value, which is the same for all values
}

type termKind uint8

const (
	literal termKind = iota
	fromCurrent
	fromRoot
)

// Legacy reports whether the path is none of JSONPath: commands answer its first match only.
func (p *Path) Legacy() bool { return p.legacy }

// Root reports whether the path is the whole document.
func (p *Path) Root() bool { return len(p.steps) == 0 }

// Static reports whether the path has at most one match in any document.
func (p *Path) Static() bool { return static(p.steps) }

// Step is a step of a path that has at most one match: a member, or an element.
type Step struct {
	Name    string
	Index   int // negative: from the end
	Element bool
}

// Steps returns the steps of a path that is static.
func (p *Path) Steps() []Step {
	steps := make([]Step, len(p.steps))
	for i := range p.steps {
		if s := &p.steps[i]; s.kind == byName {
			steps[i].Name = s.names[0]
		} else {
			steps[i] = Step{Index: s.indices[0], Element: true}
		}
	}
	return steps
}

func static(steps []step) bool {
	for i := range steps {
		s := &steps[i]
		if s.deep || s.kind != byName && s.kind != byIndex || len(s.names)+len(s.indices) != 1 {
			return false
		}
	}
	return true
}

// isJSONPath reports whether text is of the dialect JSONPath.
func isJSONPath(text string) bool {
	return text == "$" || strings.HasPrefix(text, "$.") || strings.HasPrefix(text, "$[")
}
