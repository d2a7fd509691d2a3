package commands

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/redisfmt"
)

// notation writes a reply as redis-cli shows it on a terminal, without the last line break. It quotes
// verbatim text, unlike redis-cli, to keep it on one line.
func notation(r engine.Reply) string { return strings.TrimSuffix(indented(r, ""), "\n") }

// indented is notation for a nested reply. prefix precedes all lines but the first. It follows
// cliFormatReplyTTY of redis-cli 7.0.15, but for the blank that this leaves at the end of a line.
func indented(r engine.Reply, prefix string) string {
	switch r.Kind {
	case engine.KindNone:
		return ""
	case engine.KindStatus:
		return r.Str + "\n"
	case engine.KindError:
		return "(error) " + r.Str + "\n"
	case engine.KindInteger:
		return fmt.Sprintf("(integer) %d\n", r.Int)
	case engine.KindBulk:
		return quoted(r.Str) + "\n"
	case engine.KindElement:
		return quoted("["+r.Str+"]") + "\n"
	case engine.KindText:
		return quoted(r.Text.String()) + "\n"
	case engine.KindVerbatim:
		return "(verbatim) " + quoted(r.Str) + "\n"
	case engine.KindNull, engine.KindNullArray:
		return "(nil)\n"
	case engine.KindDouble:
		return "(double) " + strconv.FormatFloat(r.Float(), 'g', 17, 64) + "\n"
	case engine.KindBool:
		return fmt.Sprintf("(%t)\n", r.Int != 0)
	case engine.KindSeveral, engine.KindProtocol:
		var out strings.Builder
		for _, e := range r.Elems {
			out.WriteString(indented(e, prefix))
		}
		return out.String()
	}
	r.Elems = flat(r)
	shape := map[engine.Kind]struct{ separator, empty string }{
		engine.KindArray: {")", "(empty array)"},
		engine.KindMap:   {"#", "(empty hash)"},
		engine.KindSet:   {"~", "(empty set)"},
		engine.KindPush:  {">", "(empty push)"},
	}[r.Kind]
	if len(r.Elems) == 0 {
		return shape.empty + "\n"
	}
	step := 1
	if r.Kind == engine.KindMap {
		step = 2
	}
	width := len(strconv.Itoa(len(r.Elems) / step))
	inner := prefix + strings.Repeat(" ", width+2)
	var out strings.Builder
	for i := 0; i < len(r.Elems); i += step {
		if i > 0 {
			out.WriteString(prefix)
		}
		fmt.Fprintf(&out, "%*d%s ", width, i/step+1, shape.separator)
		if r.Kind == engine.KindMap {
			out.WriteString(strings.TrimSuffix(indented(r.Elems[i], inner), "\n") + " =>")
			if v := r.Elems[i+1]; len(v.Elems) > 0 && (v.Kind == engine.KindArray || v.Kind == engine.KindMap) {
				out.WriteString("\n" + inner)
			} else {
				out.WriteString(" ")
			}
			out.WriteString(indented(r.Elems[i+1], inner))
		} else {
			out.WriteString(indented(r.Elems[i], inner))
		}
	}
	return out.String()
}

// flat returns the elements of a reply that has them in blocks.
func flat(r engine.Reply) (list []engine.Reply) {
	if r.Int == 0 {
		return r.Elems
	}
	for _, block := range r.Elems {
		list = append(list, block.Elems...)
		if block.Kind == engine.KindElements {
			for _, text := range block.Strings {
				list = append(list, engine.Bulk(text))
			}
		}
	}
	return list
}

// quoted writes a string as redis-cli does.
func quoted(s string) string {
	var out strings.Builder
	redisfmt.WriteQuoted(&out, s)
	return out.String()
}

// splitArgs reads a line as redis-cli does: words, "with \x00 and \n escapes", 'literal words'.
func splitArgs(line string) ([]string, error) {
	var args []string
	for {
		line = strings.TrimLeft(line, " \t")
		if line == "" {
			return args, nil
		}
		var arg []byte
		for line != "" && line[0] != ' ' && line[0] != '\t' {
			switch line[0] {
			case '"', '\'':
				text, rest, err := quotedWord(line[1:], line[0])
				if err != nil {
					return nil, err
				}
				arg, line = append(arg, text...), rest
			default:
				arg, line = append(arg, line[0]), line[1:]
			}
		}
		args = append(args, string(arg))
	}
}

// quotedWord reads up to the closing quote. rest is what follows it.
func quotedWord(s string, quote byte) (text []byte, rest string, err error) {
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == quote:
			return text, s[i+1:], nil
		case s[i] != '\\' || i+1 == len(s):
			text = append(text, s[i])
		case quote == '\'':
			if s[i+1] == '\'' {
				i++
			}
			text = append(text, s[i])
		case s[i+1] == 'x' && i+3 < len(s):
			b, err := strconv.ParseUint(s[i+2:i+4], 16, 8)
			if err != nil {
				return nil, "", err
			}
			text = append(text, byte(b))
			i += 3
		default:
			i++
			c := s[i]
			if at := strings.IndexByte("nrtab", c); at >= 0 {
				c = "\n\r\t\a\b"[at]
			}
			text = append(text, c)
		}
	}
	return nil, "", errors.New("a quote is not closed")
}
