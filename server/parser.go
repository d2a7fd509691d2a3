package server

import (
	"unsafe"

	"github.com/tidwall/redcon"
)

// A request is a command that the guard has let through. It is views of the connection's buffer, or of the
// converter of inline commands, and valid until the guard is used for what follows it.
type request struct {
	raw   []byte // all of it, as an array of bulk strings
	args  []string
	end   int  // where in the guard's buffer what follows begins
	alone bool // what follows must not be looked at before this has been carried out
}

// A parser splits commands into their arguments. Nearly all commands are small and arrive whole: those
// the guard checks and splits in one pass ([guard.whole]). The others (inline commands, those with very
// many arguments, those that arrive in pieces, all of a client that has yet to authenticate) it checks
// as their bytes arrive, and redcon's parser splits them. FuzzGuard holds that both give the same.
//
// The zero value is ready. The arguments that it gives are valid until [parser.forget].
type parser struct {
	args   []string // of all commands since the last forget
	parsed [][]byte // room for redcon's parser
}

// next gives the next command that the guard lets through; nothing, its raw is nil, if there is no
// whole one. An error is a protocolError.
func (p *parser) next(g *guard, lim limits) (request, error) {
	from := len(p.args)
	raw, args := g.whole(lim, p.args)
	if raw != nil {
		p.args = args
		return request{raw, args[from:len(args):len(args)], g.start, false}, nil
	}
	raw, err := g.next(lim)
	if raw == nil || err != nil {
		return request{}, err
	}
	args, err = p.split(raw)
	return request{raw, args, g.start, true}, err
}

// split splits a command that the guard has let through.
func (p *parser) split(raw []byte) ([]string, error) {
	whole, parsed, _, rest, err := redcon.ReadNextCommand(raw, p.parsed)
	if err != nil {
		return nil, err
	}
	if !whole || len(parsed) == 0 || len(rest) > 0 {
		return nil, errMultibulkLength
	}
	from := len(p.args)
	for _, arg := range parsed {
		p.args = append(p.args, unsafe.String(unsafe.SliceData(arg), len(arg)))
	}
	clear(parsed)
	p.parsed = parsed[:0]
	return p.args[from:len(p.args):len(p.args)], nil
}

// forget ends the use of all arguments but the first so many: as views they would keep buffers in memory,
// which may be big.
func (p *parser) forget(most int) {
	clear(p.args[most:])
	p.args = p.args[:most]
	if cap(p.args) > keptArgs && most == 0 {
		p.args = nil
	}
	if cap(p.parsed) > keptArgs {
		p.parsed = nil
	}
}
