package scripts

import (
	"unsafe"

	"mayfly/commands/scripts/bytecode"

	lua "github.com/yuin/gopher-lua"
)

// Bounds that a script cannot exceed, whatever its Limits. The first three are those of Redis' Lua.
const (
	maxFrames    = 20_000  // nested calls of functions in Lua
	maxDepth     = 199     // nested calls by way of Go: pcall, metamethods, coroutines
	maxStack     = 8_000   // results of one function in Go
	maxRegisters = 1 << 19 // values of all running functions of a coroutine
	spareFrames  = 8       // for functions in Go that the deepest one calls

	firstRegisters = 512
	turnFuel       = 20_000 // steps between two questions to the Interrupt
)

// machine is one Lua state with what it needs to run a script: bounds and the script's callbacks. It serves one
// goroutine at a time. It is also the metatable of the state's registry, where opcodes and libraries find it.
type machine struct {
	L          *lua.LState
	s          *state // L
	fuel       int    // steps until check
	depth      int    // nested loops of this package, of all coroutines
	threadBase int    // depth at which the running coroutine began
	used       int64  // bytes allocated since the last walk, plus what that found alive
	allowed    int64  // used above this causes a walk
	stop       error  // ends the script past its pcalls

	stringMeta *lua.LTable
	globals    *lua.LTable
	random     uint64 // state of math.random

	interrupt Interrupt
	caller    Caller
	limits    Limits
	sha       string
	sources   map[string]string  // names of chunks that the script has loaded, by what errors call them
	proto     *lua.FunctionProto // of the script
	resp      int                // of redis.setresp
	reset     func()
}

// String and Type make a machine a value of Lua. No script sees it.
func (m *machine) String() string       { return "machine" }
func (m *machine) Type() lua.LValueType { return lua.LTUserData }

func machineOf(L *lua.LState) *machine { return L.G.Registry.Metatable.(*machine) }

// ended is the panic that ends a script past its pcalls; machine.stop has the error.
type ended struct{}

// end ends the script: Run returns err.
func (m *machine) end(err error) {
	if m.stop == nil {
		m.stop = err
	}
	panic(ended{})
}

// Work counts steps, each about as long as one instruction, and asks the Interrupt now and then.
func (m *machine) Work(L *lua.LState, steps int) {
	m.fuel -= steps
	if m.fuel < 0 {
		m.check()
	}
}

func (m *machine) check() {
	if m.stop != nil {
		panic(ended{})
	}
	m.fuel = turnFuel
	if m.interrupt != nil {
		if err := m.interrupt.Stop(); err != nil {
			m.end(err)
		}
	}
}

// Charge counts bytes that are about to be allocated. It ends the script if it takes more than it may.
func (m *machine) Charge(L *lua.LState, bytes int) {
	m.used += int64(bytes)
	if m.used > m.allowed || bytes < 0 {
		m.measure(L, bytes)
	}
	m.Work(L, bytes>>6)
}

// mainLoop runs the function on top of the call stack, until it returns or its coroutine yields.
func mainLoop(L *lua.LState, base *frame) {
	s := stateOf(L)
	if s.stack.IsEmpty() {
		return
	}
	m := machineOf(L)
	m.depth++
	s.currentFrame = s.stack.Last()
	if m.depth > maxDepth {
		throwValue(lua.LString(position(s.currentFrame.Parent) + "C stack overflow"))
	}
	if s.currentFrame.Fn.IsG {
		m.callGo(L, s)
	} else {
		m.loop(L, s, base)
	}
	m.depth--
}

// callGo runs the function in Go on top of the call stack for a caller in Go.
func (m *machine) callGo(L *lua.LState, s *state) {
	f := s.currentFrame
	n := f.Fn.GFunction(L)
	want := f.NRet
	if want == lua.MultRet {
		want = n
	}
	s.reg.move(L, f.ReturnBase, s.reg.top-n, n, want)
	s.stack.Pop()
	s.currentFrame = s.stack.Last()
}

