package engine

import (
	"cmp"
	"slices"
	"strings"

	"mayfly/commands/access"
	"mayfly/commands/syntax"
	"mayfly/redisfmt"
)

// Row is a command of the table with everything derived from it.
type Row struct {
	*Command
	FullName          string              // the name in errors and COMMAND: "get", "config|get"
	upper             string              // the name in capitals
	Number            int                 // the index in AllRows
	right             int                 // the number of the command that a user must be allowed: this, or that of Command.Clear
	Items             Keys                // the Keys that are ids of items, unlike the channels of SPUBLISH and the names of streams
	Subcommands       rows                // the subcommands by name; nil if there are none
	SortedSubcommands []*Row              // the subcommands sorted by name
	clear             *Row                // see Command.Clear; nil: there is none
	needs             []access.Permission // of the keys: see need
	oneKey            int                 // the position of the key, if a call touches no more than it and a container; else 0
}

// CountedArity returns the number of arguments that the row's syntax asks for, as Command.Arity has it; 0 if
// it does not parse.
func (r *Row) CountedArity() int {
	args, err := syntax.Parse(r.Syntax)
	if err != nil {
		return 0
	}
	least, most := syntax.Words(args)
	names := 1 + strings.Count(r.FullName, "|")
	switch {
	case len(r.Sub) > 0:
		return -2
	case least < most:
		return -(names + least)
	}
	return names + least
}

// rows maps the lower-case names of commands to their rows.
type rows map[string]*Row

// Table holds every command, and TableSorted the same sorted by name: see install. They never change
// afterwards.
var (
	Table       rows
	TableSorted []*Row
	AllRows     []*Row // every row, subcommands included, by number
)

// numberRows numbers rows and their subcommands.
func numberRows(list []*Row) {
	for _, r := range list {
		r.Number = len(AllRows)
		r.right = r.Number
		AllRows = append(AllRows, r)
		numberRows(r.SortedSubcommands)
	}
}

// Family is commands of one subject: the group of most, what most touch, and the version of mayfly's own.
type Family struct {
	Group, Since string
	Touches      Touches
	Commands     []Command
}

// Install makes the table from all families. It is called once, before the first command.
func Install(families []Family) {
	var all []Command
	for _, f := range families {
		all = append(all, inherit(Command{Group: f.Group, Since: f.Since, Touches: f.Touches}, f.Commands)...)
	}
	Table, TableSorted = newRows("", all)
	numberRows(TableSorted)
	for _, r := range AllRows {
		if r.clear != nil {
			r.clear.Number, r.clear.right = r.Number, Table[r.Clear.Name].Number
		}
	}
}

// Names returns the names of all commands, sorted.
func Names() (list []string) {
	for _, r := range TableSorted {
		list = append(list, r.Name)
	}
	return list
}

// inherit fills in the group, the first version and what is touched where rows leave them to the row above.
func inherit(above Command, list []Command) []Command {
	for i := range list {
		c := &list[i]
		c.Group, c.Since = cmp.Or(c.Group, above.Group), cmp.Or(c.Since, above.Since)
		c.Touches = cmp.Or(c.Touches, above.Touches)
	}
	return list
}

// newRows derives rows from commands. prefix is the beginning of their full names.
func newRows(prefix string, list []Command) (byName rows, sorted []*Row) {
	byName = make(rows, len(list))
	for i := range list {
		r := &Row{Command: &list[i], FullName: prefix + list[i].Name, upper: strings.ToUpper(list[i].Name)}
		r.Arity, r.needs = cmp.Or(r.Arity, r.CountedArity()), access.Needs(r.Access)
		if r.Access != NotKeys && r.Scope == ScopeNone {
			r.Items = r.Keys
			if one := r.Keys.First == r.Keys.Last && r.KeysAfter.Word == "" && r.Options == nil && !r.Counted && r.Databases == nil; one &&
				(r.Touches == TouchesSelected || r.Touches == TouchesNamed) {
				r.oneKey = r.Keys.First
			}
		}
		if len(r.Sub) > 0 {
			r.Subcommands, r.SortedSubcommands = newRows(r.FullName+"|", inherit(*r.Command, r.Sub))
		}
		if r.Clear != nil {
			clear, c := *r, *r.Command
			c.Flags, c.Touches, c.Scope, c.Parse, c.Clear = r.Clear.Flags, r.Clear.Touches, r.Clear.Scope, r.Clear.Parse, nil
			clear.Command = &c
			r.clear = &clear
		}
		byName[r.Name] = r
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *Row) int { return cmp.Compare(a.Name, b.Name) })
	return byName, sorted
}

