package cmsgpack

import (
	"fmt"
	"math"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/luatable"
)

// fault is an error in the words of lua-cmsgpack.
type fault string

func (f fault) Error() string { return string(f) }

const (
	errMissing = fault("Missing bytes in input.")
	errFormat  = fault("Bad data format in input.")
)

// unpacker reads values.
type unpacker struct {
	L      *lua.LState
	bounds *lualib.Bounds
	whole  string
	text   string // the rest
	stack  int    // values that C would have on the stack of Lua
}

// unpack pushes up to limit values from an offset on, after the offset that follows them, -1 at the end. If limit and
// offset are 0 it pushes all values and no offset.
func unpack(L *lua.LState, bounds *lualib.Bounds, limit, offset int64) int {
	all := limit == 0 && offset == 0
	stack := L.GetTop()
	if !all {
		stack = min(stack, 1)
	}
	text := lualib.CheckString(L, 1)
	if offset < 0 || limit < 0 {
		// lua-cmsgpack names the length where it means the limit.
		lualib.Raise(L, fmt.Sprintf("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(text))))
	}
	if offset > int64(len(text)) {
		lualib.Raise(L, fmt.Sprintf("Start offset %d greater than input length %d.", int32(offset), int32(len(text))))
	}
	if all {
		limit = math.MaxInt32
	}
	u := unpacker{L: L, bounds: bounds, whole: text, text: text[offset:], stack: stack}
	L.Push(lua.LNil) // the offset
	next := L.GetTop()
	n := 0
	for u.text != "" && int64(n) < limit {
		v, err := u.value(L.Push)
		if err != nil {
			lualib.Raise(L, err.Error())
		}
		if v != nil {
			L.Push(v)
		}
		n++
	}
	if all {
		return n
	}
	end := len(text) - len(u.text)
	if u.text == "" {
		end = -1
	}
	L.Replace(next, lua.LNumber(end))
	return n + 1
}

// take cuts n bytes off the text.
func (u *unpacker) take(n int) (string, error) {
	if n > len(u.text) {
		return "", errMissing
	}
	s := u.text[:n]
	u.text = u.text[n:]
	return s, nil
}

// unsigned cuts off an unsigned number of n bytes, high byte first.
func (u *unpacker) unsigned(n int) (uint64, error) {
	s, err := u.take(n)
	var v uint64
	for i := range len(s) {
		v = v<<8 | uint64(s[i])
	}
	return v, err
}

// value cuts off a value. It counts one on the stack, which the caller takes off when it uses the value up. A table goes
// to hold before it is filled, so that the script's memory counts what it has so far; value then returns nil.
func (u *unpacker) value(hold func(lua.LValue)) (lua.LValue, error) {
	if u.text == "" {
		return nil, errMissing
	}
	if u.stack+1 > lualib.MaxStack {
		lualib.Raise(u.L, "stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	u.bounds.Charge(lualib.SlotSize)
	u.bounds.Work(1)
	c := u.text[0]
	u.text = u.text[1:]
	u.stack++
	switch {
	case c <= 0x7f:
		return lua.LNumber(c), nil
	case c >= 0xe0:
		return lua.LNumber(int8(c)), nil
	case c < 0x90:
		return nil, u.table(uint64(c&0xf), hold)
	case c < 0xa0:
		return nil, u.array(uint64(c&0xf), hold)
	case c < 0xc0:
		return u.string(uint64(c & 0x1f))
	}
	switch c {
	case 0xc0:
		return lua.LNil, nil
	case 0xc2:
		return lua.LFalse, nil
	case 0xc3:
		return lua.LTrue, nil
	case 0xca:
		n, err := u.unsigned(4)
		return lua.LNumber(math.Float32frombits(uint32(n))), err
	case 0xcb:
		n, err := u.unsigned(8)
		return lua.LNumber(math.Float64frombits(n)), err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := u.unsigned(1 << (c - 0xcc))
		return lua.LNumber(int64(n)), err // numbers from 2^63 on are negative, as in C
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		n, err := u.unsigned(size)
		return lua.LNumber(int64(n<<(64-8*size)) >> (64 - 8*size)), err
	case 0xd9, 0xda, 0xdb:
		n, err := u.unsigned(1 << (c - 0xd9))
		if err != nil {
			return nil, err
		}
		return u.string(n)
	case 0xdc, 0xdd:
		n, err := u.unsigned(2 << (c - 0xdc))
		if err != nil {
			return nil, err
		}
		return nil, u.array(n, hold)
	case 0xde, 0xdf:
		n, err := u.unsigned(2 << (c - 0xde))
		if err != nil {
			return nil, err
		}
		return nil, u.table(n, hold)
	}
	return nil, errFormat
}

func (u *unpacker) string(n uint64) (lua.LValue, error) {
	s, err := u.take(int(n)) // 32 bits at most
	return lua.LString(lualib.Part(u.bounds, u.whole, s)), err
}

// array cuts off n values. n may be more than there are bytes: nothing is allocated ahead.
func (u *unpacker) array(n uint64, hold func(lua.LValue)) error {
	if u.stack+1 > lualib.MaxStack {
		lualib.Raise(u.L, "stack overflow (in function mp_decode_to_lua_array)")
	}
	t := u.newTable(hold)
	for i := 1; uint64(i) <= n; i++ {
		u.stack++ // the index
		set := func(v lua.LValue) { u.set(t, lua.LNumber(i), v) }
		v, err := u.value(set)
		if err != nil {
			return err
		}
		u.stack -= 2
		if v != nil {
			set(v)
		}
	}
	return nil
}

// table cuts off n pairs.
func (u *unpacker) table(n uint64, hold func(lua.LValue)) error {
	t := u.newTable(hold)
	for range n {
		var k lua.LValue
		key, err := u.value(func(v lua.LValue) { k = v; u.L.Push(v) })
		if err != nil {
			return err
		}
		pushed := key == nil
		if !pushed {
			k = key
		}
		set := func(v lua.LValue) { u.set(t, k, v) }
		bad := faultOf(k)
		if bad != "" {
			set = u.L.Push // faults of the value come first
		}
		v, err := u.value(set)
		if err != nil {
			return err
		}
		if bad != "" {
			u.L.Error(lua.LString(bad), 0)
		}
		u.stack -= 2
		if v != nil {
			set(v)
		}
		if pushed {
			u.L.Pop(1)
		}
	}
	return nil
}

func (u *unpacker) newTable(hold func(lua.LValue)) *lua.LTable {
	u.bounds.Charge(lualib.TableSize)
	t := u.L.CreateTable(0, 0)
	hold(t)
	return t
}

// faultOf returns the error of Lua for what cannot be a key, or nothing.
func faultOf(k lua.LValue) string {
	if k == lua.LNil {
		return "table index is nil"
	}
	if f, ok := k.(lua.LNumber); ok && f != f {
		return "table index is NaN"
	}
	return ""
}

// maxGap is how many elements of an array may be missing before a number that is put there.
const maxGap = 1 << 17

// set sets an entry of a table, and charges for it. An array grows up to its highest index, so gaps are charged too;
// a number far beyond the end of the array goes into the map.
func (u *unpacker) set(t *lua.LTable, k, v lua.LValue) {
	if v == lua.LNil && luatable.Get(t, k) == lua.LNil {
		return
	}
	h := luatable.Of(t)
	f, _ := k.(lua.LNumber)
	i, end := luatable.Index(f), len(h.Array)
	gap := i - end
	if i < 0 || gap > maxGap {
		u.bounds.Charge(lualib.EntrySize)
		t.RawSetH(k, v)
		return
	}
	u.bounds.Work(max(gap, 0))
	u.bounds.Charge(max(gap+1, 0) * lualib.SlotSize)
	t.RawSet(k, v)
	if gap >= 0 && len(h.Dict) > 0 {
		u.absorb(h, end)
	}
}

// absorb moves to an array that was longer than end before what the map holds for its numbers and for those after it. The
// last element is newer than what the map has.
func (u *unpacker) absorb(h *luatable.Layout, end int) {
	for ; end < len(h.Array)-1; end++ {
		if v, ok := h.Dict[lua.LNumber(end+1)]; ok {
			delete(h.Dict, lua.LNumber(end+1))
			h.Array[end] = v
		}
	}
	h.Migrate(func(v lua.LValue) {
		u.bounds.Work(1)
		u.bounds.Charge(lualib.SlotSize)
		h.Array = append(h.Array, v)
	})
}
