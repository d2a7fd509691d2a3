package jsondoc

import (
	"strings"

	"github.com/tidwall/gjson"
)

// walker iterates over the members of an object or the elements of an array, in valid JSON. It needs
// one pass and no memory. Callers copy the text between two of its positions unchanged.
type walker struct {
	text  string
	array bool
	pos   int // the position after the opening bracket or the last value

	// The positions of the current member; its value ends at pos. An element has no name: start and
	// nameEnd equal valueFrom. At the end start is the position of the closing bracket.
	start, nameEnd, valueFrom int
}

// walk iterates over the root members of an object.
func walk(object string) walker { return walkAt(object, strings.IndexByte(object, '{')) }

// walkAt iterates over the object or array at position i.
func walkAt(text string, i int) walker {
	return walker{text: text, array: text[i] == '[', pos: i + 1}
}

// next moves to the next member. It returns false at the end.
func (w *walker) next() bool {
	if !w.step() {
		return false
	}
	w.pos = valueEnd(w.text, w.valueFrom)
	return true
}

// step is next, but does not read the value: the caller sets pos to its end. So a caller that walks
// through the value reads it only once.
func (w *walker) step() bool {
	w.start = skip(w.text, w.pos, ',')
	if c := w.text[w.start]; c == '}' || c == ']' {
		return false
	}
	w.nameEnd, w.valueFrom = w.start, w.start
	if !w.array {
		w.nameEnd = stringEnd(w.text, w.start)
		w.valueFrom = skip(w.text, w.nameEnd, ':')
	}
	return true
}

// name returns the member's name without quotes and escapes.
func (w *walker) name() string {
	raw := w.text[w.start:w.nameEnd]
	if strings.IndexByte(raw, '\\') >= 0 {
		return gjson.Parse(raw).Str
	}
	return raw[1 : len(raw)-1]
}

// value returns the text of the member's value.
func (w *walker) value() string { return w.text[w.valueFrom:w.pos] }

// space is the white space of JSON.
const space = " \t\r\n"

// skip returns the first position from i on whose byte is neither white space nor the given punctuation.
// The text is valid JSON.
func skip(text string, i int, punctuation byte) int {
	for text[i] <= ' ' || text[i] == punctuation {
		i++
	}
	return i
}

// stringEnd returns the position after the string at i, or len(text) if the string is not closed.
func stringEnd(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// valueEnd returns the position after the value at i, in valid JSON.
func valueEnd(text string, i int) int {
	depth := 0
	for {
		switch text[i] {
		case '"':
			i = stringEnd(text, i)
		case '{', '[':
			depth++
			i++
		case '}', ']':
			depth--
			i++
		case ',', ':', ' ', '\t', '\r', '\n':
			i++
			continue
		default: // a number, true, false or null
			for c := text[i]; c > ' ' && c != ',' && c != ']' && c != '}'; c = text[i] {
				i++
			}
		}
		if depth == 0 {
			return i
		}
	}
}
