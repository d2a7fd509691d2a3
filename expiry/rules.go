package expiry

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

// TTL is a time to live in whole seconds as a user writes it: of a container (its default) or of
// a document (the root member "ttl"). Legal are [Forever] and 1 to [MaxTTL]; zero is special.
type TTL int64

const (
	// Off is a container's default that switches TTL off: nothing in the container dies.
	Off TTL = 0
	// Absent is a document without a "ttl", or with one that does not count.
	Absent TTL = 0
	// Forever (-1) switches TTL on without a default, or exempts a document from its container's.
	Forever TTL = -1
	// MaxTTL is the longest time to live, 2147483647 seconds (68 years), as in Cosmos DB.
	MaxTTL TTL = 1<<31 - 1
)

// String returns "off", "-1" or the seconds.
func (t TTL) String() string {
	if t == Off {
		return "off"
	}
	return strconv.FormatInt(int64(t), 10)
}

// The expireAt of an item is [Inherit], [Never], an end of its own or a cap. An end of its own is the moment,
// in milliseconds since the epoch, at which it dies if its container has TTL switched on. A cap is such a
// moment too, of an item that also inherits: it dies of whichever comes first. It is the moment with a minus:
// see [CapAt].
const (
	// Inherit: the container's default decides.
	Inherit int64 = 0
	// Never: the item is exempt from its container's default.
	Never int64 = -1
)

// CapAt returns the expireAt of an item that inherits and dies at a moment (ms), at least 2, at the latest.
func CapAt(at int64) int64 { return -at }

// Cap returns the moment (ms) of a cap. ok is false if the expireAt is none.
func Cap(expireAt int64) (at int64, ok bool) { return -expireAt, expireAt < Never }

// AtLatest returns the expireAt of an item that dies at a moment (ms), at least 2, at the latest.
func AtLatest(expireAt, at int64) int64 {
	switch limit, capped := Cap(expireAt); {
	case capped:
		return CapAt(min(limit, at))
	case expireAt == Inherit:
		return CapAt(at)
	case expireAt == Never:
		return at
	}
	return min(expireAt, at)
}

// ExpireAt returns the expireAt of a document with a ttl: ts is the time of its last write in ms. A moment
// beyond the range of the type is moved to its limit.
func ExpireAt(ts int64, ttl TTL) int64 {
	switch ttl {
	case Absent:
		return Inherit
	case Forever:
		return Never
	}
	return after(ts, ttl)
}

// after returns the moment ttl seconds after ts (ms).
func after(ts int64, ttl TTL) int64 {
	if span := int64(ttl) * 1000; ts <= math.MaxInt64-span {
		return ts + span
	}
	return math.MaxInt64
}

// Mode says what becomes of a document whose "ttl" does not count (rule 4).
type Mode uint8

const (
	// Strict refuses the write, as Cosmos DB for NoSQL does.
	Strict Mode = iota
	// Lenient stores the document and ignores the value, as Cosmos DB for MongoDB does.
	Lenient
)

// String returns "strict" or "lenient".
func (m Mode) String() string {
	if m == Lenient {
		return "lenient"
	}
	return "strict"
}

// Policy is a container's rule of time to live and a summary of what its past rules have killed. It is a
// value: [Policy.Change] and [Policy.WithHold] return new ones. All moments are in milliseconds since the
// epoch and positive.
//
// The two marks are all the history that rule 7 ("dead stays dead") needs, in constant space. Past rules can
// only have killed
//   - an item that inherits, if it was last written at least n seconds before a default of n was replaced:
//     the latest such moment is InheritDeadTo;
//   - an item with an end of its own, or a cap, that came before TTL was switched off or the rule was
//     replaced: the latest such moment is OwnDeadTo.
//
// Marks never affect an item written after the change that left them. A default is at least a second, and an
// end of an item's own lies after its write.
type Policy struct {
	Default TTL
	Mode    Mode

	// Deadline names the root member of documents that holds an absolute end; "" for none. The ends of items
	// are recorded by it, so it goes where they go.
	Deadline string
	// Hold is why the container is on hold; "" if it is not. While it is, nothing dies.
	Hold string

	InheritDeadTo int64 // ms; items that inherit, last written at or before this, are dead
	OwnDeadTo     int64 // ms; items with an end of their own, or a cap, at or before this are dead
}

// Change returns the policy from now (ms) on. It is the only way to change one: items that the old policy has
// killed by now stay dead. It takes constant time, whatever the number of items. Deadline and hold stay.
func (p Policy) Change(def TTL, mode Mode, now int64) Policy {
	p.InheritDeadTo, p.OwnDeadTo = p.DeadTo(now)
	p.Default, p.Mode = def, mode
	return p
}

