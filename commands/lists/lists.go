package lists

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	read  = engine.ReadOnly
	grow  = engine.Write | engine.DenyOOM
	frees = engine.Write | engine.Frees
	fast  = engine.Fast
)

// Commands are those of Redis 7.0 on one list.
var Commands = []engine.Command{
	row("lindex", "key index", "1.0.0", "Get an element from a list by its index", read, "", parseLIndex),
	walking(row("linsert", "key <BEFORE | AFTER> pivot element", "2.2.0", "Insert an element before or after another element in a list", grow, "RW insert", parseLInsert)),
	row("llen", "key", "1.0.0", "Get the length of a list", read|fast, "RO", engine.NoParse(items.Length(keyspace.ListKind))),
	popping("lpop", "Remove and get the first elements in a list", true),
	walking(row("lpos", "key element [RANK rank] [COUNT num-matches] [MAXLEN len]", "6.0.6", "Return the index of matching elements on a list", read, "", parseLPos)),
	row("lpush", "key element [element ...]", "1.0.0", "Prepend one or multiple elements to a list", grow|fast, "RW insert", engine.NoParse(items.Creating(push(true, false)))),
	row("lpushx", "key element [element ...]", "2.2.0", "Prepend an element to a list, only if the list exists", grow|fast, "RW insert", engine.NoParse(push(true, true))),
	engine.With(row("lrange", "key start stop", "1.0.0", "Get a range of elements from a list", read, "", parseLRange), func(c *engine.Command) { c.Walks = items.WideRange }),
	walking(row("lrem", "key count element", "1.0.0", "Remove elements from a list", frees, "RW delete", parseLRem)),
	row("lset", "key index element", "1.0.0", "Set the value of an element in a list by its index", grow, "RW update", parseLSet),
	walking(row("ltrim", "key start stop", "1.0.0", "Trim a list to the specified range", frees, "RW delete", parseLTrim)),
	popping("rpop", "Remove and get the last elements in a list", false),
	row("rpush", "key element [element ...]", "1.0.0", "Append one or multiple elements to a list", grow|fast, "RW insert", engine.NoParse(items.Creating(push(false, false)))),
	row("rpushx", "key element [element ...]", "2.2.0", "Append an element to a list, only if the list exists", grow|fast, "RW insert", engine.NoParse(push(false, true))),
}

func row(name, syntax, since, summary string, flags engine.Flags, access string, parse func(*engine.Input) (engine.Run, error)) engine.Command {
	return engine.Command{Name: name, Syntax: syntax, Since: since, Summary: summary, Flags: flags, Keys: engine.OneKey, Access: access, Parse: parse}
}

func walking(c engine.Command) engine.Command {
	c.Walks = engine.Always
	return c
}

// get returns the list of a key of the session's database: see [items.GetElements].
func get(x *engine.Context, key string) (h keyspace.Elements, found bool, err error) {
	_, h, found, err = items.GetElements(x, key, keyspace.ListKind)
	return h, found, err
}

func pushEvent(left bool) string {
	if left {
		return "lpush"
	}
	return "rpush"
}

func popEvent(left bool) string {
	if left {
		return "lpop"
	}
	return "rpop"
}

// push is the Run of LPUSH or RPUSH, or of its relative that wants an existing list.
func push(left, existing bool) engine.Run {
	told := []string{pushEvent(left)}
	return items.OnListChange(func(x *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if existing && !h.Exists() {
			return engine.Count(0), nil
		}
		for _, value := range x.Input.Args[2:] {
			x.Work += int64(len(value))
			h.Push(left, value)
		}
		return engine.Count(h.Len()), told
	})
}

func popping(name, summary string, left bool) engine.Command {
	c := row(name, "key [count]", "1.0.0", summary, frees|fast, "RW access delete", nil)
	one := popOne(left)
	c.Parse = func(in *engine.Input) (engine.Run, error) {
		switch len(in.Args) {
		case 2:
			return one, nil
		case 3:
		default:
			return nil, engine.Errorf(engine.ErrWrongArity, name)
		}
		count, ok := redisfmt.ParseInt(in.Args[2])
		if !ok || count < 0 {
			return nil, items.ErrNotPositive
		}
		return items.OnListChange(func(x *engine.Context, h *items.ListChange) (engine.Reply, []string) {
			switch {
			case !h.Exists():
				return engine.NullArray, nil
			case count == 0:
				return engine.Array(), nil
			}
			return pop(x, h, left, count), []string{name}
		}), nil
	}
	return c
}

