package scripts

import (
	"strings"

	"mayfly/commands/scripts/cformat"
	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/pattern"

	lua "github.com/yuin/gopher-lua"
)

// maxText bounds one string, whatever the limit of memory.
const maxText = 512 << 20

func checkString(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return lualib.NumberString(float64(v))
	}
	argType(L, n, "string")
	return ""
}

func checkNumber(L *lua.LState, n int) float64 {
	f, ok := lualib.ToNumber(L.Get(n))
	if !ok {
		argType(L, n, "number")
	}
	return f
}

func checkInteger(L *lua.LState, n int) int { return int(lualib.Truncate(checkNumber(L, n))) }

// checkInt is luaL_checkint: the lower 32 bits.
func checkInt(L *lua.LState, n int) int { return int(int32(checkInteger(L, n))) }

func absent(L *lua.LState, n int) bool { return n > L.GetTop() || L.Get(n) == lua.LNil }

func optInteger(L *lua.LState, n, otherwise int) int {
	if absent(L, n) {
		return otherwise
	}
	return checkInteger(L, n)
}

func checkTable(L *lua.LState, n int) *lua.LTable {
	t, ok := L.Get(n).(*lua.LTable)
	if !ok {
		argType(L, n, "table")
	}
	return t
}

func checkFunction(L *lua.LState, n int) *lua.LFunction {
	f, ok := L.Get(n).(*lua.LFunction)
	if !ok {
		argType(L, n, "function")
	}
	return f
}

func checkAny(L *lua.LState, n int) lua.LValue {
	if n > L.GetTop() {
		argError(L, n, "value expected")
	}
	return L.Get(n)
}

// checkSpace raises an error before a function in Go has too many results.
func checkSpace(L *lua.LState, n int, message string) {
	if n > maxStack-L.GetTop() {
		fail(L, "stack overflow (%s)", message)
	}
}

// relative returns a position that may count from the end as one that counts from the start.
func relative(pos, size int) int {
	if pos < 0 {
		pos += size + 1
	}
	return max(pos, 0)
}

func (m *machine) stringFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"byte": stringByte, "char": stringChar, "len": stringLen,
		"dump":    stringDump,
		"find":    func(L *lua.LState) int { return m.stringFind(L, true) },
		"match":   func(L *lua.LState) int { return m.stringFind(L, false) },
		"format":  m.stringFormat,
		"gmatch":  m.stringGmatch,
		"gfind":   m.stringGmatch,
		"gsub":    m.stringGsub,
		"lower":   m.mapBytes('A', 'Z', 'a'-'A'),
		"upper":   m.mapBytes('a', 'z', 'A'-'a'+256),
		"rep":     m.stringRep,
		"reverse": m.stringReverse,
		"sub":     m.stringSub,
	}
}

// stringDump returns the signature of compiled code. As in Redis nothing loads compiled code.
func stringDump(L *lua.LState) int {
	if checkFunction(L, 1).IsG {
		fail(L, "unable to dump given function")
	}
	L.Push(lua.LString("\x1bLuaQ"))
	return 1
}

func stringLen(L *lua.LState) int {
	L.Push(lua.LNumber(len(checkString(L, 1))))
	return 1
}

func (m *machine) stringSub(L *lua.LState) int {
	s := checkString(L, 1)
	from, to := relative(checkInteger(L, 2), len(s)), relative(optInteger(L, 3, -1), len(s))
	from, to = max(from, 1), min(to, len(s))
	if from > to {
		L.Push(lua.LString(""))
	} else {
		L.Push(m.substring(L, s, from-1, to))
	}
	return 1
}

func stringByte(L *lua.LState) int {
	s := checkString(L, 1)
	first := optInteger(L, 2, 1)
	from := relative(first, len(s))
	to := relative(optInteger(L, 3, from), len(s))
	from, to = max(from, 1), min(to, len(s))
	if from > to {
		return 0
	}
	n := to - from + 1
	checkSpace(L, n, "string slice too long")
	for i := from - 1; i < to; i++ {
		L.Push(number(lua.LNumber(s[i])))
	}
	return n
}

func stringChar(L *lua.LState) int {
	machineOf(L).Charge(L, stringSize+L.GetTop())
	b := make([]byte, L.GetTop())
	for i := range b {
		c := checkInt(L, i+1)
		if c != int(byte(c)) {
			argError(L, i+1, "invalid value")
		}
		b[i] = byte(c)
	}
	L.Push(lua.LString(b))
	return 1
}

