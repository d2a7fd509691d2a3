package keyspace

import (
	"math"
	"slices"
)

// class lists the items of a table that die by the same clause of the rules. When an item of one class dies
// is told by one moment of its own, see entry.when, and by a limit that is the same for all at a time, see
// expiry.Policy.DeadTo: however the limit changes, in which order they die does not. So the items lie in
// buckets by that moment, and who looks for the dead looks into the first bucket and finds them there,
// however many others there are.
//
//  1. A bucket begins at a moment, and none of its items has an earlier one. A later one it may have: an
//     item whose end is put off stays where it is, which costs its write nothing, and is brought to where
//     it belongs when its bucket is the first and the limit has come to it.
//  2. So an item goes to the last bucket that does not begin after its moment. A full one is divided.
//  3. A bucket keeps a lower bound of the moments of its items, which is not beyond the beginning of the
//     next: if the first one's is beyond the limit, nothing is dead.
//  4. Buckets are not empty. One that has become sparse is added to the one before it, if that has room.
//
// Buckets are as wide as the items in them are far apart: what comes in the order of its moments, such as
// all that is written now, fills one after the other, and there are no buckets for times at which nothing
// dies.
type class struct {
	order   []span   // of the buckets that are in use, by where they begin
	buckets []bucket // by number
	vacant  []uint32 // numbers of buckets that are not in use
	n       int      // items
}

// span is the place of a bucket in the order.
type span struct {
	from   int64 // ms
	bucket uint32
}

type bucket struct {
	from     int64 // as in its span
	earliest int64 // ms; a lower bound
	items    []handle
}

const (
	bucketBits   = 8 // of a rank
	bucketSize   = 1 << bucketBits
	sparseBucket = bucketSize / 8
	noRank       = math.MaxUint32
)

// rank is where an entry stands in its class: the number of the bucket and the index in it. There are
// at most 2^24 buckets, which are some 2^30 items or more.
func rank(bucket uint32, at int) uint32 { return bucket<<bucketBits | uint32(at) }

