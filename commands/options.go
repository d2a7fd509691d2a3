package commands

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
	"mayfly/expiry"
)

// timeUnit is a unit of time in ms.
type timeUnit int64

const (
	milliseconds timeUnit = 1
	seconds      timeUnit = 1000
)

// timeBase is the origin of a time.
type timeBase bool

const (
	fromNow   timeBase = false
	fromEpoch timeBase = true
)

// expireTime is a time of death as a command gives it, in ms.
type expireTime struct {
	ms   int64
	base timeBase
}

// parseExpireTime reads a time for the command with this full name. It checks for overflow before it
// converts the unit.
func parseExpireTime(text string, b timeBase, u timeUnit, fullName string) (expireTime, error) {
	n, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return expireTime{}, errNotInteger
	case n > math.MaxInt64/int64(u) || n < math.MinInt64/int64(u):
		return expireTime{}, errorf(errInvalidExpire, fullName)
	}
	return expireTime{ms: n * int64(u), base: b}, nil
}

// deadline returns the time of death in ms since 1970, for the current time now (ms). ok is false if it
// overflows.
func (m expireTime) deadline(now int64) (int64, bool) {
	if m.base == fromEpoch {
		return m.ms, true
	}
	return redisfmt.AddInt(now, m.ms)
}

// expireOption is what a command of the SET family does to a key's expiration. The zero value is no
// option.
type expireOption struct {
	text    string // the time as the user wrote it
	base    timeBase
	unit    timeUnit // 0: no time is given
	keep    bool     // KEEPTTL
	persist bool     // PERSIST
}

// unset reports whether no option is given yet.
func (e *expireOption) unset() bool { return *e == expireOption{} }

// expireOptions are the options that give a time. One of them may be repeated, but two must not be mixed.
var expireOptions = []struct {
	word string
	base timeBase
	unit timeUnit
}{
	{"EX", fromNow, seconds},
	{"PX", fromNow, milliseconds},
	{"EXAT", fromEpoch, seconds},
	{"PXAT", fromEpoch, milliseconds},
}

// parse reads EX, PX, EXAT or PXAT at the head of args and returns the number of arguments it
// takes. It returns 0 if there is none of these, or if another option was given before.
func (e *expireOption) parse(args []string) int {
	if len(args) < 2 {
		return 0
	}
	for _, o := range expireOptions {
		if redisfmt.EqualFold(args[0], o.word) {
			if !e.unset() && (e.unit != o.unit || e.base != o.base) {
				return 0
			}
			*e = expireOption{text: args[1], base: o.base, unit: o.unit}
			return 2
		}
	}
	return 0
}

// time reads the time for the command with this full name. Zero and negative times are errors.
func (e *expireOption) time(fullName string) (expireTime, error) {
	m, err := parseExpireTime(e.text, e.base, e.unit, fullName)
	if err == nil && m.ms <= 0 {
		err = errorf(errInvalidExpire, fullName)
	}
	return m, err
}

// setOptions are the options of SET.
type setOptions struct {
	nx, xx, get bool
	expire      expireOption
}

// parseSetOptions reads the arguments after key and value of SET.
func parseSetOptions(args []string) (setOptions, error) {
	var o setOptions
	for len(args) > 0 {
		used := 1
		switch {
		case redisfmt.EqualFold(args[0], "NX") && !o.xx:
			o.nx = true
		case redisfmt.EqualFold(args[0], "XX") && !o.nx:
			o.xx = true
		case redisfmt.EqualFold(args[0], "GET"):
			o.get = true
		case redisfmt.EqualFold(args[0], "KEEPTTL") && (o.expire.keep || o.expire.unset()):
			o.expire.keep = true
		default:
			if used = o.expire.parse(args); used == 0 {
				return o, errSyntax
			}
		}
		args = args[used:]
	}
	return o, nil
}

// parseGetexOptions reads the arguments after the key of GETEX.
func parseGetexOptions(args []string) (expireOption, error) {
	var e expireOption
	for len(args) > 0 {
		used := 1
		if redisfmt.EqualFold(args[0], "PERSIST") && (e.persist || e.unset()) {
			e.persist = true
		} else if used = e.parse(args); used == 0 {
			return e, errSyntax
		}
		args = args[used:]
	}
	return e, nil
}

