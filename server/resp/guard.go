package resp

import (
	"bytes"
	"errors"
	"math"
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/longtext"
)

// Bounds for every client.
const (
	maxArgs   = 1 << 20  // arguments of a command, as in Redis
	maxInline = 64 << 10 // bytes of an inline command

	// Bounds before authentication. They are Redis', except that Redis does not bound inline commands
	// more tightly.
	unauthenticatedArgs   = 10
	unauthenticatedBulk   = 16 << 10
	unauthenticatedInline = 1 << 10

	// The bounds of Redis for every client. Up to them, Redis tells a client without password that it must
	// authenticate first.
	mostRedisArgs = math.MaxInt32
	mostRedisBulk = 512 << 20

	// maxOnePass is the greatest number of arguments of a command that is split in one pass.
	maxOnePass = 64
)

// Limits bound what a client may send.
type Limits struct {
	Bulk            int  // bytes of one argument
	Command         int  // bytes of one command with its framing
	Unauthenticated bool // the client must authenticate first: tighter bounds rule
}

// A ProtocolError is a violation of the protocol in Redis' words. What follows it on the connection
// cannot be understood.
type ProtocolError string

func (e ProtocolError) Error() string { return "Protocol error: " + string(e) }

// Violations.
const (
	ErrBulkLength    ProtocolError = "invalid bulk length"
	ErrCommandLength ProtocolError = "too big command"

	errMultibulkLength                ProtocolError = "invalid multibulk length"
	errUnauthenticatedMultibulkLength ProtocolError = "unauthenticated multibulk length"
	errUnauthenticatedBulkLength      ProtocolError = "unauthenticated bulk length"
	errInlineLength                   ProtocolError = "too big inline request"
	errUnbalancedQuotes               ProtocolError = "unbalanced quotes in request"
)

// ErrClientMemory means that no memory is left for a half-read command, or for replies that the client
// does not take.
var ErrClientMemory = errors.New(engine.ClientMemoryText)

// A Guard stands between a connection and redcon's parser, which trusts its input. It lets through only
// whole commands within bounds. It takes memory only for bytes that have arrived, whatever length a
// client announces.
//
// It differs from Redis where Redis is lax. An argument must end with CR LF, where Redis skips any two
// bytes. A count that cannot become legal any more is refused at once.
//
// It looks at most twice at a byte of the framing and never at a byte of an argument. So a command costs
// time in proportion to its length, however it is cut into packets.
//
//	handed over     half-read command       room
//	|---------------|-----------------------|------------|
//	0               start      pos          end          len(buf.bytes)
type Guard struct {
	buf     *buffer
	memory  *engine.ClientMemory // charged for half-read commands that are not small
	refused bool                 // the client could not be charged

	start, end int // buf.bytes[start:end] has been read and not handed over
	pos        int // how far the half-read command has been understood
	args       int // arguments still to come; 0: its header is to be read
	argBytes   int // of the arguments of the half-read command that are whole
	bulk       int // length of the argument at pos; -1: its header is to be read
	ahead      int // bytes to offer to the next read
	maxAhead   int // bound of ahead
}

// NewGuard returns a guard that offers a read up to readAhead bytes, one of the sizes of buffers.
// Large half-read commands are charged to the client's memory.
func NewGuard(memory *engine.ClientMemory, readAhead int) Guard {
	return Guard{memory: memory, bulk: -1, ahead: SmallBuffer, maxAhead: readAhead}
}

// SetReadAhead changes how many bytes the guard offers to a read at most.
func (g *Guard) SetReadAhead(size int) { g.maxAhead = size }

// next returns the next command as the client framed it; nil if none is whole. The frame is valid until the
// next call of any method. The error is a ProtocolError, after which the guard must not be used.
func (g *Guard) next(lim Limits) (frame []byte, err error) {
	for g.pos < g.end {
		if g.args > 0 {
			return g.nextArray(lim)
		}
		if g.buf.bytes[g.start] != '*' {
			frame, whole, err := g.nextLine(lim)
			if frame != nil || !whole || err != nil {
				return frame, err
			}
			continue // an empty line
		}
		n, size := readNumber(g.buf.bytes[g.start+1 : g.end])
		switch {
		case size == 0:
			return nil, nil
		case size > 0 && n > unauthenticatedArgs && n <= mostRedisArgs && lim.Unauthenticated:
			return nil, errUnauthenticatedMultibulkLength
		case size < 0 || n > maxArgs:
			return nil, errMultibulkLength
		}
		g.pos = g.start + 1 + size
		g.argBytes = 0
		if g.args = max(n, 0); g.args == 0 {
			g.start = g.pos // as in Redis, an empty command is ignored
		}
	}
	return nil, nil
}

