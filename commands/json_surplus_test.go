package commands

import (
	"strings"
	"testing"

	"mayfly/commands/engine"
)

// TestJSONSurplusArguments: no JSON.* command does its work on fewer arguments than it was given.
func TestJSONSurplusArguments(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const doc = `{"a":[1,[2]],"b":{"c":true},"s":"x","n":1}`
	w.expect("OK", "JSON.SET", "k", "$", doc)
	for _, line := range []string{
		"JSON.ARRINDEX k $.a 1 0 1", "JSON.ARRLEN k $.a", "JSON.ARRPOP k $.a 0", "JSON.ARRTRIM k $.a 0 0",
		"JSON.CLEAR k $.a", "JSON.DEBUG MEMORY k $.a", "JSON.DEL k $.a", "JSON.FORGET k $.a", "JSON.MERGE k $.b {}", "JSON.NUMINCRBY k $.n 1",
		"JSON.NUMMULTBY k $.n 2", "JSON.OBJKEYS k $.b", "JSON.OBJLEN k $.b", "JSON.RESP k $.b", "JSON.SET k $.n 5", "JSON.STRAPPEND k $.s \"y\"",
		"JSON.STRLEN k $.s", "JSON.TOGGLE k $.b.c", "JSON.TYPE k $.a",
	} {
		r := w.do(1, append(strings.Fields(line), "$.n")...)
		if r.Kind != engine.KindError || !strings.Contains(r.Str, "wrong number of arguments") && r.Str != "ERR syntax error" {
			t.Errorf("%s $.n: %+v", line, r)
		}
		if r := w.do(1, "JSON.GET", "k"); r.Str != doc {
			t.Fatalf("%s $.n left %s", line, r.Str)
		}
		if r := w.do(1, strings.Fields(line)...); r.Kind == engine.KindError {
			t.Errorf("%s: %+v", line, r)
		}
		w.expect("OK", "JSON.SET", "k", "$", doc)
	}
}
