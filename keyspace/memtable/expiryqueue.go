package memtable

import (
	"math"
	"slices"

	"mayfly/expiry"
)

// expiryQueue lists those items of a table that expire by the same clause of the rules: by the container's
// default or by an end of their own. An item with a cap is in both queues. One moment of an item (its last
// write or its own end) and a limit common to all items (expiry.Policy.DeadTo) decide whether it is dead by
// the clause. However the limit changes, items die in the order of their moments. So they lie in buckets by
// moment. A search for the dead looks into the first bucket only, however many items there are.
//
//  1. A bucket begins at a moment, and no item in it has an earlier one. Later ones it may have: an item
//     whose moment is postponed stays in place, which costs the write nothing. It moves when its bucket is
//     the first and the limit has reached it.
//  2. So an item enters the last bucket that does not begin after its moment. A full bucket is split.
//  3. A bucket keeps a lower bound of its items' moments, at most the beginning of the next bucket. If that
//     of the first bucket is beyond the limit, nothing is dead.
//  4. Buckets are not empty. A sparse one is merged into the one before it, if that has room.
//
// Buckets are as wide as their items are far apart. Items that come in order of their moments, as most writes
// do, fill one bucket after the other. No buckets exist for times at which nothing dies.
type expiryQueue struct {
	byOwnTTL bool
	order    []span         // of the buckets in use, by beginning
	buckets  []bucket       // by number
	vacant   []uint32       // numbers of unused buckets
	n        int            // items
	waitBy   *expiry.Policy // by which waiting of the buckets counts; nil: it does not
	ordered  []uint64       // a bit for each bucket that putInOrder has sorted and nothing has changed since
}

// span is the place of a bucket in the order.
type span struct {
	from   int64 // ms
	bucket uint32
}

type bucket struct {
	from     int64 // as in its span
	earliest int64 // ms; a lower bound
	waiting  int64 // ms; the same of the items that were not passed over: see Table.EachWaiting
	items    []Handle
}

const (
	bucketBits   = 8 // of a queue position
	bucketSize   = 1 << bucketBits
	sparseBucket = bucketSize / 8
	notQueued    = math.MaxUint32
)

// queuePos encodes an entry's position in its queue: the bucket's number and the index in it. There are at
// most 2^24 buckets, for 2^30 items or more.
func queuePos(bucket uint32, at int) uint32 { return bucket<<bucketBits | uint32(at) }

// moment returns the time in ms that decides when an item dies by the queue's clause.
func (q *expiryQueue) moment(e *Entry) int64 {
	switch {
	case !q.byOwnTTL:
		return e.ts
	case e.capped():
		at, _ := expiry.Cap(e.expireAt)
		return at
	}
	return e.expireAt
}

// place returns the position of a queued entry. That of a capped entry in the queue by default lies beside
// it.
func (q *expiryQueue) place(s *slab, h Handle, e *Entry) uint32 {
	if e.capped() && !q.byOwnTTL {
		return *s.capped.at(h)
	}
	return e.queuePos
}

// setPlace sets the position of an entry.
func (q *expiryQueue) setPlace(s *slab, h Handle, e *Entry, pos uint32) {
	if e.capped() && !q.byOwnTTL {
		*s.word(&s.capped, h) = pos
	} else {
		e.queuePos = pos
	}
}

