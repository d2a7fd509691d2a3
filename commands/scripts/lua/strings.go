package lua

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"mayfly/longtext"
)

// maxText bounds one string, whatever the limit of memory.
const maxText = 512 << 20

// slice returns the part of a string of some size that two positions mean, which may count from the end.
func slice(from, to, size int) (int, int) {
	if from < 0 {
		from = max(from+size+1, 0)
	}
	if to < 0 {
		to += size + 1
	}
	from, to = max(from, 1), min(to, size)
	return from - 1, max(to, from-1)
}

func (m *Machine) stringLibrary() map[string]Builtin {
	library := map[string]Builtin{
		"byte": func(c *Call) []Value {
			s, first := c.Text(1), c.IntOr(2, 1)
			if first < 0 {
				first = max(first+len(s)+1, 0)
			}
			from, to := slice(first, c.IntOr(3, first), len(s))
			n := to - from
			if n > MaxValues-c.N() {
				c.Fail("stack overflow (string slice too long)")
			}
			if n <= 0 {
				return nil
			}
			m.Charge(slotSize * n)
			out := make([]Value, n)
			for i := range out {
				out[i] = Int(int(s[from+i]))
			}
			return out
		},
		"char": func(c *Call) []Value {
			m.Charge(StringSize + c.N())
			b := make([]byte, c.N())
			for i := range b {
				n := c.Int32(i + 1)
				if n != int(byte(n)) {
					c.ArgError(i+1, "invalid value")
				}
				b[i] = byte(n)
			}
			return c.Return(string(b))
		},
		"dump": func(c *Call) []Value { // the signature of compiled code, which as in Redis nothing loads
			if c.function(1).proto == nil {
				c.Fail("unable to dump given function")
			}
			return c.Return("\x1bLuaQ")
		},
		"find":   func(c *Call) []Value { return m.find(c, true) },
		"match":  func(c *Call) []Value { return m.find(c, false) },
		"format": m.format,
		"gmatch": m.gmatch,
		"gfind":  m.gmatch,
		"gsub":   m.gsub,
		"len":    func(c *Call) []Value { return c.Return(Int(len(c.Text(1)))) },
		"lower":  m.mapBytes('A', 'Z', 'a'-'A'),
		"upper":  m.mapBytes('a', 'z', 'A'-'a'+256),
		"rep": func(c *Call) []Value {
			s, n := c.Text(1), c.Int32(2)
			if n <= 0 || s == "" {
				return c.Return("")
			}
			n = min(n, maxText/len(s)+1) // Charge ends the script
			m.Charge(n*len(s) + StringSize)
			return c.Return(longtext.Repeat(s, n))
		},
		"reverse": func(c *Call) []Value {
			s := c.Text(1)
			m.Charge(2*len(s) + StringSize)
			b := make([]byte, len(s))
			for i := range b {
				b[i] = s[len(s)-1-i]
			}
			return c.Return(string(b))
		},
		"sub": func(c *Call) []Value {
			s := c.Text(1)
			from, to := slice(c.Int(2), c.IntOr(3, -1), len(s))
			if from >= to {
				return c.Return("")
			}
			return c.Return(m.Part(s, from, to))
		},
	}
	return library
}

func (m *Machine) mapBytes(from, to, add byte) Builtin {
	return func(c *Call) []Value {
		s := c.Text(1)
		m.Charge(2*len(s) + StringSize)
		b := []byte(s)
		for i, x := range b {
			if from <= x && x <= to {
				b[i] = x + add
			}
		}
		return c.Return(string(b))
	}
}

// find is string.find and string.match.
func (m *Machine) find(c *Call, find bool) []Value {
	s, p := c.Text(1), c.Text(2)
	init := c.IntOr(3, 1)
	if init < 0 {
		init += len(s) + 1
	}
	init = min(max(init-1, 0), len(s))
	m.long(p)
	if find && (Truth(c.Arg(4)) || !strings.ContainsAny(cut(p), "^$*+?.([%-")) {
		m.Work((len(s) - init) >> 6)
		if i := strings.Index(s[init:], p); i >= 0 {
			return c.Return(Int(init+i+1), Int(init+i+len(p)))
		}
		return c.Return(nil)
	}
	p, anchored := strings.CutPrefix(p, "^")
	ms := c.newMatcher(s, p)
	for ; init <= len(s); init++ {
		if e := ms.begin(init); e >= 0 {
			if !find {
				return ms.values(init, e)
			}
			if ms.level == 0 {
				return c.Return(Int(init+1), Int(e))
			}
			return append([]Value{Int(init + 1), Int(e)}, ms.values(init, e)...)
		}
		if anchored {
			break
		}
	}
	return c.Return(nil)
}

