package memtable

import (
	"encoding/binary"
	"unsafe"

	"mayfly/keyspace/record"
	"mayfly/longtext"
)

// LargeBody is the size in bytes from which on a body has memory of its own. The item's allocation then ends
// behind the header, with a tail that refers to the body. So a body can be copied before the owner's lock is
// taken, and a new header costs no copy of it.
//
// The tail is:
//
//	segment  4 bytes, little endian; the segment that is the body
//	sum      4 bytes; the CRC-32C of the body
//	base     8 bytes; the version that wrote the body
const LargeBody = 4 << 10

const tailSize = 16

// Body is a large body in memory that does not change, ready to be stored.
type Body struct {
	text string
	sum  uint32 // CRC-32C
}

// NewBody makes a body of a text that does not change any more. It needs no lock.
func NewBody(text string) Body { return Body{text, record.Sum(0, text)} }

// CopyBody makes a body of a copy of a text. It needs no lock.
func CopyBody(text string) Body { return NewBody(longtext.Join(text)) }

// addBody adds a segment that is a body.
func (a *arena) addBody(text string) uint32 {
	number := a.newSegment()
	a.segments[number] = segment{data: unsafe.Slice(unsafe.StringData(text), len(text)), refs: 1}
	a.used += int64(len(text))
	return number
}

// dropBody removes a reference to a body, and the body with the last.
func (a *arena) dropBody(number uint32) {
	s := &a.segments[number]
	if s.refs--; s.refs == 0 {
		a.release(number)
	}
}

// split reports whether the body has memory of its own.
func (e *Entry) split() bool { return int(e.recSize)-e.header() >= LargeBody }

// allocated returns the size in bytes of the entry's allocation.
func (e *Entry) allocated() int {
	if e.split() {
		return e.keyLen() + e.header() + tailSize
	}
	return e.keyLen() + int(e.recSize)
}

// tail is what the allocation of a large item ends with.
type tail struct {
	segment, sum uint32
	base         uint64
}

// tailOf returns the tail of a large item.
func (t *Table) tailOf(e *Entry) tail {
	at := int(e.data.offset) + allocHeader + e.keyLen() + e.header()
	b := t.arena.segments[e.data.segment].data[at : at+tailSize]
	return tail{binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:]), binary.LittleEndian.Uint64(b[8:])}
}

// bodyOf returns the body of a large item.
func (t *Table) bodyOf(e *Entry) string {
	return record.View(t.arena.segments[t.tailOf(e).segment].data)
}

// Base returns the version that wrote the body of an item. It is that of the item, unless only the header of
// a large item was written since.
func (t *Table) Base(e *Entry) uint64 {
	if e.split() {
		return t.tailOf(e).base
	}
	return e.version
}

// encodeLarge writes the key, the header and the tail of a large item into the arena, and returns the
// record's size. The header may have its checksum already.
func (t *Table) encodeLarge(h Handle, id string, header []byte, size int, at tail, summed bool) (ref, int) {
	data, b := t.arena.alloc(h, len(t.prefix)+len(id)+len(header)+tailSize)
	key := copy(b, t.prefix)
	key += copy(b[key:], id)
	end := key + copy(b[key:], header)
	if !summed {
		record.PutSumOfParts(record.View(b[:key]), b[key:end], at.sum, size)
	}
	binary.LittleEndian.PutUint32(b[end:], at.segment)
	binary.LittleEndian.PutUint32(b[end+4:], at.sum)
	binary.LittleEndian.PutUint64(b[end+8:], at.base)
	return data, len(header) + size
}

// sharedTail returns the tail of a record that takes over the body of an entry, if the item has that very
// body. Its base stays, unless the same transaction has written the body.
func (t *Table) sharedTail(e *Entry, it record.Item) (shared tail, ok bool) {
	if e == nil || !e.split() || len(it.Body) != int(e.recSize)-e.header() || e.has(plain) != it.Kind.IsKey() {
		return tail{}, false
	}
	shared = t.tailOf(e)
	if unsafe.StringData(it.Body) != unsafe.SliceData(t.arena.segments[shared.segment].data) {
		return tail{}, false
	}
	if e.Changing() && shared.base == e.version {
		shared.base = it.Version
	}
	t.arena.segments[shared.segment].refs++
	return shared, true
}

// freeRecord frees the record that an entry has or had, and its reference to a large body.
func (t *Table) freeRecord(e *Entry) {
	if e.split() {
		t.arena.dropBody(t.tailOf(e).segment)
	}
	t.free(e.data)
}
