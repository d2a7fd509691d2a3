package syntax

import (
	"fmt"
	"strconv"
	"strings"
)

// Error is an error of syntax: "chunk:line: message near 'token'".
type Error struct{ Message string }

func (e *Error) Error() string { return e.Message }

// kind is a kind of token: a character, or one of the constants.
type kind int

const (
	tokAnd kind = iota + 257
	tokBreak
	tokDo
	tokElse
	tokElseif
	tokEnd
	tokFalse
	tokFor
	tokFunction
	tokIf
	tokIn
	tokLocal
	tokNil
	tokNot
	tokOr
	tokRepeat
	tokReturn
	tokThen
	tokTrue
	tokUntil
	tokWhile
	tokConcat
	tokDots
	tokEq
	tokGE
	tokLE
	tokNE
	tokNumber
	tokName
	tokString
	tokEOF
)

var tokenTexts = []string{"and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil",
	"not", "or", "repeat", "return", "then", "true", "until", "while", "..", "...", "==", ">=", "<=", "~=", "<number>", "<name>", "<string>", "<eof>"}

var reserved = map[string]kind{}

func init() {
	for k := tokAnd; k <= tokWhile; k++ {
		reserved[tokenTexts[k-tokAnd]] = k
	}
}

// text returns how errors show a kind of token.
func (k kind) text() string {
	if k >= tokAnd {
		return tokenTexts[k-tokAnd]
	}
	if k < 32 || k == 127 {
		return "char(" + strconv.Itoa(int(k)) + ")"
	}
	return string([]byte{byte(k)})
}

type token struct {
	kind kind
	str  string // of a name or a string
}

type lexer struct {
	chunk    string
	src      string
	pos      int
	line     int // of the character at pos
	lastLine int // of the last token that was consumed
	raw      string
	tok      token
	ahead    token
	hasAhead bool
}

// fail raises an error near a token, or of no place in the line if k is 0.
func (l *lexer) fail(message string, k kind) {
	text := fmt.Sprintf("%s:%d: %s", l.chunk, l.line, message)
	switch k {
	case 0:
	case tokName, tokString, tokNumber:
		text += " near '" + l.raw + "'"
	default:
		text += " near '" + k.text() + "'"
	}
	panic(&Error{text})
}

func (l *lexer) syntaxError(message string) { l.fail(message, l.tok.kind) }

func (l *lexer) next() {
	l.lastLine = l.line
	if l.hasAhead {
		l.tok, l.hasAhead = l.ahead, false
		return
	}
	l.tok = l.lex()
}

func (l *lexer) peek() kind {
	if !l.hasAhead {
		l.ahead, l.hasAhead = l.lex(), true
	}
	return l.ahead.kind
}

// at returns the character n places on, -1 at the end.
func (l *lexer) at(n int) int {
	if l.pos+n < len(l.src) {
		return int(l.src[l.pos+n])
	}
	return -1
}

