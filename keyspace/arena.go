package keyspace

import (
	"encoding/binary"
	"unsafe"
)

// arena keeps the texts of a table's items, key and record side by side. It is a log in memory: large
// segments are written from front to end, and when too much of what is in them is needed no more, those
// with the most of that are emptied into the newest. (Rumble, Kejriwal, Ousterhout: Log-structured Memory
// for DRAM-based Storage, FAST 2014.)
//
// An allocation a text would be work for the collector with each item, at each of its cycles, and would
// leave as much garbage as is in use. It looks into no segment.
//
// A text never changes and never moves: what lives in a segment is copied. So a view of a text can be kept
// without a lock. It keeps the segment alive as long, even when it is none of the arena's any more.
//
// In a segment each text has a header, which is only for the arena:
//
//	size     4 bytes, little endian; the highest bit says that the text is dead
//	handle   4 bytes: of the entry that it belongs to while it lives
type arena struct {
	segments []segment
	vacant   []uint32 // the numbers of segments that were let go
	head     uint32   // the segment that takes in what comes, if there is room; 0: none
	victim   ref      // the segment that is being emptied, and how far that has come; 0: none
	hand     uint32   // the next victim is looked for from here on
	used     int64    // bytes of headers and texts
	dead     int64    // of them, those that are needed no more
	seen     uint32   // keeps reading ahead from being optimised away
}

type segment struct {
	data []byte // up to its capacity; nil if it was let go, and in the first, so that no valid ref is 0
	dead uint32 // bytes
}

// ref is where a text is in an arena.
type ref struct{ segment, offset uint32 }

const (
	textHeader  = 8
	deadText    = 1 << 31
	segmentSize = 32 << 10        // bytes
	largeText   = segmentSize / 8 // a larger one has a segment of its own

	// victimsSeen is how many segments at least are compared when one is to be emptied.
	victimsSeen = 64

	// Texts that are dead may be a third of what those take that live. A quarter of it all means that to write
	// one, about one and a half are copied if they die at random, and none if they die in the order in which
	// they have come.
	deadShare = 4       // one part in so many of it all may be dead,
	deadSlack = 1 << 10 // and so many bytes
)

// add copies a text in two parts in. It belongs to the entry of the handle until it is dropped.
func (a *arena) add(h handle, key, rec string) ref {
	size := len(key) + len(rec)
	number := a.head
	if len(a.segments) == 0 || cap(a.segments[number].data)-len(a.segments[number].data) < textHeader+size {
		number = a.open(textHeader + size)
	}
	s := &a.segments[number]
	r := ref{number, uint32(len(s.data))}
	b := binary.LittleEndian.AppendUint32(s.data, uint32(size))
	b = binary.LittleEndian.AppendUint32(b, uint32(h))
	s.data = append(append(b, key...), rec...)
	a.used += int64(textHeader + size)
	return r
}

// open makes a segment in which there is room for so many bytes. In a small arena it is small.
func (a *arena) open(size int) uint32 {
	if len(a.segments) == 0 {
		a.segments = append(a.segments, segment{})
	}
	number := uint32(len(a.segments))
	if last := len(a.vacant) - 1; last >= 0 {
		number, a.vacant = a.vacant[last], a.vacant[:last]
	} else {
		a.segments = append(a.segments, segment{})
	}
	if size <= largeText {
		size = max(size, int(min((a.used-a.dead)/4, segmentSize)))
		a.head = number
	}
	a.segments[number].data = make([]byte, 0, size)
	return number
}

// text gives a text of so many bytes. It is safe to keep.
func (a *arena) text(r ref, size int) string {
	return unsafe.String(&a.segments[r.segment].data[r.offset+textHeader], size)
}

// drop notes that a text is needed no more.
func (a *arena) drop(r ref) {
	s := &a.segments[r.segment]
	header := s.data[r.offset:]
	size := binary.LittleEndian.Uint32(header)
	binary.LittleEndian.PutUint32(header, size|deadText)
	s.dead += textHeader + size
	a.dead += int64(textHeader + size)
	if int(s.dead) == len(s.data) {
		a.letGo(r.segment)
	}
}

// letGo takes a segment out.
func (a *arena) letGo(number uint32) {
	s := &a.segments[number]
	a.used -= int64(len(s.data))
	a.dead -= int64(s.dead)
	if a.used == 0 {
		*a = arena{}
		return
	}
	*s = segment{}
	a.vacant = append(a.vacant, number)
	if a.head == number {
		a.head = 0
	}
	if a.victim.segment == number {
		a.victim = ref{}
	}
}

// wasteful tells whether it is time to clean.
func (a *arena) wasteful() bool { return a.dead > a.used/deadShare+deadSlack }

// clean goes on with emptying a segment, about so many bytes of it: the texts that live are copied to others.
// Their entries, in the slab, learn where. All entries of the table must refer to the texts that have not been
// dropped, and to no others.
func (a *arena) clean(entries *slab, bytes int) {
	if a.victim == (ref{}) {
		a.victim = ref{segment: a.choose()}
		if a.head == a.victim.segment {
			a.head = 0
		}
	}
	from := a.victim
	data := a.segments[from.segment].data
	to := min(int(from.offset)+bytes, len(data))
	warmed := uint32(0)
	eachText(data, int(from.offset), to, func(_ uint32, h handle, _ string) { warmed += entries.at(h).hash }) // all of them wait for memory at once
	a.seen += warmed
	end := eachText(data, int(from.offset), to, func(at uint32, h handle, text string) {
		e := entries.at(h)
		if e.text != (ref{from.segment, at}) {
			panic("keyspace: a text lives that its entry does not refer to")
		}
		e.text = a.add(h, text, "")
		a.drop(ref{from.segment, at}) // with the last of them the segment goes
	})
	if a.victim.segment != 0 {
		a.victim.offset = uint32(end)
	}
}

// eachText visits those texts of a segment that live and begin within a range, and tells where the next begins.
func eachText(data []byte, at, to int, visit func(at uint32, h handle, text string)) (next int) {
	for at < to {
		size := binary.LittleEndian.Uint32(data[at:])
		h := handle(binary.LittleEndian.Uint32(data[at+4:]))
		if size&deadText == 0 {
			visit(uint32(at), h, unsafe.String(&data[at+textHeader], size))
		}
		at += textHeader + int(size&^deadText)
	}
	return at
}

// choose gives the segment that is to be emptied next: one with a large share of the dead, the largest of those
// that are compared. There must be dead texts.
func (a *arena) choose() uint32 {
	best, share := uint32(0), 0.0
	for seen := 1; seen <= len(a.segments) || best == 0; seen++ {
		if a.hand++; int(a.hand) >= len(a.segments) {
			a.hand = 0
		}
		if s := &a.segments[a.hand]; s.dead > 0 {
			if its := float64(s.dead) / float64(len(s.data)); its > share {
				best, share = a.hand, its
			}
		}
		if seen >= victimsSeen && share*float64(a.used) >= float64(a.dead) { // not below the average
			break
		}
	}
	return best
}
