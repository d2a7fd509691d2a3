package redisfmt

import (
	"strings"
	"testing"
)

func TestMatch(t *testing.T) {
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
		if got := Match(tt.pattern, tt.s); got != tt.want {
			t.Errorf("Match(%q, %q) = %t", tt.pattern, tt.s, got)
		}
	}
}

// TestMatchIsNotExponential never ends if Match tries every * anew for each position of the one before.
func TestMatchIsNotExponential(t *testing.T) {
	if Match(strings.Repeat("a*", 1000)+"b", strings.Repeat("a", 4000)) {
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
		if got, want := Match(pattern, s), redisMatch(pattern, s); got != want {
			t.Errorf("Match(%q, %q) = %t", pattern, s, got)
		}
	})
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
				Match(pattern, id)
			}
		})
	}
}
