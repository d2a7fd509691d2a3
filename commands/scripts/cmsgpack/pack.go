package cmsgpack

import (
	"encoding/binary"
	"math"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
	"mayfly/commands/scripts/luatable"
)

// maxNesting is how many tables may be within each other; deeper ones are nil.
const maxNesting = 16

// packer writes values.
type packer struct {
	bounds *lualib.Bounds
	out    lualib.Buffer
}

// pack returns the bytes of all its arguments.
func pack(L *lua.LState, bounds *lualib.Bounds) int {
	n := L.GetTop()
	if n == 0 {
		lualib.ArgError(L, 0, "MessagePack pack needs input.")
	}
	if 2*n > lualib.MaxStack {
		lualib.ArgError(L, 0, "Too many arguments for MessagePack pack.")
	}
	p := packer{bounds: bounds, out: lualib.NewBuffer(bounds)}
	for i := 1; i <= n; i++ {
		p.value(L.Get(i), 0)
	}
	L.Push(lua.LString(p.out.Finish()))
	return 1
}

// value appends a value that level tables enclose.
func (p *packer) value(v lua.LValue, level int) {
	p.bounds.Work(1)
	p.out.Grow(9) // the longest number or header
	switch v := v.(type) {
	case lua.LString:
		p.string(string(v))
	case lua.LBool:
		if v {
			p.out.Bytes = append(p.out.Bytes, 0xc3)
		} else {
			p.out.Bytes = append(p.out.Bytes, 0xc2)
		}
	case lua.LNumber:
		p.number(float64(v))
	case *lua.LTable:
		if level == maxNesting {
			p.out.Bytes = append(p.out.Bytes, 0xc0)
			return
		}
		n, array := p.count(v)
		if array {
			p.header(n, 0x90, 0xdc)
			for i := 1; i <= n; i++ {
				p.value(luatable.Get(v, lua.LNumber(i)), level+1)
			}
			return
		}
		p.header(n, 0x80, 0xde)
		for k, e := range luatable.All(v, p.bounds.Work) {
			p.value(k, level+1)
			p.value(e, level+1)
		}
	default:
		p.out.Bytes = append(p.out.Bytes, 0xc0)
	}
}

// count returns how many entries a table has, and whether their keys are 1 to n.
func (p *packer) count(t *lua.LTable) (n int, array bool) {
	last := 0
	array = true
	for k := range luatable.All(t, p.bounds.Work) {
		n++
		if array {
			f, ok := k.(lua.LNumber)
			if array = ok && f >= 1 && f <= math.MaxInt32 && f == lua.LNumber(int(f)); array {
				last = max(last, int(f))
			}
		}
	}
	return n, array && last == n
}

// header appends the header of an array or a map of n elements.
func (p *packer) header(n int, fixed, wide byte) {
	switch {
	case n <= 15:
		p.out.Bytes = append(p.out.Bytes, fixed|byte(n))
	case n <= 0xffff:
		p.out.Bytes = binary.BigEndian.AppendUint16(append(p.out.Bytes, wide), uint16(n))
	default:
		p.out.Bytes = binary.BigEndian.AppendUint32(append(p.out.Bytes, wide+1), uint32(n))
	}
}

func (p *packer) string(s string) {
	p.bounds.Work(len(s) / 64)
	p.out.Grow(5 + len(s))
	switch n := len(s); {
	case n < 32:
		p.out.Bytes = append(p.out.Bytes, 0xa0|byte(n))
	case n <= 0xff:
		p.out.Bytes = append(p.out.Bytes, 0xd9, byte(n))
	case n <= 0xffff:
		p.out.Bytes = binary.BigEndian.AppendUint16(append(p.out.Bytes, 0xda), uint16(n))
	default:
		p.out.Bytes = binary.BigEndian.AppendUint32(append(p.out.Bytes, 0xdb), uint32(n))
	}
	p.out.Bytes = append(p.out.Bytes, s...)
}

// number appends a whole number as an integer, others as the shortest exact float.
func (p *packer) number(f float64) {
	if n := lualib.Truncate(f); float64(n) == f {
		p.integer(n)
	} else if float64(float32(f)) == f {
		p.out.Bytes = binary.BigEndian.AppendUint32(append(p.out.Bytes, 0xca), math.Float32bits(float32(f)))
	} else {
		p.out.Bytes = binary.BigEndian.AppendUint64(append(p.out.Bytes, 0xcb), math.Float64bits(f))
	}
}

func (p *packer) integer(n int64) {
	switch {
	case n >= -32 && n <= 127:
		p.out.Bytes = append(p.out.Bytes, byte(n))
	case n >= 0 && n <= 0xff:
		p.out.Bytes = append(p.out.Bytes, 0xcc, byte(n))
	case n >= 0 && n <= 0xffff:
		p.out.Bytes = binary.BigEndian.AppendUint16(append(p.out.Bytes, 0xcd), uint16(n))
	case n >= 0 && n <= 0xffffffff:
		p.out.Bytes = binary.BigEndian.AppendUint32(append(p.out.Bytes, 0xce), uint32(n))
	case n >= 0:
		p.out.Bytes = binary.BigEndian.AppendUint64(append(p.out.Bytes, 0xcf), uint64(n))
	case n >= math.MinInt8:
		p.out.Bytes = append(p.out.Bytes, 0xd0, byte(n))
	case n >= math.MinInt16:
		p.out.Bytes = binary.BigEndian.AppendUint16(append(p.out.Bytes, 0xd1), uint16(n))
	case n >= math.MinInt32:
		p.out.Bytes = binary.BigEndian.AppendUint32(append(p.out.Bytes, 0xd2), uint32(n))
	default:
		p.out.Bytes = binary.BigEndian.AppendUint64(append(p.out.Bytes, 0xd3), uint64(n))
	}
}
