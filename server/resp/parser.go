package resp

import (
	"slices"
	"strings"
	"unsafe"

	"mayfly/redisfmt"

	"github.com/tidwall/redcon"
)

// keptArgs bounds the argument lists that a parser keeps to use again.
const keptArgs = 4 << 10

// A Command is a whole command that a guard has let through. Its list of arguments is valid until
// [Parser.Forget]; the arguments, being views of the guard's buffer, until the guard reads again.
type Command struct {
	Args       []string
	Start, End int  // its place in the guard's buffer, for [Guard.Rewind]
	Alone      bool // run it before parsing what follows
}

// A Parser splits commands into their arguments. Nearly all commands are small and arrive whole: the guard
// checks and splits those in one pass. Others the guard checks piece by piece, and redcon's parser splits
// them. Inline commands are split by the rules of redis-cli.
//
// The zero value is ready.
type Parser struct {
	args  []string // of all commands since the last Forget
	bulks [][]byte // room for redcon's parser
}

// Next returns the next whole command; its Args are nil if there is none. The error is a
// [ProtocolError].
func (p *Parser) Next(g *Guard, lim Limits) (Command, error) {
	from := len(p.args)
	start := g.start
	if all, ok := g.whole(lim, p.args); ok {
		p.args = all
		return Command{Args: all[from:len(all):len(all)], Start: start, End: g.start}, nil
	}
	frame, err := g.next(lim)
	if frame == nil || err != nil {
		return Command{}, err
	}
	if frame[0] == '*' {
		err = p.split(frame)
	} else {
		err = p.splitInline(frame)
	}
	return Command{Args: p.args[from:len(p.args):len(p.args)], Start: g.start - len(frame), End: g.start, Alone: true}, err
}

// split appends the arguments of an array of bulk strings.
func (p *Parser) split(frame []byte) error {
	n, _ := readNumber(frame[1:])
	p.bulks = slices.Grow(p.bulks, n) // at once: to move a long list makes everybody wait for the memory collector
	whole, bulks, _, rest, err := redcon.ReadNextCommand(frame, p.bulks)
	if err != nil {
		return err
	}
	if !whole || len(bulks) == 0 || len(rest) > 0 {
		return errMultibulkLength
	}
	p.args = slices.Grow(p.args, n)
	for _, arg := range bulks {
		p.args = append(p.args, unsafe.String(unsafe.SliceData(arg), len(arg)))
	}
	if p.bulks = nil; cap(bulks) <= keptArgs {
		clear(bulks)
		p.bulks = bulks[:0]
	}
	return nil
}

// splitInline appends the arguments of an inline command, a line with its end.
func (p *Parser) splitInline(frame []byte) error {
	line := strings.TrimSuffix(strings.TrimSuffix(string(frame), "\n"), "\r")
	words, ok := redisfmt.SplitLine(line)
	if !ok {
		return errUnbalancedQuotes
	}
	p.args = append(p.args, words...)
	return nil
}

// Mark returns a place for [Parser.Forget].
func (p *Parser) Mark() int { return len(p.args) }

// Forget ends the use of all arguments since a mark. As views they would keep buffers in memory. Forget(0)
// forgets all.
func (p *Parser) Forget(mark int) {
	if cap(p.args) > keptArgs && mark == 0 {
		p.args = nil
		return
	}
	clear(p.args[mark:])
	p.args = p.args[:mark]
}

// CloneShort returns copies of the arguments of a command if they are short together, else the arguments
// themselves.
func CloneShort(args []string) (own []string, ok bool) {
	const short = 4 << 10 // bytes
	size := 0
	for _, arg := range args {
		if size += len(arg); size > short {
			return args, false
		}
	}
	var all strings.Builder // strings.Join returns a single argument itself
	all.Grow(size)
	for _, arg := range args {
		all.WriteString(arg)
	}
	text := all.String()
	own = make([]string, len(args))
	for i, arg := range args {
		own[i], text = text[:len(arg)], text[len(arg):]
	}
	return own, true
}
