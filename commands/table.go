package commands

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"

	"mayfly/commands/redisfmt"
)

// row is a command of the table with everything derived from it.
type row struct {
	*Command
	full   string // the name in errors and COMMAND: "get", "config|get"
	upper  string // the name in capitals
	number int    // the index in allRows
	items  Keys   // the Keys that are ids of items, unlike the channels of SPUBLISH and the names of streams
	sub    rows   // the subcommands by name; nil if there are none
	sorted []*row // the subcommands sorted by name
	clear  *row   // see Command.Clear; nil: there is none

	// The row's entries in COMMAND and COMMAND DOCS. All replies share them, so that repeated requests
	// take no memory. They never change.
	info, docs func() Reply
}

// rows maps the lower-case names of commands to their rows.
type rows map[string]*row

// table holds every command, and tableSorted the same sorted by name. Since the handlers of COMMAND
// refer to them, init makes them. They never change afterwards.
var (
	table       rows
	tableSorted []*row
	allRows     []*row // every row, subcommands included, by number
)

func init() {
	var all []Command
	for _, family := range families {
		all = append(all, inherit(Command{Group: family.group, Since: family.since}, family.commands)...)
	}
	table, tableSorted = newRows("", all)
	numberRows(tableSorted)
}

// numberRows numbers rows and their subcommands.
func numberRows(list []*row) {
	for _, r := range list {
		r.number = len(allRows)
		allRows = append(allRows, r)
		if r.clear != nil {
			r.clear.number = r.number
		}
		numberRows(r.sorted)
	}
}

// families are the commands, family by family, with the group of most and, of mayfly's own, their version.
var families = []struct {
	group, since string
	commands     []Command
}{
	{"connection", "", connectionCommands},
	{"string", "", stringCommands},
	{"string", "", rangeCommands},
	{"string", "", []Command{lcsCommand}},
	{"generic", "", keyCommands},
	{"generic", "", moveCommands},
	{"generic", "", []Command{objectCommand}},
	{"generic", "", expireCommands},
	{"transactions", "", transactionCommands},
	{"pubsub", "", pubsubCommands},
	{"container", sinceFirst, containerCommands},
	{"container", sinceFirst, foresightCommands},
	{"container", sinceFirst, undoCommands},
	{"document", sinceFirst, documentCommands},
	{"document", sinceFirst, []Command{explainCommand, reviveCommand}},
	{"document", sinceFirst, queryCommands},
	{"document", sinceFirst, indexCommands},
	{"json", "", jsonCommands},
	{"server", "", serverCommands},
	{"server", "", []Command{slowlogCommand, latencyCommand, monitorCommand, memoryCommand, shutdownCommand}},
	{"server", "", persistenceCommands},
	{"server", "", []Command{aclCommand, moduleCommand, roleCommand}},
	{"stream", "", streamCommands},
	{"stream", "", groupCommands},
	{"cluster", "", clusterCommands},
	{"generic", "", []Command{waitCommand}},
	{"sentinel", "", []Command{sentinelCommand}},
	{"scripting", "", scriptCommands},
}

// All returns every command, sorted by name.
func All() iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for _, r := range tableSorted {
			if !yield(r.Command) {
				return
			}
		}
	}
}

// inherit fills in the group and the first version where rows leave them to the row above them.
func inherit(above Command, list []Command) []Command {
	for i := range list {
		c := &list[i]
		c.Group, c.Since = cmp.Or(c.Group, above.Group), cmp.Or(c.Since, above.Since)
	}
	return list
}

// newRows derives rows from commands. prefix is the beginning of their full names.
func newRows(prefix string, list []Command) (byName rows, sorted []*row) {
	byName = make(rows, len(list))
	for i := range list {
		r := &row{Command: &list[i], full: prefix + list[i].Name, upper: strings.ToUpper(list[i].Name)}
		r.Arity = cmp.Or(r.Arity, r.arity())
		if r.Access != notKeys && r.Scope == ScopeNone {
			r.items = r.Keys
		}
		if len(r.Sub) > 0 {
			r.sub, r.sorted = newRows(r.full+"|", inherit(*r.Command, r.Sub))
		}
		r.info = sync.OnceValue(func() Reply { return commandInfo(r) })
		r.docs = sync.OnceValue(func() Reply { return commandDocs(r) })
		if r.Clear != nil {
			clear, c := *r, *r.Command
			c.Flags, c.Scope, c.Parse, c.Clear = r.Clear.Flags, r.Clear.Scope, r.Clear.Parse, nil
			clear.Command = &c
			r.clear = &clear
		}
		byName[r.Name] = r
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *row) int { return cmp.Compare(a.Name, b.Name) })
	return byName, sorted
}

