package luatable

import (
	"fmt"
	"iter"
	"reflect"
	"strings"
	"unsafe"

	lua "github.com/yuin/gopher-lua"
)

// Layout has the layout of the library's LTable.
type Layout struct {
	Metatable lua.LValue

	Array   []lua.LValue
	Dict    map[lua.LValue]lua.LValue // other keys
	StrDict map[string]lua.LValue
	Keys    []lua.LValue       // of both maps, in the order of insertion, deleted ones too
	K2I     map[lua.LValue]int // their places in Keys
}

func init() { Same(reflect.TypeFor[lua.LTable](), reflect.TypeFor[Layout]()) }

// Same panics if two structs have members of other names, places or sizes. Letters may be of either case.
func Same(theirs, ours reflect.Type) {
	ok := theirs.NumField() == ours.NumField() && theirs.Size() == ours.Size()
	for i := 0; ok && i < ours.NumField(); i++ {
		a, b := theirs.Field(i), ours.Field(i)
		ok = strings.EqualFold(a.Name, b.Name) && a.Offset == b.Offset && a.Type.Size() == b.Type.Size() &&
			(a.Type.Kind() == b.Type.Kind() || b.Type.Kind() == reflect.UnsafePointer)
	}
	if !ok {
		panic(fmt.Sprintf("luatable: the layout of %v is not that of gopher-lua v1.1.2", theirs))
	}
}

// Of returns the members of a table.
func Of(t *lua.LTable) *Layout { return (*Layout)(unsafe.Pointer(t)) }

// Index returns the index in an array that a key stands for, or -1.
func Index(key lua.LNumber) int {
	if key >= 1 && key < 1<<40 {
		if i := int(key); lua.LNumber(i) == key {
			return i - 1
		}
	}
	return -1
}

// Get returns t[key] without metamethods.
func Get(t *lua.LTable, key lua.LValue) lua.LValue {
	h := Of(t)
	var v lua.LValue
	switch k := key.(type) {
	case lua.LString:
		v = h.StrDict[string(k)]
	case lua.LNumber:
		if i := Index(k); uint(i) < uint(len(h.Array)) {
			return h.Array[i]
		}
		if h.Dict != nil {
			v = h.Dict[k]
		}
	default:
		if h.Dict != nil {
			v = h.Dict[key]
		}
	}
	if v == nil {
		return lua.LNil
	}
	return v
}

// Next returns the key and the value after a key, LNil after the last, and how many places it has passed. ok is false
// for a key that is none.
func Next(t *lua.LTable, key lua.LValue) (k, v lua.LValue, steps int, ok bool) {
	h := Of(t)
	i, at := 0, -1
	if key != lua.LNil {
		n, isNumber := key.(lua.LNumber)
		if i = Index(n) + 1; !isNumber || i < 1 || i > len(h.Array) {
			i = len(h.Array)
			if at, ok = h.K2I[key]; !ok {
				return nil, nil, 0, false
			}
		}
	}
	for ; i < len(h.Array); i++ {
		steps++
		if v := h.Array[i]; v != lua.LNil {
			return lua.LNumber(i + 1), v, steps, true
		}
	}
	for at++; at < len(h.Keys); at++ {
		steps++
		k := h.Keys[at]
		if s, isString := k.(lua.LString); isString {
			v = h.StrDict[string(s)]
		} else {
			v = h.Dict[k]
		}
		if v != nil {
			return k, v, steps, true
		}
	}
	return lua.LNil, lua.LNil, steps, true
}

// All yields the entries of a table, which must not change meanwhile. It tells work how many places it has passed.
func All(t *lua.LTable, work func(steps int)) iter.Seq2[lua.LValue, lua.LValue] {
	return func(yield func(k, v lua.LValue) bool) {
		for key := lua.LValue(lua.LNil); ; {
			k, v, steps, _ := Next(t, key)
			work(steps)
			if k == lua.LNil || !yield(k, v) {
				return
			}
			key = k
		}
	}
}

// Migrate moves to the array what the map holds for the numbers after it: push appends a value to the array. The last
// element of the array has come new, so the map's value for it is void.
func (h *Layout) Migrate(push func(v lua.LValue)) {
	delete(h.Dict, lua.LNumber(len(h.Array)))
	for {
		key := lua.LNumber(len(h.Array) + 1)
		v, ok := h.Dict[key]
		if !ok {
			return
		}
		delete(h.Dict, key)
		push(v)
	}
}

// Len returns a border of a table, n: t[n] is not nil and t[n+1] is. steps is how many entries of the map it has looked up.
func Len(t *lua.LTable) (n, steps int) {
	h := Of(t)
	n = len(h.Array)
	if n > 0 && h.Array[n-1] == lua.LNil {
		low := 0
		for n-low > 1 {
			if middle := (low + n) / 2; h.Array[middle-1] == lua.LNil {
				n = middle
			} else {
				low = middle
			}
		}
		return low, 0
	}
	if len(h.Dict) > 0 {
		for h.Dict[lua.LNumber(n+1)] != nil {
			n++
			steps++
		}
	}
	return n, steps
}
