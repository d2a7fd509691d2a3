package server

import (
	"bytes"
	"errors"
	"unsafe"

	"mayfly/commands"
)

// Bounds that are the same for everybody.
const (
	maxArgs   = 1 << 20  // arguments of a command, as in Redis
	maxInline = 64 << 10 // bytes of an inline command

	// Before a client has authenticated, in case it has to: as in Redis, but for inline commands,
	// which Redis does not bound any further.
	strangerArgs   = 10
	strangerBulk   = 16 << 10
	strangerInline = 1 << 10

	// mostWhole is how many arguments a command has at most that is handed over in one pass.
	mostWhole = 64

	// bulkSlack is how much longer than a value any other argument may be.
	bulkSlack = 1 << 10
)

// limits are the bounds of what a client may send, in bytes where not said otherwise.
type limits struct {
	bulk     int  // one argument
	command  int  // one command with all its framing
	stranger bool // the client must authenticate and has not
}

// A protocolError is a violation of the protocol, worded as in Redis. What follows it on the
// connection cannot be understood.
type protocolError string

func (e protocolError) Error() string { return "Protocol error: " + string(e) }

// The violations.
const (
	errMultibulkLength         protocolError = "invalid multibulk length"
	errStrangerMultibulkLength protocolError = "unauthenticated multibulk length"
	errBulkLength              protocolError = "invalid bulk length"
	errStrangerBulkLength      protocolError = "unauthenticated bulk length"
	errInlineLength            protocolError = "too big inline request"
	errUnbalancedQuotes        protocolError = "unbalanced quotes in request"
	errCommandLength           protocolError = "too big command"
)

// errClientMemory means that there is no memory left for the command that the client has under way, or
// for the replies that it does not take.
var errClientMemory = errors.New("all clients together hold too much memory: try again later, or raise maxmemory-clients")

// A guard stands between a connection and redcon's parser, which trusts its input: it hands over
// only whole commands within bounds, in a form that the parser accepts. It reads ahead as much as
// the connection has, and takes memory only for bytes that have really arrived, whatever length a
// client announces.
//
// It differs from Redis only where Redis is lax: an argument must really end with CR LF, where Redis
// skips any two bytes, and a count that cannot become legal any more is refused at once.
//
// It looks at a byte of a framing twice at most and at none of an argument, so that a command costs time
// in proportion to its length however it is cut into packets.
//
// Of a command that arrives as a whole it finds the arguments in the same pass ([guard.whole]): redcon's
// parser has nothing left to do for it (parser.go).
//
//	consumed        half-read command       room
//	|---------------|-----------------------|------------|
//	0               start      pos          end          len(buf)
type guard struct {
	loan    *buffer
	account *commands.Account // is charged for half-read commands that are not small
	refused bool              // it could not be

	start, end int // loan.bytes[start:end] has been read and not handed over
	pos        int // how far the half-read command has been understood
	args       int // arguments still to come; 0: its header is to be read
	bulk       int // length of the argument at pos; -1: its header is to be read
	ahead      int // how much room to offer to the next read
	mostAhead  int // what ahead may grow to
	inline     inline
}

// newGuard makes a guard that reads ahead up to largeBuffer.
func newGuard(a *commands.Account) guard {
	return guard{account: a, bulk: -1, ahead: smallBuffer, mostAhead: largeBuffer}
}

// next hands over the next command as an array of bulk strings, valid until the next call of any
// method; nil if none has been read as a whole. The error is a protocolError; the guard must not be
// used after one.
func (g *guard) next(lim limits) ([]byte, error) {
	for g.pos < g.end {
		if g.args > 0 {
			return g.arguments(lim)
		}
		if g.loan.bytes[g.start] != '*' {
			command, whole, err := g.line(lim)
			if command != nil || !whole || err != nil {
				return command, err
			}
			continue // an empty line
		}
		n, size := readNumber(g.loan.bytes[g.start+1 : g.end])
		switch {
		case size == 0:
			return nil, nil
		case size < 0 || n > maxArgs:
			return nil, errMultibulkLength
		case n > strangerArgs && lim.stranger:
			return nil, errStrangerMultibulkLength
		}
		g.pos = g.start + 1 + size
		if g.args = max(n, 0); g.args == 0 {
			g.start = g.pos // as Redis does, a command of nothing is ignored
		}
	}
	return nil, nil
}

