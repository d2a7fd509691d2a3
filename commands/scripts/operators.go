package scripts

import (
	"math"
	"strings"

	"mayfly/commands/scripts/bytecode"
	"mayfly/commands/scripts/lualib"

	lua "github.com/yuin/gopher-lua"
)

// maxMetaLoop bounds chains of __index and __newindex.
const maxMetaLoop = 100

// longString is the size from which comparing and hashing a string counts as work.
const longString = 512

// sealed is the metatable of a table that scripts cannot write. meta is the metatable they see, or LNil.
type sealed struct{ meta lua.LValue }

func (*sealed) String() string       { return "sealed" }
func (*sealed) Type() lua.LValueType { return lua.LTUserData }

// seal makes a table readonly for scripts.
func seal(t *lua.LTable) {
	if _, ok := t.Metatable.(*sealed); !ok {
		t.Metatable = &sealed{t.Metatable}
	}
}

func isSealed(t *lua.LTable) bool {
	_, ok := t.Metatable.(*sealed)
	return ok
}

// metaOf returns the metatable of a value, nil if it has none.
func (m *machine) metaOf(v lua.LValue) *lua.LTable {
	var meta lua.LValue
	switch v := v.(type) {
	case *lua.LTable:
		meta = v.Metatable
		if s, ok := meta.(*sealed); ok {
			meta = s.meta
		}
	case *lua.LUserData:
		meta = v.Metatable
	case lua.LString:
		return m.stringMeta
	}
	t, _ := meta.(*lua.LTable)
	return t
}

// metaOp returns a metamethod of a value, LNil if it has none.
func (m *machine) metaOp(v lua.LValue, event string) lua.LValue {
	if t := m.metaOf(v); t != nil {
		return rawGetString(t, event)
	}
	return lua.LNil
}

// index returns object[key]. reg is the register of the object, which errors name, or -1.
func (m *machine) index(L *lua.LState, object, key lua.LValue, reg int) lua.LValue {
	for range maxMetaLoop {
		var h lua.LValue
		if t, ok := object.(*lua.LTable); ok {
			if v := m.rawGet(L, t, key); v != lua.LNil {
				return v
			}
			if h = m.metaOp(t, "__index"); h == lua.LNil {
				return lua.LNil
			}
		} else if h = m.metaOp(object, "__index"); h == lua.LNil {
			typeError(L, "index", object, reg)
		}
		if h.Type() == lua.LTFunction {
			return m.call(L, h, object, key)
		}
		object, reg = h, -1
	}
	raise(L, "loop in gettable")
	return nil
}

// setIndex does object[key] = v. reg is the register of the object, which errors name, or -1.
func (m *machine) setIndex(L *lua.LState, object, key, v lua.LValue, reg int) {
	for range maxMetaLoop {
		var h lua.LValue
		if t, ok := object.(*lua.LTable); ok {
			if t.Metatable == lua.LNil {
				m.rawSet(L, t, key, v)
				return
			}
			if isSealed(t) {
				raise(L, "Attempt to modify a readonly table")
			}
			if m.rawGet(L, t, key) != lua.LNil {
				m.rawSet(L, t, key, v)
				return
			}
			if h = m.metaOp(t, "__newindex"); h == lua.LNil {
				m.rawSet(L, t, key, v)
				return
			}
		} else if h = m.metaOp(object, "__newindex"); h == lua.LNil {
			typeError(L, "index", object, reg)
		}
		if h.Type() == lua.LTFunction {
			m.call(L, h, object, key, v)
			return
		}
		object, reg = h, -1
	}
	raise(L, "loop in settable")
}

func arith(op uint32, a, b lua.LNumber) lua.LNumber {
	switch op {
	case bytecode.Add:
		return a + b
	case bytecode.Sub:
		return a - b
	case bytecode.Mul:
		return a * b
	case bytecode.Div:
		return a / b
	case bytecode.Mod:
		return lua.LNumber(hardwareNaN(float64(a)-math.Floor(float64(a)/float64(b))*float64(b), float64(a), float64(b)))
	}
	return lua.LNumber(math.Pow(float64(a), float64(b)))
}

// hardwareNaN returns f, the result for a and b, with the sign that a new NaN has on amd64: scripts can see it.
func hardwareNaN(f, a, b float64) float64 {
	if math.IsNaN(f) && !math.IsNaN(a) && !math.IsNaN(b) {
		return math.Copysign(f, -1)
	}
	return f
}

var arithEvents = map[uint32]string{bytecode.Add: "__add", bytecode.Sub: "__sub", bytecode.Mul: "__mul", bytecode.Div: "__div", bytecode.Mod: "__mod", bytecode.Pow: "__pow", bytecode.Unm: "__unm"}

