package elements

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"mayfly/keyspace/record"
)

// SmallSize is the size in bytes of the body up to which a collection without ends of elements is one item.
const SmallSize = 1 << 10

// MostEnd is the latest end of an element in ms.
const MostEnd = 1<<48 - 1

// Element is a field with its value, or a member, a member with its score, an entry of a list. Its strings
// are views of a body.
type Element struct {
	Field, Value string
	End          int64 // ms; 0: none
}

// Dead reports whether the element is dead by a limit: that of items with an end of their own, see
// expiry.Limits.
func (e *Element) Dead(limit int64) bool { return e.End != 0 && e.End <= limit }

// Size returns the length in bytes of the element in a body.
func (e *Element) Size() int {
	n := stringSize(e.Field) + stringSize(e.Value)
	if e.End != 0 {
		n += len("+ ") + digits(uint64(e.End))
	}
	return n
}

func stringSize(s string) int { return digits(uint64(len(s))) + 1 + len(s) }

// digits returns the number of decimal digits.
func digits(n uint64) (count int) {
	for count = 1; n > 9; n /= 10 {
		count++
	}
	return count
}

// Append appends an element to a body.
func Append(dst []byte, e Element) []byte {
	dst = AppendString(dst, e.Field)
	if e.End != 0 {
		dst = strconv.AppendInt(append(dst, '+'), e.End, 10)
		dst = append(dst, ' ')
	}
	return AppendString(dst, e.Value)
}

// AppendString appends a string with its length.
func AppendString(dst []byte, s string) []byte {
	dst = strconv.AppendUint(dst, uint64(len(s)), 10)
	dst = append(dst, ':')
	return append(dst, s...)
}

// Cut cuts the first element off a body. It accepts nothing that Append does not write.
func Cut(body string) (e Element, rest string, ok bool) {
	from, to, value, behind := next(body, 0)
	if behind < 0 {
		return Element{}, body, false
	}
	e.Field, e.Value = body[from:to], body[value:behind]
	if body[to] == '+' {
		e.End, _ = endAt(body, to)
	}
	return e, body[behind:], true
}

// next returns the place of the field of the element at a place of a body, and that of its value, which ends
// where the element does; -1: it is not sound.
func next(body string, at int) (from, to, value, behind int) {
	if from, to = textAt(body, at); to < 0 {
		return 0, 0, 0, -1
	}
	if at = to; at+1 < len(body) && body[at+1] == ':' && body[at] == '0' { // no value: a member, or an entry
		return from, to, at + 2, at + 2
	}
	if at < len(body) && body[at] == '+' {
		if _, at = endAt(body, at); at < 0 {
			return 0, 0, 0, -1
		}
	}
	value, behind = textAt(body, at)
	return from, to, value, behind
}

// textAt returns the place of the string whose length is at a place of a body; to is -1 if there is none.
func textAt(body string, at int) (from, to int) {
	switch s := body[at:]; {
	case len(s) > 1 && s[1] == ':' && s[0]-'0' < 10: // most have a length of one digit or two
		from, to = at+2, at+2+int(s[0]-'0')
	case len(s) > 2 && s[2] == ':' && s[0]-'1' < 9 && s[1]-'0' < 10:
		from, to = at+3, at+3+int(s[0]-'0')*10+int(s[1]-'0')
	default:
		length, n := cutNumber(s)
		if n == 0 || n >= len(s) || s[n] != ':' || length > uint64(len(s)) {
			return 0, -1
		}
		from, to = at+n+1, at+n+1+int(length)
	}
	if to > len(body) {
		return 0, -1
	}
	return from, to
}

// endAt returns the end of an element, whose plus is at a place of a body, and the place behind it; -1 if it
// is none.
func endAt(body string, at int) (end int64, behind int) {
	ms, n := cutNumber(body[at+1:])
	if behind = at + 1 + n; n == 0 || ms == 0 || ms > MostEnd || behind >= len(body) || body[behind] != ' ' {
		return 0, -1
	}
	return int64(ms), behind + 1
}

// CutString is the inverse of [AppendString], for a string at the beginning of a text.
func CutString(s string) (text, rest string, ok bool) {
	from, to := textAt(s, 0)
	if to < 0 {
		return "", s, false
	}
	return s[from:to], s[to:], true
}

// CutText is [CutString] for a body that is known to be sound. It returns the digits of the length, too, and
// passes over an end before the string. Of a body that is not sound rest is empty.
func CutText(body string) (digits, text, rest string) {
	if body != "" && body[0] == '+' {
		body = body[strings.IndexByte(body, ' ')+1:]
	}
	length, n := 0, 0
	for n < len(body) && body[n] != ':' {
		length = length*10 + int(body[n]-'0')
		n++
	}
	if digits, body = body[:n], body[min(n+1, len(body)):]; uint(length) > uint(len(body)) {
		return digits, "", ""
	}
	return digits, body[:length], body[length:]
}

// cutNumber reads decimal digits without leading zeros, and returns how many; 0 if there is no such number.
func cutNumber(s string) (v uint64, n int) {
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		if n == 1 && s[0] == '0' || v > (math.MaxInt64-9)/10 {
			return 0, 0
		}
		v = v*10 + uint64(s[n]-'0')
		n++
	}
	return v, n
}

