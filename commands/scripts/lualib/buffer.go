package lualib

import "strings"

// Part returns a part of a text that a value of Lua will hold. A small part is copied, as it would hold the whole text.
func Part(bounds *Bounds, text, part string) string {
	bounds.Charge(StringSize)
	if 2*len(part) >= len(text) {
		return part
	}
	bounds.Charge(len(part))
	return strings.Clone(part)
}

// Buffer collects the result of a library. What it allocates is charged before.
type Buffer struct {
	Bytes  []byte
	bounds *Bounds
}

// NewBuffer returns an empty buffer.
func NewBuffer(bounds *Bounds) Buffer { return Buffer{bounds: bounds} }

// Grow makes room for n more bytes.
func (b *Buffer) Grow(n int) {
	free := cap(b.Bytes) - len(b.Bytes)
	if free >= n {
		return
	}
	more := cap(b.Bytes)
	if more > 1<<20 {
		more /= 4
	}
	more = max(more, n-free, 64)
	b.bounds.Charge(cap(b.Bytes) + more) // the whole new array: no value of Lua holds the old one
	b.Bytes = append(make([]byte, 0, cap(b.Bytes)+more), b.Bytes...)
}

// Text appends a text.
func (b *Buffer) Text(s string) {
	b.Grow(len(s))
	b.Bytes = append(b.Bytes, s...)
}

// Char appends a byte.
func (b *Buffer) Char(c byte) {
	b.Grow(1)
	b.Bytes = append(b.Bytes, c)
}

// Finish returns the collected bytes.
func (b *Buffer) Finish() string {
	b.bounds.Charge(StringSize + len(b.Bytes))
	return string(b.Bytes)
}
