package lua

import (
	"fmt"
	"strconv"
	"strings"
)

// SyntaxError is an error of a chunk: "chunk:line: message near 'token'".
type SyntaxError struct{ Message string }

func (e *SyntaxError) Error() string { return e.Message }

// token is a token: a symbol or a reserved word as its text, or one of the kinds below.
type token string

const (
	tokNumber token = "<number>"
	tokName   token = "<name>"
	tokString token = "<string>"
	tokEOF    token = "<eof>"
)

var reserved = func() map[string]token {
	words := map[string]token{}
	for w := range strings.FieldsSeq(`and break do else elseif end false for function if in local nil not or repeat
		return then true until while`) {
		words[w] = token(w)
	}
	return words
}()

type lexer struct {
	chunk    string
	src      string
	pos      int
	line     int // of the character at pos
	lastLine int // of the last token that was consumed
	raw      string
	tok      token
	str      string  // of a name or a string
	num      float64 // of a number
}

// fail raises an error near the present token, or of no place in the line.
func (l *lexer) fail(message string, near bool) {
	text := fmt.Sprintf("%s:%d: %s", l.chunk, l.line, message)
	switch {
	case !near || l.tok == "\x00": // in C a token of 0 is none
	case l.tok == tokName, l.tok == tokString, l.tok == tokNumber:
		raw, _, _ := strings.Cut(l.raw, "\x00") // a string of C ends there
		text += " near '" + raw + "'"
	case len(l.tok) == 1 && (l.tok[0] < 32 || l.tok[0] == 127):
		text += " near 'char(" + strconv.Itoa(int(l.tok[0])) + ")'"
	default:
		text += " near '" + string(l.tok) + "'"
	}
	panic(&SyntaxError{text})
}

func (l *lexer) failNear(tok token, raw, message string) {
	l.tok, l.raw = tok, raw
	l.fail(message, true)
}

// at returns the character n places on, -1 at the end.
func (l *lexer) at(n int) int {
	if l.pos+n < len(l.src) {
		return int(l.src[l.pos+n])
	}
	return -1
}

func isNewline(c int) bool { return c == '\n' || c == '\r' }
func isNumber(c int) bool  { return '0' <= c && c <= '9' }
func isWord(c int) bool {
	return isNumber(c) || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' && c > 0
}

// newline skips a line's end, of one or two characters.
func (l *lexer) newline() {
	c := l.at(0)
	l.pos++
	if d := l.at(0); isNewline(d) && d != c {
		l.pos++
	}
	l.line++
}

func (l *lexer) next() {
	l.lastLine = l.line
	l.tok = l.lex()
}

func (l *lexer) lex() token {
	for {
		start, c := l.pos, l.at(0)
		switch {
		case c < 0:
			return tokEOF
		case isNewline(c):
			l.newline()
		case c == ' ' || '\t' <= c && c <= '\r':
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.comment()
		case c == '[':
			switch level := l.longLevel(); {
			case level >= 0:
				l.longString(level, "string")
				l.raw = l.src[start:l.pos]
				return tokString
			case level == -2:
				l.failNear(tokString, l.src[start:l.pos], "invalid long string delimiter")
			}
			l.pos = start + 1
			return "["
		case c == '"' || c == '\'':
			l.quoted(c)
			return tokString
		case isNumber(c), c == '.' && isNumber(l.at(1)):
			l.number()
			return tokNumber
		case isWord(c):
			for isWord(l.at(0)) {
				l.pos++
			}
			l.raw = l.src[start:l.pos]
			l.str = l.raw
			if k, ok := reserved[l.raw]; ok {
				return k
			}
			return tokName
		default:
			for _, symbol := range []string{"...", "..", "==", "<=", ">=", "~="} {
				if strings.HasPrefix(l.src[l.pos:], symbol) {
					l.pos += len(symbol)
					return token(symbol)
				}
			}
			l.pos++
			return token(l.src[start:l.pos])
		}
	}
}