// nextArray goes on with the arguments of a command and returns it when the last one is there.
func (g *Guard) nextArray(lim Limits) ([]byte, error) {
	buf := g.buf.bytes[:g.end]
	for {
		if g.bulk < 0 {
			if g.pos == g.end {
				return nil, nil
			}
			if c := buf[g.pos]; c != '$' {
				return nil, ProtocolError("expected '$', got '" + string([]byte{c}) + "'")
			}
			n, size := readNumber(buf[g.pos+1:])
			switch {
			case size == 0:
				return nil, nil
			case size > 0 && n > unauthenticatedBulk && n <= mostRedisBulk && lim.Unauthenticated:
				return nil, errUnauthenticatedBulkLength
			case size < 0 || n < 0 || n > lim.Bulk:
				return nil, ErrBulkLength
			}
			g.pos += 1 + size
			g.bulk = n
			if g.needed() > lim.Command {
				return nil, ErrCommandLength
			}
		}
		after := g.pos + g.bulk
		if after+2 > g.end {
			return nil, nil
		}
		if buf[after] != '\r' || buf[after+1] != '\n' {
			return nil, ErrBulkLength
		}
		g.argBytes += g.bulk
		g.pos, g.bulk = after+2, -1
		if g.args--; g.args == 0 {
			command := buf[g.start:g.pos]
			g.start = g.pos
			return command, nil
		}
	}
}

// nextLine returns an inline command with its line end; nil for a blank line. whole reports whether the
// line has ended.
func (g *Guard) nextLine(lim Limits) (frame []byte, whole bool, err error) {
	most := maxInline
	if lim.Unauthenticated {
		most = unauthenticatedInline
	}
	i := bytes.IndexByte(g.buf.bytes[g.pos:g.end], '\n')
	if i < 0 {
		g.pos = g.end
		if g.end-g.start > most {
			return nil, false, errInlineLength
		}
		return nil, false, nil
	}
	frame = g.buf.bytes[g.start : g.pos+i+1]
	if len(frame)-1 > most {
		return nil, false, errInlineLength
	}
	g.pos += i + 1
	g.start = g.pos
	if len(bytes.Trim(frame, " \t\n\v\f\r")) == 0 {
		frame = nil
	}
	return frame, true, nil
}

// whole takes the next command in one pass and appends its arguments to args. The command must be an array of
// at most maxOnePass bulk strings that is there as a whole. It must keep all bounds and come from an
// authenticated client. Else whole reports false, and next decides. BenchmarkGuard compares both ways.
func (g *Guard) whole(lim Limits, args []string) (all []string, ok bool) {
	if g.pos > g.start || g.start == g.end || lim.Unauthenticated {
		return nil, false
	}
	buf := g.buf.bytes[g.start:g.end]
	if buf[0] != '*' {
		return nil, false
	}
	count, size := readNumber(buf[1:])
	if size <= 0 || count <= 0 || count > maxOnePass {
		return nil, false
	}
	at := 1 + size
	all = args
	for range count {
		if at >= len(buf) || buf[at] != '$' {
			return nil, false
		}
		n, size := readNumber(buf[at+1:])
		from := at + 1 + size
		to := from + n
		if size <= 0 || n < 0 || n > lim.Bulk || to+2 > len(buf) || buf[to] != '\r' || buf[to+1] != '\n' {
			return nil, false
		}
		all = append(all, unsafe.String(&buf[from], n))
		at = to + 2
	}
	if at > lim.Command {
		return nil, false
	}
	g.start += at
	g.pos = g.start
	return all, true
}

// Rewind takes back the commands that have been handed over from a place on: the Start or End of one of
// them. It must be called before the guard reads again.
func (g *Guard) Rewind(place int) { g.start, g.pos, g.args, g.bulk = place, place, 0, -1 }

// readNumber reads a decimal number and CR LF from the front of b, in the form Redis demands: no plus
// sign, no leading zeros. size is the number of bytes they take. It is 0 if more must arrive, and -1 if
// the bytes are no such number.
func readNumber(b []byte) (n, size int) {
	const mostDigits = 10 // more than any bound has
	i, negative := 0, false
	if len(b) > 0 && b[0] == '-' {
		i, negative = 1, true
	}
	first := i
	for ; i < len(b); i++ {
		c := b[i]
		if c >= '0' && c <= '9' {
			if i-first == mostDigits || i > first && b[first] == '0' {
				return 0, -1
			}
			n = n*10 + int(c-'0')
			continue
		}
		if c != '\r' || i == first || negative && n == 0 {
			return 0, -1
		}
		if i+1 == len(b) {
			return 0, 0
		}
		if b[i+1] != '\n' {
			return 0, -1
		}
		if negative {
			n = -n
		}
		return n, i + 2
	}
	return 0, 0
}