func (m *Machine) gmatch(c *Call) []Value {
	s, p := c.Text(1), c.Text(2)
	pos := 0
	m.Charge(functionSize + 2*slotSize)
	return c.Return(&Function{name: "gmatch", holds: []Value{s, p}, builtin: func(c *Call) []Value {
		ms := c.newMatcher(s, p)
		for ; pos <= len(s); pos++ {
			if e := ms.begin(pos); e >= 0 {
				from := pos
				if pos = e; e == from {
					pos++
				}
				return ms.values(from, e)
			}
		}
		return nil
	}})
}

func (m *Machine) gsub(c *Call) []Value {
	s, p, repl := c.Text(1), c.Text(2), c.Arg(3)
	switch repl.(type) {
	case string, float64, *Function, *Table:
	default:
		c.ArgError(3, "string/function/table expected")
	}
	most := c.int32Or(4, len(s)+1)
	p, anchored := strings.CutPrefix(p, "^")
	ms, out := c.newMatcher(s, p), m.NewBuffer()
	n, pos := 0, 0
	for n < most {
		e := ms.begin(pos)
		if e >= 0 {
			n++
			ms.replace(out, repl, pos, e)
		}
		if e > pos {
			pos = e
		} else if pos < len(s) {
			out.Bytes(s[pos])
			pos++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	out.Add(s[min(pos, len(s)):])
	return c.Return(out.Text(), Int(n))
}

// replace appends what gsub puts in the place of the match from s to e.
func (ms *matcher) replace(out *Buffer, repl Value, s, e int) {
	var v Value
	switch repl := repl.(type) {
	case *Table:
		v = ms.c.index(0, repl, ms.value(0, s, e), nil)
	case *Function:
		v = ms.c.M.Call(repl, ms.values(s, e)...)
	default:
		text, _ := ToText(repl)
		ms.expand(out, text, s, e)
		return
	}
	if text, ok := ToText(v); ok {
		out.Add(text)
		return
	}
	if Truth(v) {
		ms.c.Fail("invalid replacement value (a %s)", TypeOf(v))
	}
	out.Add(ms.source[s:e])
}

// expand appends a text whose %0 to %9 stand for captures.
func (ms *matcher) expand(out *Buffer, text string, s, e int) {
	for {
		plain, rest, found := strings.Cut(text, "%")
		out.Add(plain)
		if !found {
			return
		}
		ms.step(1) // what stands in its place may be empty
		if rest == "" {
			out.Bytes(0)
			return
		}
		switch x := rest[0]; {
		case !isDigit(x):
			out.Bytes(x)
		case x == '0':
			out.Add(ms.source[s:e])
		default:
			part, _ := ToText(ms.value(int(x-'1'), s, e))
			out.Add(part)
		}
		text = rest[1:]
	}
}

func (m *Machine) format(c *Call) []Value {
	format, out := c.Text(1), m.NewBuffer()
	for arg := 2; ; arg++ {
		plain, rest, found := strings.Cut(format, "%")
		out.Add(plain)
		switch {
		case !found:
			return c.Return(out.Text())
		case strings.HasPrefix(rest, "%"):
			out.Add("%")
			format = rest[1:]
			arg--
			continue
		case arg > c.N():
			c.ArgError(arg, "no value")
		}
		format = m.formatOne(c, out, rest, arg)
	}
}

// formatOne appends an argument by the conversion at the start of a format, and returns the rest of it.
func (m *Machine) formatOne(c *Call, out *Buffer, format string, arg int) (rest string) {
	n := len(format) - len(strings.TrimLeft(format, "-+ #0"))
	if n > 5 {
		c.Fail("invalid format (repeated flags)")
	}
	f := conversion{flags: format[:n], width: -1, precision: -1}
	digits := func() int {
		size := -1
		for k := 0; k < 2 && n < len(format) && isDigit(format[n]); k++ {
			size = max(size, 0)*10 + int(format[n]-'0')
			n++
		}
		return size
	}
	f.width = digits()
	if n < len(format) && format[n] == '.' {
		n++
		f.precision = max(digits(), 0)
	}
	if n < len(format) && isDigit(format[n]) {
		c.Fail("invalid format (width or precision too long)")
	}
	if n == len(format) {
		c.Fail("%s", "invalid option '%' to 'format'")
	}
	f.verb = string(format[n])
	switch format[n] {
	case 'c':
		out.Add(cut(f.pad(string([]byte{byte(c.Int(arg))}))))
	case 'd', 'i':
		v, sign := Truncate(c.Num(arg)), ""
		switch {
		case v < 0:
			v, sign = -v, "-"
		case f.has("+"):
			sign = "+"
		case f.has(" "):
			sign = " "
		}
		out.Add(f.integer(sign, uint64(v), 10))
	case 'o', 'u', 'x', 'X':
		base := map[byte]int{'o': 8, 'u': 10, 'x': 16, 'X': 16}[format[n]]
		out.Add(f.integer("", TruncateUnsigned(c.Num(arg)), base))
	case 'e', 'E', 'f', 'g', 'G':
		out.Add(f.float(c.Num(arg)))
	case 'q':
		quote(out, c.Text(arg))
	case 's':
		s := c.Text(arg)
		if f.precision >= 0 || len(s) < 100 {
			m.long(s)
			if s = cut(s); f.precision >= 0 {
				s = s[:min(len(s), f.precision)]
			}
			s = f.pad(s)
		}
		out.Add(s)
	default:
		c.Fail("invalid option '%%%s' to 'format'", string([]byte{format[n]}))
	}
	return format[n+1:]
}

// conversion is one conversion of string.format.
type conversion struct {
	flags            string
	width, precision int // -1: none
	verb             string
}

// cut returns s up to its first zero byte, as C sees it.
func cut(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

func (f *conversion) has(flag string) bool { return strings.Contains(f.flags, flag) }

// pad fills a text up to the width.
func (f *conversion) pad(s string) string {
	space := strings.Repeat(" ", max(f.width-len(s), 0))
	if f.has("-") {
		return s + space
	}
	return space + s
}

// integer shows the number n after its sign. Go's fmt counts zeros otherwise than C.
func (f *conversion) integer(sign string, n uint64, base int) string {
	digits, least := strconv.FormatUint(n, base), f.precision
	if n == 0 && least == 0 {
		digits = ""
	}
	if f.has("#") && base == 16 && n != 0 {
		sign = "0x"
	}
	if least < 0 && f.has("0") && !f.has("-") {
		least = f.width - len(sign)
	}
	if f.has("#") && base == 8 && (n != 0 || digits == "") {
		least = max(least, len(digits)+1)
	}
	digits = sign + strings.Repeat("0", max(least-len(digits), 0)) + digits
	if f.verb == "X" {
		digits = strings.ToUpper(digits)
	}
	return f.pad(digits)
}

func (f *conversion) float(v float64) string {
	if !math.IsInf(v, 0) && !math.IsNaN(v) {
		if f.precision < 0 {
			f.precision = 6
		}
		flags := f.flags
		if f.has("-") {
			flags = strings.ReplaceAll(flags, "0", "")
		}
		return fmt.Sprintf("%"+flags+"*.*"+f.verb, max(f.width, 0), f.precision, v)
	}
	s := strings.TrimPrefix(NumberText(v), "-")
	switch {
	case math.Signbit(v):
		s = "-" + s
	case f.has("+"):
		s = "+" + s
	case f.has(" "):
		s = " " + s
	}
	if f.verb < "a" {
		s = strings.ToUpper(s)
	}
	return f.pad(s)
}

// quote appends a string as a literal of Lua.
func quote(out *Buffer, s string) {
	out.Bytes('"')
	for i := range len(s) {
		switch x := s[i]; x {
		case '"', '\\', '\n':
			out.Bytes('\\', x)
		case '\r':
			out.Add(`\r`)
		case 0:
			out.Add(`\000`)
		default:
			out.Bytes(x)
		}
	}
	out.Bytes('"')
}

// parseUnsigned reads a whole number as strtoul does.
func parseUnsigned(s string, base int) (f float64, ok bool) {
	s = strings.Trim(cut(s), spaces)
	s, negative := strings.CutPrefix(s, "-")
	if !negative {
		s = strings.TrimPrefix(s, "+")
	}
	if base == 16 && len(s) > 2 && strings.EqualFold(s[:2], "0x") {
		s = s[2:]
	}
	u, err := strconv.ParseUint(s, base, 64)
	switch {
	case errors.Is(err, strconv.ErrRange): // of what is before a byte that may be no digit
		digits := "0123456789abcdefghijklmnopqrstuvwxyz"[:base]
		return math.MaxUint64, strings.Trim(s, digits+strings.ToUpper(digits)) == ""
	case negative:
		u = -u
	}
	return float64(u), err == nil
}
