package keys

import (
	"math"
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

var KeyCommands = []engine.Command{
	{
		Name: "dbsize", Since: "1.0.0", Group: "server", Summary: "Return the number of keys in the selected database",
		Differs: "Dead keys are not counted, whether they are removed or not",
		Flags:   engine.ReadOnly | engine.Fast, Scope: engine.ScopeSweep, Categories: "keyspace", Tips: "request_policy:all_shards response_policy:agg_sum",
		Parse: engine.NoParse(items.OnDatabase(runDBSize)),
	},
	{
		Name: "del", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Delete a key",
		Flags: engine.Write | engine.Frees, Keys: engine.AllKeys, Access: "RM delete", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: engine.NoParse(items.OnDatabase(runDel)),
	},
	{
		Name: "exists", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Determine if a key exists",
		Flags: engine.ReadOnly | engine.Fast, Keys: engine.AllKeys, Access: "RO", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: engine.NoParse(engine.Peeking(items.OnDatabase(runExists))),
	},
	{
		Name: "flushall", Syntax: "[ASYNC | SYNC]", Since: "1.0.0", Group: "server", Summary: "Remove all keys from all databases",
		Differs: "Containers and their defaults stay",
		Touches: engine.TouchesAll, Flags: engine.Write | engine.Frees, Scope: engine.ScopeAll, Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
		Parse: parseFlushAll,
	},
	{
		Name: "flushdb", Syntax: "[ASYNC | SYNC]", Since: "1.0.0", Group: "server", Summary: "Remove all keys from the current database",
		Differs: "The container's default stays",
		Flags:   engine.Write | engine.Frees, Scope: engine.ScopeAll, Categories: "keyspace dangerous", Tips: "request_policy:all_shards response_policy:all_succeeded",
		Parse: parseFlushDB,
	},
	{
		Name: "keys", Syntax: "pattern", Since: "1.0.0", Summary: "Find all keys matching the given pattern",
		Differs: "A pattern with `*` or `[` has at most 1024 bytes, since matching takes time. The dead are not listed",
		Flags:   engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Categories: "dangerous", Tips: "request_policy:all_shards nondeterministic_output_order",
		Parse: parseKeys,
	},
	{
		Name: "randomkey", Since: "1.0.0", Summary: "Return a random key from the keyspace",
		Flags: engine.ReadOnly, Scope: engine.ScopeSweep, Tips: "request_policy:all_shards nondeterministic_output", Parse: engine.NoParse(items.OnDatabase(runRandomKey)),
	},
	{
		Name: "scan", Syntax: "cursor [MATCH pattern] [COUNT count] [TYPE type]", Since: "2.8.0",
		Summary: "Incrementally iterate the keys space",
		Differs: "Cursors are of another kind, and the pattern is bounded as that of `KEYS`. A key that is present throughout comes once, not at least once. TYPE also knows `document` and `json`",
		Flags:   engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Tips: "nondeterministic_output request_policy:special", Parse: parseScan,
	},
	{
		Name: "type", Syntax: "key", Since: "1.0.0", Summary: "Determine the type stored at key",
		Differs: "Returns `ReJSON-RL` for a document, as with RedisJSON",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Access: "RO", Parse: engine.NoParse(engine.Peeking(items.OnDatabase(runType))),
	},
	{
		Name: "unlink", Syntax: "key [key ...]", Since: "4.0.0",
		Summary: "Delete a key asynchronously in another thread. Otherwise it is just as DEL, but non blocking.",
		Flags:   engine.Write | engine.Frees | engine.Fast, Keys: engine.AllKeys, Access: "RM delete", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: engine.NoParse(items.OnDatabase(runDel)),
	},
}

func runDel(x *engine.Context, c *keyspace.Container) engine.Reply {
	deleted := 0
	for _, key := range x.Input.Args[1:] {
		if x.Remove(c, key) {
			deleted++
		}
	}
	return engine.Count(deleted)
}

// runExists is EXISTS. A key named twice counts twice.
func runExists(x *engine.Context, c *keyspace.Container) engine.Reply {
	found := 0
	for _, key := range x.Input.Args[1:] {
		if _, ok := x.Read(c, key); ok {
			found++
		}
	}
	return engine.Count(found)
}

func runType(x *engine.Context, c *keyspace.Container) engine.Reply {
	it, found := x.Read(c, x.Input.Args[1])
	if !found {
		return engine.Status("none")
	}
	return engine.Status(items.TypeName(it.Kind))
}

func runDBSize(x *engine.Context, c *keyspace.Container) engine.Reply {
	return engine.Count(x.Tx.Count(c))
}

func runRandomKey(x *engine.Context, c *keyspace.Container) engine.Reply {
	key, _, ok := x.Tx.Random(c)
	if !ok {
		return engine.Null
	}
	return engine.Bulk(key)
}

func parseFlushDB(in *engine.Input) (engine.Run, error) {
	if err := checkFlushOptions(in.Args[1:]); err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		x.Tx.Flush(c)
		return engine.OK
	}), nil
}

// parseFlushAll parses FLUSHALL, which empties every container, not only databases.
func parseFlushAll(in *engine.Input) (engine.Run, error) {
	if err := checkFlushOptions(in.Args[1:]); err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		x.Tx.FlushAll()
		return engine.OK
	}, nil
}

// checkFlushOptions accepts ASYNC and SYNC, which mean the same: a flush takes constant time.
func checkFlushOptions(args []string) error {
	if len(args) == 0 || len(args) == 1 && (redisfmt.EqualFold(args[0], "ASYNC") || redisfmt.EqualFold(args[0], "SYNC")) {
		return nil
	}
	return engine.ErrSyntax
}

func parseKeys(in *engine.Input) (engine.Run, error) {
	var options items.ScanOptions
	if err := options.SetPattern(in.Args[1]); err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		keys := engine.List{Memory: x.Session.Memory}
		items.Scan(x, c, 0, math.MaxInt, func(id string, _ keyspace.Item) {
			if options.Selects(id) {
				keys.Add(engine.Bulk(id))
			}
		})
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		return keys.Array()
	}), nil
}

func parseScan(in *engine.Input) (engine.Run, error) {
	cursor, ok := redisfmt.ParseCursor(in.Args[1])
	if !ok {
		return nil, engine.ErrInvalidCursor
	}
	options, anyType, wantType := items.NewScanOptions(), true, ""
	for args := in.Args[2:]; len(args) > 0; {
		used, err := options.Parse(args)
		switch {
		case err != nil:
			return nil, err
		case used == 0 && len(args) > 1 && redisfmt.EqualFold(args[0], "TYPE"):
			anyType, wantType, used = false, strings.ToLower(args[1]), 2
			if wantType == "document" || wantType == "json" {
				wantType = strings.ToLower(items.TypeName(keyspace.Document))
			}
		case used == 0:
			return nil, engine.ErrSyntax
		}
		args = args[used:]
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		keys := engine.List{Memory: x.Session.Memory}
		next := items.Scan(x, c, cursor, options.Count, func(id string, it keyspace.Item) {
			if options.Selects(id) && (anyType || wantType == strings.ToLower(items.TypeName(it.Kind))) {
				keys.Add(engine.Bulk(id))
			}
		})
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		return keys.After(engine.Bulk(strconv.FormatUint(next, 10)))
	}), nil
}
