package commands

import (
	"strings"

	"github.com/tidwall/gjson"
)

// walker goes through the members of an object or the elements of an array, in valid JSON. It takes
// no memory, and one pass over the text: what is between two of its positions can be kept as it stands.
type walker struct {
	text  string
	array bool
	pos   int // where to go on: after the bracket or the value before

	// Of the member the walker stands on; its value ends at pos. Elements have no name: the first two
	// are the same as valueFrom. At the end start is the closing bracket.
	start, nameEnd, valueFrom int
}

// walk goes through the root members of an object.
func walk(object string) walker { return walkAt(object, strings.IndexByte(object, '{')) }

// walkAt goes through the object or array that begins at i.
func walkAt(text string, i int) walker {
	return walker{text: text, array: text[i] == '[', pos: i + 1}
}

// next steps to the next member; false at the end.
func (w *walker) next() bool {
	if !w.enter() {
		return false
	}
	w.pos = valueEnd(w.text, w.valueFrom)
	return true
}

// enter steps to the next member, but not over its value: whoever calls it puts the value's end into
// pos. So what looks into the value does not have to go through it twice.
func (w *walker) enter() bool {
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

// name is the member's name without quotes and escapes.
func (w *walker) name() string {
	raw := w.text[w.start:w.nameEnd]
	if strings.IndexByte(raw, '\\') >= 0 {
		return gjson.Parse(raw).Str
	}
	return raw[1 : len(raw)-1]
}

// value is the member's value as it stands there.
func (w *walker) value() string { return w.text[w.valueFrom:w.pos] }

// jsonSpace is what JSON takes for white space.
const jsonSpace = " \t\r\n"

// skip gives the position of the first byte at or after i that is neither white space nor the given
// punctuation, in valid JSON.
func skip(text string, i int, punctuation byte) int {
	for text[i] <= ' ' || text[i] == punctuation {
		i++
	}
	return i
}

// stringEnd gives the position after the string that begins at i, the end of text if it is not
// closed.
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

// valueEnd gives the position after the value that begins at i in valid JSON.
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
