package admin

import (
	"math"
	"slices"
	"strings"
	"sync"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/commands/syntax"
	"mayfly/redisfmt"
)

// commandCommand describes the commands of the table.
var commandCommand = engine.Command{
	Name: "command", Since: "2.8.13", Arity: -1, Summary: "Get array of Redis command details",
	Flags: engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Tips: "nondeterministic_output_order",
	Differs: "Lists mayfly's commands",
	Parse:   engine.NoParse(func(*engine.Context) engine.Reply { return infoOfAll(engine.TableSorted) }),
	Sub: []engine.Command{
		{
			Name: "count", Summary: "Get total number of Redis commands",
			Differs: "Counts mayfly's commands",
			Flags:   engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Parse: engine.NoParse(func(*engine.Context) engine.Reply { return engine.Count(len(engine.Table)) }),
		},
		{
			Name: "docs", Syntax: "[command-name [command-name ...]]", Since: "7.0.0",
			Summary: "Get array of specific Redis command documentation",
			Differs: "Without `complexity` and `history`",
			Flags:   engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: engine.NoParse(runCommandDocs),
		},
		{
			Name: "getkeys", Syntax: "command [arg [arg ...]]", Arity: -4, Summary: "Extract keys given a full Redis command",
			Flags: engine.Loading | engine.Stale | engine.OnNode, Categories: "connection",
			Parse: func(in *engine.Input) (engine.Run, error) {
				return parseCommandGetKeys(in, func(r *engine.Row, args []string) engine.Reply { return engine.Bulks(r.KeysOf(args)...) })
			},
		},
		{
			Name: "getkeysandflags", Syntax: "command [arg [arg ...]]", Since: "7.0.0", Arity: -4,
			Summary: "Extract keys and access flags given a full Redis command",
			Flags:   engine.Loading | engine.Stale | engine.OnNode, Categories: "connection",
			Parse: func(in *engine.Input) (engine.Run, error) { return parseCommandGetKeys(in, keysAndFlags) },
		},
		engine.With(engine.HelpRow("command", "5.0.0"), func(c *engine.Command) { c.Categories = "connection" }),
		{
			Name: "info", Syntax: "[command-name [command-name ...]]",
			Summary: "Get array of specific Redis command details, or all when no argument is given.",
			Flags:   engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: engine.NoParse(runCommandInfo),
		},
		{
			Name: "list", Syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", Since: "7.0.0",
			Summary: "Get an array of Redis command names",
			Flags:   engine.Loading | engine.Stale | engine.OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: parseCommandList,
		},
	},
}

func runCommandInfo(x *engine.Context) engine.Reply {
	names := x.Input.Args[2:]
	if len(names) == 0 {
		return infoOfAll(engine.TableSorted)
	}
	list := make([]engine.Reply, len(names))
	for i, name := range names {
		list[i] = engine.Null
		if r := FindByFullName(name); r != nil {
			list[i] = entryOf(r).info()
		}
	}
	return engine.Array(list...)
}

func runCommandDocs(x *engine.Context) engine.Reply {
	names := x.Input.Args[2:]
	if len(names) == 0 {
		return docsOfAll(engine.TableSorted)
	}
	var found []*engine.Row
	for _, name := range names {
		if r := FindByFullName(name); r != nil {
			found = append(found, r)
		}
	}
	return docsOfAll(found)
}

// parseCommandList parses COMMAND LIST. The filters apply to subcommands on their own.
func parseCommandList(in *engine.Input) (engine.Run, error) {
	keep := func(*engine.Row) bool { return true }
	switch args := in.Args[2:]; {
	case len(args) == 0:
	case len(args) == 3 && redisfmt.EqualFold(args[0], "FILTERBY"):
		what := args[2]
		switch strings.ToUpper(args[1]) {
		case "MODULE":
			keep = func(r *engine.Row) bool { return what == moduleName && r.Group == "json" }
		case "ACLCAT":
			keep = func(r *engine.Row) bool { return isIn(r, strings.ToLower(what)) }
		case "PATTERN":
			if err := engine.CheckPattern(what); err != nil {
				return nil, err
			}
			pattern := redisfmt.Compile(strings.ToLower(what))
			keep = func(r *engine.Row) bool { return pattern.Match(r.FullName) }
		default:
			return nil, engine.ErrSyntax
		}
	default:
		return nil, engine.ErrSyntax
	}
	return func(*engine.Context) engine.Reply { return engine.Bulks(fullNames(keep)...) }, nil
}

