package query

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"mayfly/json/jsontext"
)

// Error is an error in the text of a query.
type Error struct {
	At   int    // the position of the fault in characters, from 1; 0 if it has none
	text string // one line
}

func (e *Error) Error() string {
	if e.At == 0 {
		return "query: " + e.text
	}
	return fmt.Sprintf("query, at %d: %s", e.At, e.text)
}

// tokenKind is the type of a token.
type tokenKind uint8

// The kinds of tokens.
const (
	endToken   tokenKind = iota
	wordToken            // a name or a keyword
	paramToken           // @name
	numberToken
	stringToken
	markToken // punctuation
)

// token is a word, a literal or a punctuation mark of a query.
type token struct {
	kind  tokenKind
	at    int     // the byte where it starts
	text  string  // as it is written
	upper string  // a word in upper case
	num   float64 // the value of a number
	str   string  // the value of a string
}

// is reports whether the token is the keyword or mark.
func (t token) is(text string) bool {
	return t.kind == wordToken && t.upper == text || t.kind == markToken && t.text == text
}

// maxQuoted is the largest number of bytes of a query that an error repeats.
const maxQuoted = 40

// marks are the punctuation marks of two characters. The others have one.
var marks = []string{"!=", "<>", "<=", ">=", "||"}

// Split splits a query into tokens. The last one is endToken. An error is an [*Error].
func splitTokens(text string) ([]token, error) {
	var tokens []token
	for i := 0; ; {
		var closed bool
		if i, closed = skipSpace(text, i); !closed {
			return nil, errorAt(text, i, "a comment is not closed")
		}
		if i == len(text) || text[i] == ';' {
			if rest := afterEnd(text, i); rest < len(text) {
				return nil, errorAt(text, i, "; ends the query: legal is one query")
			}
			return append(tokens, token{kind: endToken, at: i}), nil
		}
		t := token{at: i}
		end := i
		if size, instead := slip(text[i:]); size > 0 {
			return nil, errorAt(text, i, "%s is not an operator: write %s", text[i:i+size], instead)
		}
		if mark := bitwiseOperator(text[i:]); mark != "" {
			return nil, errorAt(text, i, "%s is not supported: operators on bits are not", mark)
		}
		if text[i] == '?' && len(tokens) > 0 && endsValue(tokens[len(tokens)-1]) {
			return nil, errorAt(text, i, "? is not an operator: write IIF(condition, a, b)")
		}
		switch c := text[i]; {
		case c == '\'' || c == '"':
			s, size, fault := unquote(text[i:])
			if fault != "" {
				return nil, errorAt(text, i+size, "%s", fault)
			}
			end, t.kind, t.str = i+size, stringToken, s
		case c >= '0' && c <= '9' || c == '.' && i+1 < len(text) && text[i+1] >= '0' && text[i+1] <= '9':
			end = i + numberSize(text[i:])
			n, err := strconv.ParseFloat(text[i:end], 64)
			if strings.HasPrefix(text[end:], ".") && wordSize(text[end+1:]) == 0 { // 1.5.a is a member
				return nil, errorAt(text, i, "%s is not a number: legal are doubles, like 12, 0.5 and 1e3", clip(text[i:end+1]))
			}
			if err != nil || math.IsInf(n, 0) || wordSize(text[end:]) > 0 {
				end += wordSize(text[end:])
				return nil, errorAt(text, i, "%s is not a number: legal are doubles, like 12, 0.5 and 1e3", clip(text[i:end]))
			}
			t.kind, t.num = numberToken, n
		case c == '@':
			end = i + 1 + wordSize(text[i+1:])
			if end == i+1 {
				return nil, errorAt(text, i, "expected a name after @")
			}
			t.kind = paramToken
		case wordSize(text[i:]) > 0:
			end = i + wordSize(text[i:])
			t.kind, t.upper = wordToken, strings.ToUpper(text[i:end])
		case strings.IndexByte("*,.()[]{}:=<>+-/%!|", c) >= 0:
			end, t.kind = i+1, markToken
			for _, mark := range marks {
				if strings.HasPrefix(text[i:], mark) {
					end = i + 2
				}
			}
		default:
			r, _ := utf8.DecodeRuneInString(text[i:])
			return nil, errorAt(text, i, "%q is not legal outside of strings%s", r, foreign(r))
		}
		t.text = text[i:end]
		tokens = append(tokens, t)
		i = end
	}
}

