package streams

import (
	"cmp"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// Consumer groups
//
// All groups lie in one partition, that of keyspace.GroupTag. A command that reads or changes a group locks
// it. One that looks at entries of the log too locks all partitions, for GroupPiece entries at a time
// (Context.InPieces).

// GroupCommands are the commands on consumer groups. Those of XINFO are in groups_info.go.
var GroupCommands = []engine.Command{
	{
		Name: "xack", Syntax: "key group id [id ...]", Since: "5.0.0",
		Summary: "Marks a pending message as correctly processed, effectively removing it from the pending entries list of the consumer group. Return value of the command is the number of messages successfully acknowledged, that is, the IDs we were actually able to resolve in the PEL.",
		Differs: "More than 100 ids go in portions, and other commands run in between",
		Flags:   engine.Write | engine.Fast | engine.Frees, Keys: engine.OneKey, Access: "RW update", Scope: engine.ScopeSweep, Parse: engine.NoParse(runXAck),
	},
	{
		Name: "xautoclaim", Syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]", Since: "6.2.0",
		Summary: "Changes (or acquires) ownership of messages in a consumer group, as if the messages were delivered to the specified consumer.",
		Differs: "More than 32 entries go in portions, and other commands run in between",
		Flags:   engine.Write | engine.Fast, Keys: engine.OneKey, Access: "RW delete", Scope: engine.ScopeSweep, Tips: "nondeterministic_output", Parse: parseXAutoClaim,
	},
	{
		Name: "xclaim", Since: "5.0.0",
		Syntax:  "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]",
		Summary: "Changes (or acquires) ownership of a message in a consumer group, as if the message was delivered to the specified consumer.",
		Differs: "More than 32 ids go in portions, and other commands run in between",
		Flags:   engine.Write | engine.Fast, Keys: engine.OneKey, Access: "RW update", Scope: engine.ScopeSweep, Tips: "nondeterministic_output", Parse: engine.NoParse(runXClaim),
	},
	{
		Name: "xgroup", Since: "5.0.0", Summary: "A container for consumer groups commands",
		Sub: []engine.Command{
			{
				Name: "create", Syntax: "key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]", Since: "5.0.0",
				Summary: "Create a consumer group.",
				Differs: "`MKSTREAM` makes no log of deaths: `CONTAINER.SET` with `LOG` does",
				Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneID, Access: "RW insert", Scope: engine.ScopeSweep, Parse: parseXGroupCreate,
			},
			{
				Name: "createconsumer", Syntax: "key groupname consumername", Since: "6.2.0", Summary: "Create a consumer in a consumer group.",
				Flags: engine.Write | engine.DenyOOM, Keys: engine.OneID, Access: "RW insert", Scope: engine.ScopeSweep, Parse: engine.NoParse(runXGroupCreateConsumer),
			},
			{
				Name: "delconsumer", Syntax: "key groupname consumername", Since: "5.0.0", Summary: "Delete a consumer from a consumer group.",
				Flags: engine.Write | engine.Frees, Keys: engine.OneID, Access: "RW delete", Scope: engine.ScopeSweep, Parse: engine.NoParse(runXGroupDelConsumer),
			},
			{
				Name: "destroy", Syntax: "key groupname", Since: "5.0.0", Summary: "Destroy a consumer group.",
				Flags: engine.Write | engine.Frees, Keys: engine.OneID, Access: "RW delete", Scope: engine.ScopeSweep, Parse: engine.NoParse(runXGroupDestroy),
			},
			engine.HelpRow("xgroup", "5.0.0"),
			{
				Name: "setid", Syntax: "key groupname <id | $> [ENTRIESREAD entries_read]", Since: "5.0.0",
				Summary: "Set a consumer group to an arbitrary last delivered ID value.",
				Flags:   engine.Write, Keys: engine.OneID, Access: "RW update", Scope: engine.ScopeSweep, Parse: parseXGroupSetID,
			},
		},
	},
	{
		Name: "xpending", Syntax: "key group [[IDLE min-idle-time] start end count [consumer]]", Since: "5.0.0",
		Summary: "Return information and entries from a stream consumer group pending entries list, that are messages fetched but never acknowledged.",
		Flags:   engine.ReadOnly, Keys: engine.OneKey, Scope: engine.ScopeSweep, Tips: "nondeterministic_output", Parse: parseXPending,
	},
	readGroupCommand,
}

// The numbers of entries with which a command keeps its locks. They take a fraction of a ms.
const (
	GroupPiece   = 100 // in the order of the log, or without looking at the log
	lookupPiece  = 32  // each looked up in the log by its id
	PendingPiece = 500 // read only
)

// The errors of commands on groups.
const (
	errBusyGroup   = engine.Error("BUSYGROUP Consumer Group name already exists")
	errGroupNoKey  = engine.Error("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.")
	errEntriesRead = engine.Error("ERR value for ENTRIESREAD must be positive or -1")

	errNoGroup    = "NOGROUP No such key '%s' or consumer group '%s'"
	errNoGroupFor = "NOGROUP No such consumer group '%s' for key name '%s'"
	errNoLogKey   = "ERR no log: '%s' is not the name of one, __keyevent@<container>__:expired; CONTAINER.SET <container> LOG 3600 makes it, and with it the stream"
	errMinIdle    = "ERR Invalid min-idle-time argument for %s"
)