// fullNames returns the full names of the commands and subcommands that keep accepts, in the table's order.
func fullNames(keep func(*engine.Row) bool) []string {
	var names []string
	for _, r := range engine.TableSorted {
		for _, r := range append([]*engine.Row{r}, r.SortedSubcommands...) {
			if keep(r) {
				names = append(names, r.FullName)
			}
		}
	}
	return names
}

// parseCommandGetKeys parses COMMAND GETKEYS and GETKEYSANDFLAGS, which differ in show.
func parseCommandGetKeys(in *engine.Input, show func(r *engine.Row, args []string) engine.Reply) (engine.Run, error) {
	args := in.Args[2:]
	r, err := engine.Resolve(args)
	switch named := findNamed(args); {
	case named == nil:
		return nil, errNoSuchCommand
	case !named.HasKeys():
		return nil, errNoKeys
	case err != nil:
		return nil, errKeysArity
	case len(r.KeysOf(args)) == 0 && r.Scope != engine.ScopeScript,
		len(r.KeysOf(args)) == 1 && r.Stores && r.Counted: // a destination only
		return nil, errKeysInvalid
	}
	return func(*engine.Context) engine.Reply { return show(r, args) }, nil
}

// keysAndFlags lists the keys of a call with the flags of their access.
func keysAndFlags(r *engine.Row, args []string) engine.Reply {
	access := accesses(r)
	keys := r.KeysOf(args)
	list := make([]engine.Reply, len(keys))
	for i, key := range keys {
		flags := strings.Fields(access[min(i, len(access)-1)])
		if r.Blind != nil && r.Blind(args) {
			flags = strings.Fields(blindAccess[r.Name])
		}
		flags = slices.DeleteFunc(flags, func(f string) bool { return f == variableFlags })
		list[i] = engine.Array(engine.Bulk(key), statuses(flags))
	}
	return engine.Array(list...)
}

// variableFlags marks flags that depend on the options of a call.
const variableFlags = "variable_flags"

// blindAccess are the flags of a call without an option that reads the value, where they vary.
var blindAccess = map[string]string{"delex": "RM delete", "set": "OW update"}

// accesses returns the flags of the row's keys: one set for all keys, or one for each if they differ.
func accesses(r *engine.Row) []string {
	switch {
	case r.Access != "":
		return strings.Split(r.Access, ",")
	case r.Flags&engine.Write != 0:
		return []string{"RW access update"}
	}
	return []string{"RO access"}
}

// findNamed returns the command or subcommand that the arguments name, whatever their number.
func findNamed(args []string) *engine.Row {
	r := engine.Table.Find(args[0])
	if r != nil && r.Subcommands != nil && len(args) > 1 {
		return r.Subcommands.Find(args[1])
	}
	return r
}

// FindByFullName returns the command with a full name in any case: "get", "config|get".
func FindByFullName(name string) *engine.Row {
	command, sub, hasSub := strings.Cut(name, "|")
	r := engine.Table.Find(command)
	if r != nil && hasSub {
		return r.Subcommands.Find(sub)
	}
	return r
}

// tableEntry is the entry of a row in COMMAND and COMMAND DOCS. All replies share it, so that repeated
// requests take no memory.
type tableEntry struct{ info, docs func() engine.Reply }

// The entries of all rows, by number. The first call of entryOf makes them.
var (
	entries     []tableEntry
	makeEntries sync.Once
)

func entryOf(r *engine.Row) tableEntry {
	makeEntries.Do(func() {
		for _, r := range engine.AllRows {
			entries = append(entries, tableEntry{
				info: sync.OnceValue(func() engine.Reply { return CommandInfo(r) }),
				docs: sync.OnceValue(func() engine.Reply { return CommandDocs(r) }),
			})
		}
	})
	return entries[r.Number]
}

func infoOfAll(list []*engine.Row) engine.Reply {
	all := make([]engine.Reply, len(list))
	for i, r := range list {
		all[i] = entryOf(r).info()
	}
	return engine.Array(all...)
}