// move moves n results from a register to another, gives want of them (nil for those that lack) and sets the top
// above the last.
func (r *registry) move(L *lua.LState, to, from, n, want int) {
	r.grow(L, to+want)
	for i := range want {
		if i < n {
			r.array[to+i] = r.array[from+i]
		} else {
			r.array[to+i] = lua.LNil
		}
	}
	if r.top > to+want {
		clear(r.array[to+want : r.top])
	}
	r.top = to + want
}

// call calls a function with one result.
func (m *machine) call(L *lua.LState, fn lua.LValue, args ...lua.LValue) lua.LValue {
	m.Work(L, 8)
	r := stateOf(L).reg
	r.grow(L, r.top+8+len(args))
	L.Push(fn)
	for _, a := range args {
		L.Push(a)
	}
	L.Call(len(args), 1)
	v := r.array[r.top-1]
	L.SetTop(-2)
	return v
}

var smallNumbers [1024]lua.LValue

func init() {
	for i := range smallNumbers {
		smallNumbers[i] = lua.LNumber(i)
	}
}

// number returns a number as a value; small whole ones without an allocation.
func number(f lua.LNumber) lua.LValue {
	if f >= 0 && f < lua.LNumber(len(smallNumbers)) {
		if i := int(f); lua.LNumber(i) == f && (i != 0 || *(*uint64)(unsafe.Pointer(&f)) == 0) {
			return smallNumbers[i]
		}
	}
	return f
}

