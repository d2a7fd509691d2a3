package record

import (
	"errors"
	"hash/crc32"
	"strconv"
	"strings"

	"mayfly/expiry"
)

// Kind is the kind of a record: the letter in its header.
type Kind uint8

// The kinds.
const (
	Document      Kind = 'd' // JSON, written by DOC.* and JSON.*
	Plain         Kind = 'p' // bytes, written by SET and its family
	Entry         Kind = 'e' // of a log of deaths, see package deathlog
	Hash          Kind = 'f' // fields with values, or what says where they are: see package elements
	Set           Kind = 'm' // members, likewise: fields with empty values
	SortedSet     Kind = 'z' // members, likewise: fields whose values are their scores
	List          Kind = 'l' // entries, likewise: fields with empty values, some of which may be the same
	Page          Kind = 'g' // elements of a collection, likewise
	ContainerKind Kind = 'c'
	ClockKind     Kind = 't'
	WasteKind     Kind = 'w'
	ReplicaKind   Kind = 'r' // of a position in a cluster's log, or of the state there
	SealKind      Kind = 's'
)

// Item is what a container holds under an id. Its body is immutable.
type Item struct {
	Kind     Kind
	Body     string // JSON as the user wrote it, or bytes
	TS       int64  // time of the last write, ms
	ExpireAt int64  // own end: expiry.Inherit, expiry.Never, the moment in ms or a cap
	Version  uint64 // changes with every write and is never used twice
}

// IsCollection reports whether an item of the kind has elements.
func (k Kind) IsCollection() bool { return k == Hash || k == Set || k == SortedSet || k == List }

// IsKey reports whether the kind is that of a plain key, or of one that holds a collection: not that of a
// document.
func (k Kind) IsKey() bool { return k == Plain || k.IsCollection() }

const (
	format = '1'

	// SumFrom and SumTo bound the checksum in a record: it covers the key and what follows SumTo.
	SumFrom = 2
	SumTo   = SumFrom + 8

	kindAt = SumTo + 1
)

// Errors of [Decode].
var (
	ErrFormat = errors.New("the record has an unknown format; it may be of a newer version of mayfly")
	ErrShort  = errors.New("the record is not complete")
	ErrSum    = errors.New("the record's checksum does not match")
	ErrHeader = errors.New("the record's header is malformed")
)

// MaxHeader is the length in bytes of the longest header: of a record without its body.
const MaxHeader = len("1 00000000 d ") + 2*len("-9223372036854775808 ") + len("ffffffffffffffff ")

// AppendHeader appends the record of an item up to its body, with zeros in place of the checksum.
// [PutSum] completes it once the body follows.
func AppendHeader(dst []byte, it Item) []byte {
	dst = append(dst, format, ' ', '0', '0', '0', '0', '0', '0', '0', '0', ' ', byte(it.Kind), ' ')
	dst = strconv.AppendInt(dst, it.TS, 10)
	dst = append(dst, ' ')
	dst = appendEnd(dst, it.ExpireAt)
	dst = append(dst, ' ')
	dst = strconv.AppendUint(dst, it.Version, 16)
	return append(dst, ' ')
}

// appendEnd appends an expireAt. A cap is its moment with a plus: builds that know no caps read it as an end
// of its own.
func appendEnd(dst []byte, expireAt int64) []byte {
	if at, ok := expiry.Cap(expireAt); ok {
		return strconv.AppendInt(append(dst, '+'), at, 10)
	}
	return strconv.AppendInt(dst, expireAt, 10)
}

// readEnd is the inverse of appendEnd.
func readEnd(s string) (expireAt int64, ok bool) {
	expireAt, err := strconv.ParseInt(s, 10, 64)
	if err != nil || expireAt < expiry.Never {
		return 0, false
	}
	if s[0] == '+' {
		expireAt = expiry.CapAt(expireAt)
		return expireAt, expireAt < expiry.Never
	}
	return expireAt, true
}

// PutSum writes the checksum of a record under a key.
func PutSum(key string, rec []byte) {
	PutHex(rec[SumFrom:SumTo], crc32.Update(Sum(0, key), Castagnoli, rec[SumTo:]))
}

// Append appends the record of an item under a key. It allocates nothing if dst has the capacity.
// The key may share memory with dst.
func Append(dst []byte, key string, it Item) []byte {
	start := len(dst)
	dst = AppendHeader(dst, it)
	dst = append(dst, it.Body...)
	PutSum(key, dst[start:])
	return dst
}

// Decode verifies and decodes the record under a key. header is the offset of the body, which
// shares memory with rec. It allocates nothing.
func Decode(key, rec string) (it Item, header int, err error) {
	if len(rec) < 2 || rec[0] != format || rec[1] != ' ' {
		return it, 0, ErrFormat
	}
	if len(rec) < SumTo+len(" d ") {
		return it, 0, ErrShort
	}
	if !SumHolds(key, rec) {
		return it, 0, ErrSum
	}
	if it, err = DecodeHeader(rec); err != nil {
		return it, 0, err
	}
	return it, len(rec) - len(it.Body), nil
}

// DecodeHeader is [Decode] without the checksum.
func DecodeHeader(rec string) (it Item, err error) {
	if len(rec) < SumTo+len(" d ") {
		return it, ErrShort
	}
	covered := rec[SumTo:]
	if covered[0] != ' ' || covered[2] != ' ' {
		return it, ErrHeader
	}
	it.Kind = Kind(covered[1])
	ts, rest, ok1 := strings.Cut(covered[3:], " ")
	end, rest, ok2 := strings.Cut(rest, " ")
	version, body, ok3 := strings.Cut(rest, " ")
	var err1, err3 error
	it.TS, err1 = strconv.ParseInt(ts, 10, 64)
	expireAt, ok4 := readEnd(end)
	it.ExpireAt = expireAt
	it.Version, err3 = strconv.ParseUint(version, 16, 64)
	if !ok1 || !ok2 || !ok3 || !ok4 || err1 != nil || err3 != nil {
		return Item{}, ErrHeader
	}
	it.Body = body
	return it, nil
}

// KindOf returns the kind of a sound record.
func KindOf(rec string) Kind { return Kind(rec[kindAt]) }

// SumHolds reports whether the checksum of a record is right for it and its key.
func SumHolds(key, rec string) bool {
	if len(rec) < SumTo {
		return false
	}
	want, ok := ReadHex(rec[SumFrom:SumTo])
	return ok && Sum(Sum(0, key), rec[SumTo:]) == want
}

// Begins reports whether b begins as records of this format do.
func Begins(b []byte) bool { return len(b) >= 2 && b[0] == format && b[1] == ' ' }
