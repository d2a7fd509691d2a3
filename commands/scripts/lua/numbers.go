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

// ParseNumber reads a whole string as Lua's tonumber does: white space around the number is skipped, and the string
// ends at a zero byte.
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

// Strtod reads the longest number at the start of s as strtod of C does: decimal, hexadecimal, inf, infinity, nan and
// nan(...), each with a sign. n is its length in bytes, 0 if there is none. A number beyond the doubles is infinite.
func Strtod(s string) (f float64, n int) {
	i := 0
	negative := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		negative = s[i] == '-'
		i++
	}
	switch rest := s[i:]; {
	case hasPrefixFold(rest, "inf"):
		f, n = math.Inf(1), 3
		if hasPrefixFold(rest, "infinity") {
			n = 8
		}
	case hasPrefixFold(rest, "nan"):
		f, n = math.Float64frombits(0x7ff8000000000000), 3
		if end := nanEnd(rest); end > 0 {
			n = end
		}
	case hasPrefixFold(rest, "0x") && hexEnd(rest) > 2:
		f, n = parseHex(rest[:hexEnd(rest)])
	default:
		if n = decimalEnd(rest); n == 0 {
			return 0, 0
		}
		f, _ = strconv.ParseFloat(rest[:n], 64) // out of range it is infinite, as in C
	}
	if negative {
		f = math.Copysign(f, -1)
	}
	return f, i + n
}

// hasPrefixFold reports whether s starts with a prefix in lower case, in any case of its ASCII letters.
func hasPrefixFold(s, prefix string) bool {
	return len(s) >= len(prefix) && strings.EqualFold(s[:len(prefix)], prefix)
}

// nanEnd returns the end of nan(...), or 0.
func nanEnd(s string) int {
	if len(s) < 4 || s[3] != '(' {
		return 0
	}
	for i := 4; i < len(s); i++ {
		switch c := s[i]; {
		case c == ')':
			return i + 1
		case c == '_', isDigit(c), 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return 0
		}
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' }

// decimalEnd returns the end of the decimal number at the start of s, 0 if there is none.
func decimalEnd(s string) int {
	return numberEnd(s, 0, 'e', isDigit)
}

// hexEnd returns the end of the hexadecimal number at the start of s, 0x included; without digits it is 0.
func hexEnd(s string) int {
	return numberEnd(s, 2, 'p', isHex)
}

// numberEnd returns the end of digits, a point, digits and an exponent that start at i; without digits it is 0.
func numberEnd(s string, i int, exponent byte, digit func(byte) bool) int {
	digits := 0
	for ; i < len(s) && digit(s[i]); i++ {
		digits++
	}
	if i < len(s) && s[i] == '.' {
		point := i
		for i++; i < len(s) && digit(s[i]); i++ {
			digits++
		}
		if digits == 0 {
			i = point
		}
	}
	if digits == 0 {
		return 0
	}
	if i < len(s) && s[i]|0x20 == exponent {
		k := i + 1
		if k < len(s) && (s[k] == '-' || s[k] == '+') {
			k++
		}
		if k < len(s) && isDigit(s[k]) {
			for i = k; i < len(s) && isDigit(s[i]); i++ {
			}
		}
	}
	return i
}

// parseHex reads a hexadecimal number. Go wants an exponent, C does not.
func parseHex(s string) (f float64, n int) {
	text := s
	if !strings.ContainsAny(s, "pP") {
		text += "p0"
	}
	f, _ = strconv.ParseFloat(text, 64)
	return f, len(s)
}
