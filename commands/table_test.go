package commands

import (
	"slices"
	"strings"
	"testing"
)

func TestTableHasEveryRowOnce(t *testing.T) {
	t.Parallel()
	n := 0
	for i, family := range families {
		n += len(family.commands)
		if len(family.commands) == 0 {
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

// CONTAINER.HISTORY reads, and writes with CLEAR alone. Both count as the same command.
func TestClearIsAWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  string
		flags Flags
		scope Scope
	}{
		{"container.history c", ReadOnly, ScopeNone},
		{"container.history clear", ReadOnly, ScopeNone},
		{"container.history c COUNT 1", ReadOnly, ScopeNone},
		{"CONTAINER.HISTORY c Clear", Write, ScopeAll},
	} {
		r, err := resolve(strings.Fields(c.args))
		if err != nil || r.Flags != c.flags || r.Scope != c.scope || r.number != table["container.history"].number || r.full != "container.history" {
			t.Errorf("%s: %+v, %v", c.args, r, err)
		}
	}
}

// The arity of a row follows from its syntax, unless Redis has another one.
func TestArityFollowsFromSyntax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  row
		want int
	}{
		{row{full: "x", Command: &Command{}}, 1},
		{row{full: "x", Command: &Command{Syntax: "key value"}}, 3},
		{row{full: "x", Command: &Command{Syntax: "[message]"}}, -1},
		{row{full: "x", Command: &Command{Syntax: "key [key ...]"}}, -2},
		{row{full: "x", Command: &Command{Syntax: "key value [key value ...]"}}, -3},
		{row{full: "x", Command: &Command{Syntax: "key [NX | XX] [EX seconds]"}}, -2},
		{row{full: "x|y", Command: &Command{Syntax: "<A a | B b>"}}, 4},
		{row{full: "x|y", Command: &Command{Syntax: "<A a | B>"}}, -3},
		{row{full: "x", Command: &Command{Sub: make([]Command, 1)}}, -2},
		{row{full: "x", Command: &Command{Syntax: "]"}}, 0},
	} {
		if got := c.row.arity(); got != c.want {
			t.Errorf("%s %q: arity %d, not %d", c.row.full, c.row.Syntax, got, c.want)
		}
	}
	for _, r := range allRows {
		if same := r.Arity == r.arity(); same == slices.Contains(looseArity, r.full) {
			t.Errorf("%s: arity %d, but %q asks for %d", r.full, r.Arity, r.Syntax, r.arity())
		}
	}
}

// looseArity are commands whose arity in Redis, or in RedisJSON, disagrees with their syntax.
var looseArity = []string{
	"client|kill", "command", "command|getkeys", "command|getkeysandflags", "json.arrappend", "json.arrinsert", "json.merge", "quit",
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
	t.Parallel()
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
