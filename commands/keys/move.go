package keys

import (
	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// The commands that move a key to another name or container. A plain key keeps its expiration. A document
// keeps its JSON, and its clock restarts, since the move is a write.
var MoveCommands = []engine.Command{
	{
		Name: "copy", Syntax: "source destination [DB destination-db] [REPLACE]", Since: "6.2.0", Summary: "Copy a key",
		Differs: "DB takes the name of a container too",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Access: "RO access, OW update", Walks: engine.Always, Touches: engine.TouchesSelected | engine.TouchesOthers, Databases: func(args []string) []string { return parseCopyOptions(args[3:]).databases }, Parse: parseCopy,
	},
	{
		Name: "move", Syntax: "key db", Since: "1.0.0", Summary: "Move a key to another database",
		Differs: "Takes the name of a container too",
		Flags:   engine.Write | engine.Fast, Keys: engine.OneKey, Walks: engine.Always, Touches: engine.TouchesSelected | engine.TouchesOthers, Databases: func(args []string) []string { return args[2:3] }, Parse: engine.NoParse(runMove),
	},
	{
		Name: "rename", Syntax: "key newkey", Since: "1.0.0", Summary: "Rename a key",
		Flags: engine.Write, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Access: "RW access delete, OW update", Walks: engine.Always,
		Parse: engine.NoParse(runRename(engine.OK, engine.OK, false)),
	},
	{
		Name: "renamenx", Syntax: "key newkey", Since: "1.0.0", Summary: "Rename a key, only if the new key does not exist",
		Flags: engine.Write | engine.Fast, Keys: engine.Keys{First: 1, Last: 2, Step: 1}, Access: "RW access delete, OW insert", Walks: engine.Always,
		Parse: engine.NoParse(runRename(engine.Flag(true), engine.Flag(false), true)),
	},
	{
		Name: "swapdb", Syntax: "index1 index2", Since: "4.0.0", Group: "server", Summary: "Swaps two Redis databases",
		Differs: "Takes the names of containers too. Their items are exchanged, not their defaults",
		Flags:   engine.Write | engine.Fast, Scope: engine.ScopeAll, Categories: "keyspace dangerous", Touches: engine.TouchesOthers, Databases: func(args []string) []string { return args[1:3] }, Parse: engine.NoParse(runSwapDB),
	},
	{
		Name: "touch", Syntax: "key [key ...]", Since: "3.2.1",
		Summary: "Alters the last access time of a key(s). Returns the number of existing keys specified.",
		Differs: "`DOC.TOUCH` restarts a document's clock",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.AllKeys, Access: "RO", Tips: "request_policy:multi_shard response_policy:agg_sum",
		Parse: engine.NoParse(runTouch),
	},
}

// source is where an item comes from, and whether it stays there.
type source struct {
	c     *keyspace.Container
	id    string
	stays bool
}

// putItem stores an item of another place under an id, and replaces the item there. The error is the
// container's refusal of a document.
func putItem(x *engine.Context, it keyspace.Item, from source, c *keyspace.Container, id string) error {
	if items.HasTTLMember(it) {
		doc := jsondoc.FromValid(it.Body, c.Policy().Deadline)
		if err := doc.Check(c.Policy(), x.Now()); err != nil {
			return err
		}
		if doc.Passed(c.Policy(), x.Now()) {
			x.Remove(c, id)
			return nil
		}
		putNew(x, c, id, keyspace.Document, doc.JSON, doc.ExpireAt(x.Now()))
		return nil
	}
	// An expiration in the past had no effect in a container that is off. Here it may have one.
	it.ExpireAt = c.Policy().SleepOn(it.ExpireAt)
	if c.Policy().Dead(x.Now(), it.ExpireAt, x.Now()) {
		x.Remove(c, id)
		return nil
	}
	if it.Kind.IsCollection() {
		x.Tx.Move(from.c, from.id, c, id, it.ExpireAt, from.stays)
		x.Notify(events.New, c, id)
		x.Engine.Waiters.Filled(c.Name(), id)
		return nil
	}
	putNew(x, c, id, it.Kind, it.Body, it.ExpireAt)
	return nil
}

// putNew stores an item and tells that it is new, although it may replace one: to Redis, these commands
// delete that first.
func putNew(x *engine.Context, c *keyspace.Container, id string, kind keyspace.Kind, body string, expireAt int64) {
	x.Work += int64(len(body))
	x.Tx.Put(c, id, kind, body, expireAt)
	x.Notify(events.New, c, id)
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
			o.err = engine.ErrSyntax
			return o
		}
		args = args[used:]
	}
	return o
}

