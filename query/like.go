package query

import (
	"strings"
	"unicode/utf8"
)

// likePattern is a pattern of LIKE: % is any text, _ any character, [abc], [a-f] and [^abc] one of a set. It
// is immutable and safe for concurrent use.
type likePattern struct {
	parts []likePart // with a % between two of them
}

// likePart is a piece of a pattern between two %.
type likePart struct {
	literal string // without sets and _
	codes   []rune // with them; nil for literal text
	chars   int    // how many characters codes match
}

// Codes of a likePart. Other codes are characters that stand for themselves.
const (
	codeAny    = -1 - iota // _
	codeSet                // [abc]: the number of ranges and their first and last characters follow
	codeNotSet             // [^abc]
)

// likeCharWork is the work of matching or compiling a character, in bytes.
const likeCharWork = 8

// compileLike reads a pattern. escape is one character or "": the character after it stands for itself. The
// pattern takes at most eight times its text.
func compileLike(pattern, escape string) *likePattern {
	w := &likePattern{}
	c := patternReader{text: pattern, escape: -1}
	if escape != "" {
		c.escape, _ = utf8.DecodeRuneInString(escape)
	}
	p := likePart{}
	special := false
	end := func() {
		if !special {
			p = likePart{literal: string(p.codes)}
		}
		w.parts = append(w.parts, p)
		p, special = likePart{}, false
	}
	for c.text != "" {
		switch r, escaped := c.next(); {
		case escaped:
			p.codes = append(p.codes, r)
		case r == '%':
			end()
			continue
		case r == '_':
			special = true
			p.codes = append(p.codes, codeAny)
		case r == '[' && c.set(&p.codes):
			special = true
		default:
			p.codes = append(p.codes, r)
		}
		p.chars++
	}
	end()
	return w
}

// prefix returns the literal text that every match begins with. exact says that only this text matches, whole
// that every text that begins with it does, or exact.
func (w *likePattern) prefix() (prefix string, exact, whole bool) {
	first, last := &w.parts[0], &w.parts[len(w.parts)-1]
	if first.codes != nil {
		return "", false, false
	}
	exact = len(w.parts) == 1
	return first.literal, exact, exact || len(w.parts) == 2 && last.codes == nil && last.literal == ""
}

// patternReader reads the characters of a pattern.
type patternReader struct {
	text     string
	escape   rune // -1 without
	unclosed bool // no ] follows
}

// next takes a character, or an escaped one. An escape at the end stands for itself.
func (c *patternReader) next() (r rune, escaped bool) {
	r, size := utf8.DecodeRuneInString(c.text)
	if c.text = c.text[size:]; r == c.escape && c.text != "" {
		r, size = utf8.DecodeRuneInString(c.text)
		c.text = c.text[size:]
		return r, true
	}
	return r, false
}

// set takes what follows [, with the closing bracket, and appends its codes. It takes nothing and returns
// false if the set is empty or not closed: then [ stands for itself.
func (c *patternReader) set(codes *[]rune) bool {
	if c.unclosed {
		return false
	}
	rest := *c
	kind := rune(codeSet)
	if strings.HasPrefix(rest.text, "^") {
		rest.text, kind = rest.text[1:], codeNotSet
	}
	all := append(*codes, kind, 0)
	ranges := len(*codes) + 1
	for rest.text != "" {
		low, escaped := rest.next()
		if low == ']' && !escaped {
			if all[ranges] == 0 {
				return false
			}
			*c, *codes = rest, all
			return true
		}
		high := low
		if strings.HasPrefix(rest.text, "-") && len(rest.text) > 1 && rest.text[1] != ']' {
			rest.text = rest.text[1:]
			high, _ = rest.next()
		}
		all = append(all, low, high)
		all[ranges]++
	}
	c.unclosed = true
	return false
}

// matches reports whether the whole of s matches. It never backtracks over more than one %. work is what it
// cost in bytes that are read; more than most of it ends the match, with false.
func (w *likePattern) matches(s string, most int) (matched bool, work int) {
	m := meter{most: most}
	return w.match(&m, s), m.done
}

// meter counts work.
type meter struct{ done, most int }

func (m *meter) work(n int) { m.done += n }

func (w *likePattern) match(m *meter, s string) bool {
	first, last := &w.parts[0], &w.parts[len(w.parts)-1]
	n := first.at(m, s)
	if n < 0 {
		return false
	}
	s = s[n:]
	if len(w.parts) == 1 {
		return s == ""
	}
	for i := range w.parts[1 : len(w.parts)-1] {
		var ok bool
		if s, ok = w.parts[i+1].after(m, s); !ok {
			return false
		}
	}
	return last.ends(m, s)
}

// at returns the size of the likePart at the start of s, or -1.
func (p *likePart) at(m *meter, s string) int {
	if p.codes == nil {
		m.work(len(p.literal))
		if !strings.HasPrefix(s, p.literal) {
			return -1
		}
		return len(p.literal)
	}
	n, i, tries := 0, 0, 0
	for i < len(p.codes) {
		r, size := utf8.DecodeRuneInString(s[n:])
		next := i + 1
		matched := false
		switch code := p.codes[i]; code {
		case codeAny:
			matched = true
		case codeSet, codeNotSet:
			next = i + 2 + 2*int(p.codes[i+1])
			for k := i + 2; k < next && !matched; k += 2 {
				matched = r >= p.codes[k] && r <= p.codes[k+1]
				tries++
			}
			matched = matched == (code == codeSet)
		default:
			matched = r == code
		}
		tries++
		i = next
		if size == 0 || !matched {
			n = -1
			break
		}
		n += size
	}
	m.work(tries * likeCharWork)
	return n
}

// after returns what follows the first occurrence of the likePart in s.
func (p *likePart) after(m *meter, s string) (rest string, ok bool) {
	if p.codes == nil {
		_, rest, ok = strings.Cut(s, p.literal)
		m.work(len(s) - len(rest))
		return rest, ok
	}
	for {
		if n := p.at(m, s); n >= 0 {
			return s[n:], true
		}
		m.work(likeCharWork)
		_, size := utf8.DecodeRuneInString(s)
		if size == 0 || m.done > m.most {
			return "", false
		}
		s = s[size:]
	}
}

// ends reports whether s ends with the likePart.
func (p *likePart) ends(m *meter, s string) bool {
	if p.codes == nil {
		m.work(len(p.literal))
		return strings.HasSuffix(s, p.literal)
	}
	from := len(s)
	for range p.chars {
		_, size := utf8.DecodeLastRuneInString(s[:from])
		if size == 0 {
			return false
		}
		from -= size
	}
	m.work(p.chars)
	return p.at(m, s[from:]) == len(s)-from
}
