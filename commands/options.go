package commands

import (
	"math"

	"mayfly/commands/redisfmt"
)

// unit is a unit of time in ms.
type unit int64

const (
	milliseconds unit = 1
	seconds      unit = 1000
)

// base is what a time is counted from.
type base bool

const (
	fromNow   base = false
	fromEpoch base = true
)

// moment is a moment as a command gives it, in ms.
type moment struct {
	ms   int64
	base base
}

// parseMoment reads a moment for the command with this full name. Overflow is looked for before the
// unit is converted.
func parseMoment(text string, b base, u unit, fullName string) (moment, error) {
	n, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return moment{}, errNotInteger
	case n > math.MaxInt64/int64(u) || n < math.MinInt64/int64(u):
		return moment{}, invalidExpire(fullName)
	}
	return moment{ms: n * int64(u), base: b}, nil
}

// at gives the moment in ms since the epoch, now (ms) being the present; false if that cannot be
// represented.
func (m moment) at(now int64) (int64, bool) {
	if m.base == fromEpoch {
		return m.ms, true
	}
	return redisfmt.AddInt(now, m.ms)
}

// ending says what a command of the SET family does to a key's own end. The zero value: nothing is
// said of it.
type ending struct {
	text  string // of the moment, as the user wrote it
	base  base
	unit  unit // 0: there is no moment
	keep  bool // KEEPTTL
	never bool // PERSIST
}

// none tells whether nothing is said yet, so that another option may say it.
func (e *ending) none() bool { return *e == ending{} }

// endingOptions are the options that give a moment. One of them may be repeated, but not mixed.
var endingOptions = []struct {
	word string
	base base
	unit unit
}{
	{"EX", fromNow, seconds},
	{"PX", fromNow, milliseconds},
	{"EXAT", fromEpoch, seconds},
	{"PXAT", fromEpoch, milliseconds},
}

// parseOption reads one of EX, PX, EXAT and PXAT at the head of args and returns how many arguments
// it takes; 0 if it is none of these, or if another way to say the end was given before.
func (e *ending) parseOption(args []string) int {
	if len(args) < 2 {
		return 0
	}
	for _, o := range endingOptions {
		if redisfmt.EqualFold(args[0], o.word) {
			if !e.none() && (e.unit != o.unit || e.base != o.base) {
				return 0
			}
			*e = ending{text: args[1], base: o.base, unit: o.unit}
			return 2
		}
	}
	return 0
}

// moment reads the moment for the command with this full name. It must not be zero or negative.
func (e *ending) moment(fullName string) (moment, error) {
	m, err := parseMoment(e.text, e.base, e.unit, fullName)
	if err == nil && m.ms <= 0 {
		err = invalidExpire(fullName)
	}
	return m, err
}

// setOptions are those of SET.
type setOptions struct {
	nx, xx, get bool
	ending      ending
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
		case redisfmt.EqualFold(args[0], "KEEPTTL") && (o.ending.keep || o.ending.none()):
			o.ending.keep = true
		default:
			if used = o.ending.parseOption(args); used == 0 {
				return o, errSyntax
			}
		}
		args = args[used:]
	}
	return o, nil
}

// parseGetexOptions reads what follows the key in GETEX.
func parseGetexOptions(args []string) (ending, error) {
	var e ending
	for len(args) > 0 {
		used := 1
		if redisfmt.EqualFold(args[0], "PERSIST") && (e.never || e.none()) {
			e.never = true
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
