package elements

import (
	"cmp"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
)

// Scored is a member of a sorted set with its score.
type Scored struct {
	Score  float64
	Member string
}

// Before is the order of a sorted set: by score, then by the bytes of the member.
func (s Scored) Before(t Scored) bool {
	return s.Score < t.Score || s.Score == t.Score && s.Member < t.Member
}

// Compare compares two members in that order.
func (s Scored) Compare(t Scored) int {
	return cmp.Or(cmp.Compare(s.Score, t.Score), cmp.Compare(s.Member, t.Member))
}

// AppendScore appends a score as the value of its element: the shortest text that stands for it.
func AppendScore(dst []byte, score float64) []byte {
	return strconv.AppendFloat(dst, score, 'g', -1, 64)
}

// ParseScore is the inverse of [AppendScore].
func ParseScore(text string) (score float64, ok bool) {
	score, err := strconv.ParseFloat(text, 64)
	return score, err == nil && !math.IsNaN(score)
}

// ScoredOf returns the member of an element. Its text is a view of a body.
func ScoredOf(e Element) Scored {
	score, _ := ParseScore(e.Value) // a start has checked it
	return Scored{score, e.Field}
}

// Element returns the element of a member. -0 is 0, as in a small sorted set of Redis.
func (s Scored) Element() Element {
	var buf [32]byte
	return Element{Field: s.Member, Value: string(AppendScore(buf[:0], s.Score+0))}
}

// Order is the members of a sorted set in their order. They lie in chunks, and these in parts: counts find a
// rank, first scores a member. A tree of members would take nearly twice the memory: a pointer, an allocation
// and spare places for each. It is not safe for concurrent use; a copy is, beside it.
type Order struct {
	parts []*orderPart // none is empty
	owner *owner       // of what may be changed: the rest belongs to copies, too
	mine  bool         // parts may be changed
	count int
	bytes int64          // of the members
	twice map[Scored]int // how often those are in a second page: while a member moves, before the first is written
}

// owner is different for each order, and for each state of one that was copied.
type owner struct{ _ byte }

// orderPart is chunks that follow each other.
type orderPart struct {
	owner  *owner
	chunks []chunkRef // none is empty
	count  int        // members
}

// chunkRef is a chunk and what a search wants to know of it.
type chunkRef struct {
	first float64 // score
	count int32
	*chunk
}

const mostChunks = 512 // of a part

// NewOrder returns an order without members.
func NewOrder() *Order { return &Order{owner: new(owner), mine: true} }

// OrderOf returns the members of a body in their order.
func OrderOf(body string) *Order {
	all := make([]Scored, 0, 32)
	for e := range Each(body) {
		all = append(all, ScoredOf(e))
	}
	slices.SortFunc(all, Scored.Compare)
	o := NewOrder()
	for len(all) > 0 {
		c, n := newChunk(o.owner, min(len(all), mostMembers), min(len(body), mostText)), 0
		for ; n < len(all) && c.fits(all[n]); n++ {
			c.insert(n, all[n])
		}
		o.insertChunk(len(o.parts)-1, math.MaxInt, c)
		all = all[n:]
	}
	return o
}

// Replace follows a page whose body was one and is another. Both may be without what they have in common.
func (o *Order) Replace(was, is string) {
	for e := range Each(was) {
		if there, _, _, found := Find(is, e.Field); !found || there.Value != e.Value {
			o.remove(ScoredOf(e))
		}
	}
	for e := range Each(is) {
		if there, _, _, found := Find(was, e.Field); !found || there.Value != e.Value {
			o.add(ScoredOf(e))
		}
	}
}

// place returns the part, the chunk there and the index in it of a member, or those that it would have.
func (o *Order) place(s Scored) (p, k, i int, found bool) {
	if len(o.parts) == 0 {
		return 0, 0, 0, false
	}
	p, k = o.search(func(r *chunkRef) bool { return r.first > s.Score || r.first == s.Score && r.member(0) > s.Member })
	i, found = o.parts[p].chunks[k].place(s)
	return p, k, i, found
}

// search returns the last chunk that does not begin behind something, or the first chunk. There must be one.
func (o *Order) search(behind func(r *chunkRef) bool) (p, k int) {
	p = max(sort.Search(len(o.parts), func(p int) bool { return behind(&o.parts[p].chunks[0]) })-1, 0)
	chunks := o.parts[p].chunks
	return p, max(sort.Search(len(chunks), func(k int) bool { return behind(&chunks[k]) })-1, 0)
}

