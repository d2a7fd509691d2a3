package cformat

import (
	"math"
	"testing"
)

// format formats one value with the conversion that a format string is.
func format(t *testing.T, conversion string, v any) string {
	t.Helper()
	f, last, problem := Parse(conversion, 1)
	if problem != "" || last != len(conversion)-1 || f.Verb != conversion[last] {
		t.Fatalf("%s: verb %q at %d, %s", conversion, f.Verb, last, problem)
	}
	switch v := v.(type) {
	case string:
		return f.String(v)
	case byte:
		return f.Char(v)
	case int:
		return f.Signed(int64(v))
	case uint64:
		return f.Unsigned(v)
	}
	return f.Float(v.(float64))
}

// The results are those of printf in glibc.
func TestFormat(t *testing.T) {
	for _, c := range []struct {
		conversion string
		v          any
		want       string
	}{
		{"%d", 42, "42"},
		{"%5d", -42, "  -42"},
		{"%-5d", 42, "42   "},
		{"%05d", -42, "-0042"},
		{"%+d", 42, "+42"},
		{"% d", 42, " 42"},
		{"%.5d", 42, "00042"},
		{"%8.5d", 42, "   00042"},
		{"%u", uint64(math.MaxUint64), "18446744073709551615"},
		{"%x", uint64(255), "ff"},
		{"%#x", uint64(255), "0xff"},
		{"%#x", uint64(0), "0"},
		{"%#X", uint64(255), "0XFF"},
		{"%o", uint64(8), "10"},
		{"%#o", uint64(8), "010"},
		{"%c", byte('a'), "a"},
		{"%3c", byte('a'), "  a"},
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
		if got := format(t, c.conversion, c.v); got != c.want {
			t.Errorf("%s of %v: %q, want %q", c.conversion, c.v, got, c.want)
		}
	}
}

// The bounds are those of Lua: five flags, and two digits for the width and for the precision.
func TestProblems(t *testing.T) {
	for conversion, want := range map[string]string{
		"%-+ #0d":  "",
		"%------d": "invalid format (repeated flags)",
		"%99.99d":  "",
		"%100d":    "invalid format (width or precision too long)",
		"%1.100d":  "invalid format (width or precision too long)",
		"%":        "",
	} {
		if _, _, problem := Parse(conversion, 1); problem != want {
			t.Errorf("%s: %q, want %q", conversion, problem, want)
		}
	}
}
