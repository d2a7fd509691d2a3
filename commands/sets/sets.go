package sets

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	read   = engine.ReadOnly
	grow   = engine.Write | engine.DenyOOM
	frees  = engine.Write | engine.Frees
	fast   = engine.Fast
	random = "nondeterministic_output"
	anyhow = "nondeterministic_output_order"

	eventSAdd = "sadd"
	eventSRem = "srem"
	eventSPop = "spop"
)

// Commands are the commands of Redis 7.0.
var Commands = []engine.Command{
	row("sadd", "key member [member ...]", "1.0.0", "Add one or more members to a set", grow|fast, "RW insert", "", engine.NoParse(runSAdd)),
	row("scard", "key", "1.0.0", "Get the number of members in a set", read|fast, "RO", "", engine.NoParse(items.Length(keyspace.SetKind))),
	combining("sdiff", "Subtract multiple sets", difference),
	storing("sdiffstore", "OW", "Subtract multiple sets and store the resulting set in a key", difference),
	combining("sinter", "Intersect multiple sets", intersection),
	{
		Name: "sintercard", Syntax: "numkeys key [key ...] [LIMIT limit]", Since: "7.0.0", Summary: "Intersect multiple sets and return the cardinality of the result",
		Flags: read, Keys: engine.Keys{First: 2, Last: -1, Step: 1}, Counted: true, Walks: engine.Always, Parse: parseSInterCard,
	},
	storing("sinterstore", "RW", "Intersect multiple sets and store the resulting set in a key", intersection),
	row("sismember", "key member", "1.0.0", "Determine if a given value is a member of a set", read|fast, "RO", "", engine.NoParse(runSIsMember)),
	walking(row("smembers", "key", "1.0.0", "Get all the members in a set", read, "", anyhow, engine.NoParse(runSMembers))),
	row("smismember", "key member [member ...]", "6.2.0", "Returns the membership associated with the given elements for a set", read|fast, "", "", engine.NoParse(runSMIsMember)),
	{
		Name: "smove", Syntax: "source destination member", Since: "1.0.0", Summary: "Move a member from one set to another",
		Differs: "A member with an end of its own keeps it",
		Flags:   engine.Write | fast, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Access: "RW access delete, RW insert", Parse: engine.NoParse(runSMove),
	},
	walking(row("spop", "key [count]", "1.0.0", "Remove and return one or multiple random members from a set", frees|fast, "RW access delete", random, parseSPop)),
	walking(row("srandmember", "key [count]", "1.0.0", "Get one or multiple random members from a set", read, "", random, parseSRandMember)),
	row("srem", "key member [member ...]", "1.0.0", "Remove one or more members from a set", frees|fast, "RW delete", "", engine.NoParse(items.Deleting(keyspace.SetKind, eventSRem))),
	walking(row("sscan", "key cursor [MATCH pattern] [COUNT count]", "2.8.0", "Incrementally iterate Set elements", read, "", random, parseSScan)),
	combining("sunion", "Add multiple sets", union),
	storing("sunionstore", "OW", "Add multiple sets and store the resulting set in a key", union),
}

func row(name, syntax, since, summary string, flags engine.Flags, access, tips string, parse func(*engine.Input) (engine.Run, error)) engine.Command {
	differs := ""
	if name == "sscan" {
		differs = "Cursors are of another kind, and the pattern is bounded as that of `KEYS`. A member that is present throughout comes once, not at least once. A cursor is void after `RENAME`"
	}
	return engine.Command{Name: name, Syntax: syntax, Since: since, Summary: summary, Flags: flags, Differs: differs, Keys: engine.OneKey, Access: access, Tips: tips, Parse: parse}
}

// walking says that a command walks all members, one that may have a count only with it.
func walking(c engine.Command) engine.Command {
	if c.Walks = engine.Always; c.Syntax == "key [count]" {
		c.Walks, c.Reads = engine.IfLonger(2), items.ChoosesMany
	}
	return c
}

var toldSAdd = []string{eventSAdd}

