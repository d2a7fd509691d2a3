package elements

import (
	"encoding/binary"
	"errors"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"mayfly/keyspace/record"

	"github.com/zeebo/xxh3"
)

// PageSize is the mean size of pages in bytes.
const PageSize = 200

// Head says where the elements of a collection lie.
//
// Bucket n of a linear hash has the elements whose hash has n in its lowest bits. There are as many bits as
// the number of buckets needs, but one less of those that have not been split. So one bucket more splits one,
// and leaves the others as they are.
type Head struct {
	Number  uint64 // of the collection
	Buckets uint32 // at least 1; empty ones have no page
	Salt    uint64 // of the hash, so that no client knows which fields share a bucket

	Left, Right Popped // off a list
}

// Popped is entries at the end of a list that were popped off its edge page, and are still in it. So a pop
// writes the key alone.
type Popped struct {
	Page  uint64
	Count uint32 // less than Of; 0: none
	Of    uint32 // entries of the page, which tell it from an older one
}

// NewHead returns the head of a new collection, whose salt follows from its number and a secret seed.
func NewHead(number, seed uint64) Head {
	var text [8]byte
	binary.LittleEndian.PutUint64(text[:], number)
	return Head{Number: number, Buckets: 1, Salt: xxh3.HashSeed(text[:], seed)}
}

// IsHead reports whether the body of a collection's key is that of a head.
func IsHead(body string) bool { return strings.HasPrefix(body, "/") }

// Append appends the head as a body.
func (h *Head) Append(dst []byte) []byte {
	dst = strconv.AppendUint(append(dst, '/'), h.Number, 16)
	dst = strconv.AppendUint(append(dst, ' '), uint64(h.Buckets), 10)
	dst = strconv.AppendUint(append(dst, ' '), h.Salt, 16)
	return h.Right.append(h.Left.append(dst, '+'), '-')
}

func (p Popped) append(dst []byte, side byte) []byte {
	if p.Count == 0 {
		return dst
	}
	dst = strconv.AppendUint(append(dst, ' '), p.Page, 16)
	dst = strconv.AppendUint(append(dst, side), uint64(p.Count), 10)
	return strconv.AppendUint(append(dst, '/'), uint64(p.Of), 10)
}

var errHead = errors.New("not the head of a collection: it must have a number, a number of pages and a salt, and may have what was popped off pages of a list")

// ReadHead is the inverse of [Head.Append]. It accepts nothing that this does not write.
func ReadHead(body string) (h Head, err error) {
	h, ok := HeadOf(body)
	var buf [128]byte
	if !ok || string(h.Append(buf[:0])) != body {
		return Head{}, errHead
	}
	return h, nil
}

// HeadOf is ReadHead for a body that is known to be sound, if it is a head.
func HeadOf(body string) (h Head, ok bool) {
	text, ok := strings.CutPrefix(body, "/")
	if !ok {
		return Head{}, false
	}
	number, rest, ok1 := strings.Cut(text, " ")
	buckets, rest, ok2 := strings.Cut(rest, " ")
	salt, rest, _ := strings.Cut(rest, " ")
	n, err1 := strconv.ParseUint(number, 16, 64)
	b, err2 := strconv.ParseUint(buckets, 10, 32)
	s, err3 := strconv.ParseUint(salt, 16, 64)
	h = Head{Number: n, Buckets: uint32(b), Salt: s}
	for rest != "" {
		var text string
		text, rest, _ = strings.Cut(rest, " ")
		h.readPopped(text)
	}
	return h, ok1 && ok2 && err1 == nil && err2 == nil && err3 == nil && b > 0 && b <= MostBuckets
}

// SameCollection reports whether two bodies are heads of one collection.
func SameCollection(a, b string) bool {
	n := strings.IndexByte(a, ' ') + 1
	return n > 0 && IsHead(a) && len(b) >= n && a[:n] == b[:n]
}