// CommandInfo is a row's entry in the reply of COMMAND.
func CommandInfo(r *engine.Row) engine.Reply {
	first, last, step := r.Keys.First, r.Keys.Last, r.Keys.Step
	if r.Counted { // as in Redis
		first, last, step = 0, 0, 0
	}
	if r.Stores {
		first, last, step = 1, 1, 1
	}
	return engine.Array(
		engine.Bulk(r.FullName),
		engine.Count(r.Arity),
		statuses(flagNamesOf(r)),
		engine.Count(first), engine.Count(last), engine.Count(step),
		statuses(Categories(r)),
		engine.Set(engine.Bulks(strings.Fields(r.Tips)...).Elems...),
		engine.Set(notedSpecs(r)...),
		infoOfSubcommands(r),
	)
}

// infoOfSubcommands is an array of entries. As in Redis, it is an empty set without subcommands.
func infoOfSubcommands(r *engine.Row) engine.Reply {
	if len(r.SortedSubcommands) == 0 {
		return engine.Set()
	}
	return infoOfAll(r.SortedSubcommands)
}

func statuses(words []string) engine.Reply {
	elems := make([]engine.Reply, len(words))
	for i, w := range words {
		elems[i] = engine.Status(w)
	}
	return engine.Set(elems...)
}

// flagNames are the names of the reported flags in COMMAND, from the lowest bit on.
var flagNames = strings.Fields("write readonly denyoom admin pubsub noscript blocking loading stale skip_slowlog fast " +
	"no_auth no_async_loading no_multi allow_busy")

