package server

import "github.com/tidwall/redcon"

// inline turns commands that people type (SET greeting "hello world") into the protocol's own form.
// Its memory is used again for each line. The zero value is ready.
type inline struct {
	text []byte // the arguments one after the other, without quotes and escapes
	ends []int  // where in text each argument ends
	resp []byte
}

// convert gives the command of a line as an array of bulk strings, valid until the next call; nil
// for a line without arguments. ok is false if quotes are unbalanced.
func (in *inline) convert(line []byte) (resp []byte, ok bool) {
	in.text, in.ends = in.text[:0], in.ends[:0]
	for {
		for len(line) > 0 && isSpace(line[0]) {
			line = line[1:]
		}
		if len(line) == 0 {
			break
		}
		if line, ok = in.argument(line); !ok {
			return nil, false
		}
		in.ends = append(in.ends, len(in.text))
	}
	if len(in.ends) == 0 {
		return nil, true
	}
	in.resp = redcon.AppendArray(in.resp[:0], len(in.ends))
	start := 0
	for _, end := range in.ends {
		in.resp = redcon.AppendBulk(in.resp, in.text[start:end])
		start = end
	}
	return in.resp, true
}

// release drops memory that an unusually long line has made the converter take.
func (in *inline) release() {
	if cap(in.resp) > smallBuffer {
		*in = inline{}
	}
}

// argument appends the argument that line begins with to text and returns what follows it. Quotes
// may open within an argument, but what follows a closing one must be space: the rules are those of
// Redis' sdssplitargs, except that a zero byte is a byte like any other.
func (in *inline) argument(line []byte) (rest []byte, ok bool) {
	const outside = 0
	quote := byte(outside)
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == outside:
			switch {
			case c == ' ' || c == '\t' || c == '\r': // not all of isSpace
				return line[i:], true
			case c == '"' || c == '\'':
				quote = c
				continue
			}
		case c == quote:
			if i+1 < len(line) && !isSpace(line[i+1]) {
				return nil, false
			}
			return line[i+1:], true
		case c == '\\' && quote == '"' && i+1 < len(line):
			var used int
			c, used = unescape(line[i+1:])
			i += used
		case c == '\\' && quote == '\'' && i+1 < len(line) && line[i+1] == '\'':
			c = '\''
			i++
		}
		in.text = append(in.text, c)
	}
	return nil, quote == outside
}

// unescape gives the byte that the text after a backslash stands for, and how much of it was used.
func unescape(s []byte) (c byte, used int) {
	if s[0] == 'x' && len(s) >= 3 {
		high, ok1 := hexDigit(s[1])
		low, ok2 := hexDigit(s[2])
		if ok1 && ok2 {
			return high<<4 | low, 3
		}
	}
	switch s[0] {
	case 'n':
		return '\n', 1
	case 'r':
		return '\r', 1
	case 't':
		return '\t', 1
	case 'b':
		return '\b', 1
	case 'a':
		return '\a', 1
	}
	return s[0], 1
}

func hexDigit(c byte) (value byte, ok bool) {
	switch {
	case c >= '0' && c <= '9':
		return c - '0', true
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10, true
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10, true
	}
	return 0, false
}

// isSpace is C's isspace.
func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
