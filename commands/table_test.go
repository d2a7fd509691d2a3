package commands

import (
	"slices"
	"strings"
	"testing"

	"mayfly/commands/engine"
)

func TestTableHasEveryRowOnce(t *testing.T) {
	t.Parallel()
	n := 0
	for i, family := range families {
		n += len(family.Commands)
		if len(family.Commands) == 0 {
			t.Errorf("family %d is empty", i)
		}
	}
	if len(engine.Table) != n || len(engine.TableSorted) != n {
		t.Errorf("%d rows give a table of %d: a name is there twice", n, len(engine.Table))
	}
	for _, r := range engine.AllRows {
		if r.Subcommands != nil && len(r.Subcommands) != len(r.Sub) {
			t.Errorf("%s: a subcommand's name is there twice", r.FullName)
		}
	}
	byName := func(a, b *engine.Row) bool { return a.Name < b.Name }
	for i := 1; i < len(engine.TableSorted); i++ {
		if !byName(engine.TableSorted[i-1], engine.TableSorted[i]) {
			t.Errorf("%s stands before %s", engine.TableSorted[i-1].Name, engine.TableSorted[i].Name)
		}
	}
}

// CONTAINER.HISTORY reads, and writes with CLEAR alone. Both count as the same command.
func TestClearIsAWrite(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  string
		flags engine.Flags
		scope engine.Scope
	}{
		{"container.history c", engine.ReadOnly, engine.ScopeNone},
		{"container.history clear", engine.ReadOnly, engine.ScopeNone},
		{"container.history c COUNT 1", engine.ReadOnly, engine.ScopeNone},
		{"CONTAINER.HISTORY c Clear", engine.Write, engine.ScopeAll},
	} {
		r, err := engine.Resolve(strings.Fields(c.args))
		if err != nil || r.Flags != c.flags || r.Scope != c.scope || r.Number != engine.Table["container.history"].Number || r.FullName != "container.history" {
			t.Errorf("%s: %+v, %v", c.args, r, err)
		}
	}
}

// The arity of a row follows from its syntax, unless Redis has another one.
func TestArityFollowsFromSyntax(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		row  engine.Row
		want int
	}{
		{engine.Row{FullName: "x", Command: &engine.Command{}}, 1},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "key value"}}, 3},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "[message]"}}, -1},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "key [key ...]"}}, -2},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "key value [key value ...]"}}, -3},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "key [NX | XX] [EX seconds]"}}, -2},
		{engine.Row{FullName: "x|y", Command: &engine.Command{Syntax: "<A a | B b>"}}, 4},
		{engine.Row{FullName: "x|y", Command: &engine.Command{Syntax: "<A a | B>"}}, -3},
		{engine.Row{FullName: "x", Command: &engine.Command{Sub: make([]engine.Command, 1)}}, -2},
		{engine.Row{FullName: "x", Command: &engine.Command{Syntax: "]"}}, 0},
	} {
		if got := c.row.CountedArity(); got != c.want {
			t.Errorf("%s %q: arity %d, not %d", c.row.FullName, c.row.Syntax, got, c.want)
		}
	}
	for _, r := range engine.AllRows {
		if same := r.Arity == r.CountedArity(); same == slices.Contains(looseArity, r.FullName) {
			t.Errorf("%s: arity %d, but %q asks for %d", r.FullName, r.Arity, r.Syntax, r.CountedArity())
		}
	}
}

// looseArity are commands whose arity in Redis, or in RedisJSON, disagrees with their syntax.
var looseArity = []string{
	"client|kill", "command", "command|getkeys", "command|getkeysandflags", "json.arrappend", "json.arrinsert", "json.merge", "quit",
}

func TestFind(t *testing.T) {
	for _, name := range []string{"get", "GET", "gEt", "doc.put", "DOC.Put"} {
		if engine.Table.Find(name) == nil {
			t.Errorf("%q is not found", name)
		}
	}
	for _, name := range []string{"", "ge", "gett", "get ", "GET\x00", "ɢet", "config|get", string(make([]byte, 1<<20))} {
		if engine.Table.Find(name) != nil {
			t.Errorf("%.20q is found", name)
		}
	}
	if n := testing.AllocsPerRun(100, func() { engine.Table.Find("DOC.PEXPIRETIME") }); n != 0 {
		t.Errorf("a look-up allocates %v times", n)
	}
}