// parseCopy parses COPY. As in Redis the options are checked from left to right, databases by whether
// they exist.
func parseCopy(in *engine.Input) (engine.Run, error) {
	o := parseCopyOptions(in.Args[3:])
	if o.err != nil && len(o.databases) == 0 {
		return nil, o.err
	}
	key, destination := in.Args[1], in.Args[2]
	return func(x *engine.Context) engine.Reply {
		from, err := x.Database()
		to := from
		for _, name := range o.databases {
			if err == nil {
				to, err = items.DatabaseByName(x, name)
			}
		}
		switch {
		case err != nil:
			return engine.Fail(err)
		case o.err != nil:
			return engine.Fail(o.err)
		case from == to && key == destination:
			return engine.Fail(errSameObject)
		}
		it, found := x.Read(from, key)
		if !found {
			return engine.Flag(false)
		}
		if _, taken := x.Tx.Get(to, destination); taken && !o.replace {
			return engine.Flag(false)
		}
		if err := putItem(x, it, source{from, key, true}, to, destination); err != nil {
			return engine.Fail(err)
		}
		x.Tx.SetEncoding(to, destination, x.Tx.Encoding(from, key))
		x.Notify(events.CopyTo, to, destination)
		return engine.Flag(true)
	}, nil
}

func runMove(x *engine.Context) engine.Reply {
	key, name := x.Input.Args[1], x.Input.Args[2]
	from, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	to, err := items.DatabaseByName(x, name)
	switch {
	case err != nil:
		return engine.Fail(err)
	case from == to:
		return engine.Fail(errSameObject)
	}
	it, found := x.Tx.Get(from, key)
	if !found {
		return engine.Flag(false)
	}
	if _, taken := x.Tx.Get(to, key); taken {
		return engine.Flag(false)
	}
	if err := putItem(x, it, source{from, key, false}, to, key); err != nil {
		return engine.Fail(err)
	}
	x.Tx.SetEncoding(to, key, x.Tx.Encoding(from, key))
	x.Tx.Remove(from, key)
	x.Notify(events.MoveFrom, from, key)
	x.Notify(events.MoveTo, to, key)
	return engine.Flag(true)
}

// runRename returns the Run of RENAME or RENAMENX, which differ in their replies and in whether they
// overwrite. A rename to the same name succeeds for RENAME and fails for RENAMENX.
func runRename(done, notDone engine.Reply, keep bool) engine.Run {
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		key, newKey := x.Input.Args[1], x.Input.Args[2]
		it, found := x.Tx.Get(c, key)
		switch {
		case !found:
			return engine.Fail(engine.ErrNoSuchKey)
		case key == newKey:
			return notDone
		}
		if _, taken := x.Tx.Get(c, newKey); taken && keep {
			return notDone
		}
		if err := putItem(x, it, source{c, key, false}, c, newKey); err != nil {
			return engine.Fail(err)
		}
		x.Tx.SetEncoding(c, newKey, x.Tx.Encoding(c, key))
		x.Tx.Remove(c, key)
		x.Notify(events.RenameFrom, c, key)
		x.Notify(events.RenameTo, c, newKey)
		return done
	})
}

func runSwapDB(x *engine.Context) engine.Reply {
	names := x.Input.Args[1:]
	var sides [2]*keyspace.Container
	var errs [2]error
	for i, which := range []string{"first", "second"} {
		sides[i], errs[i] = items.DatabaseByName(x, names[i])
		if errs[i] != nil && errs[i] != engine.ErrDatabase {
			return engine.Fail(engine.Errorf(errIndex, which))
		}
	}
	if errs[0] != nil || errs[1] != nil {
		return engine.Fail(engine.ErrDatabase)
	}
	x.Tx.Swap(sides[0], sides[1])
	for _, side := range sides {
		x.Engine.Waiters.FilledAll(side.Name())
	}
	return engine.OK
}

// runTouch is TOUCH. It begins to keep accesses, and counts for clients with NO-TOUCH, too.
func runTouch(x *engine.Context) engine.Reply {
	x.Engine.Keyspace().TrackAccesses()
	return x.KeepingAccesses(false, items.OnDatabase(runExists))
}
