package expiry

import (
	"fmt"
	"strings"
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
	const shape = "dddd-dd-ddTdd:dd:dd"
	if len(s) <= len(shape) {
		return 0, false
	}
	var fields [6]int
	field := 0
	for i := range len(shape) {
		switch c := s[i]; shape[i] {
		case 'd':
			if c < '0' || c > '9' {
				return 0, false
			}
			fields[field] = fields[field]*10 + int(c-'0')
		case 'T':
			if c != 'T' && c != 't' {
				return 0, false
			}
			field++
		default:
			if c != shape[i] {
				return 0, false
			}
			field++
		}
	}
	year, month, day, hour, minute, second := fields[0], fields[1], fields[2], fields[3], fields[4], fields[5]
	if month < 1 || month > 12 || day < 1 || day > daysIn(year, month) || hour > 23 || minute > 59 || second > 59 {
		return 0, false
	}
	s = s[len(shape):]
	fraction := 0
	if s[0] == '.' {
		digits, rest := cutDigits(s[1:])
		if digits == "" {
			return 0, false
		}
		s = rest
		for i := range 3 {
			fraction *= 10
			if i < len(digits) {
				fraction += int(digits[i] - '0')
			}
		}
	}
	offset, ok := parseOffset(s)
	if !ok {
		return 0, false
	}
	seconds := int64(daysSince1970(year, month, day))*86400 + int64(hour*3600+minute*60+second) - int64(offset)*60
	return seconds*1000 + int64(fraction), true
}

// parseOffset reads the offset of a date-time from UTC: Z, or a sign, hours and minutes. It returns minutes.
func parseOffset(s string) (minutes int, ok bool) {
	if s == "Z" || s == "z" {
		return 0, true
	}
	if len(s) != len("+00:00") || s[0] != '+' && s[0] != '-' || s[3] != ':' {
		return 0, false
	}
	for _, i := range []int{1, 2, 4, 5} {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	hour, minute := int(s[1]-'0')*10+int(s[2]-'0'), int(s[4]-'0')*10+int(s[5]-'0')
	if minutes = hour*60 + minute; s[0] == '-' {
		minutes = -minutes
	}
	return minutes, hour <= 23 && minute <= 59
}

func isLeap(year int) bool { return year%4 == 0 && (year%100 != 0 || year%400 == 0) }

// daysIn returns the number of days of a month.
func daysIn(year, month int) int {
	switch {
	case month == 2 && isLeap(year):
		return 29
	case month == 2:
		return 28
	case month == 4 || month == 6 || month == 9 || month == 11:
		return 30
	}
	return 31
}

// daysSince1970 returns the number of days from 1970-01-01 to a day of the Gregorian calendar, from year 0
// on. Years begin in March here, so that a leap day is the last of its year. (Howard Hinnant,
// days_from_civil.)
func daysSince1970(year, month, day int) int {
	if month <= 2 {
		year--
		month += 12
	}
	year += 400 // never negative
	yearOfEra := year % 400
	dayOfYear := (153*(month-3)+2)/5 + day - 1
	return (year/400-1)*146097 + yearOfEra*365 + yearOfEra/4 - yearOfEra/100 + dayOfYear - 719468
}
