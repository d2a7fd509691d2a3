package expiry

import (
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

const (
	maxDeadlineName = 64  // bytes
	maxHold         = 255 // bytes, of a reason
	// maxDeadline is the latest deadline in seconds since 1970: the end of the year 9999, the last of RFC
	// 3339.
	maxDeadline = 253402300799
	// deadlineDigits is the number of digits of maxDeadline.
	deadlineDigits = 12

	legalDeadline = "whole seconds since 1970 from 1 to 253402300799, and times of RFC 3339 such as 2026-11-22T08:00:00Z"
)

// ParseDeadline reads the raw JSON of a document's deadline, the root member of this name: whole seconds
// since 1970 in any notation, or a time of RFC 3339 in a string, whose content is text. It returns the moment
// in ms since the epoch, 0 for null, which is the same as absent. Fractions of a second are cut to ms.
// Anything else is a [RangeError].
//
// The moment may be before 1970 and have passed.
func ParseDeadline(name, raw, text string) (at int64, err error) {
	switch {
	case raw == "null":
		return 0, nil
	case raw[0] == '"':
		if at, ok := parseMoment(text); ok {
			if at == 0 {
				at = -1 // as long past, and not absent
			}
			return at, nil
		}
	default:
		if t, ok := parseWholeNumber(raw, deadlineDigits); ok && t >= 1 && t <= maxDeadline {
			return int64(t) * 1000, nil
		}
	}
	return 0, &RangeError{What: Quote(name), Value: Quote(raw), Legal: legalDeadline}
}

// CheckDeadlineName returns an error for a name that the member with the deadline cannot have.
func CheckDeadlineName(s string) error {
	if len(s) < 1 || len(s) > maxDeadlineName || !utf8.ValidString(s) || s == "ttl" || s == "_ts" || s == "_etag" {
		return fmt.Errorf("invalid DEADLINE %s: legal are names of 1 to %d bytes in UTF-8, but for ttl, _ts and _etag", Quote(s), maxDeadlineName)
	}
	return nil
}

// CheckHold returns an error for a reason that a hold cannot have. The caller knows OFF, which ends a hold.
func CheckHold(s string) error {
	unprintable := func(r rune) bool { return !unicode.IsPrint(r) }
	if len(s) < 1 || len(s) > maxHold || !utf8.ValidString(s) || strings.ContainsFunc(s, unprintable) {
		return fmt.Errorf("invalid HOLD %s: legal are OFF, and reasons of 1 to %d bytes in one printable line of UTF-8", Quote(s), maxHold)
	}
	return nil
}

// RepeatedDeadline is the error for a document with more than one root member of a deadline's name.
func RepeatedDeadline(name string) error {
	return &RangeError{What: Quote(name), Value: "(the member is repeated)", Legal: legalDeadline}
}

// PassedDeadline is the error for a deadline that has passed.
func PassedDeadline(name, raw string) error {
	return fmt.Errorf("invalid %s %s: legal are moments that have not passed", Quote(name), Quote(raw))
}

// OwnEnd returns the expireAt of a document with a ttl and a deadline in ms, 0 for none. The deadline caps
// the rule that the document has: the end by its ttl, or the container's default. ts is the time of its last
// write in ms. A deadline before that counts as the first ms after it: see [Policy].
func OwnEnd(ts int64, ttl TTL, deadline int64) int64 {
	switch at := max(deadline, ts+1); {
	case !DeadlineRules(ts, ttl, deadline):
		return ExpireAt(ts, ttl)
	case ttl == Absent:
		return CapAt(at)
	default:
		return at
	}
}

// DeadlineRules reports whether a deadline in ms, 0 for none, comes before the end that a ttl gives, or with
// it. A ttl of -1 gives none. Without a ttl the container's default may give an earlier one.
func DeadlineRules(ts int64, ttl TTL, deadline int64) bool {
	return deadline != 0 && (ttl <= 0 || deadline <= after(ts, ttl))
}

// Passed reports whether a deadline in ms, 0 for none, has passed at a moment in ms, so that its document is
// dead. In a container that is off or on hold a deadline does not count.
func (p *Policy) Passed(deadline, now int64) bool {
	return deadline != 0 && deadline <= now && p.Default != Off && p.Hold == ""
}

// parseMoment reads a date-time of RFC 3339 and returns it in ms since the epoch. T and Z may be small
// letters. A leap second is refused: time since the epoch has none.
func parseMoment(s string) (ms int64, ok bool) {
	at, err := time.Parse(time.RFC3339, strings.ToUpper(s))
	if err != nil || s[12] == ':' || s[19] == ',' { // the standard library takes hours of one digit, and a comma
		return 0, false
	}
	if zone := s[len(s)-len("+00:00"):]; zone[3] == ':' && (zone[1:3] > "23" || zone[4:] > "59") { // and 24:60
		return 0, false
	}
	return at.UnixMilli(), true
}
