package scripts

import (
	"math"
	"unsafe"

	"mayfly/commands/scripts/luatable"

	lua "github.com/yuin/gopher-lua"
)

// Bytes that values take, for Charge and measure.
const (
	tableSize   = 96
	slotSize    = 24  // of an array: the value and its number
	mapSize     = 344 // one map, with room for 8 entries
	keysSize    = 272 // the keys in order and their places, likewise
	entrySize   = 136 // each further entry, in all of these
	stringSize  = 32
	closureSize = 80
	upvalueSize = 72
	smallResult = 64 // of a function in Go, beside what it charges itself
)

// Tables of scripts keep whole numbers in their array only up to its end: see package luatable.

func rawGetString(t *lua.LTable, key string) lua.LValue {
	if v, ok := tableOf(t).StrDict[key]; ok {
		return v
	}
	return lua.LNil
}

func (m *machine) rawGet(L *lua.LState, t *lua.LTable, key lua.LValue) lua.LValue {
	if k, ok := key.(lua.LString); ok && len(k) > longString {
		m.Work(L, len(k)>>6)
	}
	return luatable.Get(t, key)
}

// rawSet sets t[key] = v without metamethods. The table may be sealed: the caller has asked.
func (m *machine) rawSet(L *lua.LState, t *lua.LTable, key, v lua.LValue) {
	h := tableOf(t)
	switch k := key.(type) {
	case lua.LString:
		if len(k) > longString {
			m.Work(L, len(k)>>6)
		}
		if v == lua.LNil {
			delete(h.StrDict, string(k))
			return
		}
		if h.StrDict == nil {
			m.Charge(L, mapSize)
			h.StrDict = make(map[string]lua.LValue)
		}
		n := len(h.StrDict)
		h.StrDict[string(k)] = v
		if len(h.StrDict) > n {
			m.addKey(L, t, key)
		}
		return
	case lua.LNumber:
		if math.IsNaN(float64(k)) {
			raise(L, "table index is NaN")
		}
		i := luatable.Index(k)
		switch {
		case uint(i) < uint(len(h.Array)):
			h.Array[i] = v
			return
		case i >= 0 && i == len(h.Array) && v != lua.LNil:
			m.push(L, h, v)
			if len(h.Dict) > 0 {
				m.migrate(L, h)
			}
			return
		}
	case *lua.LNilType:
		raise(L, "table index is nil")
	}
	if v == lua.LNil {
		delete(h.Dict, key)
		return
	}
	if h.Dict == nil {
		m.Charge(L, mapSize)
		h.Dict = make(map[lua.LValue]lua.LValue)
	}
	n := len(h.Dict)
	h.Dict[key] = v
	if len(h.Dict) > n {
		m.addKey(L, t, key)
	}
}

// push appends a value to the array of a table.
func (m *machine) push(L *lua.LState, h *table, v lua.LValue) {
	if len(h.Array) == cap(h.Array) {
		n := max(4, 2*cap(h.Array))
		if n > 1<<16 {
			n = cap(h.Array) + cap(h.Array)>>2
		}
		m.Charge(L, slotSize*(n-cap(h.Array)))
		array := make([]lua.LValue, len(h.Array), n)
		copy(array, h.Array)
		h.Array = array
	}
	h.Array = append(h.Array, v)
}

// migrate moves to the array what the map holds for the numbers after it.
func (m *machine) migrate(L *lua.LState, h *table) {
	h.Migrate(func(v lua.LValue) {
		m.Work(L, 4)
		m.push(L, h, v)
	})
}

// length returns a border of a table.
func (m *machine) length(L *lua.LState, t *lua.LTable) int {
	n, steps := luatable.Len(t)
	m.Work(L, steps)
	return n
}

// addKey lists a key that one of the maps has gained, for next. A key that was deleted keeps its place.
func (m *machine) addKey(L *lua.LState, t *lua.LTable, key lua.LValue) {
	h := tableOf(t)
	if h.K2I == nil {
		m.Charge(L, keysSize)
		h.K2I = make(map[lua.LValue]int)
	}
	if _, ok := h.K2I[key]; ok {
		return
	}
	if len(h.Keys) >= 8 {
		m.Charge(L, entrySize)
	}
	if n := len(h.Keys); n >= 64 && n > 2*(len(h.Dict)+len(h.StrDict)) {
		m.Work(L, n)
		live := make([]lua.LValue, 0, 2*(n/2+1))
		clear(h.K2I)
		for _, k := range h.Keys {
			if m.rawGet(L, t, k) != lua.LNil && k != key {
				h.K2I[k] = len(live)
				live = append(live, k)
			}
		}
		h.Keys = live
	}
	h.K2I[key] = len(h.Keys)
	h.Keys = append(h.Keys, key)
}

// next returns the key and the value after a key, LNil after the last. It raises an error for a key that is none.
func (m *machine) next(L *lua.LState, t *lua.LTable, key lua.LValue) (k, v lua.LValue) {
	k, v, steps, ok := luatable.Next(t, key)
	if !ok {
		raise(L, "invalid key to 'next'")
	}
	m.Work(L, steps)
	return k, v
}

// dataOf returns where the bytes of a string are.
func dataOf(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
