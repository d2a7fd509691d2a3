package lua

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

var errWork = errors.New("too much work")

// turns is an Interrupt that ends a script when it has been asked so often.
type turns int

func (*turns) Holds(int64) error { return nil }

func (n *turns) Stop() error {
	if *n--; *n < 0 {
		return errWork
	}
	return nil
}

// call calls a function of the library string, and shows its results, or its error.
func call(name string, asks turns, args ...Value) (result string) {
	m := New()
	m.Reset(64<<20, &asks)
	defer func() {
		if r := recover(); r != nil {
			err := m.Ended(r)
			if err == nil {
				panic(r)
			}
			result = "error: " + err.Error()
		}
	}()
	m.protect(func() {
		for _, v := range m.CallAll(m.Globals.Get("string").(*Table).Get(name), args) {
			result += " " + Text(v)
		}
	}).show(&result)
	return strings.TrimPrefix(result, " ")
}

func (e *thrown) show(result *string) {
	if e != nil {
		*result = "error: " + Text(e.v)
	}
}

// The results are those of string.find of Lua 5.1.
func TestMatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, pattern, want string }{
		{"hello", "l+", "3 4"},
		{"hello", "^l", "nil"},
		{"hello", "^he", "1 2"},
		{"hello", "lo$", "4 5"},
		{"a$b", "a$b", "1 3"},
		{"hello", "", "1 0"},
		{"key = value", "(%w+)%s*=%s*(%w+)", "1 11 key value"},
		{"2026-11-23", "(%d+)-(%d+)-(%d+)", "1 10 2026 11 23"},
		{"<<a>>", "<(.-)>", "1 4 <a"},
		{"aaa", "a-b", "nil"},
		{"aaab", "a-b", "1 4"},
		{"f(a(b)c)d", "%b()", "2 8"},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", "1 3"},
		{"abc", "()b()", "2 2 2 3"},
		{"\"x\" 'y'", "([\"'])(.-)%1", "1 3 \" x"},
		{"a-b", "[a%-]+", "1 2"},
		{"]", "[]]", "1 1"},
		{"^", "[%^]", "1 1"},
		{"x", "[^%s]", "1 1"},
		{"caf\xc3\xa9", "[\x80-\xff]+", "4 5"},
		{"0x1F", "%x+", "1 1"},
		{"a\x00b", "%z", "2 2"},
		{"abcabc", "(abc)%1", "1 6 abc"},
		{"abc", "()%1b", "nil"},
		{"x", "%", "error: malformed pattern (ends with '%')"},
		{"x", "[x", "error: malformed pattern (missing ']')"},
		{"x", "(x", "error: unfinished capture"},
		{"x", ".)", "error: invalid pattern capture"},
		{"x", "%1", "error: invalid capture index"},
		{"x", "%f", "error: missing '[' after '%f' in pattern"},
		{"x", strings.Repeat("(", 33), "error: too many captures"},
	} {
		if got := call("find", 50, c.text, c.pattern); got != c.want {
			t.Errorf("%q in %q: %s, want %s", c.pattern, c.text, got, c.want)
		}
	}
}

// A search that backtracks for long tells its work.
func TestWork(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", 1000)
	if got := call("find", 50, text, "a*a*a*a*b"); got != "error: too much work" {
		t.Error(got)
	}
	if got := call("find", 50, text, strings.Repeat("a?", 5000)); got != "1 1000" {
		t.Error(got)
	}
}

// What takes long before a search begins is work too.
func TestLongPattern(t *testing.T) {
	t.Parallel()
	for _, function := range []string{"find", "match", "gsub"} {
		if got := call(function, 0, "x", strings.Repeat("y", 2_000_000), "1"); got != "error: too much work" {
			t.Errorf("%s: %s", function, got)
		}
	}
}

// So is what a search or a replacement passes over without taking anything.
func TestEmptyMatches(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("y", 100)
	if got := call("gsub", 50, text, "", strings.Repeat("%0", 100_000)); got != "error: too much work" {
		t.Errorf("empty captures: %.30s", got)
	}
	set := "[" + strings.Repeat("x", 10_000) + "]"
	if got := call("find", 200, "yy", strings.Repeat("y?", 200)+set); got != "error: too much work" {
		t.Errorf("a set at the end of a text: %s", got)
	}
	args := append([]Value{strings.Repeat("%.0s", 1000)}, slices.Repeat([]Value{strings.Repeat("y", 100_000)}, 1000)...)
	if got := call("format", 50, args...); got != "error: too much work" {
		t.Errorf("texts that are cut off: %s", got)
	}
}

