package memtable

import "unsafe"

// Handle names an entry of a table; 0 is none. Its low bits are a position in a block of the slab, the others
// the block's number. A handle is half as large as a pointer, and the collector does not look at it.
//
// After the release of its entry a handle names the entry that takes the place. See Table.dirty for how a
// list of handles copes with that.
type Handle uint32

const (
	entryBits = 6 // of a handle
	// blockEntries is how many entries fit into 4096 bytes, a size that the runtime allocates without waste.
	blockEntries = 4096 / int(unsafe.Sizeof(Entry{}))
	firstBlock   = 4 // entries; later blocks double, up to blockEntries
)

// slab holds the entries of a table in blocks and reuses the places of released ones. The collector sees one
// object a block instead of one an entry, and a new entry costs no allocation. An empty block is freed,
// unless it is the last.
type slab struct {
	blocks []block // the first has no entries, so that no handle is 0
	open   []int32 // numbers of the blocks with free places
	vacant []int32 // numbers of freed blocks
	access words   // see SetAccess
	capped words   // places of capped entries, see expiryQueue.place
	links  links   // of a log of deaths
}

type block struct {
	entries []Entry // up to its capacity; nil if freed
	used    int32
	free    Handle // head of the free list, linked by next; 0: none
	opened  int32  // index in open; -1 if the block is full
}

// at returns the entry of a handle. It is valid until the entry is released.
func (s *slab) at(h Handle) *Entry {
	return &s.blocks[h>>entryBits].entries[h&(1<<entryBits-1)]
}

// atStale returns the entry in the place of a handle that may be stale: possibly another entry or a released
// one. It returns nil if the block was freed.
func (s *slab) atStale(h Handle) *Entry {
	at := int(h & (1<<entryBits - 1))
	if number := int(h >> entryBits); number < len(s.blocks) && at < len(s.blocks[number].entries) {
		return s.at(h)
	}
	return nil
}

// alloc returns a new zero entry.
func (s *slab) alloc() (Handle, *Entry) {
	if len(s.open) == 0 {
		s.addBlock()
	}
	number := s.open[len(s.open)-1]
	b := &s.blocks[number]
	b.used++
	h := b.free
	var e *Entry
	if h != 0 {
		e = s.at(h)
		b.free = e.next
		*e = Entry{}
	} else {
		h = Handle(number)<<entryBits | Handle(len(b.entries))
		b.entries = b.entries[:len(b.entries)+1]
		e = &b.entries[len(b.entries)-1]
	}
	if b.free == 0 && len(b.entries) == cap(b.entries) {
		s.close(number)
	}
	return h, e
}

// free releases an entry. Its flags stay clear until the place is reused.
func (s *slab) free(h Handle) {
	number := int32(h >> entryBits)
	b := &s.blocks[number]
	*s.at(h) = Entry{next: b.free}
	s.access.free(h)
	s.capped.free(h)
	b.free = h
	b.used--
	if b.opened < 0 {
		b.opened = int32(len(s.open))
		s.open = append(s.open, number)
	}
	if b.used == 0 && len(s.open) > 1 {
		s.close(number)
		*b = block{opened: -1}
		s.access.freeBlock(number)
		s.capped.freeBlock(number)
		if int(number) < len(s.links) {
			s.links[number] = nil
		}
		s.vacant = append(s.vacant, number)
	}
}

func (s *slab) addBlock() {
	if len(s.blocks) == 0 {
		s.blocks = append(s.blocks, block{opened: -1})
	}
	number := int32(len(s.blocks))
	if last := len(s.vacant) - 1; last >= 0 {
		number = s.vacant[last]
		s.vacant = s.vacant[:last]
	} else {
		s.blocks = append(s.blocks, block{})
	}
	size := blockEntries
	if number < 8 {
		size = min(firstBlock<<(number-1), blockEntries)
	}
	s.blocks[number] = block{entries: make([]Entry, 0, size), opened: int32(len(s.open))}
	s.open = append(s.open, number)
}

// close takes a block off the list of those with free places.
func (s *slab) close(number int32) {
	at, last := s.blocks[number].opened, len(s.open)-1
	moved := s.open[last]
	s.open[at] = moved
	s.blocks[moved].opened = at
	s.open = s.open[:last]
	s.blocks[number].opened = -1
}
