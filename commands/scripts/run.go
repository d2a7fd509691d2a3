package scripts

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"

	"mayfly/commands/scripts/bit"
	"mayfly/commands/scripts/cjson"
	"mayfly/commands/scripts/cmsgpack"
	"mayfly/commands/scripts/compiled"
	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/luastruct"

	lua "github.com/yuin/gopher-lua"
)

// ResultError ends a script whose reply is larger than it may be. Limit is in bytes.
type ResultError struct{ Limit int64 }

func (e *ResultError) Error() string {
	return fmt.Sprintf("ERR script stopped: its reply is larger than %d bytes", e.Limit)
}

// ArgError ends a script that calls a command with too large arguments. Limit is in bytes.
type ArgError struct{ Limit int64 }

func (e *ArgError) Error() string {
	return fmt.Sprintf("ERR script stopped: the arguments of a command are larger than %d bytes", e.Limit)
}

// InternalError ends a script that meets a fault of this package or of gopher-lua.
type InternalError struct {
	Cause any    // what was recovered
	Stack []byte // of the goroutine
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("ERR script stopped by an internal error: %v", e.Cause)
}

// machines are states that no script uses.
var machines = sync.Pool{New: func() any { return newMachine() }}

func newMachine() *machine {
	L := lua.NewState(lua.Options{
		SkipOpenLibs: true, MinimizeStackMemory: true,
		CallStackSize: maxFrames + spareFrames, RegistrySize: firstRegisters, RegistryMaxSize: maxRegisters,
	})
	m := &machine{L: L, s: stateOf(L)}
	m.s.prepare()
	L.G.Registry.Metatable = m
	m.limits.Memory, m.allowed = math.MaxInt64, math.MaxInt64

	lua.OpenCoroutine(L)
	resume := L.Get(-1).(*lua.LTable).RawGetString("resume").(*lua.LFunction).GFunction
	L.SetTop(0)
	g := L.CreateTable(0, 48)
	L.G.Global, L.Env, m.globals = g, g, g
	set := func(t *lua.LTable, functions map[string]lua.LGFunction) {
		for name, f := range functions {
			m.rawSet(L, t, lua.LString(name), L.NewFunction(f))
		}
	}
	library := func(name string, t *lua.LTable) *lua.LTable {
		m.rawSet(L, g, lua.LString(name), t)
		return t
	}
	set(g, m.baseFunctions())
	strs := library("string", L.NewTable())
	set(strs, m.stringFunctions())
	set(library("table", L.NewTable()), m.tableFunctions())
	maths := library("math", L.NewTable())
	set(maths, m.mathFunctions())
	m.rawSet(L, maths, lua.LString("pi"), lua.LNumber(math.Pi))
	m.rawSet(L, maths, lua.LString("huge"), lua.LNumber(math.Inf(1)))
	set(library("coroutine", L.NewTable()), m.coroutineFunctions(resume))
	library("redis", m.redisTable(L))
	charge := func(bytes int) { // 0 stands for steps without allocation
		m.Charge(L, bytes)
		m.Work(L, 500)
	}
	json := cjson.Open(L, charge)
	m.reset = json.Reset
	cmsgpack.Open(L, charge)
	luastruct.Open(L, charge)
	bit.Open(L, charge)
	set(g, m.iterators(L))
	m.rawSet(L, g, lua.LString("_VERSION"), lua.LString("Lua 5.1"))
	m.rawSet(L, g, lua.LString("_G"), g)
	m.stringMeta = L.NewTable()
	m.rawSet(L, m.stringMeta, lua.LString("__index"), strs)
	L.SetMetatable(lua.LString(""), m.stringMeta)

	for k, v := m.next(L, g, lua.LNil); k != lua.LNil; k, v = m.next(L, g, k) {
		if t, ok := v.(*lua.LTable); ok && t != g {
			seal(t)
		}
	}
	seal(m.stringMeta)
	meta := L.NewTable()
	m.rawSet(L, meta, lua.LString("__index"), L.NewFunction(missingGlobal))
	seal(meta)
	g.Metatable = &sealed{meta}
	return m
}

// iterators returns pairs and ipairs. Each returns the same iterator at each call.
func (m *machine) iterators(L *lua.LState) map[string]lua.LGFunction {
	next := L.NewFunction(m.baseNext)
	inext := L.NewFunction(func(L *lua.LState) int {
		i := checkInt(L, 2) + 1
		v := m.rawGet(L, checkTable(L, 1), lua.LNumber(i))
		if v == lua.LNil {
			return 0
		}
		L.Push(number(lua.LNumber(i)))
		L.Push(v)
		return 2
	})
	iterator := func(f *lua.LFunction, start lua.LValue) lua.LGFunction {
		return func(L *lua.LState) int {
			t := checkTable(L, 1)
			L.Push(f)
			L.Push(t)
			L.Push(start)
			return 3
		}
	}
	return map[string]lua.LGFunction{"pairs": iterator(next, lua.LNil), "ipairs": iterator(inext, lua.LNumber(0))}
}

