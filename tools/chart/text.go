package chart

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Count returns a number with commas.
func Count(n int64) string {
	text := strconv.FormatInt(n, 10)
	for at := len(text) - 3; at > 0 && text[at-1] != '-'; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Short returns a number in at most six characters.
func Short(n int64) string {
	f, unit := float64(n), 0
	for f >= 9999.5 && unit < len(units) {
		f /= 1000
		unit++
	}
	if unit == 0 {
		return strconv.FormatInt(n, 10)
	}
	return fmt.Sprintf("%.0f%c", f, units[unit-1])
}

const units = "kMGTPE"

// Bytes returns an amount of memory.
func Bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	f, unit := float64(n), -1
	for f >= 1023.95 && unit < len(units)-1 {
		f /= 1024
		unit++
	}
	return fmt.Sprintf("%.1f %sB", f, strings.ToUpper(units[unit:unit+1]))
}

// Span returns a time of some seconds in its two largest units.
func Span(s int64) string {
	for i, u := range spans {
		if s < u.seconds {
			continue
		}
		text := fmt.Sprintf("%d %s", s/u.seconds, u.name)
		if i+1 < len(spans) {
			if rest := s % u.seconds / spans[i+1].seconds; rest > 0 {
				text += fmt.Sprintf(" %d %s", rest, spans[i+1].name)
			}
		}
		return text
	}
	return fmt.Sprintf("%d s", s)
}

var spans = []struct {
	name    string
	seconds int64
}{{"d", 86400}, {"h", 3600}, {"min", 60}, {"s", 1}}

// Micros returns a time of some µs.
func Micros(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d us", n)
	case n < 1_000_000:
		return fmt.Sprintf("%.1f ms", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f s", float64(n)/1e6)
}

// Printable returns text that moves no cursor: what is not printable becomes a question mark.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, text)
}

// wide returns the number of columns that a line takes, without escape sequences for colours.
func wide(line string) (n int) {
	escape := false
	for _, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape = true
		default:
			n += columns(r)
		}
	}
	return n
}

// columns returns the number of columns of a character.
func columns(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me):
		return 0
	case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana) || r >= 0xFF01 && r <= 0xFF60 || r >= 0x1F300 && r <= 0x1FAFF:
		return 2
	}
	return 1
}

// cut cuts a line to at most width columns. It ends colours.
func cut(line string, width int) string {
	if wide(line) <= width {
		return line
	}
	n, escape, colored := 0, false, false
	for i, r := range line {
		switch {
		case escape:
			escape = r != 'm'
		case r == '\x1b':
			escape, colored = true, true
		case n+columns(r) > width:
			if colored {
				return line[:i] + plain
			}
			return line[:i]
		default:
			n += columns(r)
		}
	}
	return line
}
