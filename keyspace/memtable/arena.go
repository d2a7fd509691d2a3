package memtable

import (
	"encoding/binary"
	"unsafe"
)

// arena stores the key and record of each item of a table side by side. It is log-structured memory: segments
// are filled from front to end. When too much is dead, the segments with the largest dead share are emptied
// into the newest. (Rumble, Kejriwal, Ousterhout: Log-structured Memory for DRAM-based Storage, FAST 2014.)
//
// With one Go allocation per item, each cycle of the collector would visit every item. Memory would hold as
// much garbage as data. The collector does not look into segments.
//
// Stored bytes never change and never move: cleaning copies them. So a view stays valid without any lock. It
// keeps its segment alive, even after the arena has released that.
//
// Each allocation has a header that only the arena reads:
//
//	size     4 bytes, little endian; the highest bit marks a dead allocation
//	handle   4 bytes; the entry that the allocation belongs to while it is live
type arena struct {
	segments []segment
	vacant   []uint32 // numbers of released segments
	head     uint32   // the segment that is being filled; 0: none
	victim   ref      // the segment that is being emptied, and how far; 0: none
	hand     uint32   // the search for the next victim goes on here
	used     int64    // bytes of all allocations, headers included
	dead     int64    // bytes of the dead ones
	seen     uint32   // keeps reading ahead from being optimised away
}

type segment struct {
	data []byte // up to its capacity; nil if released, and in the first, so that no valid ref is 0
	dead uint32 // bytes
	refs uint32 // a segment that is a large body: the records that refer to it; else 0
}

// ref is the address of an allocation in an arena.
type ref struct{ segment, offset uint32 }

const (
	allocHeader = 8 // bytes
	deadBit     = 1 << 31
	segmentSize = 32 << 10        // bytes
	largeAlloc  = segmentSize / 8 // a larger allocation has a segment of its own

	// minCompared is the least number of segments compared to choose a victim.
	minCompared = 64

	// A quarter of an arena may be dead. If items die at random, each write then copies about one and a half
	// allocations. If they die in the order of their creation, it copies none.
	deadShare = 4       // one part in deadShare may be dead,
	deadSlack = 1 << 10 // and that many bytes
)

// alloc reserves size bytes for the entry of a handle. The caller fills them at once and never writes to them
// again.
func (a *arena) alloc(h Handle, size int) (ref, []byte) {
	number := a.head
	if len(a.segments) == 0 || cap(a.segments[number].data)-len(a.segments[number].data) < allocHeader+size {
		number = a.openSegment(allocHeader + size)
	}
	s := &a.segments[number]
	at := len(s.data)
	s.data = s.data[:at+allocHeader+size]
	b := s.data[at:]
	binary.LittleEndian.PutUint32(b, uint32(size))
	binary.LittleEndian.PutUint32(b[4:], uint32(h))
	a.used += int64(allocHeader + size)
	return ref{number, uint32(at)}, b[allocHeader:]
}

// openSegment adds a segment with at least size bytes. In a small arena it is small.
func (a *arena) openSegment(size int) uint32 {
	number := a.newSegment()
	if size <= largeAlloc {
		size = max(size, int(min((a.used-a.dead)/4, segmentSize)))
		if a.head != 0 && len(a.segments[a.head].data) == 0 { // see release
			a.vacate(a.head)
		}
		a.head = number
	}
	a.segments[number].data = make([]byte, 0, size)
	return number
}

// newSegment returns the number of a segment without memory.
func (a *arena) newSegment() uint32 {
	if len(a.segments) == 0 {
		a.segments = append(a.segments, segment{})
	}
	if last := len(a.vacant) - 1; last >= 0 {
		number := a.vacant[last]
		a.vacant = a.vacant[:last]
		return number
	}
	a.segments = append(a.segments, segment{})
	return uint32(len(a.segments) - 1)
}

