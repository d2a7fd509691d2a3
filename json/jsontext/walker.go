package jsontext

import (
	"math/bits"
	"slices"
	"strings"
)

// Walker iterates over the members of an object or the elements of an array, in valid JSON. It needs
// one pass and no memory. Callers copy the text between two of its positions unchanged.
type Walker struct {
	Text  string
	Array bool
	Pos   int // the position after the opening bracket or the last value

	// The positions of the current member; its value ends at Pos. An element has no name: Start and
	// NameEnd equal ValueFrom. At the end Start is the position of the closing bracket.
	Start, NameEnd, ValueFrom int
}

// Walk iterates over the root members of an object.
func Walk(object string) Walker { return WalkAt(object, strings.IndexByte(object, '{')) }

// WalkAt iterates over the object or array at position i.
func WalkAt(text string, i int) Walker {
	return Walker{Text: text, Array: text[i] == '[', Pos: i + 1}
}

// Next moves to the next member. It returns false at the end.
func (w *Walker) Next() bool {
	if !w.Step() {
		return false
	}
	w.Pos = ValueEnd(w.Text, w.ValueFrom)
	return true
}

// Step is Next, but does not read the value: the caller sets Pos to its end. So a caller that walks
// through the value reads it only once.
func (w *Walker) Step() bool {
	w.Start = Skip(w.Text, w.Pos, ',')
	if c := w.Text[w.Start]; c == '}' || c == ']' {
		return false
	}
	w.NameEnd, w.ValueFrom = w.Start, w.Start
	if !w.Array {
		w.NameEnd = StringEnd(w.Text, w.Start)
		w.ValueFrom = Skip(w.Text, w.NameEnd, ':')
	}
	return true
}

// Name returns the member's name without quotes and escapes.
func (w *Walker) Name() string { return Unquote(w.Text[w.Start:w.NameEnd]) }

// Value returns the text of the member's value.
func (w *Walker) Value() string { return w.Text[w.ValueFrom:w.Pos] }

// Space is the white space of JSON.
const Space = " \t\r\n"

// Skip returns the first position from i on whose byte is neither white space nor the given punctuation.
func Skip(text string, i int, punctuation byte) int {
	for text[i] <= ' ' || text[i] == punctuation {
		i++
	}
	return i
}

// StringEnd returns the position after the string at i, or len(text) if the string is not closed.
func StringEnd(text string, i int) int {
	// Most strings are short: eight bytes at once beat a call of IndexByte.
	if i++; i+8 <= len(text) {
		if found := quoteOrBackslash(load(text[i : i+8])); found != 0 {
			if i += bits.TrailingZeros64(found) >> 3; text[i] == '"' {
				return i + 1
			}
			return escapedEnd(text, i)
		}
		i += 8
	}
	return longStringEnd(text, i)
}

// longStringEnd is StringEnd for the rest of a string, from i.
func longStringEnd(text string, i int) int {
	for far := min(i+shortString, len(text)-8); i <= far; i += 8 {
		if found := quoteOrBackslash(load(text[i : i+8])); found != 0 {
			if i += bits.TrailingZeros64(found) >> 3; text[i] == '"' {
				return i + 1
			}
			return escapedEnd(text, i)
		}
	}
	end := strings.IndexByte(text[i:], '"') + i
	if end >= i && (end == i || text[end-1] != '\\') {
		return end + 1
	}
	return escapedEnd(text, i)
}

// quoteOrBackslash returns a word whose lowest bit that is set is in the first byte that is a quote or a
// backslash; 0 if none is.
func quoteOrBackslash(word uint64) uint64 {
	quote, backslash := word^('"'*ones), word^('\\'*ones)
	return ((quote-ones)&^quote | (backslash-ones)&^backslash) & (0x80 * ones)
}

const (
	ones        = 0x0101010101010101
	shortString = 32
)

// NameSet finds names that an object may have twice. The zero value is for one object; up to 32 names take no
// memory of its own.
type NameSet struct {
	few   [32]uint32 // hashes
	n     int
	table []uint32 // of more: open addressing, 0 is free
}

// Meet reports whether a member may have the name of one before. It compares hashes, and does not read
// escapes. An element has no name.
func (s *NameSet) Meet(w *Walker) bool {
	if w.Array {
		return false
	}
	name := w.Text[w.Start+1 : w.NameEnd-1]
	return s.add(NameHash(name)) || strings.IndexByte(name, '\\') >= 0
}

// add adds a hash and reports whether it was there before.
func (s *NameSet) add(hash uint32) bool {
	s.n++
	if s.n <= len(s.few) {
		s.few[s.n-1] = hash
		return slices.Contains(s.few[:s.n-1], hash)
	}
	if 2*s.n > len(s.table) {
		old := s.table
		s.table = make([]uint32, max(4*len(old), 4*len(s.few)))
		for _, h := range old {
			s.put(h)
		}
		for _, h := range s.few {
			s.put(h)
		}
	}
	return s.put(hash)
}

// put is add to the table, which has room.
func (s *NameSet) put(hash uint32) bool {
	mask := uint32(len(s.table) - 1)
	for i := hash >> 7 & mask; hash != 0; i = (i + 1) & mask {
		switch s.table[i] {
		case hash:
			return true
		case 0:
			s.table[i] = hash
			return false
		}
	}
	return true // 0 stands for free
}

// NameHash hashes the length of a name and up to eight bytes at each end.
func NameHash(name string) uint32 {
	var head, tail uint64
	if n := len(name); n >= 8 {
		head, tail = load(name), load(name[n-8:])
	} else {
		for _, c := range []byte(name) {
			head = head<<8 | uint64(c)
		}
	}
	h := (head ^ bits.RotateLeft64(tail, 29) ^ uint64(len(name))) * 0x9e3779b97f4a7c15
	return uint32(h >> 32)
}

// load returns the first eight bytes, the first one lowest.
func load(s string) uint64 {
	_ = s[7]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24 | uint64(s[4])<<32 | uint64(s[5])<<40 | uint64(s[6])<<48 | uint64(s[7])<<56
}

// escapedEnd returns the position after the string whose content goes on at i: a quote may be escaped.
func escapedEnd(text string, i int) int {
	for ; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// class tells the bytes at which ValueEnd stops.
var class = [256]uint8{
	'{': opens, '[': opens, '}': closes, ']': closes, '"': quotes,
	',': ends, ' ': ends, '\t': ends, '\r': ends, '\n': ends,
}

const (
	opens = 1 + iota
	closes
	quotes
	ends // a number, true, false or null; so does closes
)

// ValueEnd returns the position after the value at i.
func ValueEnd(text string, i int) int {
	switch class[text[i]] {
	case quotes:
		return StringEnd(text, i)
	case opens:
		return containerEnd(text, i)
	}
	for i < len(text) && class[text[i]] == 0 { // the root may be a number
		i++
	}
	return i
}

// containerEnd returns the position after the object or array at i.
func containerEnd(text string, i int) int {
	for depth := 0; ; i++ {
		for !structural[text[i]] {
			i++
		}
		switch text[i] {
		case '"':
			i = StringEnd(text, i) - 1
		case '{', '[':
			depth++
		default:
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
}

// structural are the bytes at which containerEnd stops.
var structural = [256]bool{'"': true, '{': true, '[': true, '}': true, ']': true}
