package cjson

import (
	"math"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/luatable"
)

// encoder writes one value.
type encoder struct {
	L       *lua.LState
	library *Library
	config  *config
	out     lualib.Buffer
	stack   int // values that C would have on the stack of Lua
}

func (l *Library) encode(L *lua.LState) int {
	checkOne(L)
	e := encoder{L: L, library: l, config: &l.config, out: lualib.NewBuffer(l.bounds), stack: 1}
	e.value(L.Get(1), 0)
	L.Push(lua.LString(e.out.Finish()))
	return 1
}

// fail raises the error of a value that has no JSON.
func (e *encoder) fail(v lua.LValue, reason string) {
	lualib.Raise(e.L, "Cannot serialise "+v.Type().String()+": "+reason)
}

// value appends a value that depth tables enclose.
func (e *encoder) value(v lua.LValue, depth int) {
	e.library.bounds.Work(1)
	switch v := v.(type) {
	case lua.LString:
		e.string(string(v))
	case lua.LNumber:
		e.number(v)
	case lua.LBool:
		if v {
			e.out.Text("true")
		} else {
			e.out.Text("false")
		}
	case *lua.LTable:
		depth++
		if depth > e.config.encodeMaxDepth || e.stack+3 > lualib.MaxStack {
			lualib.Raise(e.L, "Cannot serialise, excessive nesting ("+itoa(depth)+")")
		}
		if n := e.arrayLength(v); n > 0 {
			e.array(v, n, depth)
		} else {
			e.object(v, depth)
		}
	case *lua.LNilType:
		e.out.Text("null")
	default:
		if v == e.library.Null {
			e.out.Text("null")
			return
		}
		e.fail(v, "type not supported")
	}
}

// arrayLength returns the length of a table that is an array, and -1 for others.
func (e *encoder) arrayLength(t *lua.LTable) int {
	length, items := 0, 0
	for k := range luatable.All(t, e.library.bounds.Work) {
		n, ok := k.(lua.LNumber)
		if !ok || n < 1 || n > math.MaxInt32 || n != lua.LNumber(int(n)) {
			return -1
		}
		length = max(length, int(n))
		items++
	}
	if e.config.sparseRatio > 0 && length > items*e.config.sparseRatio && length > e.config.sparseSafe {
		if e.config.sparseConvert == 0 {
			e.fail(t, "excessively sparse array")
		}
		return -1
	}
	return length
}

func (e *encoder) array(t *lua.LTable, length, depth int) {
	e.out.Char('[')
	e.stack++
	for i := 1; i <= length; i++ {
		if i > 1 {
			e.out.Char(',')
		}
		e.value(luatable.Get(t, lua.LNumber(i)), depth)
	}
	e.stack--
	e.out.Char(']')
}

func (e *encoder) object(t *lua.LTable, depth int) {
	e.out.Char('{')
	e.stack += 2
	first := true
	for k, v := range luatable.All(t, e.library.bounds.Work) {
		if !first {
			e.out.Char(',')
		}
		first = false
		switch k := k.(type) {
		case lua.LNumber:
			e.out.Char('"')
			e.number(k)
			e.out.Text(`":`)
		case lua.LString:
			e.string(string(k))
			e.out.Char(':')
		default:
			e.fail(k, "table key must be a number or string")
		}
		e.value(v, depth)
	}
	e.stack -= 2
	e.out.Char('}')
}

func (e *encoder) number(n lua.LNumber) {
	f := float64(n)
	if f != f || math.IsInf(f, 0) {
		switch {
		case e.config.encodeInvalidNumbers == 0:
			e.fail(n, "must not be NaN or Inf")
		case e.config.encodeInvalidNumbers == 2:
			e.out.Text("null")
			return
		case f != f:
			e.out.Text("nan")
			return
		}
	}
	e.out.Grow(32)
	e.out.Bytes = lualib.AppendNumber(e.out.Bytes, f, e.config.precision)
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

func (e *encoder) string(s string) {
	e.library.bounds.Work(len(s) / 64)
	e.out.Grow(len(s) + 2)
	e.out.Char('"')
	from := 0
	for i := range len(s) {
		if escape := escapes[s[i]]; escape != "" {
			e.out.Text(s[from:i])
			e.out.Text(escape)
			from = i + 1
		}
	}
	e.out.Text(s[from:])
	e.out.Char('"')
}