// entryList is the entries of a reply that grows. It holds client memory meanwhile.
type entryList struct {
	entries []engine.Reply
	full    bool // there is no memory, or nothing takes the reply: take no more

	w              engine.Watch
	memory         *engine.ClientMemory
	size, reserved int
}

// newEntryList returns an empty list for a command that does its work in pieces.
func newEntryList(x *engine.Context) *entryList {
	w := x.WatchClient()
	w.Locked = true
	return &entryList{entries: []engine.Reply{}, w: w, memory: x.Session.Memory}
}

// admits reports whether there is room for an entry with a body of that many bytes.
func (l *entryList) admits(body int) bool { return l.reserve(entrySize, body) }

// add adds an element that is a few numbers and short names. It reports whether there was room.
func (l *entryList) add(element engine.Reply) bool {
	if !l.reserve(engine.ReplySize(&element), 0) {
		return false
	}
	l.entries = append(l.entries, element)
	return true
}

// reserve reports whether there is room for size bytes and a body. Once there is none, there is none any
// more.
func (l *entryList) reserve(size, body int) bool {
	if l.full {
		return false
	}
	if l.size += size + body; l.size-l.reserved >= ReservedEntries {
		if l.full = !l.memory.Reserve(l.size - l.reserved); l.full {
			return false
		}
		l.reserved = l.size
	}
	l.full = l.w.Abandoned(body)
	return !l.full
}

// release gives the memory back. The reply holds its own later.
func (l *entryList) release() { l.memory.Release(l.reserved) }

// reply returns the entries, or an error if there was no room for the first.
func (l *entryList) reply() (list []engine.Reply, err error) {
	if len(l.entries) > 0 {
		return l.entries, nil
	}
	return l.whole()
}

// whole returns the entries, or an error if there was no room for one.
func (l *entryList) whole() (list []engine.Reply, err error) {
	switch {
	case !l.full:
		return l.entries, nil
	case l.w.X.Abandoned:
		return nil, engine.ErrAbandoned
	}
	return nil, engine.ErrClientMemory
}

// wholeReply returns the array of all entries, or an error.
func (l *entryList) wholeReply(err error) engine.Reply {
	list, refused := l.whole()
	if err = cmp.Or(err, refused); err != nil {
		return engine.Fail(err)
	}
	return engine.Array(list...)
}

// noGroup is the error of a group that is missing.
func noGroup(format, first, second string) error {
	return engine.Errorf(format, engine.Shown(first), engine.Shown(second))
}

// lookGroup returns a group of a container's log, nil if there is none. The transaction must have locked the
// groups.
func lookGroup(tx *keyspace.Tx, container, group string) (c *keyspace.Container, g *groups.Group) {
	if c = items.LogContainer(tx, container); c != nil {
		g = tx.Group(c, group)
	}
	return c, g
}

// stateOf returns what groups must know of a log.
func stateOf(tx *keyspace.Tx, c *keyspace.Container) groups.Stream {
	s, _ := tx.Deaths(c).State()
	return items.StreamOf(&s)
}

// checkGroupName returns an error if the name of a group or consumer is too long to be part of an id.
func checkGroupName(what, name string) error {
	if most := groups.MostName(keyspace.MaxIDLength); len(name) > most {
		return engine.Errorf(engine.ErrTooLongName, what, len(name), most)
	}
	return nil
}

func runXAck(x *engine.Context) engine.Reply {
	args := x.Input.Args
	container, err := stream(x, args[1])
	if err != nil {
		return engine.Fail(err)
	}
	n := 0
	var ids []streamid.ID
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[2])
		if g == nil {
			return false
		}
		if ids == nil { // as in Redis, after the group is found
			if ids, err = parseStreamIDs(args[3:]); err != nil {
				return false
			}
		}
		piece := ids[:min(len(ids), GroupPiece)]
		tx.ChangeGroup(c, args[2], func(b *groups.Changes) { n += b.Ack(piece) })
		ids = ids[len(piece):]
		return len(ids) > 0
	})
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Count(n)
}

// groupOptions are the options of XGROUP CREATE and SETID.
type groupOptions struct {
	makeStream bool
	read       int64
}

// parseGroupOptions reads the options after the id.
func parseGroupOptions(subcommand string, args []string, create bool) (o groupOptions, err error) {
	o.read = groups.Unknown
	for i := 0; i < len(args); i++ {
		switch {
		case create && redisfmt.EqualFold(args[i], "MKSTREAM"):
			o.makeStream = true
		case redisfmt.EqualFold(args[i], "ENTRIESREAD") && i+1 < len(args):
			i++
			n, ok := redisfmt.ParseInt(args[i])
			if !ok {
				return o, engine.ErrNotInteger
			}
			if n < 0 && n != groups.Unknown {
				return o, errEntriesRead
			}
			o.read = n
		default:
			return o, engine.Errorf(engine.ErrSubcommandCall, engine.Shown(subcommand), "XGROUP")
		}
	}
	return o, nil
}