// change returns a part that may be changed.
func (o *Order) change(p int) *orderPart {
	if !o.mine {
		o.parts, o.mine = slices.Clone(o.parts), true
	}
	if o.parts[p].owner != o.owner {
		o.parts[p] = &orderPart{o.owner, slices.Clone(o.parts[p].chunks), o.parts[p].count}
	}
	return o.parts[p]
}

// changeChunk returns a chunk that may be changed, of a part that may be.
func (o *Order) changeChunk(at *orderPart, k int) *chunkRef {
	r := &at.chunks[k]
	if r.owner != o.owner {
		c := newChunk(o.owner, len(r.scores), len(r.text)-r.gone)
		c.take(r.chunk, 0)
		r.chunk = c
	}
	return r
}

// noteChange notes that the members of a chunk have changed. One that has none is no chunk any more.
func (o *Order) noteChange(p, k int) {
	at := o.parts[p]
	r := &at.chunks[k]
	more := len(r.scores) - int(r.count)
	o.count, at.count, r.count = o.count+more, at.count+more, r.count+int32(more)
	if r.count > 0 {
		r.first = r.scores[0]
		return
	}
	if at.removeChunk(k); len(at.chunks) == 0 {
		o.parts = slices.Delete(o.parts, p, p+1)
	}
}

// removeChunk removes a chunk from a part that may be changed.
func (at *orderPart) removeChunk(k int) {
	at.chunks = tight(slices.Delete(at.chunks, k, k+1))
}

// joinParts makes one of two parts that have few chunks, if the first may be changed.
func (o *Order) joinParts(p int) {
	const few = mostChunks / 4
	if p+1 < len(o.parts) && len(o.parts[p].chunks) < few && len(o.parts[p+1].chunks) < few {
		at, next := o.parts[p], o.parts[p+1]
		at.chunks, at.count = append(at.chunks, next.chunks...), at.count+next.count
		o.parts = slices.Delete(o.parts, p+1, p+2)
	}
}

// insertChunk inserts a chunk at a place of a part, or at its end.
func (o *Order) insertChunk(p, k int, c *chunk) {
	if p < 0 {
		o.parts, o.mine, p = []*orderPart{{owner: o.owner}}, true, 0
	}
	at := o.change(p)
	k = min(k, len(at.chunks))
	at.chunks = slices.Insert(at.chunks, k, chunkRef{chunk: c})
	if o.noteChange(p, k); len(at.chunks) <= mostChunks {
		return
	}
	half := mostChunks / 2
	if p == len(o.parts)-1 && k == mostChunks { // members come in their order
		half = mostChunks
	}
	next := &orderPart{owner: o.owner, chunks: slices.Clone(at.chunks[half:])}
	for i := range next.chunks {
		next.count += int(next.chunks[i].count)
	}
	clear(at.chunks[half:])
	at.chunks, at.count = at.chunks[:half], at.count-next.count
	o.parts = slices.Insert(o.parts, p+1, next)
}

func (o *Order) add(s Scored) {
	for {
		p, k, i, found := o.place(s)
		switch {
		case found:
			if o.twice == nil {
				o.twice = make(map[Scored]int)
			}
			s.Member = strings.Clone(s.Member) // the body will go
			o.twice[s]++
			return
		case o.insert(p, k, i, s):
			o.bytes += int64(len(s.Member))
			return
		}
	}
}

// insert inserts a member at its place. If the chunk there is full, it cuts that and returns false.
func (o *Order) insert(p, k, i int, s Scored) bool {
	if len(o.parts) == 0 {
		o.insertChunk(-1, 0, chunkOf(o.owner, s))
		return true
	}
	at := o.change(p)
	if n := k + 1; i == len(at.chunks[k].scores) && n < len(at.chunks) && !at.chunks[k].fits(s) && at.chunks[n].fits(s) {
		k, i = n, 0
	}
	r := &at.chunks[k]
	half := len(r.scores) / 2
	switch {
	case r.fits(s):
		o.changeChunk(at, k).insert(i, s)
		o.noteChange(p, k)
	case i == len(r.scores) && (half == 0 || p == len(o.parts)-1 && k == len(at.chunks)-1):
		o.insertChunk(p, k+1, chunkOf(o.owner, s))
	case half == 0 || i == 0 && p == 0 && k == 0:
		o.insertChunk(p, k, chunkOf(o.owner, s))
	default:
		tail := o.changeChunk(at, k).cut(half)
		o.noteChange(p, k)
		o.insertChunk(p, k+1, tail)
		return false
	}
	return true
}