// find returns the row of a name in any case, nil if there is none. It does not allocate.
func (rs rows) find(name string) *row {
	var lower [32]byte // longer than any name
	if len(name) > len(lower) {
		return nil
	}
	for i := range len(name) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		lower[i] = c
	}
	return rs[string(lower[:len(name)])]
}

// cachedLookup is a command found by its name. Clients tend to repeat a name, in capitals or in small
// letters. The cache saves 7 % of BenchmarkExecute/GET.
type cachedLookup struct {
	name string // as the client spelled it, in memory of the table; empty at first
	row  *row
}

// findCached is table.find through the session's cache.
func (s *Session) findCached(name string) *row {
	if name == s.lastLookup.name && name != "" {
		return s.lastLookup.row
	}
	r := table.find(name)
	switch {
	case r == nil:
	case name == r.Name:
		s.lastLookup = cachedLookup{r.Name, r}
	case name == r.upper:
		s.lastLookup = cachedLookup{r.upper, r}
	}
	return r
}

// resolve returns the command or subcommand that the arguments name, and checks their number. If only the
// number is wrong it returns both the row and an error.
func resolve(args []string) (*row, error) { return resolveRow(table.find(args[0]), args) }

// Lookup returns the command that the words name and its full name in lower case: "get", "config|get". Nil if there is none. Its
// number of arguments may be wrong.
func Lookup(words []string) (c *Command, name string) {
	r, _ := resolve(words)
	if r == nil {
		return nil, ""
	}
	return r.Command, r.full
}

// resolve is resolve through the session's cache.
func (s *Session) resolve(args []string) (*row, error) {
	return resolveRow(s.findCached(args[0]), args)
}

// resolveRow is resolve for a known row of the first argument, nil if there is none.
func resolveRow(r *row, args []string) (*row, error) {
	if r == nil {
		return nil, unknownCommand(args)
	}
	if r.sub != nil && len(args) > 1 {
		sub := r.sub.find(args[1])
		if sub == nil {
			return nil, errorf(errNoSubcommand, shown(args[1]), r.upper)
		}
		r = sub
	}
	if r.Arity >= 0 && len(args) != r.Arity || len(args) < -r.Arity || r.Parse == nil {
		return r, r.wrongArity(args)
	}
	if r.clear != nil && len(args) == 3 && redisfmt.EqualFold(args[2], "CLEAR") {
		r = r.clear
	}
	return r, nil
}

// isOnlyInCluster reports whether the command of a name is unknown without a cluster.
func isOnlyInCluster(name string) bool {
	r := table.find(name)
	return r != nil && r.Flags&OnlyInCluster != 0
}

// ids appends the arguments that are ids of items to list.
func (r *row) ids(list, args []string) []string {
	if r.Options != nil {
		args = args[:len(args)-r.Options(args)]
	}
	return r.items.ids(list, args)
}

// hasKeys reports whether arguments of the command are keys in the terms of Redis.
func (r *row) hasKeys() bool {
	return r.Access != notKeys && r.Keys.First > 0 || r.hasMovableKeys()
}

// hasMovableKeys reports whether the positions of the keys vary.
func (r *row) hasMovableKeys() bool { return r.KeysAfter.Word != "" || r.Scope == ScopeScript }

// keys returns the arguments that are keys in the terms of Redis.
func (r *row) keys(args []string) []string {
	switch {
	case r.KeysAfter.Word != "":
		return r.KeysAfter.keys(args)
	case r.Scope == ScopeScript:
		return scriptKeys(args)
	case r.Options != nil:
		args = args[:len(args)-r.Options(args)]
	}
	return r.Keys.ids(nil, args)
}

// ids appends the arguments at the positions to list.
func (k Keys) ids(list, args []string) []string {
	if k.First == 0 {
		return list
	}
	last := k.Last
	if last < 0 {
		last += len(args)
	}
	for i := k.First; i <= last; i += k.Step {
		list = append(list, args[i])
	}
	return list
}
