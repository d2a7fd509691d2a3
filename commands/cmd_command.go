package commands

import (
	"slices"
	"strings"

	"mayfly/commands/redisfmt"
)

// commandCommand describes the commands of the table.
var commandCommand = Command{
	Name: "command", Since: "2.8.13", Arity: -1, Summary: "Get array of Redis command details",
	Flags: Loading | Stale | OnNode, Categories: "connection", Tips: "nondeterministic_output_order",
	Differs: "Lists mayfly's commands",
	Parse:   noParse(func(*Context) Reply { return infoOfAll(tableSorted) }),
	Sub: []Command{
		{
			Name: "count", Summary: "Get total number of Redis commands",
			Differs: "Counts mayfly's commands",
			Flags:   Loading | Stale | OnNode, Categories: "connection", Parse: noParse(func(*Context) Reply { return Count(len(table)) }),
		},
		{
			Name: "docs", Syntax: "[command-name [command-name ...]]", Since: "7.0.0",
			Summary: "Get array of specific Redis command documentation",
			Differs: "Without `complexity` and `history`",
			Flags:   Loading | Stale | OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: noParse(runCommandDocs),
		},
		{
			Name: "getkeys", Syntax: "command [arg [arg ...]]", Arity: -4, Summary: "Extract keys given a full Redis command",
			Flags: Loading | Stale | OnNode, Categories: "connection",
			Parse: func(in *Input) (Run, error) {
				return parseCommandGetKeys(in, func(r *row, args []string) Reply { return Bulks(r.keys(args)...) })
			},
		},
		{
			Name: "getkeysandflags", Syntax: "command [arg [arg ...]]", Since: "7.0.0", Arity: -4,
			Summary: "Extract keys and access flags given a full Redis command",
			Flags:   Loading | Stale | OnNode, Categories: "connection",
			Parse: func(in *Input) (Run, error) { return parseCommandGetKeys(in, keysAndFlags) },
		},
		with(helpRow("command", "5.0.0"), func(c *Command) { c.Categories = "connection" }),
		{
			Name: "info", Syntax: "[command-name [command-name ...]]",
			Summary: "Get array of specific Redis command details, or all when no argument is given.",
			Flags:   Loading | Stale | OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: noParse(runCommandInfo),
		},
		{
			Name: "list", Syntax: "[FILTERBY <MODULE module-name | ACLCAT category | PATTERN pattern>]", Since: "7.0.0",
			Summary: "Get an array of Redis command names",
			Flags:   Loading | Stale | OnNode, Categories: "connection", Tips: "nondeterministic_output_order", Parse: parseCommandList,
		},
	},
}

func runCommandInfo(x *Context) Reply {
	names := x.Input.Args[2:]
	if len(names) == 0 {
		return infoOfAll(tableSorted)
	}
	list := make([]Reply, len(names))
	for i, name := range names {
		list[i] = Null
		if r := findByFullName(name); r != nil {
			list[i] = r.info()
		}
	}
	return Array(list...)
}

func runCommandDocs(x *Context) Reply {
	names := x.Input.Args[2:]
	if len(names) == 0 {
		return docsOfAll(tableSorted)
	}
	var found []*row
	for _, name := range names {
		if r := findByFullName(name); r != nil {
			found = append(found, r)
		}
	}
	return docsOfAll(found)
}

// parseCommandList parses COMMAND LIST. The filters apply to subcommands on their own.
func parseCommandList(in *Input) (Run, error) {
	keep := func(*row) bool { return true }
	switch args := in.Args[2:]; {
	case len(args) == 0:
	case len(args) == 3 && redisfmt.EqualFold(args[0], "FILTERBY"):
		what := args[2]
		switch strings.ToUpper(args[1]) {
		case "MODULE":
			keep = func(r *row) bool { return what == moduleName && r.Group == "json" }
		case "ACLCAT":
			keep = func(r *row) bool { return r.isIn(strings.ToLower(what)) }
		case "PATTERN":
			if err := checkPattern(what); err != nil {
				return nil, err
			}
			pattern := redisfmt.Compile(strings.ToLower(what))
			keep = func(r *row) bool { return pattern.Match(r.full) }
		default:
			return nil, errSyntax
		}
	default:
		return nil, errSyntax
	}
	return func(*Context) Reply { return Bulks(fullNames(keep)...) }, nil
}

