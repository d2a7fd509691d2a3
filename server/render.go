package server

import (
	"math"
	"strconv"

	"mayfly/commands"

	"github.com/tidwall/redcon"
)

// appendReply renders a reply for protocol 2 or 3, in the way Redis does.
func appendReply(dst []byte, proto int, r *commands.Reply) []byte {
	switch r.Kind {
	case commands.KindNone:
		return dst
	case commands.KindStatus:
		return redcon.AppendString(dst, r.Str)
	case commands.KindError:
		return redcon.AppendError(dst, r.Str)
	case commands.KindInteger:
		return redcon.AppendInt(dst, r.Int)
	case commands.KindBulk:
		return redcon.AppendBulkString(dst, r.Str)
	case commands.KindNull, commands.KindNullArray:
		return appendNull(dst, proto, r.Kind)
	case commands.KindDouble:
		return appendDouble(dst, proto, r.Dbl)
	case commands.KindBool:
		return appendBool(dst, proto, r.Int != 0)
	case commands.KindVerbatim:
		dst = appendStringHeader(dst, proto, r)
		dst = append(dst, r.Str...)
		return append(dst, '\r', '\n')
	}
	if r.Kind == commands.KindProtocol {
		proto = int(r.Int)
	}
	dst = appendAggregate(dst, proto, r)
	for i := range r.Elems {
		dst = appendReply(dst, proto, &r.Elems[i])
	}
	return dst
}

// appendAggregate renders what precedes the elements of an array, map, set or push; nothing does those
// of several replies and of one in a protocol of its own.
func appendAggregate(dst []byte, proto int, r *commands.Reply) []byte {
	n := len(r.Elems)
	if r.Kind == commands.KindSeveral || r.Kind == commands.KindProtocol {
		return dst
	}
	if proto >= 3 {
		switch r.Kind {
		case commands.KindMap:
			return appendHeader(dst, '%', n/2)
		case commands.KindSet:
			return appendHeader(dst, '~', n)
		case commands.KindPush:
			return appendHeader(dst, '>', n)
		}
	}
	return redcon.AppendArray(dst, n)
}

// appendStringHeader renders what precedes the text of a bulk or verbatim string.
func appendStringHeader(dst []byte, proto int, r *commands.Reply) []byte {
	if r.Kind != commands.KindVerbatim || proto < 3 {
		return appendHeader(dst, '$', len(r.Str))
	}
	dst = appendHeader(dst, '=', len("txt:")+len(r.Str))
	return append(dst, "txt:"...)
}

func appendHeader(dst []byte, kind byte, n int) []byte {
	dst = append(dst, kind)
	dst = strconv.AppendInt(dst, int64(n), 10)
	return append(dst, '\r', '\n')
}

func appendNull(dst []byte, proto int, kind commands.Kind) []byte {
	switch {
	case proto >= 3:
		return append(dst, "_\r\n"...)
	case kind == commands.KindNullArray:
		return append(dst, "*-1\r\n"...)
	}
	return redcon.AppendNull(dst)
}

func appendBool(dst []byte, proto int, b bool) []byte {
	switch {
	case proto < 3 && b:
		return redcon.AppendInt(dst, 1)
	case proto < 3:
		return redcon.AppendInt(dst, 0)
	case b:
		return append(dst, "#t\r\n"...)
	}
	return append(dst, "#f\r\n"...)
}

func appendDouble(dst []byte, proto int, f float64) []byte {
	var room [32]byte
	digits := appendFloat(room[:0], f)
	if proto < 3 {
		return redcon.AppendBulk(dst, digits)
	}
	dst = append(dst, ',')
	dst = append(dst, digits...)
	return append(dst, '\r', '\n')
}

// appendFloat writes a number with as few digits as tell it from its neighbours, with an exponent
// where C's %.17g has one.
func appendFloat(dst []byte, f float64) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "nan"...)
	case math.IsInf(f, 1):
		return append(dst, "inf"...)
	case math.IsInf(f, -1):
		return append(dst, "-inf"...)
	}
	format := byte('f')
	if abs := math.Abs(f); abs != 0 && (abs < 1e-4 || abs >= 1e17) {
		format = 'e'
	}
	return strconv.AppendFloat(dst, f, format, -1, 64)
}

// exceeds tells whether a reply takes more than so many bytes when rendered, not counting framing.
func exceeds(r *commands.Reply, size int) bool { return remainder(r, size) < 0 }

// remainder is what a reply leaves of a number of bytes; negative if it does not suffice.
func remainder(r *commands.Reply, size int) int {
	size -= len(r.Str)
	for i := 0; i < len(r.Elems) && size >= 0; i++ {
		const framing = 4
		size = remainder(&r.Elems[i], size-framing)
	}
	return size
}
