package scripts

import (
	"fmt"
	"math"
	"strings"

	"mayfly/commands/scripts/cformat"
	"mayfly/commands/scripts/compiled"
	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/pattern"
	"mayfly/commands/scripts/syntax"

	lua "github.com/yuin/gopher-lua"
)

func (m *machine) baseFunctions() map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"assert":         baseAssert,
		"collectgarbage": m.collectGarbage,
		"error":          baseError,
		"gcinfo":         func(L *lua.LState) int { L.Push(lua.LNumber(m.used >> 10)); return 1 },
		"getmetatable":   m.getMetatable,
		"load":           m.load,
		"loadstring":     m.loadString,
		"next":           m.baseNext,
		"pcall":          m.pcall,
		"rawequal":       func(L *lua.LState) int { L.Push(lua.LBool(checkAny(L, 1) == checkAny(L, 2))); return 1 },
		"rawget":         func(L *lua.LState) int { L.Push(m.rawGet(L, checkTable(L, 1), checkAny(L, 2))); return 1 },
		"rawset":         m.baseRawSet,
		"select":         baseSelect,
		"setmetatable":   m.setMetatable,
		"tonumber":       baseToNumber,
		"tostring":       func(L *lua.LState) int { L.Push(m.toString(L, checkAny(L, 1))); return 1 },
		"type":           func(L *lua.LState) int { L.Push(lua.LString(checkAny(L, 1).Type().String())); return 1 },
		"unpack":         m.unpack,
		"xpcall":         m.xpcall,
	}
}

func baseAssert(L *lua.LState) int {
	if !lua.LVAsBool(checkAny(L, 1)) {
		message := "assertion failed!"
		if !absent(L, 2) {
			message = checkString(L, 2)
		}
		fail(L, "%s", message)
	}
	return L.GetTop()
}

func (m *machine) collectGarbage(L *lua.LState) int {
	option := "collect"
	if !absent(L, 1) {
		option = checkString(L, 1)
	}
	switch option {
	case "count":
		L.Push(lua.LNumber(float64(m.used) / 1024))
	case "collect", "stop", "restart", "setpause", "setstepmul":
		L.Push(lua.LNumber(0))
	case "step":
		L.Push(lua.LTrue)
	default:
		argError(L, 1, "invalid option '"+option+"'")
	}
	return 1
}

func baseError(L *lua.LState) int {
	v := L.Get(1)
	level := 1
	if !absent(L, 2) {
		level = checkInt(L, 2)
	}
	if lua.LVCanConvToString(v) && level > 0 {
		v = lua.LString(where(L, level) + checkString(L, 1))
	}
	throwValue(v)
	return 0
}

func (m *machine) getMetatable(L *lua.LState) int {
	meta := m.metaOf(checkAny(L, 1))
	switch {
	case meta == nil:
		L.Push(lua.LNil)
	case rawGetString(meta, "__metatable") != lua.LNil:
		L.Push(rawGetString(meta, "__metatable"))
	default:
		L.Push(meta)
	}
	return 1
}

func (m *machine) setMetatable(L *lua.LState) int {
	t := checkTable(L, 1)
	meta, ok := L.Get(2).(*lua.LTable)
	if !ok && (L.GetTop() < 2 || L.Get(2) != lua.LNil) {
		argError(L, 2, "nil or table expected")
	}
	if m.metaOp(t, "__metatable") != lua.LNil {
		fail(L, "cannot change a protected metatable")
	}
	if isSealed(t) {
		raise(L, "Attempt to modify a readonly table")
	}
	t.Metatable = lua.LNil
	if meta != nil {
		t.Metatable = meta
	}
	L.SetTop(1)
	return 1
}

func (m *machine) baseNext(L *lua.LState) int {
	k, v := m.next(L, checkTable(L, 1), L.Get(2))
	L.Push(k)
	if k == lua.LNil {
		return 1
	}
	L.Push(v)
	return 2
}

func (m *machine) baseRawSet(L *lua.LState) int {
	t := checkTable(L, 1)
	checkAny(L, 2)
	checkAny(L, 3)
	m.store(L, t, L.Get(2), L.Get(3))
	L.SetTop(1)
	return 1
}

