package scripts

import (
	"encoding/binary"
	"math"

	"mayfly/commands/scripts/lua"
)

// maxNesting is how many tables cmsgpack packs within each other; deeper ones are nil.
const maxNesting = 16

// newCMsgpack returns Redis' library cmsgpack, lua-cmsgpack 0.4. It writes the bytes of that one, which a
// general codec does not: whole numbers in the shortest form, others as floats where that is exact, tables as
// arrays if their keys are 1 to n, nil for functions. It reads no extensions and no binary strings, which
// that one does not know.
func newCMsgpack(m *lua.Machine) *lua.Table {
	t := m.NewTable(0)
	m.Fill(t, map[string]lua.Builtin{
		"pack": func(c *lua.Call) []lua.Value {
			if c.N() == 0 {
				c.ArgError(0, "MessagePack pack needs input.")
			}
			if 2*c.N() > lua.MaxValues {
				c.ArgError(0, "Too many arguments for MessagePack pack.")
			}
			p := packer{m, m.NewBuffer()}
			for i := 1; i <= c.N(); i++ {
				p.value(c.Arg(i), 0)
			}
			return c.Return(p.out.Text())
		},
		"unpack":       func(c *lua.Call) []lua.Value { return unpack(c, 0, 0) },
		"unpack_one":   func(c *lua.Call) []lua.Value { return unpack(c, 1, c.IntOr(2, 0)) },
		"unpack_limit": func(c *lua.Call) []lua.Value { return unpack(c, c.Int(2), c.IntOr(3, 0)) },
	})
	m.Set(t, "_NAME", "cmsgpack")
	m.Set(t, "_VERSION", "lua-cmsgpack 0.4.0")
	m.Set(t, "_COPYRIGHT", "Copyright (C) 2012, Salvatore Sanfilippo")
	m.Set(t, "_DESCRIPTION", "MessagePack C implementation for Lua")
	return t
}

// packer writes values.
type packer struct {
	m   *lua.Machine
	out *lua.Buffer
}

// value appends a value that level tables enclose.
func (p *packer) value(v lua.Value, level int) {
	p.m.Work(1)
	switch v := v.(type) {
	case string:
		if n := len(v); n < 32 {
			p.out.Bytes(0xa0 | byte(n))
		} else if n <= 0xff {
			p.out.Bytes(0xd9, byte(n))
		} else {
			p.header(n, 0xda)
		}
		p.out.Add(v)
	case bool:
		p.out.Bytes(map[bool]byte{false: 0xc2, true: 0xc3}[v])
	case float64:
		p.number(v)
	case *lua.Table:
		if level == maxNesting {
			p.out.Bytes(0xc0)
			return
		}
		p.table(v, level+1)
	default:
		p.out.Bytes(0xc0)
	}
}

// table appends a table: as an array if its keys are 1 to n.
func (p *packer) table(t *lua.Table, level int) {
	n, last, array := 0, 0, true
	for k := range p.m.All(t) {
		n++
		f, ok := k.(float64)
		if array = array && ok && f >= 1 && f <= math.MaxInt32 && f == float64(int(f)); array {
			last = max(last, int(f))
		}
	}
	array = array && last == n
	fixed, wide := byte(0x80), byte(0xde)
	if array {
		fixed, wide = 0x90, 0xdc
	}
	if n <= 15 {
		p.out.Bytes(fixed | byte(n))
	} else {
		p.header(n, wide)
	}
	if array {
		for i := 1; i <= n; i++ {
			p.value(t.At(i), level)
		}
		return
	}
	for k, v := range p.m.All(t) {
		p.value(k, level)
		p.value(v, level)
	}
}

// header appends a length of 16 or 32 bits.
func (p *packer) header(n int, wide byte) {
	if n <= 0xffff {
		p.out.Bytes(wide, byte(n>>8), byte(n))
	} else {
		p.out.Bytes(binary.BigEndian.AppendUint32([]byte{wide + 1}, uint32(n))...)
	}
}

// number appends a whole number as an integer of the least size, others as the shortest exact float.
func (p *packer) number(f float64) {
	n := lua.Truncate(f)
	wide := binary.BigEndian.AppendUint64(nil, uint64(n))
	switch {
	case float64(n) != f && float64(float32(f)) == f:
		p.out.Bytes(binary.BigEndian.AppendUint32([]byte{0xca}, math.Float32bits(float32(f)))...)
	case float64(n) != f:
		p.out.Bytes(binary.BigEndian.AppendUint64([]byte{0xcb}, math.Float64bits(f))...)
	case n >= -32 && n <= 127:
		p.out.Bytes(byte(n))
	default:
		size, kind := 0, byte(0xcc)
		if n < 0 {
			kind = 0xd0
			for size < 3 && n < -1<<(8<<size-1) {
				size++
			}
		} else {
			for size < 3 && n >= 1<<(8<<size) {
				size++
			}
		}
		p.out.Bytes(kind + byte(size))
		p.out.Bytes(wide[8-1<<size:]...)
	}
}

