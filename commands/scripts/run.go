package scripts

import (
	"errors"
	"fmt"
	"strings"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/parse"
)

type program struct{ proto *lua.FunctionProto }

func compile(body, sha string) (*Script, error) {
	s := &Script{sha: sha, body: body}
	chunk, err := parse.Parse(strings.NewReader(body), "user_script")
	if err == nil {
		var proto *lua.FunctionProto
		if proto, err = lua.Compile(chunk, "user_script"); err == nil {
			s.code = &program{proto}
			return s, nil
		}
	}
	return nil, fmt.Errorf("ERR Error compiling script (new function): %s", strings.ReplaceAll(err.Error(), "\n", " "))
}

// stopped carries the error that ends a script past its pcalls.
type stopped struct{ err error }

// Run runs the script. The reply is a Value, also if the script itself fails: then of Kind Error, with
// Redis' text. Its Int is 1 if the error came from a command that the Caller has run (and counted) already.
// The error is that of interrupt or of caller.Call, which ended the script.
func (s *Script) Run(interrupt Interrupt, caller Caller, keys, args []string, lim Limits) (v Value, err error) {
	L := lua.NewState()
	defer L.Close()
	var end error
	call := func(protected bool) lua.LGFunction {
		return func(L *lua.LState) int {
			args := make([]string, L.GetTop())
			for i := range args {
				args[i] = L.CheckString(i + 1)
			}
			reply, err := caller.Call(args)
			if err != nil {
				end = err
				panic(&stopped{err})
			}
			lv := toLua(L, reply)
			if reply.Kind == Error && !protected {
				L.Error(lv, 0)
			}
			L.Push(lv)
			return 1
		}
	}
	redis := L.NewTable()
	redis.RawSetString("call", L.NewFunction(call(false)))
	redis.RawSetString("pcall", L.NewFunction(call(true)))
	L.SetGlobal("redis", redis)
	L.SetGlobal("KEYS", stringList(L, keys))
	L.SetGlobal("ARGV", stringList(L, args))
	L.Push(L.NewFunctionFromProto(s.code.proto))
	err = L.PCall(0, 1, nil)
	if end != nil {
		return Value{}, end
	}
	var failed *lua.ApiError
	if errors.As(err, &failed) {
		if t, ok := failed.Object.(*lua.LTable); ok {
			return fromLua(t), nil
		}
		return ErrorValue("ERR " + failed.Object.String() + " script: " + s.sha + ", on @user_script:1."), nil
	}
	return fromLua(L.Get(-1)), nil
}

func stringList(L *lua.LState, list []string) *lua.LTable {
	t := L.CreateTable(len(list), 0)
	for _, s := range list {
		t.Append(lua.LString(s))
	}
	return t
}

func toLua(L *lua.LState, v Value) lua.LValue {
	field := func(name string, lv lua.LValue) lua.LValue {
		t := L.NewTable()
		t.RawSetString(name, lv)
		return t
	}
	switch v.Kind {
	case Int:
		return lua.LNumber(v.Int)
	case Bulk:
		return lua.LString(v.Str)
	case Status:
		return field("ok", lua.LString(v.Str))
	case Error:
		return field("err", lua.LString(v.Str))
	case Array:
		t := L.CreateTable(len(v.Elems), 0)
		for i, e := range v.Elems {
			t.RawSetInt(i+1, toLua(L, e))
		}
		return t
	}
	return lua.LFalse
}

func fromLua(lv lua.LValue) Value {
	switch lv := lv.(type) {
	case lua.LBool:
		if lv {
			return Value{Kind: Int, Int: 1}
		}
	case lua.LNumber:
		return Value{Kind: Int, Int: int64(lv)}
	case lua.LString:
		return Value{Kind: Bulk, Str: string(lv)}
	case *lua.LTable:
		if text, ok := lv.RawGetString("err").(lua.LString); ok {
			return ErrorValue(string(text))
		}
		if text, ok := lv.RawGetString("ok").(lua.LString); ok {
			return Value{Kind: Status, Str: string(text)}
		}
		list := Value{Kind: Array}
		for i := 1; ; i++ {
			e := lv.RawGetInt(i)
			if e == lua.LNil {
				return list
			}
			list.Elems = append(list.Elems, fromLua(e))
		}
	}
	return Value{}
}
