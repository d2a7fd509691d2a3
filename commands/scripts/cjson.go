package scripts

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"mayfly/commands/scripts/lua"
)

// maxJSONDepth bounds nested tables, whatever the settings: what the stack of Lua in C has room for, if they
// are arrays.
const maxJSONDepth = 7_998

// null stands for null in tables: cjson.null.
var null = &lua.Userdata{Text: "userdata: (nil)"}

// cjson is Redis' library cjson, lua-cjson 2.1, with the settings that scripts can change.
type cjson struct {
	m                    *lua.Machine
	sparseConvert        int // 1 writes sparse arrays as objects, 0 refuses them
	sparseRatio          int // an array with more than this many places an element is sparse; 0 means none is
	sparseSafe           int // arrays up to this length are never sparse
	encodeMaxDepth       int
	decodeMaxDepth       int
	precision            int // significant digits of a number
	keepBuffer           int // accepted; buffers are not kept
	encodeInvalidNumbers int // 0 refuses NaN and the infinities, 1 writes them, 2 writes null
	decodeInvalidNumbers int // 1 accepts NaN, infinities and hexadecimal numbers
}

// reset gives the settings their defaults. Redis keeps settings until SCRIPT FLUSH; machines of a pool reset
// them before each script, as no script can know which machine it gets.
func (j *cjson) reset() {
	*j = cjson{m: j.m, sparseRatio: 2, sparseSafe: 10, encodeMaxDepth: 1000, decodeMaxDepth: 1000, precision: 14,
		keepBuffer: 1, decodeInvalidNumbers: 1}
}

// newCJSON returns the library's table.
func newCJSON(m *lua.Machine) (*cjson, *lua.Table) {
	j := &cjson{m: m}
	j.reset()
	t := m.NewTable(0)
	m.Fill(t, map[string]lua.Builtin{
		"encode": func(c *lua.Call) []lua.Value {
			onlyOne(c)
			e := encoder{cjson: j, c: c, out: m.NewBuffer()}
			e.value(c.Arg(1), 0)
			return c.Return(e.out.Text())
		},
		"decode": func(c *lua.Call) []lua.Value {
			onlyOne(c)
			d := decoder{cjson: j, c: c, text: c.Text(1)}
			m.Work(len(d.text) / 64) // also for a token that has no end
			if len(d.text) >= 2 && (d.text[0] == 0 || d.text[1] == 0) {
				c.Fail("JSON parser does not support UTF-16 or UTF-32")
			}
			d.next()
			v := d.value()
			if d.next(); d.tok != tokEnd {
				d.expected("the end")
			}
			return c.Return(v)
		},
		"new": func(c *lua.Call) []lua.Value {
			_, t := newCJSON(m)
			return c.Return(t)
		},
		"encode_sparse_array": func(c *lua.Call) []lua.Value {
			atMost(c, 3)
			convert := setName(c, 1, &j.sparseConvert, "off", "on")
			ratio := setNumber(c, 2, &j.sparseRatio, 0, math.MaxInt32)
			return c.Return(convert, ratio, setNumber(c, 3, &j.sparseSafe, 0, math.MaxInt32))
		},
		"encode_max_depth":        numberSetting(&j.encodeMaxDepth, math.MaxInt32),
		"decode_max_depth":        numberSetting(&j.decodeMaxDepth, math.MaxInt32),
		"encode_number_precision": numberSetting(&j.precision, 14),
		"encode_keep_buffer":      nameSetting(&j.keepBuffer, "off", "on"),
		"encode_invalid_numbers":  nameSetting(&j.encodeInvalidNumbers, "off", "on", "null"),
		"decode_invalid_numbers":  nameSetting(&j.decodeInvalidNumbers, "off", "on"),
	})
	m.Set(t, "null", null)
	m.Set(t, "_NAME", "cjson")
	m.Set(t, "_VERSION", "2.1.0")
	return j, t
}

func onlyOne(c *lua.Call) {
	if c.N() != 1 {
		c.ArgError(1, "expected 1 argument")
	}
}

