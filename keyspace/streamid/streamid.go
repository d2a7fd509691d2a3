package streamid

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// ID is the id of an entry: a time in ms and a number among the entries of that time. The zero value precedes
// all entries.
type ID struct {
	Ms, Seq uint64
}

// Max is the greatest id.
var Max = ID{math.MaxUint64, math.MaxUint64}

// Compare returns -1, 0 or 1: whether a precedes, equals or follows b.
func (a ID) Compare(b ID) int { return cmp.Or(cmp.Compare(a.Ms, b.Ms), cmp.Compare(a.Seq, b.Seq)) }

// Less reports whether a precedes b.
func (a ID) Less(b ID) bool { return a.Compare(b) < 0 }

// IsZero reports whether the id is 0-0.
func (a ID) IsZero() bool { return a == ID{} }

// Next returns the id that follows; false for [Max].
func (a ID) Next() (next ID, ok bool) {
	if a.Seq < math.MaxUint64 {
		return ID{a.Ms, a.Seq + 1}, true
	}
	if a.Ms < math.MaxUint64 {
		return ID{a.Ms + 1, 0}, true
	}
	return a, false
}

// Prev returns the id before; false for 0-0.
func (a ID) Prev() (prev ID, ok bool) {
	if a.Seq > 0 {
		return ID{a.Ms, a.Seq - 1}, true
	}
	if a.Ms > 0 {
		return ID{a.Ms - 1, math.MaxUint64}, true
	}
	return a, false
}

// String returns the id as clients see it.
func (a ID) String() string { return string(a.Append(nil)) }

// Append appends the id as clients see it.
func (a ID) Append(dst []byte) []byte {
	dst = strconv.AppendUint(dst, a.Ms, 10)
	dst = append(dst, '-')
	return strconv.AppendUint(dst, a.Seq, 10)
}

// maxText is the length in bytes of the longest text that Parse accepts.
const maxText = 127

// Parse reads <ms>-<seq>, or <ms>, which stands for <ms>-<seq> with the given seq. It accepts what Redis does
// (streamGenericParseIDOrReply).
func Parse(s string, seq uint64) (id ID, ok bool) {
	if len(s) > maxText {
		return id, false
	}
	ms, rest, both := strings.Cut(s, "-")
	if id.Ms, ok = parse(ms); !ok || !both {
		id.Seq = seq
		return id, ok
	}
	id.Seq, ok = parse(rest)
	return id, ok
}

// parse reads a number as string2ull of Redis does: a plain number, or else what strtoull(3) reads, which
// allows leading spaces, a sign and leading zeros.
func parse(s string) (n uint64, ok bool) {
	if ll, err := strconv.ParseInt(s, 10, 64); err == nil && strconv.FormatInt(ll, 10) == s {
		return uint64(ll), ll >= 0
	}
	s = strings.TrimLeft(s, " \t\n\v\f\r")
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	if s == "" || s[0] < '0' || s[0] > '9' {
		return 0, false
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if negative {
		n = -n
	}
	return n, err == nil
}
