package memtable

import "unsafe"

// preparedSize is the size in bytes from which on a body is worth preparing. Smaller ones are copied under
// the lock in a few microseconds.
const preparedSize = max(LargeBody, 32<<10)

// Bodies has large bodies that were prepared for strings. The zero value is empty.
type Bodies struct {
	list []preparedBody
	next int // Find begins here: strings are mostly stored in the order in which they were prepared
}

type preparedBody struct {
	text string
	body Body
}

// Copy prepares a copy of a string, which must not change before the bodies are dropped. Small ones it
// ignores.
func (b *Bodies) Copy(text string) {
	if len(text) >= preparedSize {
		b.list = append(b.list, preparedBody{text, CopyBody(text)})
	}
}

// Find returns what was prepared for this very string, nil if nothing.
func (b *Bodies) Find(text string) *Body {
	for i := range b.list {
		at := (b.next + i) % len(b.list)
		p := &b.list[at]
		if len(p.text) == len(text) && unsafe.StringData(p.text) == unsafe.StringData(text) {
			b.next = at + 1
			return &p.body
		}
	}
	return nil
}

// Len returns the number of bodies.
func (b *Bodies) Len() int { return len(b.list) }
