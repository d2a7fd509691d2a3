package hashes

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

const (
	read   = engine.ReadOnly
	write  = engine.Write
	grow   = engine.Write | engine.DenyOOM
	fast   = engine.Fast
	frees  = engine.Write | engine.Frees
	random = "nondeterministic_output"
	anyhow = "nondeterministic_output_order"
)

// Commands are the commands of Redis 7.0.
var Commands = []engine.Command{
	row("hdel", "key field [field ...]", "2.0.0", "Delete one or more hash fields", frees|fast, "RW delete", "", engine.NoParse(items.Deleting(keyspace.HashKind, eventHDel))),
	row("hexists", "key field", "2.0.0", "Determine if a hash field exists", read|fast, "RO", "", engine.NoParse(onField(func(_ keyspace.Element, ok bool) engine.Reply { return engine.Flag(ok) }))),
	row("hget", "key field", "2.0.0", "Get the value of a hash field", read|fast, "", "", engine.NoParse(onField(valueOrNull))),
	walking(row("hgetall", "key", "2.0.0", "Get all the fields and values in a hash", read, "", anyhow, engine.NoParse(listing(engine.Fields|engine.Values)))),
	row("hincrby", "key field increment", "2.0.0", "Increment the integer value of a hash field by the given number", grow|fast, "", "", parseHIncrBy),
	row("hincrbyfloat", "key field increment", "2.6.0", "Increment the float value of a hash field by the given amount", grow|fast, "", "", parseHIncrByFloat),
	walking(row("hkeys", "key", "2.0.0", "Get all the fields in a hash", read, "", anyhow, engine.NoParse(listing(engine.Fields)))),
	row("hlen", "key", "2.0.0", "Get the number of fields in a hash", read|fast, "RO", "", engine.NoParse(items.Length(keyspace.HashKind))),
	row("hmget", "key field [field ...]", "2.0.0", "Get the values of all the given hash fields", read|fast, "", "", engine.NoParse(runHMGet)),
	row("hmset", "key field value [field value ...]", "2.0.0", "Set multiple hash fields to multiple values", grow|fast, "RW update", "", parseHSet),
	walking(row("hrandfield", "key [count [WITHVALUES]]", "6.2.0", "Get one or multiple random fields from a hash", read, "", random, parseHRandField)),
	walking(row("hscan", "key cursor [MATCH pattern] [COUNT count] [NOVALUES]", "2.8.0", "Incrementally iterate hash fields and associated values", read, "", random, parseHScan)),
	row("hset", "key field value [field value ...]", "2.0.0", "Set the string value of a hash field", grow|fast, "RW update", "", parseHSet),
	row("hsetnx", "key field value", "2.0.0", "Set the value of a hash field, only if the field does not exist", grow|fast, "RW insert", "", engine.NoParse(runHSetNX)),
	row("hstrlen", "key field", "3.2.0", "Get the length of the value of a hash field", read|fast, "RO", "", engine.NoParse(onField(func(e keyspace.Element, _ bool) engine.Reply { return engine.Count(len(e.Value)) }))),
	walking(row("hvals", "key", "2.0.0", "Get all the values in a hash", read, "", anyhow, engine.NoParse(listing(engine.Values)))),
}

// differs says how commands differ from those of Redis.
var differs = map[string]string{
	"hlen":           "Dead fields are not counted, whether they are removed or not",
	"hscan":          "Cursors are of another kind, and the pattern is bounded as that of `KEYS`. A field that is present throughout comes once, not at least once. A cursor is void after `RENAME`. NOVALUES is of Redis 7.4",
	"httl":           sleeping,
	"hpttl":          sleeping,
	"hexpiretime":    sleeping,
	"hpexpiretime":   sleeping,
	"expiremember":   "Of hashes, sets and sorted sets, and without units below ms",
	"expirememberat": "Takes the unit of its time, too",
}

const sleeping = "Returns -1 while the container is off or on hold, where ends sleep"

func row(name, syntax, since, summary string, flags engine.Flags, access, tips string, parse func(*engine.Input) (engine.Run, error)) engine.Command {
	return engine.Command{Name: name, Syntax: syntax, Since: since, Summary: summary, Flags: flags, Differs: differs[name], Keys: engine.OneKey, Access: access, Tips: tips, Parse: parse}
}

// walking says that a command walks all elements, one that may have a count only with it.
func walking(c engine.Command) engine.Command {
	if c.Walks = engine.Always; c.Name == "hrandfield" {
		c.Walks, c.Reads = engine.IfLonger(2), items.ChoosesMany
	}
	return c
}

// onField returns the Run of a command that reads one field.
func onField(reply func(e keyspace.Element, ok bool) engine.Reply) engine.Run {
	return items.OnElements(keyspace.HashKind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
		return reply(h.Get(x.Input.Args[2]))
	})
}

func valueOrNull(e keyspace.Element, ok bool) engine.Reply {
	if !ok {
		return engine.Null
	}
	return engine.Bulk(e.Value)
}

var runHMGet = items.OnElements(keyspace.HashKind, func(x *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
	values := make([]engine.Reply, 0, len(x.Input.Args)-2)
	for _, field := range x.Input.Args[2:] {
		values = append(values, valueOrNull(h.Get(field)))
	}
	return engine.Array(values...)
})

// listing returns the Run of a command that returns all fields, values or both.
func listing(strings int) engine.Run {
	return items.OnElements(keyspace.HashKind, func(_ *engine.Context, h keyspace.Elements, _ bool) engine.Reply {
		if strings == engine.Fields|engine.Values {
			return engine.Elements(engine.KindMap, 2*h.Len(), strings, h.Bodies())
		}
		return engine.Elements(engine.KindArray, h.Len(), strings, h.Bodies())
	})
}

func parseHScan(in *engine.Input) (engine.Run, error) {
	values := true
	noValues := func(word string) bool {
		if !redisfmt.EqualFold(word, "NOVALUES") {
			return false
		}
		values = false
		return true
	}
	return items.ParseScan(in, keyspace.HashKind, noValues, func(list *engine.List, e keyspace.Element) {
		list.Add(engine.Bulk(e.Field))
		if values {
			list.Add(engine.Bulk(e.Value))
		}
	})
}

func parseHRandField(in *engine.Input) (engine.Run, error) {
	return items.ParseRandom(in, keyspace.HashKind, "WITHVALUES", func(e keyspace.Element) engine.Reply { return engine.Bulk(e.Value) })
}
