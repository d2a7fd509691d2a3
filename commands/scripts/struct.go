package scripts

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/scripts/lua"
)

// newStruct returns Redis' library struct: numbers and strings to and from bytes by a format of these
// options:
//
//	> <      big endian, little endian (the default)
//	![n]     largest alignment, a power of two; 8 without n
//	x        one byte of padding
//	b B      signed and unsigned byte
//	h H      2 bytes
//	l L T    8 bytes
//	i[n] I[n] n bytes, at most 32; 4 without n
//	f d      float, double
//	s        string that a zero byte ends
//	c[n]     string of n bytes; c0 is the whole string to pack, or as long as the number before it to unpack
//	space    ignored
func newStruct(m *lua.Machine) *lua.Table {
	t := m.NewTable(0)
	m.Fill(t, map[string]lua.Builtin{"pack": structPack, "unpack": structUnpack, "size": structSize})
	return t
}

const (
	maxIntegerSize   = 32
	defaultAlignment = 8
)

// format is what is left of a format, and its state.
type format struct {
	c         *lua.Call
	rest      string
	bigEndian bool
	alignment uint64
}

// newFormat reads argument 1 up to a zero byte.
func newFormat(c *lua.Call) format {
	text, _, _ := strings.Cut(c.Text(1), "\x00")
	c.M.Work(len(text)) // an option takes at least a byte
	return format{c: c, rest: text, alignment: 1}
}

// next returns the next option, its size in bytes, 0 for one that has none of its own, and how many bytes
// align it at a position. Sizes that are no powers of two give what C gives.
func (f *format) next(at uint64) (option byte, size, padding uint64) {
	option, f.rest = f.rest[0], f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		size = 1
	case 'h', 'H':
		size = 2
	case 'f':
		size = 4
	case 'l', 'L', 'T', 'd':
		size = 8
	case 'c':
		return option, uint64(f.number(1)), 0
	case 'i', 'I':
		n := f.number(4)
		if n > maxIntegerSize {
			f.c.Fail("integral size %d is larger than limit of %d", n, maxIntegerSize)
		}
		size = uint64(n)
	}
	if size > 0 {
		unit := min(size, f.alignment)
		padding = (unit - at&(unit-1)) & (unit - 1)
	}
	return option, size, padding
}

// number reads the number that follows an option.
func (f *format) number(absent int) int {
	rest := strings.TrimLeft(f.rest, "0123456789")
	digits := f.rest[:len(f.rest)-len(rest)]
	if f.rest = rest; digits == "" {
		return absent
	}
	n, err := strconv.ParseInt(digits, 10, 32)
	if err != nil {
		f.c.Fail("integral size overflow")
	}
	return int(n)
}

// control obeys an option that stands for no data.
func (f *format) control(option byte) {
	switch option {
	case ' ':
	case '>', '<':
		f.bigEndian = option == '>'
	case '!':
		n := f.number(defaultAlignment)
		if n <= 0 || n&(n-1) != 0 {
			f.c.Fail("alignment %d is not a power of 2", n)
		}
		f.alignment = uint64(n)
	default:
		f.c.ArgError(1, "invalid format option '"+string([]byte{option})+"'")
	}
}

// structPack returns the arguments after the format as bytes.
func structPack(c *lua.Call) []lua.Value {
	f, out := newFormat(c), c.M.NewBuffer()
	for arg := 2; f.rest != ""; {
		option, size, padding := f.next(uint64(out.Len()))
		if option != 'c' && option != 's' {
			out.Bytes(make([]byte, padding)...)
		}
		arg++
		switch option {
		case 'c', 's':
			s := c.Text(arg - 1)
			if size == 0 {
				size = uint64(len(s))
			}
			if uint64(len(s)) < size {
				c.ArgError(arg, "string too short")
			}
			c.M.Work(int(size / 64))
			out.Add(s[:size])
			if option == 's' {
				out.Bytes(0)
			}
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			f.put(out, lua.TruncateUnsigned(c.Num(arg-1)), int(size))
		case 'f':
			f.put(out, uint64(math.Float32bits(float32(c.Num(arg-1)))), 4)
		case 'd':
			f.put(out, math.Float64bits(c.Num(arg-1)), 8)
		case 'x':
			out.Bytes(0)
			arg--
		default:
			f.control(option)
			arg--
		}
	}
	return c.Return(out.Text())
}