func atMost(c *lua.Call, n int) {
	if c.N() > n {
		c.ArgError(n+1, "found too many arguments")
	}
}

// numberSetting returns a function that sets and returns a setting from 1 to most.
func numberSetting(setting *int, most int) lua.Builtin {
	return func(c *lua.Call) []lua.Value {
		atMost(c, 1)
		return c.Return(setNumber(c, 1, setting, 1, most))
	}
}

// setNumber sets a setting to argument i, unless that is nil. Integers have 32 bits, as in C.
func setNumber(c *lua.Call, i int, setting *int, low, high int) lua.Value {
	if c.Arg(i) != nil {
		n := c.Int32(i)
		if n < low || n > high {
			c.ArgError(1, "expected integer between "+strconv.Itoa(low)+" and "+strconv.Itoa(high))
		}
		*setting = n
	}
	return lua.Int(*setting)
}

// nameSetting returns a function that sets and returns a setting with names.
func nameSetting(setting *int, names ...string) lua.Builtin {
	return func(c *lua.Call) []lua.Value {
		atMost(c, 1)
		return c.Return(setName(c, 1, setting, names...))
	}
}

// setName sets a setting to argument i, a boolean or a name, unless that is nil.
func setName(c *lua.Call, i int, setting *int, names ...string) lua.Value {
	switch v := c.Arg(i).(type) {
	case nil:
	case bool:
		*setting = 0
		if v {
			*setting = 1
		}
	default:
		text, found := c.Text(i), -1
		for k, n := range names {
			if n == text {
				found = k
			}
		}
		if found < 0 {
			c.ArgError(i, "invalid option '"+text+"'")
		}
		*setting = found
	}
	if *setting > 1 {
		return names[*setting]
	}
	return *setting == 1
}

// encoder writes one value.
type encoder struct {
	*cjson
	c   *lua.Call
	out *lua.Buffer
}

// refuse raises the error of a value that has no JSON.
func (e *encoder) refuse(v lua.Value, reason string) {
	e.c.Fail("%s", "Cannot serialise "+lua.TypeOf(v)+": "+reason)
}

// value appends a value that depth tables enclose.
func (e *encoder) value(v lua.Value, depth int) {
	e.m.Work(1)
	switch v := v.(type) {
	case nil:
		e.out.Add("null")
	case string:
		e.text(v)
	case float64:
		e.number(v)
	case bool:
		e.out.Add(strconv.FormatBool(v))
	case *lua.Table:
		if depth++; depth > min(e.encodeMaxDepth, maxJSONDepth) {
			e.c.Fail("Cannot serialise, excessive nesting (%d)", depth)
		}
		if n := e.length(v); n > 0 {
			for i := range n {
				e.out.Bytes("[,"[min(i, 1)])
				e.value(v.At(i+1), depth)
			}
			e.out.Bytes(']')
		} else {
			e.object(v, depth)
		}
	default:
		if v != null {
			e.refuse(v, "type not supported")
		}
		e.out.Add("null")
	}
}

// length returns the length of a table that is an array, and -1 for others.
func (e *encoder) length(t *lua.Table) int {
	length, items := 0, 0
	for k := range e.m.All(t) {
		f, ok := k.(float64)
		if !ok || f < 1 || f > math.MaxInt32 || f != float64(int(f)) {
			return -1
		}
		length = max(length, int(f))
		items++
	}
	if e.sparseRatio > 0 && length > items*e.sparseRatio && length > e.sparseSafe {
		if e.sparseConvert == 0 {
			e.refuse(t, "excessively sparse array")
		}
		return -1
	}
	return length
}

func (e *encoder) object(t *lua.Table, depth int) {
	first := 0
	for k, v := range e.m.All(t) {
		e.out.Bytes("{,"[first])
		first = 1
		switch k := k.(type) {
		case float64:
			e.out.Bytes('"')
			e.number(k)
			e.out.Bytes('"')
		case string:
			e.text(k)
		default:
			e.refuse(k, "table key must be a number or string")
		}
		e.out.Bytes(':')
		e.value(v, depth)
	}
	if first == 0 {
		e.out.Bytes('{')
	}
	e.out.Bytes('}')
}

