package memtable

import (
	"cmp"
	"container/heap"
	"math"
	"slices"
	"strings"

	"mayfly/expiry"
)

// Ends merges the expiry queues of several tables. It visits the items that die in the order of their ends.
// Those of one end come in the order of ids. The tables must share a policy. It is valid while none of them
// changes.
type Ends struct {
	policy *expiry.Policy
	from   int64  // ms; the first end that is visited
	after  string // of items that end at from: the last id that is passed over
	all    bool   // none is passed over at from
	looked int
	dead   expiry.Limits
	nodes  endNodes
}

// endNode is a bucket that is read: its next item, or the whole bucket as long as it is not opened.
type endNode struct {
	t      *Table
	q      *expiryQueue
	from   int64 // the first end of this queue that is visited, at least Ends.from
	bucket int   // its index in the order of the queue
	at     int   // of the next item; -1 for a bucket that is not opened
	end    int64 // ms; nothing that is left of the bucket ends earlier
	e      *Entry
}

// NewEnds returns a reader of the items that die under a policy at or after a moment in ms. Of those that die
// at that moment it leaves out ids up to after. If all is true, after does not count.
func NewEnds(p *expiry.Policy, from int64, after string, all bool) *Ends {
	return &Ends{policy: p, from: from, after: after, all: all}
}

// Add adds the living items of a table, at a moment in ms.
func (x *Ends) Add(t *Table, now int64) {
	byDefault, byOwnTTL := x.policy.Expires()
	x.dead = x.policy.DeadLimits(now)
	if byDefault && t.byDefault.n > 0 {
		x.addQueue(t, &t.byDefault, max(x.from, x.endOf(&t.byDefault, t, x.dead.ByDefault)))
	}
	if byOwnTTL && t.byOwnTTL.n > 0 {
		x.addQueue(t, &t.byOwnTTL, max(x.from, x.dead.ByOwnTTL))
	}
}

func (x *Ends) addQueue(t *Table, q *expiryQueue, from int64) {
	heap.Push(&x.nodes, endNode{t: t, q: q, from: from, at: -1, end: x.endOf(q, t, q.order[0].from)})
}

// endOf returns the moment at which items of a queue die, in ms.
func (x *Ends) endOf(q *expiryQueue, t *Table, moment int64) int64 {
	if q == &t.byDefault {
		if end, ok := x.policy.End(moment, expiry.Inherit); ok {
			return end
		}
	}
	return moment
}

// Looked returns the number of items that were brought into order since the last call. They stay in order.
func (x *Ends) Looked() int {
	n := x.looked
	x.looked = 0
	return n
}

// Ready brings the part of the queues into order where reading begins. It stops after about most items, and
// reports whether nothing was left.
func (x *Ends) Ready(most int) bool {
	for len(x.nodes) > 0 && x.nodes[0].at < 0 && x.looked < most {
		x.open()
	}
	return len(x.nodes) == 0 || x.nodes[0].at >= 0
}

// Next returns the next item, its table and its end in ms. Ready and End must have returned true.
func (x *Ends) Next() (t *Table, e *Entry, end int64) {
	n := &x.nodes[0]
	t, e, end = n.t, n.e, n.end
	n.at++
	if n.read(x) {
		heap.Fix(&x.nodes, 0)
	} else {
		heap.Remove(&x.nodes, 0)
	}
	return t, e, end
}

// End returns the end of the next item in ms. Ready must have returned true. ok is false if there is none.
func (x *Ends) End() (end int64, ok bool) {
	if len(x.nodes) == 0 {
		return 0, false
	}
	return x.nodes[0].end, true
}

// open replaces the first node, a bucket, by its items and by the bucket that follows.
func (x *Ends) open() {
	n := x.nodes[0]
	q := n.q
	for {
		if !q.isOrdered(q.order[n.bucket].bucket) {
			looked, left := q.putInOrder(n.t, n.bucket)
			x.looked += looked
			if !left { // another bucket is at its place
				if n.bucket == len(q.order) {
					heap.Remove(&x.nodes, 0)
					return
				}
				break
			}
		}
		if n.bucket+1 == len(q.order) || x.endOf(q, n.t, q.order[n.bucket+1].from) >= n.from {
			opened := n
			opened.at = opened.begin(x)
			if opened.read(x) {
				heap.Push(&x.nodes, opened)
			}
			if n.bucket++; n.bucket == len(q.order) {
				x.remove(&n)
				return
			}
			break
		}
		n.bucket++ // all its items end earlier
		if !q.isOrdered(q.order[n.bucket].bucket) {
			break // Ready counts
		}
	}
	// Only an opened bucket can be before the node in the heap.
	n.end = x.endOf(q, n.t, q.order[n.bucket].from)
	at := slices.IndexFunc(x.nodes, func(other endNode) bool { return other.q == q && other.at < 0 })
	x.nodes[at] = n
	heap.Fix(&x.nodes, at)
}

// remove removes the node of a queue whose buckets are all opened.
func (x *Ends) remove(n *endNode) {
	heap.Remove(&x.nodes, slices.IndexFunc(x.nodes, func(other endNode) bool { return other.q == n.q && other.at < 0 }))
}

