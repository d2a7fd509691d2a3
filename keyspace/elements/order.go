package elements

import (
	"cmp"
	"math"
	"sort"
	"strconv"
	"strings"

	"github.com/tidwall/btree"
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

// Order is the members of a sorted set in their order. It is not safe for concurrent use; a copy is, beside
// it.
type Order struct {
	tree  *btree.BTreeG[Scored]
	bytes int64          // of the members
	twice map[Scored]int // how often those are in a second page: while a member moves, before the first is written
}

// NewOrder returns an order without members.
func NewOrder() *Order {
	return &Order{tree: btree.NewBTreeGOptions(Scored.Before, btree.Options{NoLocks: true})}
}

// OrderOf returns the members of a body in their order. Their texts are views of it.
func OrderOf(body string) *Order {
	o := NewOrder()
	for e := range Each(body) {
		o.tree.Set(ScoredOf(e))
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

func (o *Order) add(s Scored) {
	s.Member = strings.Clone(s.Member) // the body will go
	if _, isThere := o.tree.Set(s); !isThere {
		o.bytes += int64(len(s.Member))
		return
	}
	if o.twice == nil {
		o.twice = make(map[Scored]int)
	}
	o.twice[s]++
}

func (o *Order) remove(s Scored) {
	if n := o.twice[s]; n > 1 {
		o.twice[s] = n - 1
	} else if n == 1 {
		delete(o.twice, s)
	} else if _, isThere := o.tree.Delete(s); isThere {
		o.bytes -= int64(len(s.Member))
	}
}

// Settled reports whether each member is in one page.
func (o *Order) Settled() bool { return len(o.twice) == 0 }

// Bytes returns the memory of the order, about.
func (o *Order) Bytes() int64 {
	const entry = 24 * 3 / 2 // in a tree that is filled at random
	const text = 8           // that an allocation of a text is larger than it
	return int64(o.tree.Len())*(entry+text) + o.bytes
}

// Copy returns a copy, in constant time.
func (o *Order) Copy() *Order { return &Order{tree: o.tree.Copy(), bytes: o.bytes} }

// Len returns the number of members.
func (o *Order) Len() int { return o.tree.Len() }

// At returns the member of a rank.
func (o *Order) At(rank int) Scored {
	s, _ := o.tree.GetAt(rank)
	return s
}

// Rank returns how many members come before the first for which from holds. It holds for all that follow
// that.
func (o *Order) Rank(from func(Scored) bool) int {
	return sort.Search(o.tree.Len(), func(rank int) bool { return from(o.At(rank)) })
}

// Ascend yields the members from a rank on.
func (o *Order) Ascend(rank int) func(yield func(Scored) bool) {
	return func(yield func(Scored) bool) {
		if rank < o.Len() {
			o.tree.Ascend(o.At(rank), yield)
		}
	}
}

// Descend yields the members from a rank down.
func (o *Order) Descend(rank int) func(yield func(Scored) bool) {
	return func(yield func(Scored) bool) {
		if rank >= 0 {
			o.tree.Descend(o.At(rank), yield)
		}
	}
}
