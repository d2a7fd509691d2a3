package lua

import "strings"

const (
	maxCaptures     = 32
	maxPatternDepth = 10_000 // nested calls of match: only long patterns nest
	capUnfinished   = -1
	capPosition     = -2
)

type capture struct{ start, size int }

// matcher matches one pattern against one text.
type matcher struct {
	c       *Call
	source  string
	pattern string // without a leading ^

	level    int
	captures [maxCaptures]capture
	depth    int
	steps    int
}

// newMatcher returns a matcher. A zero byte ends a pattern, as in C.
func (c *Call) newMatcher(source, pattern string) *matcher {
	c.M.long(pattern)
	return &matcher{c: c, source: source, pattern: cut(pattern)}
}

// begin returns the end of the match that begins at a place, -1 if there is none.
func (ms *matcher) begin(from int) int {
	ms.level, ms.depth = 0, 0
	return ms.match(from, 0)
}

// value returns capture i of the last match, which took the text from s to e: the whole match if the pattern
// has no captures and i is 0.
func (ms *matcher) value(i, s, e int) Value {
	if i >= ms.level {
		if i != 0 {
			ms.c.Fail("invalid capture index")
		}
		return ms.c.M.Part(ms.source, s, e)
	}
	c := ms.captures[i]
	switch c.size {
	case capUnfinished:
		ms.c.Fail("unfinished capture")
	case capPosition:
		return Int(c.start + 1)
	}
	return ms.c.M.Part(ms.source, c.start, c.start+c.size)
}

// values returns all captures, or the whole match if there are none.
func (ms *matcher) values(s, e int) []Value {
	list := make([]Value, max(ms.level, 1))
	for i := range list {
		list[i] = ms.value(i, s, e)
	}
	return list
}

func (ms *matcher) step(n int) {
	if ms.steps += n; ms.steps > 1000 {
		ms.c.M.Work(ms.steps)
		ms.steps = 0
	}
}

func (ms *matcher) checkCapture(c byte) int {
	i := int(c) - '1'
	if i < 0 || i >= ms.level || ms.captures[i].size == capUnfinished {
		ms.c.Fail("invalid capture index")
	}
	return i
}

func (ms *matcher) captureToClose() int {
	for level := ms.level - 1; level >= 0; level-- {
		if ms.captures[level].size == capUnfinished {
			return level
		}
	}
	ms.c.Fail("invalid pattern capture")
	return 0
}

// classEnd returns the index after the single-character class at p.
func (ms *matcher) classEnd(p int) int {
	begin, c := p, ms.pattern[p]
	p++
	switch c {
	case '%':
		if p == len(ms.pattern) {
			ms.c.Fail("%s", "malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(ms.pattern) && ms.pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(ms.pattern) || ms.pattern[p] != ']'; first = false {
			if p >= len(ms.pattern) {
				ms.c.Fail("malformed pattern (missing ']')")
			}
			c := ms.pattern[p]
			p++
			if c == '%' && p < len(ms.pattern) {
				p++
			}
		}
		ms.step((p - begin) >> 3)
		return p + 1
	}
	return p
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// isAlpha reports whether c is a letter of ASCII.
func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func inClass(c, class byte) bool {
	var is bool
	switch class | 0x20 {
	case 'a':
		is = isAlpha(c)
	case 'c':
		is = c < 32 || c == 127
	case 'd':
		is = isDigit(c)
	case 'l':
		is = 'a' <= c && c <= 'z'
	case 'p':
		is = c > 32 && c < 127 && !isAlpha(c) && !isDigit(c)
	case 's':
		is = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		is = 'A' <= c && c <= 'Z'
	case 'w':
		is = isAlpha(c) || isDigit(c)
	case 'x':
		is = isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if !isAlpha(class) {
		return class == c
	}
	return is != ('A' <= class && class <= 'Z')
}

// inSet reports whether c is in the set whose [ is at p and whose ] is at end.
func (ms *matcher) inSet(c byte, p, end int) bool {
	ms.step((end - p) >> 3)
	in := true
	p++
	if ms.pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case ms.pattern[p] == '%':
			p++
			if inClass(c, ms.pattern[p]) {
				return in
			}
		case p+2 < end && ms.pattern[p+1] == '-':
			if ms.pattern[p] <= c && c <= ms.pattern[p+2] {
				return in
			}
			p += 2
		case ms.pattern[p] == c:
			return in
		}
	}
	return !in
}

func (ms *matcher) single(s, p, end int) bool {
	if s >= len(ms.source) {
		return false
	}
	c := ms.source[s]
	switch ms.pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, ms.pattern[p+1])
	case '[':
		return ms.inSet(c, p, end-1)
	}
	return ms.pattern[p] == c
}