func popOne(left bool) engine.Run {
	told := []string{popEvent(left)}
	return items.OnListChange(func(_ *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if !h.Exists() {
			return engine.Null, nil
		}
		value, _ := h.Pop(left)
		return engine.Bulk(value), told
	})
}

// pop removes entries from an end of a list, and returns them.
func pop(x *engine.Context, h *items.ListChange, left bool, count int64) engine.Reply {
	size := h.Len()
	n := int(min(count, int64(size)))
	from, to := 0, n
	if !left {
		from, to = size-n, size
	}
	list := engine.List{Memory: x.Session.Memory}
	list.Expect(n)
	for entry := range h.Entries(from, to, !left) {
		list.Add(engine.Bulk(entry))
	}
	h.Drop(left, n)
	return list.Array()
}

// at returns the index of an entry, of which negative ones count from the end, and whether there is one.
func at(index int64, n int) (i int, ok bool) {
	if index < 0 {
		index += int64(n)
	}
	return int(index), index >= 0 && index < int64(n)
}

func parseLIndex(in *engine.Input) (engine.Run, error) {
	index, ok := redisfmt.ParseInt(in.Args[2])
	return func(x *engine.Context) engine.Reply {
		h, found, err := get(x, x.Input.Args[1])
		switch {
		case err != nil:
			return engine.Fail(err)
		case !found:
			return engine.Null
		case !ok: // as in Redis, a missing key comes first
			return engine.Fail(engine.ErrNotInteger)
		}
		if i, ok := at(index, h.Len()); ok {
			for entry := range h.Entries(i, i+1, false) {
				return engine.Bulk(entry)
			}
		}
		return engine.Null
	}, nil
}

func parseLRange(in *engine.Input) (engine.Run, error) {
	start, ok1 := redisfmt.ParseInt(in.Args[2])
	stop, ok2 := redisfmt.ParseInt(in.Args[3])
	if !ok1 || !ok2 {
		return nil, engine.ErrNotInteger
	}
	return func(x *engine.Context) engine.Reply {
		h, found, err := get(x, x.Input.Args[1])
		switch {
		case err != nil:
			return engine.Fail(err)
		case !found:
			return engine.Array()
		}
		from, to := items.IndexRange(start, stop, h.Len())
		return engine.Elements(engine.KindArray, to-from, engine.Fields, h.EntryBodies(from, to))
	}, nil
}

const (
	errNoSuchKey = engine.Error("ERR no such key")
	errIndex     = engine.Error("ERR index out of range")
)

func parseLSet(in *engine.Input) (engine.Run, error) {
	index, ok := redisfmt.ParseInt(in.Args[2])
	return items.OnListChange(func(x *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if !h.Exists() {
			return engine.Fail(errNoSuchKey), nil
		}
		if !ok { // as in Redis, a missing key comes first
			return engine.Fail(engine.ErrNotInteger), nil
		}
		i, within := at(index, h.Len())
		if !within {
			return engine.Fail(errIndex), nil
		}
		x.Work += int64(len(x.Input.Args[3]))
		h.SetAt(i, x.Input.Args[3])
		return engine.OK, []string{"lset"}
	}), nil
}

func parseLInsert(in *engine.Input) (engine.Run, error) {
	after := redisfmt.EqualFold(in.Args[2], "AFTER")
	if !after && !redisfmt.EqualFold(in.Args[2], "BEFORE") {
		return nil, engine.ErrSyntax
	}
	return items.OnListChange(func(x *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if !h.Exists() {
			return engine.Count(0), nil
		}
		size, i := h.Len(), 0
		for entry := range h.Entries(0, size, false) {
			if entry != x.Input.Args[3] {
				i++
				continue
			}
			x.Work += int64(len(x.Input.Args[4]))
			if !after {
				h.InsertAt(i, x.Input.Args[4])
			} else if i+1 < size {
				h.InsertAt(i+1, x.Input.Args[4])
			} else {
				h.Push(false, x.Input.Args[4])
			}
			return engine.Count(h.Len()), []string{"linsert"}
		}
		return engine.Integer(-1), nil
	}), nil
}