// needed is the size of the half-read command up to the end of the argument it is in, in bytes.
func (g *Guard) needed() int {
	if g.bulk < 0 {
		return 0
	}
	return g.pos - g.start + g.bulk + 2
}

// HalfRead reports whether the client has begun a command that is not whole.
func (g *Guard) HalfRead() bool { return g.start < g.end }

// Usage returns figures of a half-read command in bytes: what is not parsed, the room in its buffer, and the
// arguments that are whole.
func (g *Guard) Usage() (unread, room, args int) {
	if !g.HalfRead() {
		return 0, 0, 0
	}
	if g.args == 0 {
		return g.end - g.start, len(g.buf.bytes) - g.end, 0
	}
	return g.end - g.pos, len(g.buf.bytes) - g.end, g.argBytes
}

// HalfReadSize is the size of the buffer, in bytes, that the half-read command has or is known to need.
func (g *Guard) HalfReadSize() int {
	if !g.HalfRead() {
		return 0
	}
	return max(len(g.buf.bytes), g.needed())
}

// Uncharged is how many bytes the guard holds that its client is not charged for.
func (g *Guard) Uncharged() int {
	if g.buf == nil {
		return 0
	}
	return len(g.buf.bytes) - g.buf.charged
}

// Room returns memory to read into, at least one byte. [Guard.Filled] says how much of it was used. The
// error is ErrClientMemory.
func (g *Guard) Room() ([]byte, error) {
	if g.refused {
		return nil, ErrClientMemory
	}
	held := g.end - g.start
	switch {
	case held == 0:
		if g.buf == nil || len(g.buf.bytes) != g.ahead {
			g.Release()
			g.buf = getBuffer(g.ahead)
		}
		g.move(g.buf)
	case len(g.buf.bytes) > LargeBuffer && held+g.needed() < len(g.buf.bytes)/8:
		// A big command has been handed over and left the beginning of a small one.
		g.move(getBuffer(held + g.ahead))
	case g.start > 0:
		g.move(g.buf)
	}
	if g.end < len(g.buf.bytes) {
		return g.buf.bytes[g.end:], nil
	}
	// The buffer is full with one command: double it, but take no more than the argument needs.
	size := 2*held + SmallBuffer
	if need := g.needed(); need > 0 {
		size = min(size, max(need, held+SmallBuffer))
	}
	if !g.memory.Reserve(size) {
		return nil, ErrClientMemory
	}
	to := getBuffer(size)
	to.charged = size
	g.move(to)
	return g.buf.bytes[g.end:], nil
}

// move moves the bytes that are not handed over to the beginning of a buffer, which may be their own.
func (g *Guard) move(to *buffer) {
	if g.start < g.end {
		longtext.Copy(to.bytes, g.buf.bytes[g.start:g.end])
	}
	g.pos, g.end, g.start = g.pos-g.start, g.end-g.start, 0
	if to != g.buf {
		g.putBuffer()
		g.buf = to
	}
}

// Filled notes that n bytes have been read into what [Guard.Room] returned.
func (g *Guard) Filled(n int) {
	g.end += n
	// A client that fills the buffer sends long pipelines: offer it more room, so that each needs only
	// one read. A client that uses little of it gets less again.
	switch size := len(g.buf.bytes); {
	case g.end == size && g.ahead < g.maxAhead:
		g.ahead *= 4
	case n < g.ahead/16 && g.ahead > SmallBuffer:
		g.ahead /= 4
	}
}

// Release returns the memory that is not needed while the client is silent: all of it, unless a command
// is half read. What it keeps is charged to the client, unless it is little.
func (g *Guard) Release() {
	if g.buf == nil {
		return
	}
	if !g.HalfRead() {
		g.putBuffer()
		g.start, g.end, g.pos = 0, 0, 0
		return
	}
	if size := max(2*(g.end-g.start), SmallBuffer); size <= len(g.buf.bytes)/4 {
		g.move(getBuffer(size))
	}
	if size := len(g.buf.bytes); g.buf.charged == 0 && size > SmallBuffer {
		if g.refused = !g.memory.Reserve(size); !g.refused {
			g.buf.charged = size
		}
	}
}

// Close returns all memory, whatever is in it.
func (g *Guard) Close() {
	g.start = g.end
	g.Release()
}

func (g *Guard) putBuffer() {
	g.memory.Release(g.buf.charged)
	g.buf.charged = 0
	g.buf.put()
	g.buf = nil
}
