package commands

import (
	"slices"
	"testing"

	"mayfly/commands/engine"
)

// A Lookahead reads ids from the first arguments of commands. Other commands add nothing.
func TestLookahead(t *testing.T) {
	t.Parallel()
	s := engine.NewSession(1, "", "", 0)
	s.Database = "7"
	var a engine.Lookahead
	for _, args := range [][]string{
		{"GET", "a"}, {"doc.put", "orders", "b", "{}"}, {"PING", "c"}, {"OBJECT", "ENCODING", "d"}, {"nothing", "e"},
		{"GET"}, {"DOC.GET", "orders"}, {""}, {"PUBLISH", "f", "g"}, {"MGET", "h", "i"}, {"SCAN", "0"},
	} {
		a.Add(s, args[:min(len(args), engine.LookaheadArgs)])
	}
	s.Multi.Open = true
	a.Add(s, []string{"GET", "queued"})
	if !slices.Equal(a.Containers, []string{"7", "orders", "7"}) || !slices.Equal(a.IDs, []string{"a", "b", "h"}) {
		t.Errorf("it looks for %q in %q", a.IDs, a.Containers)
	}
	w := newHarness(t)
	w.engine.Prefetch(&a)
	if len(a.IDs) > 0 || a.IDs[:1][0] != "" {
		t.Error("it is kept")
	}
}