// readPopped reads what Popped.append writes. It passes over anything else: ReadHead compares the head that
// was read with its text.
func (h *Head) readPopped(text string) {
	const digits = 16 // of the number of each page of a list
	if len(text) <= digits {
		return
	}
	side := &h.Left
	if text[digits] == '-' {
		side = &h.Right
	}
	count, of, _ := strings.Cut(text[digits+1:], "/")
	high, ok1 := record.ReadHex(text[:digits/2])
	low, ok2 := record.ReadHex(text[digits/2 : digits])
	n, err1 := strconv.ParseUint(count, 10, 32)
	all, err2 := strconv.ParseUint(of, 10, 32)
	if number := uint64(high)<<32 | uint64(low); ok1 && ok2 && err1 == nil && err2 == nil && n < all && IsOfList(number) {
		*side = Popped{number, uint32(n), uint32(all)}
	}
}

// Popped returns how many entries were popped off a page that still has them.
func (h *Head) Popped(page uint64) (n int) {
	if h.Left.Page == page {
		n = int(h.Left.Count)
	}
	if h.Right.Page == page {
		n += int(h.Right.Count)
	}
	return n
}

// Trim returns the body of a page without the entries that were popped off it.
func (h *Head) Trim(page uint64, body string) string {
	left := uint32(0)
	if h.Left.Count > 0 && h.Left.Page == page {
		left = h.Left.Count
		body = Skip(body, int(left))
	}
	if h.Right.Count > 0 && h.Right.Page == page {
		body = body[:len(body)-len(Skip(body, int(h.Right.Of-h.Right.Count-left)))]
	}
	return body
}

// Forget forgets what was popped off a page, which is written without it, and reports whether anything was.
func (h *Head) Forget(page uint64) (changed bool) {
	if changed = h.Popped(page) > 0; changed && h.Left.Page == page {
		h.Left = Popped{}
	}
	if changed && h.Right.Page == page {
		h.Right = Popped{}
	}
	return changed
}

// MostBuckets bounds the buckets of a collection: pages of more grow.
const MostBuckets = 1 << 30

// Hash returns the hash of a field.
func (h *Head) Hash(field string) uint64 { return xxh3.HashStringSeed(field, h.Salt) }

// BucketOf returns the bucket of a hash.
func (h *Head) BucketOf(hash uint64) uint32 {
	mask := uint32(1)<<bits.Len32(h.Buckets-1) - 1
	n := uint32(hash) & mask
	if n >= h.Buckets {
		n &= mask >> 1
	}
	return n
}

// Bucket returns the bucket of a field.
func (h *Head) Bucket(field string) uint32 { return h.BucketOf(h.Hash(field)) }

// Splits returns the bucket that one bucket more would split.
func (h *Head) Splits() uint32 { return h.Buckets &^ (1 << (bits.Len32(h.Buckets) - 1)) }

// Place returns the place of a hash in the order of [Head.From]: that of its bits, the lowest first.
func Place(hash uint64) uint64 { return bits.Reverse64(hash) }

// InOrder returns the places of fields, of every step of them from an index on, in their order. The lowest
// bits of a place are the index, see [IndexIn]: there may be 1<<24 of them.
func (h *Head) InOrder(fields []string, from, step int) []uint64 {
	order := make([]uint64, 0, (len(fields)-from)/step+1)
	for i := from; i < len(fields); i += step {
		order = append(order, Place(h.Hash(fields[i]))&^mostIndex|uint64(i))
	}
	slices.Sort(order)
	return order
}

const mostIndex = 1<<24 - 1

// IndexIn returns the index that [Head.InOrder] puts into a place.
func IndexIn(place uint64) int { return int(place & mostIndex) }

// From returns the bucket that has the elements from a place on, and the place behind them; 0: there are no
// others. A split or a merge changes no order, so who goes on from a place meets all elements once.
func (h *Head) From(place uint64) (bucket uint32, next uint64) {
	bucket = h.BucketOf(bits.Reverse64(place))
	width := uint(bits.Len32(h.Buckets - 1))
	if width > 0 && (bucket|1<<(width-1)) >= h.Buckets { // it was not split
		width--
	}
	if width == 0 {
		return bucket, 0
	}
	unit := uint64(1) << (64 - width)
	return bucket, place&^(unit-1) + unit
}

// PageID appends the id of a page: that of a bucket, or one of a list.
func (h *Head) PageID(dst []byte, page uint64) []byte {
	return record.AppendPageID(dst, h.Number, page)
}
