package redisfmt

import "strings"

// A Pattern is a compiled pattern of Redis. Its results are those of stringmatchlen of Redis 7.0
// (src/util.c) for every input. Safe for concurrent use.
//
// In a pattern * is any bytes, ? is one byte, and [ab], [a-z] and [^a] are one byte of a class. A
// backslash takes the next byte literally. The oddities of Redis are kept:
//   - an empty text matches the empty pattern only; KEYS and SCAN treat the pattern * themselves;
//   - the end of the pattern closes an open class;
//   - a range compares signed bytes, and its ends may be swapped.
//
// To match a text of n bytes with m elements between stars takes some n*(1 + m/64) steps at most. Plain
// backtracking takes n*m steps. Recursion, as in Redis, is exponential in the number of stars.
type Pattern struct {
	text  string
	least int       // bytes of the shortest text that matches
	parts []segment // between the stars; without a star there is one
}

// A segment is a part of a pattern without stars. Each of its elements takes one byte.
type segment struct {
	literal string  // the elements, if all are bytes
	elems   []int32 // otherwise: a byte, anyByte, or classFrom and the index of a class
	classes []byteSet
}

const (
	anyByte   = 256
	classFrom = 257
)

// byteSet is a set of bytes.
type byteSet [4]uint64

func (b *byteSet) add(c byte)      { b[c>>6] |= 1 << (c & 63) }
func (b *byteSet) has(c byte) bool { return b[c>>6]&(1<<(c&63)) != 0 }

// Compile compiles a pattern in time proportional to its length. Every text is a legal pattern. The result
// keeps the text.
func Compile(pattern string) *Pattern {
	p := &Pattern{text: pattern}
	if !strings.ContainsAny(pattern, `*?[\`) {
		p.parts, p.least = []segment{{literal: pattern}}, len(pattern)
		return p
	}
	p.parts = make([]segment, 0, 2+strings.Count(pattern, "*"))
	for from := 0; ; {
		part, next := compileSegment(pattern, from)
		last := next == len(pattern)
		if part.length() > 0 || from == 0 || last { // several stars in a row are one
			p.least += part.length()
			p.parts = append(p.parts, part)
		}
		if last {
			return p
		}
		from = next + 1
	}
}

// compileSegment compiles the segment that begins at from. next is the position of the star after it, or the
// end of the pattern.
func compileSegment(pattern string, from int) (s segment, next int) {
	plain := true // all elements are the bytes of the pattern from there on
	i := from
	for i < len(pattern) && pattern[i] != '*' {
		c := pattern[i]
		special := c == '?' || c == '[' || c == '\\' && i+1 < len(pattern)
		if special && plain {
			plain = false
			s.elems = make([]int32, 0, 2*(i-from)+8)
			for ; from < i; from++ {
				s.elems = append(s.elems, int32(pattern[from]))
			}
		}
		switch {
		case plain:
		case c == '?':
			s.elems = append(s.elems, anyByte)
		case c == '[':
			var class byteSet
			class, i = compileClass(pattern, i+1)
			s.elems = append(s.elems, int32(classFrom+len(s.classes)))
			s.classes = append(s.classes, class)
			continue
		case special:
			i++
			s.elems = append(s.elems, int32(pattern[i]))
		default:
			s.elems = append(s.elems, int32(c))
		}
		i++
	}
	if plain {
		s.literal = pattern[from:i]
	}
	return s, i
}

// compileClass reads the class whose inside begins at from. next is the position after it.
func compileClass(pattern string, from int) (class byteSet, next int) {
	p := from
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	for closed := false; p < len(pattern) && !closed; p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			class.add(pattern[p])
		case pattern[p] == ']':
			closed = true
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := int8(pattern[p]), int8(pattern[p+2])
			if low > high {
				low, high = high, low
			}
			for c := int(low); c <= int(high); c++ {
				class.add(byte(c))
			}
			p += 2
		default:
			class.add(pattern[p])
		}
	}
	if negated {
		for i := range class {
			class[i] = ^class[i]
		}
	}
	return class, p
}

// Text returns the pattern as it was compiled.
func (p *Pattern) Text() string { return p.text }

// Match reports whether all of s matches.
func (p *Pattern) Match(s string) bool {
	if s == "" || p.text == "" {
		return s == p.text
	}
	first := &p.parts[0]
	if len(s) < p.least || !first.matches(s) {
		return false
	}
	s = s[first.length():]
	if len(p.parts) == 1 {
		return s == ""
	}
	last := &p.parts[len(p.parts)-1]
	end := len(s) - last.length()
	if !last.matches(s[end:]) {
		return false
	}
	s = s[:end]
	// The leftmost place of each segment leaves the most for those after it.
	for i := 1; i < len(p.parts)-1; i++ {
		part := &p.parts[i]
		at := part.index(s)
		if at < 0 {
			return false
		}
		s = s[at+part.length():]
	}
	return true
}

func (g *segment) length() int {
	if g.elems == nil {
		return len(g.literal)
	}
	return len(g.elems)
}

// matches reports whether s, which is long enough, begins with the segment.
func (g *segment) matches(s string) bool {
	if g.elems == nil {
		return s[:len(g.literal)] == g.literal
	}
	for i, elem := range g.elems {
		if !g.takes(elem, s[i]) {
			return false
		}
	}
	return true
}

// takes reports whether an element takes a byte.
func (g *segment) takes(elem int32, c byte) bool {
	switch {
	case elem < anyByte:
		return byte(elem) == c
	case elem == anyByte:
		return true
	}
	return g.classes[elem-classFrom].has(c)
}

// index returns the leftmost place of the segment in s; -1 if there is none.
func (g *segment) index(s string) int {
	if g.elems == nil {
		return strings.Index(s, g.literal)
	}
	// Nearly every place fails at once. With a text that begins to match everywhere, that takes too long.
	const stepsPerByte = 8
	steps := stepsPerByte * (len(s) + len(g.elems))
	for at := 0; at+len(g.elems) <= len(s); at++ {
		i := 0
		for i < len(g.elems) && g.takes(g.elems[i], s[at+i]) {
			i++
		}
		if i == len(g.elems) {
			return at
		}
		if steps -= i + 1; steps < 0 {
			if rest := g.indexInParallel(s[at+1:]); rest >= 0 {
				return at + 1 + rest
			}
			return -1
		}
	}
	return -1
}

// indexInParallel is index by the algorithm Shift-And (Baeza-Yates and Gonnet 1992). Bit i of the state says
// that the elements up to i match the latest bytes. A step moves 64 of them.
func (g *segment) indexInParallel(s string) int {
	words := (len(g.elems) + 63) / 64
	takes := make([]uint64, 256*words) // by byte: the set of elements that take it
	for i, elem := range g.elems {
		word, bit := i/64, uint64(1)<<(i%64)
		if elem < anyByte {
			takes[int(elem)*words+word] |= bit
			continue
		}
		for c := range 256 {
			if g.takes(elem, byte(c)) {
				takes[c*words+word] |= bit
			}
		}
	}
	state := make([]uint64, words)
	last, lastBit := words-1, uint64(1)<<((len(g.elems)-1)%64)
	for i := range len(s) {
		row := takes[int(s[i])*words:][:words]
		carry := uint64(1) // a match may begin at every byte
		for w := range state {
			next := state[w] >> 63
			state[w] = (state[w]<<1 | carry) & row[w]
			carry = next
		}
		if state[last]&lastBit != 0 {
			return i + 1 - len(g.elems)
		}
	}
	return -1
}