// WithHold returns the policy with another hold, "" for none, from now (ms) on. What is dead by now stays
// dead. When the hold ends, the items whose end has come meanwhile die at once.
func (p Policy) WithHold(reason string, now int64) Policy {
	p.InheritDeadTo, p.OwnDeadTo = p.DeadTo(now)
	p.Hold = reason
	return p
}

// Dead alone decides whether an item is dead at the moment now (ms): one last written at ts (ms) with an
// expireAt. An item is dead at equality too.
func (p *Policy) Dead(ts, expireAt, now int64) bool {
	return p.DeadLimits(now).Select(ts, expireAt)
}

// DeadTo decides the same for all items at once, at the moment now (ms). Items that inherit are dead if they
// were last written at or before byDefault. Items with an end of their own, or a cap, are dead if that is at
// or before byOwnTTL.
//
// The default is subtracted from now and not added to the time of a write. That may come from a file, and the
// sum could wrap around.
func (p *Policy) DeadTo(now int64) (byDefault, byOwnTTL int64) {
	byDefault, byOwnTTL = p.InheritDeadTo, p.OwnDeadTo
	if p.Hold != "" {
		return byDefault, byOwnTTL
	}
	if p.Default > 0 {
		byDefault = max(byDefault, now-int64(p.Default)*1000)
	}
	if p.Default != Off {
		byOwnTTL = max(byOwnTTL, now)
	}
	return byDefault, byOwnTTL
}

// SleepOn returns the expireAt of an item that lives and comes from another container. An end that sleeps
// here, too, comes after those of the items that have died here: its own did not count where it was.
func (p *Policy) SleepOn(expireAt int64) int64 {
	if expireAt > Inherit && (p.Default == Off || p.Hold != "") {
		return max(expireAt, p.OwnDeadTo+1)
	}
	return expireAt
}

// End returns the moment in ms at which a live item dies if nothing changes, and whether there is one.
func (p *Policy) End(ts, expireAt int64) (end int64, ok bool) {
	end, cause := p.Ending(ts, expireAt)
	return end, cause != ""
}

// Ending returns the moment in ms at which a live item dies if nothing changes, and of what: [ByDocument] or
// [ByContainer], or nothing. If a cap and the default's end are one moment, the cap decides.
func (p *Policy) Ending(ts, expireAt int64) (end int64, cause Cause) {
	switch {
	case p.Default == Off || expireAt == Never || p.Hold != "":
		return 0, ""
	case expireAt > Inherit:
		return expireAt, ByDocument
	}
	if p.Default > 0 {
		end, cause = after(ts, p.Default), ByContainer
	}
	if at, ok := Cap(expireAt); ok && (cause == "" || at <= end) {
		return at, ByDocument
	}
	return end, cause
}

// Expires reports which items die under the policy as it stands: those that inherit its default, and those
// with an end of their own.
func (p *Policy) Expires() (byDefault, byOwnTTL bool) {
	return p.Default > 0 && p.Hold == "", p.Default != Off && p.Hold == ""
}

// A RangeError is a TTL that is not a legal one.
type RangeError struct {
	What  string // "ttl" or "default TTL"
	Value string // as the user wrote it, cut to a readable length
	Legal string // the legal values in words
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("invalid %s %s: legal are %s", e.What, e.Value, e.Legal)
}

const (
	legalMember  = "-1 and whole numbers of seconds from 1 to 2147483647"
	legalDefault = "off, -1 and whole numbers of seconds from 1 to 2147483647"
)

// ParseDefault reads a container's default from a command: "off" or "null", Cosmos' word for it (both in any
// case), "-1" or 1 to 2147483647. The error is a [RangeError].
func ParseDefault(s string) (TTL, error) {
	if strings.EqualFold(s, "off") || strings.EqualFold(s, "null") {
		return Off, nil
	}
	if t, ok := parseSeconds(s); ok {
		return t, nil
	}
	return 0, &RangeError{What: "default TTL", Value: Quote(s), Legal: legalDefault + InSeconds(s)}
}

// ParseOption reads a document's ttl from a command: "null" (in any case) for none, "-1" or 1 to 2147483647.
// The error is a [RangeError].
func ParseOption(s string) (TTL, error) {
	if strings.EqualFold(s, "null") {
		return Absent, nil
	}
	if t, ok := parseSeconds(s); ok {
		return t, nil
	}
	return 0, &RangeError{What: "ttl", Value: Quote(s), Legal: "null, " + legalMember + InSeconds(s)}
}

