package lua

// pieceLen is how many elements of a list are allocated, cleared and moved at once. The memory collector
// waits for that, and everybody with it.
const pieceLen = 1 << 12

// list is a list of any length. Its first piece grows up to pieceLen elements, the others have that from the
// start.
type list[T any] struct {
	first []T
	more  *[][]T // all are full but the last
}

func (l *list[T]) len() int {
	if l.more == nil {
		return len(l.first)
	}
	last := len(*l.more) - 1
	return (last+1)*pieceLen + len((*l.more)[last])
}

// cap returns how many elements there is room for.
func (l *list[T]) cap() int {
	if l.more == nil {
		return cap(l.first)
	}
	return pieceLen * (1 + len(*l.more))
}

// at returns the place of an element, which must exist.
func (l *list[T]) at(i int) *T {
	if i < len(l.first) {
		return &l.first[i]
	}
	return &(*l.more)[i/pieceLen-1][i%pieceLen]
}

// wants returns by how many elements to grow before the next push, 0 for none. least is what an empty list
// gets.
func (l *list[T]) wants(least int) int {
	n := l.len()
	switch {
	case n < l.cap():
		return 0
	case n < pieceLen:
		return min(max(least, n), pieceLen-n)
	}
	return pieceLen
}

// grow makes room for as many elements as wants has returned.
func (l *list[T]) grow(n int) {
	switch {
	case len(l.first) < pieceLen:
		l.first = append(make([]T, 0, len(l.first)+n), l.first...)
	case l.more == nil:
		l.more = &[][]T{make([]T, 0, n)}
	default:
		*l.more = append(*l.more, make([]T, 0, n))
	}
}

// push appends an element. There must be room for it.
func (l *list[T]) push(v T) {
	if l.more == nil {
		l.first = append(l.first, v)
		return
	}
	last := &(*l.more)[len(*l.more)-1]
	*last = append(*last, v)
}
