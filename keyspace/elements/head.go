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
	return strconv.AppendUint(append(dst, ' '), h.Salt, 16)
}

var errHead = errors.New("not the head of a collection: it must have a number, a number of pages and a salt")

// ReadHead is the inverse of [Head.Append]. It accepts nothing that this does not write.
func ReadHead(body string) (h Head, err error) {
	text, ok := strings.CutPrefix(body, "/")
	number, rest, ok1 := strings.Cut(text, " ")
	buckets, salt, ok2 := strings.Cut(rest, " ")
	n, err1 := strconv.ParseUint(number, 16, 64)
	b, err2 := strconv.ParseUint(buckets, 10, 32)
	s, err3 := strconv.ParseUint(salt, 16, 64)
	h = Head{n, uint32(b), s}
	var buf [64]byte
	if !ok || !ok1 || !ok2 || err1 != nil || err2 != nil || err3 != nil || b == 0 || b > MostBuckets || string(h.Append(buf[:0])) != body {
		return Head{}, errHead
	}
	return h, nil
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
