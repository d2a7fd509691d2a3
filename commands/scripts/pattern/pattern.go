package pattern

import "strings"

const (
	maxCaptures     = 32
	maxPatternDepth = 10_000 // nested calls of match: only long patterns nest
	capUnfinished   = -1
	capPosition     = -2
)

type capture struct{ start, size int }

// Matcher matches one pattern against one text.
type Matcher struct {
	Source  string
	Pattern string // without a leading ^
	// Work counts steps of the search. It may panic to end it.
	Work func(steps int)
	// Fail raises an error of the pattern. It does not return.
	Fail func(message string)

	level    int
	captures [maxCaptures]capture
	depth    int
	steps    int
}

// Match returns the end of the match that begins at from, -1 if there is none.
func (ms *Matcher) Match(from int) int {
	ms.level, ms.depth = 0, 0
	return ms.match(from, 0)
}

// Captures returns the number of captures of the last match.
func (ms *Matcher) Captures() int { return ms.level }

// Capture returns where capture i of the last match is, which took the text from s to e: of a position capture with
// position set, only from counts. Without captures, capture 0 is the whole match.
func (ms *Matcher) Capture(i, s, e int) (from, to int, position bool) {
	if i >= ms.level {
		if i != 0 {
			ms.Fail("invalid capture index")
		}
		return s, e, false
	}
	c := ms.captures[i]
	switch c.size {
	case capUnfinished:
		ms.Fail("unfinished capture")
	case capPosition:
		return c.start, c.start, true
	}
	return c.start, c.start + c.size, false
}

func (ms *Matcher) step(n int) {
	if ms.steps += n; ms.steps > 1000 {
		ms.Work(ms.steps)
		ms.steps = 0
	}
}

func (ms *Matcher) checkCapture(c byte) int {
	i := int(c) - '1'
	if i < 0 || i >= ms.level || ms.captures[i].size == capUnfinished {
		ms.Fail("invalid capture index")
	}
	return i
}

func (ms *Matcher) captureToClose() int {
	for level := ms.level - 1; level >= 0; level-- {
		if ms.captures[level].size == capUnfinished {
			return level
		}
	}
	ms.Fail("invalid pattern capture")
	return 0
}

// classEnd returns the index after the single-character class at p.
func (ms *Matcher) classEnd(p int) int {
	c := ms.Pattern[p]
	p++
	switch c {
	case '%':
		if p == len(ms.Pattern) {
			ms.Fail("malformed pattern (ends with '%')")
		}
		return p + 1
	case '[':
		if p < len(ms.Pattern) && ms.Pattern[p] == '^' {
			p++
		}
		for first := true; first || p >= len(ms.Pattern) || ms.Pattern[p] != ']'; first = false {
			if p >= len(ms.Pattern) {
				ms.Fail("malformed pattern (missing ']')")
			}
			c := ms.Pattern[p]
			p++
			if c == '%' && p < len(ms.Pattern) {
				p++
			}
		}
		return p + 1
	}
	return p
}

// IsAlpha reports whether c is a letter of ASCII.
func IsAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

// IsDigit reports whether c is a decimal digit.
func IsDigit(c byte) bool { return '0' <= c && c <= '9' }

func inClass(c, class byte) bool {
	var is bool
	switch class | 0x20 {
	case 'a':
		is = IsAlpha(c)
	case 'c':
		is = c < 32 || c == 127
	case 'd':
		is = IsDigit(c)
	case 'l':
		is = 'a' <= c && c <= 'z'
	case 'p':
		is = c > 32 && c < 127 && !IsAlpha(c) && !IsDigit(c)
	case 's':
		is = c == ' ' || '\t' <= c && c <= '\r'
	case 'u':
		is = 'A' <= c && c <= 'Z'
	case 'w':
		is = IsAlpha(c) || IsDigit(c)
	case 'x':
		is = IsDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f'
	case 'z':
		is = c == 0
	default:
		return class == c
	}
	if !IsAlpha(class) {
		return class == c
	}
	return is != ('A' <= class && class <= 'Z')
}