func parseXGroupCreate(in *engine.Input) (engine.Run, error) {
	args := in.Args
	o, err := parseGroupOptions(args[1], args[5:], true)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		err := onLog(x, func(tx *keyspace.Tx, c *keyspace.Container) error {
			if c == nil && !o.makeStream {
				if _, isLog := access.LogName(args[2]); isLog {
					return noLog(args[2])
				}
				return errGroupNoKey
			}
			last, err := groupID(tx, c, args[4])
			switch {
			case err != nil:
				return err
			case c == nil:
				return noLog(args[2])
			case tx.Group(c, args[3]) != nil:
				return errBusyGroup
			}
			if err := checkGroupName("name of a group", args[3]); err != nil {
				return err
			}
			tx.CreateGroup(c, args[3], last, o.read)
			return nil
		})
		if err != nil {
			return engine.Fail(err)
		}
		return engine.OK
	}, nil
}

// noLog is the error of XGROUP CREATE where the server would have to keep a log.
func noLog(key string) error {
	name, ok := access.LogName(key)
	if !ok || !keyspace.ValidName(name) {
		return engine.Errorf(errNoLogKey, engine.Shown(key))
	}
	return engine.Errorf(engine.ErrNoLog, name)
}

// groupID reads the id after which a group reads on. $ is the last of the log, if there is one.
func groupID(tx *keyspace.Tx, c *keyspace.Container, text string) (id streamid.ID, err error) {
	if text != "$" {
		return parseStreamID(text, 0)
	}
	if c != nil {
		id = stateOf(tx, c).Last
	}
	return id, nil
}

func parseXGroupSetID(in *engine.Input) (engine.Run, error) {
	args := in.Args
	o, err := parseGroupOptions(args[1], args[5:], false)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		err := onLog(x, func(tx *keyspace.Tx, c *keyspace.Container) (err error) {
			switch {
			case c == nil:
				return errGroupNoKey
			case tx.Group(c, args[3]) == nil:
				return noGroup(errNoGroupFor, args[3], args[2])
			}
			var last streamid.ID
			switch args[4] {
			case "-": // as Redis, which is not strict here
			case "+":
				last = streamid.Max
			default:
				if last, err = groupID(tx, c, args[4]); err != nil {
					return err
				}
			}
			tx.ChangeGroup(c, args[3], func(b *groups.Changes) { b.SetID(last, o.read) })
			return nil
		})
		if err != nil {
			return engine.Fail(err)
		}
		return engine.OK
	}, nil
}

func runXGroupDestroy(x *engine.Context) engine.Reply {
	destroyed := false
	err := onLog(x, func(tx *keyspace.Tx, c *keyspace.Container) error {
		if c == nil {
			return errGroupNoKey
		}
		destroyed = tx.DestroyGroup(c, x.Input.Args[3])
		return nil
	})
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Flag(destroyed)
}

// onLog calls f with the container that a subcommand of XGROUP names, and everything locked; nil if it has no
// log.
func onLog(x *engine.Context, f func(tx *keyspace.Tx, c *keyspace.Container) error) error {
	container, err := stream(x, x.Input.Args[2])
	if err == nil {
		x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
			err = f(tx, items.LogContainer(tx, container))
			return false
		})
	}
	return err
}

// onGroup calls f with the group that a subcommand of XGROUP names, in pieces while f returns true.
func onGroup(x *engine.Context, f func(b *groups.Changes) (more bool)) (err error) {
	args := x.Input.Args
	container, err := stream(x, args[2])
	if err != nil {
		return err
	}
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[3])
		switch {
		case c == nil:
			err = errGroupNoKey
		case g == nil:
			err = noGroup(errNoGroupFor, args[3], args[2])
		default:
			tx.ChangeGroup(c, args[3], func(b *groups.Changes) { more = f(b) })
		}
		return more
	})
	return err
}

func runXGroupCreateConsumer(x *engine.Context) engine.Reply {
	created, name := false, x.Input.Args[4]
	var tooLong error
	err := onGroup(x, func(b *groups.Changes) (more bool) {
		if tooLong = checkGroupName("name of a consumer", name); tooLong == nil {
			created = b.CreateConsumer(name, x.Now())
		}
		return false
	})
	if err = cmp.Or(err, tooLong); err != nil {
		return engine.Fail(err)
	}
	return engine.Flag(created)
}

// runXGroupDelConsumer is XGROUP DELCONSUMER. It removes the entries of a consumer who has many in pieces.
func runXGroupDelConsumer(x *engine.Context) engine.Reply {
	n, name := 0, x.Input.Args[4]
	err := onGroup(x, func(b *groups.Changes) (more bool) {
		c := b.Group().Consumer(name)
		if c != nil && c.Len() > GroupPiece {
			n += b.DropSome(c, GroupPiece)
			return true
		}
		n += b.DeleteConsumer(name)
		return false
	})
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Count(n)
}