// parseFlags sets the flags of the options in args. It returns false if one is unknown.
func parseFlags(args []string, options map[string]*bool) bool {
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

// parseExpireCondition reads the arguments after the time in the EXPIRE family.
func parseExpireCondition(args []string) (expireCondition, error) {
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
			return c, errorf(errExpireOption, shown(arg))
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

// allows reports whether a key may get a new expiration, newEnd. Its current one is end, if it expires at
// all (both ms). A key that never expires counts as infinitely late.
func (c expireCondition) allows(end int64, ends bool, newEnd int64) bool {
	switch {
	case c.nx && ends, c.xx && !ends:
		return false
	case c.gt && (!ends || newEnd <= end), c.lt && ends && newEnd >= end:
		return false
	}
	return true
}

// scanOptions are the common options of the SCAN family.
type scanOptions struct {
	pattern *redisfmt.Pattern // nil if all
	all     bool              // no pattern, or one that matches every id
	count   int               // the number of items to visit
}

// newScanOptions returns the defaults.
func newScanOptions() scanOptions { return scanOptions{all: true, count: 10} }

// parse reads MATCH or COUNT at the head of args and returns the number of arguments it takes; 0 if there
// is neither.
func (o *scanOptions) parse(args []string) (used int, err error) {
	switch {
	case len(args) < 2:
		return 0, nil
	case redisfmt.EqualFold(args[0], "MATCH"):
		return 2, o.setPattern(args[1])
	case redisfmt.EqualFold(args[0], "COUNT"):
		n, ok := redisfmt.ParseInt(args[1])
		switch {
		case !ok:
			return 0, errNotInteger
		case n < 1:
			return 0, errSyntax
		}
		o.count = int(n)
		return 2, nil
	}
	return 0, nil
}

// setPattern sets the pattern, unless it takes too long to match.
func (o *scanOptions) setPattern(pattern string) error {
	if o.all = pattern == "*"; o.all {
		return nil
	}
	if err := checkPattern(pattern); err != nil {
		return err
	}
	o.pattern = redisfmt.Compile(pattern)
	return nil
}

// parseCount reads the value of COUNT of mayfly's own commands.
func parseCount(text string) (count int, ok bool) {
	n, ok := redisfmt.ParseInt(text)
	return int(n), ok && n >= 1
}

// misplaced reports whether one of several ids is the name of an option. So an option out of place is not
// taken for the id of a document. A document of that name can still be named alone.
func misplaced(ids []string, option string) bool {
	return len(ids) > 1 && slices.ContainsFunc(ids, func(id string) bool { return redisfmt.EqualFold(id, option) })
}

// selects reports whether an id matches the pattern.
func (o *scanOptions) selects(id string) bool { return o.all || o.pattern.Match(id) }

// namedOptions reads the options at the end of the arguments of mayfly's own commands. Its errors name
// the wrong option and the legal ones, where Redis says "syntax error". Options may come in any order,
// each once.
//
//	o := namedOptions{args: in.Args[2:], legal: []string{"TTL", "NX"}}
//	for o.next() {
//		switch o.name {
//		case "TTL":
//			ttl, err = expiry.ParseOption(o.value("-1, seconds or null"))
//			o.fail(err)
//		…
//	}
//	return ttl, o.err
type namedOptions struct {
	args  []string
	legal []string                 // in upper case; at most 32
	meant func(word string) string // what a word that is no option probably means; nil: unknown
	name  string                   // the current option, as in legal
	err   error                    // the first error; next returns false from then on

	given uint32 // bit i: legal[i] was given
}

// next moves to the next option. It returns false at the end and after an error.
func (o *namedOptions) next() bool {
	if o.err != nil || len(o.args) == 0 {
		return false
	}
	word := o.args[0]
	o.args = o.args[1:]
	for i, name := range o.legal {
		if !redisfmt.EqualFold(word, name) {
			continue
		}
		if o.given&(1<<i) != 0 {
			o.fail(errorf(errOptionTwice, name))
			return false
		}
		o.given |= 1 << i
		o.name = name
		return true
	}
	meant := ""
	if o.meant != nil {
		meant = o.meant(word)
	}
	legal := strings.Join(o.legal, ", ")
	if meant != "" {
		o.fail(errorf(errMeantOption, shown(word), legal, shown(meant)))
	} else {
		o.fail(errorf(errUnknownOption, shown(word), legal))
	}
	return false
}

// value takes the option's value, the next argument. what describes legal values in the error.
func (o *namedOptions) value(what string) string {
	if len(o.args) == 0 {
		o.fail(errorf(errOptionValue, o.name, what))
		return ""
	}
	value := o.args[0]
	o.args = o.args[1:]
	return value
}

// number takes the option's value, a whole number in a range. It returns low after an error.
func (o *namedOptions) number(low, high int64) int64 {
	text := o.value(fmt.Sprintf("a whole number from %d to %d", low, high))
	n, ok := redisfmt.ParseInt(text)
	if !ok || n < low || n > high {
		o.fail(errorf(errOptionRange, o.name, expiry.Quote(text), low, high))
		return low
	}
	return n
}

// values takes all remaining arguments, at least one.
func (o *namedOptions) values(what string) []string {
	values := append([]string{o.value(what)}, o.args...)
	o.args = nil
	return values
}

// fail notes an error, unless there is one already.
func (o *namedOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}
