package commands

import (
	"slices"
	"testing"
)

// A Lookahead reads ids from the first arguments of commands. Other commands add nothing.
func TestLookahead(t *testing.T) {
	t.Parallel()
	s := NewSession(1, "", "", 0)
	s.database = "7"
	var a Lookahead
	for _, args := range [][]string{
		{"GET", "a"}, {"doc.put", "orders", "b", "{}"}, {"PING", "c"}, {"OBJECT", "ENCODING", "d"}, {"nothing", "e"},
		{"GET"}, {"DOC.GET", "orders"}, {""}, {"PUBLISH", "f", "g"}, {"MGET", "h", "i"}, {"SCAN", "0"},
	} {
		a.Add(s, args[:min(len(args), LookaheadArgs)])
	}
	s.multi.open = true
	a.Add(s, []string{"GET", "queued"})
	if !slices.Equal(a.containers, []string{"7", "orders", "7"}) || !slices.Equal(a.ids, []string{"a", "b", "h"}) {
		t.Errorf("it looks for %q in %q", a.ids, a.containers)
	}
	w := newHarness(t)
	w.engine.Prefetch(&a)
	if len(a.ids) > 0 || a.ids[:1][0] != "" {
		t.Error("it is kept")
	}
}
