package pattern

import (
	"fmt"
	"strings"
	"testing"
)

// failure is what a Matcher of the tests panics with.
type failure string

// search looks for a pattern from the start of a text, as string.find does, and shows the place and the captures, or the error.
// It ends with an error after that many steps.
func search(text, pat string, most int) (result string) {
	defer func() {
		if r := recover(); r != nil {
			message, ok := r.(failure)
			if !ok {
				panic(r)
			}
			result = "error: " + string(message)
		}
	}()
	rest, anchored := strings.CutPrefix(pat, "^")
	ms := Matcher{
		Source: text, Pattern: rest,
		Work: func(steps int) {
			if most -= steps; most < 0 {
				panic(failure("too much work"))
			}
		},
		Fail: func(message string) { panic(failure(message)) },
	}
	for from := 0; from <= len(text); from++ {
		if end := ms.Match(from); end >= 0 {
			result = fmt.Sprint(from+1, " ", end)
			for i := range ms.Captures() {
				if a, b, position := ms.Capture(i, from, end); position {
					result += fmt.Sprint(" @", a+1)
				} else {
					result += " " + text[a:b]
				}
			}
			return result
		}
		if anchored {
			break
		}
	}
	return "none"
}

// The results are those of string.find of Lua 5.1.
func TestMatch(t *testing.T) {
	for _, c := range []struct{ text, pattern, want string }{
		{"hello", "l+", "3 4"},
		{"hello", "^l", "none"},
		{"hello", "^he", "1 2"},
		{"hello", "lo$", "4 5"},
		{"a$b", "a$b", "1 3"},
		{"hello", "", "1 0"},
		{"key = value", "(%w+)%s*=%s*(%w+)", "1 11 key value"},
		{"2026-11-23", "(%d+)-(%d+)-(%d+)", "1 10 2026 11 23"},
		{"<<a>>", "<(.-)>", "1 4 <a"},
		{"aaa", "a-b", "none"},
		{"aaab", "a-b", "1 4"},
		{"f(a(b)c)d", "%b()", "2 8"},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", "1 3"},
		{"abc", "()b()", "2 2 @2 @3"},
		{"\"x\" 'y'", "([\"'])(.-)%1", "1 3 \" x"},
		{"a-b", "[a%-]+", "1 2"},
		{"]", "[]]", "1 1"},
		{"^", "[%^]", "1 1"},
		{"x", "[^%s]", "1 1"},
		{"caf\xc3\xa9", "[\x80-\xff]+", "4 5"},
		{"0x1F", "%x+", "1 1"},
		{"a\x00b", "%z", "2 2"},
		{"abcabc", "(abc)%1", "1 6 abc"},
		{"x", "%", "error: malformed pattern (ends with '%')"},
		{"x", "[x", "error: malformed pattern (missing ']')"},
		{"x", "(x", "error: unfinished capture"},
		{"x", "x)", "error: invalid pattern capture"},
		{"x", "%1", "error: invalid capture index"},
		{"x", "%f", "error: missing '[' after '%f' in pattern"},
		{"x", strings.Repeat("(", 33), "error: too many captures"},
	} {
		if got := search(c.text, c.pattern, 1e6); got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

// A search that backtracks for long tells its work.
func TestWork(t *testing.T) {
	text := strings.Repeat("a", 1000)
	if got := search(text, "a*a*a*a*b", 1e6); got != "error: too much work" {
		t.Error(got)
	}
	if got := search(text, strings.Repeat("a?", 5000), 1e6); got != "1 1000" {
		t.Error(got)
	}
}

// Whatever the pattern, a search ends, and its places are within the text. A pattern without magic is found where it is.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"l+", "^(%w+)%s*=", "%b()", "%f[%a]", "[^]-z]", "(()", "%1", ".-", "a*a*a*b", "[%", "$^"} {
		f.Add("hello (world) = 1", seed)
	}
	f.Fuzz(func(t *testing.T, text, pat string) {
		got := search(text, pat, 1e5)
		if strings.ContainsAny(pat, "^$*+?.([%-") || strings.Contains(pat, ")") {
			return
		}
		want := "none"
		if at := strings.Index(text, pat); at >= 0 {
			want = fmt.Sprint(at+1, " ", at+len(pat))
		}
		if got != want {
			t.Errorf("%q in %q: %s, want %s", pat, text, got, want)
		}
	})
}
