package jsonpath

import (
	"regexp"
	"regexp/syntax"
)

const (
	// maxPattern is the size in bytes of the longest legal pattern of =~.
	maxPattern = 1 << 10
	// maxPatternSteps is the size of the largest legal pattern, its repetitions written out: x{100} has 100
	// steps.
	maxPatternSteps = 1 << 10
)

// pattern is a compiled pattern of =~.
type pattern struct {
	regex *regexp.Regexp // nil: it matches nothing
	steps int            // what a match costs at most for each byte of the text
	large bool           // it has more than maxPatternSteps and so is not compiled
}

// compilePattern compiles a pattern. One that is no expression matches nothing, as in RedisJSON. A large one
// is not compiled, since its time and memory would grow beyond those of its text.
func compilePattern(text string) pattern {
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return pattern{}
	}
	steps := patternSteps(tree)
	if steps > maxPatternSteps {
		return pattern{large: true}
	}
	regex, err := regexp.Compile(text)
	if err != nil {
		return pattern{}
	}
	return pattern{regex: regex, steps: steps}
}

// patternSteps returns about how many instructions an expression compiles to. It stops counting when there
// are too many.
func patternSteps(tree *syntax.Regexp) int {
	n := 0
	for _, sub := range tree.Sub {
		if n += patternSteps(sub); n > maxPatternSteps {
			break
		}
	}
	switch tree.Op {
	case syntax.OpConcat:
	case syntax.OpLiteral:
		n = len(tree.Rune)
	case syntax.OpCapture:
		n += 2
	case syntax.OpAlternate:
		n += len(tree.Sub)
	case syntax.OpRepeat:
		n = n*max(tree.Min, tree.Max, 1) + max(tree.Max-tree.Min, 1)
	default:
		n++
	}
	return min(n, maxPatternSteps+1)
}
