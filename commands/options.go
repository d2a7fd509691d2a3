package commands

import (
	"math"
	"strings"

	"mayfly/commands/redisfmt"
)

// unit is a unit of time in ms.
type timeUnit int64

const (
	milliseconds timeUnit = 1
	seconds      timeUnit = 1000
)

// base is what a time is counted from.
type timeBase bool

const (
	fromNow   timeBase = false
	fromEpoch timeBase = true
)

// moment is a moment as a command gives it, in ms.
type expireTime struct {
	ms   int64
	base timeBase
}

// parseMoment reads a moment for the command with this full name. Overflow is looked for before the
// unit is converted.
func parseExpireTime(text string, b timeBase, u timeUnit, fullName string) (expireTime, error) {
	n, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return expireTime{}, errNotInteger
	case n > math.MaxInt64/int64(u) || n < math.MinInt64/int64(u):
		return expireTime{}, invalidExpire(fullName)
	}
	return expireTime{ms: n * int64(u), base: b}, nil
}

// at gives the moment in ms since the epoch, now (ms) being the present; false if that cannot be
// represented.
func (m expireTime) deadline(now int64) (int64, bool) {
	if m.base == fromEpoch {
		return m.ms, true
	}
	return redisfmt.AddInt(now, m.ms)
}

// ending says what a command of the SET family does to a key's own end. The zero value: nothing is
// said of it.
type expireOption struct {
	text    string // of the moment, as the user wrote it
	base    timeBase
	unit    timeUnit // 0: there is no moment
	keep    bool     // KEEPTTL
	persist bool     // PERSIST
}

// none tells whether nothing is said yet, so that another option may say it.
func (e *expireOption) unset() bool { return *e == expireOption{} }

// endingOptions are the options that give a moment. One of them may be repeated, but not mixed.
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

// parseOption reads one of EX, PX, EXAT and PXAT at the head of args and returns how many arguments
// it takes; 0 if it is none of these, or if another way to say the end was given before.
func (e *expireOption) parseOption(args []string) int {
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

// moment reads the moment for the command with this full name. It must not be zero or negative.
func (e *expireOption) time(fullName string) (expireTime, error) {
	m, err := parseExpireTime(e.text, e.base, e.unit, fullName)
	if err == nil && m.ms <= 0 {
		err = invalidExpire(fullName)
	}
	return m, err
}

// setOptions are those of SET.
type setOptions struct {
	nx, xx, get bool
	expire      expireOption
}

// parseSetOptions reads what follows key and value in SET.
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
			if used = o.expire.parseOption(args); used == 0 {
				return o, errSyntax
			}
		}
		args = args[used:]
	}
	return o, nil
}

// parseGetexOptions reads what follows the key in GETEX.
func parseGetexOptions(args []string) (expireOption, error) {
	var e expireOption
	for len(args) > 0 {
		used := 1
		if redisfmt.EqualFold(args[0], "PERSIST") && (e.persist || e.unset()) {
			e.persist = true
		} else if used = e.parseOption(args); used == 0 {
			return e, errSyntax
		}
		args = args[used:]
	}
	return e, nil
}

// expireCondition says when a command of the EXPIRE family applies.
type expireCondition struct{ nx, xx, gt, lt bool }

// parseExpireCondition reads what follows the time in EXPIRE and its family.
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
			return c, unsupportedOption(arg)
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

// allows tells whether a key that ends at end, if ends, may be given the new end (both ms).
// A key without an end counts as ending infinitely late.
func (c expireCondition) allows(end int64, ends bool, newEnd int64) bool {
	switch {
	case c.nx && ends, c.xx && !ends:
		return false
	case c.gt && (!ends || newEnd <= end), c.lt && ends && newEnd >= end:
		return false
	}
	return true
}

// scanOptions are those that SCAN and its kin share.
type scanOptions struct {
	pattern string
	all     bool // there is no pattern, or one that lets every id through
	count   int  // how many items to visit
}

// newScanOptions gives the options as they are if none is given.
func newScanOptions() scanOptions { return scanOptions{all: true, count: 10} }

// parseOption reads MATCH or COUNT at the head of args and returns how many arguments it takes; 0 if
// it is neither.
func (o *scanOptions) parseOption(args []string) (used int, err error) {
	switch {
	case len(args) < 2:
		return 0, nil
	case redisfmt.EqualFold(args[0], "MATCH"):
		o.pattern = args[1]
		o.all = o.pattern == "*"
		return 2, checkPattern(o.pattern)
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

// selects tells whether an id matches the pattern.
func (o *scanOptions) selects(id string) bool { return o.all || redisfmt.Match(o.pattern, id) }

// namedOptions reads the options at the end of the arguments of our own commands. Where Redis says
// "syntax error", its errors say which option is wrong and which there are. An option may be given
// once, in any place among the others.
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
	legal []string // in upper case; at most 32
	name  string   // the option that next has found, as in legal
	err   error    // the first thing wrong; next is false from then on

	given uint32 // bit i: legal[i] has been there
}

// next goes to the next option; false at the end and after an error.
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
			o.fail(Error("ERR option " + name + " is given twice"))
			return false
		}
		o.given |= 1 << i
		o.name = name
		return true
	}
	o.fail(Error("ERR unknown option '" + truncate(redisfmt.CString(word)) + "': legal are " + strings.Join(o.legal, ", ")))
	return false
}

// value takes the option's value, the argument after it; what tells the user what that may be.
func (o *namedOptions) value(what string) string {
	if len(o.args) == 0 {
		o.fail(Error("ERR option " + o.name + " needs a value: " + what))
		return ""
	}
	value := o.args[0]
	o.args = o.args[1:]
	return value
}

// values takes all arguments that are left, one at least.
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
