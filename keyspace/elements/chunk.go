package elements

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"mayfly/keyspace/record"
)

// chunk is members that follow each other in an order, without a pointer for each.
type chunk struct {
	owner  *owner
	scores []float64
	starts []uint16 // of the members in text
	text   []byte   // their lengths and bytes; what is there stays, as others have views
	gone   int      // bytes in text of members that were removed
}

// A chunk with more than one member has at most so many, and at most so many bytes: see starts.
const (
	mostMembers = 128
	mostText    = 32 << 10
)

// newChunk returns a chunk with room for members and for bytes of text.
func newChunk(of *owner, members, text int) *chunk {
	return &chunk{owner: of, scores: make([]float64, 0, members), starts: make([]uint16, 0, members), text: make([]byte, 0, text)}
}

func chunkOf(of *owner, s Scored) *chunk {
	c := newChunk(of, 1, textSize(s.Member))
	c.insert(0, s)
	return c
}

// textSize returns how many bytes a member takes in the text of a chunk.
func textSize(member string) int { return (bits.Len(uint(len(member)|1))+6)/7 + len(member) }

func appendText(dst []byte, member string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(member))), member...)
}

// member returns a member, as a view that stays.
func (c *chunk) member(i int) string {
	text := c.text[c.starts[i]:]
	size, n := binary.Uvarint(text)
	return record.View(text[n : n+int(size)])
}

func (c *chunk) at(i int) Scored { return Scored{c.scores[i], c.member(i)} }

// place returns the index of a member, or that which it would have.
func (c *chunk) place(s Scored) (i int, found bool) {
	end := len(c.scores)
	for i < end {
		if mid := (i + end) / 2; c.scores[mid] < s.Score || c.scores[mid] == s.Score && c.member(mid) < s.Member {
			i = mid + 1
		} else {
			end = mid
		}
	}
	return i, i < len(c.scores) && c.scores[i] == s.Score && c.member(i) == s.Member
}

// fits reports whether a member can be inserted.
func (c *chunk) fits(s Scored) bool {
	return len(c.scores) == 0 || len(c.scores) < mostMembers && len(c.text)-c.gone+textSize(s.Member) <= mostText
}

// joins reports whether this chunk and another can be one that is far from full.
func (c *chunk) joins(other *chunk) bool {
	return len(c.scores)+len(other.scores) <= mostMembers/2 && len(c.text)-c.gone+len(other.text)-other.gone <= mostText/2
}

// insert inserts a member that fits at an index.
func (c *chunk) insert(i int, s Scored) {
	if size := textSize(s.Member); len(c.text)+size > cap(c.text) {
		c.pack(size)
	}
	start := uint16(len(c.text))
	c.text = appendText(c.text, s.Member)
	c.scores, c.starts = insertTight(c.scores, i, s.Score), insertTight(c.starts, i, start)
}

// insertTight is slices.Insert of one element. It leaves little room to spare.
func insertTight[T any](list []T, i int, e T) []T {
	if len(list) == cap(list) {
		list = append(make([]T, 0, spared(len(list)+1)), list...)
	}
	return slices.Insert(list, i, e)
}

// spared returns a size and something to spare.
func spared(n int) int { return n + n/8 + 2 }

// tight returns a list without room that it does not need.
func tight[T any](list []T) []T {
	if 2*cap(list) <= 3*len(list)+8 {
		return list
	}
	return append(make([]T, 0, spared(len(list))), list...)
}

// pack moves the texts of the members to one with room for some bytes more.
func (c *chunk) pack(more int) {
	text := make([]byte, 0, spared(len(c.text)-c.gone+more))
	for i := range c.starts {
		m := c.member(i)
		c.starts[i] = uint16(len(text))
		text = appendText(text, m)
	}
	c.text, c.gone = text, 0
	c.scores, c.starts = tight(c.scores), tight(c.starts)
}

// remove removes the member with an index.
func (c *chunk) remove(i int) {
	c.gone += textSize(c.member(i))
	c.scores, c.starts = slices.Delete(c.scores, i, i+1), slices.Delete(c.starts, i, i+1)
	if c.gone > len(c.text)/4 {
		c.pack(0)
	}
}

// take adds the members of another chunk from an index on, at the end.
func (c *chunk) take(other *chunk, from int) {
	for i := from; i < len(other.scores); i++ {
		c.insert(len(c.scores), other.at(i))
	}
}

// cut removes the members from an index on, and returns them.
func (c *chunk) cut(from int) *chunk {
	size := 0
	for i := from; i < len(c.scores); i++ {
		size += textSize(c.member(i))
	}
	tail := newChunk(c.owner, len(c.scores)-from, size)
	tail.take(c, from)
	c.scores, c.starts, c.gone = c.scores[:from], c.starts[:from], c.gone+size
	c.pack(0)
	return tail
}
