package keys

import (
	"slices"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

var LCSCommand = engine.Command{
	Name: "lcs", Syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]", Since: "7.0.0",
	Summary: "Find longest common substring",
	Differs: "The table that it fills takes at most `max-value-size`; in Redis 512 MB",
	Flags:   engine.ReadOnly | engine.Slow, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Parse: parseLCS,
}

// lcsOptions are the options of LCS.
type lcsOptions struct {
	lengthOnly   bool  // LEN
	ranges       bool  // IDX: the positions of the matches
	minMatch     int64 // MINMATCHLEN: leaves out shorter matches
	withMatchLen bool
}

// parseLCSOptions returns the options beside an error, since LCS checks the keys first.
func parseLCSOptions(args []string) (o lcsOptions, err error) {
	for len(args) > 0 {
		used := 1
		switch {
		case redisfmt.EqualFold(args[0], "IDX"):
			o.ranges = true
		case redisfmt.EqualFold(args[0], "LEN"):
			o.lengthOnly = true
		case redisfmt.EqualFold(args[0], "WITHMATCHLEN"):
			o.withMatchLen = true
		case redisfmt.EqualFold(args[0], "MINMATCHLEN") && len(args) > 1:
			n, ok := redisfmt.ParseInt(args[1])
			if !ok {
				return o, engine.ErrNotInteger
			}
			o.minMatch, used = n, 2
		default:
			return o, engine.ErrSyntax
		}
		args = args[used:]
	}
	if o.ranges && o.lengthOnly {
		return o, errLCSOptions
	}
	return o, nil
}

func parseLCS(in *engine.Input) (engine.Run, error) {
	key1, key2, maxSize := in.Args[1], in.Args[2], in.MaxValue
	o, optionsErr := parseLCSOptions(in.Args[3:])
	return func(x *engine.Context) engine.Reply {
		_, a, _, err := readPlain(x, key1)
		if err == nil {
			var b = a
			_, b, _, err = readPlain(x, key2)
			if err == nil && optionsErr != nil {
				err = optionsErr
			}
			if err == nil {
				return x.Compute(max(len(a.Body), 1)*max(len(b.Body), 1), func() engine.Reply { return o.reply(a.Body, b.Body, maxSize) })
			}
		}
		if err == engine.ErrWrongType {
			err = errLCSType
		}
		return engine.Fail(err)
	}, nil
}

// reply is the reply of LCS. It uses the table of the textbook, of at most maxSize bytes. Among several
// longest subsequences it finds that of Redis.
func (o lcsOptions) reply(a, b string, maxSize int) engine.Reply {
	t, err := newLCSTable(a, b, maxSize)
	if err != nil {
		return engine.Fail(err)
	}
	length := t.length(len(a), len(b))
	if o.lengthOnly {
		return engine.Integer(int64(length))
	}
	sequence, matches := t.trace()
	if !o.ranges {
		return engine.Bulk(sequence)
	}
	list := []engine.Reply{}
	for _, m := range matches {
		if o.minMatch > int64(m.length) {
			continue
		}
		elems := []engine.Reply{span(m.a, m.length), span(m.b, m.length)}
		if o.withMatchLen {
			elems = append(elems, engine.Count(m.length))
		}
		list = append(list, engine.Array(elems...))
	}
	return engine.Map(engine.Bulk("matches"), engine.Array(list...), engine.Bulk("len"), engine.Integer(int64(length)))
}

// span returns a range as a reply: its first and its last position.
func span(start, length int) engine.Reply {
	return engine.Array(engine.Count(start), engine.Count(start+length-1))
}

// lcsTable holds the length of the longest common subsequence of every prefix of a and every prefix of b.
type lcsTable struct {
	a, b  string
	cells []uint32 // row by row; a row for each prefix of a
}

// newLCSTable fills a table. The error says that it takes more than maxSize bytes.
func newLCSTable(a, b string, maxSize int) (*lcsTable, error) {
	const size = 4 // bytes of a cell
	width := len(b) + 1
	if len(a)+1 > maxSize/size/width {
		return nil, errLCSMemory
	}
	t := &lcsTable{a: a, b: b, cells: make([]uint32, (len(a)+1)*width)}
	for i := range len(a) {
		above, row := t.cells[i*width:(i+1)*width], t.cells[(i+1)*width:(i+2)*width]
		for j := range len(b) {
			if a[i] == b[j] {
				row[j+1] = above[j] + 1
			} else {
				row[j+1] = max(above[j+1], row[j])
			}
		}
	}
	return t, nil
}

// length returns the length for the first i bytes of a and the first j bytes of b.
func (t *lcsTable) length(i, j int) uint32 { return t.cells[i*(len(t.b)+1)+j] }

// lcsMatch is a part of the subsequence that is contiguous in both strings.
type lcsMatch struct{ a, b, length int }

// trace walks back through the table. It returns the subsequence and its matches, the last one first.
func (t *lcsTable) trace() (string, []lcsMatch) {
	i, j := len(t.a), len(t.b)
	sequence := make([]byte, 0, t.length(i, j))
	var matches []lcsMatch
	contiguous := false
	for i > 0 && j > 0 {
		switch {
		case t.a[i-1] == t.b[j-1]:
			i, j = i-1, j-1
			sequence = append(sequence, t.a[i])
			if !contiguous {
				matches = append(matches, lcsMatch{})
			}
			m := &matches[len(matches)-1]
			m.a, m.b, m.length = i, j, m.length+1
			contiguous = true
			continue
		case t.length(i-1, j) > t.length(i, j-1):
			i--
		default:
			j--
		}
		contiguous = false
	}
	slices.Reverse(sequence)
	return string(sequence), matches
}
