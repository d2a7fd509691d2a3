package scripts

import (
	"math"
	"unsafe"

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

// Tables of scripts keep whole numbers in their array only up to its end: the library fills gaps with nil,
// so that t[60000000] = 1 takes 1 GB.

func rawGetString(t *lua.LTable, key string) lua.LValue {
	if v, ok := tableOf(t).strdict[key]; ok {
		return v
	}
	return lua.LNil
}

// arrayIndex returns the index in the array of a table that a key stands for, or -1.
func arrayIndex(key lua.LNumber) int {
	if key >= 1 && key < 1<<40 {
		if i := int(key); lua.LNumber(i) == key {
			return i - 1
		}
	}
	return -1
}

func (m *machine) rawGet(L *lua.LState, t *lua.LTable, key lua.LValue) lua.LValue {
	h := tableOf(t)
	var v lua.LValue
	switch k := key.(type) {
	case lua.LString:
		if len(k) > longString {
			m.Work(L, len(k)>>6)
		}
		v = h.strdict[string(k)]
	case lua.LNumber:
		if i := arrayIndex(k); uint(i) < uint(len(h.array)) {
			return h.array[i]
		}
		if h.dict != nil {
			v = h.dict[k]
		}
	default:
		if h.dict != nil {
			v = h.dict[key]
		}
	}
	if v == nil {
		return lua.LNil
	}
	return v
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
			delete(h.strdict, string(k))
			return
		}
		if h.strdict == nil {
			m.Charge(L, mapSize)
			h.strdict = make(map[string]lua.LValue)
		}
		n := len(h.strdict)
		h.strdict[string(k)] = v
		if len(h.strdict) > n {
			m.addKey(L, t, key)
		}
		return
	case lua.LNumber:
		if math.IsNaN(float64(k)) {
			raise(L, "table index is NaN")
		}
		i := arrayIndex(k)
		switch {
		case uint(i) < uint(len(h.array)):
			h.array[i] = v
			return
		case i >= 0 && i == len(h.array) && v != lua.LNil:
			m.push(L, h, v)
			if len(h.dict) > 0 {
				m.migrate(L, h)
			}
			return
		}
	case *lua.LNilType:
		raise(L, "table index is nil")
	}
	if v == lua.LNil {
		delete(h.dict, key)
		return
	}
	if h.dict == nil {
		m.Charge(L, mapSize)
		h.dict = make(map[lua.LValue]lua.LValue)
	}
	n := len(h.dict)
	h.dict[key] = v
	if len(h.dict) > n {
		m.addKey(L, t, key)
	}
}

// push appends a value to the array of a table.
func (m *machine) push(L *lua.LState, h *table, v lua.LValue) {
	if len(h.array) == cap(h.array) {
		n := max(4, 2*cap(h.array))
		if n > 1<<16 {
			n = cap(h.array) + cap(h.array)>>2
		}
		m.Charge(L, slotSize*(n-cap(h.array)))
		array := make([]lua.LValue, len(h.array), n)
		copy(array, h.array)
		h.array = array
	}
	h.array = append(h.array, v)
}

// migrate moves to the array what the map holds for the numbers after it.
func (m *machine) migrate(L *lua.LState, h *table) {
	delete(h.dict, lua.LNumber(len(h.array)))
	for {
		key := lua.LNumber(len(h.array) + 1)
		v, ok := h.dict[key]
		if !ok {
			return
		}
		m.Work(L, 4)
		delete(h.dict, key)
		m.push(L, h, v)
	}
}

// addKey lists a key that one of the maps has gained, for next. A key that was deleted keeps its place.
func (m *machine) addKey(L *lua.LState, t *lua.LTable, key lua.LValue) {
	h := tableOf(t)
	if h.k2i == nil {
		m.Charge(L, keysSize)
		h.k2i = make(map[lua.LValue]int)
	}
	if _, ok := h.k2i[key]; ok {
		return
	}
	if len(h.keys) >= 8 {
		m.Charge(L, entrySize)
	}
	if n := len(h.keys); n >= 64 && n > 2*(len(h.dict)+len(h.strdict)) {
		m.Work(L, n)
		live := make([]lua.LValue, 0, 2*(n/2+1))
		clear(h.k2i)
		for _, k := range h.keys {
			if m.rawGet(L, t, k) != lua.LNil && k != key {
				h.k2i[k] = len(live)
				live = append(live, k)
			}
		}
		h.keys = live
	}
	h.k2i[key] = len(h.keys)
	h.keys = append(h.keys, key)
}

// next returns the key and the value after a key, LNil after the last. It raises an error for a key that is none.
func (m *machine) next(L *lua.LState, t *lua.LTable, key lua.LValue) (k, v lua.LValue) {
	h := tableOf(t)
	i, at := 0, -1
	if key != lua.LNil {
		n, ok := key.(lua.LNumber)
		if i = arrayIndex(n) + 1; !ok || i < 1 || i > len(h.array) {
			i = len(h.array)
			if at, ok = h.k2i[key]; !ok {
				raise(L, "invalid key to 'next'")
			}
		}
	}
	if i < len(h.array) {
		for ; i < len(h.array); i++ {
			if v := h.array[i]; v != lua.LNil {
				return number(lua.LNumber(i + 1)), v
			}
		}
		m.Work(L, len(h.array)>>4)
	}
	for at++; at < len(h.keys); at++ {
		k := h.keys[at]
		switch s := k.(type) {
		case lua.LString:
			v = h.strdict[string(s)]
		default:
			v = h.dict[k]
		}
		if v != nil {
			return k, v
		}
		m.Work(L, 1)
	}
	return lua.LNil, lua.LNil
}

// length returns a border of a table: t[n] is not nil and t[n+1] is.
func length(t *lua.LTable) int {
	h := tableOf(t)
	n := len(h.array)
	if n > 0 && h.array[n-1] == lua.LNil {
		low := 0
		for n-low > 1 {
			if middle := (low + n) / 2; h.array[middle-1] == lua.LNil {
				n = middle
			} else {
				low = middle
			}
		}
		return low
	}
	if len(h.dict) > 0 {
		for h.dict[lua.LNumber(n+1)] != nil {
			n++
		}
	}
	return n
}

// dataOf returns where the bytes of a string are.
func dataOf(s string) unsafe.Pointer { return unsafe.Pointer(unsafe.StringData(s)) }
