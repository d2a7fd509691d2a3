package commands

import "strings"

// maxPattern is the most bytes of a pattern that matching may take time for: what [MatchGlob] takes is
// the product of its length and that of each text.
const maxPattern = 1 << 10

// checkPattern refuses a pattern that takes too long to match. Without * and classes a pattern of any
// length is compared only once, up to the first difference.
func checkPattern(pattern string) error {
	if len(pattern) > maxPattern && strings.ContainsAny(pattern, "*[") {
		return tooLong("pattern", len(pattern), maxPattern)
	}
	return nil
}

// MatchGlob tells whether the whole of s matches a pattern of Redis: * any bytes, ? one byte, [ab]
// [a-z] [^a] one of a class, \ takes the next byte as it is. It gives what Redis 7.0's stringmatchlen
// gives for every input, its oddities included:
//   - an empty s matches the empty pattern only (KEYS and SCAN treat the pattern * themselves);
//   - a class that is not closed ends with the pattern;
//   - ranges compare signed bytes, and may be written either way round.
//
// Unlike a plain recursion it never takes more than len(pattern)*len(s) steps: when something does
// not match, only the latest * can help by taking one more byte.
func MatchGlob(pattern, s string) bool {
	if s == "" {
		return pattern == ""
	}
	p, i := 0, 0
	star, starred := -1, 0 // position after the latest *, and up to where that * has taken s
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, starred = p, i
			continue
		}
		if p < len(pattern) {
			if next, ok := matchByte(pattern, p, s[i]); ok {
				p, i = next, i+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		starred++
		p, i = star, starred
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// matchByte matches c against the element of the pattern at p, which is not *, and returns the
// position of the next element.
func matchByte(pattern string, p int, c byte) (next int, ok bool) {
	switch {
	case pattern[p] == '?':
		return p + 1, true
	case pattern[p] == '[':
		return matchClass(pattern, p+1, c)
	case pattern[p] == '\\' && p+1 < len(pattern):
		p++
	}
	return p + 1, pattern[p] == c
}

// matchClass matches c against the class whose inside begins at p.
func matchClass(pattern string, p int, c byte) (next int, ok bool) {
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	found := false
	for ; p < len(pattern); p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			found = found || pattern[p] == c
		case pattern[p] == ']':
			return p + 1, found != negated
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := int8(pattern[p]), int8(pattern[p+2])
			if low > high {
				low, high = high, low
			}
			p += 2
			found = found || low <= int8(c) && int8(c) <= high
		default:
			found = found || pattern[p] == c
		}
	}
	return p, found != negated
}
