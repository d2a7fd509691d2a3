package items

import (
	"encoding/hex"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"mayfly/commands/engine"
	"mayfly/expiry"
	"mayfly/redisfmt"
)

// TimeUnit is a unit of time in ms.
type TimeUnit int64

const (
	Milliseconds TimeUnit = 1
	Seconds      TimeUnit = 1000
)

// TimeBase is the origin of a time.
type TimeBase bool

const (
	FromNow   TimeBase = false
	FromEpoch TimeBase = true
)

// ExpireTime is a time of death as a command gives it, in ms.
type ExpireTime struct {
	ms   int64
	base TimeBase
}

// ParseExpireTime reads a time for the command with this full name. It checks for overflow before it
// converts the unit.
func ParseExpireTime(text string, b TimeBase, u TimeUnit, fullName string) (ExpireTime, error) {
	n, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return ExpireTime{}, engine.ErrNotInteger
	case n > math.MaxInt64/int64(u) || n < math.MinInt64/int64(u):
		return ExpireTime{}, engine.Errorf(engine.ErrInvalidExpire, fullName)
	}
	return ExpireTime{ms: n * int64(u), base: b}, nil
}

// Deadline returns the time of death in ms since 1970, for the current time now (ms). ok is false if it
// overflows.
func (m ExpireTime) Deadline(now int64) (int64, bool) {
	if m.base == FromEpoch {
		return m.ms, true
	}
	return redisfmt.AddInt(now, m.ms)
}

// ExpireOption is what a command of the SET family does to a key's expiration. The zero value is no
// option.
type ExpireOption struct {
	Text    string // the time as the user wrote it
	Base    TimeBase
	Unit    TimeUnit // 0: no time is given
	Keep    bool     // KEEPTTL
	Persist bool     // PERSIST
}

// Unset reports whether no option is given yet.
func (e *ExpireOption) Unset() bool { return *e == ExpireOption{} }

// expireOptions are the options that give a time. One of them may be repeated, but two must not be mixed.
var expireOptions = []struct {
	word string
	base TimeBase
	unit TimeUnit
}{
	{"EX", FromNow, Seconds},
	{"PX", FromNow, Milliseconds},
	{"EXAT", FromEpoch, Seconds},
	{"PXAT", FromEpoch, Milliseconds},
}

// parse reads EX, PX, EXAT or PXAT at the head of args and returns the number of arguments it
// takes. It returns 0 if there is none of these, or if another option was given before.
func (e *ExpireOption) parse(args []string) int {
	if len(args) < 2 {
		return 0
	}
	for _, o := range expireOptions {
		if redisfmt.EqualFold(args[0], o.word) {
			if !e.Unset() && (e.Unit != o.unit || e.Base != o.base) {
				return 0
			}
			*e = ExpireOption{Text: args[1], Base: o.base, Unit: o.unit}
			return 2
		}
	}
	return 0
}

// Time reads the time for the command with this full name. Zero and negative times are errors.
func (e *ExpireOption) Time(fullName string) (ExpireTime, error) {
	m, err := ParseExpireTime(e.Text, e.Base, e.Unit, fullName)
	if err == nil && m.ms <= 0 {
		err = engine.Errorf(engine.ErrInvalidExpire, fullName)
	}
	return m, err
}

// ValueCondition is a condition on the value of a plain key. The zero value always holds.
type ValueCondition struct {
	differs, digest bool
	operand         *string // a value, or a digest; nil: there is no condition
}

// valueConditions are the words of conditions.
var valueConditions = []struct {
	word            string
	differs, digest bool
}{{"IFEQ", false, false}, {"IFNE", true, false}, {"IFDEQ", false, true}, {"IFDNE", true, true}}

// Parse reads a condition at the head of args and returns the number of arguments it takes; 0 if there is
// none.
func (c *ValueCondition) Parse(args []string) (used int) {
	if len(args) < 2 {
		return 0
	}
	for _, v := range valueConditions {
		if redisfmt.EqualFold(args[0], v.word) {
			*c = ValueCondition{v.differs, v.digest, &args[1]}
			return 2
		}
	}
	return 0
}

// ReadsValue reports whether a word is a condition on the value of a key.
func ReadsValue(word string) bool { return new(ValueCondition).Parse([]string{word, ""}) > 0 }

// Check returns the error of a digest of the wrong form.
func (c ValueCondition) Check() error {
	if !c.digest {
		return nil
	}
	if _, err := hex.DecodeString(*c.operand); err != nil || len(*c.operand) != digestLength {
		return errDigest
	}
	return nil
}

// digestLength is the number of characters of a digest.
const digestLength = 16

// Digest returns the digest of a value as DIGEST has it: XXH3 of 64 bits in hexadecimal.
func Digest(value string) string { return fmt.Sprintf("%0*x", digestLength, xxh3.HashString(value)) }

// Given reports whether there is a condition.
func (c ValueCondition) Given() bool { return c.operand != nil }

