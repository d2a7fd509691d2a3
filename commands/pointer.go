package commands

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mayfly/commands/redisfmt"
	"mayfly/expiry"
)

// pointer is a JSON Pointer (RFC 6901) that has passed [parsePointer]: "" is the whole document, "/a/0"
// the first element of the array that is its member a. It is read token by token while it is followed,
// so that a long one costs no memory.
type pointer string

func parsePointer(text string) (pointer, error) {
	if text != "" && text[0] != '/' || !utf8.ValidString(text) || !escapesRight(text) {
		return "", fmt.Errorf("invalid path %s: legal are JSON pointers, /member/0/..., with ~1 for / and ~0 for ~ in names", expiry.Quote(text))
	}
	return pointer(text), nil
}

// escapesRight tells whether every ~ stands before 0 or 1.
func escapesRight(text string) bool {
	for {
		i := strings.IndexByte(text, '~')
		if i < 0 {
			return true
		}
		if i+1 == len(text) || text[i+1] != '0' && text[i+1] != '1' {
			return false
		}
		text = text[i+2:]
	}
}

// cut takes the first token off a pointer that has one, and undoes its escapes.
func (p pointer) cut() (token string, rest pointer) {
	token = string(p[1:])
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], pointer(token[i:])
	}
	if strings.IndexByte(token, '~') >= 0 {
		token = unescapeToken.Replace(token)
	}
	return token, rest
}

// unescapeToken goes from left to right and never over its own output: ~01 is ~1.
var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// root is the name of the root member that a pointer leads to or through; false for the whole document.
func (p pointer) root() (name string, ok bool) {
	if p == "" {
		return "", false
	}
	name, _ = p.cut()
	return name, true
}

// below tells whether a pointer leads to something within what another one leads to.
func (p pointer) below(other pointer) bool {
	return len(p) > len(other) && p[:len(other)] == other && p[len(other)] == '/'
}

// place is where a pointer leads in a text: to the member of an object or to the element of an array,
// which may be there or not. Positions are bytes from 0.
type place struct {
	found           bool
	start, from, to int // if found: of the member with its name, and of its value
	before          int // if found: the end of the sibling before it; 0 if there is none

	array bool   // it is in an array
	name  string // in an object: the member's name
	index int    // in an array: which element; as many as there are elements is the one after the last

	last int // the end of the last sibling, or the position after the opening bracket
	n    int // how many siblings there are, itself included
}

// find follows a pointer through a valid object, in one pass whatever the pointer. It is an error if
// there cannot be anything at the pointer: nothing on the way there, or something that has no members,
// or a name that is there twice, so that nobody knows which one is meant.
func (p pointer) find(object string) (place, error) {
	start := strings.IndexByte(object, '{')
	if p == "" {
		return place{found: true, start: start, from: start, to: valueEnd(object, start)}, nil
	}
	s := pointerSearch{text: object, pointer: p}
	s.within(start, p)
	return s.place, s.err
}

// pointerSearch is a pointer on its way through a text.
type pointerSearch struct {
	text    string
	pointer pointer
	place   place
	err     error
}

// within follows the rest of the pointer in the object or array that begins at i, and gives the position
// after that. What it goes through has no more levels than the pointer has tokens, nor than the text.
func (s *pointerSearch) within(i int, path pointer) (end int) {
	token, rest := path.cut()
	w := walkAt(s.text, i)
	here := place{array: w.array, name: token, index: -1, last: w.pos}
	if w.array && token != "-" {
		if here.index = parseIndex(token); here.index < 0 {
			s.err = fmt.Errorf("the array %s has no element %s: legal are 0, 1, ... and - for the one after the last", s.upTo(path), expiry.Quote(token))
		}
	}
	met := false
	for ; w.enter(); here.n++ {
		right := here.n == here.index
		if !w.array {
			right = w.name() == token
		}
		switch value := w.text[w.valueFrom]; {
		case right && met:
			s.err = fmt.Errorf("%s is there more than once", s.upTo(rest))
		case right && rest == "":
			here.found, here.start, here.from, here.to = true, w.start, w.valueFrom, valueEnd(s.text, w.valueFrom)
			if here.n > 0 {
				here.before = here.last
			}
		case right && (value == '{' || value == '['):
			here.last = s.within(w.valueFrom, rest)
			w.pos, met = here.last, true
			continue
		case right:
			s.err = fmt.Errorf("%s is neither an object nor an array", s.upTo(rest))
		}
		met = met || right
		w.pos = valueEnd(s.text, w.valueFrom)
		here.last = w.pos
	}
	switch {
	case rest == "":
		if token == "-" && w.array {
			here.index = here.n
		}
		s.place = here
	case !met && s.err == nil:
		s.err = fmt.Errorf("there is no %s", s.upTo(rest))
	}
	return w.start + 1
}

// upTo shows the pointer as far as the rest.
func (s *pointerSearch) upTo(rest pointer) string {
	return expiry.Quote(string(s.pointer[:len(s.pointer)-len(rest)]))
}

// parseIndex reads the index of an element, digits without leading zeros; -1 if it is none.
func parseIndex(token string) int {
	if n, ok := redisfmt.ParseInt(token); ok && n >= 0 {
		return int(n)
	}
	return -1
}
