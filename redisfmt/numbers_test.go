package redisfmt

import (
	"math"
	"strconv"
	"strings"
	"testing"
)

func TestParseInt(t *testing.T) {
	t.Parallel()
	good := map[string]int64{
		"0": 0, "1": 1, "-1": -1, "10": 10, "9223372036854775807": math.MaxInt64,
		"-9223372036854775808": math.MinInt64, "1000000000000000000": 1e18,
	}
	for s, want := range good {
		if got, ok := ParseInt(s); !ok || got != want {
			t.Errorf("ParseInt(%q) = %d, %t", s, got, ok)
		}
	}
	for _, s := range []string{
		"", "-", "+1", "-0", "00", "01", "-01", " 1", "1 ", "1.0", "1e3", "0x1", "1_0", "a", "\x00", "1\x00",
		"9223372036854775808", "-9223372036854775809", "18446744073709551616", "99999999999999999999",
	} {
		if got, ok := ParseInt(s); ok {
			t.Errorf("ParseInt(%q) = %d", s, got)
		}
	}
}

func TestAddInt(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		a, b int64
		ok   bool
	}{
		{1, 2, true}, {math.MaxInt64, 0, true}, {math.MaxInt64, 1, false}, {math.MinInt64, -1, false},
		{math.MinInt64, math.MaxInt64, true}, {math.MinInt64, math.MinInt64, false}, {-1, math.MinInt64, false},
	} {
		if sum, ok := AddInt(tt.a, tt.b); ok != tt.ok || ok && sum != tt.a+tt.b {
			t.Errorf("%d + %d = %d, %t", tt.a, tt.b, sum, ok)
		}
	}
}

func TestParseCursor(t *testing.T) {
	t.Parallel()
	good := map[string]uint64{
		"": 0, "0": 0, "17": 17, "+17": 17, "007": 7, "-1": math.MaxUint64, "18446744073709551615": math.MaxUint64,
	}
	for s, want := range good {
		if got, ok := ParseCursor(s); !ok || got != want {
			t.Errorf("ParseCursor(%q) = %d, %t", s, got, ok)
		}
	}
	for _, s := range []string{"-", "+", "+-1", " 1", "1 ", "a", "1a", "18446744073709551616", "1_0"} {
		if got, ok := ParseCursor(s); ok {
			t.Errorf("ParseCursor(%q) = %d", s, got)
		}
	}
}

// The sums are what Redis 7.0.15 on x86-64 replies to INCRBYFLOAT. See also
// ../testdata/strings.txt, which is played against it.
func TestFloat(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ a, b, want string }{
		{"0", "3.0e3", "3000"},
		{"3000", "0.1", "3000.10000000000000009"},
		{"10.50", "0.1", "10.6"},
		{"0.1", "0.2", "0.3"},
		{"-0", "-0", "0"},
		{"0", "0x10", "16"},
		{"0", "-0X1.8p1", "-3"},
		{"1", "1e-4940", "1"},
		{"0e999999999999999999999", "5", "5"},
		{".5", "5.", "5.5"},
		{"9223372036854775807", "1", "9223372036854775808"},
		{"18446744073709551616", "1", "18446744073709551616"}, // 65 bits are one too many
		{"1.00000000000000000001", "0", "1"},
	} {
		a, okA := ParseFloat(tt.a)
		b, okB := ParseFloat(tt.b)
		if !okA || !okB {
			t.Errorf("%s or %s is refused", tt.a, tt.b)
			continue
		}
		if sum, ok := AddFloat(a, b); !ok || FormatFloat(sum) != tt.want {
			t.Errorf("%s + %s = %s, want %s", tt.a, tt.b, FormatFloat(sum), tt.want)
		}
	}
	for _, s := range []string{
		"", "+", "-", ".", "e5", "1e", "1e+", "nan", "-nan", " 1", "1 ", "1\x00", "1_0", "0x", "0x_1", "0b1", "--1",
		"1e5000", "1e4933", "-1e4933", "1e-5000", "1e-4960", "1e999999999999999999999", strings.Repeat("9", 5120),
	} {
		if f, ok := ParseFloat(s); ok {
			t.Errorf("ParseFloat(%.40q) = %s", s, f)
		}
	}
	for _, pair := range [][2]string{{"Infinity", "-inf"}, {"1", "inf"}, {"1.1e4932", "1.1e4932"}} {
		a, okA := ParseFloat(pair[0])
		b, okB := ParseFloat(pair[1])
		if !okA || !okB {
			t.Errorf("%s or %s is refused, which Redis takes for a number", pair[0], pair[1])
			continue
		}
		if sum, ok := AddFloat(a, b); ok {
			t.Errorf("%s + %s = %s", pair[0], pair[1], sum)
		}
	}
}

// FuzzNumbers checks that every written number can be read again, and that no text takes long.
func FuzzNumbers(f *testing.F) {
	for _, s := range []string{"0", "-1", "1e300", "0x1p-16445", "1e-4950", "inf", "+.5e-3", "9223372036854775808", "0x1p9999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if n, ok := ParseInt(s); ok && strconv.FormatInt(n, 10) != s {
			t.Errorf("%q is read as %d", s, n)
		}
		x, ok := ParseFloat(s)
		if !ok || x.IsInf() {
			return
		}
		text := FormatFloat(x)
		if len(text) > 5000 {
			t.Errorf("%.40q is written in %d bytes", s, len(text))
		}
		again, ok := ParseFloat(text)
		if !ok || FormatFloat(again) != text {
			t.Errorf("%q is written as %s, which is read as %v", s, text, again)
		}
	})
}
