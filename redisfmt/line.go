package redisfmt

import (
	"strconv"
	"strings"
)

// SplitLine splits a line into words by the quoting rules of redis-cli, which redis.conf and inline
// commands share. Words without quotes are views of the line. ok is false if quotes are unbalanced.
func SplitLine(line string) (words []string, ok bool) {
	for {
		if line = strings.TrimLeft(line, spaces); line == "" {
			return words, true
		}
		var word string
		if word, line, ok = cutWord(line); !ok {
			return nil, false
		}
		words = append(words, word)
	}
}

// cutWord returns the word that line begins with and what follows it. Quotes may open within a word,
// but space must follow the closing one. The rules are those of Redis' sdssplitargs, except that a zero
// byte is a byte like any other.
func cutWord(line string) (word, rest string, ok bool) {
	end := strings.IndexAny(line, " \t\r\"'") // not all of spaces
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
			if i+1 < len(line) && strings.IndexByte(spaces, line[i+1]) < 0 {
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
		if n, err := strconv.ParseUint(s[1:3], 16, 8); err == nil {
			return byte(n), 3
		}
	}
	if i := strings.IndexByte(escapeLetters, s[0]); i >= 0 {
		return escapedBytes[i], 1
	}
	return s[0], 1
}

// spaces are those of C's isspace.
const spaces = " \t\n\v\f\r"
