package keyspace

import "math"

// roster lists the items of a table in the order of their creation, each with a sequence number that
// is greater than all before it. A removed item leaves a hole.
type roster struct {
	berths pile[berth]
	bases  []uint64 // by piece: what a berth's offset counts from
	next   uint64   // the next sequence number; the first is 1
	holes  int      // made since it was last compacted
}

// berth is a place in the roster.
type berth struct {
	offset uint32 // of the sequence number, from the base of its piece
	h      handle // 0 in a hole
}

// push adds an item as the newest and gives its place.
func (r *roster) push(h handle) (place uint32) {
	place = r.put(h, r.next)
	r.next++
	return place
}

// put adds an item with a sequence number greater than all that are there.
func (r *roster) put(h handle, seq uint64) (place uint32) {
	// What is four thousand million creations apart does not fit into one piece: holes fill it up.
	for r.berths.n%pieceSize != 0 && seq-r.bases[len(r.bases)-1] > math.MaxUint32 {
		r.berths.push(berth{math.MaxUint32, 0})
	}
	n := r.berths.n
	if n%pieceSize == 0 {
		r.bases = append(r.bases, seq)
	}
	r.berths.push(berth{uint32(seq - r.bases[len(r.bases)-1]), h})
	return uint32(n)
}

// at gives what is at a place, and the sequence number.
func (r *roster) at(place int) (h handle, seq uint64) {
	b := r.berths.at(place)
	return b.h, r.bases[place>>pieceBits] + uint64(b.offset)
}

// leave makes a hole.
func (r *roster) leave(place uint32) {
	r.berths.at(int(place)).h = 0
	r.holes++
}

// refill brings an item back that has left, to where it was, and gives its place. If its hole has been
// closed that takes as long as compact.
func (r *roster) refill(h handle, seq uint64, moved func(h handle, place uint32)) (place uint32) {
	at := r.before(seq) + 1
	if at < r.berths.n {
		if there, its := r.at(at); there == 0 && its == seq {
			r.berths.at(at).h = h
			r.holes--
			return uint32(at)
		}
	}
	wider := roster{next: r.next}
	for i := range r.berths.n {
		if i == at {
			place = wider.put(h, seq)
		}
		if h, seq := r.at(i); h != 0 {
			moved(h, wider.put(h, seq))
		}
	}
	if at == r.berths.n {
		place = wider.put(h, seq)
	}
	*r = wider
	return place
}

// sparse tells whether it is time to compact: holes are the majority.
func (r *roster) sparse() bool { return r.berths.n > 64 && r.holes > r.berths.n/2 }

// before gives the place of the newest berth below a sequence number; -1 if there is none.
func (r *roster) before(seq uint64) int {
	low, high := 0, r.berths.n
	for low < high {
		mid := int(uint(low+high) >> 1)
		if _, there := r.at(mid); there < seq {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1
}

// compact closes the holes, calling moved for each item with its new place. If that is done when it
// is time, it takes amortised constant time a removal.
func (r *roster) compact(moved func(h handle, place uint32)) {
	kept := roster{next: r.next}
	for i := range r.berths.n {
		if h, seq := r.at(i); h != 0 {
			moved(h, kept.put(h, seq))
		}
	}
	*r = kept
}