func (l *lexer) comment() {
	l.pos += 2
	if l.at(0) == '[' {
		start := l.pos
		if level := l.longLevel(); level >= 0 {
			l.longString(level, "comment")
			return
		}
		l.pos = start
	}
	for c := l.at(0); c >= 0 && !isNewline(c); c = l.at(0) {
		l.pos++
	}
}

// longLevel reads [==[ and returns the number of equals signs; -1 for a lone bracket, -2 if the second one
// lacks.
func (l *lexer) longLevel() int {
	level := -1
	for l.pos++; l.at(0) == '='; l.pos++ {
		level--
	}
	if l.at(0) == '[' {
		l.pos++
		return -1 - level
	}
	return max(level, -2)
}

func (l *lexer) longString(level int, what string) {
	if isNewline(l.at(0)) {
		l.newline()
	}
	end := "]" + strings.Repeat("=", level) + "]"
	var b strings.Builder
	for {
		switch c := l.at(0); {
		case c < 0:
			l.failNear(tokEOF, "", "unfinished long "+what)
		case c == ']' && strings.HasPrefix(l.src[l.pos:], end):
			l.pos += len(end)
			l.str = b.String()
			return
		case isNewline(c):
			b.WriteByte('\n')
			l.newline()
		default:
			b.WriteByte(byte(c))
			l.pos++
		}
	}
}

func (l *lexer) quoted(quote int) {
	b := []byte{byte(quote)}
	for l.pos++; ; {
		c := l.at(0)
		switch {
		case c < 0:
			l.failNear(tokEOF, "", "unfinished string")
		case isNewline(c):
			l.failNear(tokString, string(b), "unfinished string")
		case c == quote:
			l.pos++
			l.str = string(b[1:])
			l.raw = string(b) + string(b[:1])
			return
		case c == '\\':
			l.pos++
			b = l.escape(b)
		default:
			b = append(b, byte(c))
			l.pos++
		}
	}
}

// escape appends what stands after a backslash.
func (l *lexer) escape(b []byte) []byte {
	c := l.at(0)
	switch i := strings.IndexByte("abfnrtv", byte(max(c, 0))); {
	case c < 0:
		return b
	case isNewline(c):
		l.newline()
		return append(b, '\n')
	case isNumber(c):
		n := 0
		for k := 0; k < 3 && isNumber(l.at(0)); k++ {
			n = n*10 + l.at(0) - '0'
			l.pos++
		}
		if n > 255 {
			l.failNear(tokString, string(b), "escape sequence too large")
		}
		return append(b, byte(n))
	case i >= 0:
		c = int("\a\b\f\n\r\t\v"[i])
	}
	l.pos++
	return append(b, byte(c))
}

func (l *lexer) number() {
	start := l.pos
	for isNumber(l.at(0)) || l.at(0) == '.' {
		l.pos++
	}
	if c := l.at(0); c == 'e' || c == 'E' {
		l.pos++
		if c := l.at(0); c == '+' || c == '-' {
			l.pos++
		}
	}
	for isWord(l.at(0)) {
		l.pos++
	}
	l.raw = l.src[start:l.pos]
	f, ok := ParseNumber(l.raw)
	if !ok {
		l.failNear(tokNumber, l.raw, "malformed number")
	}
	l.num = f
}

// chunkID returns how errors name a chunk, as luaO_chunkid does.
func chunkID(name string) string {
	const most = 60
	switch {
	case strings.HasPrefix(name, "="):
		return name[1:min(len(name), most)]
	case strings.HasPrefix(name, "@"):
		name = name[1:]
		if limit := most - len(" '...' ") - 1; len(name) > limit {
			return "..." + name[len(name)-limit:]
		}
		return name
	}
	first, _, more := strings.Cut(strings.ReplaceAll(name, "\r", "\n"), "\n")
	if limit := most - len(` [string "..."] `) - 1; len(first) > limit || more {
		first = first[:min(len(first), limit)] + "..."
	}
	return `[string "` + first + `"]`
}
