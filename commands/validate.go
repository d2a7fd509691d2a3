package commands

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// validJSON tells whether text is one JSON value (RFC 8259) in valid UTF-8, not deeper than maxNesting. It
// says no more than that: what is wrong is found out where nobody minds how long it takes (checkJSON).
func validJSON(text string) bool {
	_, ok := scanJSON(text)
	return ok
}

// rootFacts is what the pass that checks a text finds out on its way about the root.
type rootFacts struct {
	object  bool // it is an object
	escaped bool // there are escapes in names of root members, which may so spell any name
	ttls    int  // root members whose name stands there as ttl
	ttlAt   int  // where what follows the colon of the last of them begins
}

// scanJSON is validJSON that also tells what it has come across.
//
// It is one pass without recursion, and reads strings, which are most of a document, by eight bytes.
// What is called past… reads on and returns the position behind what it has read, or bad.
func scanJSON(text string) (f rootFacts, ok bool) {
	t := unsafe.Slice(unsafe.StringData(text), len(text)) // only read
	var open openBrackets
	i := pastSpace(t, 0)
	f.object = i < len(t) && t[i] == '{'
	for {
		// A value is due.
		i = pastSpace(t, i)
		if i >= len(t) {
			return f, false
		}
		switch c := t[i]; c {
		case '"':
			i = pastString(t, i+1)
		case '{':
			if !open.push(true) {
				return f, false
			}
			if i = pastSpace(t, i+1); i < len(t) && t[i] == '}' {
				break // it ends below, like one that has members
			}
			if i = open.pastName(t, i, &f); i == bad {
				return f, false
			}
			continue
		case '[':
			if !open.push(false) {
				return f, false
			}
			if i = pastSpace(t, i+1); i < len(t) && t[i] == ']' {
				break
			}
			continue
		case 't':
			i = pastLiteral(t, i, "true")
		case 'f':
			i = pastLiteral(t, i, "false")
		case 'n':
			i = pastLiteral(t, i, "null")
		default:
			i = pastNumber(t, i)
		}
		if i == bad {
			return f, false
		}
		// A value has ended. What follows ends others, until the next is due.
		for due := false; !due; {
			i = pastSpace(t, i)
			if open.depth == 0 {
				return f, i == len(t)
			}
			if i >= len(t) {
				return f, false
			}
			object := open.object()
			switch c := t[i]; {
			case c == ',':
				if i++; object {
					i = open.pastName(t, pastSpace(t, i), &f)
				}
				if i == bad {
					return f, false
				}
				due = true
			case c == '}' && object, c == ']' && !object:
				open.depth--
				i++
			default:
				return f, false
			}
		}
	}
}

// bad is the position when what has been read is no JSON.
const bad = -1

// openBrackets are the objects and arrays that are open, the outermost first.
type openBrackets struct {
	depth   int
	objects [maxNesting / 64]uint64 // a bit each: it is an object
}

// push adds one; false if that is too deep.
func (o *openBrackets) push(object bool) bool {
	if o.depth == maxNesting {
		return false
	}
	word, bit := &o.objects[o.depth/64], uint64(1)<<(o.depth%64)
	*word &^= bit
	if object {
		*word |= bit
	}
	o.depth++
	return true
}

// object tells whether the innermost is an object.
func (o *openBrackets) object() bool {
	at := uint(o.depth - 1)
	return o.objects[at/64%uint(len(o.objects))]>>(at%64)&1 == 1
}

func pastSpace(t []byte, i int) int {
	for i < len(t) && (t[i] == ' ' || t[i] == '\n' || t[i] == '\t' || t[i] == '\r') {
		i++
	}
	return i
}

// pastName reads a name and the colon. Of one at the root it notes what it is.
func (o *openBrackets) pastName(t []byte, i int, f *rootFacts) int {
	if i >= len(t) || t[i] != '"' {
		return bad
	}
	from := i + 1
	if i = pastString(t, from); i == bad {
		return bad
	}
	name := t[from : i-1]
	if i = pastSpace(t, i); i >= len(t) || t[i] != ':' {
		return bad
	}
	i++
	switch {
	case o.depth > 1:
	case string(name) == ttlMember:
		f.ttls++
		f.ttlAt = i
	case bytes.IndexByte(name, '\\') >= 0:
		f.escaped = true
	}
	return i
}

func pastLiteral(t []byte, i int, word string) int {
	if len(t)-i < len(word) || string(t[i:i+len(word)]) != word {
		return bad
	}
	return i + len(word)
}

func pastNumber(t []byte, i int) int {
	if t[i] == '-' {
		i++
	}
	whole := i
	if i = pastDigits(t, i); i == bad || t[whole] == '0' && i > whole+1 {
		return bad
	}
	if i < len(t) && t[i] == '.' {
		if i = pastDigits(t, i+1); i == bad {
			return bad
		}
	}
	if i < len(t) && t[i]|0x20 == 'e' {
		if i++; i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		i = pastDigits(t, i)
	}
	return i
}

// pastDigits reads one digit or more.
func pastDigits(t []byte, i int) int {
	from := i
	for i < len(t) && t[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return bad
	}
	return i
}

// eachByte times a byte is a word of eight such bytes; highBits has the highest bit of each.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// pastString reads a string from behind the quotation mark that begins it. What is not ASCII can only be in
// strings, and none begins or ends within a character, so each is looked at by itself.
func pastString(t []byte, i int) int {
	from := i
	var seen uint64 // all bytes, or'ed together
	for {
		// Eight bytes at a time: the subtractions borrow into the high bit of a byte that is below ' ' or a
		// quotation mark, which has changed places with ' ', or that is a backslash, unless the bit was set
		// before. The lowest that is found is right; above it others may be found by the borrowing.
		for i+8 <= len(t) {
			w := binary.LittleEndian.Uint64(t[i : i+8 : i+8])
			quote := (w ^ (' '^'"')*eachByte) - (' '+1)*eachByte
			backslash := (w ^ '\\'*eachByte) - eachByte
			special := (quote | backslash) &^ w & highBits
			if special != 0 {
				before := bits.TrailingZeros64(special) &^ 7
				seen |= w & (1<<before - 1)
				i += before / 8
				break
			}
			seen |= w
			i += 8
		}
		if i >= len(t) {
			return bad
		}
		switch c := t[i]; {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(t[from:i]) {
				return bad
			}
			return i + 1
		case c == '\\':
			if i = pastEscape(t, i+1); i == bad {
				return bad
			}
		case c < ' ':
			return bad
		default: // near the end of the text
			seen |= uint64(c)
			i++
		}
	}
}

// pastEscape reads what follows a backslash.
func pastEscape(t []byte, i int) int {
	if i >= len(t) {
		return bad
	}
	switch t[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if len(t)-i < len("u0000") {
			return bad
		}
		for _, c := range t[i+1 : i+5] {
			if c-'0' > 9 && c|0x20-'a' > 'f'-'a' {
				return bad
			}
		}
		return i + 5
	}
	return bad
}
