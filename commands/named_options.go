package commands

import (
	"strings"

	"mayfly/commands/redisfmt"
)

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
	o.fail(Error("ERR unknown option '" + cut(redisfmt.CString(word)) + "': legal are " + strings.Join(o.legal, ", ")))
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
