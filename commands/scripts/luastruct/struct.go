package luastruct

import (
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"

	lua "github.com/yuin/gopher-lua"

	"mayfly/commands/scripts/lualib"
)

const (
	maxIntegerSize   = 32
	defaultAlignment = 8
)

// Open sets the global struct of L. charge is that of lualib.NewBounds.
func Open(L *lua.LState, charge func(bytes int)) {
	bounds := lualib.NewBounds(charge)
	L.SetGlobal("struct", L.SetFuncs(L.NewTable(), map[string]lua.LGFunction{
		"pack":   func(L *lua.LState) int { return pack(L, bounds) },
		"unpack": func(L *lua.LState) int { return unpack(L, bounds) },
		"size":   func(L *lua.LState) int { return size(L, bounds) },
	}))
}

// format is what is left of a format, and its state.
type format struct {
	L         *lua.LState
	rest      string
	bigEndian bool
	alignment uint64
}

// newFormat reads argument 1 up to a zero byte.
func newFormat(L *lua.LState, bounds *lualib.Bounds) format {
	text := lualib.CheckString(L, 1)
	if end := strings.IndexByte(text, 0); end >= 0 {
		text = text[:end]
	}
	bounds.Work(len(text)) // an option takes at least a byte
	return format{L: L, rest: text, alignment: 1}
}

// next returns the next option and its size in bytes, 0 for one that has none of its own.
func (f *format) next() (option byte, size uint64) {
	option, f.rest = f.rest[0], f.rest[1:]
	switch option {
	case 'b', 'B', 'x':
		return option, 1
	case 'h', 'H':
		return option, 2
	case 'f':
		return option, 4
	case 'l', 'L', 'T', 'd':
		return option, 8
	case 'c':
		return option, uint64(f.number(1))
	case 'i', 'I':
		n := f.number(4)
		if n > maxIntegerSize {
			lualib.Raise(f.L, "integral size "+strconv.Itoa(n)+" is larger than limit of "+strconv.Itoa(maxIntegerSize))
		}
		return option, uint64(n)
	}
	return option, 0
}

// number reads the number that follows an option.
func (f *format) number(absent int) int {
	end := 0
	n := 0
	for ; end < len(f.rest) && '0' <= f.rest[end] && f.rest[end] <= '9'; end++ {
		if n = n*10 + int(f.rest[end]-'0'); n > math.MaxInt32 {
			lualib.Raise(f.L, "integral size overflow")
		}
	}
	if end == 0 {
		return absent
	}
	f.rest = f.rest[end:]
	return n
}

// padding returns how many bytes align an option at a position. Sizes that are no powers of two give what C gives.
func (f *format) padding(at uint64, option byte, size uint64) uint64 {
	if size == 0 || option == 'c' {
		return 0
	}
	size = min(size, f.alignment)
	return (size - at&(size-1)) & (size - 1)
}

// control obeys an option that stands for no data.
func (f *format) control(option byte) {
	switch option {
	case ' ':
	case '>':
		f.bigEndian = true
	case '<':
		f.bigEndian = false
	case '!':
		n := f.number(defaultAlignment)
		if n <= 0 || n&(n-1) != 0 {
			lualib.Raise(f.L, "alignment "+strconv.Itoa(n)+" is not a power of 2")
		}
		f.alignment = uint64(n)
	default:
		lualib.ArgError(f.L, 1, "invalid format option '"+string([]byte{option})+"'")
	}
}

// pack returns the arguments after the format as bytes.
func pack(L *lua.LState, bounds *lualib.Bounds) int {
	f := newFormat(L, bounds)
	L.Push(lua.LNil) // what C finds, and names in errors, after the last argument
	out := lualib.NewBuffer(bounds)
	arg := 2
	for f.rest != "" {
		option, size := f.next()
		pad := f.padding(uint64(len(out.Bytes)), option, size)
		switch option {
		case 'c', 's':
			s := lualib.CheckString(L, arg)
			arg++
			if size == 0 {
				size = uint64(len(s))
			}
			if uint64(len(s)) < size {
				lualib.ArgError(L, arg, "string too short")
			}
			bounds.Work(int(size / 64))
			out.Grow(int(size) + 1)
			out.Bytes = append(out.Bytes, s[:size]...)
			if option == 's' {
				out.Bytes = append(out.Bytes, 0)
			}
			continue
		}
		out.Grow(int(pad + size)) // at most 2 * maxIntegerSize
		out.Bytes = append(out.Bytes, make([]byte, pad)...)
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			out.Bytes = f.appendInteger(out.Bytes, lualib.CheckNumber(L, arg), int(size))
			arg++
		case 'x':
			out.Bytes = append(out.Bytes, 0)
		case 'f':
			out.Bytes = f.appendInteger32(out.Bytes, math.Float32bits(float32(lualib.CheckNumber(L, arg))))
			arg++
		case 'd':
			out.Bytes = f.appendInteger64(out.Bytes, math.Float64bits(lualib.CheckNumber(L, arg)))
			arg++
		default:
			f.control(option)
		}
	}
	L.Push(lua.LString(out.Finish()))
	return 1
}

