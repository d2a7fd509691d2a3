package redisfmt

import (
	"fmt"
	"strings"
)

// EqualFold reports whether two words are equal but for the case of ASCII letters, as C's strcasecmp
// does. Redis compares keywords so. [strings.EqualFold] also folds letters beyond ASCII.
func EqualFold(a, b string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range len(a) {
		if upper(a[i]) != upper(b[i]) {
			return false
		}
	}
	return true
}

func upper(c byte) byte {
	if 'a' <= c && c <= 'z' {
		c -= 'a' - 'A'
	}
	return c
}

// CString returns s up to its first zero byte. Redis prints strings of users that way.
func CString(s string) string {
	if i := strings.IndexByte(s, 0); i >= 0 {
		return s[:i]
	}
	return s
}

// A backslash and one of the letters stands for the byte at the same place.
const (
	escapeLetters = "nrtab"
	escapedBytes  = "\n\r\t\a\b"
)

// WriteQuoted writes bytes as printable ASCII in double quotes, as Redis' sdscatrepr does.
func WriteQuoted(out *strings.Builder, s string) {
	out.WriteByte('"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '\\' || c == '"':
			out.WriteByte('\\')
			out.WriteByte(c)
		case strings.IndexByte(escapedBytes, c) >= 0:
			out.WriteByte('\\')
			out.WriteByte(escapeLetters[strings.IndexByte(escapedBytes, c)])
		case c < ' ' || c > '~':
			fmt.Fprintf(out, `\x%02x`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
}
