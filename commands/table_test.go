package commands

import (
	"slices"
	"testing"
)

func TestTableHasEveryRowOnce(t *testing.T) {
	n := 0
	for i, family := range families {
		n += len(family)
		if len(family) == 0 {
			t.Errorf("family %d is empty", i)
		}
	}
	if len(table) != n || len(tableSorted) != n {
		t.Errorf("%d rows give a table of %d: a name is there twice", n, len(table))
	}
	for _, r := range allRows {
		if r.sub != nil && len(r.sub) != len(r.Sub) {
			t.Errorf("%s: a subcommand's name is there twice", r.full)
		}
	}
	byName := func(a, b *row) bool { return a.Name < b.Name }
	for i := 1; i < len(tableSorted); i++ {
		if !byName(tableSorted[i-1], tableSorted[i]) {
			t.Errorf("%s stands before %s", tableSorted[i-1].Name, tableSorted[i].Name)
		}
	}
}

// The arity of a row agrees with its syntax.
func TestArityFitsSyntax(t *testing.T) {
	for _, r := range allRows {
		if r.Parse == nil {
			continue
		}
		args, err := parseSyntax(r.Syntax)
		if err != nil {
			t.Errorf("%s: %v", r.full, err)
			continue
		}
		least, most := countArguments(args)
		least++ // the name
		if r.full != r.Name {
			least++ // the subcommand's
		}
		want := least
		if most != least-1 && most != least-2 || most < 0 {
			want = -least
		}
		if r.Arity != want && !slices.Contains(looseArity, r.full) {
			t.Errorf("%s: arity %d, but %q asks for %d", r.full, r.Arity, r.Syntax, want)
		}
	}
}

// looseArity are commands whose arity in Redis disagrees with their syntax.
var looseArity = []string{"client|kill", "client|pause", "command", "command|getkeys", "command|getkeysandflags", "pubsub|channels", "pubsub|shardchannels", "quit", "slowlog|get"}

// countArguments returns the smallest and the largest number of words of arguments. most is -1 without a
// bound.
func countArguments(args []argument) (least, most int) {
	for _, a := range args {
		from, to := 1, 1
		switch a.kind {
		case kindBlock:
			from, to = countArguments(a.args)
		case kindOneOf:
			from, to = countArguments(a.args[:1])
			for i := range a.args {
				f, t := countArguments(a.args[i : i+1])
				from, to = min(from, f), max(to, t)
			}
		}
		if a.token != "" && a.kind != kindToken {
			from, to = from+1, to+1
		}
		if a.multiple {
			to = -1
		}
		if a.optional {
			from = 0
		}
		least += from
		if most < 0 || to < 0 {
			most = -1
		} else {
			most += to
		}
	}
	return least, most
}

func TestFind(t *testing.T) {
	for _, name := range []string{"get", "GET", "gEt", "doc.put", "DOC.Put"} {
		if table.find(name) == nil {
			t.Errorf("%q is not found", name)
		}
	}
	for _, name := range []string{"", "ge", "gett", "get ", "GET\x00", "ɢet", "config|get", string(make([]byte, 1<<20))} {
		if table.find(name) != nil {
			t.Errorf("%.20q is found", name)
		}
	}
	if n := testing.AllocsPerRun(100, func() { table.find("DOC.PEXPIRETIME") }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}

func TestKeysIDs(t *testing.T) {
	args := []string{"command", "1", "2", "3", "4"}
	for _, tt := range []struct {
		keys Keys
		want []string
	}{
		{Keys{}, nil},
		{OneKey, []string{"1"}},
		{AllKeys, []string{"1", "2", "3", "4"}},
		{OneID, []string{"2"}},
		{AllIDs, []string{"2", "3", "4"}},
		{Pairs, []string{"1", "3"}},
	} {
		if got := tt.keys.ids(nil, args); !slices.Equal(got, tt.want) {
			t.Errorf("%v: %q, want %q", tt.keys, got, tt.want)
		}
	}
}