// Skip returns a body without its first n elements.
func Skip(body string, n int) string {
	at := 0
	for ; n > 0; n-- {
		_, _, _, behind := next(body, at)
		if behind < 0 {
			break
		}
		at = behind
	}
	return body[at:]
}

// Find returns the element of a field in a body, and the place that it has there.
func Find(body, field string) (e Element, from, to int, found bool) {
	for at := 0; at < len(body); {
		from, to, _, behind := next(body, at)
		if behind < 0 {
			break
		}
		if body[from:to] == field {
			e, _, _ = Cut(body[at:behind])
			return e, at, behind, true
		}
		at = behind
	}
	return Element{}, 0, 0, false
}

// Each yields the elements of a body.
func Each(body string) func(yield func(Element) bool) {
	return func(yield func(Element) bool) {
		for body != "" {
			e, rest, ok := Cut(body)
			if !ok || !yield(e) {
				return
			}
			body = rest
		}
	}
}

// Sum is what a body has.
type Sum struct {
	Count    int   // elements
	Ending   int   // those with an end
	Weight   int   // bytes, of which those beyond PageSize of an element do not count
	Earliest int64 // ms; the first end; math.MaxInt64: there is none
}

// SumOf sums a body up.
func SumOf(body string) (s Sum) {
	s.Earliest = math.MaxInt64
	for at := 0; at < len(body); s.Count++ {
		_, to, _, behind := next(body, at)
		if behind < 0 {
			break
		}
		s.Weight += min(behind-at, PageSize)
		if body[to] == '+' {
			end, _ := endAt(body, to)
			s.Ending++
			s.Earliest = min(s.Earliest, end)
		}
		at = behind
	}
	return s
}

// Differing returns two bodies without the elements with which both begin, and without those behind the first
// other one if they are the same.
func Differing(was, is string) (string, string) {
	switch {
	case strings.HasPrefix(is, was): // some were added
		return "", is[len(was):]
	case strings.HasPrefix(was, is):
		return was[len(is):], ""
	}
	for was != "" && is != "" {
		_, restWas, ok := Cut(was)
		if size := len(was) - len(restWas); ok && len(is) >= size && is[:size] == was[:size] {
			was, is = restWas, is[size:]
			continue
		}
		_, restIs, _ := Cut(is)
		switch {
		case restWas == restIs: // it was replaced
			return was[:len(was)-len(restWas)], is[:len(is)-len(restIs)]
		case restWas == is: // removed
			return was[:len(was)-len(restWas)], ""
		case was == restIs: // inserted
			return "", is[:len(is)-len(restIs)]
		}
		break
	}
	return was, is
}

// Shed returns a body without the elements that are dead by a limit.
func Shed(body string, limit int64) []byte {
	rest := make([]byte, 0, len(body))
	for e := range Each(body) {
		if !e.Dead(limit) {
			rest = Append(rest, e)
		}
	}
	return rest
}

// EndOf returns the first end in the page with a number, in ms; -1, which is never: there is none, as in
// lists.
func EndOf(body string, number uint64) int64 {
	if !IsOfList(number) {
		if end := SumOf(body).Earliest; end <= MostEnd {
			return end
		}
	}
	return -1
}

var (
	errBody  = errors.New("not the elements of a collection: they must be fields and values, each with its length")
	errEmpty = errors.New("a collection without elements")
	errTwice = errors.New("a field occurs twice")
	errSmall = errors.New("an element with an end does not lie in a page")
	errValue = errors.New("a member or an entry with a value")
	errScore = errors.New("a member whose value is no score")
)

// Check returns why a body is not that of the key of a collection of a kind, or nil.
func Check(body string, kind record.Kind) error {
	if IsHead(body) {
		h, err := ReadHead(body)
		if kind != record.List && h.Left.Count+h.Right.Count > 0 {
			err = errHead
		}
		return err
	}
	if SumOf(body).Ending > 0 {
		return errSmall
	}
	return CheckAll(body, kind)
}

// CheckPage returns why a body is not that of the page with a number, or nil.
func CheckPage(body string, number uint64) error {
	if IsOfList(number) {
		return CheckAll(body, record.List)
	}
	return CheckAll(body, record.Hash)
}

// CheckAll returns why a text is not elements of a collection of a kind, or nil.
func CheckAll(text string, kind record.Kind) error {
	if text == "" {
		return errEmpty
	}
	seen := make(map[string]bool)
	for text != "" {
		e, rest, ok := Cut(text)
		switch {
		case !ok:
			return errBody
		case kind == record.SortedSet:
			if _, ok := ParseScore(e.Value); !ok {
				return errScore
			}
		case kind != record.Hash && e.Value != "":
			return errValue
		}
		if kind == record.List && e.End != 0 {
			return errSmall
		}
		if kind != record.List {
			if seen[e.Field] {
				return errTwice
			}
			seen[e.Field] = true
		}
		text = rest
	}
	return nil
}
