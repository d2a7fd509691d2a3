package cjson

import (
	"strings"
	"unicode/utf8"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
	"mayfly/query/jsontext"
)

// kind is the kind of a token; its text is what errors call it.
type kind string

const (
	objectBegin kind = "T_OBJ_BEGIN"
	objectEnd   kind = "T_OBJ_END"
	arrayBegin  kind = "T_ARR_BEGIN"
	arrayEnd    kind = "T_ARR_END"
	stringToken kind = "T_STRING"
	numberToken kind = "T_NUMBER"
	boolToken   kind = "T_BOOLEAN"
	nullToken   kind = "T_NULL"
	colon       kind = "T_COLON"
	comma       kind = "T_COMMA"
	textEnd     kind = "T_END"
	failure     kind = ""
)

// marks are the tokens of one character. The text ends at a zero byte.
var marks = [256]kind{'{': objectBegin, '}': objectEnd, '[': arrayBegin, ']': arrayEnd, ':': colon, ',': comma, 0: textEnd}

// token is a part of the text.
type token struct {
	kind  kind
	at    int // where it starts; of a failure, where the fault is
	text  string
	own   bool // the text is no part of the whole
	n     float64
	truth bool
}

// decoder reads one text.
type decoder struct {
	L       *lua.LState
	library *Library
	config  *config
	text    string
	pos     int
	depth   int
	stack   int // values that C would have on the stack of Lua
}

func (l *Library) decode(L *lua.LState) int {
	checkOne(L)
	d := decoder{L: L, library: l, config: &l.config, text: lualib.CheckString(L, 1), stack: 1}
	if len(d.text) >= 2 && (d.text[0] == 0 || d.text[1] == 0) {
		lualib.Raise(L, "JSON parser does not support UTF-16 or UTF-32")
	}
	d.value(d.next(), func(v lua.LValue) { L.Push(v) })
	if t := d.next(); t.kind != textEnd {
		d.fail("the end", t)
	}
	return 1
}

// at returns the byte at i, 0 at the end.
func (d *decoder) at(i int) byte {
	if i < len(d.text) {
		return d.text[i]
	}
	return 0
}

// fail raises the error of a token that is not what was expected.
func (d *decoder) fail(expected string, t token) {
	found := string(t.kind)
	if t.kind == failure {
		found = t.text
	}
	lualib.Raise(d.L, "Expected "+expected+" but found "+found+" at character "+itoa(t.at+1))
}

// next reads a token.
func (d *decoder) next() token {
	start := d.pos
	for d.pos < len(d.text) && (d.text[d.pos] == ' ' || d.text[d.pos] == '\n' || d.text[d.pos] == '\t' || d.text[d.pos] == '\r') {
		d.pos++
	}
	d.library.bounds.Work(1 + (d.pos-start)/64)
	c := d.at(d.pos)
	t := token{kind: marks[c], at: d.pos}
	if t.kind == textEnd {
		return t
	}
	if t.kind != failure {
		d.pos++
		return t
	}
	rest := d.text[d.pos:]
	switch {
	case c == '"':
		return d.string(t)
	case c == '-' || '0' <= c && c <= '9':
		if d.config.decodeInvalidNumbers == 0 && isInvalidNumber(rest) {
			t.text = "invalid number"
			return t
		}
		return d.number(t)
	case strings.HasPrefix(rest, "true"):
		t.kind, t.truth = boolToken, true
		d.pos += 4
	case strings.HasPrefix(rest, "false"):
		t.kind = boolToken
		d.pos += 5
	case strings.HasPrefix(rest, "null"):
		t.kind = nullToken
		d.pos += 4
	case d.config.decodeInvalidNumbers != 0 && isInvalidNumber(rest):
		return d.number(t)
	default:
		t.text = "invalid token"
	}
	return t
}

// isInvalidNumber reports whether what looks like a number starts as JSON does not allow: with + or 0x, with a zero
// too many, inf or nan.
func isInvalidNumber(s string) bool {
	if s[0] == '+' {
		return true
	}
	s = strings.TrimPrefix(s, "-")
	if s == "" {
		return false
	}
	if s[0] == '0' {
		return len(s) > 1 && (s[1]|0x20 == 'x' || '0' <= s[1] && s[1] <= '9')
	}
	return len(s) >= 3 && (strings.EqualFold(s[:3], "inf") || strings.EqualFold(s[:3], "nan"))
}

func (d *decoder) number(t token) token {
	rest := d.text[d.pos:]
	n := plainNumber(rest)
	if n > 0 {
		t.n = jsontext.ParseNumber(rest[:n])
	} else {
		t.n, n = lualib.Strtod(rest)
	}
	if n == 0 {
		t.text = "invalid number"
		return t
	}
	d.library.bounds.Work(n / 8)
	t.kind = numberToken
	d.pos += n
	return t
}

// plainNumber returns the length of a number of digits, with a sign and a point at most; 0 for other numbers.
func plainNumber(s string) int {
	i := 0
	if s[0] == '-' {
		i++
	}
	digits := i
	for i < len(s) && '0' <= s[i] && s[i] <= '9' {
		i++
	}
	if i == digits {
		return 0
	}
	if i < len(s) && s[i] == '.' {
		fraction := i + 1
		for i++; i < len(s) && '0' <= s[i] && s[i] <= '9'; i++ {
		}
		if i == fraction {
			return 0
		}
	}
	if i < len(s) && (s[i]|0x20 == 'e' || s[i]|0x20 == 'x') {
		return 0
	}
	return i
}