// arithValues computes with values of which at least one is no number.
func (m *machine) arithValues(L *lua.LState, inst uint32, x, y lua.LValue) lua.LValue {
	op := inst >> 26
	a, ok1 := lualib.ToNumber(x)
	b, ok2 := lualib.ToNumber(y)
	if ok1 && ok2 {
		if op == bytecode.Unm {
			return number(lua.LNumber(-a))
		}
		return number(arith(op, lua.LNumber(a), lua.LNumber(b)))
	}
	h := m.metaOp(x, arithEvents[op])
	if h == lua.LNil {
		h = m.metaOp(y, arithEvents[op])
	}
	if h != lua.LNil {
		return m.call(L, h, x, y)
	}
	if !ok1 || op == bytecode.Unm {
		typeError(L, "perform arithmetic on", x, bytecode.B(inst))
	}
	typeError(L, "perform arithmetic on", y, bytecode.C(inst))
	return nil
}

// concat returns the n values from a register on, joined.
func (m *machine) concat(L *lua.LState, s *state, from, n int) lua.LValue {
	v := s.reg.array[from+n-1]
	for i := from + n - 2; i >= from; {
		if !lua.LVCanConvToString(v) || !lua.LVCanConvToString(s.reg.array[i]) {
			x := s.reg.array[i]
			h := m.metaOp(x, "__concat")
			if h == lua.LNil {
				h = m.metaOp(v, "__concat")
			}
			if h == lua.LNil {
				base := s.currentFrame.LocalBase
				if lua.LVCanConvToString(x) {
					typeError(L, "concatenate", v, i+1-base)
				}
				typeError(L, "concatenate", x, i-base)
			}
			v = m.call(L, h, x, v)
			i--
			continue
		}
		first, size := i, textSize(v)
		for ; first >= from && lua.LVCanConvToString(s.reg.array[first]); first-- {
			size += textSize(s.reg.array[first])
		}
		m.Charge(L, size+stringSize)
		var b strings.Builder
		b.Grow(size)
		for _, part := range s.reg.array[first+1 : i+1] {
			appendText(&b, part)
		}
		appendText(&b, v)
		v = lua.LString(b.String())
		i = first
	}
	return v
}

// textSize returns the bytes of a string, or about those of a number.
func textSize(v lua.LValue) int {
	if s, ok := v.(lua.LString); ok {
		return len(s)
	}
	return 16
}

func appendText(b *strings.Builder, v lua.LValue) {
	switch v := v.(type) {
	case lua.LString:
		b.WriteString(string(v))
	case lua.LNumber:
		var buf [32]byte
		b.Write(lualib.AppendNumber(buf[:0], float64(v), 14))
	}
}

func (m *machine) equal(L *lua.LState, x, y lua.LValue) bool {
	switch a := x.(type) {
	case lua.LNumber:
		b, ok := y.(lua.LNumber)
		return ok && a == b
	case lua.LString:
		b, ok := y.(lua.LString)
		if len(a) > longString {
			m.Work(L, len(a)>>6)
		}
		return ok && a == b
	case *lua.LTable:
		if b, ok := y.(*lua.LTable); ok && a != b {
			h := m.metaOp(a, "__eq")
			return h != lua.LNil && h == m.metaOp(b, "__eq") && lua.LVAsBool(m.call(L, h, a, b))
		}
	}
	return x == y
}

func (m *machine) less(L *lua.LState, x, y lua.LValue) bool {
	switch a := x.(type) {
	case lua.LNumber:
		if b, ok := y.(lua.LNumber); ok {
			return a < b
		}
	case lua.LString:
		if b, ok := y.(lua.LString); ok {
			m.Work(L, len(a)>>6)
			return a < b
		}
	}
	is, ok := m.order(L, x, y, "__lt")
	if !ok {
		compareError(L, x, y)
	}
	return is
}

func (m *machine) lessEqual(L *lua.LState, x, y lua.LValue) bool {
	switch a := x.(type) {
	case lua.LNumber:
		if b, ok := y.(lua.LNumber); ok {
			return a <= b
		}
	case lua.LString:
		if b, ok := y.(lua.LString); ok {
			m.Work(L, len(a)>>6)
			return a <= b
		}
	}
	if is, ok := m.order(L, x, y, "__le"); ok {
		return is
	}
	is, ok := m.order(L, y, x, "__lt")
	if !ok {
		compareError(L, x, y)
	}
	return !is
}

// order asks the metamethod that two values of one type share.
func (m *machine) order(L *lua.LState, x, y lua.LValue, event string) (is, ok bool) {
	if x.Type() != y.Type() {
		return false, false
	}
	h := m.metaOp(x, event)
	if h == lua.LNil || h != m.metaOp(y, event) {
		return false, false
	}
	return lua.LVAsBool(m.call(L, h, x, y)), true
}

// forPrepare readies the three control values of a numeric for.
func (m *machine) forPrepare(L *lua.LState, r *registry, ra int) {
	for i, name := range []string{"'for' initial value", "'for' limit", "'for' step"} {
		f, ok := lualib.ToNumber(r.array[ra+i])
		if !ok {
			raise(L, name+" must be a number")
		}
		r.array[ra+i] = lua.LNumber(f)
	}
	r.array[ra] = r.array[ra].(lua.LNumber) - r.array[ra+2].(lua.LNumber)
}