// store is rawSet for functions in Go: it refuses sealed tables.
func (m *machine) store(L *lua.LState, t *lua.LTable, key, v lua.LValue) {
	if isSealed(t) {
		raise(L, "Attempt to modify a readonly table")
	}
	m.rawSet(L, t, key, v)
}

func baseSelect(L *lua.LState) int {
	n := L.GetTop()
	if s, ok := L.Get(1).(lua.LString); ok && strings.HasPrefix(string(s), "#") {
		L.Push(lua.LNumber(n - 1))
		return 1
	}
	i := checkInt(L, 1)
	if i < 0 {
		i += n
	} else if i > n {
		i = n
	}
	if i < 1 {
		argError(L, 1, "index out of range")
	}
	return n - i
}

func baseToNumber(L *lua.LState) int {
	base := 10
	if !absent(L, 2) {
		base = checkInt(L, 2)
	}
	if base == 10 {
		if f, ok := lualib.ToNumber(checkAny(L, 1)); ok {
			L.Push(number(lua.LNumber(f)))
			return 1
		}
		L.Push(lua.LNil)
		return 1
	}
	s := checkString(L, 1)
	if base < 2 || base > 36 {
		argError(L, 2, "base out of range")
	}
	if f, ok := parseUnsigned(s, base); ok {
		L.Push(number(lua.LNumber(f)))
	} else {
		L.Push(lua.LNil)
	}
	return 1
}

// parseUnsigned reads a whole number as strtoul does.
func parseUnsigned(s string, base int) (f float64, ok bool) {
	s = strings.Trim(cformat.CString(s), " \t\n\v\f\r")
	s, negative := strings.CutPrefix(s, "-")
	if !negative {
		s = strings.TrimPrefix(s, "+")
	}
	if base == 16 && len(s) > 2 && (s[:2] == "0x" || s[:2] == "0X") {
		s = s[2:]
	}
	var u uint64
	overflow := false
	for i := range len(s) {
		d := int(s[i] - '0')
		if pattern.IsAlpha(s[i]) {
			d = int(s[i]|0x20-'a') + 10
		} else if !pattern.IsDigit(s[i]) {
			return 0, false
		}
		if d >= base {
			return 0, false
		}
		next := u*uint64(base) + uint64(d)
		overflow = overflow || u > math.MaxUint64/uint64(base) || next < u*uint64(base)
		u = next
	}
	if overflow {
		return math.MaxUint64, s != ""
	}
	if negative {
		u = -u
	}
	return float64(u), s != ""
}

// toString returns what tostring does: a string, or what the metamethod returns.
func (m *machine) toString(L *lua.LState, v lua.LValue) lua.LValue {
	if h := m.metaOp(v, "__tostring"); h != lua.LNil {
		return m.call(L, h, v)
	}
	switch v := v.(type) {
	case lua.LString:
		return v
	case lua.LNumber:
		return lua.LString(lualib.NumberString(float64(v)))
	case *lua.LUserData:
		return lua.LString("userdata: (nil)") // cjson.null is the only one
	case *lua.LTable:
		return lua.LString(fmt.Sprintf("table: %p", v))
	}
	return lua.LString(v.String())
}

func (m *machine) unpack(L *lua.LState) int {
	t := checkTable(L, 1)
	i, e := optInteger(L, 2, 1), 0
	i = int(int32(i))
	if absent(L, 3) {
		e = m.length(L, t)
	} else {
		e = checkInt(L, 3)
	}
	if i > e {
		return 0
	}
	n := e - i + 1
	if n > maxStack-L.GetTop() {
		fail(L, "too many results to unpack")
	}
	m.Work(L, n)
	for ; i <= e; i++ {
		L.Push(m.rawGet(L, t, lua.LNumber(i)))
	}
	return n
}

