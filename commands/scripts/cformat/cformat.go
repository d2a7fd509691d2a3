package cformat

import (
	"fmt"
	"math"
	"strings"

	"mayfly/commands/scripts/lualib"
)

// Spec is one conversion of string.format.
type Spec struct {
	minus, plus, space, sharp, zero bool
	Width, Precision                int // -1: none
	Verb                            byte
}

// Parse parses the conversion at format[i], after the percent sign, and returns the index of its last character.
// problem is what is wrong with it, or empty.
func Parse(format string, i int) (f Spec, last int, problem string) {
	f = Spec{Width: -1, Precision: -1}
	start := i
	for ; i < len(format) && strings.IndexByte("-+ #0", format[i]) >= 0; i++ {
		switch format[i] {
		case '-':
			f.minus = true
		case '+':
			f.plus = true
		case ' ':
			f.space = true
		case '#':
			f.sharp = true
		case '0':
			f.zero = true
		}
	}
	if i-start > 5 {
		return f, i, "invalid format (repeated flags)"
	}
	digits := func() int {
		n := -1
		for k := 0; k < 2 && i < len(format) && '0' <= format[i] && format[i] <= '9'; k++ {
			n = max(n, 0)*10 + int(format[i]-'0')
			i++
		}
		return n
	}
	f.Width = digits()
	if i < len(format) && format[i] == '.' {
		i++
		f.Precision = max(digits(), 0)
	}
	if i < len(format) && '0' <= format[i] && format[i] <= '9' {
		return f, i, "invalid format (width or precision too long)"
	}
	if i < len(format) {
		f.Verb = format[i]
	}
	return f, i, ""
}

// Char formats a character as %c does: a zero byte ends the text.
func (f Spec) Char(c byte) string { return CString(f.pad(string([]byte{c}))) }

// String formats a text as %s does: up to its first zero byte.
func (f Spec) String(s string) string {
	s = CString(s)
	if f.Precision >= 0 {
		s = s[:min(len(s), f.Precision)]
	}
	return f.pad(s)
}

// Signed formats a whole number as %d does.
func (f Spec) Signed(v int64) string { return f.integer(v, "d") }

// Unsigned formats a whole number as %u, %o, %x and %X do.
func (f Spec) Unsigned(v uint64) string {
	f.plus, f.space = false, false
	f.sharp = f.sharp && v != 0
	if f.Verb == 'u' {
		return f.integer(v, "d")
	}
	return f.integer(v, string(f.Verb))
}

// CString returns s up to its first zero byte.
func CString(s string) string {
	s, _, _ = strings.Cut(s, "\x00")
	return s
}

// pad fills a text up to the width.
func (f Spec) pad(s string) string {
	n := f.Width - len(s)
	switch {
	case n <= 0:
		return s
	case f.minus:
		return s + strings.Repeat(" ", n)
	}
	return strings.Repeat(" ", n) + s
}

func (f Spec) flags() string {
	s := "%"
	if f.minus {
		s += "-"
	}
	if f.plus {
		s += "+"
	} else if f.space {
		s += " "
	}
	if f.sharp {
		s += "#"
	}
	if f.zero && !f.minus {
		s += "0"
	}
	return s
}

// integer formats an int64 or uint64 as C does.
func (f Spec) integer(v any, verb string) string {
	form := f.flags()
	if f.Width >= 0 {
		form += fmt.Sprint(f.Width)
	}
	if f.Precision >= 0 {
		form += fmt.Sprint(".", f.Precision)
	}
	return fmt.Sprintf(form+verb, v)
}

// Float formats a number as %e, %E, %f, %g and %G do.
func (f Spec) Float(v float64) string {
	if math.IsInf(v, 0) || math.IsNaN(v) {
		s := strings.TrimPrefix(lualib.NumberString(v), "-")
		switch {
		case math.Signbit(v):
			s = "-" + s
		case f.plus:
			s = "+" + s
		case f.space:
			s = " " + s
		}
		if f.Verb == 'E' || f.Verb == 'G' {
			s = strings.ToUpper(s)
		}
		return f.pad(s)
	}
	if f.Precision < 0 {
		f.Precision = 6
	}
	form := f.flags()
	if f.Width >= 0 {
		form += fmt.Sprint(f.Width)
	}
	return fmt.Sprintf(fmt.Sprintf("%s.%d%c", form, f.Precision, f.Verb), v)
}
