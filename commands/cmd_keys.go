package commands

import (
	"math"
	"strconv"
	"strings"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

var keyCommands = []Command{
	{
		Name: "dbsize", Since: "1.0.0", Group: "server", Summary: "Return the number of keys in the selected database",
		Differs: "Dead keys are not counted, whether they are removed or not",
		Flags:   ReadOnly | Fast, Scope: ScopeSweep, Categories: "keyspace", Tips: "request_policy:all_shards response_policy:agg_sum",
		Parse: noParse(onDatabase(runDBSize)),
	},
	{
		Name: "del", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Delete a key",
		Flags: Write | Frees, Keys: AllKeys, Access: "RM delete", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: noParse(onDatabase(runDel)),
	},
	{
		Name: "exists", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Determine if a key exists",
		Flags: ReadOnly | Fast, Keys: AllKeys, Access: "RO", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: noParse(peeking(onDatabase(runExists))),
	},
	{
		Name: "flushall", Syntax: "[ASYNC | SYNC]", Since: "1.0.0", Group: "server", Summary: "Remove all keys from all databases",
		Differs: "Containers and their defaults stay",
		Flags:   Write | Frees, Scope: ScopeAll, Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
		Parse: parseFlushAll,
	},
	{
		Name: "flushdb", Syntax: "[ASYNC | SYNC]", Since: "1.0.0", Group: "server", Summary: "Remove all keys from the current database",
		Differs: "The container's default stays",
		Flags:   Write | Frees, Scope: ScopeAll, Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
		Parse: parseFlushDB,
	},
	{
		Name: "keys", Syntax: "pattern", Since: "1.0.0", Summary: "Find all keys matching the given pattern",
		Differs: "A pattern with `*` or `[` has at most 1024 bytes, since matching takes time. The dead are not listed",
		Flags:   ReadOnly | Slow, Scope: ScopeSweep, Categories: "dangerous", Tips: "request_policy:all_shards nondeterministic_output_order",
		Parse: parseKeys,
	},
	{
		Name: "randomkey", Since: "1.0.0", Summary: "Return a random key from the keyspace",
		Flags: ReadOnly, Scope: ScopeSweep, Tips: "request_policy:all_shards nondeterministic_output", Parse: noParse(onDatabase(runRandomKey)),
	},
	{
		Name: "scan", Syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]", Since: "2.8.0",
		Summary: "Incrementally iterate the keys space",
		Differs: "Cursors are of another kind, and the pattern is bounded as that of `KEYS`. A key that is present throughout comes once, not at least once. TYPE also knows `document` and `json`",
		Flags:   ReadOnly | Slow, Scope: ScopeSweep, Tips: "nondeterministic_output request_policy:special", Parse: parseScan,
	},
	{
		Name: "type", Syntax: "key", Since: "1.0.0", Summary: "Determine the type stored at key",
		Differs: "Returns `ReJSON-RL` for a document, as with RedisJSON",
		Flags:   ReadOnly | Fast, Keys: OneKey, Access: "RO", Parse: noParse(peeking(onDatabase(runType))),
	},
	{
		Name: "unlink", Syntax: "key [key ...]", Since: "4.0.0",
		Summary: "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
		Flags:   Write | Frees | Fast, Keys: AllKeys, Access: "RM delete", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: noParse(onDatabase(runDel)),
	},
}

// typeName returns the name that TYPE gives a kind of item. Tools switch on that of RedisJSON.
func typeName(k keyspace.Kind) string {
	if k == keyspace.Document {
		return "ReJSON-RL"
	}
	return "string"
}

// onDatabase returns a Run that calls do with the session's database.
func onDatabase(do func(x *Context, c *keyspace.Container) Reply) Run {
	return func(x *Context) Reply {
		c, err := x.Database()
		if err != nil {
			return Fail(err)
		}
		return do(x, c)
	}
}

// getItem returns the item of a key of the session's database. The error says that the database was
// dropped.
func (x *Context) getItem(key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	if c, err = x.Database(); err != nil {
		return nil, it, false, err
	}
	it, found = x.Tx.Get(c, key)
	return c, it, found, nil
}

func runDel(x *Context, c *keyspace.Container) Reply {
	deleted := 0
	for _, key := range x.Input.Args[1:] {
		if x.remove(c, key) {
			deleted++
		}
	}
	return Count(deleted)
}

