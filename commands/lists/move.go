package lists

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

var twoKeys = engine.Keys{First: 1, Last: 2, Step: 1}

// MoveCommands take entries from the ends of lists, and wait for some if their name begins with B.
var MoveCommands = []engine.Command{
	{
		Name: "blmove", Syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT> timeout", Since: "6.2.0",
		Summary: "Pop an element from a list, push it to another list and return it; or block until one is available",
		Differs: items.ServedLater,
		Flags:   grow | engine.NoScript | engine.Blocking, Keys: twoKeys, Access: "RW access delete, RW insert",
		Parse: func(in *engine.Input) (engine.Run, error) {
			from, to, err := parseEnds(in.Args[3], in.Args[4])
			if err != nil {
				return nil, err
			}
			return parseMove(in, 5, from, to)
		},
	},
	{
		Name: "blmpop", Syntax: "timeout numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", Since: "7.0.0", Summary: "Pop elements from a list, or block until one is available",
		Differs: items.ServedLater,
		Flags:   frees | engine.Blocking, Keys: engine.Keys{First: 3, Last: -1, Step: 1}, Counted: true, Access: "RW access delete", Parse: items.AfterTimeout(parseMPop),
	},
	blocking("blpop", "Remove and get the first element in a list, or block until one is available", true),
	blocking("brpop", "Remove and get the last element in a list, or block until one is available", false),
	{
		Name: "brpoplpush", Syntax: "source destination timeout", Since: "2.2.0",
		Summary: "Pop an element from a list, push it to another list and return it; or block until one is available",
		Differs: items.ServedLater,
		Flags:   grow | engine.NoScript | engine.Blocking, Keys: twoKeys, Access: "RW access delete, RW insert",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseMove(in, 3, false, true) },
	},
	{
		Name: "lmove", Syntax: "source destination <LEFT | RIGHT> <LEFT | RIGHT>", Since: "6.2.0", Summary: "Pop an element from a list, push it to another list and return it",
		Flags: grow, Keys: twoKeys, Access: "RW access delete, RW insert",
		Parse: func(in *engine.Input) (engine.Run, error) {
			from, to, err := parseEnds(in.Args[3], in.Args[4])
			return moveOrNull(from, to), err
		},
	},
	{
		Name: "lmpop", Syntax: "numkeys key [key ...] <LEFT | RIGHT> [COUNT count]", Since: "7.0.0", Summary: "Pop elements from a list",
		Flags: frees, Keys: engine.Keys{First: 2, Last: -1, Step: 1}, Counted: true, Access: "RW access delete",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseMPop(in.Args[1:], -1) },
	},
	{
		Name: "rpoplpush", Syntax: "source destination", Since: "1.2.0", Summary: "Remove the last element in a list, prepend it to another list and return it",
		Flags: grow, Keys: twoKeys, Access: "RW access delete, RW insert", Parse: engine.NoParse(moveOrNull(false, true)),
	},
}

// parseEnds reads LEFT or RIGHT of the source, and of the destination.
func parseEnds(from, to string) (fromLeft, toLeft bool, err error) {
	for i, word := range []string{from, to} {
		left := redisfmt.EqualFold(word, "LEFT")
		if !left && !redisfmt.EqualFold(word, "RIGHT") {
			return false, false, engine.ErrSyntax
		}
		if i == 0 {
			fromLeft = left
		} else {
			toLeft = left
		}
	}
	return fromLeft, toLeft, nil
}

// moveOrNull is the Run of a command that moves an entry and does not wait.
func moveOrNull(fromLeft, toLeft bool) engine.Run {
	return func(x *engine.Context) engine.Reply {
		if reply, moved := move(x, x.Input.Args[1], x.Input.Args[2], fromLeft, toLeft); moved {
			return reply
		}
		return engine.Null
	}
}

