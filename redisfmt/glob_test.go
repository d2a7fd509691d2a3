package redisfmt

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
	t.Parallel()
	tests := []struct {
		pattern, s string
		want       bool
	}{
		{"", "", true},
		{"", "a", false},
		{"abc", "abc", true},
		{"abc", "abd", false},
		{"abc", "abcd", false},
		{"abcd", "abc", false},
		{"ABC", "abc", false},
		{"*", "abc", true},
		{"**", "abc", true},
		{"a*", "a", true},
		{"a**", "a", true},
		{"*c", "abc", true},
		{"*b", "abc", false},
		{"a*c", "abcbc", true},
		{"a*bd*e", "abcbdxe", true},
		{"?", "a", true},
		{"?", "ab", false},
		{"h?llo", "hello", true},
		{"h[ae]llo", "hallo", true},
		{"h[ae]llo", "hillo", false},
		{"h[^e]llo", "hallo", true},
		{"h[^e]llo", "hello", false},
		{"h[a-c]llo", "hbllo", true},
		{"h[c-a]llo", "hbllo", true},
		{"[a-]", "_", true}, // a range from a down to ]
		{"[]a]", "a", false},
		{"[^]", "a", true},
		{"[^]]", "a]", true},
		{`[\]]`, "]", true},
		{`[\a-c]`, "-", true},
		{"[", "a", false},
		{"[abc", "b", true},
		{"[^", "b", true},
		{"[a-", "-", true},
		{`\*`, "*", true},
		{`\*`, "a", false},
		{`a\`, `a\`, true},
		{"[\x80-\x7f]", "\x00", true}, // signed: all bytes
		{"[\x00-\x80]", "\x7f", false},
		{"*\x00*", "a\x00b", true},
		// KEYS and SCAN of Redis treat a lone * themselves.
		{"*", "", false},
	}
	for _, tt := range tests {
		if got := Compile(tt.pattern).Match(tt.s); got != tt.want {
			t.Errorf("Match(%q, %q) = %t", tt.pattern, tt.s, got)
		}
	}
}

// TestMatchIsNotExponential never ends if Match tries every * anew for each position of the one before.
func TestMatchIsNotExponential(t *testing.T) {
	t.Parallel()
	if Compile(strings.Repeat("a*", 1000) + "b").Match(strings.Repeat("a", 4000)) {
		t.Error("matched")
	}
}

// FuzzMatch compares Match with a literal translation of Redis' function.
func FuzzMatch(f *testing.F) {
	for _, seed := range [][2]string{
		{"*", ""}, {"a*b*c", "aXbYc"}, {"[^a-z]?", "9x"}, {`\[*\]`, "[x]"}, {"[a-", "-"}, {"[^", "x"},
		{`[\`, `\`}, {"[\xff-\x01]", "\x00"}, {"**a**", "ba"}, {"user:[0-9]*:name", "user:17:name"},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, pattern, s string) {
		if strings.Count(pattern, "*") > 6 || len(s) > 60 {
			return // the translation recurses
		}
		if got, want := Compile(pattern).Match(s), redisMatch(pattern, s); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, s, got)
		}
	})
}

// FuzzMatchLong compares Match with backtracking for texts that are too long for recursion. Each part is
// repeated, so the fuzzer finds texts that match nearly everywhere.
func FuzzMatchLong(f *testing.F) {
	for _, seed := range []struct {
		head, part, tail, word, end string
		times                       uint16
	}{
		{"*", "?", "b*", "a", "b", 130}, {"", "[ab]", "*c", "ab", "c", 64}, {"*x", "a?", "b*y", "a", "by", 100},
		{"*", "[^c]a", "*?", "ba", "", 65}, {"a*", `\a[a-c]`, "*[z]*", "aab", "z", 300},
	} {
		f.Add(seed.head, seed.part, seed.tail, seed.word, seed.end, seed.times)
	}
	f.Fuzz(func(t *testing.T, head, part, tail, word, end string, times uint16) {
		n := int(times % 400)
		if len(head)+len(part)+len(tail)+len(word)+len(end) > 60 {
			return
		}
		pattern, s := head+strings.Repeat(part, n)+tail, strings.Repeat(word, 3*n)+end
		if got, want := Compile(pattern).Match(s), backtrack(pattern, s); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, s, got)
		}
	})
}

// A segment is found at the same place in parallel as step by step.
func TestMatchInParallel(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	text := func(alphabet string, n int) string {
		var b strings.Builder
		for range n {
			b.WriteByte(alphabet[random.IntN(len(alphabet))])
		}
		return b.String()
	}
	found := 0
	for range 2000 {
		pattern := Compile("*" + text("aab?", 1+random.IntN(200)) + "?[ab]*")
		part := &pattern.parts[1]
		s := text("aaaaaaaaaaaaaab", random.IntN(2000))
		want := -1
		for at := 0; at+part.length() <= len(s) && want < 0; at++ {
			if part.matches(s[at:]) {
				want = at
			}
		}
		if got := part.indexInParallel(s); got != want {
			t.Fatalf("%q in %q: %d, not %d", pattern.Text(), s, got, want)
		}
		if want >= 0 {
			found++
		}
	}
	if found < 100 {
		t.Errorf("only %d were found", found)
	}
}

// A text at which a pattern begins to match everywhere is searched in parallel, which needs memory, before it
// takes 16 steps for each byte. Other searches need no memory.
func TestMatchIsBounded(t *testing.T) { // alone: it counts allocations
	const elements = 16
	s := strings.Repeat("a", 1<<10)
	for hard, parallel := range map[string]bool{
		"*" + strings.Repeat("?", elements) + "b*":                                       true,
		"*" + strings.Repeat("[a]", elements) + "b*":                                     true,
		"*" + strings.Repeat("a", elements) + "[" + strings.Repeat("b", elements) + "]*": true,
		"*" + strings.Repeat("?", 4) + "b*":                                              false,
		"*b" + strings.Repeat("?", elements) + "*":                                       false,
	} {
		pattern := Compile(hard)
		if got := testing.AllocsPerRun(1, func() {
			if pattern.Match(s) {
				t.Errorf("%.20q matches", hard)
			}
		}); got > 0 != parallel {
			t.Errorf("%q: %v allocations, in parallel: %t", hard, got, parallel)
		}
	}
}

// backtrack matches by backtracking to the latest star.
func backtrack(pattern, s string) bool {
	if s == "" {
		return pattern == ""
	}
	p, i := 0, 0
	star, starred := -1, 0 // the position after the latest *, and the end of what it has taken of s
	for i < len(s) {
		if p < len(pattern) && pattern[p] == '*' {
			p++
			star, starred = p, i
			continue
		}
		if p < len(pattern) {
			if next, ok := backtrackByte(pattern, p, s[i]); ok {
				p, i = next, i+1
				continue
			}
		}
		if star < 0 {
			return false
		}
		starred++
		p, i = star, starred
	}
	for p < len(pattern) && pattern[p] == '*' {
		p++
	}
	return p == len(pattern)
}

// backtrackByte reports whether c matches the element of the pattern at p, which is not *. next is the
// position of the next element.
func backtrackByte(pattern string, p int, c byte) (next int, ok bool) {
	switch {
	case pattern[p] == '?':
		return p + 1, true
	case pattern[p] == '[':
		return backtrackClass(pattern, p+1, c)
	case pattern[p] == '\\' && p+1 < len(pattern):
		p++
	}
	return p + 1, pattern[p] == c
}

// backtrackClass reports whether c matches the class whose inside begins at p. next is as for backtrackByte.
func backtrackClass(pattern string, p int, c byte) (next int, ok bool) {
	negated := p < len(pattern) && pattern[p] == '^'
	if negated {
		p++
	}
	found := false
	for ; p < len(pattern); p++ {
		switch {
		case pattern[p] == '\\' && p+1 < len(pattern):
			p++
			found = found || pattern[p] == c
		case pattern[p] == ']':
			return p + 1, found != negated
		case p+2 < len(pattern) && pattern[p+1] == '-':
			low, high := int8(pattern[p]), int8(pattern[p+2])
			if low > high {
				low, high = high, low
			}
			p += 2
			found = found || low <= int8(c) && int8(c) <= high
		default:
			found = found || pattern[p] == c
		}
	}
	return p, found != negated
}

// redisMatch is stringmatchlen of Redis 7.0 (src/util.c). Past its end a pattern has zero
// bytes, as in C.
func redisMatch(pattern, s string) bool {
	at := func(i int) byte {
		if i < len(pattern) {
			return pattern[i]
		}
		return 0
	}
	p := 0
	for p < len(pattern) && s != "" {
		switch at(p) {
		case '*':
			for p < len(pattern) && at(p+1) == '*' {
				p++
			}
			if p == len(pattern)-1 {
				return true
			}
			for s != "" {
				if redisMatch(pattern[p+1:], s) {
					return true
				}
				s = s[1:]
			}
			return false
		case '?':
			s = s[1:]
		case '[':
			p++
			negated := at(p) == '^' && p < len(pattern)
			if negated {
				p++
			}
			match := false
			for ; ; p++ {
				left := len(pattern) - p
				if left >= 2 && at(p) == '\\' {
					p++
					match = match || at(p) == s[0]
				} else if left > 0 && at(p) == ']' {
					break
				} else if left == 0 {
					p--
					break
				} else if left >= 3 && at(p+1) == '-' {
					start, end := int8(at(p)), int8(at(p+2))
					if start > end {
						start, end = end, start
					}
					p += 2
					match = match || int8(s[0]) >= start && int8(s[0]) <= end
				} else {
					match = match || at(p) == s[0]
				}
			}
			if match == negated {
				return false
			}
			s = s[1:]
		default:
			if at(p) == '\\' && len(pattern)-p >= 2 {
				p++
			}
			if at(p) != s[0] {
				return false
			}
			s = s[1:]
		}
		p++
		if s == "" {
			for at(p) == '*' {
				p++
			}
			break
		}
	}
	return p == len(pattern) && s == ""
}

func BenchmarkMatch(b *testing.B) {
	id := "order:2024-03-01:000123:line-17"
	for _, pattern := range []string{"order:*", "*:line-17", "*2024*line*", "order:????-03-*", "order:[0-9]*-17"} {
		b.Run(pattern, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				Compile(pattern).Match(id)
			}
		})
		b.Run("compiled "+pattern, func(b *testing.B) {
			p := Compile(pattern)
			for b.Loop() {
				p.Match(id)
			}
		})
	}
	b.Run("hard", func(b *testing.B) {
		p, s := Compile("*"+strings.Repeat("?", 1020)+"b*"), strings.Repeat("a", 1<<16)
		for b.Loop() {
			p.Match(s)
		}
	})
	b.Run("hard by backtracking", func(b *testing.B) {
		p, s := "*"+strings.Repeat("?", 1020)+"b*", strings.Repeat("a", 1<<16)
		for b.Loop() {
			backtrack(p, s)
		}
	})
}