// balance matches %bxy, whose x is at p.
func (ms *matcher) balance(s, p int) int {
	if p+1 >= len(ms.pattern) {
		ms.c.Fail("unbalanced pattern")
	}
	if s >= len(ms.source) || ms.source[s] != ms.pattern[p] {
		return -1
	}
	open, end, depth := ms.pattern[p], ms.pattern[p+1], 1
	for i := s + 1; i < len(ms.source); i++ {
		ms.step(1)
		switch c := ms.source[i]; {
		case c == end:
			if depth--; depth == 0 {
				return i + 1
			}
		case c == open:
			depth++
		}
	}
	return -1
}

// match returns the end of a match of the pattern from p on at s, -1 if there is none.
func (ms *matcher) match(s, p int) int {
	ms.depth++
	if ms.depth > maxPatternDepth {
		ms.c.Fail("pattern too complex")
	}
	e := ms.matchRest(s, p)
	ms.depth--
	return e
}

func (ms *matcher) matchRest(s, p int) int {
	for {
		ms.step(1)
		if p == len(ms.pattern) {
			return s
		}
		switch ms.pattern[p] {
		case '(':
			if p+1 < len(ms.pattern) && ms.pattern[p+1] == ')' {
				return ms.startCapture(s, p+2, capPosition)
			}
			return ms.startCapture(s, p+1, capUnfinished)
		case ')':
			return ms.endCapture(s, p+1)
		case '%':
			if p+1 < len(ms.pattern) {
				switch c := ms.pattern[p+1]; {
				case c == 'b':
					if s = ms.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					p += 2
					if p >= len(ms.pattern) || ms.pattern[p] != '[' {
						ms.c.Fail("%s", "missing '[' after '%f' in pattern")
					}
					end := ms.classEnd(p)
					var before, at byte
					if s > 0 {
						before = ms.source[s-1]
					}
					if s < len(ms.source) {
						at = ms.source[s]
					}
					if ms.inSet(before, p, end-1) || !ms.inSet(at, p, end-1) {
						return -1
					}
					p = end
					continue
				case isDigit(c):
					capture := ms.captures[ms.checkCapture(c)]
					if capture.size < 0 { // a position is no text
						return -1
					}
					text := ms.source[capture.start : capture.start+capture.size]
					ms.step(len(text) >> 4)
					if !strings.HasPrefix(ms.source[s:], text) {
						return -1
					}
					s += len(text)
					p += 2
					continue
				}
			}
		case '$':
			if p+1 == len(ms.pattern) {
				if s == len(ms.source) {
					return s
				}
				return -1
			}
		}
		end := ms.classEnd(p)
		var suffix byte
		if end < len(ms.pattern) {
			suffix = ms.pattern[end]
		}
		switch suffix {
		case '?':
			if ms.single(s, p, end) {
				if e := ms.match(s+1, end+1); e >= 0 {
					return e
				}
			}
			p = end + 1
		case '*':
			return ms.most(s, p, end)
		case '+':
			if !ms.single(s, p, end) {
				return -1
			}
			return ms.most(s+1, p, end)
		case '-':
			for {
				ms.step(1)
				if e := ms.match(s, end+1); e >= 0 {
					return e
				}
				if !ms.single(s, p, end) {
					return -1
				}
				s++
			}
		default:
			if !ms.single(s, p, end) {
				return -1
			}
			s++
			p = end
		}
	}
}

// most matches as many of the class at p as leave a match for the rest.
func (ms *matcher) most(s, p, end int) int {
	n := 0
	for ms.single(s+n, p, end) {
		ms.step(1)
		n++
	}
	for ; n >= 0; n-- {
		if e := ms.match(s+n, end+1); e >= 0 {
			return e
		}
	}
	return -1
}

func (ms *matcher) startCapture(s, p, size int) int {
	if ms.level >= maxCaptures {
		ms.c.Fail("too many captures")
	}
	ms.captures[ms.level] = capture{s, size}
	ms.level++
	e := ms.match(s, p)
	if e < 0 {
		ms.level--
	}
	return e
}

func (ms *matcher) endCapture(s, p int) int {
	i := ms.captureToClose()
	ms.captures[i].size = s - ms.captures[i].start
	e := ms.match(s, p)
	if e < 0 {
		ms.captures[i].size = capUnfinished
	}
	return e
}