// parseMove parses the time for which a command waits that moves an entry.
func parseMove(in *engine.Input, timeout int, fromLeft, toLeft bool) (engine.Run, error) {
	ms, err := items.ParseSeconds(in.Args[timeout])
	if err != nil {
		return nil, err
	}
	wait := items.Taking(in.Args[1:2], keyspace.ListKind, ms, func(x *engine.Context, source string) (engine.Reply, bool) {
		return move(x, source, x.Input.Args[2], fromLeft, toLeft)
	})
	return func(x *engine.Context) engine.Reply {
		if x.Queued {
			return moveOrNull(fromLeft, toLeft)(x)
		}
		return wait(x)
	}, nil
}

// move moves an entry from an end of a list to one of another, or of the same. It returns false if there is
// none.
func move(x *engine.Context, source, destination string, fromLeft, toLeft bool) (reply engine.Reply, moved bool) {
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err), true
	}
	from, err := items.BeginListChange(x, c, source)
	if err != nil || !from.Exists() {
		return engine.Fail(engine.ErrWrongType), err != nil && !x.HasWaited()
	}
	if source == destination {
		value, _ := from.Pop(fromLeft)
		from.Push(toLeft, value)
		from.Close(pushEvent(toLeft), popEvent(fromLeft))
		return engine.Bulk(value), true
	}
	if _, kind, taken := x.Tx.Elements(c, destination); taken && kind != keyspace.ListKind {
		return engine.Fail(engine.ErrWrongType), true
	}
	value, _ := from.Pop(fromLeft)
	gone := from.ListEdit.Close()
	to, _ := items.BeginListChange(x, c, destination)
	to.Push(toLeft, value)
	to.Close(pushEvent(toLeft))
	from.Tell(false, gone, popEvent(fromLeft)) // as in Redis, after what it has filled
	return engine.Bulk(value), true
}

// taking returns a function that takes entries from a list, and replies with them.
func taking(left bool, take func(x *engine.Context, key string, h *items.ListChange) engine.Reply) func(x *engine.Context, key string) (engine.Reply, bool) {
	return func(x *engine.Context, key string) (engine.Reply, bool) {
		c, err := x.Database()
		if err != nil {
			return engine.Fail(err), true
		}
		h, err := items.BeginListChange(x, c, key)
		if err != nil || !h.Exists() {
			return engine.Fail(engine.ErrWrongType), err != nil && !x.HasWaited()
		}
		reply := take(x, key, &h)
		h.Close(popEvent(left))
		return reply, true
	}
}

func blocking(name, summary string, left bool) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key [key ...] timeout", Since: "2.0.0", Summary: summary,
		Differs: items.ServedLater,
		Flags:   frees | engine.NoScript | engine.Blocking, Keys: engine.Keys{First: 1, Last: -2, Step: 1}, Access: "RW access delete",
		Parse: func(in *engine.Input) (engine.Run, error) {
			last := len(in.Args) - 1
			ms, err := items.ParseSeconds(in.Args[last])
			if err != nil {
				return nil, err
			}
			return items.Taking(in.Args[1:last], keyspace.ListKind, ms, taking(left, func(_ *engine.Context, key string, h *items.ListChange) engine.Reply {
				value, _ := h.Pop(left)
				return engine.Bulks(key, value)
			})), nil
		},
	}
}

// parseMPop parses what begins with the number of keys of a command that waits for a time in ms: see
// [items.Taking].
func parseMPop(args []string, ms int64) (engine.Run, error) {
	keys, right, count, err := items.ParseTaking(args, "LEFT", "RIGHT")
	if err != nil {
		return nil, err
	}
	return items.Taking(keys, keyspace.ListKind, ms, taking(!right, func(x *engine.Context, key string, h *items.ListChange) engine.Reply {
		popped := pop(x, h, !right, count)
		if popped.Kind == engine.KindError {
			return popped
		}
		return engine.Array(engine.Bulk(key), popped)
	})), nil
}