// arguments goes on with the arguments of a command and hands it over when the last is there.
func (g *guard) arguments(lim limits) ([]byte, error) {
	buf := g.loan.bytes[:g.end]
	for {
		if g.bulk < 0 {
			if g.pos == g.end {
				return nil, nil
			}
			if c := buf[g.pos]; c != '$' {
				return nil, protocolError("expected '$', got '" + string([]byte{c}) + "'")
			}
			n, size := readNumber(buf[g.pos+1:])
			switch {
			case size == 0:
				return nil, nil
			case size < 0 || n < 0 || n > lim.bulk:
				return nil, errBulkLength
			case n > strangerBulk && lim.stranger:
				return nil, errStrangerBulkLength
			}
			g.pos += 1 + size
			g.bulk = n
			if g.needed() > lim.command {
				return nil, errCommandLength
			}
		}
		after := g.pos + g.bulk
		if after+2 > g.end {
			return nil, nil
		}
		if buf[after] != '\r' || buf[after+1] != '\n' {
			return nil, errBulkLength
		}
		g.pos, g.bulk = after+2, -1
		if g.args--; g.args == 0 {
			command := buf[g.start:g.pos]
			g.start = g.pos
			return command, nil
		}
	}
}

// whole hands over the next command as next does, and appends its arguments to args, if that can be done
// in one pass: if the command is an array of at most mostWhole bulk strings that has arrived as a whole,
// keeps to all bounds, and is not a stranger's. Else it gives nil, and next is to say what it is.
func (g *guard) whole(lim limits, args []string) (command []byte, _ []string) {
	if g.pos > g.start || g.start == g.end || lim.stranger {
		return nil, args
	}
	buf := g.loan.bytes[g.start:g.end]
	if buf[0] != '*' {
		return nil, args
	}
	count, at := length(buf, 1)
	if count == 0 || count > mostWhole {
		return nil, args
	}
	all := args
	for range count {
		if at >= len(buf) || buf[at] != '$' {
			return nil, args
		}
		n, from := length(buf, at+1)
		to := from + n
		if from == 0 || n > lim.bulk || to+2 > len(buf) || buf[to] != '\r' || buf[to+1] != '\n' {
			return nil, args
		}
		all = append(all, unsafe.String(&buf[from], n))
		at = to + 2
	}
	if at > lim.command {
		return nil, args
	}
	g.start += at
	g.pos = g.start
	return buf[:at:at], all
}

// back takes back the commands that have been handed over from a place on, where one begins.
func (g *guard) back(start int) { g.start, g.pos, g.args, g.bulk = start, start, 0, -1 }

// line hands over an inline command. It gives nil for an empty line, and says whether the line was
// whole.
func (g *guard) line(lim limits) (command []byte, whole bool, err error) {
	most := maxInline
	if lim.stranger {
		most = strangerInline
	}
	i := bytes.IndexByte(g.loan.bytes[g.pos:g.end], '\n')
	if i < 0 {
		g.pos = g.end
		if g.end-g.start > most {
			return nil, false, errInlineLength
		}
		return nil, false, nil
	}
	line := g.loan.bytes[g.start : g.pos+i]
	if len(line) > most {
		return nil, false, errInlineLength
	}
	g.pos += i + 1
	g.start = g.pos
	command, ok := g.inline.convert(bytes.TrimSuffix(line, []byte{'\r'}))
	if !ok {
		return nil, false, errUnbalancedQuotes
	}
	return command, true, nil
}

// readNumber reads a decimal number and CR LF off the front of b, written as Redis demands it: no plus
// sign, no leading zeros. size is the number of bytes they take, 0 if there are not enough yet, and
// -1 if it is not such a number.
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

