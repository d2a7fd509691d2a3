package commands

import (
	"cmp"
	"iter"
	"slices"
	"strings"
	"sync"
)

// row is a command of the table together with what is derived from it.
type row struct {
	*Command
	full   string // as errors and COMMAND name it: "get", "config|get"
	upper  string // the name in capitals
	number int    // its place in numbered
	items  Keys   // the Keys that are ids of items: not the channels of SPUBLISH
	sub    rows   // subcommands by name; nil if there are none
	sorted []*row // the subcommands in the order of their names

	// The row's entries in COMMAND and COMMAND DOCS. They are made once and shared by all replies, so
	// that asking for them many times over takes no memory; nobody changes them.
	info, docs func() Reply
}

// rows finds commands by their lower-case names.
type rows map[string]*row

// table holds every command, and tableSorted the same in the order of their names. They are made at
// start by init, since the handlers of COMMAND refer to them; nobody writes to them afterwards.
var (
	table       rows
	tableSorted []*row
	allRows     []*row // every row, subcommands too; for what is counted by command
)

func init() {
	table, tableSorted = newRows("", slices.Concat(families...))
	numberRows(tableSorted)
}

// numberRows gives rows and their subcommands numbers.
func numberRows(list []*row) {
	for _, r := range list {
		r.number = len(allRows)
		allRows = append(allRows, r)
		numberRows(r.sorted)
	}
}

// families are the commands, file by file.
var families = [][]Command{
	connectionCommands,
	stringCommands,
	rangeCommands,
	{lcsCommand},
	keyCommands,
	moveCommands,
	{objectCommand},
	expireCommands,
	transactionCommands,
	pubsubCommands,
	containerCommands,
	documentCommands,
	serverCommands,
	{slowlogCommand, latencyCommand, monitorCommand},
	persistenceCommands,
	{memoryCommand},
	{shutdownCommand},
	{aclCommand, moduleCommand, roleCommand},
	clusterCommands,
}

// All gives every command in the order of their names, for whoever lists or documents them.
func All() iter.Seq[*Command] {
	return func(yield func(*Command) bool) {
		for _, r := range tableSorted {
			if !yield(r.Command) {
				return
			}
		}
	}
}

// newRows derives rows from commands whose full names begin with prefix.
func newRows(prefix string, list []Command) (byName rows, sorted []*row) {
	byName = make(rows, len(list))
	for i := range list {
		r := &row{Command: &list[i], full: prefix + list[i].Name, upper: strings.ToUpper(list[i].Name)}
		if r.Access != notKeys {
			r.items = r.Keys
		}
		if len(r.Sub) > 0 {
			r.sub, r.sorted = newRows(r.full+"|", r.Sub)
		}
		r.info = sync.OnceValue(func() Reply { return commandInfo(r) })
		r.docs = sync.OnceValue(func() Reply { return commandDocs(r) })
		byName[r.Name] = r
		sorted = append(sorted, r)
	}
	slices.SortFunc(sorted, func(a, b *row) int { return cmp.Compare(a.Name, b.Name) })
	return byName, sorted
}

// find looks a command up by its name in any case; nil if there is none. It does not allocate.
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

// lastLookUp is a command that was found by its name. Clients tend to give the same one many times over,
// spelled in capitals or in small letters, and then it is found without looking.
type cachedLookup struct {
	name string // as the client spelled it, in memory of ours; empty if there was none
	row  *row
}

// find finds a command of the table by its name in any case; nil if there is none.
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

// lookUp finds the command, or the subcommand, that the arguments name, and checks how many there
// are. If it is only their number that is wrong, there is a row beside the error.
func resolve(args []string) (*row, error) { return resolveRow(table.find(args[0]), args) }

// lookUp is lookUp for a command that the session is given.
func (s *Session) resolve(args []string) (*row, error) {
	return resolveRow(s.findCached(args[0]), args)
}

// chosen is lookUp when the row of the first argument is known, nil if there is none.
func resolveRow(r *row, args []string) (*row, error) {
	if r == nil {
		return nil, unknownCommand(args)
	}
	if r.sub != nil && len(args) > 1 {
		sub := r.sub.find(args[1])
		if sub == nil {
			return nil, unknownSubcommand(r.Name, args[1])
		}
		r = sub
	}
	if r.Arity >= 0 && len(args) != r.Arity || len(args) < -r.Arity || r.Parse == nil {
		return r, r.wrongArity()
	}
	return r, nil
}

// ids appends to list the arguments that are ids.
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
