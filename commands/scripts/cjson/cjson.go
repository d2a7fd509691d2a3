package cjson

import (
	"fmt"
	"math"
	"strconv"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
)

// Library is the module of one state of Lua. It must not be used by two goroutines at a time.
type Library struct {
	// Table is what scripts call cjson.
	Table *lua.LTable
	// Null stands for null in tables: cjson.null.
	Null *lua.LUserData

	bounds *lualib.Bounds
	config config
}

// config are the settings that scripts can change.
type config struct {
	sparseConvert        int // 1 writes sparse arrays as objects, 0 refuses them
	sparseRatio          int // an array with more than this many places an element is sparse; 0 means none is
	sparseSafe           int // arrays up to this length are never sparse
	encodeMaxDepth       int
	decodeMaxDepth       int
	precision            int // significant digits of a number
	keepBuffer           int // accepted; buffers are not kept
	encodeInvalidNumbers int // 0 refuses NaN and the infinities, 1 writes them, 2 writes null
	decodeInvalidNumbers int // 1 accepts NaN, infinities and hexadecimal numbers
}

var defaults = config{
	sparseRatio: 2, sparseSafe: 10,
	encodeMaxDepth: 1000, decodeMaxDepth: 1000,
	precision: 14, keepBuffer: 1, decodeInvalidNumbers: 1,
}

// Open sets the global cjson of L, with default settings. charge is that of lualib.NewBounds.
func Open(L *lua.LState, charge func(bytes int)) *Library {
	null := L.NewUserData()
	null.Metatable = L.NewTable()
	null.Metatable.(*lua.LTable).RawSetString("__tostring", L.NewFunction(func(L *lua.LState) int {
		L.Push(lua.LString("userdata: (nil)")) // a null pointer in Redis
		return 1
	}))
	null.Metatable.(*lua.LTable).RawSetString("__metatable", lua.LFalse)
	l := open(L, lualib.NewBounds(charge), null)
	L.SetGlobal("cjson", l.Table)
	return l
}

func open(L *lua.LState, bounds *lualib.Bounds, null *lua.LUserData) *Library {
	l := &Library{bounds: bounds, Null: null, config: defaults}
	c := &l.config
	l.Table = L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"encode": l.encode,
		"decode": l.decode,
		"new": func(L *lua.LState) int {
			l.bounds.Charge(newSize)
			L.Push(open(L, l.bounds, l.Null).Table)
			return 1
		},
		"encode_sparse_array": func(L *lua.LState) int {
			checkCount(L, 3)
			enumOption(L, 1, &c.sparseConvert, offOn)
			integerOption(L, 2, &c.sparseRatio, 0, math.MaxInt32)
			integerOption(L, 3, &c.sparseSafe, 0, math.MaxInt32)
			return 3
		},
		"encode_max_depth":        integerSetting(&c.encodeMaxDepth, 1, math.MaxInt32),
		"decode_max_depth":        integerSetting(&c.decodeMaxDepth, 1, math.MaxInt32),
		"encode_number_precision": integerSetting(&c.precision, 1, 14),
		"encode_keep_buffer":      enumSetting(&c.keepBuffer, offOn),
		"encode_invalid_numbers":  enumSetting(&c.encodeInvalidNumbers, append(offOn[:2:2], "null")),
		"decode_invalid_numbers":  enumSetting(&c.decodeInvalidNumbers, offOn),
	})
	l.Table.RawSetString("null", l.Null)
	l.Table.RawSetString("_NAME", lua.LString("cjson"))
	l.Table.RawSetString("_VERSION", lua.LString("2.1.0"))
	return l
}

// newSize is about what a module takes, in bytes.
const newSize = 8 << 10

// Reset gives the settings their defaults again. Redis keeps settings until SCRIPT FLUSH; states of a pool reset them
// before each script, as no script can know which state it gets.
func (l *Library) Reset() { l.config = defaults }

var offOn = []string{"off", "on"}

// checkCount refuses more than n arguments, and makes absent ones nil.
func checkCount(L *lua.LState, n int) {
	if L.GetTop() > n {
		lualib.ArgError(L, n+1, "found too many arguments")
	}
	for L.GetTop() < n {
		L.Push(lua.LNil)
	}
}

// integerSetting returns a function that sets and returns a setting.
func integerSetting(setting *int, low, high int) lua.LGFunction {
	return func(L *lua.LState) int {
		checkCount(L, 1)
		integerOption(L, 1, setting, low, high)
		return 1
	}
}

// integerOption sets a setting to argument n, unless that is nil, and pushes it. Integers have 32 bits, as in C.
func integerOption(L *lua.LState, n int, setting *int, low, high int) {
	if L.Get(n) != lua.LNil {
		value := int(int32(lualib.CheckInteger(L, n)))
		if value < low || value > high {
			lualib.ArgError(L, 1, fmt.Sprintf("expected integer between %d and %d", low, high))
		}
		*setting = value
	}
	L.Push(lua.LNumber(*setting))
}

// enumSetting returns a function that sets and returns a setting with names.
func enumSetting(setting *int, names []string) lua.LGFunction {
	return func(L *lua.LState) int {
		checkCount(L, 1)
		enumOption(L, 1, setting, names)
		return 1
	}
}

// enumOption sets a setting to argument n, a boolean or a name, unless that is nil, and pushes it.
func enumOption(L *lua.LState, n int, setting *int, names []string) {
	switch v := L.Get(n).(type) {
	case *lua.LNilType:
	case lua.LBool:
		*setting = 0
		if v {
			*setting = 1
		}
	default:
		name := lualib.CheckString(L, n)
		found := -1
		for i := range names {
			if names[i] == name {
				found = i
			}
		}
		if found < 0 {
			lualib.ArgError(L, n, "invalid option '"+name+"'")
		}
		*setting = found
	}
	if *setting > 1 {
		L.Push(lua.LString(names[*setting]))
	} else {
		L.Push(lua.LBool(*setting == 1))
	}
}

// checkOne refuses any number of arguments but one.
func checkOne(L *lua.LState) {
	if L.GetTop() != 1 {
		lualib.ArgError(L, 1, "expected 1 argument")
	}
}

func itoa(n int) string { return strconv.Itoa(n) }
