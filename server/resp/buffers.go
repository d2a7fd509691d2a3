package resp

import "sync"

// Sizes of read buffers in bytes. Most connections need only the smallest. The largest bounds what is
// read ahead.
const (
	SmallBuffer  = 16 << 10
	MediumBuffer = 64 << 10
	LargeBuffer  = 256 << 10
)

// bufferPools hold unused buffers. A connection that waits with nothing half read owns no buffer.
var bufferPools = [...]sync.Pool{
	{New: func() any { return &buffer{bytes: make([]byte, SmallBuffer)} }},
	{New: func() any { return &buffer{bytes: make([]byte, MediumBuffer)} }},
	{New: func() any { return &buffer{bytes: make([]byte, LargeBuffer)} }},
}

// A buffer is memory to read into. It comes from a pool if it has one of the usual sizes.
type buffer struct {
	bytes   []byte
	charged int // bytes that its client is charged for it
}

// getBuffer returns a buffer of at least size bytes with undefined content.
func getBuffer(size int) *buffer {
	switch {
	case size <= SmallBuffer:
		return bufferPools[0].Get().(*buffer)
	case size <= MediumBuffer:
		return bufferPools[1].Get().(*buffer)
	case size <= LargeBuffer:
		return bufferPools[2].Get().(*buffer)
	}
	return &buffer{bytes: make([]byte, size)}
}

// put returns the buffer to its pool. It must not be used any more.
func (b *buffer) put() {
	switch len(b.bytes) {
	case SmallBuffer:
		bufferPools[0].Put(b)
	case MediumBuffer:
		bufferPools[1].Put(b)
	case LargeBuffer:
		bufferPools[2].Put(b)
	}
}
