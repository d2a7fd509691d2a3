package cmsgpack

import (
	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
)

// Open sets the global cmsgpack of L. charge is that of lualib.NewBounds.
func Open(L *lua.LState, charge func(bytes int)) {
	bounds := lualib.NewBounds(charge)
	table := L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"pack":         func(L *lua.LState) int { return pack(L, bounds) },
		"unpack":       func(L *lua.LState) int { return unpack(L, bounds, 0, 0) },
		"unpack_one":   func(L *lua.LState) int { return unpack(L, bounds, 1, lualib.OptInteger(L, 2, 0)) },
		"unpack_limit": func(L *lua.LState) int { return unpackLimit(L, bounds) },
	})
	table.RawSetString("_NAME", lua.LString("cmsgpack"))
	table.RawSetString("_VERSION", lua.LString("lua-cmsgpack 0.4.0"))
	table.RawSetString("_COPYRIGHT", lua.LString("Copyright (C) 2012, Salvatore Sanfilippo"))
	table.RawSetString("_DESCRIPTION", lua.LString("MessagePack C implementation for Lua"))
	L.SetGlobal("cmsgpack", table)
}

func unpackLimit(L *lua.LState, bounds *lualib.Bounds) int {
	limit := lualib.CheckInteger(L, 2)
	return unpack(L, bounds, limit, lualib.OptInteger(L, 3, 0))
}
