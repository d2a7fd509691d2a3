package memtable

// index finds entries by id: a hash table whose chains are linked by next. It grows by linear hashing: every
// few insertions split one more bucket in two. So no insertion waits for a rehash of the whole table, and no
// memory is reserved for growth.
//
// The bits of mask select an entry's bucket from its hash. If that bucket does not exist yet, the highest of
// the bits is left out.
type index struct {
	buckets chunkedSlice[Handle]
	mask    uint32 // the least 2^k-1 that covers the number of the last bucket
	n       int    // entries
}

// minBuckets is the least number of buckets of an index that ever had an entry.
const minBuckets = 4

// bucket returns the head of a hash's chain. There must be buckets.
func (x *index) bucket(hash uint32) *Handle {
	b := int(hash & x.mask)
	if b >= x.buckets.n {
		b = int(hash & (x.mask >> 1))
	}
	return x.buckets.at(b)
}

// insert adds an entry whose hash is set.
func (x *index) insert(s *slab, h Handle, e *Entry) {
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

// remove takes out an entry that the index has.
func (x *index) remove(s *slab, h Handle, e *Entry) {
	at := x.bucket(e.hash)
	for *at != h {
		at = &s.at(*at).next
	}
	*at = e.next
	x.n--
	// At most two merges a removal keep pace with removals and spread out a large decline.
	for range 2 {
		if x.n < x.buckets.n/4 && x.buckets.n > minBuckets {
			x.merge(s)
		}
	}
}

// split adds a bucket and moves the entries that belong there.
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
	x.buckets.truncate(int(number))
	if number == x.mask>>1+1 {
		x.mask >>= 1
	}
}
