package scripts

import (
	"strings"
	"unsafe"

	"mayfly/commands/scripts/lua"
)

// maxReplyDepth bounds nested arrays of a script's reply.
const maxReplyDepth = 1_000

// oneLine makes a text fit into a line of the protocol.
func oneLine(s string) string { return lineEnds.Replace(strings.Trim(s, "\r\n")) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")

// field returns a table with one member.
func field(m *lua.Machine, name string, v lua.Value) *lua.Table {
	t := m.NewTable(0)
	m.Set(t, name, v)
	return t
}

// toLua returns the reply of a command as a value of Lua.
func (r *runner) toLua(v *Value) lua.Value {
	m := r.m
	m.Charge(lua.StringSize + len(v.Str))
	switch v.Kind {
	case Int:
		return lua.Number(float64(v.Int))
	case Bulk:
		return v.Str
	case Status:
		return field(m, "ok", v.Str)
	case Error:
		t := errorTable(m, "-"+v.Str)
		m.Set(t, "ignore_error_stats_update", true)
		return t
	case Bool:
		return v.Int != 0
	case Double:
		return field(m, "double", lua.Number(v.Double))
	case Big:
		return field(m, "big_number", v.Str)
	case Verbatim:
		format, text, _ := strings.Cut(v.Str, ":")
		t := field(m, "string", text)
		m.Set(t, "format", format)
		return field(m, "verbatim_string", t)
	case Array, Map, Set:
		return r.elements(v)
	}
	if r.resp == 3 {
		return nil
	}
	return false
}

func (r *runner) elements(v *Value) *lua.Table {
	n := 0
	if v.Kind == Array {
		n = len(v.Elems)
	}
	t := r.m.NewTable(n)
	defer r.m.Release(r.m.Hold(t))
	for i := 0; i < len(v.Elems); i++ {
		e := r.toLua(&v.Elems[i])
		switch v.Kind {
		case Array:
			r.m.SetElement(t, i+1, e)
			continue
		case Set:
			if e != nil {
				r.m.Set(t, e, true)
			}
			continue
		}
		if i++; i < len(v.Elems) && e != nil {
			r.m.Set(t, e, r.toLua(&v.Elems[i]))
		}
	}
	switch v.Kind {
	case Map:
		return field(r.m, "map", t)
	case Set:
		return field(r.m, "set", t)
	}
	return t
}

// errorTable returns an error reply as scripts see it. The text begins with a minus sign and a code, or has
// no code.
func errorTable(m *lua.Machine, text string) *lua.Table {
	m.Charge(2*len(text) + lua.StringSize)
	code := "ERR"
	if rest, ok := strings.CutPrefix(text, "-"); ok {
		text = rest
		if before, after, ok := strings.Cut(rest, " "); ok {
			code, text = before, after
		}
	}
	return field(m, "err", code+" "+strings.Trim(text, "\r\n"))
}

// reply turns what a script returns into a reply.
type reply struct {
	*runner
	size  int64 // of the texts and about that of the values, as the limit counts them
	taken int64 // bytes of the values
	told  int64 // of taken
}

// toldStep is the number of bytes from which on the interrupt is told of more.
const toldStep = 1 << 20

func (r *reply) charge(n int) {
	if r.size += int64(n); r.size > r.limits.Result {
		r.m.End(&ResultError{r.limits.Result})
	}
	r.m.Work(n >> 4)
}

// text returns a member of a table if it is a string.
func (r *reply) text(t *lua.Table, name string) (s string, ok bool) {
	s, ok = t.Get(name).(string)
	r.charge(len(s))
	return s, ok
}

func (r *reply) value(v lua.Value, depth int) Value {
	r.charge(16)
	// A list has up to twice the room for its values, and its reader makes a list of its own.
	if r.taken += 3 * int64(unsafe.Sizeof(Value{})); r.taken-r.told >= toldStep {
		r.told = r.taken
		r.m.Tell(r.taken)
	}
	switch v := v.(type) {
	case string:
		r.charge(len(v))
		return Value{Kind: Bulk, Str: v}
	case float64:
		return Value{Kind: Int, Int: lua.Truncate(v)}
	case bool:
		out := Value{Kind: Bool}
		if v {
			out.Int = 1
		}
		if r.resp == 3 {
			return out
		}
		if v {
			return Value{Kind: Int, Int: 1}
		}
	case *lua.Table:
		if depth > maxReplyDepth {
			return ErrorValue("ERR reached lua stack limit")
		}
		return r.table(v, depth)
	}
	return Value{}
}

func (r *reply) table(t *lua.Table, depth int) Value {
	if s, ok := r.text(t, "err"); ok {
		v := ErrorValue(oneLine(s))
		if lua.Truth(t.Get("ignore_error_stats_update")) {
			v.Int = 1
		}
		return v
	}
	if s, ok := r.text(t, "ok"); ok {
		return Value{Kind: Status, Str: lineEnds.Replace(s)}
	}
	if f, ok := t.Get("double").(float64); ok {
		return Value{Kind: Double, Double: f}
	}
	if inner, ok := t.Get("map").(*lua.Table); ok {
		out := Value{Kind: Map}
		for k, v := range r.m.All(inner) {
			out.Elems = append(out.Elems, r.value(k, depth+1), r.value(v, depth+1))
		}
		return out
	}
	if inner, ok := t.Get("set").(*lua.Table); ok {
		out := Value{Kind: Set}
		for k := range r.m.All(inner) {
			out.Elems = append(out.Elems, r.value(k, depth+1))
		}
		return out
	}
	if s, ok := r.text(t, "big_number"); ok {
		return Value{Kind: Big, Str: lineEnds.Replace(s)}
	}
	if inner, ok := t.Get("verbatim_string").(*lua.Table); ok {
		format, ok1 := r.text(inner, "format")
		s, ok2 := r.text(inner, "string")
		if ok1 && ok2 {
			return Value{Kind: Verbatim, Str: (format + "   ")[:3] + ":" + s}
		}
	}
	out, block := Value{Kind: Array}, []Value{}
	for i := 1; ; i++ {
		v := t.At(i)
		if v == nil && len(out.Elems) == 0 {
			return Value{Kind: Array, Elems: block}
		}
		if v == nil || len(block) == blockLen {
			out.Elems = append(out.Elems, Value{Kind: Block, Elems: block})
			block = make([]Value, 0, blockLen)
		}
		if v == nil {
			return out
		}
		block = append(block, r.value(v, depth+1))
	}
}

// blockLen is how many elements a [Block] has.
const blockLen = 1 << 10