// begin returns the index of the first item of an ordered bucket that is visited.
func (n *endNode) begin(x *Ends) int {
	items := n.q.buckets[n.q.order[n.bucket].bucket].items
	first := n.t.slab.at(items[0])
	if x.endOf(n.q, n.t, n.q.moment(first)) > n.from {
		return 0
	}
	at, _ := slices.BinarySearchFunc(items, n.from, func(h Handle, from int64) int {
		e := n.t.slab.at(h)
		if c := cmp.Compare(x.endOf(n.q, n.t, n.q.moment(e)), from); c != 0 {
			return c
		}
		if n.from == x.from && (x.all || n.t.ID(e) > x.after) {
			return 0
		}
		return -1
	})
	return at
}

// read reads the next item of an opened bucket. It returns false behind the last. It passes over items with a
// cap that the other queue visits, and over those that are dead by the other.
func (n *endNode) read(x *Ends) bool {
	items := n.q.buckets[n.q.order[n.bucket].bucket].items
	for ; n.at < len(items); n.at++ {
		n.e = n.t.slab.at(items[n.at])
		if _, by := n.e.Ending(x.policy); n.e.capped() && (n.e.Within(x.dead) || (by == expiry.ByDocument) != n.q.byOwnTTL) {
			continue
		}
		n.end = x.endOf(n.q, n.t, n.q.moment(n.e))
		return true
	}
	return false
}

// endNodes is a heap of nodes, the first end first. It implements [heap.Interface].
type endNodes []endNode

func (h endNodes) Len() int { return len(h) }

func (h endNodes) Less(i, j int) bool {
	a, b := &h[i], &h[j]
	switch {
	case a.end != b.end:
		return a.end < b.end
	case a.at < 0 || b.at < 0:
		return a.at < 0 && b.at >= 0 // a bucket may hold items of any id
	}
	return a.t.ID(a.e) < b.t.ID(b.e)
}

func (h endNodes) Swap(i, j int) { h[i], h[j] = h[j], h[i] }

func (h *endNodes) Push(x any) { *h = append(*h, x.(endNode)) }

func (h *endNodes) Pop() any {
	last := len(*h) - 1
	n := (*h)[last]
	(*h)[last] = endNode{}
	*h = (*h)[:last]
	return n
}

// RemoveDead calls remove for up to n of the items within limits, which must take each out of the table. It
// looks at a few buckets at most, and reports whether more may be within the limits.
func (t *Table) RemoveDead(l expiry.Limits, n int, remove func(*Entry)) (more bool) {
	dead, drawn := 0, 0
	reap := func(q *expiryQueue, limit int64) {
		for dead < n && drawn < 2*bucketSize && q.due(limit) {
			looked, removed := q.reap(&t.slab, limit, n-dead, remove)
			dead, drawn = dead+removed, drawn+looked
		}
	}
	reap(&t.byDefault, l.ByDefault)
	reap(&t.byOwnTTL, l.ByOwnTTL)
	return t.byDefault.due(l.ByDefault) || t.byOwnTTL.due(l.ByOwnTTL)
}

// isOrdered reports whether a bucket is as putInOrder has left it.
func (q *expiryQueue) isOrdered(number uint32) bool {
	i := int(number >> 6)
	return i < len(q.ordered) && q.ordered[i]>>(number&63)&1 == 1
}

// setOrdered marks a bucket as ordered.
func (q *expiryQueue) setOrdered(number uint32) {
	for int(number>>6) >= len(q.ordered) {
		q.ordered = append(q.ordered, 0)
	}
	q.ordered[number>>6] |= 1 << (number & 63)
}

// changed removes the mark of an ordered bucket. Without queries for ends there are none.
func (q *expiryQueue) changed(number uint32) {
	if i := int(number >> 6); i < len(q.ordered) {
		q.ordered[i] &^= 1 << (number & 63)
	}
}

// putInOrder moves the items of a bucket that die after the beginning of the next one to their place. It
// sorts the others by moment and id. It returns the number of items that it has looked at. left is false if
// none was left; then the bucket is closed.
func (q *expiryQueue) putInOrder(t *Table, i int) (looked int, left bool) {
	s := &t.slab
	number, next := q.order[i].bucket, int64(math.MaxInt64)
	if i+1 < len(q.order) {
		next = q.order[i+1].from
	}
	type item struct {
		moment int64
		h      Handle
	}
	var few [bucketSize]item
	stay := few[:0]
	for at := 0; at < len(q.buckets[number].items); {
		h := q.buckets[number].items[at]
		e := s.at(h)
		looked++
		moment := q.moment(e)
		if moment <= next {
			stay = append(stay, item{moment, h})
			at++
			continue
		}
		was := q.place(s, h, e)
		q.add(s, h, e)
		is := q.place(s, h, e)
		q.setPlace(s, h, e, was)
		q.take(s, &q.buckets[number], at)
		q.setPlace(s, h, e, is)
		q.n--
	}
	if len(stay) == 0 {
		q.closeBucket(s, i)
		return looked, false
	}
	compare := func(a, b item) int {
		if a.moment != b.moment {
			return cmp.Compare(a.moment, b.moment)
		}
		return strings.Compare(t.ID(s.at(a.h)), t.ID(s.at(b.h)))
	}
	if !slices.IsSortedFunc(stay, compare) {
		slices.SortFunc(stay, compare)
		items := q.buckets[number].items
		for at, it := range stay {
			items[at] = it.h
			q.setPlace(s, it.h, s.at(it.h), queuePos(number, at))
		}
	}
	q.buckets[number].raise(stay[0].moment)
	q.setOrdered(number)
	return looked, true
}