func (m *machine) mapBytes(from, to, add byte) lua.LGFunction {
	return func(L *lua.LState) int {
		s := checkString(L, 1)
		m.Charge(L, 2*len(s)+stringSize)
		b := []byte(s)
		for i, c := range b {
			if from <= c && c <= to {
				b[i] = c + add
			}
		}
		L.Push(lua.LString(b))
		return 1
	}
}

func (m *machine) stringReverse(L *lua.LState) int {
	s := checkString(L, 1)
	m.Charge(L, 2*len(s)+stringSize)
	b := make([]byte, len(s))
	for i := range b {
		b[i] = s[len(s)-1-i]
	}
	L.Push(lua.LString(b))
	return 1
}

func (m *machine) stringRep(L *lua.LState) int {
	s, n := checkString(L, 1), checkInt(L, 2)
	if n <= 0 || s == "" {
		L.Push(lua.LString(""))
		return 1
	}
	if n > maxText/len(s) {
		n = maxText/len(s) + 1 // Charge ends the script
	}
	m.Charge(L, n*len(s)+stringSize)
	L.Push(lua.LString(strings.Repeat(s, n)))
	return 1
}

// stringFind is string.find and string.match.
func (m *machine) stringFind(L *lua.LState, find bool) int {
	s, p := checkString(L, 1), checkString(L, 2)
	init := min(max(relative(optInteger(L, 3, 1), len(s))-1, 0), len(s))
	if find && (lua.LVAsBool(L.Get(4)) || !strings.ContainsAny(cformat.CString(p), "^$*+?.([%-")) {
		m.Work(L, (len(s)-init)>>6)
		if i := strings.Index(s[init:], p); i >= 0 {
			L.Push(lua.LNumber(init + i + 1))
			L.Push(lua.LNumber(init + i + len(p)))
			return 2
		}
		L.Push(lua.LNil)
		return 1
	}
	p, anchored := strings.CutPrefix(p, "^")
	ms := m.newMatcher(L, s, p)
	for ; init <= len(s); init++ {
		if e := ms.Match(init); e >= 0 {
			if find {
				L.Push(lua.LNumber(init + 1))
				L.Push(lua.LNumber(e))
				return ms.push(false, 0, 0) + 2
			}
			return ms.push(true, init, e)
		}
		if anchored {
			break
		}
	}
	L.Push(lua.LNil)
	return 1
}

func (m *machine) stringGmatch(L *lua.LState) int {
	s, p := checkString(L, 1), checkString(L, 2)
	pos := 0
	m.Charge(L, closureSize+2*upvalueSize)
	// The upvalues show measure which strings the closure keeps alive.
	L.Push(L.NewClosure(func(L *lua.LState) int {
		ms := machineOf(L).newMatcher(L, s, p)
		for ; pos <= len(s); pos++ {
			if e := ms.Match(pos); e >= 0 {
				from := pos
				if pos = e; e == from {
					pos++
				}
				return ms.push(true, from, e)
			}
		}
		return 0
	}, lua.LString(s), lua.LString(p)))
	return 1
}

func (m *machine) stringGsub(L *lua.LState) int {
	s, p := checkString(L, 1), checkString(L, 2)
	repl := L.Get(3)
	switch repl.(type) {
	case lua.LString, lua.LNumber, *lua.LFunction, *lua.LTable:
	default:
		argError(L, 3, "string/function/table expected")
	}
	most := optInteger(L, 4, len(s)+1)
	if !absent(L, 4) {
		most = int(int32(most))
	}
	p, anchored := strings.CutPrefix(p, "^")
	ms := m.newMatcher(L, s, p)
	out := buffer{m: m, L: L}
	n, pos := 0, 0
	for n < most {
		e := ms.Match(pos)
		if e >= 0 {
			n++
			m.replace(ms, &out, repl, pos, e)
		}
		if e > pos {
			pos = e
		} else if pos < len(s) {
			out.add(s[pos : pos+1])
			pos++
		} else {
			break
		}
		if anchored {
			break
		}
	}
	if pos < len(s) {
		out.add(s[pos:])
	}
	L.Push(lua.LString(out.b))
	L.Push(lua.LNumber(n))
	return 2
}

