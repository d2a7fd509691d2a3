package jsontext

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Unquote returns a string of valid JSON without quotes and escapes. Half of a surrogate pair becomes U+FFFD.
// Without escapes the result shares memory with the text.
func Unquote(quoted string) string {
	text := quoted[1 : len(quoted)-1]
	i := strings.IndexByte(text, '\\')
	if i < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i >= 0 {
		out = append(out, text[:i]...)
		if text = text[i:]; text[1] == 'u' {
			r, size := UnquoteRune(text)
			out, text = utf8.AppendRune(out, r), text[size:]
		} else {
			out, text = append(out, unescaped[text[1]]), text[2:]
		}
		i = strings.IndexByte(text, '\\')
	}
	return string(append(out, text...))
}

// Unescaped reports whether a string of JSON may hold s as it is.
func Unescaped(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == '"' || s[i] == '\\' {
			return false
		}
	}
	return true
}

// EqualsString reports whether the value at i is a string with a content that needs no escapes. sure is false
// if an escape in the text hides the answer.
func EqualsString(text string, i int, content string) (equal, sure bool) {
	if text[i] != '"' {
		return false, true
	}
	i++
	for k := range len(content) {
		if c := text[i+k]; c != content[k] {
			return false, c != '\\'
		}
	}
	c := text[i+len(content)]
	return c == '"', c != '\\'
}

// unescaped is what a character after a backslash stands for.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 'f': '\f', 'n': '\n', 'r': '\r', 't': '\t'}

// UnquoteRune reads \uXXXX at the start of text, or two of them that are a surrogate pair. Half of a pair is
// U+FFFD. size is 0 if there is none.
func UnquoteRune(text string) (r rune, size int) {
	r = unit(text)
	switch {
	case r < 0:
		return 0, 0
	case r < 0xD800 || r >= 0xE000:
		return r, 6
	case r < 0xDC00:
		if low := unit(text[6:]); low >= 0xDC00 && low < 0xE000 {
			return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

// unit reads the \uXXXX at the start of text; it returns -1 if there is none.
func unit(text string) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	n, err := strconv.ParseUint(text[2:6], 16, 16)
	if err != nil {
		return -1
	}
	return rune(n)
}
