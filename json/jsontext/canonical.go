package jsontext

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ParseNumber reads a number of JSON. One beyond the doubles is infinite.
func ParseNumber(text string) float64 {
	if len(text) < 16 { // 15 digits are exact, and so is their quotient by a power of ten up to 1e22
		n, point, digits := 0, -1, text
		if digits[0] == '-' {
			digits = digits[1:]
		}
		for i := 0; ; i++ {
			if i == len(digits) {
				f := float64(n)
				if point >= 0 {
					f /= powers[len(digits)-point-1]
				}
				if len(digits) < len(text) {
					f = -f
				}
				return f
			}
			if digits[i] == '.' {
				point = i
				continue
			}
			c := digits[i] - '0'
			if c > 9 {
				break
			}
			n = n*10 + int(c)
		}
	}
	f, _ := strconv.ParseFloat(text, 64) // beyond the range f is infinite
	return f
}

// powers are powers of ten.
var powers = [16]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

// AppendNumber appends the shortest JSON of a number, as encoding/json and JavaScript write it.
func AppendNumber(out []byte, n float64) []byte {
	switch magnitude := math.Abs(n); {
	case n == 0:
		return append(out, '0') // -0 equals 0
	case math.IsInf(n, 0): // a document may say 1e999
		return append(out, map[bool]string{true: "1e999", false: "-1e999"}[n > 0]...)
	case magnitude < 1e-6 || magnitude >= 1e21:
		out = strconv.AppendFloat(out, n, 'e', -1, 64)
		if k := len(out) - 2; out[k] == '0' && out[k-1] == '-' { // e-07 is written e-7
			out = append(out[:k], out[k+1])
		}
		return out
	}
	return strconv.AppendFloat(out, n, 'f', -1, 64)
}

// AppendString appends a string of JSON. What is no UTF-8 becomes U+FFFD.
func AppendString(out []byte, s string) []byte {
	const hex = "0123456789abcdef"
	out = append(out, '"')
	from := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= utf8.RuneSelf {
			r, size := utf8.DecodeRuneInString(s[i:])
			if r == utf8.RuneError && size == 1 {
				out = append(append(out, s[from:i]...), "\uFFFD"...)
				from = i + 1
			}
			i += size
			continue
		}
		if c >= ' ' && c != '"' && c != '\\' {
			i++
			continue
		}
		out = append(out, s[from:i]...)
		switch c {
		case '"', '\\':
			out = append(out, '\\', c)
		case '\n':
			out = append(out, '\\', 'n')
		case '\r':
			out = append(out, '\\', 'r')
		case '\t':
			out = append(out, '\\', 't')
		case '\b':
			out = append(out, '\\', 'b')
		case '\f':
			out = append(out, '\\', 'f')
		default:
			out = append(out, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
		i++
		from = i
	}
	return append(append(out, s[from:]...), '"')
}

// AppendCanonical appends a value with sorted members, without repeated ones, with shortest numbers: the same
// text for equal values.
func AppendCanonical(out []byte, value string) []byte {
	return AppendCanonicalWith(out, value, func(out []byte, number string) []byte {
		return AppendNumber(out, ParseNumber(number))
	})
}

// AppendCanonicalWith is AppendCanonical with another way to write numbers.
func AppendCanonicalWith(out []byte, value string, appendNumber func(out []byte, number string) []byte) []byte {
	out, _ = appendCanonicalAt(out, value, 0, appendNumber)
	return out
}

// appendCanonicalAt is AppendCanonicalWith for the value at i, in one pass. It returns its end.
func appendCanonicalAt(out []byte, text string, i int, appendNumber func(out []byte, number string) []byte) (_ []byte, end int) {
	switch c := text[i]; {
	case c == '"':
		end = StringEnd(text, i)
		return AppendString(out, Unquote(text[i:end])), end
	case c == '-' || c >= '0' && c <= '9':
		end = ValueEnd(text, i)
		return appendNumber(out, text[i:end]), end
	case c != '[' && c != '{':
		end = ValueEnd(text, i)
		return append(out, text[i:end]...), end
	}
	out = append(out, text[i])
	from := len(out)
	w := WalkAt(text, i)
	if w.Array {
		for w.Step() {
			if len(out) > from {
				out = append(out, ',')
			}
			out, w.Pos = appendCanonicalAt(out, text, w.ValueFrom, appendNumber)
		}
		return append(out, ']'), w.Start + 1
	}
	var members []canonicalMember
	sorted := true
	for w.Step() {
		m := canonicalMember{name: w.Name(), from: len(out)}
		out = append(AppendString(out, m.name), ':')
		out, w.Pos = appendCanonicalAt(out, text, w.ValueFrom, appendNumber)
		out = append(out, ',')
		m.to = len(out)
		sorted = sorted && (len(members) == 0 || members[len(members)-1].name < m.name)
		members = append(members, m)
	}
	if !sorted {
		out = append(out[:from], sortMembers(out, members)...)
	}
	if len(out) > from {
		out = out[:len(out)-1] // the last comma
	}
	return append(out, '}'), w.Start + 1
}

// canonicalMember is a member and where its text is, with a comma.
type canonicalMember struct {
	name     string
	from, to int
}

// sortMembers returns the text of the members in the order of names, without repeated names.
func sortMembers(text []byte, members []canonicalMember) []byte {
	slices.SortFunc(members, func(a, b canonicalMember) int { return strings.Compare(a.name, b.name) })
	var out []byte
	for i, m := range members {
		if i > 0 && members[i-1].name == m.name || i+1 < len(members) && members[i+1].name == m.name {
			continue
		}
		out = append(out, text[m.from:m.to]...)
	}
	return out
}