// unpacker reads values.
type unpacker struct {
	c      *lua.Call
	m      *lua.Machine
	text   string
	pos    int
	values int // that C would have on the stack of Lua
}

// unpack returns up to limit values from an offset on, after the offset that follows them, -1 at the end. If
// limit and offset are 0 it returns all values and no offset.
func unpack(c *lua.Call, limit, offset int) []lua.Value {
	text, all := c.Text(1), limit == 0 && offset == 0
	if offset < 0 || limit < 0 { // it names the length where it means the limit
		c.Fail("Invalid request to unpack with offset of %d and limit of %d.", int32(offset), int32(len(text)))
	}
	if offset > len(text) {
		c.Fail("Start offset %d greater than input length %d.", int32(offset), int32(len(text)))
	}
	u := unpacker{c: c, m: c.M, text: text, pos: offset, values: 1}
	held := c.M.Hold(nil)
	var out []lua.Value
	if all {
		limit = math.MaxInt32
	} else {
		out = append(out, nil)
	}
	for n := 1; u.pos < len(text) && n <= limit; n++ {
		v := u.value()
		out = append(out, v)
		c.M.Hold(v)
	}
	c.M.Release(held)
	if !all {
		out[0] = lua.Int(u.pos)
		if u.pos == len(text) {
			out[0] = -1.0
		}
	}
	return out
}

// take cuts n bytes off the text.
func (u *unpacker) take(n int) string {
	if n > len(u.text)-u.pos {
		u.c.Fail("Missing bytes in input.")
	}
	u.pos += n
	return u.text[u.pos-n : u.pos]
}

// unsigned cuts off an unsigned number of n bytes, high byte first.
func (u *unpacker) unsigned(n int) (v uint64) {
	for _, b := range []byte(u.take(n)) {
		v = v<<8 | uint64(b)
	}
	return v
}

// value cuts off a value.
func (u *unpacker) value() lua.Value {
	if u.values++; u.values > lua.MaxValues {
		u.c.Fail("stack overflow (too many return values at once; use unpack_one or unpack_limit instead.)")
	}
	u.m.Charge(16)
	u.m.Work(1)
	switch c := u.take(1)[0]; {
	case c <= 0x7f:
		return lua.Int(int(c))
	case c >= 0xe0:
		return lua.Int(int(int8(c)))
	case c < 0x90:
		return u.table(int(c&0xf), true)
	case c < 0xa0:
		return u.table(int(c&0xf), false)
	case c < 0xc0:
		return u.string(int(c & 0x1f))
	case c == 0xc0:
		return nil
	case c == 0xc2, c == 0xc3:
		return c == 0xc3
	case c == 0xca:
		return lua.Number(float64(math.Float32frombits(uint32(u.unsigned(4)))))
	case c == 0xcb:
		return lua.Number(math.Float64frombits(u.unsigned(8)))
	case c >= 0xcc && c <= 0xcf: // numbers from 2^63 on are negative, as in C
		return lua.Number(float64(int64(u.unsigned(1 << (c - 0xcc)))))
	case c >= 0xd0 && c <= 0xd3:
		size := 1 << (c - 0xd0)
		return lua.Number(float64(int64(u.unsigned(size)<<(64-8*size)) >> (64 - 8*size)))
	case c >= 0xd9 && c <= 0xdb:
		return u.string(int(u.unsigned(1 << (c - 0xd9))))
	case c >= 0xdc && c <= 0xdf:
		return u.table(int(u.unsigned(2<<(c&1))), c >= 0xde)
	}
	u.c.Fail("Bad data format in input.")
	return nil
}

func (u *unpacker) string(n int) lua.Value {
	s := u.take(n)
	return u.m.Part(u.text, u.pos-len(s), u.pos)
}

// table cuts off n values, or n pairs. n may be more than there are bytes: nothing is allocated ahead.
func (u *unpacker) table(n int, pairs bool) lua.Value {
	if !pairs && u.values+1 > lua.MaxValues {
		u.c.Fail("stack overflow (in function mp_decode_to_lua_array)")
	}
	t := u.m.NewTable(0)
	held := u.m.Hold(t)
	for i := 1; i <= n; i++ {
		k := lua.Int(i)
		u.values++
		if pairs {
			u.values--
			k = u.value()
			u.m.Hold(k)
		}
		v := u.value()
		u.values -= 2
		u.m.Set(t, k, v)
		u.m.Release(held + 1)
	}
	u.m.Release(held)
	return t
}
