package memtable

const (
	chunkBits = 10
	chunkSize = 1 << chunkBits // elements
)

// chunkedSlice is a slice that grows and shrinks at its end in chunks of a fixed size. Elements are never
// copied, so no append is slow, and at most one chunk is unused. Only the first chunk grows by copying: there
// are many tables of few items.
type chunkedSlice[T any] struct {
	chunks [][]T // all full but the last in use; one more may be kept for reuse
	n      int
}

// at returns the address of an element. It is valid until the slice shrinks; while there is only one chunk,
// until the next push.
func (s *chunkedSlice[T]) at(i int) *T { return &s.chunks[i>>chunkBits][i&(chunkSize-1)] }

func (s *chunkedSlice[T]) push(v T) {
	last := s.n >> chunkBits
	if last == len(s.chunks) {
		var first []T // grows by append
		if last > 0 {
			first = make([]T, 0, chunkSize)
		}
		s.chunks = append(s.chunks, first)
	}
	s.chunks[last] = append(s.chunks[last], v)
	s.n++
}

// truncate shortens the slice to n elements.
func (s *chunkedSlice[T]) truncate(n int) {
	for last := (s.n - 1) >> chunkBits; last >= 0 && last >= n>>chunkBits; last-- {
		c := s.chunks[last]
		left := max(n-last<<chunkBits, 0)
		clear(c[left:])
		s.chunks[last] = c[:left]
	}
	s.n = n
	if most := (n+chunkSize-1)>>chunkBits + 1; len(s.chunks) > most { // one spare
		clear(s.chunks[most:])
		s.chunks = s.chunks[:most]
	}
	if n == 0 {
		s.chunks = nil
	}
}