// Whatever the pattern, a search ends, and its places are within the text. A pattern without magic is found
// where it is.
func FuzzMatch(f *testing.F) {
	for _, seed := range []string{"l+", "^(%w+)%s*=", "%b()", "%f[%a]", "[^]-z]", "(()", "%1", ".-", "a*a*a*b", "[%", "$^"} {
		f.Add("hello (world) = 1", seed)
	}
	f.Fuzz(func(t *testing.T, text, pat string) {
		got := call("find", 5, text, pat)
		if strings.ContainsAny(pat, "^$*+?.([%-\x00") || strings.Contains(pat, ")") {
			return
		}
		want := "nil"
		if at := strings.Index(text, pat); at >= 0 {
			want = fmt.Sprint(at+1, " ", at+len(pat))
		}
		if got != want {
			t.Errorf("%q in %q: %s, want %s", pat, text, got, want)
		}
	})
}

// The results are those of printf in glibc.
func TestFormat(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		conversion string
		v          Value
		want       string
	}{
		{"%d", 42.0, "42"},
		{"%5d", -42.0, "  -42"},
		{"%-5d", 42.0, "42   "},
		{"%05d", -42.0, "-0042"},
		{"%+d", 42.0, "+42"},
		{"% d", 42.0, " 42"},
		{"%.5d", 42.0, "00042"},
		{"%8.5d", 42.0, "   00042"},
		{"%u", float64(1 << 63), "9223372036854775808"},
		{"%x", 255.0, "ff"},
		{"%#x", 255.0, "0xff"},
		{"%#x", 0.0, "0"},
		{"%#X", 255.0, "0XFF"},
		{"%o", 8.0, "10"},
		{"%#o", 8.0, "010"},
		{"%#08x", 255.0, "0x0000ff"},
		{"%#010X", 255.0, "0X000000FF"},
		{"%-#08x", 255.0, "0xff    "},
		{"%#8.4x", 255.0, "  0x00ff"},
		{"%#06o", 8.0, "000010"},
		{"%#.0o", 0.0, "0"},
		{"%.0d", 0.0, ""},
		{"%+.0d", 0.0, "+"},
		{"% 3.0d", 0.0, "   "},
		{"%+ 06d", 7.0, "+00007"},
		{"%+x", 255.0, "ff"},
		{"%d", -0x1p63, "-9223372036854775808"},
		{"%c", 97.0, "a"},
		{"%3c", 97.0, "  a"},
		{"%s", "text", "text"},
		{"%6s", "text", "  text"},
		{"%-6s", "text", "text  "},
		{"%.2s", "text", "te"},
		{"%s", "te\x00xt", "te"},
		{"%f", 1.5, "1.500000"},
		{"%.0f", 2.5, "2"},
		{"%#.0f", 2.5, "2."},
		{"%08.3f", -1.5, "-001.500"},
		{"%+.1f", 0.25, "+0.2"},
		{"%e", 12345.678, "1.234568e+04"},
		{"%.2E", 1e100, "1.00E+100"},
		{"%g", 1e20, "1e+20"},
		{"%g", 0.0001, "0.0001"},
		{"%.14g", 0.1, "0.1"},
		{"%G", 1e-10, "1E-10"},
		{"%f", math.Inf(1), "inf"},
		{"%E", math.Inf(-1), "-INF"},
		{"%5g", math.Inf(1), "  inf"},
		{"%05g", math.Inf(1), "  inf"},
		{"%+g", math.Inf(1), "+inf"},
	} {
		if got := call("format", 5, "<"+c.conversion+">", c.v); got != "<"+c.want+">" {
			t.Errorf("%s of %v: %q, want %q", c.conversion, c.v, got, c.want)
		}
	}
}

// The bounds are those of Lua: five flags, and two digits for the width and for the precision.
func TestProblems(t *testing.T) {
	t.Parallel()
	for conversion, want := range map[string]string{
		"%-+ #0d":  "",
		"%------d": "invalid format (repeated flags)",
		"%99.99d":  "",
		"%100d":    "invalid format (width or precision too long)",
		"%1.100d":  "invalid format (width or precision too long)",
		"%":        "invalid option '%' to 'format'",
	} {
		got, failed := strings.CutPrefix(call("format", 5, conversion, 1.0), "error: ")
		if failed != (want != "") || failed && got != want {
			t.Errorf("%s: %q, want %q", conversion, got, want)
		}
	}
}