// fullNames returns the full names of the commands and subcommands that keep accepts, in the table's order.
func fullNames(keep func(*row) bool) []string {
	var names []string
	for _, r := range tableSorted {
		for _, r := range append([]*row{r}, r.sorted...) {
			if keep(r) {
				names = append(names, r.full)
			}
		}
	}
	return names
}

// parseACLCat parses ACL CAT, which lists all categories or the commands of one.
func parseACLCat(in *Input) (Run, error) {
	switch args := in.Args[2:]; len(args) {
	case 0:
		return func(*Context) Reply { return Bulks(categoryOrder...) }, nil
	case 1:
		category := strings.ToLower(args[0])
		if !slices.Contains(categoryOrder, category) {
			return nil, errorf(errNoCategory, shown(args[0]))
		}
		return func(*Context) Reply {
			return Bulks(fullNames(func(r *row) bool { return r.isIn(category) })...)
		}, nil
	}
	return nil, errorf(errSubcommandCall, shown(in.Args[1]), "ACL")
}

// parseCommandGetKeys parses COMMAND GETKEYS and GETKEYSANDFLAGS, which differ in show.
func parseCommandGetKeys(in *Input, show func(r *row, args []string) Reply) (Run, error) {
	args := in.Args[2:]
	r, err := resolve(args)
	switch named := findNamed(args); {
	case named == nil:
		return nil, errNoSuchCommand
	case !named.hasKeys():
		return nil, errNoKeys
	case err != nil:
		return nil, errKeysArity
	case len(r.keys(args)) == 0 && r.Scope != ScopeScript:
		return nil, errKeysInvalid
	}
	return func(*Context) Reply { return show(r, args) }, nil
}

// keysAndFlags lists the keys of a call with the flags of their access.
func keysAndFlags(r *row, args []string) Reply {
	access := r.accesses()
	keys := r.keys(args)
	list := make([]Reply, len(keys))
	for i, key := range keys {
		flags := strings.Fields(access[min(i, len(access)-1)])
		if slices.Contains(flags, variableFlags) && !slices.ContainsFunc(args[3:], func(arg string) bool { return redisfmt.EqualFold(arg, "GET") }) {
			flags = []string{"OW", "update"} // SET without GET only writes
		}
		flags = slices.DeleteFunc(flags, func(f string) bool { return f == variableFlags })
		list[i] = Array(Bulk(key), statuses(flags))
	}
	return Array(list...)
}

// variableFlags marks flags that depend on the other arguments of a call.
const variableFlags = "variable_flags"

// accesses returns the flags of the row's keys: one set for all keys, or one for each if they differ.
func (r *row) accesses() []string {
	switch {
	case r.Access != "":
		return strings.Split(r.Access, ",")
	case r.Flags&Write != 0:
		return []string{"RW access update"}
	}
	return []string{"RO access"}
}

// findNamed returns the command or subcommand that the arguments name, whatever their number.
func findNamed(args []string) *row {
	r := table.find(args[0])
	if r != nil && r.sub != nil && len(args) > 1 {
		return r.sub.find(args[1])
	}
	return r
}

// findByFullName returns the command with a full name in any case: "get", "config|get".
func findByFullName(name string) *row {
	command, sub, hasSub := strings.Cut(name, "|")
	r := table.find(command)
	if r != nil && hasSub {
		return r.sub.find(sub)
	}
	return r
}

func infoOfAll(list []*row) Reply {
	all := make([]Reply, len(list))
	for i, r := range list {
		all[i] = r.info()
	}
	return Array(all...)
}

