package jsondoc

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"mayfly/expiry"
	"mayfly/json/jsontext"
	"mayfly/redisfmt"
)

// Pointer is a JSON Pointer (RFC 6901) that [ParsePointer] has accepted. "" is the whole document, "/a/0"
// the first element of its member a. Its tokens are read while it is followed, so a long pointer costs
// no memory.
type Pointer string

// ParsePointer checks that text is a JSON Pointer in valid UTF-8. The error is one line.
func ParsePointer(text string) (Pointer, error) {
	if text != "" && text[0] != '/' || !utf8.ValidString(text) || !validEscapes(text) {
		meant := ""
		if p, ok := SuggestPointer(text); ok {
			meant = "did you mean " + expiry.Quote(string(p)) + "? Legal"
		} else {
			meant = "legal"
		}
		return "", fmt.Errorf("invalid path %s: %s are JSON pointers, /member/0/..., with ~1 for / and ~0 for ~ in names", expiry.Quote(text), meant)
	}
	return Pointer(text), nil
}

// SuggestPointer returns the pointer that a path in another notation probably means: of JSONPath $.a[0]
// and $['a'], or a.b and a/b. A pointer means itself. ok is false if there is none, for the whole
// document too.
func SuggestPointer(text string) (p Pointer, ok bool) {
	if !utf8.ValidString(text) || len(text) > maxSuggested {
		return "", false
	}
	path, rooted := strings.CutPrefix(text, "$")
	switch {
	case rooted:
	case strings.Contains(path, "/"):
		if !validEscapes(path) {
			return "", false
		}
		return Pointer("/" + strings.TrimPrefix(path, "/")), true
	case path != "" && path[0] != '.' && path[0] != '[':
		path = "." + path
	}
	var out strings.Builder
	for path != "" {
		var token string
		switch {
		case path[0] == '.':
			path = path[1:]
			end := strings.IndexAny(path, ".[")
			if end < 0 {
				end = len(path)
			}
			token, path = path[:end], path[end:]
		case path[0] == '[':
			token, path, ok = strings.Cut(path[1:], "]")
			if !ok {
				return "", false
			}
			if n := len(token); n > 2 && token[0] == token[n-1] && (token[0] == '\'' || token[0] == '"') {
				token = token[1 : n-1]
			} else if parseIndex(token) < 0 {
				return "", false
			}
		default:
			return "", false
		}
		if token == "" || token == "*" {
			return "", false
		}
		out.WriteString("/" + escapeToken.Replace(token))
	}
	return Pointer(out.String()), out.Len() > 0
}

// maxSuggested is the largest size in bytes of a path that gets a suggestion.
const maxSuggested = 256

var escapeToken = strings.NewReplacer("~", "~0", "/", "~1")

// validEscapes reports whether 0 or 1 follows every ~.
func validEscapes(text string) bool {
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

// cutToken splits a pointer into its first token, without escapes, and the rest. There must be a token.
func (p Pointer) cutToken() (token string, rest Pointer) {
	token = string(p[1:])
	if i := strings.IndexByte(token, '/'); i >= 0 {
		token, rest = token[:i], Pointer(token[i:])
	}
	if strings.IndexByte(token, '~') >= 0 {
		token = unescapeToken.Replace(token)
	}
	return token, rest
}

// unescapeToken never replaces its own output: ~01 becomes ~1.
var unescapeToken = strings.NewReplacer("~1", "/", "~0", "~")

// root returns the name of the root member on the pointer's way; ok is false for the whole document.
func (p Pointer) root() (name string, ok bool) {
	if p == "" {
		return "", false
	}
	name, _ = p.cutToken()
	return name, true
}

// Meta reports whether the pointer leads to or into one of the server's members, _ts and _etag.
func (p Pointer) Meta() bool {
	name, ok := p.root()
	return ok && isMeta(name)
}

// below reports whether p leads into the value that other leads to.
func (p Pointer) below(other Pointer) bool {
	return len(p) > len(other) && p[:len(other)] == other && p[len(other)] == '/'
}

// location is the target of a pointer in a text: a member of an object or an element of an array. The
// target need not exist. Positions are bytes, from 0.
type location struct {
	found           bool
	start, from, to int // if found: the start of the member, and the start and end of its value
	before          int // if found: the end of the sibling before it; 0 if there is none

	array bool   // the target is in an array
	name  string // in an object: the member's name
	index int    // in an array: the element's index; n is the index after the last element

	last int // the end of the last sibling, or the position after the opening bracket
	n    int // the number of siblings, the target included
}

// find follows a pointer through a valid document, in one pass for any pointer. The error says why there
// cannot be a target. A value on the way is missing or has no members, or a name on the way is repeated.
func (p Pointer) find(object string) (location, error) {
	start := jsontext.Skip(object, 0, ' ')
	if p == "" {
		return location{found: true, start: start, from: start, to: jsontext.ValueEnd(object, start)}, nil
	}
	if c := object[start]; c != '{' && c != '[' {
		return location{}, fmt.Errorf("there is no %s: the document is neither an object nor an array", expiry.Quote(string(p)))
	}
	s := pointerSearch{text: object, pointer: p}
	s.follow(start, p)
	return s.target, s.err
}

// pointerSearch is the state of find.
type pointerSearch struct {
	text    string
	pointer Pointer
	target  location
	err     error
}

// follow follows path, the rest of the pointer, in the object or array at i and returns the position
// after it. The recursion is no deeper than the pointer has tokens, nor than the text has levels.
func (s *pointerSearch) follow(i int, path Pointer) (end int) {
	token, rest := path.cutToken()
	w := jsontext.WalkAt(s.text, i)
	here := location{array: w.Array, name: token, index: -1, last: w.Pos}
	if w.Array && token != "-" {
		if here.index = parseIndex(token); here.index < 0 {
			s.err = fmt.Errorf("the array %s has no element %s: legal are 0, 1, ... and - for the one after the last", s.upTo(path), expiry.Quote(token))
		}
	}
	met := false // a sibling with that name or index was met
	for ; w.Step(); here.n++ {
		match := here.n == here.index
		if !w.Array {
			match = w.Name() == token
		}
		switch value := w.Text[w.ValueFrom]; {
		case match && met:
			s.err = fmt.Errorf("%s is repeated", s.upTo(rest))
		case match && rest == "":
			here.found, here.start, here.from, here.to = true, w.Start, w.ValueFrom, jsontext.ValueEnd(s.text, w.ValueFrom)
			if here.n > 0 {
				here.before = here.last
			}
		case match && (value == '{' || value == '['):
			here.last = s.follow(w.ValueFrom, rest)
			w.Pos, met = here.last, true
			continue
		case match:
			s.err = fmt.Errorf("%s is neither an object nor an array", s.upTo(rest))
		}
		met = met || match
		w.Pos = jsontext.ValueEnd(s.text, w.ValueFrom)
		here.last = w.Pos
	}
	switch {
	case rest == "":
		if token == "-" && w.Array {
			here.index = here.n
		}
		s.target = here
	case !met && s.err == nil:
		s.err = fmt.Errorf("there is no %s", s.upTo(rest))
	}
	return w.Start + 1
}

// upTo returns the pointer without the rest, for an error.
func (s *pointerSearch) upTo(rest Pointer) string {
	return expiry.Quote(string(s.pointer[:len(s.pointer)-len(rest)]))
}

// parseIndex reads the index of an element: digits without leading zeros. It returns -1 for other texts.
func parseIndex(token string) int {
	if n, ok := redisfmt.ParseInt(token); ok && n >= 0 {
		return int(n)
	}
	return -1
}