// find gives the index in the order of the bucket for a moment. There must be buckets.
func (c *class) find(when int64) int {
	low, high := 0, len(c.order)
	if when >= c.order[high-1].from { // what is written now is what dies last, mostly
		return high - 1
	}
	for low < high {
		mid := int(uint(low+high) >> 1)
		if c.order[mid].from <= when {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return max(low-1, 0)
}

// add puts an entry that is in no class into this one.
func (c *class) add(s *slab, h handle, e *entry) {
	when := e.when()
	if len(c.order) == 0 {
		c.open(0, when)
	}
	i := c.find(when)
	if len(c.buckets[c.order[i].bucket].items) == bucketSize {
		i = c.makeRoom(s, i, when)
	}
	number := c.order[i].bucket
	b := &c.buckets[number]
	if when < b.from { // it is the first
		b.from, c.order[i].from = when, when
	}
	b.earliest = min(b.earliest, when)
	e.rank = rank(number, len(b.items))
	b.items = append(b.items, h)
	c.n++
}

// open makes a new bucket at an index of the order. Only the first of a class grows from nothing: there
// are many tables of few items.
func (c *class) open(i int, from int64) {
	b := bucket{from: from, earliest: from}
	if len(c.order) > 0 {
		b.items = make([]handle, 0, bucketSize)
	}
	number := uint32(len(c.buckets))
	if last := len(c.vacant) - 1; last >= 0 {
		number = c.vacant[last]
		c.vacant = c.vacant[:last]
		c.buckets[number] = b
	} else {
		c.buckets = append(c.buckets, b)
	}
	c.order = slices.Insert(c.order, i, span{from, number})
}

// makeRoom makes another bucket of what is, or will be, in a full one, and gives the index of the one for
// a moment. Where items come in order, or in the opposite order, the full one stays as good as full.
func (c *class) makeRoom(s *slab, i int, when int64) int {
	full := &c.buckets[c.order[i].bucket]
	if when < full.from {
		c.open(i, when)
		return i
	}
	later := 0
	for _, h := range full.items {
		if s.at(h).when() > when {
			later++
		}
	}
	middle, most := when, later
	if later > sparseBucket {
		middle, most = c.middle(s, i), bucketSize*3/4 // all may be of one moment: something stays in any case
	}
	c.split(s, i, middle, most)
	if when >= middle {
		return i + 1
	}
	return i
}

// middle gives a moment before which about half of the items of a full bucket die. The next one does not
// begin earlier.
func (c *class) middle(s *slab, i int) int64 {
	var some [bucketSize / 8]int64
	for at := range some { // not at equal distances: they may have come by turns from two places
		some[at] = s.at(c.buckets[c.order[i].bucket].items[at*8+at%8]).when()
	}
	slices.Sort(some[:])
	middle := some[len(some)/2]
	if i+1 < len(c.order) {
		middle = min(middle, c.order[i+1].from) // ends may have been put off beyond that
	}
	return middle
}

// split opens a bucket after a full one and moves items to it that do not die before it begins, most at
// most.
func (c *class) split(s *slab, i int, from int64, most int) {
	c.open(i+1, from)
	full, number := &c.buckets[c.order[i].bucket], c.order[i+1].bucket
	opened := &c.buckets[number]
	for at := bucketSize - 1; at >= 0 && len(opened.items) < most; at-- {
		h := full.items[at]
		if e := s.at(h); e.when() >= from {
			full.leave(s, at)
			e.rank = rank(number, len(opened.items))
			opened.items = append(opened.items, h)
		}
	}
}

// leave takes the item at an index out of a bucket: the last takes its place.
func (b *bucket) leave(s *slab, at int) {
	last := len(b.items) - 1
	moved := b.items[last]
	e := s.at(moved)
	e.rank = e.rank&^(bucketSize-1) | uint32(at)
	b.items[at] = moved
	b.items = b.items[:last]
}

// take takes an entry out.
func (c *class) take(s *slab, e *entry) {
	number := e.rank >> bucketBits
	b := &c.buckets[number]
	b.leave(s, int(e.rank&(bucketSize-1)))
	e.rank = noRank
	c.n--
	if len(b.items) < sparseBucket && len(c.order) > 1 || c.n == 0 {
		c.close(s, c.index(number))
	}
}

// index gives the index of a bucket in the order.
func (c *class) index(number uint32) int {
	from := c.buckets[number].from
	i := c.find(from) // the last of those that begin there
	for c.order[i].bucket != number {
		i--
	}
	return i
}

// close does away with a bucket that is empty, or that fits into the one before it.
func (c *class) close(s *slab, i int) {
	number := c.order[i].bucket
	b := &c.buckets[number]
	if len(b.items) > 0 {
		if i == 0 {
			return
		}
		into := c.order[i-1].bucket
		before := &c.buckets[into]
		if len(before.items)+len(b.items) > bucketSize*3/4 {
			return
		}
		for _, h := range b.items {
			s.at(h).rank = rank(into, len(before.items))
			before.items = append(before.items, h)
		}
		before.earliest = min(before.earliest, b.earliest)
	}
	*b = bucket{}
	c.vacant = append(c.vacant, number)
	c.order = slices.Delete(c.order, i, i+1)
	if c.n == 0 {
		*c = class{}
	}
}

// stays tells whether an entry of the class can stay where it is, now that its moment is another than it was.
func (c *class) stays(e *entry, was int64) bool {
	when := e.when()
	if when >= was {
		return true
	}
	b := &c.buckets[e.rank>>bucketBits]
	if when < b.from {
		return false
	}
	b.earliest = min(b.earliest, when)
	return true
}

// due tells whether an item may be dead, if those are whose moment is not beyond the limit.
func (c *class) due(limit int64) bool {
	return len(c.order) > 0 && c.buckets[c.order[0].bucket].earliest <= limit
}

// reap goes through the first bucket and calls remove for what is dead, up to n times: that has to take the
// entry out of the class. Items that die later than the next bucket begins are brought to where they
// belong. It tells how many it has looked at. Unless there are n, nothing of that bucket is due afterwards.
func (c *class) reap(s *slab, limit int64, n int, remove func(e *entry)) (looked, dead int) {
	number, next := c.order[0].bucket, int64(math.MaxInt64)
	if len(c.order) > 1 {
		next = c.order[1].from
	}
	earliest := int64(math.MaxInt64)
	for i := 0; c.first(number) && i < len(c.buckets[number].items); {
		h := c.buckets[number].items[i]
		e := s.at(h)
		looked++
		switch when := e.when(); {
		case when > next && when > limit:
			c.postpone(s, h, e)
		case when > limit:
			earliest = min(earliest, when)
			i++
		case dead == n:
			return looked, dead
		default:
			remove(e) // the last item comes to this place
			dead++
		}
	}
	if c.first(number) {
		c.buckets[number].earliest = earliest
	}
	return looked, dead
}

// first tells whether a bucket is the first.
func (c *class) first(number uint32) bool { return len(c.order) > 0 && c.order[0].bucket == number }

// postpone brings an entry of the first bucket to a later one. It comes there before it leaves, so that the
// number of the first is not given to another meanwhile.
func (c *class) postpone(s *slab, h handle, e *entry) {
	at := e.rank
	c.add(s, h, e)
	to := e.rank
	e.rank = at
	c.take(s, e)
	e.rank = to
}

// begun tells about how many items are in buckets of nothing but the dead, by a limit.
func (c *class) begun(limit int64) int {
	if len(c.order) == 0 || c.order[0].from > limit {
		return 0
	}
	return int(int64(c.find(limit)) * int64(c.n) / int64(len(c.order)))
}

// at gives the item at an index, counted through the buckets in their order.
func (c *class) at(i int) handle {
	for _, s := range c.order {
		items := c.buckets[s.bucket].items
		if i < len(items) {
			return items[i]
		}
		i -= len(items)
	}
	panic("keyspace: a class has fewer items than it should")
}

// each calls f for all items that may be dead by a limit.
func (c *class) each(limit int64, f func(h handle)) {
	for _, s := range c.order {
		if s.from > limit {
			return
		}
		for _, h := range c.buckets[s.bucket].items {
			f(h)
		}
	}
}
