package lua

import (
	"math"
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

// Strtod reads the longest number at the start of s as strtod of C does: decimal, hexadecimal, inf, infinity,
// nan and nan(...), each with a sign. n is its length in bytes, 0 if there is none. A number beyond the
// doubles is infinite.
func Strtod(s string) (f float64, n int) {
	body := s
	if s != "" && (s[0] == '+' || s[0] == '-') {
		body = s[1:]
	}
	sign := len(s) - len(body)
	for _, word := range []string{"infinity", "inf", "nan"} {
		if n = len(word); len(body) < n || !strings.EqualFold(body[:n], word) {
			continue
		}
		if f = math.Inf(1); word == "nan" {
			f = math.Float64frombits(0x7ff8000000000000)
			if inner, ok := strings.CutPrefix(body[n:], "("); ok {
				k := span(inner, func(c byte) bool { return c == '_' || inClass(c, 'w') })
				if k < len(inner) && inner[k] == ')' {
					n += k + 2
				}
			}
		}
		if s[0] == '-' {
			f = math.Copysign(f, -1)
		}
		return f, sign + n
	}
	if len(body) > 2 && body[0] == '0' && body[1]|0x20 == 'x' {
		n, exponent := numeral(body[2:], func(c byte) bool { return inClass(c, 'x') }, 'p')
		if n > 0 {
			n += sign + 2
			text := s[:n]
			if !exponent { // Go wants one, C does not
				text += "p0"
			}
			f, _ = strconv.ParseFloat(text, 64) // out of range it is infinite, as in C
			return f, n
		}
	}
	if n, _ = numeral(body, isDigit, 'e'); n > 0 {
		n += sign
	}
	f, _ = strconv.ParseFloat(s[:n], 64)
	return f, n
}

// numeral returns the length of the digits at the start of s, with a point and an exponent after a mark; 0 if
// there are none. A regular expression would take minutes for the longest texts.
func numeral(s string, digit func(byte) bool, mark byte) (n int, exponent bool) {
	n = span(s, digit)
	if n < len(s) && s[n] == '.' {
		if fraction := span(s[n+1:], digit); n+fraction > 0 {
			n += 1 + fraction
		}
	}
	if n > 0 && n < len(s) && s[n]|0x20 == mark {
		at := n + 1
		if at < len(s) && (s[at] == '+' || s[at] == '-') {
			at++
		}
		if size := span(s[at:], isDigit); size > 0 {
			return at + size, true
		}
	}
	return n, false
}

// span returns how many bytes at the start of s are of a kind.
func span(s string, is func(byte) bool) (n int) {
	for n < len(s) && is(s[n]) {
		n++
	}
	return n
}