// runExists is EXISTS. A key named twice counts twice.
func runExists(x *Context, c *keyspace.Container) Reply {
	found := 0
	for _, key := range x.Input.Args[1:] {
		if _, ok := x.read(c, key); ok {
			found++
		}
	}
	return Count(found)
}

func runType(x *Context, c *keyspace.Container) Reply {
	it, found := x.read(c, x.Input.Args[1])
	if !found {
		return Status("none")
	}
	return Status(typeName(it.Kind))
}

func runDBSize(x *Context, c *keyspace.Container) Reply {
	return Count(x.Tx.Count(c))
}

func runRandomKey(x *Context, c *keyspace.Container) Reply {
	key, _, ok := x.Tx.Random(c)
	if !ok {
		return Null
	}
	return Bulk(key)
}

func parseFlushDB(in *Input) (Run, error) {
	if err := checkFlushOptions(in.Args[1:]); err != nil {
		return nil, err
	}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		x.Tx.Flush(c)
		return OK
	}), nil
}

// parseFlushAll parses FLUSHALL, which empties every container, not only databases.
func parseFlushAll(in *Input) (Run, error) {
	if err := checkFlushOptions(in.Args[1:]); err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		x.Tx.FlushAll()
		return OK
	}, nil
}

// checkFlushOptions accepts ASYNC and SYNC, which mean the same: a flush takes constant time.
func checkFlushOptions(args []string) error {
	if len(args) == 0 || len(args) == 1 && (redisfmt.EqualFold(args[0], "ASYNC") || redisfmt.EqualFold(args[0], "SYNC")) {
		return nil
	}
	return errSyntax
}

func parseKeys(in *Input) (Run, error) {
	var options scanOptions
	if err := options.setPattern(in.Args[1]); err != nil {
		return nil, err
	}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		keys := []Reply{}
		x.scan(c, 0, math.MaxInt, func(id string, _ keyspace.Item) {
			if options.selects(id) {
				keys = append(keys, Bulk(id))
			}
		})
		if x.abandoned {
			return Fail(errAbandoned)
		}
		return Array(keys...)
	}), nil
}

// scan is [keyspace.Tx.Scan], but collects items in portions and visits them without locks, unless the
// transaction locks all partitions. So visit delays no other command. It ends early if the command is
// abandoned.
func (x *Context) scan(c *keyspace.Container, cursor uint64, count int, visit func(id string, it keyspace.Item)) uint64 {
	const maxPortion = 1000 // items; bounds the time for which a partition is locked
	type found struct {
		id string
		it keyspace.Item
	}
	var list []found
	watch := x.watchClient()
	for {
		portion := min(count, maxPortion)
		list = list[:0]
		cursor = x.Tx.Scan(c, cursor, portion, func(id string, it keyspace.Item) { list = append(list, found{id, it}) })
		for i := range list {
			if watch.abandoned(len(list[i].id)) {
				return 0
			}
			visit(list[i].id, list[i].it)
		}
		if count -= portion; count == 0 || cursor == 0 {
			return cursor
		}
	}
}

func parseScan(in *Input) (Run, error) {
	cursor, ok := redisfmt.ParseCursor(in.Args[1])
	if !ok {
		return nil, errInvalidCursor
	}
	options, anyType, wantType := newScanOptions(), true, ""
	for args := in.Args[2:]; len(args) > 0; {
		used, err := options.parse(args)
		switch {
		case err != nil:
			return nil, err
		case used == 0 && len(args) > 1 && redisfmt.EqualFold(args[0], "TYPE"):
			anyType, wantType, used = false, strings.ToLower(args[1]), 2
			if wantType == "document" || wantType == "json" {
				wantType = strings.ToLower(typeName(keyspace.Document))
			}
		case used == 0:
			return nil, errSyntax
		}
		args = args[used:]
	}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		keys := []Reply{}
		next := x.scan(c, cursor, options.count, func(id string, it keyspace.Item) {
			if options.selects(id) && (anyType || wantType == strings.ToLower(typeName(it.Kind))) {
				keys = append(keys, Bulk(id))
			}
		})
		if x.abandoned {
			return Fail(errAbandoned)
		}
		return Array(Bulk(strconv.FormatUint(next, 10)), Array(keys...))
	}), nil
}
