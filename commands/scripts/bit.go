package scripts

import (
	"math"
	"math/bits"

	"mayfly/commands/scripts/lua"
)

// newBit returns Redis' library bit, LuaBitOp 1.0.
func newBit(m *lua.Machine) *lua.Table {
	t := m.NewTable(0)
	m.Fill(t, map[string]lua.Builtin{
		"tobit":   func(c *lua.Call) []lua.Value { return int32Of(c, bitArg(c, 1)) },
		"bnot":    func(c *lua.Call) []lua.Value { return int32Of(c, ^bitArg(c, 1)) },
		"bswap":   func(c *lua.Call) []lua.Value { return int32Of(c, bits.ReverseBytes32(bitArg(c, 1))) },
		"band":    fold(func(a, b uint32) uint32 { return a & b }),
		"bor":     fold(func(a, b uint32) uint32 { return a | b }),
		"bxor":    fold(func(a, b uint32) uint32 { return a ^ b }),
		"lshift":  shift(func(b uint32, n int) uint32 { return b << n }),
		"rshift":  shift(func(b uint32, n int) uint32 { return b >> n }),
		"arshift": shift(func(b uint32, n int) uint32 { return uint32(int32(b) >> n) }),
		"rol":     shift(bits.RotateLeft32),
		"ror":     shift(func(b uint32, n int) uint32 { return bits.RotateLeft32(b, -n) }),
		"tohex":   toHex,
	})
	return t
}

// bitArg returns argument i modulo 2^32, rounded to even. NaN and the infinities are 0.
func bitArg(c *lua.Call, i int) uint32 {
	f := c.Num(i)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0
	}
	// 2^52+2^51 moves the whole part into the low bits of the mantissa.
	return uint32(math.Float64bits(f + 6755399441055744))
}

func int32Of(c *lua.Call, b uint32) []lua.Value { return c.Return(lua.Int(int(int32(b)))) }

// fold returns a function that combines all its arguments.
func fold(op func(a, b uint32) uint32) lua.Builtin {
	return func(c *lua.Call) []lua.Value {
		b := bitArg(c, 1)
		for i := c.N(); i > 1; i-- { // from the last, as in C: errors name the last bad argument
			b = op(b, bitArg(c, i))
		}
		return int32Of(c, b)
	}
}

// shift returns a function of a number and a distance modulo 32.
func shift(op func(b uint32, n int) uint32) lua.Builtin {
	return func(c *lua.Call) []lua.Value {
		b := bitArg(c, 1)
		return int32Of(c, op(b, int(bitArg(c, 2)&31)))
	}
}

// toHex returns the last digits of a number in base 16, in upper case if their count is negative.
func toHex(c *lua.Call) []lua.Value {
	b, n, digits := bitArg(c, 1), int64(8), "0123456789abcdef"
	if c.N() >= 2 {
		n = int64(int32(bitArg(c, 2)))
	}
	if n < 0 {
		n, digits = -n, "0123456789ABCDEF"
	}
	c.M.Charge(lua.StringSize)
	text := make([]byte, min(n, 8))
	for i := len(text) - 1; i >= 0; i-- {
		text[i] = digits[b&15]
		b >>= 4
	}
	return c.Return(string(text))
}