func names(f engine.Flags) []string {
	var names []string
	for bit, name := range flagNames {
		if f&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// flagNames returns the names of the reported flags, of what follows from the keys too.
func flagNamesOf(r *engine.Row) []string {
	names := names(r.Flags)
	if r.Scope == engine.ScopeScript {
		names = append(names, "skip_monitor", "no_mandatory_keys")
	}
	if r.HasMovableKeys() {
		names = append(names, "movablekeys")
	}
	return names
}

// CategoryOrder are the ACL categories in Redis' order, then mayfly's own. Some have no commands here: rules
// that Redis has written name them.
var CategoryOrder = []string{
	"keyspace", "read", "write", "set", "sortedset", "list", "hash", "string", "bitmap", "hyperloglog", "geo", "stream",
	"pubsub", "admin", "fast", "slow", "blocking", "dangerous", "connection", "transaction", "scripting",
	"container", "document", "json",
}

// groupCategories are the categories of groups that do not have the group's name.
var groupCategories = map[string]string{"generic": "keyspace", "sorted-set": "sortedset", "transactions": "transaction", "pubsub": "", "server": "", "cluster": ""}

// Categories returns the row's ACL categories, from its flags and group as in Redis'
// setImplicitACLCategories, and from its Categories. As in Redis, a command that only has subcommands is
// just "slow".
func Categories(r *engine.Row) []string {
	in := map[string]bool{
		"write":     r.Flags&engine.Write != 0,
		"read":      r.Flags&engine.ReadOnly != 0 && r.Scope != engine.ScopeScript,
		"admin":     r.Flags&engine.Admin != 0,
		"dangerous": r.Flags&engine.Admin != 0,
		"pubsub":    r.Flags&engine.PubSub != 0,
		"blocking":  r.Flags&engine.Blocking != 0,
		"fast":      r.Flags&engine.Fast != 0,
		"slow":      r.Flags&engine.Fast == 0,
	}
	if r.Parse != nil {
		group, renamed := groupCategories[r.Group]
		if !renamed {
			group = r.Group
		}
		if !strings.Contains(r.Categories, "connection") { // as in Redis it replaces that of the group
			in[group] = true
		}
		for _, c := range strings.Fields(r.Categories) {
			in[c] = true
		}
	}
	var names []string
	for _, c := range CategoryOrder {
		if in[c] {
			names = append(names, "@"+c)
		}
	}
	return names
}

// NewCatalogue returns the commands of the table as rules of users name them.
func NewCatalogue() *access.Catalogue {
	list := make([]access.Command, len(engine.AllRows))
	for n, r := range engine.AllRows {
		list[n] = access.Command{Name: r.FullName, Parent: -1, Categories: Categories(r)}
		for i, category := range list[n].Categories {
			list[n].Categories[i] = strings.TrimPrefix(category, "@")
		}
		if command, _, isSub := strings.Cut(r.FullName, "|"); isSub {
			list[n].Parent = engine.Table[command].Number
		}
	}
	return access.NewCatalogue(list, CategoryOrder)
}

// isIn reports whether the row is in an ACL category, named in lower case without "@".
func isIn(r *engine.Row, category string) bool { return slices.Contains(Categories(r), "@"+category) }

// specNotes are what Redis says of key specifications whose flags need a word.
var specNotes = map[string]string{
	"eval":    "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE",
	"eval_ro": "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS",
	"getex":   "RW and UPDATE because it changes the TTL",
	"set":     "RW and ACCESS due to the optional `GET` argument",
	"xadd":    "UPDATE instead of INSERT because of the optional trimming feature",
}

// notedSpecs returns the row's key specifications, the first one with its note.
func notedSpecs(r *engine.Row) []engine.Reply {
	specs := keySpecs(r)
	if note := specNotes[r.FullName]; note != "" {
		specs[0].Elems = append([]engine.Reply{engine.Bulk("notes"), engine.Bulk(note)}, specs[0].Elems...)
	}
	return specs
}

// keySpecs returns the row's key specifications: none, one for all keys, or one for each if their access
// differs.
func keySpecs(r *engine.Row) []engine.Reply {
	if r.KeysAfter.Word != "" {
		return []engine.Reply{keywordSpec(r)}
	}
	if r.Scope == engine.ScopeScript {
		return []engine.Reply{numkeysSpec(r, engine.NumkeysAt, 1)}
	}
	if r.Counted && !r.Stores {
		return []engine.Reply{numkeysSpec(r, r.Keys.First-1, r.Keys.Step)}
	}
	if r.Keys.First == 0 {
		return nil
	}
	each := accesses(r)
	if r.Stores {
		return []engine.Reply{rangeSpec(each[0], 1, 0, 1), numkeysSpec(r, r.Keys.First-1, r.Keys.Step)}
	}
	last := r.Keys.Last
	if last > 0 {
		last -= r.Keys.First // relative to the first key; a negative last counts from the end
	}
	lastOfAll := last
	if len(each) > 1 {
		last = 0
	}
	specs := make([]engine.Reply, len(each))
	for i, access := range each {
		if i == len(each)-1 && lastOfAll < 0 {
			last = lastOfAll // of all keys from here on
		}
		specs[i] = rangeSpec(access, r.Keys.First+i*r.Keys.Step, last, r.Keys.Step)
	}
	return specs
}

// rangeSpec is the key specification of keys from a position on, up to the last after that, or from the end.
func rangeSpec(access string, first, last, step int) engine.Reply {
	return engine.Map(
		engine.Bulk("flags"), statuses(strings.Fields(access)),
		engine.Bulk("begin_search"), engine.Map(
			engine.Bulk("type"), engine.Bulk("index"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("index"), engine.Count(first)),
		),
		engine.Bulk("find_keys"), engine.Map(
			engine.Bulk("type"), engine.Bulk("range"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("lastkey"), engine.Count(last), engine.Bulk("keystep"), engine.Count(step), engine.Bulk("limit"), engine.Integer(0)),
		),
	)
}

// keywordSpec is the key specification of a row with KeysAfter.
func keywordSpec(r *engine.Row) engine.Reply {
	return engine.Map(
		engine.Bulk("flags"), statuses(strings.Fields(accesses(r)[0])),
		engine.Bulk("begin_search"), engine.Map(
			engine.Bulk("type"), engine.Bulk("keyword"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("keyword"), engine.Bulk(r.KeysAfter.Word), engine.Bulk("startfrom"), engine.Count(r.KeysAfter.From)),
		),
		engine.Bulk("find_keys"), engine.Map(
			engine.Bulk("type"), engine.Bulk("range"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("lastkey"), engine.Integer(-1), engine.Bulk("keystep"), engine.Integer(1), engine.Bulk("limit"), engine.Integer(2)),
		),
	)
}

// numkeysSpec is the key specification of EVAL and of MSETEX: at says where the number of keys is.
func numkeysSpec(r *engine.Row, at, step int) engine.Reply {
	each := accesses(r)
	return engine.Map(
		engine.Bulk("flags"), statuses(strings.Fields(each[len(each)-1])),
		engine.Bulk("begin_search"), engine.Map(
			engine.Bulk("type"), engine.Bulk("index"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("index"), engine.Count(at)),
		),
		engine.Bulk("find_keys"), engine.Map(
			engine.Bulk("type"), engine.Bulk("keynum"),
			engine.Bulk("spec"), engine.Map(engine.Bulk("keynumidx"), engine.Integer(0), engine.Bulk("firstkey"), engine.Integer(1), engine.Bulk("keystep"), engine.Count(step)),
		),
	)
}

// docsOfAll is the reply of COMMAND DOCS for rows.
func docsOfAll(list []*engine.Row) engine.Reply {
	var docs []engine.Reply
	for _, r := range list {
		docs = append(docs, engine.Bulk(r.FullName), entryOf(r).docs())
	}
	return engine.Map(docs...)
}

// CommandDocs is a row's entry in COMMAND DOCS.
func CommandDocs(r *engine.Row) engine.Reply {
	doc := []engine.Reply{
		engine.Bulk("summary"), engine.Bulk(r.Summary),
		engine.Bulk("since"), engine.Bulk(r.Since),
		engine.Bulk("group"), engine.Bulk(r.Group),
	}
	// A test checks that the syntax of every row parses.
	if args, err := syntax.Parse(r.Syntax); err == nil && len(args) > 0 {
		switch r.Group {
		case "stream":
			syntax.BoundsAreIDs(args)
		case "list", "sorted-set":
			syntax.AreDoubles(args, "timeout", "score")
		}
		switch r.Name {
		case "zcount", "zrangebyscore", "zrevrangebyscore", "zremrangebyscore":
			syntax.AreDoubles(args, "min", "max")
		case "zrange":
			syntax.BoundsAreIDs(args) // or scores, or members
		}
		switch {
		case r.HasMovableKeys():
			syntax.MarkNamed(args, "key")
			syntax.MarkNamed(args, "destination")
		case r.HasKeys():
			at := syntax.Positions(r.Keys)
			if at.Last == -1 && !r.Counted && r.Options == nil {
				at.Last = math.MaxInt // all that follow
			}
			syntax.MarkKeys(args, at, 1+strings.Count(r.FullName, "|"))
			if strings.Contains(r.Access, ",") {
				for i := range args {
					args[i].Spec = i
				}
			}
		}
		doc = append(doc, engine.Bulk("arguments"), docsOfArguments(args))
	}
	if len(r.SortedSubcommands) > 0 {
		doc = append(doc, engine.Bulk("subcommands"), docsOfAll(r.SortedSubcommands))
	}
	return engine.Map(doc...)
}

func docsOfArguments(args []syntax.Argument) engine.Reply {
	list := make([]engine.Reply, len(args))
	for i := range args {
		list[i] = docs(&args[i])
	}
	return engine.Array(list...)
}

func docs(a *syntax.Argument) engine.Reply {
	doc := []engine.Reply{engine.Bulk("name"), engine.Bulk(a.Name), engine.Bulk("type"), engine.Bulk(a.Kind)}
	if a.Kind == syntax.KindKey {
		doc = append(doc, engine.Bulk("key_spec_index"), engine.Count(a.Spec))
	}
	if a.Token != "" {
		doc = append(doc, engine.Bulk("token"), engine.Bulk(a.Token))
	}
	var flags []string
	if a.Optional {
		flags = append(flags, "optional")
	}
	if a.Multiple {
		flags = append(flags, "multiple")
	}
	if a.RepeatsToken {
		flags = append(flags, "multiple_token")
	}
	if len(flags) > 0 {
		doc = append(doc, engine.Bulk("flags"), statuses(flags))
	}
	if len(a.Args) > 0 {
		doc = append(doc, engine.Bulk("arguments"), docsOfArguments(a.Args))
	}
	return engine.Map(doc...)
}