// bucketFor returns the index in the order of the bucket for a moment. There must be buckets.
func (q *expiryQueue) bucketFor(moment int64) int {
	low, high := 0, len(q.order)
	if moment >= q.order[high-1].from { // most writes expire last
		return high - 1
	}
	for low < high {
		mid := int(uint(low+high) >> 1)
		if q.order[mid].from <= moment {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return max(low-1, 0)
}

// add queues an entry that is in no queue.
func (q *expiryQueue) add(s *slab, h Handle, e *Entry) {
	moment := q.moment(e)
	if len(q.order) == 0 {
		q.openBucket(0, moment)
	}
	i := q.bucketFor(moment)
	if len(q.buckets[q.order[i].bucket].items) == bucketSize {
		i = q.makeRoom(s, i, moment)
	}
	number := q.order[i].bucket
	b := &q.buckets[number]
	if moment < b.from { // it is the first bucket
		b.from, q.order[i].from = moment, moment
	}
	b.waitFrom(moment)
	q.changed(number)
	q.setPlace(s, h, e, queuePos(number, len(b.items)))
	b.items = append(b.items, h)
	q.n++
}

// openBucket adds a bucket at an index of the order. Only the first bucket of a queue grows by append: there
// are many tables of few items.
func (q *expiryQueue) openBucket(i int, from int64) {
	b := bucket{from: from, earliest: from, waiting: from}
	if len(q.order) > 0 {
		b.items = make([]Handle, 0, bucketSize)
	}
	number := uint32(len(q.buckets))
	if last := len(q.vacant) - 1; last >= 0 {
		number = q.vacant[last]
		q.vacant = q.vacant[:last]
		q.buckets[number] = b
	} else {
		q.buckets = append(q.buckets, b)
	}
	q.order = slices.Insert(q.order, i, span{from, number})
}

// makeRoom adds a bucket beside a full one and returns the index of the bucket for a moment. If items come in
// order, or in reverse order, the full bucket stays nearly full.
func (q *expiryQueue) makeRoom(s *slab, i int, moment int64) int {
	full := &q.buckets[q.order[i].bucket]
	if moment < full.from {
		q.openBucket(i, moment)
		return i
	}
	later := 0
	for _, h := range full.items {
		if q.moment(s.at(h)) > moment {
			later++
		}
	}
	middle, most := moment, later
	if later > sparseBucket {
		middle, most = q.median(s, i), bucketSize*3/4 // even if all moments are equal, some items stay
	}
	q.split(s, i, middle, most)
	if moment >= middle {
		return i + 1
	}
	return i
}

// median returns a moment before which about half of the items of a full bucket die. It is not beyond the
// beginning of the next bucket.
func (q *expiryQueue) median(s *slab, i int) int64 {
	var some [bucketSize / 8]int64
	for at := range some { // at unequal distances: two sources may have written in turns
		some[at] = q.moment(s.at(q.buckets[q.order[i].bucket].items[at*8+at%8]))
	}
	slices.Sort(some[:])
	middle := some[len(some)/2]
	if i+1 < len(q.order) {
		middle = min(middle, q.order[i+1].from) // moments may have been postponed beyond that
	}
	return middle
}

// split opens a bucket after a full one. It moves up to most items that do not die before the new bucket
// begins.
func (q *expiryQueue) split(s *slab, i int, from int64, most int) {
	q.openBucket(i+1, from)
	full, number := &q.buckets[q.order[i].bucket], q.order[i+1].bucket
	opened := &q.buckets[number]
	q.changed(q.order[i].bucket)
	for at := bucketSize - 1; at >= 0 && len(opened.items) < most; at-- {
		h := full.items[at]
		if e := s.at(h); q.moment(e) >= from {
			q.take(s, full, at)
			q.setPlace(s, h, e, queuePos(number, len(opened.items)))
			opened.items = append(opened.items, h)
		}
	}
}

// take takes the item at an index out of a bucket. The last item takes its place.
func (q *expiryQueue) take(s *slab, b *bucket, at int) {
	last := len(b.items) - 1
	moved := b.items[last]
	e := s.at(moved)
	q.setPlace(s, moved, e, q.place(s, moved, e)&^(bucketSize-1)|uint32(at))
	b.items[at] = moved
	b.items = b.items[:last]
}

// remove takes out an entry.
func (q *expiryQueue) remove(s *slab, h Handle, e *Entry) {
	pos := q.place(s, h, e)
	number := pos >> bucketBits
	b := &q.buckets[number]
	q.changed(number)
	q.take(s, b, int(pos&(bucketSize-1)))
	q.setPlace(s, h, e, notQueued)
	q.n--
	if len(b.items) < sparseBucket && len(q.order) > 1 || q.n == 0 {
		q.closeBucket(s, q.indexOf(number))
	}
}

// indexOf returns the index of a bucket in the order.
func (q *expiryQueue) indexOf(number uint32) int {
	i := q.bucketFor(q.buckets[number].from) // the last bucket with that beginning
	for q.order[i].bucket != number {
		i--
	}
	return i
}

// closeBucket removes a bucket that is empty or fits into the one before it.
func (q *expiryQueue) closeBucket(s *slab, i int) {
	number := q.order[i].bucket
	b := &q.buckets[number]
	if len(b.items) > 0 {
		if i == 0 {
			return
		}
		into := q.order[i-1].bucket
		before := &q.buckets[into]
		if len(before.items)+len(b.items) > bucketSize*3/4 {
			return
		}
		for _, h := range b.items {
			q.setPlace(s, h, s.at(h), queuePos(into, len(before.items)))
			before.items = append(before.items, h)
		}
		before.earliest, before.waiting = min(before.earliest, b.earliest), min(before.waiting, b.waiting)
		q.changed(into)
	}
	*b = bucket{}
	q.changed(number)
	q.vacant = append(q.vacant, number)
	q.order = slices.Delete(q.order, i, i+1)
	if q.n == 0 {
		*q = expiryQueue{byOwnTTL: q.byOwnTTL}
	}
}

// stays reports whether a queued entry can keep its place although its moment was another before.
func (q *expiryQueue) stays(s *slab, h Handle, e *Entry, was int64) bool {
	moment, number := q.moment(e), q.place(s, h, e)>>bucketBits
	q.changed(number)
	if moment >= was {
		return true
	}
	b := &q.buckets[number]
	if moment < b.from {
		return false
	}
	b.waitFrom(moment)
	return true
}

// waitFrom notes that an item of the bucket has a moment.
func (b *bucket) waitFrom(moment int64) {
	b.earliest, b.waiting = min(b.earliest, moment), min(b.waiting, moment)
}

// raise notes the first moment of the items of the bucket.
func (b *bucket) raise(first int64) { b.earliest, b.waiting = first, max(b.waiting, first) }

// due reports whether an item may be dead by a limit.
func (q *expiryQueue) due(limit int64) bool {
	return len(q.order) > 0 && q.buckets[q.order[0].bucket].earliest <= limit
}

// reap goes through the first bucket and calls remove for up to n dead entries; remove must take them out of
// the queue. Items that die after the beginning of the next bucket move to their place. It returns how many
// items it has looked at and removed. If it finds fewer than n, nothing in that bucket is due afterwards.
func (q *expiryQueue) reap(s *slab, limit int64, n int, remove func(e *Entry)) (looked, dead int) {
	number, next := q.order[0].bucket, int64(math.MaxInt64)
	if len(q.order) > 1 {
		next = q.order[1].from
	}
	earliest := int64(math.MaxInt64)
	for i := 0; q.isFirst(number) && i < len(q.buckets[number].items); {
		h := q.buckets[number].items[i]
		e := s.at(h)
		looked++
		switch moment := q.moment(e); {
		case moment > next && moment > limit:
			q.postpone(s, h, e)
		case moment > limit:
			earliest = min(earliest, moment)
			i++
		case dead == n:
			return looked, dead
		default:
			remove(e) // the last item of the bucket moves to i
			dead++
		}
	}
	if q.isFirst(number) {
		q.buckets[number].raise(earliest)
	}
	return looked, dead
}

func (q *expiryQueue) isFirst(number uint32) bool {
	return len(q.order) > 0 && q.order[0].bucket == number
}

// postpone moves an entry of the first bucket to a later one. It is added before it is removed, so that the
// first bucket's number is not reused in between.
func (q *expiryQueue) postpone(s *slab, h Handle, e *Entry) {
	at := q.place(s, h, e)
	q.add(s, h, e)
	to := q.place(s, h, e)
	q.setPlace(s, h, e, at)
	q.remove(s, h, e)
	q.setPlace(s, h, e, to)
}

// estimateDue estimates how many items are in buckets that have begun by a limit.
func (q *expiryQueue) estimateDue(limit int64) int {
	if len(q.order) == 0 || q.order[0].from > limit {
		return 0
	}
	return int(int64(q.bucketFor(limit)) * int64(q.n) / int64(len(q.order)))
}

// at returns the item at an index, counted through the buckets in their order.
func (q *expiryQueue) at(i int) Handle {
	for _, s := range q.order {
		items := q.buckets[s.bucket].items
		if i < len(items) {
			return items[i]
		}
		i -= len(items)
	}
	panic("memtable: an expiry queue has fewer items than counted")
}

// random returns a random item of a queue that is not empty. Few buckets are nearly empty, so some draws
// suffice. Otherwise it counts through the buckets.
func (q *expiryQueue) random(intN func(n int) int) Handle {
	if len(q.order) > 1 {
		for range 16 {
			items := q.buckets[q.order[intN(len(q.order))].bucket].items
			if at := intN(bucketSize); at < len(items) {
				return items[at]
			}
		}
	}
	return q.at(intN(q.n))
}

// each calls f for every item that may be dead by a limit.
func (q *expiryQueue) each(limit int64, f func(h Handle)) {
	for _, s := range q.order {
		if s.from > limit {
			return
		}
		for _, h := range q.buckets[s.bucket].items {
			f(h)
		}
	}
}