func (e *encoder) number(f float64) {
	switch {
	case !math.IsNaN(f) && !math.IsInf(f, 0):
	case e.encodeInvalidNumbers == 0:
		e.refuse(f, "must not be NaN or Inf")
	case e.encodeInvalidNumbers == 2:
		e.out.Add("null")
		return
	case math.IsNaN(f):
		e.out.Add("nan")
		return
	}
	e.out.Bytes(lua.AppendNumber(nil, f, e.precision)...)
}

// escapes are the characters that are not written as they are.
var escapes = func() (table [256]string) {
	const hex = "0123456789abcdef"
	for c := range ' ' {
		table[c] = `\u00` + string(hex[c>>4]) + string(hex[c&15])
	}
	table['\b'], table['\t'], table['\n'], table['\f'], table['\r'] = `\b`, `\t`, `\n`, `\f`, `\r`
	table['"'], table['/'], table['\\'], table[0x7f] = `\"`, `\/`, `\\`, `\u007f`
	return table
}()

func (e *encoder) text(s string) {
	e.m.Work(len(s) / 64)
	e.out.Bytes('"')
	from := 0
	for i := range len(s) {
		if escape := escapes[s[i]]; escape != "" {
			e.out.Add(s[from:i])
			e.out.Add(escape)
			from = i + 1
		}
	}
	e.out.Add(s[from:])
	e.out.Bytes('"')
}

// Tokens of JSON, as errors call them.
const (
	tokEnd    = "T_END"
	tokString = "T_STRING"
	tokNumber = "T_NUMBER"
	tokBool   = "T_BOOLEAN"
	tokNull   = "T_NULL"
)

var marks = map[byte]string{
	'{': "T_OBJ_BEGIN", '}': "T_OBJ_END", '[': "T_ARR_BEGIN", ']': "T_ARR_END", ':': "T_COLON", ',': "T_COMMA",
}

// decoder reads one text.
type decoder struct {
	*cjson
	c     *lua.Call
	text  string
	pos   int
	depth int
	tok   string // the present token, or what is wrong with it
	at    int    // where it is
	str   string
	val   lua.Value // of a literal or a number
}

// byteAt returns the byte at i, 0 at the end.
func (d *decoder) byteAt(i int) byte {
	if i < len(d.text) {
		return d.text[i]
	}
	return 0
}

// expected raises the error of a token that is not what was expected.
func (d *decoder) expected(what string) {
	d.c.Fail("%s", "Expected "+what+" but found "+d.tok+" at character "+strconv.Itoa(d.at+1))
}

// next reads a token.
func (d *decoder) next() {
	start := d.pos
	for c := d.byteAt(d.pos); c == ' ' || c == '\n' || c == '\t' || c == '\r'; c = d.byteAt(d.pos) {
		d.pos++
	}
	d.m.Work(1 + (d.pos-start)/64)
	c, rest := d.byteAt(d.pos), d.text[min(d.pos, len(d.text)):]
	d.at, d.val = d.pos, nil
	if d.tok = marks[c]; d.tok != "" {
		d.pos++
		return
	}
	literal := func(text, tok string, v lua.Value) bool {
		if strings.HasPrefix(rest, text) {
			d.pos += len(text)
			d.tok, d.val = tok, v
			return true
		}
		return false
	}
	switch digit := c == '-' || '0' <= c && c <= '9'; {
	case c == 0: // ends the text, as in C
		d.tok = tokEnd
	case c == '"':
		d.quoted()
	case literal("true", tokBool, true), literal("false", tokBool, false), literal("null", tokNull, null):
	case isInvalidNumber(rest) && d.decodeInvalidNumbers == 0 && digit:
		d.tok = "invalid number"
	case digit, isInvalidNumber(rest) && d.decodeInvalidNumbers != 0:
		d.number(rest)
	default:
		d.tok = "invalid token"
	}
}

// isInvalidNumber reports whether what looks like a number starts as JSON does not allow: with + or 0x, with
// a zero too many, inf or nan.
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