// missingGlobal is the metamethod __index of the globals.
func missingGlobal(L *lua.LState) int {
	if name, ok := L.Get(2).(lua.LString); ok {
		fail(L, "Script attempted to access nonexistent global variable '%s'", string(name))
	}
	return 0
}

// Run runs a script. The reply is a Value, also if the script itself fails: then of Kind Error, with
// Redis' text. Its Int is 1 if the error came from a command that the Caller has run (and counted) already.
//
// The error is that of interrupt or of caller.Call, or a *MemoryError, *ResultError, *ArgError or
// *InternalError, whose texts are replies. Run is safe for concurrent use.
func Run(s *compiled.Script, interrupt Interrupt, caller Caller, keys, args []string, lim Limits) (Value, error) {
	if lim.Memory <= 0 {
		lim.Memory = DefaultMemory
	}
	if lim.Result <= 0 {
		lim.Result = lim.Memory
	}
	if lim.Arg <= 0 {
		lim.Arg = lim.Memory
	}
	m := machines.Get().(*machine)
	m.interrupt, m.caller, m.limits, m.sha, m.resp = interrupt, caller, lim, s.SHA1(), 2
	m.fuel, m.depth, m.threadBase, m.stop = turnFuel, 0, 0, nil
	m.used, m.allowed = 0, lim.Memory
	m.random = rand.Uint64() // as Redis 7: each script begins at another place
	v := m.run(s, keys, args)
	err := m.stop
	if m.clean() {
		machines.Put(m)
	}
	if err != nil {
		return Value{}, err
	}
	return v, nil
}

func (m *machine) run(s *compiled.Script, keys, args []string) (v Value) {
	L := m.L
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if _, ok := r.(ended); ok {
			return
		}
		if failed, ok := r.(*lua.ApiError); ok && m.stop == nil {
			v = m.failure(failed.Object)
			return
		}
		if m.stop == nil {
			m.stop = &InternalError{r, debug.Stack()}
		}
	}()
	m.setStrings("KEYS", keys)
	m.setStrings("ARGV", args)
	m.proto = s.Proto()
	L.Push(L.NewFunctionFromProto(m.proto))
	L.Call(0, 1)
	r := reply{m: m, L: L}
	return r.value(L.Get(-1), 0)
}

// setStrings sets a global to a list of strings.
func (m *machine) setStrings(name string, list []string) {
	t := m.L.CreateTable(len(list), 0)
	h := tableOf(t)
	size := tableSize
	for _, s := range list {
		h.Array = append(h.Array, lua.LString(s))
		size += slotSize + stringSize + len(s)
	}
	m.Charge(m.L, size)
	m.globals.RawSetString(name, t)
}

// failure returns the reply for an error that the script does not catch.
func (m *machine) failure(v lua.LValue) Value {
	out := Value{Kind: Error}
	text := ""
	switch e := v.(type) {
	case *lua.LTable:
		if s, ok := rawGetString(e, "err").(lua.LString); ok {
			text = string(s)
		} else {
			text = "ERR unknown error"
		}
		if lua.LVAsBool(rawGetString(e, "ignore_error_stats_update")) {
			out.Int = 1
		}
	case lua.LString, lua.LNumber:
		var b strings.Builder
		appendText(&b, e)
		text = "ERR " + b.String()
	default:
		text = "ERR " + v.String()
	}
	f := stateOf(m.L).currentFrame
	if f != nil && f.Fn.IsG {
		f = f.Parent
	}
	text = lualib.OneLine(text) + " script: " + m.sha
	switch {
	case f == nil:
		text += "."
	case f.Fn.IsG:
		text += ", on =[C]:-1."
	default:
		source, ok := m.sources[f.Fn.Proto.SourceName]
		if !ok {
			source = "@" + f.Fn.Proto.SourceName
		}
		text += ", on " + lualib.OneLine(source) + ":" + strconv.Itoa(line(f)) + "."
	}
	out.Str = text
	return out
}

// clean removes what a script left, for the next one. It reports whether the state can serve another one.
func (m *machine) clean() bool {
	s := m.s
	if m.stop != nil {
		if _, ok := m.stop.(*InternalError); ok {
			return false
		}
	}
	s.stack.SetSp(0)
	s.currentFrame, s.uvcache = nil, nil
	if len(s.reg.array) > 8*firstRegisters {
		s.reg.array = make([]lua.LValue, firstRegisters)
		s.reg.growBy = firstRegisters
	} else {
		for i, v := range s.reg.array {
			if v != nil { // most are: writes cost more than reads while the garbage collector marks
				s.reg.array[i] = nil
			}
		}
	}
	s.reg.top = 0
	m.L.Parent, m.L.Dead = nil, false
	m.L.G.CurrentThread = m.L.G.MainThread
	m.interrupt, m.caller, m.sources, m.proto = nil, nil, nil, nil
	m.globals.RawSetString("KEYS", lua.LFalse)
	m.globals.RawSetString("ARGV", lua.LFalse)
	if m.reset != nil {
		m.reset()
	}
	return true
}
