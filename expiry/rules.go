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

// String gives "off", "-1" or the seconds.
func (t TTL) String() string {
	if t == Off {
		return "off"
	}
	return strconv.FormatInt(int64(t), 10)
}

// An item's own end is an int64: [Inherit], [Never] or the absolute moment, in milliseconds since
// the epoch, at which the item dies if its container has TTL switched on.
const (
	// Inherit: the item says nothing of its own; the container's default rules.
	Inherit int64 = 0
	// Never: the item is exempt from its container's default.
	Never int64 = -1
)

// OwnEnd turns a document's ttl into its own end: ts is its last write in milliseconds. An end
// beyond the range of the type is moved to its limit.
func OwnEnd(ts int64, ttl TTL) int64 {
	switch ttl {
	case Absent:
		return Inherit
	case Forever:
		return Never
	}
	return after(ts, ttl)
}

// after gives the moment ttl seconds after ts (ms).
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

// String gives "strict" or "lenient".
func (m Mode) String() string {
	if m == Lenient {
		return "lenient"
	}
	return "strict"
}

// Policy is a container's rule of time to live together with what its past rules have already
// killed. It is a value: changing a policy makes a new one with [Policy.Change]. All moments are in
// milliseconds since the epoch and positive.
//
// The two marks hold all of history that rule 7 ("dead stays dead") needs, in constant space. Past
// rules can only have killed
//   - an item without an end of its own, if it was last written at least n seconds before a default
//     of n was replaced: the latest such moment is InheritDeadTo;
//   - an item with an end of its own, if that end came before TTL was switched off or its rule
//     replaced: the latest such moment is OwnDeadTo.
//
// An item written after a change is never touched by the marks the change left: a default is at
// least a second, and an item's own end lies after its write.
type Policy struct {
	Default TTL
	Mode    Mode

	InheritDeadTo int64 // ms; items that inherit, last written at or before this, are dead
	OwnDeadTo     int64 // ms; items whose own end is at or before this are dead
}

// Change gives the policy that rules from now (ms) on. It is the only way to change one: it keeps
// dead what the old policy had killed by now. Constant time, whatever the number of items.
func (p Policy) Change(def TTL, mode Mode, now int64) Policy {
	p.InheritDeadTo, p.OwnDeadTo = p.DeadTo(now)
	p.Default, p.Mode = def, mode
	return p
}

// Dead is the one place in the program that answers whether an item is dead: one last written at
// ts (ms) with the given own end, at the moment now (ms). An item is dead at equality too.
func (p *Policy) Dead(ts, own, now int64) bool {
	inherit, ownTo := p.DeadTo(now)
	switch own {
	case Never:
		return false
	case Inherit:
		return ts <= inherit
	}
	return own <= ownTo
}

// DeadTo says the same of all items at once, at the moment now (ms): those that inherit are dead if
// they were last written at or before the first moment, those with an end of their own if that is
// at or before the second.
//
// The default is taken from now rather than added to the time of a write, which may come from a
// file and be anything: that sum could wrap around.
func (p *Policy) DeadTo(now int64) (inherit, own int64) {
	inherit, own = p.InheritDeadTo, p.OwnDeadTo
	if p.Default > 0 {
		inherit = max(inherit, now-int64(p.Default)*1000)
	}
	if p.Default != Off {
		own = max(own, now)
	}
	return inherit, own
}

// End is the moment in ms at which an item that lives now will die if nothing changes, and whether
// there is one.
func (p *Policy) End(ts, own int64) (end int64, ok bool) {
	switch {
	case p.Default == Off || own == Never:
		return 0, false
	case own != Inherit:
		return own, true
	case p.Default > 0:
		return after(ts, p.Default), true
	}
	return 0, false
}

// Expires reports which items die under the policy as it stands: those that inherit its default, and those with
// an end of their own.
func (p *Policy) Expires() (byDefault, byOwnTTL bool) { return p.Default > 0, p.Default != Off }

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

// ParseDefault reads a container's default as written in a command: "off" (in any case), "-1" or
// 1 to 2147483647. The error is a [RangeError].
func ParseDefault(s string) (TTL, error) {
	if strings.EqualFold(s, "off") {
		return Off, nil
	}
	if t, ok := parseSeconds(s); ok {
		return t, nil
	}
	return 0, &RangeError{What: "default TTL", Value: Quote(s), Legal: legalDefault}
}

// ParseOption reads a document's ttl as written in a command: "null" (in any case) for none, "-1"
// or 1 to 2147483647. The error is a [RangeError].
func ParseOption(s string) (TTL, error) {
	if strings.EqualFold(s, "null") {
		return Absent, nil
	}
	if t, ok := parseSeconds(s); ok {
		return t, nil
	}
	return 0, &RangeError{What: "ttl", Value: Quote(s), Legal: "null, " + legalMember}
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

// ParseMember reads the raw JSON of a document's root member "ttl" (rule 4). A number without
// fraction in range counts however it is written (20, 20.0, 2e1); null is [Absent]; anything else
// is a [RangeError].
func ParseMember(raw string) (TTL, error) {
	if raw == "null" {
		return Absent, nil
	}
	if t, ok := parseSeconds(raw); ok {
		return t, nil
	}
	if t, ok := parseWholeNumber(raw); ok && (t == Forever || t >= 1 && t <= MaxTTL) {
		return t, nil
	}
	return 0, &RangeError{What: "ttl", Value: Quote(raw), Legal: legalMember}
}

// RepeatedMember is the error for a document with more than one root member "ttl".
func RepeatedMember() error {
	return &RangeError{What: "ttl", Value: "(the member is repeated)", Legal: legalMember}
}

// parseWholeNumber reads a JSON number exactly, without a detour over floating point, which would
// round 2147483647.00000001 to a legal value. What is not a JSON number, or has a fraction, or more
// than maxDigits digits before it is refused. An exponent, however large, costs nothing.
func parseWholeNumber(raw string) (TTL, bool) {
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
	if trimmed == "" || exponent < -shift || exponent > maxDigits-len(trimmed)-shift {
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

// parseExponent reads what follows a JSON number's digits: nothing, or an exponent. One of more than
// nine digits is refused: no mantissa that fits into memory makes a legal TTL of it.
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

// valueOf reads at most maxDigits digits.
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

// Quote shortens a user's value, and quotes it if need be, so that an error that names it stays one
// readable line.
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

// Source names what governs an item's end, for DOC.META.
func (p *Policy) Source(own int64, ignored bool) string {
	switch {
	case p.Default == Off:
		return "off"
	case ignored:
		return "ignored"
	case own != Inherit:
		return "document"
	}
	return "container"
}
