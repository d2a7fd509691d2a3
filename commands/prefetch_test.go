package commands

import (
	"slices"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
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
	if want := []keyspace.Lookup{{Container: "7", ID: "a"}, {Container: "orders", ID: "b"}, {Container: "7", ID: "h", Field: "i"}}; !slices.Equal(a.Lookups, want) {
		t.Errorf("it looks for %q, want %q", a.Lookups, want)
	}
	w := newHarness(t)
	w.engine.Prefetch(&a)
	if len(a.Lookups) > 0 || a.Lookups[:1][0].ID != "" {
		t.Error("it is kept")
	}
}