// Holds reports whether the condition holds for a plain key, or for none: none is unequal to every value.
func (c ValueCondition) Holds(found bool, value string) bool {
	switch {
	case !c.Given():
		return true
	case found && c.digest:
		return redisfmt.EqualFold(Digest(value), *c.operand) != c.differs
	}
	return (found && value == *c.operand) != c.differs
}

// SetOptions are the options of SET.
type SetOptions struct {
	NX, XX, Get bool
	If          ValueCondition
	Expire      ExpireOption
}

// conditional reports whether a condition is given.
func (o *SetOptions) conditional() bool { return o.NX || o.XX || o.If.Given() }

// ParseSetOptions reads the arguments after key and value of SET.
func ParseSetOptions(args []string) (SetOptions, error) {
	var o SetOptions
	for len(args) > 0 {
		used := 1
		switch {
		case redisfmt.EqualFold(args[0], "NX") && !o.XX && !o.If.Given():
			o.NX = true
		case redisfmt.EqualFold(args[0], "XX") && !o.NX && !o.If.Given():
			o.XX = true
		case redisfmt.EqualFold(args[0], "GET"):
			o.Get = true
		case redisfmt.EqualFold(args[0], "KEEPTTL") && (o.Expire.Keep || o.Expire.Unset()):
			o.Expire.Keep = true
		default:
			if used = o.Expire.parse(args); used == 0 && !o.conditional() {
				used = o.If.Parse(args)
			}
			if used == 0 {
				return o, engine.ErrSyntax
			}
		}
		args = args[used:]
	}
	return o, o.If.Check()
}

// ParseBlindOptions reads the options of SET that look at no value, those of MSETEX and JSON.SET.
func ParseBlindOptions(args []string) (SetOptions, error) {
	o, err := ParseSetOptions(args)
	if o.Get || o.If.Given() {
		err = engine.ErrSyntax
	}
	return o, err
}

// ParseGetexOptions reads the arguments after the key of GETEX.
func ParseGetexOptions(args []string) (ExpireOption, error) {
	var e ExpireOption
	for len(args) > 0 {
		used := e.ParseGetex(args)
		if used == 0 {
			return e, engine.ErrSyntax
		}
		args = args[used:]
	}
	return e, nil
}

// ParseGetex reads EX, PX, EXAT, PXAT or PERSIST at the head of args and returns the number of arguments it
// takes. It returns 0 if there is none of these, or if another option was given before.
func (e *ExpireOption) ParseGetex(args []string) int {
	if redisfmt.EqualFold(args[0], "PERSIST") && (e.Persist || e.Unset()) {
		e.Persist = true
		return 1
	}
	return e.parse(args)
}

// ParseFlags sets the flags of the options in args. It returns false if one is unknown.
func ParseFlags(args []string, options map[string]*bool) bool {
	for _, arg := range args {
		known := false
		for name, flag := range options {
			if redisfmt.EqualFold(arg, name) {
				*flag, known = true, true
			}
		}
		if !known {
			return false
		}
	}
	return true
}

// expireCondition is the condition under which a command of the EXPIRE family applies.
type expireCondition struct{ nx, xx, gt, lt bool }

// ParseExpireCondition reads the arguments after the time in the EXPIRE family.
func ParseExpireCondition(args []string) (expireCondition, error) {
	var c expireCondition
	for _, arg := range args {
		switch {
		case redisfmt.EqualFold(arg, "NX"):
			c.nx = true
		case redisfmt.EqualFold(arg, "XX"):
			c.xx = true
		case redisfmt.EqualFold(arg, "GT"):
			c.gt = true
		case redisfmt.EqualFold(arg, "LT"):
			c.lt = true
		default:
			return c, engine.Errorf(errExpireOption, engine.Shown(arg))
		}
	}
	switch {
	case c.nx && (c.xx || c.gt || c.lt):
		return c, errExpireConflict
	case c.gt && c.lt:
		return c, errExpireOrder
	}
	return c, nil
}

// Allows reports whether a key may get a new expiration, newEnd. Its current one is end, if it expires at
// all (both ms). A key that never expires counts as infinitely late.
func (c expireCondition) Allows(end int64, ends bool, newEnd int64) bool {
	switch {
	case c.nx && ends, c.xx && !ends:
		return false
	case c.gt && (!ends || newEnd <= end), c.lt && ends && newEnd >= end:
		return false
	}
	return true
}

// ScanOptions are the common options of the SCAN family.
type ScanOptions struct {
	pattern *redisfmt.Pattern // nil if all
	all     bool              // no pattern, or one that matches every id
	Count   int               // the number of items to visit
}

// NewScanOptions returns the defaults.
func NewScanOptions() ScanOptions { return ScanOptions{all: true, Count: 10} }

// Parse reads MATCH or COUNT at the head of args and returns the number of arguments it takes; 0 if there
// is neither.
func (o *ScanOptions) Parse(args []string) (used int, err error) {
	switch {
	case len(args) < 2:
		return 0, nil
	case redisfmt.EqualFold(args[0], "MATCH"):
		return 2, o.SetPattern(args[1])
	case redisfmt.EqualFold(args[0], "COUNT"):
		n, ok := redisfmt.ParseInt(args[1])
		switch {
		case !ok:
			return 0, engine.ErrNotInteger
		case n < 1:
			return 0, engine.ErrSyntax
		}
		o.Count = int(n)
		return 2, nil
	}
	return 0, nil
}

