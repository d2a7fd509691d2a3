package lua

import (
	"math"
	"math/rand/v2"
	"strings"
)

// MaxBody is how many bytes a chunk may have.
const MaxBody = 2 << 20

// New returns a machine with Lua's libraries that reach nothing outside it. Limits are those of Reset.
func New() *Machine {
	m := &Machine{memory: math.MaxInt64, allowed: math.MaxInt64}
	m.root = &Call{M: m}
	m.frame = m.root
	m.Globals = m.NewTable(0)
	m.Set(m.Globals, "_G", m.Globals)
	m.Set(m.Globals, "_VERSION", "Lua 5.1")
	m.Fill(m.Globals, m.baseLibrary())
	m.next1 = m.Globals.Get("next").(*Function)
	text := m.Library("string", m.stringLibrary())
	m.Library("table", m.tableLibrary())
	maths := m.Library("math", m.mathLibrary())
	m.Set(maths, "pi", math.Pi)
	m.Set(maths, "huge", math.Inf(1))
	m.Library("coroutine", m.coroutineLibrary())
	m.stringMeta = m.NewTable(0)
	m.Set(m.stringMeta, "__index", text)
	m.stringMeta.Seal()
	return m
}

// Fill sets functions of a table.
func (m *Machine) Fill(t *Table, functions map[string]Builtin) {
	for name, f := range functions {
		m.Set(t, name, &Function{name: name, builtin: f})
	}
}

// Library sets a global to a table of functions.
func (m *Machine) Library(name string, functions map[string]Builtin) *Table {
	t := m.NewTable(0)
	m.Fill(t, functions)
	m.Set(m.Globals, name, t)
	return t
}

// SealGlobals makes the globals and their libraries readonly. missing is called for globals that are not
// there.
func (m *Machine) SealGlobals(missing Builtin) {
	for _, v := range m.All(m.Globals) {
		if t, ok := v.(*Table); ok {
			t.Seal()
		}
	}
	m.Globals.meta = m.NewTable(0)
	m.Set(m.Globals.meta, "__index", &Function{name: "__index", builtin: missing})
	m.Globals.meta.Seal()
}

// Reset readies the machine for another script.
func (m *Machine) Reset(memory int64, interrupt Interrupt) {
	m.unwind(m.root)
	for co := range m.threads {
		co.stop()
	}
	m.root.child, m.root.regs = m.root.child.prune(), nil
	m.threads, m.sources, m.ret, m.held, m.thread = nil, nil, nil, nil, nil
	m.memory, m.interrupt, m.stop = memory, interrupt, nil
	m.fuel, m.depth, m.stack, m.used, m.hidden, m.told, m.allowed = turnFuel, 0, 0, 0, 0, 0, min(memory, firstWalk)
	m.random = rand.Uint64() // as Redis 7: each script begins at another place
}

// prune drops the calls that are kept if a script has needed many, or much room in one.
func (c *Call) prune() *Call {
	n := 0
	for d := c; d != nil; d = d.child {
		if n += 8 + cap(d.buf); n > 2_000 {
			return nil
		}
	}
	return c
}

// Ended returns what has ended a script whose panic was r: the error of Stop or End, or a *MemoryError; nil
// for a panic of another kind, after which the machine is of no more use.
func (m *Machine) Ended(r any) error {
	if _, ok := r.(ended); ok {
		return m.stop
	}
	return nil
}

// Run runs a chunk, and returns its first result. failed reports whether that is an error that it has raised.
func (m *Machine) Run(chunk *Chunk) (v Value, failed bool) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *thrown:
			v, failed = r.v, true
		default:
			panic(r)
		}
	}()
	return first(m.run(m.enter(chunk.Function(), 8), nil)), false
}