func parseLRem(in *engine.Input) (engine.Run, error) {
	count, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	return items.OnListChange(func(x *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if !h.Exists() {
			return engine.Count(0), nil
		}
		x.Work += h.Size()
		removed, most := int64(0), max(count, -count) // the least integer is its own negative: no limit
		h.Filter(count >= 0, func(entry string) (keeps, more bool) {
			if entry != x.Input.Args[3] {
				return true, true
			}
			removed++
			return false, removed != most
		})
		if removed == 0 {
			return engine.Count(0), nil
		}
		return engine.Integer(removed), []string{"lrem"}
	}), nil
}

func parseLTrim(in *engine.Input) (engine.Run, error) {
	start, ok1 := redisfmt.ParseInt(in.Args[2])
	stop, ok2 := redisfmt.ParseInt(in.Args[3])
	if !ok1 || !ok2 {
		return nil, engine.ErrNotInteger
	}
	return items.OnListChange(func(_ *engine.Context, h *items.ListChange) (engine.Reply, []string) {
		if !h.Exists() {
			return engine.OK, nil
		}
		size := h.Len()
		from, to := items.IndexRange(start, stop, size)
		if from == to {
			from, to = size, size
		}
		h.Drop(true, from)
		h.Drop(false, size-to)
		return engine.OK, []string{"ltrim"}
	}), nil
}

const (
	errRank     = engine.Error("ERR RANK can't be zero: use 1 to start from the first match, 2 from the second ... or use negative to start from the end of the list")
	errPosCount = engine.Error("ERR COUNT can't be negative")
	errMaxLen   = engine.Error("ERR MAXLEN can't be negative")
)

func parseLPos(in *engine.Input) (engine.Run, error) {
	rank, count, most := int64(1), int64(-1), int64(0)
	for rest := in.Args[3:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) == 1 {
			return nil, engine.ErrSyntax
		}
		n, ok := redisfmt.ParseInt(rest[1])
		switch {
		case redisfmt.EqualFold(rest[0], "RANK"):
			if rank = n; !ok {
				return nil, engine.ErrNotInteger
			} else if rank == 0 {
				return nil, errRank
			}
		case redisfmt.EqualFold(rest[0], "COUNT"):
			if count = n; !ok || n < 0 {
				return nil, errPosCount
			}
		case redisfmt.EqualFold(rest[0], "MAXLEN"):
			if most = n; !ok || n < 0 {
				return nil, errMaxLen
			}
		default:
			return nil, engine.ErrSyntax
		}
	}
	return func(x *engine.Context) engine.Reply {
		h, found, err := get(x, x.Input.Args[1])
		switch {
		case err != nil:
			return engine.Fail(err)
		case !found && count >= 0:
			return engine.Array()
		case !found:
			return engine.Null
		}
		size := h.Len()
		from, to, looked := 0, size, size
		if most > 0 {
			looked = int(min(most, int64(size)))
		}
		if to = looked; rank < 0 {
			from, to = size-looked, size
		}
		element := x.Input.Args[2]
		entries := h.Entries(from, to, rank < 0)
		return x.Compute(int(h.Size()), func() engine.Reply {
			return position(x, entries, element, size, rank, count)
		})
	}, nil
}

// position is the reply of LPOS. entries are those of a list of a size, backwards with a negative rank.
func position(x *engine.Context, entries func(func(string) bool), element string, size int, rank, count int64) engine.Reply {
	list := engine.List{Memory: x.Session.Memory}
	matches, index, first := int64(0), 0, max(rank, -rank)
	for entry := range entries {
		if entry == element {
			if matches++; matches >= first || first < 0 {
				found := index
				if rank < 0 {
					found = size - 1 - index
				}
				if count < 0 {
					return engine.Count(found)
				}
				if list.Add(engine.Count(found)); list.Refused() || count > 0 && matches-first+1 >= count {
					break
				}
			}
		}
		index++
	}
	if count < 0 {
		return engine.Null
	}
	return list.Array()
}