// protect calls f and catches the error that it raises. What ends a script passes through.
func (m *machine) protect(L *lua.LState, f func()) (v lua.LValue, failed bool) {
	s := stateOf(L)
	sp, top, depth, base := s.stack.Sp(), s.reg.top, m.depth, m.threadBase
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		e, ok := r.(*lua.ApiError)
		if !ok || m.stop != nil {
			panic(r)
		}
		s.closeUpvalues(top)
		s.stack.SetSp(sp)
		s.currentFrame = s.stack.Last()
		s.reg.setTop(min(top, s.reg.top))
		m.depth, m.threadBase = depth, base
		L.G.CurrentThread = L
		v, failed = e.Object, true
		if text, ok := v.(lua.LString); ok { // the raiser has not charged it
			m.Charge(L, stringSize+len(text))
		}
	}()
	f()
	return nil, false
}

func (m *machine) pcall(L *lua.LState) int {
	m.Work(L, 16)
	n := L.GetTop() - 1
	v, failed := m.protect(L, func() {
		if n < 0 {
			m.callable(L, lua.LTrue) // as Redis
		}
		m.callable(L, L.Get(1))
		L.Call(n, lua.MultRet)
	})
	if failed {
		if t, ok := v.(*lua.LTable); ok { // an error reply: Redis' pcall returns its text
			if text := m.rawGet(L, t, lua.LString("err")); lua.LVCanConvToString(text) {
				v = text
			}
		}
		L.SetTop(0)
		L.Push(lua.LFalse)
		L.Push(v)
		return 2
	}
	L.Insert(lua.LTrue, 1)
	return L.GetTop()
}

// callable raises Lua's error for calling what is no function.
func (m *machine) callable(L *lua.LState, f lua.LValue) {
	if f.Type() != lua.LTFunction && m.metaOp(f, "__call").Type() != lua.LTFunction {
		throwValue(lua.LString("attempt to call a " + f.Type().String() + " value"))
	}
}

func (m *machine) xpcall(L *lua.LState) int {
	checkAny(L, 2)
	m.Work(L, 16)
	L.SetTop(2)
	f, handler := L.Get(1), L.Get(2)
	v, failed := m.protect(L, func() {
		m.callable(L, f)
		L.Push(f)
		L.Call(0, lua.MultRet)
	})
	if failed {
		var result lua.LValue
		if _, failed := m.protect(L, func() {
			m.callable(L, handler)
			result = m.call(L, handler, v)
		}); failed {
			result = lua.LString("error in error handling")
		}
		v = result
		L.SetTop(0)
		L.Push(lua.LFalse)
		L.Push(v)
		return 2
	}
	L.Insert(lua.LTrue, 3)
	return L.GetTop() - 2
}

func (m *machine) loadString(L *lua.LState) int {
	s := checkString(L, 1)
	name := s
	if !absent(L, 2) {
		name = checkString(L, 2)
	}
	return m.loadText(L, s, name)
}

func (m *machine) load(L *lua.LState) int {
	name := "=(load)"
	f := checkFunction(L, 1)
	if !absent(L, 2) {
		name = checkString(L, 2)
	}
	text := buffer{m: m, L: L}
	for {
		switch v := m.call(L, f).(type) {
		case *lua.LNilType:
			return m.loadText(L, string(text.b), name)
		case lua.LString, lua.LNumber:
			if v.String() == "" {
				return m.loadText(L, string(text.b), name)
			}
			text.addValue(v)
		default:
			L.Push(lua.LNil)
			L.Push(lua.LString("reader function must return a string"))
			return 2
		}
	}
}

func (m *machine) loadText(L *lua.LState, text, name string) int {
	m.Charge(L, 64*len(text)+8*compiled.FunctionSize+len(name)+sourceSize)
	if len(text) > compiled.MaxBody {
		fail(L, "script is larger than %d bytes", compiled.MaxBody)
	}
	id := syntax.ChunkID(name)
	proto, size, err := compiled.Chunk(text, id)
	m.Charge(L, size)
	if m.sources == nil {
		m.sources = map[string]string{}
	}
	m.sources[id] = name
	if err != nil {
		L.Push(lua.LNil)
		L.Push(lua.LString(err.Error()))
		return 2
	}
	L.Push(L.NewFunctionFromProto(proto))
	return 1
}
