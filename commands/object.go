package commands

import (
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// objectCommand tells what Redis' users ask of a value's representation. We have one for all strings;
// what can be seen from outside, the value, decides what Redis would have chosen for a value just
// set.
var objectCommand = Command{
	Name: "object", Summary: "A container for object introspection commands",
	Group: "generic", Since: "2.2.3", Arity: -2,
	Sub: []Command{
		withDiffers(objectRow("encoding", "Inspect the internal encoding of a Redis object", "2.2.3",
			func(it keyspace.Item) Reply { return Bulk(encoding(it)) }),
			"What Redis would make of the value if it were set now; `json` of documents. There is one encoding only, so APPEND leaves no trace"),
		objectRow("freq", "Get the logarithmic access frequency counter of a Redis object", "4.0.0",
			func(keyspace.Item) Reply { return Fail(errNoLFU) }),
		withSince(helpRow("object", "generic"), "6.2.0"),
		withDiffers(objectRow("idletime", "Get the time since a Redis object was last accessed", "2.2.3",
			func(keyspace.Item) Reply { return Fail(errNoIdleTime) }),
			"Answers an error: reads leave no trace, which keeps them fast on many processors"),
		withDiffers(objectRow("refcount", "Get the number of references to the value of the key", "2.2.3", refCount),
			"Depends on the value only: nothing is shared"),
	},
}

// objectRow is a row of a subcommand that tells something of the item under a key.
func objectRow(name, summary, since string, tell func(it keyspace.Item) Reply) Command {
	return Command{
		Name: name, Syntax: "key", Summary: summary, Group: "generic", Since: since, Arity: 3,
		Flags: ReadOnly, Keys: Keys{2, 2, 1}, Access: "RO", Tips: "nondeterministic_output",
		Parse: func(in *Input) (Run, error) {
			key := in.Args[2]
			return func(x *Context) Reply {
				_, it, found, err := x.item(key)
				switch {
				case err != nil:
					return Fail(err)
				case !found:
					return Null
				}
				return tell(it)
			}, nil
		},
	}
}

func withDiffers(c Command, differs string) Command {
	c.Differs = differs
	return c
}

func withSince(c Command, version string) Command {
	c.Since = version
	return c
}

// encoding is what OBJECT ENCODING says: json of documents, and of plain keys what Redis makes of
// them when they are set.
func encoding(it keyspace.Item) string {
	const longestEmbedded = 44 // bytes
	if it.Kind == keyspace.Document {
		return "json"
	}
	if _, ok := redisfmt.ParseInt(it.Body); ok {
		return "int"
	}
	if len(it.Body) <= longestEmbedded {
		return "embstr"
	}
	return "raw"
}

// refCount is 1, but for the small integers, which Redis shares among all keys that have them.
func refCount(it keyspace.Item) Reply {
	const shared, many = 10_000, 1<<31 - 1
	if n, ok := redisfmt.ParseInt(it.Body); ok && it.Kind == keyspace.Plain && n >= 0 && n < shared {
		return Integer(many)
	}
	return Integer(1)
}