// afterEnd returns where semicolons, white space and comments end.
func afterEnd(text string, i int) int {
	for i < len(text) {
		end, closed := skipSpace(text, i)
		if !closed || end < len(text) && text[end] != ';' {
			return end
		}
		i = min(end+1, len(text))
	}
	return i
}

// skipSpace returns where white space and comments end. closed is false if a comment does not.
func skipSpace(text string, i int) (end int, closed bool) {
	for i < len(text) {
		size := -1
		switch {
		case strings.IndexByte(jsontext.Space, text[i]) >= 0:
			size = 1
		case strings.HasPrefix(text[i:], "--"):
			if size = strings.IndexByte(text[i:], '\n'); size < 0 {
				size = len(text) - i
			}
		case strings.HasPrefix(text[i:], "/*"):
			if size = strings.Index(text[i+2:], "*/"); size < 0 {
				return i, false
			}
			size += 4
		default:
			return i, true
		}
		i += size
	}
	return i, true
}

// errorAt returns an error at a byte of the query.
func errorAt(text string, at int, format string, args ...any) *Error {
	return &Error{At: utf8.RuneCountInString(text[:min(at, len(text))]) + 1, text: fmt.Sprintf(format, args...)}
}

// clip shortens a part of a query for an error, and makes it one line.
func clip(text string) string {
	if len(text) > maxQuoted {
		text = strings.ToValidUTF8(text[:maxQuoted], "") + "..."
	}
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, text)
}

// wordSize returns the size of the name at the start of text: letters, digits and _, no digit first.
func wordSize(text string) int {
	for i, r := range text {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) || r == utf8.RuneError {
			return i
		}
	}
	return len(text)
}

// numberSize returns the size of the number at the start of text: as in Cosmos DB's grammar, a fraction may
// have no digits, an exponent has some.
func numberSize(text string) int {
	i := 0
	digits := func() {
		for i < len(text) && text[i] >= '0' && text[i] <= '9' {
			i++
		}
	}
	digits()
	if i < len(text) && text[i] == '.' {
		i++
		digits()
	}
	if i < len(text) && (text[i] == 'e' || text[i] == 'E') {
		from := i
		i++
		if i < len(text) && (text[i] == '+' || text[i] == '-') {
			i++
		}
		if i == len(text) || text[i] < '0' || text[i] > '9' {
			return from
		}
		digits()
	}
	return i
}

// unquote reads the string at the start of text, in either kind of quotes, with JSON's escapes and \'. It
// returns the string and its size with quotes, or a fault and its position.
func unquote(text string) (s string, size int, fault string) {
	quote := text[0]
	var out []byte
	for i := 1; i < len(text); {
		switch c := text[i]; {
		case c == quote:
			return string(out), i + 1, ""
		case c != '\\':
			out = append(out, c)
			i++
			continue
		}
		if i+1 == len(text) {
			break
		}
		switch c := text[i+1]; c {
		case '"', '\'', '\\', '/':
			out = append(out, c)
		case 'n':
			out = append(out, '\n')
		case 't':
			out = append(out, '\t')
		case 'r':
			out = append(out, '\r')
		case 'b':
			out = append(out, '\b')
		case 'f':
			out = append(out, '\f')
		case 'u':
			r, n := jsontext.UnquoteRune(text[i:])
			if n == 0 {
				return "", i, `expected four hexadecimal digits after \u`
			}
			out = utf8.AppendRune(out, r)
			i += n
			continue
		default:
			return "", i, `illegal escape in a string: legal are \" \' \\ \/ \b \f \n \r \t and \u0000`
		}
		i += 2
	}
	return "", 0, "a string is not closed"
}
