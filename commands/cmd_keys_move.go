package commands

import (
	"math"

	"mayfly/commands/jsondoc"
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
)

// The commands that move a key to another name or container. A plain key keeps its expiration. A document
// keeps its JSON, and its clock restarts, since the move is a write.
var moveCommands = []Command{
	{
		Name: "copy", Syntax: "source destination [DB destination-db] [REPLACE]", Since: "6.2.0", Summary: "Copy a key",
		Differs: "DB takes the name of a container too",
		Flags:   Write | DenyOOM, Keys: Keys{1, 2, 1}, Access: "RO access, OW update", Walks: always, Parse: parseCopy,
	},
	{
		Name: "move", Syntax: "key db", Since: "1.0.0", Summary: "Move a key to another database",
		Differs: "Takes the name of a container too",
		Flags:   Write | Fast, Keys: OneKey, Walks: always, Parse: noParse(runMove),
	},
	{
		Name: "rename", Syntax: "key newkey", Since: "1.0.0", Summary: "Rename a key",
		Flags: Write, Keys: Keys{1, 2, 1}, Access: "RW access delete, OW update", Walks: always,
		Parse: noParse(runRename(OK, OK, false)),
	},
	{
		Name: "renamenx", Syntax: "key newkey", Since: "1.0.0", Summary: "Rename a key, only if the new key does not exist",
		Flags: Write | Fast, Keys: Keys{1, 2, 1}, Access: "RW access delete, OW insert", Walks: always,
		Parse: noParse(runRename(Flag(true), Flag(false), true)),
	},
	{
		Name: "swapdb", Syntax: "index1 index2", Since: "4.0.0", Group: "server", Summary: "Swaps two Redis databases",
		Differs: "Takes the names of containers too. Their items are exchanged, not their defaults",
		Flags:   Write | Fast, Scope: ScopeAll, Categories: "keyspace dangerous", Parse: noParse(runSwapDB),
	},
	{
		Name: "touch", Syntax: "key [key ...]", Since: "3.2.1",
		Summary: "Alters the last access time of a key(s). Returns the number of existing keys specified.",
		Differs: "`DOC.TOUCH` restarts a document's clock",
		Flags:   ReadOnly | Fast, Keys: AllKeys, Access: "RO", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: noParse(runTouch),
	},
}

// databaseByName returns the container that a command names where Redis has the number of a database. A name that
// is a number is also the container's number.
func (x *Context) databaseByName(name string) (*keyspace.Container, error) {
	if c := x.Tx.Container(name); c != nil {
		return c, nil
	}
	switch n, ok := redisfmt.ParseInt(name); {
	case !ok:
		return nil, errNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return nil, errNotInt32
	case n >= 0:
		if c := x.Tx.ContainerOfDB(uint32(n)); c != nil {
			return c, nil
		}
	}
	return nil, errDatabase
}

// putItem stores an item of another place under an id, and replaces the item there. The error is the
// container's refusal of a document.
func (x *Context) putItem(it keyspace.Item, c *keyspace.Container, id string) error {
	if hasTTLMember(it) {
		doc := jsondoc.FromValid(it.Body, c.Policy().Deadline)
		if err := doc.Check(c.Policy(), x.Now()); err != nil {
			return err
		}
		if doc.Passed(c.Policy(), x.Now()) {
			x.remove(c, id)
			return nil
		}
		x.store(c, id, keyspace.Document, doc.JSON, doc.ExpireAt(x.Now()))
		return nil
	}
	// An expiration in the past had no effect in a container that is off. Here it may have one.
	if c.Policy().Dead(x.Now(), it.ExpireAt, x.Now()) {
		x.remove(c, id)
		return nil
	}
	x.store(c, id, it.Kind, it.Body, it.ExpireAt)
	return nil
}

// copyOptions are the options of COPY.
type copyOptions struct {
	databases []string // all must exist; the last one counts
	replace   bool
	err       error // of the options after these databases
}