// secondsOf are the units that people write behind a number.
var secondsOf = map[string]TTL{"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}

// InSeconds says how to write a time with a unit, such as 1h, for the end of an error: "; 1h is 3600". It is
// empty for anything else.
func InSeconds(s string) string {
	digits, unit := cutDigits(s)
	factor := secondsOf[strings.ToLower(unit)]
	count, ok := parseSeconds(digits)
	if factor == 0 || !ok || count > MaxTTL/factor {
		return ""
	}
	return fmt.Sprintf("; %s is %d", Quote(s), count*factor)
}

// parseSeconds reads the one canonical spelling of a legal TTL: without leading zeros or a plus.
func parseSeconds(s string) (TTL, bool) {
	if s == "-1" {
		return Forever, true
	}
	digits, rest := cutDigits(s)
	if digits == "" || rest != "" || digits[0] == '0' || len(digits) > maxDigits {
		return 0, false
	}
	t := valueOf(digits)
	if t > MaxTTL {
		return 0, false
	}
	return t, true
}

// maxDigits is the number of digits of MaxTTL.
const maxDigits = 10

// ParseMember reads the raw JSON of a document's root member "ttl" (rule 4). A number in range without a
// fraction counts in any notation (20, 20.0, 2e1). null is [Absent]. Anything else is a [RangeError].
func ParseMember(raw string) (TTL, error) {
	if raw == "null" {
		return Absent, nil
	}
	if t, ok := parseSeconds(raw); ok {
		return t, nil
	}
	if t, ok := parseWholeNumber(raw, maxDigits); ok && (t == Forever || t >= 1 && t <= MaxTTL) {
		return t, nil
	}
	return 0, &RangeError{What: "ttl", Value: Quote(raw), Legal: legalMember}
}

// RepeatedMember is the error for a document with more than one root member "ttl".
func RepeatedMember() error {
	return &RangeError{What: "ttl", Value: "(the member is repeated)", Legal: legalMember}
}

// parseWholeNumber reads a JSON number exactly. Floating point would round 2147483647.00000001 to a legal
// value. It refuses text that is not a JSON number, fractions, and more than most digits. Large exponents
// cost nothing.
func parseWholeNumber(raw string, most int) (TTL, bool) {
	s, negative := strings.CutPrefix(raw, "-")
	whole, s := cutDigits(s)
	if whole == "" || whole[0] == '0' && whole != "0" {
		return 0, false
	}
	var fraction string
	if rest, ok := strings.CutPrefix(s, "."); ok {
		if fraction, s = cutDigits(rest); fraction == "" {
			return 0, false
		}
	}
	exponent, ok := parseExponent(s)
	if !ok {
		return 0, false
	}
	// The value is digits * 10^exponent, with neither leading nor trailing zeros in digits.
	digits := strings.TrimLeft(whole+fraction, "0")
	trimmed := strings.TrimRight(digits, "0")
	shift := len(digits) - len(trimmed) - len(fraction)
	if trimmed == "" || exponent < -shift || exponent > most-len(trimmed)-shift {
		return 0, false
	}
	t := valueOf(trimmed)
	for range exponent + shift {
		t *= 10
	}
	if negative {
		t = -t
	}
	return t, true
}

// parseExponent reads the exponent behind a JSON number's digits, which may be empty. It refuses more than
// nine digits: with those no mantissa that fits into memory is a legal TTL.
func parseExponent(s string) (int, bool) {
	if s == "" {
		return 0, true
	}
	if s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := strings.HasPrefix(s, "-")
	if negative || strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	digits, rest := cutDigits(s)
	significant := strings.TrimLeft(digits, "0")
	if digits == "" || rest != "" || len(significant) > 9 {
		return 0, false
	}
	n := int(valueOf(significant))
	if negative {
		n = -n
	}
	return n, true
}

// valueOf reads a few digits.
func valueOf(digits string) (t TTL) {
	for _, d := range []byte(digits) {
		t = t*10 + TTL(d-'0')
	}
	return t
}

func cutDigits(s string) (digits, rest string) {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return s[:i], s[i:]
}

// Quote shortens a user's value and quotes it if necessary, so that an error with it is one readable line.
func Quote(s string) string {
	const most = 64
	if len(s) > most {
		s = s[:most] + "..."
	}
	unprintable := func(r rune) bool { return !strconv.IsPrint(r) }
	if s == "" || !utf8.ValidString(s) || strings.ContainsFunc(s, unprintable) {
		return strconv.Quote(s)
	}
	return s
}

// Source names what decides the end of an item, last written at ts (ms), for DOC.META: hold, off, ignored,
// document or container.
func (p *Policy) Source(ts, expireAt int64, ignored bool) string {
	_, cause := p.Ending(ts, expireAt)
	switch {
	case p.Hold != "":
		return "hold"
	case p.Default == Off:
		return "off"
	case expireAt == Never || cause == ByDocument:
		return "document"
	case ignored:
		return "ignored"
	}
	return "container"
}