// length reads a number that is not negative and CR LF from b at a place, as readNumber would, and says
// where what follows begins; 0 if there is no such number, or it is greater than anybody needs.
func length(b []byte, at int) (n, next int) {
	const most = 9 // digits
	for i := at; i < len(b); i++ {
		digit := b[i] - '0'
		if digit > 9 {
			if b[i] != '\r' || i == at || i+1 == len(b) || b[i+1] != '\n' {
				return 0, 0
			}
			return n, i + 2
		}
		if i-at == most || i > at && n == 0 {
			return 0, 0
		}
		n = n*10 + int(digit)
	}
	return 0, 0
}

// needed is how many bytes the half-read command has up to the end of the argument it is in.
func (g *guard) needed() int {
	if g.bulk < 0 {
		return 0
	}
	return g.pos - g.start + g.bulk + 2
}

// halfRead tells whether the client has begun a command that is not whole.
func (g *guard) halfRead() bool { return g.start < g.end }

// room gives memory to read into, at least one byte. [guard.filled] says how much of it was used. The
// error is errClientMemory.
func (g *guard) room() ([]byte, error) {
	if g.refused {
		return nil, errClientMemory
	}
	held := g.end - g.start
	switch {
	case held == 0:
		if g.loan == nil || len(g.loan.bytes) != g.ahead {
			g.release()
			g.loan = lend(g.ahead)
		}
		g.move(g.loan)
	case len(g.loan.bytes) > largeBuffer && held+g.needed() < len(g.loan.bytes)/8:
		// A big command has been handed over and left the beginning of a small one.
		g.move(lend(held + g.ahead))
	case g.start > 0:
		g.move(g.loan)
	}
	if g.end < len(g.loan.bytes) {
		return g.loan.bytes[g.end:], nil
	}
	// The buffer is full with one command: double it, but take no more than the argument needs.
	size := 2*held + smallBuffer
	if need := g.needed(); need > 0 {
		size = min(size, max(need, held+smallBuffer))
	}
	if !g.account.Take(size) {
		return nil, errClientMemory
	}
	to := lend(size)
	to.paid = size
	g.move(to)
	return g.loan.bytes[g.end:], nil
}

// move moves what has been read and not handed over to the beginning of a buffer, which may be the
// one it is in.
func (g *guard) move(to *buffer) {
	if g.start < g.end {
		copy(to.bytes, g.loan.bytes[g.start:g.end])
	}
	g.pos, g.end, g.start = g.pos-g.start, g.end-g.start, 0
	if to != g.loan {
		g.giveBack()
		g.loan = to
	}
}

// filled notes that n bytes have been read into what [guard.room] gave.
func (g *guard) filled(n int) {
	g.end += n
	// A client that fills the buffer sends long pipelines: offer it more room, so that each needs
	// only one read. Who uses little of it gets less again.
	switch size := len(g.loan.bytes); {
	case g.end == size && g.ahead < g.mostAhead:
		g.ahead *= 4
	case n < g.ahead/16 && g.ahead > smallBuffer:
		g.ahead /= 4
	}
}

// release gives back what memory is not needed while the client is silent: all of it, unless a
// command is half read. What it keeps then is on the account, unless it is little.
func (g *guard) release() {
	g.inline.release()
	if g.loan == nil {
		return
	}
	if !g.halfRead() {
		g.giveBack()
		g.start, g.end, g.pos = 0, 0, 0
		return
	}
	if size := max(2*(g.end-g.start), smallBuffer); size <= len(g.loan.bytes)/4 {
		g.move(lend(size))
	}
	if size := len(g.loan.bytes); g.loan.paid == 0 && size > smallBuffer {
		if g.refused = !g.account.Take(size); !g.refused {
			g.loan.paid = size
		}
	}
}

// close gives the buffer back whatever it holds.
func (g *guard) close() {
	g.start = g.end
	g.release()
}

func (g *guard) giveBack() {
	g.account.Give(g.loan.paid)
	g.loan.paid = 0
	g.loan.giveBack()
	g.loan = nil
}