// put appends the low bytes of a number; beyond eight they are 0, for negative numbers too.
func (f *format) put(out *lua.Buffer, value uint64, size int) {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(value)
		value >>= 8
	}
	if f.bigEndian {
		slices.Reverse(b)
	}
	out.Bytes(b...)
}

// structUnpack returns the values in a string from a position on, and the position after them.
func structUnpack(c *lua.Call) []lua.Value {
	f, data := newFormat(c), c.Text(2)
	pos, length := uint64(c.IntOr(3, 1)), uint64(len(data))
	if pos == 0 {
		c.ArgError(3, "offset must be 1 or greater")
	}
	pos--
	check := func(size uint64) {
		if size > length || pos > length-size {
			c.ArgError(2, "data string too short")
		}
	}
	var out []lua.Value
	for f.rest != "" {
		option, size, padding := f.next(pos)
		pos += padding
		check(size)
		if c.N()+len(out)+2 > lua.MaxValues {
			c.Fail("stack overflow (too many results)")
		}
		c.M.Charge(16)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			out = append(out, lua.Number(f.integer(data[pos:pos+size], option >= 'a')))
		case 'f':
			out = append(out, lua.Number(float64(math.Float32frombits(uint32(f.bits(data[pos:pos+size]))))))
		case 'd':
			out = append(out, lua.Number(math.Float64frombits(f.bits(data[pos:pos+size]))))
		case 'c':
			if size == 0 {
				n := len(out) - 1
				count, ok := 0.0, false
				if n >= 0 {
					count, ok = c.Number(out[n])
				}
				if !ok {
					c.Fail("format 'c0' needs a previous size")
				}
				out = out[:n]
				size = lua.TruncateUnsigned(count)
				check(size)
			}
			out = append(out, c.M.Part(data, int(pos), int(pos+size)))
		case 's':
			end := strings.IndexByte(data[pos:], 0)
			c.M.Work(max(end, 0) / 64)
			if end < 0 {
				c.M.Work(len(data) / 64)
				c.Fail("unfinished string in data")
			}
			out = append(out, c.M.Part(data, int(pos), int(pos)+end))
			size = uint64(end) + 1
		case 'x':
		default:
			f.control(option)
		}
		pos += size
	}
	return append(out, lua.Number(float64(int64(pos+1))))
}

// bits returns up to eight bytes as a number; of more, the last eight in the order of significance.
func (f *format) bits(data string) (n uint64) {
	for i := range len(data) {
		if !f.bigEndian {
			i = len(data) - 1 - i
		}
		n = n<<8 | uint64(data[i])
	}
	return n
}

// integer returns bytes as a number. The sign of more than eight bytes is where C on amd64 looks for it.
func (f *format) integer(data string, signed bool) float64 {
	n := f.bits(data)
	if !signed {
		return float64(n)
	}
	if mask := ^uint64(0) << ((len(data)*8 - 1) & 63); n&mask != 0 {
		n |= mask
	}
	return float64(int64(n))
}

// structSize returns how many bytes a format packs to.
func structSize(c *lua.Call) []lua.Value {
	f, pos := newFormat(c), uint64(0)
	for f.rest != "" {
		option, size, padding := f.next(pos)
		pos += padding + size
		switch {
		case option == 's':
			c.ArgError(1, "option 's' has no fixed size")
		case option == 'c' && size == 0:
			c.ArgError(1, "option 'c0' has no fixed size")
		case !('0' <= option && option <= '9' || 'a' <= option|0x20 && option|0x20 <= 'z'): // unknown letters are skipped, as in C
			f.control(option)
		}
	}
	return c.Return(lua.Number(float64(int64(pos))))
}
