package redisfmt

// Match reports whether all of s matches a pattern of Redis. The result is that of stringmatchlen of
// Redis 7.0 (src/util.c) for every input.
//
// In a pattern * is any bytes, ? is one byte, and [ab], [a-z] and [^a] are one byte of a class. A
// backslash takes the next byte literally. The oddities of Redis are kept:
//   - an empty s matches the empty pattern only; KEYS and SCAN treat the pattern * themselves;
//   - the end of the pattern closes an open class;
//   - a range compares signed bytes, and its ends may be swapped.
//
// Match takes at most len(pattern)*len(s) steps, unlike a plain recursion. After a mismatch only the
// latest * can help, by taking one more byte.
func Match(pattern, s string) bool {
	if s == "" {
		return pattern == ""
	}
	p, i := 0, 0
	star, starred := -1, 0 // the position after the latest *, and the end of what it has taken of s
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

// matchByte reports whether c matches the element of the pattern at p, which is not *. next is the
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

// matchClass reports whether c matches the class whose inside begins at p. next is as for matchByte.
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
