package deathlog

import (
	"container/heap"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// Reader merges the parts of a log in the order of ids. It takes pieces of each part, so that no partition is
// locked for long.
type Reader struct {
	reverse bool
	expired expiry.Limits // left out
	cursors []cursor
}

// cursor is the place in one part.
type cursor struct {
	partition   int
	from, below string // what is left: texts of ids between them
	piece       int    // entries to take next
	more        bool   // the part may have more
	taken       []taken
	at          int // of the next in taken
}

// taken is an entry as the table has it. Its texts are views, safe to keep.
type taken struct {
	id string
	it record.Item
}

const (
	firstPiece = 8   // entries; 16 parts make 128, and most reads want 100
	lastPiece  = 128 // about 20 µs
)

// NewReader returns a reader of the entries with ids between two, both included, oldest first or newest
// first. It leaves out those within limits, which have expired.
func NewReader(partitions int, from, to streamid.ID, expired expiry.Limits, reverse bool) *Reader {
	from = maxID(from, visible(expired))
	r := &Reader{reverse: reverse, expired: expired, cursors: make([]cursor, partitions)}
	memory := make([]taken, partitions*firstPiece)
	lower, upper := below(from), above(to)
	for i := range r.cursors {
		part := memory[i*firstPiece:][:0:firstPiece]
		r.cursors[i] = cursor{partition: i, from: lower, below: upper, piece: firstPiece, more: lower < upper, taken: part}
	}
	return r
}

// Run visits the entries until visit returns false. It calls within to lock a partition while it takes a
// piece; that calls take with the part, nil if there is none.
func (r *Reader) Run(within func(partition int, take func(p *Part)), visit func(e Entry) (more bool)) {
	next := order{make([]*cursor, 0, len(r.cursors)), r.reverse}
	for i := range r.cursors {
		r.fill(&r.cursors[i], within)
		if c := &r.cursors[i]; len(c.taken) > 0 {
			next.cursors = append(next.cursors, c)
		}
	}
	heap.Init(&next)
	for next.Len() > 0 {
		c := next.cursors[0]
		first := &c.taken[c.at]
		e, err := ReadEntry(first.id, first.it)
		if err == nil && !visit(e) {
			return
		}
		if c.at++; c.at == len(c.taken) {
			r.fill(c, within)
		}
		if len(c.taken) == 0 {
			heap.Pop(&next)
		} else {
			heap.Fix(&next, 0)
		}
	}
}

// fill takes the next piece of a part, which may be empty.
func (r *Reader) fill(c *cursor, within func(partition int, take func(p *Part))) {
	last := ""
	if len(c.taken) > 0 {
		last = c.taken[len(c.taken)-1].id
	}
	c.taken, c.at = c.taken[:0], 0
	if !c.more {
		return
	}
	switch {
	case last == "":
	case r.reverse:
		c.below = last
	default:
		c.from = last + "\x00"
	}
	c.more = false
	within(c.partition, func(p *Part) {
		if p != nil {
			r.take(c, p)
		}
	})
	c.piece = min(2*c.piece, lastPiece)
}

// take takes a piece of a part.
func (r *Reader) take(c *cursor, p *Part) {
	add := func(e *memtable.Entry) bool {
		if e.Within(r.expired) {
			return true
		}
		if len(c.taken) == c.piece {
			c.more = true
			return false
		}
		id, it := p.table.IDAndItem(e)
		c.taken = append(c.taken, taken{id, it})
		return true
	}
	if !r.reverse {
		p.ascend(c.from, func(e *memtable.Entry) bool { return p.table.ID(e) < c.below && add(e) })
		return
	}
	p.first = p.table.First(p.first)
	p.table.DescendFrom(c.below, p.first, func(_ memtable.Handle, e *memtable.Entry) bool {
		return p.table.ID(e) >= c.from && add(e)
	})
}

// order is the cursors with entries, the next one first. It implements [heap.Interface].
type order struct {
	cursors []*cursor
	reverse bool
}

func (o *order) Len() int { return len(o.cursors) }

func (o *order) Less(i, j int) bool {
	a, b := o.cursors[i], o.cursors[j]
	return a.taken[a.at].id < b.taken[b.at].id != o.reverse
}

func (o *order) Swap(i, j int) { o.cursors[i], o.cursors[j] = o.cursors[j], o.cursors[i] }
func (o *order) Push(c any)    { o.cursors = append(o.cursors, c.(*cursor)) }

func (o *order) Pop() any {
	last := len(o.cursors) - 1
	c := o.cursors[last]
	o.cursors = o.cursors[:last]
	return c
}
