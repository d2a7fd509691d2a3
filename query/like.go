package query

import (
	"strings"
	"unicode/utf8"
)

// wildcard is a pattern of LIKE: % is any text, _ any character, [abc], [a-f] and [^abc] one of a set. It
// is matched without backtracking over more than one %.
type wildcard struct {
	parts []part // with a % between two of them
}

// part is a piece of a pattern between two %. Without sets and _ it is literal text.
type part struct {
	literal string
	chars   []charClass // nil for literal text
}

// charClass is what one character of a pattern matches.
type charClass struct {
	any     bool
	negated bool
	ranges  []rune // pairs of first and last
}

func (c *charClass) matches(r rune) bool {
	if c.any {
		return true
	}
	for i := 0; i < len(c.ranges); i += 2 {
		if r >= c.ranges[i] && r <= c.ranges[i+1] {
			return !c.negated
		}
	}
	return c.negated
}

// compileWildcard reads a pattern. escape is one character or "": the character after it stands for itself.
func compileWildcard(pattern, escape string) *wildcard {
	w := &wildcard{}
	var text strings.Builder
	var chars []charClass
	special := false
	add := func(r rune) {
		text.WriteRune(r)
		chars = append(chars, charClass{ranges: []rune{r, r}})
	}
	end := func() {
		if special {
			w.parts = append(w.parts, part{chars: chars})
		} else {
			w.parts = append(w.parts, part{literal: text.String()})
		}
		text.Reset()
		chars, special = nil, false
	}
	for i := 0; i < len(pattern); {
		r, size := utf8.DecodeRuneInString(pattern[i:])
		i += size
		switch {
		case escape != "" && strings.HasPrefix(escape, string(r)) && i < len(pattern):
			r, size = utf8.DecodeRuneInString(pattern[i:])
			i += size
			add(r)
		case r == '%':
			end()
		case r == '_':
			special = true
			chars = append(chars, charClass{any: true})
		case r == '[':
			class, size := compileSet(pattern[i:])
			if size == 0 { // it is not closed: it stands for itself
				add(r)
				break
			}
			i += size
			special = true
			chars = append(chars, class)
		default:
			add(r)
		}
	}
	end()
	return w
}

// compileSet reads what follows [, with the closing bracket. size is 0 if there is none.
func compileSet(pattern string) (c charClass, size int) {
	close := strings.IndexByte(pattern, ']')
	if close <= 0 {
		return c, 0
	}
	set := pattern[:close]
	if strings.HasPrefix(set, "^") && len(set) > 1 {
		c.negated, set = true, set[1:]
	}
	all := []rune(set)
	for i := 0; i < len(all); i++ {
		last := all[i]
		first := last
		if i+2 < len(all) && all[i+1] == '-' {
			last = all[i+2]
			i += 2
		}
		c.ranges = append(c.ranges, first, last)
	}
	return c, close + 1
}

// matches reports whether the whole of s matches. It counts its work.
func (w *wildcard) matches(e *Evaluator, s string) bool {
	first, last := w.parts[0], w.parts[len(w.parts)-1]
	n := first.at(e, s)
	if n < 0 {
		return false
	}
	s = s[n:]
	if len(w.parts) == 1 {
		return s == ""
	}
	for _, p := range w.parts[1 : len(w.parts)-1] {
		var ok bool
		if s, ok = p.after(e, s); !ok {
			return false
		}
	}
	return last.ends(e, s)
}

// at returns the size of the part at the start of s, or -1.
func (p part) at(e *Evaluator, s string) int {
	if p.chars == nil {
		e.work(len(p.literal))
		if !strings.HasPrefix(s, p.literal) {
			return -1
		}
		return len(p.literal)
	}
	n := 0
	for i := range p.chars {
		r, size := utf8.DecodeRuneInString(s[n:])
		if size == 0 || !p.chars[i].matches(r) {
			e.work(i * charWork)
			return -1
		}
		n += size
	}
	e.work(len(p.chars) * charWork)
	return n
}

// charWork is the work of matching a character of a set, in bytes.
const charWork = 8

// after returns what follows the first occurrence of the part in s.
func (p part) after(e *Evaluator, s string) (rest string, ok bool) {
	if p.chars == nil {
		_, rest, ok = strings.Cut(s, p.literal)
		e.work(len(s) - len(rest))
		return rest, ok
	}
	for {
		if n := p.at(e, s); n >= 0 {
			return s[n:], true
		}
		e.work(charWork)
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 || e.err != nil {
			return "", false
		}
		s = s[size:]
	}
}

// ends reports whether s ends with the part.
func (p part) ends(e *Evaluator, s string) bool {
	if p.chars == nil {
		e.work(len(p.literal))
		return strings.HasSuffix(s, p.literal)
	}
	n := len(s)
	for i := len(p.chars) - 1; i >= 0; i-- {
		r, size := utf8.DecodeLastRuneInString(s[:n])
		if size == 0 || !p.chars[i].matches(r) {
			return false
		}
		n -= size
	}
	e.work(len(p.chars) * charWork)
	return true
}
