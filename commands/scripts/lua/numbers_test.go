package lua

import (
	"math"
	"strings"
	"testing"
)

func TestNumbersAreReadAsCReadsThem(t *testing.T) {
	t.Parallel()
	inf, nan := math.Inf(1), math.NaN()
	tests := []struct {
		text string
		f    float64
		n    int
	}{
		{"", 0, 0}, {"-", 0, 0}, {"+", 0, 0}, {".", 0, 0}, {"x", 0, 0}, {"e5", 0, 0}, {"- 1", 0, 0}, {"_1", 0, 0},
		{"1", 1, 1}, {"-1.5", -1.5, 4}, {"+2", 2, 2}, {".5", 0.5, 2}, {"5.", 5, 2}, {"-.5e1x", -5, 5}, {"007", 7, 3}, {"1_0", 1, 1},
		{"1e5", 1e5, 3}, {"1e", 1, 1}, {"1e+", 1, 1}, {"1e+2", 100, 4}, {"1E-2", 0.01, 4}, {"1.e2", 100, 4}, {"1e400", inf, 5}, {"-1e400", -inf, 6}, {"1e-400", 0, 6},
		{"0x10", 16, 4}, {"0X.8", 0.5, 4}, {"0x1p4", 16, 5}, {"0x1p", 1, 3}, {"0x", 0, 1}, {"0xg", 0, 1}, {"-0x1.8p1", -3, 8},
		{"inf", inf, 3}, {"-Infinity", -inf, 9}, {"infinit", inf, 3}, {"INFx", inf, 3}, {"nan", nan, 3}, {"NaN(12_a)", nan, 9}, {"nan(", nan, 3}, {"nan(-)", nan, 3}, {"nan(\u212a)", nan, 3}, {"in", 0, 0},
		{"1.5.5", 1.5, 3}, {"1-1", 1, 1}, {"-0x.p1", 0, 2}, {"+nan()x", nan, 6}, {"0x1e+1", 30, 4}, {"1p1", 1, 1},
	}
	for _, test := range tests {
		f, n := Strtod(test.text)
		if n != test.n || f != test.f && !(f != f && test.f != test.f) {
			t.Errorf("%q is %v with %d bytes, want %v with %d", test.text, f, n, test.f, test.n)
		}
	}
	for text, want := range map[string]bool{" 7 ": true, "7x": false, "\t-7\n": true, "7\x00x": true, "": false, " ": false, "0x1F": true, "7 7": false} {
		if _, ok := ParseNumber(text); ok != want {
			t.Errorf("%q is a number: %v, want %v", text, ok, want)
		}
	}
}

// The results are those of tonumber of Lua 5.1.
func TestNumbersOfABase(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		text string
		base int
		want string
	}{
		{"ff", 16, "255"}, {" -0xF ", 16, "1.844674407371e+19"}, {"Zz", 36, "1295"}, {"12", 2, "nil"}, {"", 8, "nil"}, {"0x", 16, "nil"},
		{"ffffffffffffffffF", 16, "1.844674407371e+19"}, {"-" + strings.Repeat("9", 30), 11, "1.844674407371e+19"},
		{"fffffffffffffffffg", 16, "nil"}, {strings.Repeat("7", 30) + "8", 8, "nil"}, {strings.Repeat("z", 30) + " z", 36, "nil"},
	} {
		m := New()
		if got := Text(m.Call(m.Globals.Get("tonumber"), c.text, float64(c.base))); got != c.want {
			t.Errorf("%q to the base %d is %s, want %s", c.text, c.base, got, c.want)
		}
	}
}

func TestNumbersAreWrittenAsCWritesThem(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{
		0: "0", 1: "1", -12: "-12", 0.1: "0.1", 1.0 / 3: "0.33333333333333", 1e14: "1e+14", 123456789012345: "1.2345678901234e+14", 99999999999999: "99999999999999",
		1e15: "1e+15", 1e100: "1e+100", 1e-5: "1e-05", 0.0001: "0.0001", math.Inf(1): "inf", math.Inf(-1): "-inf", 999999: "999999", 1000000: "1000000", 2.5: "2.5",
	} {
		if got := NumberText(f); got != want {
			t.Errorf("%v is %s, want %s", f, got, want)
		}
	}
	if got := NumberText(math.Copysign(0, -1)); got != "-0" {
		t.Errorf("-0 is %s", got)
	}
	if got := NumberText(math.Copysign(math.NaN(), -1)); got != "-nan" {
		t.Errorf("-nan is %s", got)
	}
	if got := string(AppendNumber(nil, 123456, 3)); got != "1.23e+05" {
		t.Errorf("123456 with 3 digits is %s", got)
	}
}

func TestIntegersAreThoseOfC(t *testing.T) {
	t.Parallel()
	for _, f := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0x1p63, -0x1p64, 1e300} {
		if got := Truncate(f); got != math.MinInt64 {
			t.Errorf("%v is %d", f, got)
		}
	}
	for f, want := range map[float64]uint64{-1: math.MaxUint64, -1.9: math.MaxUint64, 1.9: 1, 0x1p63: 1 << 63, 0x1p64: 0, math.Inf(1): 0, math.Inf(-1): 1 << 63, -0x1p63: 1 << 63} {
		if got := TruncateUnsigned(f); got != want {
			t.Errorf("%v is %d, want %d", f, got, want)
		}
	}
}