func parseCopyOptions(args []string) (o copyOptions) {
	for len(args) > 0 {
		used := 1
		switch {
		case redisfmt.EqualFold(args[0], "REPLACE"):
			o.replace = true
		case redisfmt.EqualFold(args[0], "DB") && len(args) > 1:
			o.databases, used = append(o.databases, args[1]), 2
		default:
			o.err = errSyntax
			return o
		}
		args = args[used:]
	}
	return o
}

// parseCopy parses COPY. As in Redis the options are checked from left to right, databases by whether
// they exist.
func parseCopy(in *Input) (Run, error) {
	o := parseCopyOptions(in.Args[3:])
	if o.err != nil && len(o.databases) == 0 {
		return nil, o.err
	}
	source, destination := in.Args[1], in.Args[2]
	return func(x *Context) Reply {
		from, err := x.Database()
		to := from
		for _, name := range o.databases {
			if err == nil {
				to, err = x.databaseByName(name)
			}
		}
		switch {
		case err != nil:
			return Fail(err)
		case o.err != nil:
			return Fail(o.err)
		case from == to && source == destination:
			return Fail(errSameObject)
		}
		it, found := x.read(from, source)
		if !found {
			return Flag(false)
		}
		if _, taken := x.Tx.Get(to, destination); taken && !o.replace {
			return Flag(false)
		}
		if err := x.putItem(it, to, destination); err != nil {
			return Fail(err)
		}
		x.Tx.SetEncoding(to, destination, x.Tx.Encoding(from, source))
		x.notify(eventCopyTo, to, destination)
		return Flag(true)
	}, nil
}

func runMove(x *Context) Reply {
	key, name := x.Input.Args[1], x.Input.Args[2]
	from, err := x.Database()
	if err != nil {
		return Fail(err)
	}
	to, err := x.databaseByName(name)
	switch {
	case err != nil:
		return Fail(err)
	case from == to:
		return Fail(errSameObject)
	}
	it, found := x.Tx.Get(from, key)
	if !found {
		return Flag(false)
	}
	if _, taken := x.Tx.Get(to, key); taken {
		return Flag(false)
	}
	if err := x.putItem(it, to, key); err != nil {
		return Fail(err)
	}
	x.Tx.SetEncoding(to, key, x.Tx.Encoding(from, key))
	x.Tx.Remove(from, key)
	x.notify(eventMoveFrom, from, key)
	x.notify(eventMoveTo, to, key)
	return Flag(true)
}

// runRename returns the Run of RENAME or RENAMENX, which differ in their replies and in whether they
// overwrite. A rename to the same name succeeds for RENAME and fails for RENAMENX.
func runRename(done, notDone Reply, keep bool) Run {
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		key, newKey := x.Input.Args[1], x.Input.Args[2]
		it, found := x.Tx.Get(c, key)
		switch {
		case !found:
			return Fail(errNoSuchKey)
		case key == newKey:
			return notDone
		}
		if _, taken := x.Tx.Get(c, newKey); taken && keep {
			return notDone
		}
		if err := x.putItem(it, c, newKey); err != nil {
			return Fail(err)
		}
		x.Tx.SetEncoding(c, newKey, x.Tx.Encoding(c, key))
		x.Tx.Remove(c, key)
		x.notify(eventRenameFrom, c, key)
		x.notify(eventRenameTo, c, newKey)
		return done
	})
}

func runSwapDB(x *Context) Reply {
	names := x.Input.Args[1:]
	var sides [2]*keyspace.Container
	var errs [2]error
	for i, which := range []string{"first", "second"} {
		sides[i], errs[i] = x.databaseByName(names[i])
		if errs[i] != nil && errs[i] != errDatabase {
			return Fail(errorf(errIndex, which))
		}
	}
	if errs[0] != nil || errs[1] != nil {
		return Fail(errDatabase)
	}
	x.Tx.Swap(sides[0], sides[1])
	return OK
}

// runTouch is TOUCH. It begins to keep accesses, and counts for clients with NO-TOUCH, too.
func runTouch(x *Context) Reply {
	x.Engine.Keyspace().TrackAccesses()
	return x.keepingAccesses(false, onDatabase(runExists))
}