// unescaped is what a character after a backslash stands for; u is read apart.
var unescaped = [256]byte{'"': '"', '\\': '\\', '/': '/', 'b': '\b', 't': '\t', 'n': '\n', 'f': '\f', 'r': '\r', 'u': 'u'}

func (d *decoder) string(t token) token {
	d.pos++
	from := d.pos
	end := strings.IndexAny(d.text[from:], "\"\\\x00")
	if end < 0 {
		end = len(d.text) - from
	}
	d.library.bounds.Work(end / 64)
	d.pos += end
	if d.at(d.pos) == '"' {
		t.kind, t.text = stringToken, d.text[from:d.pos]
		d.pos++
		return t
	}
	d.library.bounds.Charge(end + 64)
	out := append(make([]byte, 0, end+64), d.text[from:d.pos]...)
	for {
		c := d.at(d.pos)
		switch {
		case c == '"':
			d.pos++
			t.kind, t.text, t.own = stringToken, string(out), true
			d.library.bounds.Charge(len(out))
			return t
		case c == 0:
			t.kind, t.at, t.text = failure, d.pos, "unexpected end of string"
			return t
		case c == '\\':
			c = unescaped[d.at(d.pos+1)]
			if c == 'u' {
				r, size := d.escape(d.pos)
				if size == 0 {
					t.kind, t.at, t.text = failure, d.pos, "invalid unicode escape code"
					return t
				}
				out = utf8.AppendRune(out, r)
				d.pos += size
				break
			}
			if c == 0 {
				t.kind, t.at, t.text = failure, d.pos, "invalid escape code"
				return t
			}
			d.pos++
			fallthrough
		default:
			out = append(out, c)
			d.pos++
		}
		if len(out)+utf8.UTFMax > cap(out) {
			d.library.bounds.Work(len(out) / 64)
			d.library.bounds.Charge(2 * cap(out))
			out = append(make([]byte, 0, 2*cap(out)), out...)
		}
	}
}

// escape reads \uXXXX at i, or two of them that are a surrogate pair. Its size is 0 if there is none, or half of a pair.
func (d *decoder) escape(i int) (r rune, size int) {
	r = d.unit(i)
	switch {
	case r < 0:
		return 0, 0
	case r < 0xD800 || r >= 0xE000:
		return r, 6
	case r >= 0xDC00 || d.at(i+6) != '\\' || d.at(i+7) != 'u':
		return 0, 0
	}
	low := d.unit(i + 6)
	if low < 0xDC00 || low >= 0xE000 {
		return 0, 0
	}
	return (r-0xD800)<<10 + (low - 0xDC00) + 0x10000, 12
}

// unit reads the four digits after \u at i; it returns -1 if there are less.
func (d *decoder) unit(i int) (r rune) {
	for k := i + 2; k < i+6; k++ {
		c := d.at(k)
		switch {
		case '0' <= c && c <= '9':
			c -= '0'
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			c = c | 0x20 - 'a' + 10
		default:
			return -1
		}
		r = r<<4 | rune(c)
	}
	return r
}

// value reads the value that starts with a token, and gives it to set: a table before it is filled, so that the
// script's memory counts what it has so far.
func (d *decoder) value(t token, set func(lua.LValue)) {
	switch t.kind {
	case stringToken:
		set(lua.LString(d.part(t)))
	case numberToken:
		set(lua.LNumber(t.n))
	case boolToken:
		set(lua.LBool(t.truth))
	case nullToken:
		set(d.library.Null)
	case objectBegin:
		d.object(set)
	case arrayBegin:
		d.array(set)
	default:
		d.fail("value", t)
	}
}

// part returns the text of a string that a value of Lua will hold.
func (d *decoder) part(t token) string {
	if t.own {
		d.library.bounds.Charge(lualib.StringSize)
		return t.text
	}
	return lualib.Part(d.library.bounds, d.text, t.text)
}

// descend counts a table that takes slots places on the stack of Lua in C.
func (d *decoder) descend(slots int) {
	d.depth++
	if d.depth > d.config.decodeMaxDepth || d.stack+slots > lualib.MaxStack {
		lualib.Raise(d.L, "Found too many nested data structures ("+itoa(d.depth)+") at character "+itoa(d.pos))
	}
	d.library.bounds.Charge(lualib.TableSize)
}

func (d *decoder) object(set func(lua.LValue)) {
	d.descend(3)
	out := d.L.CreateTable(0, 0)
	set(out)
	t := d.next()
	if t.kind == objectEnd {
		d.depth--
		return
	}
	d.stack += 2 // the table and the name
	for {
		if t.kind != stringToken {
			d.fail("object key string", t)
		}
		name := d.part(t)
		if t = d.next(); t.kind != colon {
			d.fail("colon", t)
		}
		d.library.bounds.Charge(lualib.EntrySize)
		d.value(d.next(), func(v lua.LValue) { out.RawSetString(name, v) })
		switch t = d.next(); t.kind {
		case objectEnd:
			d.depth--
			d.stack -= 2
			return
		case comma:
		default:
			d.fail("comma or object end", t)
		}
		t = d.next()
	}
}

func (d *decoder) array(set func(lua.LValue)) {
	d.descend(2)
	out := d.L.CreateTable(0, 0)
	set(out)
	t := d.next()
	if t.kind == arrayEnd {
		d.depth--
		return
	}
	d.stack++ // the table
	for i := 1; ; i++ {
		d.library.bounds.Charge(lualib.IndexSize(i))
		d.value(t, func(v lua.LValue) { out.RawSetInt(i, v) })
		switch t = d.next(); t.kind {
		case arrayEnd:
			d.depth--
			d.stack--
			return
		case comma:
		default:
			d.fail("comma or array end", t)
		}
		t = d.next()
	}
}
