package keyspace

import "unsafe"

// handle names an entry of a slab; 0 is none. Its low bits are a place in a chunk, the others the
// chunk's number. A handle takes half of what a pointer takes, and the collector need not look at it.
//
// The handle of an entry that has been released names whatever entry takes its place. Whoever keeps one
// beyond the release must not care: see table.dirty.
type handle uint32

const (
	slotBits = 6
	// slots of a chunk: as many as fit into 4096 bytes, which the runtime allocates without rounding up.
	chunkSlots = 4096 / int(unsafe.Sizeof(entry{}))
	firstChunk = 4 // slots; later chunks double, up to chunkSlots
)

// slab holds the entries of a table. They are allocated by the chunk, and a place that is released is
// used again: the collector has one object instead of one an entry, and an entry that comes costs no
// allocation. A chunk in which nothing is left is let go, unless it is the last.
type slab struct {
	chunks []chunk // the first has no entries, so that no handle is 0
	open   []int32 // the chunks with free places
	vacant []int32 // the numbers of chunks that were let go
}

type chunk struct {
	entries []entry // up to its capacity; nil if it was let go
	used    int32
	free    handle // the first of a chain of free places, by next; 0: none
	opened  int32  // index in open; -1 if it has no free place
}

// at gives the entry of a handle. Valid until the entry is released.
func (s *slab) at(h handle) *entry {
	return &s.chunks[h>>slotBits].entries[h&(1<<slotBits-1)]
}

// stale gives the entry that is in the place that a handle names, which may be another than it was, or
// released; nil if the whole chunk was let go.
func (s *slab) stale(h handle) *entry {
	slot := int(h & (1<<slotBits - 1))
	if number := int(h >> slotBits); number < len(s.chunks) && slot < len(s.chunks[number].entries) {
		return s.at(h)
	}
	return nil
}

// take gives a place for a new entry, which is zero.
func (s *slab) take() (handle, *entry) {
	if len(s.open) == 0 {
		s.addChunk()
	}
	number := s.open[len(s.open)-1]
	c := &s.chunks[number]
	c.used++
	h := c.free
	var e *entry
	if h != 0 {
		e = s.at(h)
		c.free = e.next
		*e = entry{}
	} else {
		h = handle(number)<<slotBits | handle(len(c.entries))
		c.entries = c.entries[:len(c.entries)+1]
		e = &c.entries[len(c.entries)-1]
	}
	if c.free == 0 && len(c.entries) == cap(c.entries) {
		s.close(number)
	}
	return h, e
}

// release gives a place back. Whoever still points to the entry finds no flags set, until another takes
// the place.
func (s *slab) release(h handle) {
	number := int32(h >> slotBits)
	c := &s.chunks[number]
	*s.at(h) = entry{next: c.free}
	c.free = h
	c.used--
	if c.opened < 0 {
		c.opened = int32(len(s.open))
		s.open = append(s.open, number)
	}
	if c.used == 0 && len(s.open) > 1 {
		s.close(number)
		*c = chunk{opened: -1}
		s.vacant = append(s.vacant, number)
	}
}

func (s *slab) addChunk() {
	if len(s.chunks) == 0 {
		s.chunks = append(s.chunks, chunk{opened: -1})
	}
	number := int32(len(s.chunks))
	if last := len(s.vacant) - 1; last >= 0 {
		number = s.vacant[last]
		s.vacant = s.vacant[:last]
	} else {
		s.chunks = append(s.chunks, chunk{})
	}
	size := chunkSlots
	if number < 8 {
		size = min(firstChunk<<(number-1), chunkSlots)
	}
	s.chunks[number] = chunk{entries: make([]entry, 0, size), opened: int32(len(s.open))}
	s.open = append(s.open, number)
}

// close takes a chunk from the list of those with free places.
func (s *slab) close(number int32) {
	at, last := s.chunks[number].opened, len(s.open)-1
	moved := s.open[last]
	s.open[at] = moved
	s.chunks[moved].opened = at
	s.open = s.open[:last]
	s.chunks[number].opened = -1
}
