package bit

import (
	"math"
	"math/bits"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
)

// Open sets the global bit of L. charge counts bytes that a function is about to allocate, and does not return if the
// script has to end. A function takes constant time per argument.
func Open(L *lua.LState, charge func(bytes int)) {
	L.SetGlobal("bit", L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"tobit":   func(L *lua.LState) int { return push(L, arg(L, 1)) },
		"bnot":    func(L *lua.LState) int { return push(L, ^arg(L, 1)) },
		"bswap":   func(L *lua.LState) int { return push(L, bits.ReverseBytes32(arg(L, 1))) },
		"band":    fold(func(a, b uint32) uint32 { return a & b }),
		"bor":     fold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    fold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(b uint32, n int) uint32 { return b << n }),
		"rshift":  shift(func(b uint32, n int) uint32 { return b >> n }),
		"arshift": shift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
		"rol":     shift(bits.RotateLeft32),
		"ror":     shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		"tohex":   func(L *lua.LState) int { return tohex(L, charge) },
	}))
}

// arg returns argument n modulo 2^32, rounded to even. NaN and the infinities are 0.
func arg(L *lua.LState, n int) uint32 {
	f, ok := lualib.ToNumber(L.Get(n))
	if !ok {
		lualib.TypeError(L, n, "number")
	}
	if f != f || math.IsInf(f, 0) {
		return 0
	}
	// 2^52+2^51 moves the whole part into the low bits of the mantissa.
	return uint32(math.Float64bits(f + 6755399441055744))
}

func push(L *lua.LState, b uint32) int {
	L.Push(lua.LNumber(int32(b)))
	return 1
}

// fold returns a function that combines all its arguments.
func fold(op func(a, b uint32) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := arg(L, 1)
		for i := L.GetTop(); i > 1; i-- { // from the last, as in C: errors name the last bad argument
			b = op(b, arg(L, i))
		}
		return push(L, b)
	}
}

// shift returns a function of a number and a distance modulo 32.
func shift(op func(b uint32, n int) uint32) lua.LGFunction {
	return func(L *lua.LState) int {
		b := arg(L, 1)
		return push(L, op(b, int(arg(L, 2)&31)))
	}
}

// tohex returns the last digits of a number in base 16, in upper case if their count is negative.
func tohex(L *lua.LState, charge func(bytes int)) int {
	b := arg(L, 1)
	n := int64(8)
	if L.GetTop() >= 2 {
		n = int64(int32(arg(L, 2)))
	}
	digits := "0123456789abcdef"
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	charge(lualib.StringSize)
	text := make([]byte, min(n, 8))
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	L.Push(lua.LString(text))
	return 1
}