func (m *Machine) baseLibrary() map[string]Builtin {
	return map[string]Builtin{
		"assert": func(c *Call) []Value {
			if !Truth(c.Any(1)) {
				c.Fail("%s", c.TextOr(2, "assertion failed!"))
			}
			return c.args
		},
		"collectgarbage": func(c *Call) []Value {
			switch option := c.TextOr(1, "collect"); option {
			case "count":
				return c.Return(float64(m.used) / 1024)
			case "collect", "stop", "restart", "setpause", "setstepmul":
				return c.Return(0.0)
			case "step":
				return c.Return(true)
			default:
				c.ArgError(1, "invalid option '"+option+"'")
			}
			return nil
		},
		"error": func(c *Call) []Value {
			v, level := c.Arg(1), c.int32Or(2, 1)
			if s, ok := ToText(v); ok && level > 0 {
				v = m.where(level) + s
			}
			Throw(v)
			return nil
		},
		"gcinfo": func(c *Call) []Value { return c.Return(float64(m.used >> 10)) },
		"getmetatable": func(c *Call) []Value {
			meta := m.metatable(c.Any(1))
			if meta == nil {
				return c.Return(nil)
			}
			if v := meta.Get("__metatable"); v != nil {
				return c.Return(v)
			}
			return c.Return(meta)
		},
		"ipairs": func() Builtin {
			step := &Function{name: "ipairs", builtin: func(c *Call) []Value {
				i := c.Int32(2) + 1
				if v := c.Table(1).At(i); v != nil {
					return c.Return(Int(i), v)
				}
				return nil
			}}
			return func(c *Call) []Value { return c.Return(step, c.Table(1), 0.0) }
		}(),
		"load": m.load,
		"loadstring": func(c *Call) []Value {
			return m.loadText(c, c.Text(1), c.TextOr(2, c.Text(1)))
		},
		"next": func(c *Call) []Value {
			k, v, ok := m.next(c.Table(1), c.Arg(2))
			if !ok {
				m.Raise("invalid key to 'next'")
			}
			if k == nil {
				return c.Return(nil)
			}
			return c.Return(k, v)
		},
		"pairs": func(c *Call) []Value { return c.Return(m.next1, c.Table(1), nil) },
		"pcall": m.pcall,
		"rawequal": func(c *Call) []Value {
			m.longValue(c.Any(1))
			return c.Return(c.Any(1) == c.Any(2))
		},
		"rawget": func(c *Call) []Value {
			m.longValue(c.Any(2))
			return c.Return(c.Table(1).Get(c.Any(2)))
		},
		"rawset": func(c *Call) []Value {
			m.store(c.Table(1), c.Any(2), c.Any(3))
			return c.args[:1]
		},
		"select": func(c *Call) []Value {
			n := c.N()
			if s, ok := c.Arg(1).(string); ok && strings.HasPrefix(s, "#") {
				return c.Return(Int(n - 1))
			}
			i := c.Int32(1)
			if i < 0 {
				i += n
			}
			if i < 1 {
				c.ArgError(1, "index out of range")
			}
			return c.args[min(i, n):]
		},
		"setmetatable": func(c *Call) []Value {
			t := c.Table(1)
			meta, ok := c.Arg(2).(*Table)
			if !ok && (c.N() < 2 || c.Arg(2) != nil) {
				c.ArgError(2, "nil or table expected")
			}
			if m.metaOf(t, "__metatable") != nil {
				c.Fail("cannot change a protected metatable")
			}
			if t.sealed {
				m.Raise("Attempt to modify a readonly table")
			}
			t.meta = meta
			return c.args[:1]
		},
		"tonumber": tonumber,
		"tostring": func(c *Call) []Value {
			v := c.Any(1)
			if h := m.metaOf(v, "__tostring"); h != nil {
				return c.Return(m.Call(h, v))
			}
			return c.Return(Text(v))
		},
		"type": func(c *Call) []Value { return c.Return(TypeOf(c.Any(1))) },
		"unpack": func(c *Call) []Value {
			t := c.Table(1)
			i, e := c.int32Or(2, 1), c.int32Or(3, m.Len(t))
			if i > e {
				return nil
			}
			n := e - i + 1
			if n > MaxValues-c.N() {
				c.Fail("too many results to unpack")
			}
			m.Charge(slotSize * n)
			out := make([]Value, n)
			for k := range out {
				out[k] = t.At(i + k)
			}
			return out
		},
		"xpcall": m.xpcall,
	}
}

// store is Set for builtins: it refuses sealed tables.
func (m *Machine) store(t *Table, k, v Value) {
	if t.sealed {
		m.Raise("Attempt to modify a readonly table")
	}
	m.Set(t, k, v)
}

func tonumber(c *Call) []Value {
	if base := c.IntOr(2, 10); base != 10 {
		s := c.Text(1)
		c.M.long(s)
		if base < 2 || base > 36 {
			c.ArgError(2, "base out of range")
		}
		if f, ok := parseUnsigned(s, base); ok {
			return c.Return(Number(f))
		}
	} else if f, ok := c.Number(c.Any(1)); ok {
		return c.Return(Number(f))
	}
	return c.Return(nil)
}

func (m *Machine) pcall(c *Call) []Value {
	m.Work(16)
	var out []Value
	failed := m.protect(func() {
		if c.N() == 0 {
			Throw("attempt to call a boolean value") // as Redis
		}
		m.checkCallable(c.args[0])
		out = m.CallAll(c.args[0], c.args[1:])
	})
	if failed == nil {
		return c.prefix(true, out)
	}
	if t, ok := failed.v.(*Table); ok { // an error reply: Redis' pcall returns its text, after the table if it is none
		text := c.index(0, t, "err", nil)
		if _, ok := ToText(text); ok {
			return c.Return(false, text)
		}
		return c.Return(false, t, text)
	}
	return c.Return(false, failed.v)
}

// checkCallable raises Lua's error for calling what is no function.
func (m *Machine) checkCallable(f Value) {
	if _, ok := f.(*Function); !ok {
		if _, ok := m.metaOf(f, "__call").(*Function); !ok {
			Throw("attempt to call a " + TypeOf(f) + " value")
		}
	}
}

func (m *Machine) xpcall(c *Call) []Value {
	m.Work(16)
	handler, f := c.Any(2), c.Any(1)
	var out []Value
	failed := m.protect(func() {
		m.checkCallable(f)
		out = m.CallAll(f, nil)
	})
	if failed == nil {
		return c.prefix(true, out)
	}
	v := Value("error in error handling")
	m.protect(func() {
		m.checkCallable(handler)
		v = m.Call(handler, failed.v)
	})
	return c.Return(false, v)
}

func (m *Machine) load(c *Call) []Value {
	f, name := c.function(1), c.TextOr(2, "=(load)")
	text := m.NewBuffer()
	for {
		v := m.Call(f)
		s, ok := ToText(v)
		if v != nil && !ok {
			text.Text()
			return c.Return(nil, "reader function must return a string")
		}
		if s == "" {
			return m.loadText(c, text.Text(), name)
		}
		text.Add(s)
	}
}

func (m *Machine) loadText(c *Call, text, name string) []Value {
	if len(text) > MaxBody {
		c.Fail("script is larger than %d bytes", MaxBody)
	}
	m.Charge(nodeSize*min(len(text)/2, maxNodes) + protoSize + len(name) + 160)
	id := chunkID(name)
	if m.sources == nil {
		m.sources = map[string]string{}
	}
	m.sources[id] = name
	chunk, err := Compile(text, id)
	if err != nil {
		return c.Return(nil, err.Error())
	}
	chunk.loaded = true
	return c.Return(chunk.Function())
}
