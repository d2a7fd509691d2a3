package memtable

import "math"

// insertionOrder lists a table's items in the order of their creation. Each has a sequence number greater
// than all earlier ones, which gives SCAN its stable cursor. A removed item leaves a hole.
type insertionOrder struct {
	slots chunkedSlice[slot]
	bases []uint64 // by chunk: the number that the offsets of its slots count from
	next  uint64   // sequence number of the next item; the first is 1
	holes int      // made since the last compaction
}

// slot is one position in the insertion order.
type slot struct {
	offset uint32 // of the sequence number, from the base of the chunk
	h      Handle // 0 in a hole
}

// push adds the newest item and returns its position.
func (o *insertionOrder) push(h Handle) (pos uint32) {
	pos = o.put(h, o.next)
	o.next++
	return pos
}

// put adds an item with a sequence number greater than all present.
func (o *insertionOrder) put(h Handle, seq uint64) (pos uint32) {
	// Offsets are 32 bits; pad with holes.
	for o.slots.n%chunkSize != 0 && seq-o.bases[len(o.bases)-1] > math.MaxUint32 {
		o.slots.push(slot{math.MaxUint32, 0})
	}
	n := o.slots.n
	if n%chunkSize == 0 {
		o.bases = append(o.bases, seq)
	}
	o.slots.push(slot{uint32(seq - o.bases[len(o.bases)-1]), h})
	return uint32(n)
}

// at returns the handle at a position, 0 in a hole, and the sequence number.
func (o *insertionOrder) at(pos int) (h Handle, seq uint64) {
	s := o.slots.at(pos)
	return s.h, o.bases[pos>>chunkBits] + uint64(s.offset)
}

// remove leaves a hole.
func (o *insertionOrder) remove(pos uint32) {
	o.slots.at(int(pos)).h = 0
	o.holes++
}

// reinsert puts a removed item back under its sequence number and returns its position. If its hole is gone,
// reinsert takes as long as compact.
func (o *insertionOrder) reinsert(h Handle, seq uint64, moved func(h Handle, pos uint32)) (pos uint32) {
	at := o.before(seq) + 1
	if at < o.slots.n {
		if there, itsSeq := o.at(at); there == 0 && itsSeq == seq {
			o.slots.at(at).h = h
			o.holes--
			return uint32(at)
		}
	}
	wider := insertionOrder{next: o.next}
	for i := range o.slots.n {
		if i == at {
			pos = wider.put(h, seq)
		}
		if h, seq := o.at(i); h != 0 {
			moved(h, wider.put(h, seq))
		}
	}
	if at == o.slots.n {
		pos = wider.put(h, seq)
	}
	*o = wider
	return pos
}

// sparse reports whether it is time to compact: most slots are holes.
func (o *insertionOrder) sparse() bool { return o.slots.n > 64 && o.holes > o.slots.n/2 }

// before returns the position of the newest slot below a sequence number, -1 if there is none.
func (o *insertionOrder) before(seq uint64) int {
	low, high := 0, o.slots.n
	for low < high {
		mid := int(uint(low+high) >> 1)
		if _, there := o.at(mid); there < seq {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// compact closes the holes and calls moved with each item's new position. Called when the order is sparse, it
// takes amortised constant time per removal.
func (o *insertionOrder) compact(moved func(h Handle, pos uint32)) {
	dense := insertionOrder{next: o.next}
	for i := range o.slots.n {
		if h, seq := o.at(i); h != 0 {
			moved(h, dense.put(h, seq))
		}
	}
	*o = dense
}