func (o *Order) remove(s Scored) {
	if n := o.twice[s]; n > 1 {
		o.twice[s] = n - 1
		return
	} else if n == 1 {
		delete(o.twice, s)
		return
	}
	p, k, i, found := o.place(s)
	if !found {
		return
	}
	o.bytes -= int64(len(s.Member))
	at := o.change(p)
	if r := &at.chunks[k]; len(r.scores) > 1 {
		o.changeChunk(at, k).remove(i)
	} else {
		r.chunk = &chunk{owner: o.owner} // it goes
	}
	n := len(at.chunks[k].scores)
	o.noteChange(p, k)
	for left := k; n > 0 && n < mostMembers/4 && left >= max(k-1, 0); left-- {
		if left+1 < len(at.chunks) && at.chunks[left].joins(at.chunks[left+1].chunk) {
			right := at.chunks[left+1].chunk
			o.changeChunk(at, left).take(right, 0)
			at.chunks[left].count += int32(len(right.scores))
			at.removeChunk(left + 1)
			o.joinParts(p)
			return
		}
	}
}

// Settled reports whether each member is in one page.
func (o *Order) Settled() bool { return len(o.twice) == 0 }

// Bytes returns the memory of the order, about.
func (o *Order) Bytes() int64 {
	const member = 14 // with its share of a chunk and of what that has to spare
	const order = 200 // that has members
	return min(int64(o.count), 1)*order + int64(o.count)*member + o.bytes*9/8
}

// Copy returns a copy, in constant time.
func (o *Order) Copy() *Order {
	o.owner, o.mine = new(owner), false
	return &Order{parts: o.parts, owner: new(owner), count: o.count, bytes: o.bytes}
}

// Len returns the number of members.
func (o *Order) Len() int { return o.count }

// find returns the place of a rank. There must be such a member.
func (o *Order) find(rank int) (p, k, i int) {
	for ; rank >= o.parts[p].count; p++ {
		rank -= o.parts[p].count
	}
	chunks := o.parts[p].chunks
	for ; rank >= int(chunks[k].count); k++ {
		rank -= int(chunks[k].count)
	}
	return p, k, rank
}

// rank returns how many members come before a place.
func (o *Order) rank(p, k, i int) int {
	for _, part := range o.parts[:p] {
		i += part.count
	}
	if p < len(o.parts) {
		for _, r := range o.parts[p].chunks[:k] {
			i += int(r.count)
		}
	}
	return i
}

// At returns the member of a rank. There must be one.
func (o *Order) At(rank int) Scored {
	p, k, i := o.find(rank)
	return o.parts[p].chunks[k].at(i)
}

// RankOf returns how many members come before one, which need not be there.
func (o *Order) RankOf(s Scored) int {
	p, k, i, _ := o.place(s)
	return o.rank(p, k, i)
}

// Rank returns how many members come before the first for which from holds. It holds for all that follow
// that.
func (o *Order) Rank(from func(Scored) bool) int {
	if len(o.parts) == 0 {
		return 0
	}
	p, k := o.search(func(r *chunkRef) bool { return from(r.at(0)) })
	c := o.parts[p].chunks[k].chunk
	return o.rank(p, k, sort.Search(len(c.scores), func(i int) bool { return from(c.at(i)) }))
}

// Ascend yields the members from a rank on.
func (o *Order) Ascend(rank int) func(yield func(Scored) bool) {
	return func(yield func(Scored) bool) {
		if rank >= o.count {
			return
		}
		p, k, i := o.find(rank)
		for ; p < len(o.parts); p, k = p+1, 0 {
			for ; k < len(o.parts[p].chunks); k, i = k+1, 0 {
				for c := o.parts[p].chunks[k].chunk; i < len(c.scores); i++ {
					if !yield(c.at(i)) {
						return
					}
				}
			}
		}
	}
}

// Descend yields the members from a rank down.
func (o *Order) Descend(rank int) func(yield func(Scored) bool) {
	return func(yield func(Scored) bool) {
		if rank < 0 {
			return
		}
		p, k, i := o.find(rank)
		for {
			for c := o.parts[p].chunks[k].chunk; i >= 0; i-- {
				if !yield(c.at(i)) {
					return
				}
			}
			if k--; k < 0 {
				if p--; p < 0 {
					return
				}
				k = len(o.parts[p].chunks) - 1
			}
			i = int(o.parts[p].chunks[k].count) - 1
		}
	}
}
