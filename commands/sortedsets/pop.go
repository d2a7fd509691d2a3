package sortedsets

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace/elements"
	"mayfly/redisfmt"
)

// PopCommands take members from the ends.
var PopCommands = []engine.Command{
	{
		Name: "bzmpop", Syntax: "timeout numkeys key [key ...] <MIN | MAX> [COUNT count]", Since: "7.0.0",
		Summary: "Remove and return members with scores in a sorted set or block until one is available",
		Differs: items.ServedLater,
		Flags:   frees | engine.Blocking, Keys: engine.Keys{First: 3, Last: -1, Step: 1}, Counted: true, Access: "RW access delete",
		Parse: items.AfterTimeout(parseMPop),
	},
	blocking("bzpopmax", "Remove and return the member with the highest score from one or more sorted sets, or block until one is available", true),
	blocking("bzpopmin", "Remove and return the member with the lowest score from one or more sorted sets, or block until one is available", false),
	{
		Name: "zmpop", Syntax: "numkeys key [key ...] <MIN | MAX> [COUNT count]", Since: "7.0.0", Summary: "Remove and return members with scores in a sorted set",
		Flags: frees, Keys: engine.Keys{First: 2, Last: -1, Step: 1}, Counted: true, Access: "RW access delete",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseMPop(in.Args[1:], -1) },
	},
	popping("zpopmax", "Remove and return members with the highest scores in a sorted set", true),
	popping("zpopmin", "Remove and return members with the lowest scores in a sorted set", false),
}

func popping(name, summary string, highest bool) engine.Command {
	told := []string{name}
	run := func(count int64, nested bool) engine.Run {
		return items.OnChange(kind, func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
			list := newScored(x, true)
			list.nested = list.nested && nested
			if !h.Exists() || count == 0 {
				return list.Array(), nil
			}
			if count == 1 {
				list.Expect(2)
			}
			pop(x, h, highest, count, func(s elements.Scored) { list.add(s) })
			return list.Array(), told
		})
	}
	one := run(1, false)
	return row(name, "key [count]", "5.0.0", summary, frees|fast, "RW access delete", func(in *engine.Input) (engine.Run, error) {
		switch len(in.Args) {
		case 2:
			return one, nil
		case 3:
		default:
			return nil, engine.ErrSyntax
		}
		count, ok := redisfmt.ParseInt(in.Args[2])
		if !ok || count < 0 {
			return nil, items.ErrNotPositive
		}
		return run(count, true), nil
	})
}

// pop removes the members with the lowest scores, or with the highest, and calls each with them.
func pop(x *engine.Context, h *items.Change, highest bool, count int64, each func(elements.Scored)) {
	s := h.Sorted()
	n := int(min(count, int64(s.Len())))
	from, to := 0, n
	if highest {
		from, to = s.Len()-n, s.Len()
	}
	remove(x, h, &s, from, to, highest, each)
}

func eventOf(highest bool) string {
	if highest {
		return "zpopmax"
	}
	return "zpopmin"
}

// taking returns a function that takes members from a key, and replies with them.
func taking(highest bool, count int64, reply func(x *engine.Context, key string, all []elements.Scored) engine.Reply) func(x *engine.Context, key string) (engine.Reply, bool) {
	return func(x *engine.Context, key string) (engine.Reply, bool) {
		c, err := x.Database()
		if err != nil {
			return engine.Fail(err), true
		}
		h, err := items.BeginChange(x, c, key, kind)
		if err != nil || !h.Exists() {
			return engine.Fail(engine.ErrWrongType), err != nil && !x.HasWaited()
		}
		var all []elements.Scored
		pop(x, &h, highest, count, func(s elements.Scored) { all = append(all, s) })
		h.Close(eventOf(highest))
		return reply(x, key, all), true
	}
}

func blocking(name, summary string, highest bool) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key [key ...] timeout", Since: "5.0.0", Summary: summary,
		Differs: items.ServedLater,
		Flags:   frees | fast | engine.Blocking | engine.NoScript, Keys: engine.Keys{First: 1, Last: -2, Step: 1}, Access: "RW access delete",
		Parse: func(in *engine.Input) (engine.Run, error) {
			last := len(in.Args) - 1
			ms, err := items.ParseSeconds(in.Args[last])
			if err != nil {
				return nil, err
			}
			return items.Taking(in.Args[1:last], kind, ms, taking(highest, 1, func(_ *engine.Context, key string, all []elements.Scored) engine.Reply {
				return engine.Array(engine.Bulk(key), engine.Bulk(all[0].Member), engine.Double(all[0].Score))
			})), nil
		},
	}
}

// parseMPop parses what begins with the number of keys of a command that waits for a time in ms: see
// [items.Taking].
func parseMPop(args []string, ms int64) (engine.Run, error) {
	keys, highest, count, err := items.ParseTaking(args, "MIN", "MAX")
	if err != nil {
		return nil, err
	}
	return items.Taking(keys, kind, ms, taking(highest, count, func(_ *engine.Context, key string, all []elements.Scored) engine.Reply {
		list := make([]engine.Reply, 0, len(all))
		for _, s := range all {
			list = append(list, engine.Array(engine.Bulk(s.Member), engine.Double(s.Score)))
		}
		return engine.Array(engine.Bulk(key), engine.Array(list...))
	})), nil
}
