package jsondoc

import (
	"bytes"
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
	"unsafe"
)

// check checks that text is one JSON value (RFC 8259) in valid UTF-8, no deeper than MaxNesting.
func check(text string) error {
	if _, ok := scan(text); ok {
		return nil
	}
	return explain(text)
}

// rootFacts is what a scan learns about the root of a text.
type rootFacts struct {
	object  bool // the root is an object
	escaped bool // a name of a root member has escapes, and so may spell any name
	meta    bool // a root member is named _ts or _etag without escapes
	ttls    int  // the number of root members named ttl without escapes
	ttlAt   int  // the position after the colon of the last of them
}

// scan reports whether text is one JSON value in valid UTF-8, no deeper than MaxNesting. It does not
// say what is wrong: explain does, and may take longer.
//
// The scan is one pass without recursion. It reads strings, which are most of a document, eight bytes
// at a time. The functions named scan… below return the position after what they read, or invalid.
func scan(text string) (f rootFacts, ok bool) {
	t := unsafe.Slice(unsafe.StringData(text), len(text)) // only read
	var open bracketStack
	i := scanSpace(t, 0)
	f.object = i < len(t) && t[i] == '{'
	for {
		// Here a value begins.
		i = scanSpace(t, i)
		if i >= len(t) {
			return f, false
		}
		switch c := t[i]; c {
		case '"':
			i = scanString(t, i+1)
		case '{':
			if !open.push(true) {
				return f, false
			}
			if i = scanSpace(t, i+1); i < len(t) && t[i] == '}' {
				break // the object ends below
			}
			if i = open.scanName(t, i, &f); i == invalid {
				return f, false
			}
			continue
		case '[':
			if !open.push(false) {
				return f, false
			}
			if i = scanSpace(t, i+1); i < len(t) && t[i] == ']' {
				break
			}
			continue
		case 't':
			i = scanLiteral(t, i, "true")
		case 'f':
			i = scanLiteral(t, i, "false")
		case 'n':
			i = scanLiteral(t, i, "null")
		default:
			i = scanNumber(t, i)
		}
		if i == invalid {
			return f, false
		}
		// Here a value has ended. Brackets end further values, until a comma announces the next.
		for due := false; !due; {
			i = scanSpace(t, i)
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
					i = open.scanName(t, scanSpace(t, i), &f)
				}
				if i == invalid {
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

// invalid is the position after a text that is not JSON.
const invalid = -1

// bracketStack holds the open objects and arrays, the outermost first.
type bracketStack struct {
	depth   int
	objects [MaxNesting / 64]uint64 // one bit a level: the level is an object
}

// push opens a level. It returns false if the level is too deep.
func (o *bracketStack) push(object bool) bool {
	if o.depth == MaxNesting {
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

// object reports whether the innermost level is an object.
func (o *bracketStack) object() bool {
	at := uint(o.depth - 1)
	return o.objects[at/64%uint(len(o.objects))]>>(at%64)&1 == 1
}

func scanSpace(t []byte, i int) int {
	for i < len(t) && (t[i] == ' ' || t[i] == '\n' || t[i] == '\t' || t[i] == '\r') {
		i++
	}
	return i
}

// scanName reads a name and its colon. It notes names of the root in f.
func (o *bracketStack) scanName(t []byte, i int, f *rootFacts) int {
	if i >= len(t) || t[i] != '"' {
		return invalid
	}
	from := i + 1
	if i = scanString(t, from); i == invalid {
		return invalid
	}
	name := t[from : i-1]
	if i = scanSpace(t, i); i >= len(t) || t[i] != ':' {
		return invalid
	}
	i++
	switch {
	case o.depth > 1:
	case string(name) == TTLMember:
		f.ttls++
		f.ttlAt = i
	case string(name) == TSMember, string(name) == ETagMember:
		f.meta = true
	case bytes.IndexByte(name, '\\') >= 0:
		f.escaped = true
	}
	return i
}

func scanLiteral(t []byte, i int, word string) int {
	if len(t)-i < len(word) || string(t[i:i+len(word)]) != word {
		return invalid
	}
	return i + len(word)
}

func scanNumber(t []byte, i int) int {
	if t[i] == '-' {
		i++
	}
	whole := i
	if i = scanDigits(t, i); i == invalid || t[whole] == '0' && i > whole+1 {
		return invalid
	}
	if i < len(t) && t[i] == '.' {
		if i = scanDigits(t, i+1); i == invalid {
			return invalid
		}
	}
	if i < len(t) && t[i]|0x20 == 'e' {
		if i++; i < len(t) && (t[i] == '+' || t[i] == '-') {
			i++
		}
		i = scanDigits(t, i)
	}
	return i
}

// scanDigits reads at least one digit.
func scanDigits(t []byte, i int) int {
	from := i
	for i < len(t) && t[i]-'0' <= 9 {
		i++
	}
	if i == from {
		return invalid
	}
	return i
}

// eachByte times a byte is a word of eight such bytes. highBits has the highest bit of each byte.
const (
	eachByte = 0x0101010101010101
	highBits = 0x80 * eachByte
)

// scanString reads a string; i is the position after its opening quotation mark. Only strings hold
// bytes beyond ASCII, and no character spans two strings, so each string is checked for UTF-8 alone.
func scanString(t []byte, i int) int {
	from := i
	var seen uint64 // the bitwise or of all bytes
	for {
		// Read eight bytes at a time. The first xor swaps the quotation mark with ' '. Each subtraction
		// then borrows into the high bit of a byte below ' ', of a quotation mark or of a backslash.
		// Bytes whose high bit was set before do not count. The lowest hit is exact. Hits above it may
		// stem from a borrow.
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
			return invalid
		}
		switch c := t[i]; {
		case c == '"':
			if seen&highBits != 0 && !utf8.Valid(t[from:i]) {
				return invalid
			}
			return i + 1
		case c == '\\':
			if i = scanEscape(t, i+1); i == invalid {
				return invalid
			}
		case c < ' ':
			return invalid
		default: // fewer than eight bytes are left
			seen |= uint64(c)
			i++
		}
	}
}

// scanEscape reads an escape; i is the position after its backslash.
func scanEscape(t []byte, i int) int {
	if i >= len(t) {
		return invalid
	}
	switch t[i] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return i + 1
	case 'u':
		if len(t)-i < len("u0000") {
			return invalid
		}
		for _, c := range t[i+1 : i+5] {
			if c-'0' > 9 && c|0x20-'a' > 'f'-'a' {
				return invalid
			}
		}
		return i + 5
	}
	return invalid
}