// commandInfo is a row's entry in the reply of COMMAND.
func commandInfo(r *row) Reply {
	first, last, step := r.Keys.First, r.Keys.Last, r.Keys.Step
	return Array(
		Bulk(r.full),
		Count(r.Arity),
		statuses(r.flagNames()),
		Count(first), Count(last), Count(step),
		statuses(r.categories()),
		Set(Bulks(strings.Fields(r.Tips)...).Elems...),
		Set(r.keySpecs()...),
		infoOfSubcommands(r),
	)
}

// infoOfSubcommands is an array of entries. As in Redis, it is an empty set without subcommands.
func infoOfSubcommands(r *row) Reply {
	if len(r.sorted) == 0 {
		return Set()
	}
	return infoOfAll(r.sorted)
}

func statuses(words []string) Reply {
	elems := make([]Reply, len(words))
	for i, w := range words {
		elems[i] = Status(w)
	}
	return Set(elems...)
}

// flagNames are the names of the reported flags in COMMAND, from the lowest bit on.
var flagNames = strings.Fields("write readonly denyoom admin pubsub noscript blocking loading stale skip_slowlog fast " +
	"no_auth no_async_loading no_multi allow_busy")

func (f Flags) names() []string {
	var names []string
	for bit, name := range flagNames {
		if f&(1<<bit) != 0 {
			names = append(names, name)
		}
	}
	return names
}

// flagNames returns the names of the reported flags, of what follows from the keys too.
func (r *row) flagNames() []string {
	names := r.Flags.names()
	if r.Scope == ScopeScript {
		names = append(names, "skip_monitor", "no_mandatory_keys")
	}
	if r.hasMovableKeys() {
		names = append(names, "movablekeys")
	}
	return names
}

// categoryOrder are the ACL categories in Redis' order, then mayfly's own.
var categoryOrder = []string{
	"keyspace", "read", "write", "string", "stream", "pubsub", "admin", "fast", "slow", "blocking", "dangerous",
	"connection", "transaction", "scripting",
	"container", "document", "json",
}

// groupCategories are the categories of groups that do not have the group's name.
var groupCategories = map[string]string{"generic": "keyspace", "transactions": "transaction", "pubsub": "", "server": "", "cluster": ""}

