package streams

import (
	"strings"
	"testing"

	"mayfly/commands/access"
)

func TestNamesOfStreams(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"__keyevent@orders__:expired":      "orders",
		"__keyevent@a__:expired__:expired": "a__:expired",
		"__keyevent@0__:expired":           "0",
		"__keyevent@__:expired":            "",
		"__keyevent@a b__:expired":         "",
		"__keyevent@orders__:set":          "",
		"keyevent@orders__:expired":        "",
		"__keyevent@__:expire":             "",
		"":                                 "",
	} {
		if got, ok := access.LogName(key); ok != (want != "") || ok && got != want {
			t.Errorf("%s: %q, %v", key, got, ok)
		}
	}
}

func FuzzParseStreams(f *testing.F) {
	f.Add("XREAD COUNT 2 BLOCK 5 STREAMS a b 0 $")
	f.Add("XREADGROUP GROUP g c NOACK STREAMS a >")
	f.Add("XTRIM a MINID ~ 5-1 LIMIT 100")
	f.Add("XRANGE a (5-1 + COUNT 3")
	f.Fuzz(func(t *testing.T, line string) {
		args := strings.Split(line, " ")
		for _, group := range []bool{false, true} {
			if o, err := parseXRead(args, group); err == nil && (len(o.keys) == 0 || len(o.keys) != len(o.ids) || o.count < 0 || o.block < -1) {
				t.Errorf("%q: %+v", args, o)
			}
		}
		if o, err := parseTrimOptions(args); err == nil && (o.limit < 1 || o.length < -1 || o.length < 0 && args[0] == "") {
			t.Errorf("%q: %+v", args, o)
		}
		for _, arg := range args {
			from, err1 := parseIntervalStart(arg)
			to, err2 := parseIntervalEnd(arg)
			if err1 == nil && err2 == nil && !strings.HasPrefix(arg, "(") && to.Less(from) {
				t.Errorf("%q is the interval from %v to %v", arg, from, to)
			}
			if id, err := parseStreamID(arg, 0); err == nil && err1 == nil && id != from {
				t.Errorf("%q is %v, and %v as a bound", arg, id, from)
			}
			if name, ok := access.LogName(arg); ok && "__keyevent@"+name+"__:expired" != arg {
				t.Errorf("%q is the log of %q", arg, name)
			}
		}
	})
}
