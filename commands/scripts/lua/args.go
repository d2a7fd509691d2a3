package lua

import (
	"fmt"
	"math"
	"strconv"
)

// N returns the number of arguments.
func (c *Call) N() int { return len(c.args) }

// Arg returns argument i, from 1 on; nil if there is none.
func (c *Call) Arg(i int) Value {
	if i >= 1 && i <= len(c.args) {
		return c.args[i-1]
	}
	return nil
}

// Any is Arg for an argument that must be there.
func (c *Call) Any(i int) Value {
	if i > len(c.args) {
		c.ArgError(i, "value expected")
	}
	return c.args[i-1]
}

// Return makes values the results of the builtin.
func (c *Call) Return(values ...Value) []Value { return c.M.Return(values, nil) }

// prefix returns a value, and then the results of a function.
func (c *Call) prefix(v Value, results []Value) []Value { return c.M.Return([]Value{v}, results) }

// Fail raises an error at the place that called the builtin, as luaL_error does.
func (c *Call) Fail(format string, args ...any) {
	if len(args) > 0 {
		format = fmt.Sprintf(format, args...)
	}
	Throw(c.M.where(1) + format)
}

// ArgError raises "bad argument #i to 'name' (message)".
func (c *Call) ArgError(i int, message string) {
	c.Fail("%s", "bad argument #"+strconv.Itoa(i)+" to '"+c.fn.name+"' ("+message+")")
}

// TypeError raises the ArgError of an argument that is of another type than expected.
func (c *Call) TypeError(i int, expected string) {
	got := "no value"
	if i <= len(c.args) {
		got = TypeOf(c.Arg(i))
	}
	c.ArgError(i, expected+" expected, got "+got)
}

// Text returns argument i, a string or a number, as a string.
func (c *Call) Text(i int) string {
	s, ok := ToText(c.Arg(i))
	if !ok {
		c.TypeError(i, "string")
	}
	return s
}

// TextOr is Text with a default for an argument that is absent or nil.
func (c *Call) TextOr(i int, absent string) string {
	if c.Arg(i) == nil {
		return absent
	}
	return c.Text(i)
}

// Number returns a number, or a string that is one, as a number. A long string counts as work.
func (c *Call) Number(v Value) (f float64, ok bool) {
	switch v := v.(type) {
	case float64:
		return v, true
	case string:
		c.M.long(v)
		return ParseNumber(v)
	}
	return 0, false
}

// Num returns argument i, a number or a string that is one.
func (c *Call) Num(i int) float64 {
	f, ok := c.Number(c.Arg(i))
	if !ok {
		c.TypeError(i, "number")
	}
	return f
}

// Int returns the whole part of argument i.
func (c *Call) Int(i int) int { return int(Truncate(c.Num(i))) }

// IntOr is Int with a default for an argument that is absent or nil.
func (c *Call) IntOr(i, absent int) int {
	if c.Arg(i) == nil {
		return absent
	}
	return c.Int(i)
}

// Int32 is luaL_checkint: the lower 32 bits.
func (c *Call) Int32(i int) int { return int(int32(c.Int(i))) }

// int32Or is Int32 with a default for an argument that is absent or nil.
func (c *Call) int32Or(i, absent int) int {
	if c.Arg(i) == nil {
		return absent
	}
	return c.Int32(i)
}

// Table returns argument i, a table.
func (c *Call) Table(i int) *Table {
	t, ok := c.Arg(i).(*Table)
	if !ok {
		c.TypeError(i, "table")
	}
	return t
}

func (c *Call) function(i int) *Function {
	f, ok := c.Arg(i).(*Function)
	if !ok {
		c.TypeError(i, "function")
	}
	return f
}

// Truncate returns the whole part of f as C on amd64 does: the least integer for NaN and what is out of
// range.
func Truncate(f float64) int64 {
	if f >= -0x1p63 && f < 0x1p63 {
		return int64(f)
	}
	return math.MinInt64
}

// TruncateUnsigned is Truncate to an unsigned integer: negative numbers wrap around, 0 stands for 2^64 and
// more.
func TruncateUnsigned(f float64) uint64 {
	switch {
	case f >= 0x1p64:
		return 0
	case f >= 0x1p63:
		return uint64(f)
	}
	return uint64(Truncate(f))
}