// loop runs a function in Lua and those that it calls. A return of it to base, or a yield, ends it. It is one long function:
// most instructions take less time than a call of a function for each would.
func (m *machine) loop(L *lua.LState, s *state, base *frame) {
	for {
		f := s.currentFrame
		code := f.Fn.Proto.Code
		inst := code[f.Pc]
		f.Pc++
		r := s.reg
		lbase := f.LocalBase
		ra := lbase + bytecode.A(inst)
		switch inst >> 26 {
		case bytecode.Move:
			r.set(ra, r.array[lbase+bytecode.B(inst)])
		case bytecode.LoadK:
			r.set(ra, f.Fn.Proto.Constants[bytecode.Bx(inst)])
		case bytecode.LoadBool:
			r.set(ra, lua.LBool(bytecode.B(inst) != 0))
			if bytecode.C(inst) != 0 {
				f.Pc++
			}
		case bytecode.GetGlobal:
			key := f.Fn.Proto.Constants[bytecode.Bx(inst)]
			v := rawGetString(f.Fn.Env, string(key.(lua.LString)))
			if v == lua.LNil {
				v = m.index(L, f.Fn.Env, key, -1)
			}
			r.set(ra, v)
		case bytecode.GetTable, bytecode.GetTableKS:
			b := bytecode.B(inst)
			key := m.rk(f, r, bytecode.C(inst))
			var v lua.LValue
			if t, ok := r.array[lbase+b].(*lua.LTable); ok {
				v = m.rawGet(L, t, key)
				if v == lua.LNil && t.Metatable != lua.LNil {
					v = m.index(L, t, key, b)
				}
			} else {
				v = m.index(L, r.array[lbase+b], key, b)
			}
			s.reg.set(ra, v)
		case bytecode.SetGlobal:
			m.setIndex(L, f.Fn.Env, f.Fn.Proto.Constants[bytecode.Bx(inst)], r.array[ra], -1)
		case bytecode.SetTable, bytecode.SetTableKS:
			m.setIndex(L, r.array[ra], m.rk(f, r, bytecode.B(inst)), m.rk(f, r, bytecode.C(inst)), bytecode.A(inst))
		case bytecode.NewTable:
			m.Charge(L, tableSize+16*bytecode.B(inst))
			if c := bytecode.C(inst); c > 0 {
				m.Charge(L, mapSize+entrySize/2*c)
			}
			t := L.CreateTable(bytecode.B(inst), bytecode.C(inst))
			r.set(ra, t)
		case bytecode.Self:
			b := bytecode.B(inst)
			object := r.array[lbase+b]
			v := m.index(L, object, m.rk(f, r, bytecode.C(inst)), b)
			s.reg.set(ra, v)
			s.reg.grow(L, ra+2)
			s.reg.set(ra+1, object)
		case bytecode.Add, bytecode.Sub, bytecode.Mul, bytecode.Div, bytecode.Mod, bytecode.Pow:
			x, y := m.rk(f, r, bytecode.B(inst)), m.rk(f, r, bytecode.C(inst))
			a, ok1 := x.(lua.LNumber)
			b, ok2 := y.(lua.LNumber)
			if ok1 && ok2 {
				r.set(ra, number(arith(inst>>26, a, b)))
				continue
			}
			v := m.arithValues(L, inst, x, y)
			s.reg.set(ra, v)
		case bytecode.Unm:
			x := m.rk(f, r, bytecode.B(inst))
			if a, ok := x.(lua.LNumber); ok {
				r.set(ra, number(-a))
				continue
			}
			v := m.arithValues(L, inst, x, x)
			s.reg.set(ra, v)
		case bytecode.Not:
			r.set(ra, lua.LBool(lua.LVIsFalse(r.array[lbase+bytecode.B(inst)])))
		case bytecode.Len:
			x := m.rk(f, r, bytecode.B(inst))
			var v lua.LValue
			switch x := x.(type) {
			case lua.LString:
				v = number(lua.LNumber(len(x)))
			case *lua.LTable:
				v = number(lua.LNumber(m.length(L, x)))
			default:
				if h := m.metaOp(x, "__len"); h != lua.LNil {
					v = m.call(L, h, x)
				} else {
					typeError(L, "get length of", x, bytecode.B(inst))
				}
			}
			s.reg.set(ra, v)
		case bytecode.Concat:
			v := m.concat(L, s, lbase+bytecode.B(inst), bytecode.C(inst)-bytecode.B(inst)+1)
			s.reg.set(ra, v)
		case bytecode.Jmp:
			d := bytecode.SBx(inst)
			f.Pc += d
			if d < 0 {
				m.Work(L, 1-d)
			}
		case bytecode.Eq:
			x, y := m.rk(f, r, bytecode.B(inst)), m.rk(f, r, bytecode.C(inst))
			if m.equal(L, x, y) != (bytecode.A(inst) != 0) {
				f.Pc++
			}
		case bytecode.Lt:
			x, y := m.rk(f, r, bytecode.B(inst)), m.rk(f, r, bytecode.C(inst))
			var is bool
			a, ok1 := x.(lua.LNumber)
			b, ok2 := y.(lua.LNumber)
			if ok1 && ok2 {
				is = a < b
			} else {
				is = m.less(L, x, y)
			}
			if is != (bytecode.A(inst) != 0) {
				f.Pc++
			}
		case bytecode.Le:
			x, y := m.rk(f, r, bytecode.B(inst)), m.rk(f, r, bytecode.C(inst))
			var is bool
			a, ok1 := x.(lua.LNumber)
			b, ok2 := y.(lua.LNumber)
			if ok1 && ok2 {
				is = a <= b
			} else {
				is = m.lessEqual(L, x, y)
			}
			if is != (bytecode.A(inst) != 0) {
				f.Pc++
			}
		case bytecode.Test:
			if lua.LVAsBool(r.array[ra]) == (bytecode.C(inst) == 0) {
				f.Pc++
			}
		case bytecode.Call, bytecode.TailCall:
			m.Work(L, 4)
			if s.stack.Sp() >= s.Options.CallStackSize-spareFrames {
				raise(L, "stack overflow")
			}
			fn, ok := r.array[ra].(*lua.LFunction)
			if !ok {
				if fn, ok = m.metaOp(r.array[ra], "__call").(*lua.LFunction); !ok {
					typeError(L, "call", r.array[ra], bytecode.A(inst))
				}
				n := bytecode.B(inst) - 1
				if n < 0 {
					n = r.top - ra - 1
				}
				m.insertCallee(L, r, ra, n, fn)
				if bytecode.B(inst) != 0 {
					inst++ // one argument more: B is the lowest operand
				}
			}
			if fn.IsG {
				if m.used += smallResult; m.used > m.allowed {
					m.measure(L, 0)
				}
				r.grow(L, r.top+32)
			} else {
				r.grow(L, r.top+2*int(fn.Proto.NumUsedRegisters)+16)
				m.Work(L, len(fn.Proto.Code)>>3+r.top-ra)
				if fn.Proto.IsVarArg != 0 {
					m.Charge(L, tableSize+slotSize*(r.top-ra)) // the table arg
				}
			}
			if jumpTable[inst>>26](L, inst, base) == 1 {
				return
			}
		case bytecode.ForPrep:
			m.forPrepare(L, r, ra)
			f.Pc += bytecode.SBx(inst)
		case bytecode.ForLoop:
			i, limit, step := r.array[ra].(lua.LNumber), r.array[ra+1].(lua.LNumber), r.array[ra+2].(lua.LNumber)
			i += step
			d := bytecode.SBx(inst)
			m.Work(L, 1-d)
			if step > 0 && i <= limit || step <= 0 && i >= limit {
				f.Pc += d
				v := number(i)
				r.array[ra] = v
				r.set(ra+3, v)
			} else {
				r.setTop(ra + 1)
			}
		case bytecode.TForLoop:
			m.Work(L, 8)
			if _, ok := r.array[ra].(*lua.LFunction); !ok && m.metaOp(r.array[ra], "__call").Type() != lua.LTFunction {
				typeError(L, "call", r.array[ra], -1)
			}
			r.grow(L, r.top+32)
			if jumpTable[bytecode.TForLoop](L, inst, base) == 1 {
				return
			}
		case bytecode.SetList:
			n := bytecode.B(inst)
			if n == 0 {
				n = r.top - ra - 1
			}
			m.Charge(L, slotSize*n)
			h := tableOf(r.array[ra].(*lua.LTable))
			first := len(h.Array) + 1
			jumpTable[bytecode.SetList](L, inst, base)
			if len(h.Dict) > 0 { // {[3] = "x", 1, 2, 3}: the library leaves the "x" in the map
				for i := first; i <= len(h.Array); i++ {
					delete(h.Dict, lua.LNumber(i))
				}
				m.migrate(L, h)
			}
		case bytecode.Closure:
			m.Charge(L, closureSize+upvalueSize*int(f.Fn.Proto.FunctionPrototypes[bytecode.Bx(inst)].NumUpvalues))
			jumpTable[bytecode.Closure](L, inst, base)
		case bytecode.Vararg:
			r.grow(L, r.top+f.NArgs+16)
			jumpTable[bytecode.Vararg](L, inst, base)
		default: // bytecode.MoveN, bytecode.LoadNil, bytecode.GetUpval, bytecode.SetUpval, bytecode.TestSet, bytecode.Return, bytecode.Close, bytecode.Nop
			if jumpTable[inst>>26](L, inst, base) == 1 {
				return
			}
		}
	}
}

// rk returns a register or a constant.
func (m *machine) rk(f *frame, r *registry, i int) lua.LValue {
	if i&bytecode.RK != 0 {
		return f.Fn.Proto.Constants[i&^bytecode.RK]
	}
	return r.array[f.LocalBase+i]
}

// insertCallee puts the function of a metamethod __call before its object, which becomes the first of n+1 arguments.
func (m *machine) insertCallee(L *lua.LState, r *registry, ra, n int, fn *lua.LFunction) {
	r.grow(L, ra+n+3)
	copy(r.array[ra+1:ra+n+2], r.array[ra:ra+n+1])
	r.array[ra] = fn
	r.top = max(r.top, ra+n+2)
}