func (f *format) appendInteger32(out []byte, n uint32) []byte {
	if f.bigEndian {
		return binary.BigEndian.AppendUint32(out, n)
	}
	return binary.LittleEndian.AppendUint32(out, n)
}

func (f *format) appendInteger64(out []byte, n uint64) []byte {
	if f.bigEndian {
		return binary.BigEndian.AppendUint64(out, n)
	}
	return binary.LittleEndian.AppendUint64(out, n)
}

// appendInteger appends the low bytes of a number; beyond eight they are 0, for negative numbers too.
func (f *format) appendInteger(out []byte, n float64, size int) []byte {
	value := lualib.TruncateUnsigned(n)
	from := len(out)
	for range size {
		out = append(out, byte(value))
		value >>= 8
	}
	if f.bigEndian {
		slices.Reverse(out[from:])
	}
	return out
}

// unpack returns the values in a string from a position on, and the position after them.
func unpack(L *lua.LState, bounds *lualib.Bounds) int {
	f := newFormat(L, bounds)
	data := lualib.CheckString(L, 2)
	pos := uint64(lualib.OptInteger(L, 3, 1))
	if pos == 0 {
		lualib.ArgError(L, 3, "offset must be 1 or greater")
	}
	pos--
	length := uint64(len(data))
	arguments, n := L.GetTop(), 0
	for f.rest != "" {
		option, size := f.next()
		pos += f.padding(pos, option, size)
		if size > length || pos > length-size {
			lualib.ArgError(L, 2, "data string too short")
		}
		if arguments+n+2 > lualib.MaxStack {
			lualib.Raise(L, "stack overflow (too many results)")
		}
		var value lua.LValue
		switch option {
		case 'b', 'B', 'h', 'H', 'l', 'L', 'T', 'i', 'I':
			value = lua.LNumber(f.integer(data[pos:pos+size], option >= 'a'))
		case 'f':
			value = lua.LNumber(math.Float32frombits(uint32(f.bits(data[pos : pos+size]))))
		case 'd':
			value = lua.LNumber(math.Float64frombits(f.bits(data[pos : pos+size])))
		case 'c':
			if size == 0 {
				count, ok := 0.0, false
				if n > 0 {
					count, ok = lualib.ToNumber(L.Get(-1))
				}
				if !ok {
					lualib.Raise(L, "format 'c0' needs a previous size")
				}
				L.Pop(1)
				n--
				size = lualib.TruncateUnsigned(count)
				if size > length || pos > length-size {
					lualib.ArgError(L, 2, "data string too short")
				}
			}
			value = lua.LString(lualib.Part(bounds, data, data[pos:pos+size]))
		case 's':
			end := strings.IndexByte(data[pos:], 0)
			if end < 0 {
				bounds.Work(len(data) / 64)
				lualib.Raise(L, "unfinished string in data")
			}
			bounds.Work(end / 64)
			value = lua.LString(lualib.Part(bounds, data, data[pos:pos+uint64(end)]))
			size = uint64(end) + 1
		case 'x':
		default:
			f.control(option)
		}
		if value != nil {
			bounds.Charge(lualib.SlotSize)
			L.Push(value)
			n++
		}
		pos += size
	}
	L.Push(lua.LNumber(int64(pos + 1)))
	return n + 1
}

// bits returns up to eight bytes as a number; of more, the last eight in the order of significance.
func (f *format) bits(data string) (n uint64) {
	if f.bigEndian {
		for i := range len(data) {
			n = n<<8 | uint64(data[i])
		}
		return n
	}
	for i := len(data) - 1; i >= 0; i-- {
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
	mask := ^uint64(0) << ((len(data)*8 - 1) & 63)
	if n&mask != 0 {
		n |= mask
	}
	return float64(int64(n))
}

// size returns how many bytes a format packs to.
func size(L *lua.LState, bounds *lualib.Bounds) int {
	f := newFormat(L, bounds)
	var pos uint64
	for f.rest != "" {
		option, size := f.next()
		pos += f.padding(pos, option, size)
		switch {
		case option == 's':
			lualib.ArgError(L, 1, "option 's' has no fixed size")
		case option == 'c' && size == 0:
			lualib.ArgError(L, 1, "option 'c0' has no fixed size")
		case !isAlphanumeric(option): // unknown letters are skipped, as in C
			f.control(option)
		}
		pos += size
	}
	L.Push(lua.LNumber(int64(pos)))
	return 1
}

func isAlphanumeric(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}