func (d *decoder) number(rest string) {
	f, n := lua.Strtod(rest)
	if n == 0 {
		d.tok = "invalid number"
		return
	}
	d.m.Work(n / 8)
	d.tok, d.val = tokNumber, lua.Number(f)
	d.pos += n
}

// quoted reads a string.
func (d *decoder) quoted() {
	from := d.pos + 1
	end := strings.IndexAny(d.text[from:], "\"\\\x00")
	if end < 0 {
		end = len(d.text) - from
	}
	d.m.Work(end / 64)
	d.pos = from + end
	if d.byteAt(d.pos) == '"' {
		d.tok, d.str = tokString, d.m.Part(d.text, from, d.pos)
		d.pos++
		return
	}
	out := d.m.NewBuffer()
	out.Add(d.text[from:d.pos])
	for {
		switch c := d.byteAt(d.pos); c {
		case '"':
			d.pos++
			d.tok, d.str = tokString, out.Text()
			return
		case 0:
			d.at, d.tok = d.pos, "unexpected end of string"
			return
		case '\\':
			switch i := strings.IndexByte(`"\/btnfru`, d.byteAt(d.pos+1)); {
			case i < 0:
				d.at, d.tok = d.pos, "invalid escape code"
				return
			case i == 8:
				r, size := d.escape(d.pos)
				if size == 0 {
					d.at, d.tok = d.pos, "invalid unicode escape code"
					return
				}
				out.Bytes(utf8.AppendRune(nil, r)...)
				d.pos += size
			default:
				out.Bytes("\"\\/\b\t\n\f\r"[i])
				d.pos += 2
			}
		default:
			out.Bytes(c)
			d.pos++
		}
	}
}

// escape reads \uXXXX at i, or two of them that are a surrogate pair. Its size is 0 if there is none, or half
// of a pair.
func (d *decoder) escape(i int) (r rune, size int) {
	unit := func(i int) int {
		n, err := strconv.ParseUint(d.text[min(i+2, len(d.text)):min(i+6, len(d.text))], 16, 16)
		if err != nil || i+6 > len(d.text) || d.text[i+1] != 'u' || d.text[i] != '\\' {
			return -1
		}
		return int(n)
	}
	high := unit(i)
	if high < 0 || high >= 0xDC00 && high < 0xE000 {
		return 0, 0
	}
	if high < 0xD800 || high >= 0xE000 {
		return rune(high), 6
	}
	low := unit(i + 6)
	if low < 0xDC00 || low >= 0xE000 {
		return 0, 0
	}
	return rune((high-0xD800)<<10 + (low - 0xDC00) + 0x10000), 12
}

// value reads the value that starts with the present token.
func (d *decoder) value() lua.Value {
	switch d.tok {
	case tokString:
		return d.str
	case tokNumber, tokBool, tokNull:
		return d.val
	case "T_OBJ_BEGIN", "T_ARR_BEGIN":
		return d.table(d.tok == "T_OBJ_BEGIN")
	}
	d.expected("value")
	return nil
}

// table reads an object or an array.
func (d *decoder) table(object bool) lua.Value {
	if d.depth++; d.depth > min(d.decodeMaxDepth, maxJSONDepth) {
		d.c.Fail("Found too many nested data structures (%d) at character %d", d.depth, d.pos)
	}
	t := d.m.NewTable(0)
	held := d.m.Hold(t)
	end, what := "T_ARR_END", "array"
	if object {
		end, what = "T_OBJ_END", "object"
	}
	d.next()
	for i := 1; d.tok != end || i > 1; i++ {
		var k lua.Value = float64(i)
		if object {
			if d.tok != tokString {
				d.expected("object key string")
			}
			k = d.str
			if d.next(); d.tok != "T_COLON" {
				d.expected("colon")
			}
			d.next()
		}
		d.m.Set(t, k, d.value())
		if d.next(); d.tok == end {
			break
		}
		if d.tok != "T_COMMA" {
			d.expected("comma or " + what + " end")
		}
		d.next()
	}
	d.depth--
	d.m.Release(held)
	return t
}