// SetPattern sets the pattern, unless it takes too long to match.
func (o *ScanOptions) SetPattern(pattern string) error {
	if o.all = pattern == "*"; o.all {
		return nil
	}
	if err := engine.CheckPattern(pattern); err != nil {
		return err
	}
	o.pattern = redisfmt.Compile(pattern)
	return nil
}

// ParseCount reads the value of COUNT of mayfly's own commands.
func ParseCount(text string) (count int, ok bool) {
	n, ok := redisfmt.ParseInt(text)
	return int(n), ok && n >= 1
}

// Misplaced reports whether one of several ids is the name of an option. So an option out of place is not
// taken for the id of a document. A document of that name can still be named alone.
func Misplaced(ids []string, option string) bool {
	return len(ids) > 1 && slices.ContainsFunc(ids, func(id string) bool { return redisfmt.EqualFold(id, option) })
}

// Selects reports whether an id matches the pattern.
func (o *ScanOptions) Selects(id string) bool { return o.all || o.pattern.Match(id) }

// NamedOptions reads the options at the end of the arguments of mayfly's own commands. Its errors name
// the wrong option and the legal ones, where Redis says "syntax error". Options may come in any order,
// each once.
//
//	o := NamedOptions{args: in.Args[2:], legal: []string{"TTL", "NX"}}
//	for o.next() {
//		switch o.name {
//		case "TTL":
//			ttl, err = expiry.ParseOption(o.value("-1, seconds or null"))
//			o.fail(err)
//		…
//	}
//	return ttl, o.err
type NamedOptions struct {
	Args  []string
	Legal []string                 // in upper case; at most 32
	Meant func(word string) string // what a word that is no option probably means; nil: unknown
	Name  string                   // the current option, as in legal
	Err   error                    // the first error; next returns false from then on

	Given uint32 // bit i: legal[i] was given
}

// Next moves to the next option. It returns false at the end and after an error.
func (o *NamedOptions) Next() bool {
	if o.Err != nil || len(o.Args) == 0 {
		return false
	}
	word := o.Args[0]
	o.Args = o.Args[1:]
	for i, name := range o.Legal {
		if !redisfmt.EqualFold(word, name) {
			continue
		}
		if o.Given&(1<<i) != 0 {
			o.Fail(engine.Errorf(errOptionTwice, name))
			return false
		}
		o.Given |= 1 << i
		o.Name = name
		return true
	}
	meant := ""
	if o.Meant != nil {
		meant = o.Meant(word)
	}
	legal := strings.Join(o.Legal, ", ")
	if meant != "" {
		o.Fail(engine.Errorf(errMeantOption, engine.Shown(word), legal, engine.Shown(meant)))
	} else {
		o.Fail(engine.Errorf(errUnknownOption, engine.Shown(word), legal))
	}
	return false
}

// Value takes the option's value, the next argument. what describes legal values in the error.
func (o *NamedOptions) Value(what string) string {
	if len(o.Args) == 0 {
		o.Fail(engine.Errorf(errOptionValue, o.Name, what))
		return ""
	}
	value := o.Args[0]
	o.Args = o.Args[1:]
	return value
}

// Number takes the option's value, a whole number in a range. It returns low after an error.
func (o *NamedOptions) Number(low, high int64) int64 { return o.number(low, high, "") }

// Seconds is Number for a time in seconds. The error of a time with a unit, such as 1h, says how to write it.
func (o *NamedOptions) Seconds(low, high int64) int64 { return o.number(low, high, " seconds") }

func (o *NamedOptions) number(low, high int64, unit string) int64 {
	text := o.Value(fmt.Sprintf("a whole number from %d to %d", low, high))
	n, ok := redisfmt.ParseInt(text)
	if !ok || n < low || n > high {
		if unit != "" {
			unit += expiry.InSeconds(text)
		}
		o.Fail(engine.Errorf(errOptionRange, o.Name, expiry.Quote(text), low, high, unit))
		return low
	}
	return n
}

// Values takes all remaining arguments, at least one.
func (o *NamedOptions) Values(what string) []string {
	values := append([]string{o.Value(what)}, o.Args...)
	o.Args = nil
	return values
}

// Fail notes an error, unless there is one already.
func (o *NamedOptions) Fail(err error) {
	if o.Err == nil {
		o.Err = err
	}
}

// ParseTimeout reads a time in ms, at least 0.
func ParseTimeout(text string) (ms int64, err error) {
	ms, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return 0, errTimeout
	case ms < 0:
		return 0, errNegativeTime
	}
	return ms, nil
}

// ParseMatchOption reads the arguments of a command whose only option is IFMATCH.
func ParseMatchOption(args []string) (when engine.Precondition, err error) {
	o := NamedOptions{Args: args, Legal: []string{"IFMATCH"}}
	for o.Next() {
		o.Fail(when.ParseMatch(o.Value("an etag or *"), engine.DocETags))
	}
	return when, o.Err
}