// inSet reports whether c is in the set whose [ is at p and whose ] is at end.
func (ms *Matcher) inSet(c byte, p, end int) bool {
	ms.step((end - p) >> 3)
	in := true
	p++
	if ms.Pattern[p] == '^' {
		in = false
		p++
	}
	for ; p < end; p++ {
		switch {
		case ms.Pattern[p] == '%':
			p++
			if inClass(c, ms.Pattern[p]) {
				return in
			}
		case p+2 < end && ms.Pattern[p+1] == '-':
			if ms.Pattern[p] <= c && c <= ms.Pattern[p+2] {
				return in
			}
			p += 2
		case ms.Pattern[p] == c:
			return in
		}
	}
	return !in
}

func (ms *Matcher) single(s, p, end int) bool {
	if s >= len(ms.Source) {
		return false
	}
	c := ms.Source[s]
	switch ms.Pattern[p] {
	case '.':
		return true
	case '%':
		return inClass(c, ms.Pattern[p+1])
	case '[':
		return ms.inSet(c, p, end-1)
	}
	return ms.Pattern[p] == c
}

// balance matches %bxy, whose x is at p.
func (ms *Matcher) balance(s, p int) int {
	if p+1 >= len(ms.Pattern) {
		ms.Fail("unbalanced pattern")
	}
	if s >= len(ms.Source) || ms.Source[s] != ms.Pattern[p] {
		return -1
	}
	open, end, depth := ms.Pattern[p], ms.Pattern[p+1], 1
	for i := s + 1; i < len(ms.Source); i++ {
		ms.step(1)
		switch c := ms.Source[i]; {
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
func (ms *Matcher) match(s, p int) int {
	ms.depth++
	if ms.depth > maxPatternDepth {
		ms.Fail("pattern too complex")
	}
	e := ms.matchRest(s, p)
	ms.depth--
	return e
}

func (ms *Matcher) matchRest(s, p int) int {
	for {
		ms.step(1)
		if p == len(ms.Pattern) {
			return s
		}
		switch ms.Pattern[p] {
		case '(':
			if p+1 < len(ms.Pattern) && ms.Pattern[p+1] == ')' {
				return ms.startCapture(s, p+2, capPosition)
			}
			return ms.startCapture(s, p+1, capUnfinished)
		case ')':
			return ms.endCapture(s, p+1)
		case '%':
			if p+1 < len(ms.Pattern) {
				switch c := ms.Pattern[p+1]; {
				case c == 'b':
					if s = ms.balance(s, p+2); s < 0 {
						return -1
					}
					p += 4
					continue
				case c == 'f':
					p += 2
					if p >= len(ms.Pattern) || ms.Pattern[p] != '[' {
						ms.Fail("missing '[' after '%f' in pattern")
					}
					end := ms.classEnd(p)
					var before, at byte
					if s > 0 {
						before = ms.Source[s-1]
					}
					if s < len(ms.Source) {
						at = ms.Source[s]
					}
					if ms.inSet(before, p, end-1) || !ms.inSet(at, p, end-1) {
						return -1
					}
					p = end
					continue
				case IsDigit(c):
					text := ms.captureText(ms.checkCapture(c))
					ms.step(len(text) >> 4)
					if !strings.HasPrefix(ms.Source[s:], text) {
						return -1
					}
					s += len(text)
					p += 2
					continue
				}
			}
		case '$':
			if p+1 == len(ms.Pattern) {
				if s == len(ms.Source) {
					return s
				}
				return -1
			}
		}
		end := ms.classEnd(p)
		var suffix byte
		if end < len(ms.Pattern) {
			suffix = ms.Pattern[end]
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
func (ms *Matcher) most(s, p, end int) int {
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

func (ms *Matcher) startCapture(s, p, size int) int {
	if ms.level >= maxCaptures {
		ms.Fail("too many captures")
	}
	ms.captures[ms.level] = capture{s, size}
	ms.level++
	e := ms.match(s, p)
	if e < 0 {
		ms.level--
	}
	return e
}

func (ms *Matcher) endCapture(s, p int) int {
	i := ms.captureToClose()
	ms.captures[i].size = s - ms.captures[i].start
	e := ms.match(s, p)
	if e < 0 {
		ms.captures[i].size = capUnfinished
	}
	return e
}

func (ms *Matcher) captureText(i int) string {
	c := ms.captures[i]
	if c.size < 0 {
		return ""
	}
	return ms.Source[c.start : c.start+c.size]
}
