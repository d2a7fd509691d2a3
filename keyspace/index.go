package keyspace

import "hash/maphash"

// index finds the entries of a table by their ids: a hash table with a chain of entries in each bucket,
// by next. It grows by linear hashing: with every few items that come one more bucket splits in
// two, so that no insertion waits for the whole table to be hashed again, and no memory is set aside
// for items to come.
//
// An item lies in the bucket that the bits of mask name in its hash, or if there is no such bucket yet,
// that which they name without the highest of them.
type index struct {
	buckets pile[handle]
	mask    uint32 // the least 2^k-1 that covers the number of the last bucket
	n       int    // entries
}

// minBuckets is how many an index has at the least, unless it never had an entry.
const minBuckets = 4

// hashSeed is drawn at each start: nobody can choose ids that fall into one bucket.
var hashSeed = maphash.MakeSeed()

func hashOf(id string) uint32 { return uint32(maphash.String(hashSeed, id)) }

// bucket gives the head of the chain in which a hash belongs. There must be buckets.
func (x *index) bucket(hash uint32) *handle {
	b := int(hash & x.mask)
	if b >= x.buckets.n {
		b = int(hash & (x.mask >> 1))
	}
	return x.buckets.at(b)
}

// insert adds an entry with its hash set.
func (x *index) insert(s *slab, h handle, e *entry) {
	for x.buckets.n < minBuckets {
		x.buckets.push(0)
		x.mask = minBuckets - 1
	}
	b := x.bucket(e.hash)
	e.next = *b
	*b = h
	x.n++
	for x.n > x.buckets.n/4*3 {
		x.split(s)
	}
}

// remove takes an entry out, which must be there.
func (x *index) remove(s *slab, h handle, e *entry) {
	at := x.bucket(e.hash)
	for *at != h {
		at = &s.at(*at).next
	}
	*at = e.next
	x.n--
	// Twice at most: it keeps pace with what goes, and an index that is to shrink much does it by and by.
	for range 2 {
		if x.n < x.buckets.n/4 && x.buckets.n > minBuckets {
			x.merge(s)
		}
	}
}

// split adds a bucket, and moves to it what belongs there.
func (x *index) split(s *slab) {
	number := uint32(x.buckets.n)
	if number > x.mask {
		x.mask = x.mask<<1 | 1
	}
	x.buckets.push(0)
	added := x.buckets.at(int(number))
	at := x.buckets.at(int(number & (x.mask >> 1)))
	for *at != 0 {
		h := *at
		e := s.at(h)
		if e.hash&x.mask != number {
			at = &e.next
			continue
		}
		*at = e.next
		e.next = *added
		*added = h
	}
}

// merge undoes the last split.
func (x *index) merge(s *slab) {
	number := uint32(x.buckets.n - 1)
	chain := *x.buckets.at(int(number))
	at := x.buckets.at(int(number & (x.mask >> 1)))
	for *at != 0 {
		at = &s.at(*at).next
	}
	*at = chain
	x.buckets.cut(int(number))
	if number == x.mask>>1+1 {
		x.mask >>= 1
	}
}
