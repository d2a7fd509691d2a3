package keys

import (
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// ObjectCommand describes the representation of values. All strings have one here; the replies are
// those of Redis.
var ObjectCommand = engine.Command{
	Name: "object", Since: "2.2.3", Summary: "A container for object introspection commands",
	Sub: []engine.Command{
		objectRow("encoding", "Inspect the internal encoding of a Redis object", "2.2.3",
			"`json` of documents. There is one encoding only: the reply is what Redis would have. After a start it is as if every value were set anew, and a collection is always as if it were: one that has shrunk is `intset` or `listpack` again, which in Redis stays `hashtable` or `skiplist`",
			func(x *engine.Context, c *keyspace.Container, key string, it keyspace.Item) engine.Reply {
				switch it.Kind {
				case keyspace.HashKind:
					return engine.Bulk(hashEncoding(x, c, key))
				case keyspace.SetKind:
					return engine.Bulk(setEncoding(x, c, key))
				case keyspace.ZSetKind:
					return engine.Bulk(sortedSetEncoding(x, c, key))
				case keyspace.ListKind:
					return engine.Bulk("quicklist")
				}
				return engine.Bulk(encoding(it, x.Tx.Encoding(c, key)))
			}),
		objectRow("freq", "Get the logarithmic access frequency counter of a Redis object", "4.0.0",
			"After a start every item begins with 5", objectFreq),
		engine.HelpRow("object", "6.2.0"),
		objectRow("idletime", "Get the time since a Redis object was last accessed", "2.2.3",
			"Reads count from the first `OBJECT IDLETIME` or `TOUCH` on, or while the policy is LRU. Until then, and after a start, the last write counts",
			objectIdleTime),
		objectRow("refcount", "Get the number of references to the value of the key", "2.2.3",
			"Depends on the value and on maxmemory only: nothing is shared", refCount),
	},
}

// objectRow returns the row of a subcommand that describes the item of a key.
func objectRow(name, summary, since, differs string, tell func(x *engine.Context, c *keyspace.Container, key string, it keyspace.Item) engine.Reply) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key", Since: since, Summary: summary,
		Flags: engine.ReadOnly, Keys: engine.Keys{First: 2, Last: 2, Step: 1}, Access: "RO", Tips: "nondeterministic_output",
		Differs: differs,
		Parse: func(in *engine.Input) (engine.Run, error) {
			key := in.Args[2]
			return engine.Peeking(items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
				it, found := x.Tx.Get(c, key)
				if !found {
					return engine.Null
				}
				return tell(x, c, key, it)
			})), nil
		},
	}
}

// hashEncoding is what Redis would have of a hash.
func hashEncoding(x *engine.Context, c *keyspace.Container, key string) string {
	h, _, _ := x.Tx.Elements(c, key)
	most := x.Engine.Encodings()
	if h.Len() > most.HashEntries {
		return "hashtable"
	}
	small := "listpack"
	for e := range h.All() {
		if max(len(e.Field), len(e.Value)) > most.HashValue {
			return "hashtable"
		}
		if e.End != 0 {
			small = "listpackex"
		}
	}
	return small
}

// sortedSetEncoding is what Redis would have of a sorted set.
func sortedSetEncoding(x *engine.Context, c *keyspace.Container, key string) string {
	h, _, _ := x.Tx.Elements(c, key)
	most := x.Engine.Encodings()
	if h.Len() > most.SortedSetEntries {
		return "skiplist"
	}
	for e := range h.All() {
		if len(e.Field) > most.SortedSetValue {
			return "skiplist"
		}
	}
	return "listpack"
}

// setEncoding is what Redis would have of a set.
func setEncoding(x *engine.Context, c *keyspace.Container, key string) string {
	h, _, _ := x.Tx.Elements(c, key)
	if h.Len() > x.Engine.Encodings().SetIntegers {
		return "hashtable"
	}
	for e := range h.All() {
		if _, ok := redisfmt.ParseInt(e.Field); !ok {
			return "hashtable"
		}
	}
	return "intset"
}

// encoding is the reply of OBJECT ENCODING: json for documents, else what Redis would have.
func encoding(it keyspace.Item, n keyspace.Encoding) string {
	const longestEmbedded = 44 // bytes
	if it.Kind == keyspace.Document {
		return "json"
	}
	if n == keyspace.Raw {
		return "raw"
	}
	if _, ok := redisfmt.ParseInt(it.Body); ok && n == keyspace.Chosen {
		return "int"
	}
	if len(it.Body) <= longestEmbedded {
		return "embstr"
	}
	return "raw"
}

// objectIdleTime begins to keep accesses: idle times are wanted.
func objectIdleTime(x *engine.Context, c *keyspace.Container, key string, _ keyspace.Item) engine.Reply {
	x.Engine.Keyspace().TrackAccesses()
	a, _ := x.Tx.Accesses(c, key)
	if a.LFU {
		return engine.Fail(errNoIdleTime)
	}
	return engine.Integer(a.Idle / 1000)
}

func objectFreq(x *engine.Context, c *keyspace.Container, key string, _ keyspace.Item) engine.Reply {
	a, _ := x.Tx.Accesses(c, key)
	if !a.LFU {
		return engine.Fail(errNoLFU)
	}
	return engine.Count(a.Frequency)
}

// refCount is 1, but large for small integers, which Redis shares among all keys. It does not while it keeps
// accesses for eviction, since these belong to one key.
func refCount(x *engine.Context, _ *keyspace.Container, _ string, it keyspace.Item) engine.Reply {
	const shared, many = 10_000, 1<<31 - 1
	policy := x.Engine.Keyspace().Eviction().Policy
	if x.Engine.Memory.Bytes.Load() > 0 && (policy.LRU() || policy.LFU()) {
		return engine.Integer(1)
	}
	if n, ok := redisfmt.ParseInt(it.Body); ok && it.Kind == keyspace.Plain && n >= 0 && n < shared {
		return engine.Integer(many)
	}
	return engine.Integer(1)
}