func isNewline(c int) bool { return c == '\n' || c == '\r' }
func isDigit(c int) bool   { return '0' <= c && c <= '9' }
func isName(c int) bool {
	return isDigit(c) || c == '_' || 'a' <= c|0x20 && c|0x20 <= 'z' && c > 0
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

func (l *lexer) lex() token {
	for {
		start := l.pos
		c := l.at(0)
		two := func(second int, k kind) token {
			l.pos++
			if l.at(0) == second {
				l.pos++
				return token{kind: k}
			}
			return token{kind: kind(c)}
		}
		switch {
		case c < 0:
			return token{kind: tokEOF}
		case isNewline(c):
			l.newline()
		case c == ' ' || '\t' <= c && c <= '\r':
			l.pos++
		case c == '-' && l.at(1) == '-':
			l.comment()
		case c == '[':
			if level := l.longLevel(); level >= 0 {
				return token{tokString, l.longString(level, "string")}
			} else if level == -2 {
				l.raw = l.src[start:l.pos]
				l.fail("invalid long string delimiter", tokString)
			}
			l.pos = start + 1
			return token{kind: '['}
		case c == '=':
			return two('=', tokEq)
		case c == '<':
			return two('=', tokLE)
		case c == '>':
			return two('=', tokGE)
		case c == '~':
			return two('=', tokNE)
		case c == '"' || c == '\'':
			return token{tokString, l.quoted(byte(c))}
		case c == '.' && l.at(1) == '.':
			if l.pos += 2; l.at(0) == '.' {
				l.pos++
				return token{kind: tokDots}
			}
			return token{kind: tokConcat}
		case isDigit(c), c == '.' && isDigit(l.at(1)):
			return l.number()
		case isName(c):
			for isName(l.at(0)) {
				l.pos++
			}
			l.raw = l.src[start:l.pos]
			if k, ok := reserved[l.raw]; ok {
				return token{kind: k}
			}
			return token{tokName, l.raw}
		default:
			l.pos++
			return token{kind: kind(c)}
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

// longLevel reads [==[ and returns the number of equals signs; -1 for a lone bracket, -2 if the second one lacks.
func (l *lexer) longLevel() int {
	l.pos++
	level := 0
	for l.at(0) == '=' {
		l.pos++
		level++
	}
	switch {
	case l.at(0) == '[':
		l.pos++
		return level
	case level == 0:
		return -1
	}
	return -2
}

func (l *lexer) longString(level int, what string) string {
	if isNewline(l.at(0)) {
		l.newline()
	}
	end := "]" + strings.Repeat("=", level) + "]"
	var b strings.Builder
	for {
		switch c := l.at(0); {
		case c < 0:
			l.fail("unfinished long "+what, tokEOF)
		case c == ']' && strings.HasPrefix(l.src[l.pos:], end):
			l.pos += len(end)
			return b.String()
		case isNewline(c):
			b.WriteByte('\n')
			l.newline()
		default:
			b.WriteByte(byte(c))
			l.pos++
		}
	}
}

func (l *lexer) quoted(quote byte) string {
	var b strings.Builder
	b.WriteByte(quote)
	near := func(message string) {
		l.raw = b.String()
		l.fail(message, tokString)
	}
	l.pos++
	for {
		c := l.at(0)
		switch {
		case c < 0:
			l.fail("unfinished string", tokEOF)
		case isNewline(c):
			near("unfinished string")
		case c == int(quote):
			l.pos++
			b.WriteByte(quote)
			l.raw = b.String()
			return l.raw[1 : len(l.raw)-1]
		case c != '\\':
			b.WriteByte(byte(c))
			l.pos++
		default:
			l.pos++
			c = l.at(0)
			switch i := strings.IndexByte("abfnrtv", byte(max(c, 0))); {
			case c < 0:
			case isNewline(c):
				b.WriteByte('\n')
				l.newline()
			case i >= 0:
				b.WriteByte("\a\b\f\n\r\t\v"[i])
				l.pos++
			case isDigit(c):
				n := 0
				for k := 0; k < 3 && isDigit(l.at(0)); k++ {
					n = n*10 + l.at(0) - '0'
					l.pos++
				}
				if n > 255 {
					near("escape sequence too large")
				}
				b.WriteByte(byte(n))
			default:
				b.WriteByte(byte(c))
				l.pos++
			}
		}
	}
}

func (l *lexer) number() token {
	start := l.pos
	for isDigit(l.at(0)) || l.at(0) == '.' {
		l.pos++
	}
	if c := l.at(0); c == 'e' || c == 'E' {
		l.pos++
		if c := l.at(0); c == '+' || c == '-' {
			l.pos++
		}
	}
	for isName(l.at(0)) {
		l.pos++
	}
	l.raw = l.src[start:l.pos]
	f, ok := parseNumber(l.raw)
	if !ok {
		l.fail("malformed number", tokNumber)
	}
	return token{tokNumber, strconv.FormatFloat(f, 'g', -1, 64)}
}
