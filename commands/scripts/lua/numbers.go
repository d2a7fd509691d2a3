package lua

import (
	"math"
	"regexp"
	"strconv"
	"strings"
)

// NumberText returns a number as Lua's tostring does: 14 digits at most.
func NumberText(f float64) string {
	var buf [32]byte
	return string(AppendNumber(buf[:0], f, 14))
}

// AppendNumber appends a number as %.Ng of C does: N significant digits at most, inf and nan in lower case.
func AppendNumber(out []byte, f float64, digits int) []byte {
	if i := int64(f); float64(i) == f && i > -1e6 && i < 1e6 && digits >= 6 && i != 0 {
		return strconv.AppendInt(out, i, 10)
	}
	switch {
	case f != f && math.Signbit(f):
		return append(out, "-nan"...)
	case f != f:
		return append(out, "nan"...)
	case math.IsInf(f, 1):
		return append(out, "inf"...)
	case math.IsInf(f, -1):
		return append(out, "-inf"...)
	}
	return strconv.AppendFloat(out, f, 'g', digits, 64)
}

// ParseNumber reads a whole string as Lua's tonumber does: white space around the number is skipped, and the
// string ends at a zero byte.
func ParseNumber(s string) (f float64, ok bool) {
	s = strings.TrimLeft(s, spaces)
	f, n := Strtod(s)
	if n == 0 {
		return 0, false
	}
	rest := strings.TrimLeft(s[n:], spaces)
	return f, rest == "" || rest[0] == 0
}

// spaces are what isspace of C accepts.
const spaces = " \t\n\v\f\r"

// numeral is the longest number at the start of a text, as strtod of C reads it.
var numeral = regexp.MustCompile(`^[+-]?(?i:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[+-]?[0-9]+)?|inf(?:inity)?|` +
	`nan(?:\([0-9a-z_]*\))?|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?)`)

// Strtod reads the longest number at the start of s as strtod of C does: decimal, hexadecimal, inf, infinity,
// nan and nan(...), each with a sign. n is its length in bytes, 0 if there is none. A number beyond the
// doubles is infinite.
func Strtod(s string) (f float64, n int) {
	for n < len(s) && (isDigit(s[n]) || s[n] == '.' || s[n] == '-') {
		n++
	}
	if n > 0 && (n == len(s) || !isAlpha(s[n])) { // often
		if f, err := strconv.ParseFloat(s[:n], 64); err == nil {
			return f, n
		}
	}
	text := numeral.FindString(s)
	n = len(text)
	lower := strings.ToLower(text)
	switch digits := strings.TrimLeft(lower, "+-"); {
	case n == 0:
		return 0, 0
	case strings.HasPrefix(digits, "nan"):
		if f = math.Float64frombits(0x7ff8000000000000); lower[0] == '-' {
			f = math.Copysign(f, -1)
		}
		return f, n
	case strings.HasPrefix(digits, "0x") && !strings.Contains(digits, "p"): // Go wants an exponent, C does not
		text += "p0"
	}
	f, _ = strconv.ParseFloat(text, 64) // out of range it is infinite, as in C
	return f, n
}