// categories returns the row's ACL categories, from its flags and group as in Redis'
// setImplicitACLCategories, and from its Categories. As in Redis, a command that only has subcommands is
// just "slow".
func (r *row) categories() []string {
	in := map[string]bool{
		"write":     r.Flags&Write != 0,
		"read":      r.Flags&ReadOnly != 0 && r.Scope != ScopeScript,
		"admin":     r.Flags&Admin != 0,
		"dangerous": r.Flags&Admin != 0,
		"pubsub":    r.Flags&PubSub != 0,
		"blocking":  r.Flags&Blocking != 0,
		"fast":      r.Flags&Fast != 0,
		"slow":      r.Flags&Fast == 0,
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
	for _, c := range categoryOrder {
		if in[c] {
			names = append(names, "@"+c)
		}
	}
	return names
}

// isIn reports whether the row is in an ACL category, named in lower case without "@".
func (r *row) isIn(category string) bool { return slices.Contains(r.categories(), "@"+category) }

// keySpecs returns the row's key specifications: none, one for all keys, or one for each if their access
// differs.
func (r *row) keySpecs() []Reply {
	if r.KeysAfter.Word != "" {
		return []Reply{r.keywordSpec()}
	}
	if r.Scope == ScopeScript {
		return []Reply{r.numkeysSpec()}
	}
	if r.Keys.First == 0 {
		return nil
	}
	last := r.Keys.Last
	if last > 0 {
		last -= r.Keys.First // relative to the first key; a negative last counts from the end
	}
	each := r.accesses()
	if len(each) > 1 {
		last = 0
	}
	specs := make([]Reply, len(each))
	for i, access := range each {
		specs[i] = Map(
			Bulk("flags"), statuses(strings.Fields(access)),
			Bulk("begin_search"), Map(
				Bulk("type"), Bulk("index"),
				Bulk("spec"), Map(Bulk("index"), Count(r.Keys.First+i*r.Keys.Step)),
			),
			Bulk("find_keys"), Map(
				Bulk("type"), Bulk("range"),
				Bulk("spec"), Map(Bulk("lastkey"), Count(last), Bulk("keystep"), Count(r.Keys.Step), Bulk("limit"), Integer(0)),
			),
		)
	}
	return specs
}

// keywordSpec is the key specification of a row with KeysAfter.
func (r *row) keywordSpec() Reply {
	return Map(
		Bulk("flags"), statuses(strings.Fields(r.accesses()[0])),
		Bulk("begin_search"), Map(
			Bulk("type"), Bulk("keyword"),
			Bulk("spec"), Map(Bulk("keyword"), Bulk(r.KeysAfter.Word), Bulk("startfrom"), Count(r.KeysAfter.From)),
		),
		Bulk("find_keys"), Map(
			Bulk("type"), Bulk("range"),
			Bulk("spec"), Map(Bulk("lastkey"), Integer(-1), Bulk("keystep"), Integer(1), Bulk("limit"), Integer(2)),
		),
	)
}

// numkeysSpec is the key specification of EVAL and its relatives.
func (r *row) numkeysSpec() Reply {
	return Map(
		Bulk("flags"), statuses(strings.Fields(r.accesses()[0])),
		Bulk("begin_search"), Map(
			Bulk("type"), Bulk("index"),
			Bulk("spec"), Map(Bulk("index"), Count(numkeysAt)),
		),
		Bulk("find_keys"), Map(
			Bulk("type"), Bulk("keynum"),
			Bulk("spec"), Map(Bulk("keynumidx"), Integer(0), Bulk("firstkey"), Integer(1), Bulk("keystep"), Integer(1)),
		),
	)
}

// docsOfAll is the reply of COMMAND DOCS for rows.
func docsOfAll(list []*row) Reply {
	var docs []Reply
	for _, r := range list {
		docs = append(docs, Bulk(r.full), r.docs())
	}
	return Map(docs...)
}

// commandDocs is a row's entry in COMMAND DOCS.
func commandDocs(r *row) Reply {
	doc := []Reply{
		Bulk("summary"), Bulk(r.Summary),
		Bulk("since"), Bulk(r.Since),
		Bulk("group"), Bulk(r.Group),
	}
	// A test checks that the syntax of every row parses.
	if args, err := parseSyntax(r.Syntax); err == nil && len(args) > 0 {
		if r.Group == "stream" {
			boundsAreIDs(args)
		}
		switch {
		case r.hasMovableKeys():
			markNamed(args, "key")
		case r.hasKeys():
			markKeys(args, r.Keys, 1+strings.Count(r.full, "|"))
			if strings.Contains(r.Access, ",") {
				for i := range args {
					args[i].spec = i
				}
			}
		}
		doc = append(doc, Bulk("arguments"), docsOfArguments(args))
	}
	if len(r.sorted) > 0 {
		doc = append(doc, Bulk("subcommands"), docsOfAll(r.sorted))
	}
	return Map(doc...)
}

func docsOfArguments(args []argument) Reply {
	list := make([]Reply, len(args))
	for i := range args {
		list[i] = args[i].docs()
	}
	return Array(list...)
}

func (a *argument) docs() Reply {
	doc := []Reply{Bulk("name"), Bulk(a.name), Bulk("type"), Bulk(a.kind)}
	if a.kind == kindKey {
		doc = append(doc, Bulk("key_spec_index"), Count(a.spec))
	}
	if a.token != "" {
		doc = append(doc, Bulk("token"), Bulk(a.token))
	}
	var flags []string
	if a.optional {
		flags = append(flags, "optional")
	}
	if a.multiple {
		flags = append(flags, "multiple")
	}
	if a.repeatsToken {
		flags = append(flags, "multiple_token")
	}
	if len(flags) > 0 {
		doc = append(doc, Bulk("flags"), statuses(flags))
	}
	if len(a.args) > 0 {
		doc = append(doc, Bulk("arguments"), docsOfArguments(a.args))
	}
	return Map(doc...)
}
