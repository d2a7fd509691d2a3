package redisfmt

import "strings"

// SplitLine splits a line into words by the quoting rules of redis-cli, which redis.conf and inline
// commands share. Words without quotes are views of the line. ok is false if quotes are unbalanced.
func SplitLine(line string) (words []string, ok bool) {
	for {
		if line = trimSpace(line); line == "" {
			return words, true
		}
		var word string
		if word, line, ok = cutWord(line); !ok {
			return nil, false
		}
		words = append(words, word)
	}
}

// trimSpace cuts leading space off.
func trimSpace(line string) string {
	for line != "" && isSpace(line[0]) {
		line = line[1:]
	}
	return line
}

// cutWord returns the word that line begins with and what follows it. Quotes may open within a word,
// but space must follow the closing one. The rules are those of Redis' sdssplitargs, except that a zero
// byte is a byte like any other.
func cutWord(line string) (word, rest string, ok bool) {
	end := strings.IndexAny(line, " \t\r\"'") // not all of isSpace
	if end < 0 {
		return line, "", true
	}
	if line[end] != '"' && line[end] != '\'' {
		return line[:end], line[end:], true
	}
	const outside = 0
	quote := byte(outside)
	var text []byte
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quote == outside:
			switch {
			case c == ' ' || c == '\t' || c == '\r':
				return string(text), line[i:], true
			case c == '"' || c == '\'':
				quote = c
				continue
			}
		case c == quote:
			if i+1 < len(line) && !isSpace(line[i+1]) {
				return "", "", false
			}
			return string(text), line[i+1:], true
		case c == '\\' && quote == '"' && i+1 < len(line):
			var used int
			c, used = unescape(line[i+1:])
			i += used
		case c == '\\' && quote == '\'' && strings.HasPrefix(line[i+1:], "'"):
			c = '\''
			i++
		}
		text = append(text, c)
	}
	return string(text), "", quote == outside
}

// unescape returns the byte that the text after a backslash stands for, and how much of it was used.
func unescape(s string) (c byte, used int) {
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
