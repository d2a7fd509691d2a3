package scripts

import (
	"runtime/debug"

	lua "github.com/yuin/gopher-lua"
)

const (
	threadFrames    = 2_000 // nested calls of a coroutine
	threadRegisters = 64    // at first
	newThreadSize   = 6_000 // bytes
)

func (m *machine) coroutineFunctions(resume lua.LGFunction) map[string]lua.LGFunction {
	return map[string]lua.LGFunction{
		"create": func(L *lua.LState) int { L.Push(m.newThread(L)); return 1 },
		"resume": func(L *lua.LState) int {
			th := checkThread(L)
			if status := m.status(L, th); status != "suspended" {
				L.Push(lua.LFalse)
				L.Push(lua.LString("cannot resume " + status + " coroutine"))
				return 2
			}
			return m.resume(L, th, resume)
		},
		"running": func(L *lua.LState) int {
			if L == m.L {
				L.Push(lua.LNil)
			} else {
				L.Push(L)
			}
			return 1
		},
		"status": func(L *lua.LState) int { L.Push(lua.LString(m.status(L, checkThread(L)))); return 1 },
		"wrap": func(L *lua.LState) int {
			th := m.newThread(L)
			L.Push(L.NewClosure(func(L *lua.LState) int {
				if status := m.status(L, th); status != "suspended" {
					fail(L, "cannot resume %s coroutine", status)
				}
				L.Insert(th, 1)
				n := m.resume(L, th, resume)
				if L.Get(-n) == lua.LFalse {
					v := L.Get(-n + 1)
					if text, ok := v.(lua.LString); ok {
						m.Charge(L, 2*len(text)+stringSize)
						v = lua.LString(where(L, 1)) + text
					}
					throwValue(v)
				}
				return n - 1
			}, th))
			return 1
		},
		"yield": func(L *lua.LState) int {
			if L == m.L || m.depth != m.threadBase+1 {
				throwValue(lua.LString("attempt to yield across metamethod/C-call boundary"))
			}
			return -1
		},
	}
}

func checkThread(L *lua.LState) *lua.LState {
	th, ok := L.Get(1).(*lua.LState)
	if !ok {
		argError(L, 1, "coroutine expected")
	}
	return th
}

func (m *machine) newThread(L *lua.LState) *lua.LState {
	f, ok := L.Get(1).(*lua.LFunction)
	if !ok || f.IsG {
		argError(L, 1, "Lua function expected")
	}
	m.Charge(L, newThreadSize)
	s := stateOf(L)
	options := s.Options
	s.Options.RegistrySize, s.Options.CallStackSize = threadRegisters, threadFrames
	th, _ := L.NewThread()
	s.Options = options
	t := stateOf(th)
	t.prepare()
	t.mainLoop = threadLoop
	t.stack.Push(frame{Fn: f, LocalBase: 1, NRet: lua.MultRet})
	return th
}

func (m *machine) status(L, th *lua.LState) string {
	switch {
	case th.Dead:
		return "dead"
	case th == L:
		return "running"
	case th == m.L || th.Parent != nil:
		return "normal"
	}
	return "suspended"
}

// resume runs a coroutine, the first of the arguments, until it yields or ends. It returns the number of results
// on the stack, the first of which reports whether there was no error.
func (m *machine) resume(L, th *lua.LState, resume lua.LGFunction) int {
	m.Work(L, 32)
	if m.depth+1 >= maxDepth {
		fail(L, "C stack overflow")
	}
	n := L.GetTop()
	checkSpace(L, 0, "too many arguments to resume")
	t := stateOf(th)
	t.reg.grow(L, t.reg.top+n+64)
	depth, base := m.depth, m.threadBase
	m.threadBase = m.depth
	n = resume(L)
	m.depth, m.threadBase = depth, base
	if m.stop != nil {
		panic(ended{})
	}
	L.G.CurrentThread = L
	return n
}

// threadLoop is mainLoop of a coroutine. The library makes an error of Lua of every panic in one; a fault ends the
// script instead.
func threadLoop(L *lua.LState, base *frame) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		m := machineOf(L)
		if _, ok := r.(*lua.ApiError); !ok && m.stop == nil {
			m.stop = &InternalError{r, debug.Stack()}
		}
		panic(r)
	}()
	mainLoop(L, base)
}

// prepare makes a state of the library one that this package runs.
func (s *state) prepare() {
	s.mainLoop = mainLoop
	s.hasErrorFunc = true // so that an error leaves the upvalues of functions alone that go on: see protect
	s.Panic = throw
	s.reg.growBy = len(s.reg.array)
}