// Find returns the row of a name in any case, nil if there is none. It does not allocate.
func (rs rows) Find(name string) *Row {
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
	row  *Row
}

// findCached is table.find through the session's cache.
func (s *Session) findCached(name string) *Row {
	if name == s.lastLookup.name && name != "" {
		return s.lastLookup.row
	}
	r := Table.Find(name)
	switch {
	case r == nil:
	case name == r.Name:
		s.lastLookup = cachedLookup{r.Name, r}
	case name == r.upper:
		s.lastLookup = cachedLookup{r.upper, r}
	}
	return r
}

// Resolve returns the command or subcommand that the arguments name, and checks their number. If only the
// number is wrong it returns both the row and an error.
func Resolve(args []string) (*Row, error) { return resolveRow(Table.Find(args[0]), args) }

// Lookup returns the command that the words name and its full name in lower case: "get", "config|get". Nil if
// there is none. Its number of arguments may be wrong.
func Lookup(words []string) (c *Command, name string) {
	r, _ := Resolve(words)
	if r == nil {
		return nil, ""
	}
	return r.Command, r.FullName
}

// Resolve is resolve through the session's cache.
func (s *Session) Resolve(args []string) (*Row, error) {
	return resolveRow(s.findCached(args[0]), args)
}

// resolveRow is resolve for a known row of the first argument, nil if there is none.
func resolveRow(r *Row, args []string) (*Row, error) {
	if r == nil {
		return nil, unknownCommand(args)
	}
	if r.Subcommands != nil && len(args) > 1 {
		sub := r.Subcommands.Find(args[1])
		if sub == nil {
			return nil, Errorf(errNoSubcommand, Shown(args[1]), r.upper)
		}
		r = sub
	}
	if r.Arity >= 0 && len(args) != r.Arity || len(args) < -r.Arity || r.Parse == nil {
		return r, r.WrongArity(args)
	}
	if r.clear != nil && len(args) == 3 && redisfmt.EqualFold(args[2], "CLEAR") {
		r = r.clear
	}
	return r, nil
}

// isOnlyInCluster reports whether the command of a name is unknown without a cluster.
func isOnlyInCluster(name string) bool {
	r := Table.Find(name)
	return r != nil && r.Flags&OnlyInCluster != 0
}

// ids appends the arguments that are ids of items to list.
func (r *Row) ids(list, args []string) []string {
	if r.Stores {
		list = append(list, args[1])
	}
	return r.Items.ids(list, r.withoutOptions(args))
}

// withoutOptions returns the arguments up to the last key. None is a key if their number is invalid.
func (r *Row) withoutOptions(args []string) []string {
	switch {
	case r.Options != nil:
		return args[:len(args)-r.Options(args)]
	case r.Counted:
		first := r.Keys.First
		n, ok := redisfmt.ParseInt(args[first-1])
		if !ok || n < 0 || n > int64((len(args)-first)/r.Keys.Step) {
			n = 0
		}
		return args[:first+int(n)*r.Keys.Step]
	}
	return args
}

// HasKeys reports whether arguments of the command are keys in the terms of Redis.
func (r *Row) HasKeys() bool {
	return r.Access != NotKeys && r.Keys.First > 0 || r.HasMovableKeys()
}

// HasMovableKeys reports whether the positions of the keys vary.
func (r *Row) HasMovableKeys() bool {
	return r.KeysAfter.Word != "" || r.Scope == ScopeScript || r.Counted
}

// KeysOf returns the arguments that are keys in the terms of Redis.
func (r *Row) KeysOf(args []string) []string { return r.appendKeys(nil, args) }

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

// SinceFirst is the first version with mayfly's own commands.
const SinceFirst = "mayfly 0.1.0"

// NotKeys is the Access of channels, which COMMAND lists among the keys for the sake of clusters.
const NotKeys = "not_key"
