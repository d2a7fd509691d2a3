package server

import "sync"

// Sizes of buffers in bytes. Most connections do with the smallest; the greatest is the most that
// is read ahead.
const (
	smallBuffer  = 16 << 10
	mediumBuffer = 64 << 10
	largeBuffer  = 256 << 10
)

// lenders hold the buffers that nobody uses at the moment. A connection that waits with nothing
// half read owns no buffer at all.
var lenders = [...]sync.Pool{
	{New: func() any { return &buffer{bytes: make([]byte, smallBuffer)} }},
	{New: func() any { return &buffer{bytes: make([]byte, mediumBuffer)} }},
	{New: func() any { return &buffer{bytes: make([]byte, largeBuffer)} }},
}

// A buffer is memory to read into, on loan from the lenders if it has one of the usual sizes.
type buffer struct {
	bytes []byte
	paid  int // what its client's account was charged for it
}

// lend gives a buffer of at least size bytes, what it holds being undefined.
func lend(size int) *buffer {
	switch {
	case size <= smallBuffer:
		return lenders[0].Get().(*buffer)
	case size <= mediumBuffer:
		return lenders[1].Get().(*buffer)
	case size <= largeBuffer:
		return lenders[2].Get().(*buffer)
	}
	return &buffer{bytes: make([]byte, size)}
}

// giveBack ends a loan; the buffer must not be used any more.
func (b *buffer) giveBack() {
	switch len(b.bytes) {
	case smallBuffer:
		lenders[0].Put(b)
	case mediumBuffer:
		lenders[1].Put(b)
	case largeBuffer:
		lenders[2].Put(b)
	}
}