// runSAdd writes nothing if all members are there: they keep their ends.
var runSAdd = items.OnCreate(keyspace.SetKind, func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
	added, members := 0, x.Input.Args[2:]
	for i := range h.ByPage(members, 1) {
		if _, found := h.Get(members[i]); !found {
			h.Put(members[i], "", 0)
			added++
		}
	}
	if added == 0 {
		return engine.Count(0), nil
	}
	return engine.Count(added), toldSAdd
})

var runSMembers = items.OnElements(keyspace.SetKind, func(_ *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	return engine.Elements(engine.KindSet, h.Len(), engine.Fields, h.Bodies())
})

var runSIsMember = items.OnElements(keyspace.SetKind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	_, found := h.Get(x.Input.Args[2])
	return engine.Flag(found)
})

var runSMIsMember = items.OnElements(keyspace.SetKind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	flags := make([]engine.Reply, 0, len(x.Input.Args)-2)
	for _, member := range x.Input.Args[2:] {
		_, found := h.Get(member)
		flags = append(flags, engine.Flag(found))
	}
	return engine.Array(flags...)
})

// runSMove moves a member with its end.
func runSMove(x *engine.Context) engine.Reply {
	source, destination, member := x.Input.Args[1], x.Input.Args[2], x.Input.Args[3]
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	from, err := items.BeginChange(x, c, source, keyspace.SetKind)
	switch {
	case err != nil:
		return engine.Fail(err)
	case !from.Exists():
		return engine.Flag(false)
	}
	e, found := from.Get(member)
	if source == destination {
		return engine.Flag(found)
	}
	if _, kind, taken := x.Tx.Elements(c, destination); taken && kind != keyspace.SetKind {
		return engine.Fail(engine.ErrWrongType)
	}
	if !found {
		return engine.Flag(false)
	}
	end := e.End
	from.Delete(member)
	from.Close(eventSRem)
	to, _ := items.BeginChange(x, c, destination, keyspace.SetKind)
	if _, there := to.Get(member); !there {
		to.Put(member, "", end)
		to.Close(eventSAdd)
	}
	return engine.Flag(true)
}

func parseSPop(in *engine.Input) (engine.Run, error) {
	switch len(in.Args) {
	case 2:
		return popOne, nil
	case 3:
	default:
		return nil, engine.ErrSyntax
	}
	count, ok := redisfmt.ParseInt(in.Args[2])
	if !ok || count < 0 {
		return nil, items.ErrNotPositive
	}
	return items.OnChange(keyspace.SetKind, func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		if !h.Exists() || count == 0 {
			return engine.Set(), nil
		}
		return pop(x, h, count), toldSPop
	}), nil
}

var toldSPop = []string{eventSPop}

var popOne = items.OnChange(keyspace.SetKind, func(_ *engine.Context, h *items.Change) (engine.Reply, []string) {
	if !h.Exists() {
		return engine.Null, nil
	}
	e := h.Random()
	h.Delete(e.Field)
	return engine.Bulk(e.Field), toldSPop
})

// pop removes random members. Of many it writes those anew that stay.
func pop(x *engine.Context, h *items.Change, count int64) engine.Reply {
	list := engine.List{Memory: x.Session.Memory}
	size := int64(h.Len())
	const few, share = 64, 16
	if h.Paged() && count < size && (count <= few || count < size/share) {
		for ; count > 0; count-- {
			e := h.Random()
			list.Add(engine.Bulk(e.Field))
			h.Delete(e.Field)
		}
		return list.Set()
	}
	all := h.All() // as they are before
	h.Replace(func(stays func(keyspace.Element) bool) {
		for e := range all {
			if items.Chance(min(count, size), size) {
				count--
				list.Add(engine.Bulk(e.Field))
			} else if !stays(e) {
				return
			}
			size--
		}
	})
	x.Work += h.Size()
	return list.Set()
}

func parseSRandMember(in *engine.Input) (engine.Run, error) {
	return items.ParseRandom(in, keyspace.SetKind, "", nil)
}

func parseSScan(in *engine.Input) (engine.Run, error) {
	return items.ParseScan(in, keyspace.SetKind, nil, func(list *engine.List, e keyspace.Element) { list.Add(engine.Bulk(e.Field)) })
}
