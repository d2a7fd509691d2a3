package scripts

import (
	"maps"
	"math"

	lua "github.com/yuin/gopher-lua"
)

// oneNumber are the functions of math from a number to a number.
var oneNumber = map[string]func(float64) float64{
	"abs": math.Abs, "acos": math.Acos, "asin": math.Asin, "atan": math.Atan, "ceil": math.Ceil, "cos": math.Cos,
	"cosh": math.Cosh, "exp": math.Exp, "floor": math.Floor, "log": math.Log, "log10": math.Log10, "sin": math.Sin,
	"sinh": math.Sinh, "sqrt": math.Sqrt, "tan": math.Tan, "tanh": math.Tanh,
	"deg": func(x float64) float64 { return x / (math.Pi / 180) },
	"rad": func(x float64) float64 { return x * (math.Pi / 180) },
}

// moreNumbers are the other functions of math, but random and randomseed.
var moreNumbers = map[string]lua.LGFunction{
	"atan2": twoNumbers(math.Atan2),
	"fmod":  twoNumbers(fmod),
	"mod":   twoNumbers(fmod),
	"pow":   twoNumbers(math.Pow),
	"ldexp": func(L *lua.LState) int {
		L.Push(lua.LNumber(math.Ldexp(checkNumber(L, 1), checkInt(L, 2))))
		return 1
	},
	"frexp": func(L *lua.LState) int {
		fraction, exponent := math.Frexp(checkNumber(L, 1))
		L.Push(lua.LNumber(fraction))
		L.Push(lua.LNumber(exponent))
		return 2
	},
	"modf": func(L *lua.LState) int {
		whole, fraction := math.Modf(checkNumber(L, 1))
		if math.IsInf(whole, 0) {
			fraction = math.Copysign(0, whole)
		}
		L.Push(lua.LNumber(whole))
		L.Push(lua.LNumber(fraction))
		return 2
	},
	"max": func(L *lua.LState) int { return extreme(L, func(a, b float64) bool { return a > b }) },
	"min": func(L *lua.LState) int { return extreme(L, func(a, b float64) bool { return a < b }) },
}

func fmod(a, b float64) float64 { return hardwareNaN(math.Mod(a, b), a, b) }

func twoNumbers(f func(a, b float64) float64) lua.LGFunction {
	return func(L *lua.LState) int {
		a := checkNumber(L, 1)
		L.Push(number(lua.LNumber(f(a, checkNumber(L, 2)))))
		return 1
	}
}

func extreme(L *lua.LState, better func(a, b float64) bool) int {
	best := checkNumber(L, 1)
	for i := 2; i <= L.GetTop(); i++ {
		if f := checkNumber(L, i); better(f, best) {
			best = f
		}
	}
	L.Push(number(lua.LNumber(best)))
	return 1
}

func (m *machine) mathFunctions() map[string]lua.LGFunction {
	functions := map[string]lua.LGFunction{
		"random":     m.mathRandom,
		"randomseed": func(L *lua.LState) int { m.seed(int32(checkInteger(L, 1))); return 0 },
	}
	for name, f := range oneNumber {
		functions[name] = func(L *lua.LState) int {
			L.Push(number(lua.LNumber(f(checkNumber(L, 1)))))
			return 1
		}
	}
	maps.Copy(functions, moreNumbers)
	return functions
}

// seed is srand48.
func (m *machine) seed(n int32) { m.random = uint64(uint32(n))<<16 | 0x330E }

// mathRandom is Redis' own math.random over lrand48: each script begins at another place.
func (m *machine) mathRandom(L *lua.LState) int {
	const most = 1<<31 - 1
	m.random = (m.random*0x5DEECE66D + 0xB) & (1<<48 - 1)
	r := float64(int64(m.random>>17)%most) / most
	switch L.GetTop() {
	case 0:
		L.Push(lua.LNumber(r))
	case 1:
		u := checkInt(L, 1)
		if u < 1 {
			argError(L, 1, "interval is empty")
		}
		L.Push(number(lua.LNumber(float64(int64(r*float64(u))) + 1)))
	case 2:
		l, u := checkInt(L, 1), checkInt(L, 2)
		if l > u {
			argError(L, 2, "interval is empty")
		}
		L.Push(number(lua.LNumber(float64(int64(r*float64(int32(u-l+1)))) + float64(l))))
	default:
		fail(L, "wrong number of arguments")
	}
	return 1
}
