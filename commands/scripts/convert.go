package scripts

import (
	"strings"

	"mayfly/commands/scripts/lualib"

	lua "github.com/yuin/gopher-lua"
)

// maxReplyDepth bounds nested arrays of a script's reply.
const maxReplyDepth = 1_000

// field returns a table with one member.
func field(L *lua.LState, name string, v lua.LValue) *lua.LTable {
	machineOf(L).Charge(L, tableSize+mapSize+keysSize+2*stringSize)
	t := L.CreateTable(0, 1)
	t.RawSetString(name, v)
	return t
}

// toLua returns the reply of a command as a value of Lua.
func (m *machine) toLua(L *lua.LState, v *Value) lua.LValue {
	m.Charge(L, stringSize+len(v.Str))
	switch v.Kind {
	case Int:
		return number(lua.LNumber(v.Int))
	case Bulk:
		return lua.LString(v.Str)
	case Status:
		m.Charge(L, tableSize+entrySize)
		return field(L, "ok", lua.LString(v.Str))
	case Error:
		t := errorTable(L, "-"+v.Str)
		t.RawSetString("ignore_error_stats_update", lua.LTrue)
		return t
	case Array:
		return m.elements(L, v.Elems)
	case Bool:
		return lua.LBool(v.Int != 0)
	case Double:
		m.Charge(L, tableSize+entrySize)
		return field(L, "double", lua.LNumber(v.Double))
	case Big:
		m.Charge(L, tableSize+entrySize)
		return field(L, "big_number", lua.LString(v.Str))
	case Verbatim:
		m.Charge(L, 2*(tableSize+entrySize))
		format, text, _ := strings.Cut(v.Str, ":")
		t := field(L, "string", lua.LString(text))
		t.RawSetString("format", lua.LString(format))
		return field(L, "verbatim_string", t)
	case Map:
		m.Charge(L, 2*tableSize+entrySize)
		t := L.CreateTable(0, 0)
		for i := 0; i+1 < len(v.Elems); i += 2 {
			if k := m.toLua(L, &v.Elems[i]); k != lua.LNil {
				m.rawSet(L, t, k, m.toLua(L, &v.Elems[i+1]))
			}
		}
		return field(L, "map", t)
	case Set:
		m.Charge(L, 2*tableSize+entrySize)
		t := L.CreateTable(0, 0)
		for i := range v.Elems {
			if k := m.toLua(L, &v.Elems[i]); k != lua.LNil {
				m.rawSet(L, t, k, lua.LTrue)
			}
		}
		return field(L, "set", t)
	}
	if m.resp == 3 {
		return lua.LNil
	}
	return lua.LFalse
}

func (m *machine) elements(L *lua.LState, elems []Value) *lua.LTable {
	m.Charge(L, tableSize+slotSize*len(elems))
	t := L.CreateTable(len(elems), 0)
	h := tableOf(t)
	for i := range elems {
		h.Array = append(h.Array, m.toLua(L, &elems[i]))
	}
	return t
}

// errorTable returns an error reply as scripts see it. The text begins with a minus sign and a code, or has no code.
func errorTable(L *lua.LState, text string) *lua.LTable {
	machineOf(L).Charge(L, 2*len(text)+stringSize)
	code := "ERR"
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text = rest
		if before, after, ok := strings.Cut(rest, " "); ok {
			code, text = before, after
		}
	}
	return field(L, "err", lua.LString(code+" "+strings.Trim(text, "\r\n")))
}

// reply turns what a script returns into a reply.
type reply struct {
	m    *machine
	L    *lua.LState
	size int64
}

func (r *reply) charge(n int) {
	r.size += int64(n)
	if r.size > r.m.limits.Result {
		r.m.end(&ResultError{r.m.limits.Result})
	}
	r.m.Work(r.L, n>>4)
}

func (r *reply) value(v lua.LValue, depth int) Value {
	r.charge(16)
	switch v := v.(type) {
	case lua.LString:
		r.charge(len(v))
		return Value{Kind: Bulk, Str: string(v)}
	case lua.LNumber:
		return Value{Kind: Int, Int: lualib.Truncate(float64(v))}
	case lua.LBool:
		switch {
		case r.m.resp == 3 && bool(v):
			return Value{Kind: Bool, Int: 1}
		case r.m.resp == 3:
			return Value{Kind: Bool}
		case bool(v):
			return Value{Kind: Int, Int: 1}
		}
	case *lua.LTable:
		if depth > maxReplyDepth {
			return ErrorValue("ERR reached lua stack limit")
		}
		return r.table(v, depth)
	}
	return Value{}
}

func (r *reply) table(t *lua.LTable, depth int) Value {
	if text, ok := rawGetString(t, "err").(lua.LString); ok {
		r.charge(len(text))
		v := ErrorValue(lualib.OneLine(string(text)))
		if lua.LVAsBool(rawGetString(t, "ignore_error_stats_update")) {
			v.Int = 1
		}
		return v
	}
	if text, ok := rawGetString(t, "ok").(lua.LString); ok {
		r.charge(len(text))
		return Value{Kind: Status, Str: strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text))}
	}
	if f, ok := rawGetString(t, "double").(lua.LNumber); ok {
		return Value{Kind: Double, Double: float64(f)}
	}
	if inner, ok := rawGetString(t, "map").(*lua.LTable); ok {
		out := Value{Kind: Map}
		for k, v := r.m.next(r.L, inner, lua.LNil); k != lua.LNil; k, v = r.m.next(r.L, inner, k) {
			out.Elems = append(out.Elems, r.value(k, depth+1), r.value(v, depth+1))
		}
		return out
	}
	if inner, ok := rawGetString(t, "set").(*lua.LTable); ok {
		out := Value{Kind: Set}
		for k, _ := r.m.next(r.L, inner, lua.LNil); k != lua.LNil; k, _ = r.m.next(r.L, inner, k) {
			out.Elems = append(out.Elems, r.value(k, depth+1))
		}
		return out
	}
	if text, ok := rawGetString(t, "big_number").(lua.LString); ok {
		r.charge(len(text))
		return Value{Kind: Big, Str: strings.NewReplacer("\r", " ", "\n", " ").Replace(string(text))}
	}
	if inner, ok := rawGetString(t, "verbatim_string").(*lua.LTable); ok {
		format, ok1 := rawGetString(inner, "format").(lua.LString)
		text, ok2 := rawGetString(inner, "string").(lua.LString)
		if ok1 && ok2 {
			r.charge(len(text) + len(format))
			return Value{Kind: Verbatim, Str: (string(format) + "   ")[:3] + ":" + string(text)}
		}
	}
	out := Value{Kind: Array, Elems: []Value{}}
	for i := 1; ; i++ {
		v := r.m.rawGet(r.L, t, lua.LNumber(i))
		if v == lua.LNil {
			return out
		}
		out.Elems = append(out.Elems, r.value(v, depth+1))
	}
}
