package scripts

import (
	"fmt"
	"strconv"

	"mayfly/commands/scripts/bytecode"

	lua "github.com/yuin/gopher-lua"
)

// throw is what the library calls to raise the error on top of the stack.
func throw(L *lua.LState) { panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: L.Get(-1)}) }

// throwValue raises a value as an error.
func throwValue(v lua.LValue) { panic(&lua.ApiError{Type: lua.ApiErrorRun, Object: v}) }

// raise raises an error at the place where the running function is, if it is one in Lua.
func raise(L *lua.LState, message string) {
	throwValue(lua.LString(position(stateOf(L).currentFrame) + message))
}

// fail raises an error at the place that called the running function in Go, as luaL_error does.
func fail(L *lua.LState, format string, args ...any) {
	message := format
	if len(args) > 0 {
		message = fmt.Sprintf(format, args...)
	}
	throwValue(lua.LString(where(L, 1) + message))
}

// where returns the place of the function at a level: 0 is the one that runs, 1 its caller.
func where(L *lua.LState, level int) string {
	f := stateOf(L).currentFrame
	for ; f != nil && level > 0; level-- {
		if !f.Fn.IsG && f.TailCall > 0 {
			if level <= f.TailCall {
				return ""
			}
			level -= f.TailCall
		}
		f = f.Parent
	}
	return position(f)
}

// position returns the name and line of a function in Lua, "" of one in Go.
func position(f *frame) string {
	if f == nil || f.Fn.IsG {
		return ""
	}
	return f.Fn.Proto.SourceName + ":" + strconv.Itoa(line(f)) + ": "
}

// line returns the line that a function in Lua executes.
func line(f *frame) int {
	lines := f.Fn.Proto.DbgSourcePositions
	if i := f.Pc - 1; i >= 0 && i < len(lines) {
		return lines[i]
	}
	return f.Fn.Proto.LineDefined
}

// typeError raises "attempt to <what> <name> (a <type> value)". reg is the operand that holds the value, or -1.
func typeError(L *lua.LState, what string, v lua.LValue, reg int) {
	f := stateOf(L).currentFrame
	if reg >= 0 && reg&bytecode.RK == 0 && f != nil && !f.Fn.IsG {
		if kind, name := bytecode.ValueName(f.Fn, f.Pc-1, reg); kind != "" {
			raise(L, "attempt to "+what+" "+kind+" '"+name+"' (a "+v.Type().String()+" value)")
		}
	}
	raise(L, "attempt to "+what+" a "+v.Type().String()+" value")
}

func compareError(L *lua.LState, x, y lua.LValue) {
	a, b := x.Type().String(), y.Type().String()
	if a == b {
		raise(L, "attempt to compare two "+a+" values")
	}
	raise(L, "attempt to compare "+a+" with "+b)
}

// argError raises "bad argument #n to 'name' (message)".
func argError(L *lua.LState, n int, message string) {
	kind, name := calledAs(L)
	if kind == "method" {
		if n--; n == 0 {
			fail(L, "calling '%s' on bad self (%s)", name, message)
		}
	}
	if name == "" {
		name = "?"
	}
	fail(L, "bad argument #%d to '%s' (%s)", n, name, message)
}

// argType raises the argError of an argument that is of another type.
func argType(L *lua.LState, n int, expected string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	argError(L, n, expected+" expected, got "+got)
}

// calledAs returns how the caller of the running function names it.
func calledAs(L *lua.LState) (kind, name string) {
	f := stateOf(L).currentFrame
	if f == nil || f.Parent == nil || f.Parent.Fn.IsG {
		return "", ""
	}
	p := f.Parent
	if i := p.Pc - 1; i >= 0 && i < len(p.Fn.Proto.Code) {
		if inst := p.Fn.Proto.Code[i]; inst>>26 == bytecode.Call || inst>>26 == bytecode.TailCall {
			return bytecode.ValueName(p.Fn, i, bytecode.A(inst))
		}
	}
	return "", ""
}