// replace appends what gsub puts in the place of the match from s to e.
func (m *machine) replace(ms *matcher, out *buffer, repl lua.LValue, s, e int) {
	var v lua.LValue
	switch repl := repl.(type) {
	case *lua.LTable:
		v = m.index(ms.L, repl, ms.value(0, s, e), -1)
	case *lua.LFunction:
		args := make([]lua.LValue, max(ms.Captures(), 1))
		for i := range args {
			args[i] = ms.value(i, s, e)
		}
		v = m.call(ms.L, repl, args...)
	default:
		text := repl.String()
		if f, ok := repl.(lua.LNumber); ok {
			text = lualib.NumberString(float64(f))
		}
		for i := 0; i < len(text); i++ {
			switch {
			case text[i] != '%':
				j := strings.IndexByte(text[i:], '%')
				if j < 0 {
					j = len(text) - i
				}
				out.add(text[i : i+j])
				i += j - 1
			case i+1 == len(text):
				out.add("\x00")
			case !pattern.IsDigit(text[i+1]):
				i++
				out.add(text[i : i+1])
			case text[i+1] == '0':
				i++
				out.add(ms.Source[s:e])
			default:
				i++
				out.addValue(ms.value(int(text[i]-'1'), s, e))
			}
		}
		return
	}
	switch v.(type) {
	case lua.LString, lua.LNumber:
		out.addValue(v)
	default:
		if lua.LVAsBool(v) {
			fail(ms.L, "invalid replacement value (a %s)", v.Type())
		}
		out.add(ms.Source[s:e])
	}
}

// buffer is a text that grows, charged for.
type buffer struct {
	m *machine
	L *lua.LState
	b []byte
}

func (o *buffer) add(s string) {
	if n := len(o.b) + len(s); n > cap(o.b) {
		n = max(2*n, 64)
		o.m.Charge(o.L, n)
		b := make([]byte, len(o.b), n)
		copy(b, o.b)
		o.b = b
	}
	o.b = append(o.b, s...)
}

func (o *buffer) addValue(v lua.LValue) {
	if f, ok := v.(lua.LNumber); ok {
		o.add(lualib.NumberString(float64(f)))
		return
	}
	o.add(v.String())
}

func (m *machine) stringFormat(L *lua.LState) int {
	format := checkString(L, 1)
	out := buffer{m: m, L: L}
	arg := 1
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			j := strings.IndexByte(format[i:], '%')
			if j < 0 {
				j = len(format) - i
			}
			out.add(format[i : i+j])
			i += j - 1
			continue
		}
		i++
		if i < len(format) && format[i] == '%' {
			out.add("%")
			continue
		}
		arg++
		if arg > L.GetTop() {
			argError(L, arg, "no value")
		}
		spec, last, problem := cformat.Parse(format, i)
		if problem != "" {
			fail(L, "%s", problem)
		}
		i = last
		m.formatOne(L, &out, spec, arg)
	}
	L.Push(lua.LString(out.b))
	return 1
}

func (m *machine) formatOne(L *lua.LState, out *buffer, f cformat.Spec, arg int) {
	switch f.Verb {
	case 'c':
		out.add(f.Char(byte(lualib.Truncate(checkNumber(L, arg)))))
	case 'd', 'i':
		out.add(f.Signed(lualib.Truncate(checkNumber(L, arg))))
	case 'o', 'u', 'x', 'X':
		out.add(f.Unsigned(lualib.TruncateUnsigned(checkNumber(L, arg))))
	case 'e', 'E', 'f', 'g', 'G':
		out.add(f.Float(checkNumber(L, arg)))
	case 'q':
		quote(out, checkString(L, arg))
	case 's':
		if s := checkString(L, arg); f.Precision < 0 && len(s) >= 100 {
			out.add(s)
		} else {
			out.add(f.String(s))
		}
	case 0:
		fail(L, "%s", "invalid option '%' to 'format'")
	default:
		fail(L, "invalid option '%%%s' to 'format'", string([]byte{f.Verb}))
	}
}

// quote appends a string as a literal of Lua.
func quote(out *buffer, s string) {
	out.add(`"`)
	for i := 0; i < len(s); i++ {
		switch c := s[i]; c {
		case '"', '\\', '\n':
			out.add(`\` + s[i:i+1])
		case '\r':
			out.add(`\r`)
		case 0:
			out.add(`\000`)
		default:
			out.add(s[i : i+1])
		}
	}
	out.add(`"`)
}
