package lualib

import (
	"math"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"
)

// Raise raises an error with the position of the code that called the running function, as luaL_error does. A caller
// that is itself written in Go has no position.
func Raise(L *lua.LState, message string) {
	level := 1
	if !calledFromLua(L) {
		level = 0
	}
	L.Error(lua.LString(message), level)
}

// ArgError raises "bad argument #n to 'name' (message)". The name is the one that the caller used, or ?.
func ArgError(L *lua.LState, n int, message string) {
	name := "?"
	if calledFromLua(L) {
		if frame, ok := L.GetStack(0); ok {
			if _, err := L.GetInfo("n", frame, nil); err == nil && frame.Name != "" && frame.Name[0] != '(' {
				name = frame.Name
			}
		}
	}
	Raise(L, "bad argument #"+strconv.Itoa(n)+" to '"+name+"' ("+message+")")
}

// TypeError raises the ArgError of an argument that is no value of the expected type.
func TypeError(L *lua.LState, n int, expected string) {
	got := "no value"
	if n <= L.GetTop() {
		got = L.Get(n).Type().String()
	}
	ArgError(L, n, expected+" expected, got "+got)
}

// calledFromLua reports whether code in Lua called the running function.
func calledFromLua(L *lua.LState) bool {
	caller, ok := L.GetStack(1)
	if !ok {
		return false
	}
	_, err := L.GetInfo("S", caller, nil)
	return err == nil && caller.What != "G"
}

// CheckString returns argument n, a string or a number.
func CheckString(L *lua.LState, n int) string {
	switch v := L.Get(n).(type) {
	case lua.LString:
		return string(v)
	case lua.LNumber:
		return NumberString(float64(v))
	}
	TypeError(L, n, "string")
	return ""
}

// ToNumber returns a value as a number, as lua_tonumber does: strings that are numbers count.
func ToNumber(v lua.LValue) (f float64, ok bool) {
	switch v := v.(type) {
	case lua.LNumber:
		return float64(v), true
	case lua.LString:
		return ParseNumber(string(v))
	}
	return 0, false
}

// CheckNumber returns argument n, a number or a string that is one.
func CheckNumber(L *lua.LState, n int) float64 {
	f, ok := ToNumber(L.Get(n))
	if !ok {
		TypeError(L, n, "number")
	}
	return f
}

// CheckInteger returns the whole part of argument n, a number or a string that is one.
func CheckInteger(L *lua.LState, n int) int64 {
	return Truncate(CheckNumber(L, n))
}

// OptInteger is CheckInteger with a default for an argument that is absent or nil.
func OptInteger(L *lua.LState, n int, absent int64) int64 {
	if n > L.GetTop() || L.Get(n) == lua.LNil {
		return absent
	}
	return CheckInteger(L, n)
}

// Truncate returns the whole part of f as C on amd64 does: the least integer for NaN and what is out of range.
func Truncate(f float64) int64 {
	if f >= -0x1p63 && f < 0x1p63 {
		return int64(f)
	}
	return math.MinInt64
}

// TruncateUnsigned is Truncate to an unsigned integer: negative numbers wrap around, 0 stands for 2^64 and more.
func TruncateUnsigned(f float64) uint64 {
	if f >= 0x1p63 {
		if f < 0x1p64 {
			return uint64(f)
		}
		return 0
	}
	return uint64(Truncate(f))
}

// OneLine makes a text fit into a line of the protocol.
func OneLine(s string) string { return lineEnds.Replace(strings.Trim(s, "\r\n")) }

var lineEnds = strings.NewReplacer("\r", " ", "\n", " ")