// view returns size bytes of an allocation. The string is safe to keep.
func (a *arena) view(r ref, size int) string {
	return unsafe.String(&a.segments[r.segment].data[r.offset+allocHeader], size)
}

// free marks an allocation as dead.
func (a *arena) free(r ref) {
	s := &a.segments[r.segment]
	header := s.data[r.offset:]
	size := binary.LittleEndian.Uint32(header)
	binary.LittleEndian.PutUint32(header, size|deadBit)
	s.dead += allocHeader + size
	a.dead += int64(allocHeader + size)
	if int(s.dead) == len(s.data) {
		a.release(r.segment)
	}
}

// release removes a segment. What is free behind the allocations of the head stays the head: items that come
// and go at once, as locks do, need no new segment each.
func (a *arena) release(number uint32) {
	s := &a.segments[number]
	a.used -= int64(len(s.data))
	a.dead -= int64(s.dead)
	switch {
	case a.used == 0:
		*a = arena{}
	case a.head == number:
		*s = segment{data: s.data[len(s.data):]}
	default:
		a.vacate(number)
		if a.victim.segment == number {
			a.victim = ref{}
		}
	}
}

// vacate frees the number of a segment.
func (a *arena) vacate(number uint32) {
	a.segments[number] = segment{}
	a.vacant = append(a.vacant, number)
}

// wasteful reports whether it is time to clean.
func (a *arena) wasteful() bool { return a.dead > a.used/deadShare+deadSlack }

// clean empties about that many bytes more of a victim: it copies live allocations elsewhere and updates
// their entries. Every live allocation must have an entry that refers to it.
func (a *arena) clean(entries *slab, bytes int) {
	if a.victim == (ref{}) {
		a.victim = ref{segment: a.chooseVictim()}
		if a.head == a.victim.segment {
			a.head = 0
		}
	}
	from := a.victim
	data := a.segments[from.segment].data
	to := min(int(from.offset)+bytes, len(data))
	seen := uint32(0) // reads the entries first, so that their cache misses overlap
	eachLive(data, int(from.offset), to, func(_ uint32, h Handle, _ []byte) { seen += entries.at(h).hash })
	a.seen += seen
	end := eachLive(data, int(from.offset), to, func(at uint32, h Handle, live []byte) {
		e := entries.at(h)
		if e.data != (ref{from.segment, at}) {
			panic("memtable: an allocation is live although its entry does not refer to it")
		}
		r, b := a.alloc(h, len(live))
		copy(b, live)
		e.data = r
		a.free(ref{from.segment, at}) // the last one releases the segment
	})
	if a.victim.segment != 0 {
		a.victim.offset = uint32(end)
	}
}

// eachLive visits the live allocations of a segment that begin within [at, to) and returns where the next one
// begins.
func eachLive(data []byte, at, to int, visit func(at uint32, h Handle, live []byte)) (next int) {
	for at < to {
		size := binary.LittleEndian.Uint32(data[at:])
		h := Handle(binary.LittleEndian.Uint32(data[at+4:]))
		end := at + allocHeader + int(size&^deadBit)
		if size&deadBit == 0 {
			visit(uint32(at), h, data[at+allocHeader:end])
		}
		at = end
	}
	return at
}

// chooseVictim returns the segment to empty next: the one with the largest dead share of those compared.
// There must be dead allocations.
func (a *arena) chooseVictim() uint32 {
	best, share := uint32(0), 0.0
	for compared := 1; compared <= len(a.segments) || best == 0; compared++ {
		if a.hand++; int(a.hand) >= len(a.segments) {
			a.hand = 0
		}
		if s := &a.segments[a.hand]; s.dead > 0 {
			if its := float64(s.dead) / float64(len(s.data)); its > share {
				best, share = a.hand, its
			}
		}
		if compared >= minCompared && share*float64(a.used) >= float64(a.dead) { // at least the average
			break
		}
	}
	return best
}
