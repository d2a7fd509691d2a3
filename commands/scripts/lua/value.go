package lua

import (
	"fmt"
	"math"
	"strings"
)

// Value is a value of Lua: nil, a bool, a float64, a string, a *Table, a *Function, a *Coroutine or a
// *Userdata.
type Value any

// Userdata is a value that scripts can only compare. Its text is what tostring returns.
type Userdata struct{ Text string }

// Function is a function, written in Lua or in Go.
type Function struct {
	proto   *proto
	up      []*cell
	builtin Builtin
	name    string // of a builtin, for errors
	holds   []Value
	mark    uint32
}

// Builtin is a function in Go. What it returns is read before any other function runs.
type Builtin func(c *Call) []Value

// cell is a local variable that functions within share.
type cell struct {
	v    Value
	mark uint32
}

// Bytes that values take.
const (
	StringSize   = 32
	tableSize    = 112
	slotSize     = 24 // of an array: the value, and its number
	entrySize    = 40 // of a hash part: key and value, and their numbers
	indexedSize  = 72 // more for an entry of a hash part that has an index
	functionSize = 96
	cellSize     = 48
	frameSize    = 256
	threadSize   = 12_000
	protoSize    = 512
)

var smallNumbers = func() (list [1024]Value) {
	for i := range list {
		list[i] = float64(i)
	}
	return list
}()

// Number returns a number as a value: small whole ones without an allocation.
func Number(f float64) Value {
	if i := int(f); uint(i) < uint(len(smallNumbers)) && float64(i) == f && (i != 0 || !math.Signbit(f)) {
		return smallNumbers[i]
	}
	return f
}

// Int returns a whole number as a value.
func Int(i int) Value { return Number(float64(i)) }

// Truth reports whether a value counts as true.
func Truth(v Value) bool {
	b, ok := v.(bool)
	return b || !ok && v != nil
}

// TypeOf returns the name of a value's type.
func TypeOf(v Value) string {
	switch v.(type) {
	case nil:
		return "nil"
	case bool:
		return "boolean"
	case float64:
		return "number"
	case string:
		return "string"
	case *Table:
		return "table"
	case *Function:
		return "function"
	case *Coroutine:
		return "thread"
	}
	return "userdata"
}

// ToText returns a string, or a number as a string.
func ToText(v Value) (s string, ok bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case float64:
		return NumberText(v), true
	}
	return "", false
}

// Text returns what tostring does for a value without metamethods.
func Text(v Value) string {
	switch v := v.(type) {
	case nil:
		return "nil"
	case bool:
		return fmt.Sprint(v)
	case *Userdata:
		return v.Text
	case *Function:
		if v.builtin != nil {
			return fmt.Sprintf("function: builtin: %p", v)
		}
	case string, float64:
		s, _ := ToText(v)
		return s
	}
	return fmt.Sprintf("%s: %p", TypeOf(v), v)
}

// Part returns a part of a string. It copies what is shorter than the whole, which it would keep alive.
func (m *Machine) Part(s string, from, to int) string {
	m.Charge(StringSize)
	if to-from == len(s) {
		return s
	}
	m.Charge(to - from)
	return strings.Clone(s[from:to])
}

// Buffer is a text that grows. Its bytes count until Text takes them.
type Buffer struct {
	m *Machine
	b []byte
}

// NewBuffer returns an empty buffer.
func (m *Machine) NewBuffer() *Buffer { return &Buffer{m: m} }

// Room makes room for n more bytes, and returns the buffer's bytes for appending them.
func (b *Buffer) room(n int) {
	if n += len(b.b); n <= cap(b.b) {
		return
	}
	n = max(n+min(n, 1<<20), 64)
	b.m.hidden += int64(n - cap(b.b))
	b.m.Charge(n)
	grown := make([]byte, len(b.b), n)
	copy(grown, b.b)
	b.b = grown
}

// Add appends a text.
func (b *Buffer) Add(s string) {
	b.room(len(s))
	b.b = append(b.b, s...)
}

// Bytes appends some bytes.
func (b *Buffer) Bytes(p ...byte) {
	b.room(len(p))
	b.b = append(b.b, p...)
}

// Len returns the number of bytes.
func (b *Buffer) Len() int { return len(b.b) }

// Text returns the whole text and empties the buffer.
func (b *Buffer) Text() string {
	b.m.Charge(StringSize + len(b.b))
	s := string(b.b)
	b.m.hidden -= int64(cap(b.b))
	b.b = nil
	return s
}
