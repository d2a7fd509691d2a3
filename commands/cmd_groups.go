package commands

import (
	"cmp"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
	"mayfly/keyspace/deaths"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
)

// Consumer groups
//
// All groups lie in one partition, that of keyspace.GroupTag. A command that reads or changes a group locks
// it. One that looks at entries of the log too locks all partitions, for groupPiece entries at a time (Context.inPieces).

// groupCommands are the commands on consumer groups. Those of XINFO are in cmd_groups_info.go.
var groupCommands = []Command{
	{
		Name: "xack", Syntax: "key group id [id ...]", Since: "5.0.0",
		Summary: "Marks a pending message as correctly processed, effectively removing it from the pending entries list of the consumer group. Return value of the command is the number of messages successfully acknowledged, that is, the IDs we were actually able to resolve in the PEL.",
		Differs: "More than 100 ids go in portions, and other commands run in between",
		Flags:   Write | Fast | Frees, Keys: OneKey, Access: "RW update", Scope: ScopeSweep, Parse: noParse(runXAck),
	},
	{
		Name: "xautoclaim", Syntax: "key group consumer min-idle-time start [COUNT count] [JUSTID]", Since: "6.2.0",
		Summary: "Changes (or acquires) ownership of messages in a consumer group, as if the messages were delivered to the specified consumer.",
		Differs: "More than 32 entries go in portions, and other commands run in between",
		Flags:   Write | Fast, Keys: OneKey, Access: "RW delete", Scope: ScopeSweep, Tips: "nondeterministic_output", Parse: parseXAutoClaim,
	},
	{
		Name: "xclaim", Since: "5.0.0",
		Syntax:  "key group consumer min-idle-time id [id ...] [IDLE ms] [TIME unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID id]",
		Summary: "Changes (or acquires) ownership of a message in a consumer group, as if the message was delivered to the specified consumer.",
		Differs: "More than 32 ids go in portions, and other commands run in between",
		Flags:   Write | Fast, Keys: OneKey, Access: "RW update", Scope: ScopeSweep, Tips: "nondeterministic_output", Parse: noParse(runXClaim),
	},
	{
		Name: "xgroup", Since: "5.0.0", Summary: "A container for consumer groups commands",
		Sub: []Command{
			{
				Name: "create", Syntax: "key groupname <id | $> [MKSTREAM] [ENTRIESREAD entries_read]", Since: "5.0.0",
				Summary: "Create a consumer group.",
				Differs: "`MKSTREAM` makes no log of deaths: `CONTAINER.SET` with `LOG` does",
				Flags:   Write | DenyOOM, Keys: OneID, Access: "RW insert", Scope: ScopeSweep, Parse: parseXGroupCreate,
			},
			{
				Name: "createconsumer", Syntax: "key groupname consumername", Since: "6.2.0", Summary: "Create a consumer in a consumer group.",
				Flags: Write | DenyOOM, Keys: OneID, Access: "RW insert", Scope: ScopeSweep, Parse: noParse(runXGroupCreateConsumer),
			},
			{
				Name: "delconsumer", Syntax: "key groupname consumername", Since: "5.0.0", Summary: "Delete a consumer from a consumer group.",
				Flags: Write | Frees, Keys: OneID, Access: "RW delete", Scope: ScopeSweep, Parse: noParse(runXGroupDelConsumer),
			},
			{
				Name: "destroy", Syntax: "key groupname", Since: "5.0.0", Summary: "Destroy a consumer group.",
				Flags: Write | Frees, Keys: OneID, Access: "RW delete", Scope: ScopeSweep, Parse: noParse(runXGroupDestroy),
			},
			helpRow("xgroup", "5.0.0"),
			{
				Name: "setid", Syntax: "key groupname <id | $> [ENTRIESREAD entries_read]", Since: "5.0.0",
				Summary: "Set a consumer group to an arbitrary last delivered ID value.",
				Flags:   Write, Keys: OneID, Access: "RW update", Scope: ScopeSweep, Parse: parseXGroupSetID,
			},
		},
	},
	{
		Name: "xpending", Syntax: "key group [[IDLE min-idle-time] start end count [consumer]]", Since: "5.0.0",
		Summary: "Return information and entries from a stream consumer group pending entries list, that are messages fetched but never acknowledged.",
		Flags:   ReadOnly, Keys: OneKey, Scope: ScopeSweep, Tips: "nondeterministic_output", Parse: parseXPending,
	},
	readGroupCommand,
}

// The numbers of entries with which a command keeps its locks. They take a fraction of a ms.
const (
	groupPiece   = 100 // in the order of the log, or without looking at the log
	lookupPiece  = 32  // each looked up in the log by its id
	pendingPiece = 500 // read only
)

// The errors of commands on groups.
const (
	errBusyGroup   = Error("BUSYGROUP Consumer Group name already exists")
	errGroupNoKey  = Error("ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use the MKSTREAM option to create an empty stream automatically.")
	errEntriesRead = Error("ERR value for ENTRIESREAD must be positive or -1")

	errNoGroup    = "NOGROUP No such key '%s' or consumer group '%s'"
	errNoGroupFor = "NOGROUP No such consumer group '%s' for key name '%s'"
	errNoLogKey   = "ERR no log: '%s' is not the name of one, __keyevent@<container>__:expired; CONTAINER.SET <container> LOG 3600 makes it, and with it the stream"
	errMinIdle    = "ERR Invalid min-idle-time argument for %s"
)

// entryList is the entries of a reply that grows. It holds client memory meanwhile.
type entryList struct {
	entries []Reply
	full    bool // there is no memory, or nothing takes the reply: take no more

	w              watch
	memory         *ClientMemory
	size, reserved int
}

// newEntryList returns an empty list for a command that does its work in pieces.
func (x *Context) newEntryList() *entryList {
	w := x.watchClient()
	w.locked = true
	return &entryList{entries: []Reply{}, w: w, memory: x.Session.Memory}
}

// admits reports whether there is room for an entry with a body of that many bytes.
func (l *entryList) admits(body int) bool { return l.reserve(entrySize, body) }

// add adds an element that is a few numbers and short names. It reports whether there was room.
func (l *entryList) add(element Reply) bool {
	if !l.reserve(replySize(&element), 0) {
		return false
	}
	l.entries = append(l.entries, element)
	return true
}

// reserve reports whether there is room for size bytes and a body. Once there is none, there is none any more.
func (l *entryList) reserve(size, body int) bool {
	if l.full {
		return false
	}
	if l.size += size + body; l.size-l.reserved >= reservedEntries {
		if l.full = !l.memory.Reserve(l.size - l.reserved); l.full {
			return false
		}
		l.reserved = l.size
	}
	l.full = l.w.abandoned(body)
	return !l.full
}

// release gives the memory back. The reply holds its own later.
func (l *entryList) release() { l.memory.Release(l.reserved) }

// reply returns the entries, or an error if there was no room for the first.
func (l *entryList) reply() (list []Reply, err error) {
	if len(l.entries) > 0 {
		return l.entries, nil
	}
	return l.whole()
}

// whole returns the entries, or an error if there was no room for one.
func (l *entryList) whole() (list []Reply, err error) {
	switch {
	case !l.full:
		return l.entries, nil
	case l.w.x.abandoned:
		return nil, errAbandoned
	}
	return nil, errClientMemory
}

// wholeReply returns the array of all entries, or an error.
func (l *entryList) wholeReply(err error) Reply {
	list, refused := l.whole()
	if err = cmp.Or(err, refused); err != nil {
		return Fail(err)
	}
	return Array(list...)
}

// noGroup is the error of a group that is missing.
func noGroup(format, first, second string) error { return errorf(format, shown(first), shown(second)) }

// beginGroups begins a transaction on groups alone.
func beginGroups(ks *keyspace.Keyspace, tx *keyspace.Tx) { ks.BeginKey(tx, keyspace.GroupTag) }

// beginLog begins a transaction on groups and entries.
func beginLog(ks *keyspace.Keyspace, tx *keyspace.Tx) { ks.BeginAll(tx) }

// lookGroup returns a group of a container's log, nil if there is none. The transaction must have locked the groups.
func lookGroup(tx *keyspace.Tx, container, group string) (c *keyspace.Container, g *groups.Group) {
	if c = logContainer(tx, container); c != nil {
		g = tx.Group(c, group)
	}
	return c, g
}

// stateOf returns what groups must know of a log.
func stateOf(tx *keyspace.Tx, c *keyspace.Container) groups.Stream {
	s, _ := tx.Deaths(c).State()
	return streamOf(&s)
}

// streamOf returns what groups must know of a log's state.
func streamOf(s *deaths.State) groups.Stream {
	return groups.Stream{Added: s.Added, Length: s.Length, First: s.First, Last: s.Last, MaxDeleted: s.MaxDeleted}
}

// checkGroupName returns an error if the name of a group or consumer is too long to be part of an id.
func checkGroupName(what, name string) error {
	if most := groups.MostName(keyspace.MaxIDLength); len(name) > most {
		return errorf(errTooLongName, what, len(name), most)
	}
	return nil
}

func runXAck(x *Context) Reply {
	args := x.Input.Args
	container, err := x.stream(args[1])
	if err != nil {
		return Fail(err)
	}
	n := 0
	var ids []streamid.ID
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[2])
		if g == nil {
			return false
		}
		if ids == nil { // as in Redis, after the group is found
			if ids, err = parseStreamIDs(args[3:]); err != nil {
				return false
			}
		}
		piece := ids[:min(len(ids), groupPiece)]
		tx.ChangeGroup(c, args[2], func(b *groups.Changes) { n += b.Ack(piece) })
		ids = ids[len(piece):]
		return len(ids) > 0
	})
	if err != nil {
		return Fail(err)
	}
	return Count(n)
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
				return o, errNotInteger
			}
			if n < 0 && n != groups.Unknown {
				return o, errEntriesRead
			}
			o.read = n
		default:
			return o, errorf(errSubcommandCall, shown(subcommand), "XGROUP")
		}
	}
	return o, nil
}

func parseXGroupCreate(in *Input) (Run, error) {
	args := in.Args
	o, err := parseGroupOptions(args[1], args[5:], true)
	if err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		err := x.onLog(func(tx *keyspace.Tx, c *keyspace.Container) error {
			if c == nil && !o.makeStream {
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
			return Fail(err)
		}
		return OK
	}, nil
}

// noLog is the error of MKSTREAM where the server would have to keep a log.
func noLog(key string) error {
	name, ok := logName(key)
	if !ok || !keyspace.ValidName(name) {
		return errorf(errNoLogKey, shown(key))
	}
	return errorf(errNoLog, name)
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

func parseXGroupSetID(in *Input) (Run, error) {
	args := in.Args
	o, err := parseGroupOptions(args[1], args[5:], false)
	if err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		err := x.onLog(func(tx *keyspace.Tx, c *keyspace.Container) (err error) {
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
			return Fail(err)
		}
		return OK
	}, nil
}

func runXGroupDestroy(x *Context) Reply {
	destroyed := false
	err := x.onLog(func(tx *keyspace.Tx, c *keyspace.Container) error {
		if c == nil {
			return errGroupNoKey
		}
		destroyed = tx.DestroyGroup(c, x.Input.Args[3])
		return nil
	})
	if err != nil {
		return Fail(err)
	}
	return Flag(destroyed)
}

// onLog calls f with the container that a subcommand of XGROUP names, and everything locked; nil if it has no log.
func (x *Context) onLog(f func(tx *keyspace.Tx, c *keyspace.Container) error) error {
	container, err := x.stream(x.Input.Args[2])
	if err == nil {
		x.inPieces(beginLog, func(tx *keyspace.Tx) (more bool) {
			err = f(tx, logContainer(tx, container))
			return false
		})
	}
	return err
}

// onGroup calls f with the group that a subcommand of XGROUP names, in pieces while f returns true.
func (x *Context) onGroup(f func(b *groups.Changes) (more bool)) (err error) {
	args := x.Input.Args
	container, err := x.stream(args[2])
	if err != nil {
		return err
	}
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
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

func runXGroupCreateConsumer(x *Context) Reply {
	created, name := false, x.Input.Args[4]
	var tooLong error
	err := x.onGroup(func(b *groups.Changes) (more bool) {
		if tooLong = checkGroupName("name of a consumer", name); tooLong == nil {
			created = b.CreateConsumer(name, x.Now())
		}
		return false
	})
	if err = cmp.Or(err, tooLong); err != nil {
		return Fail(err)
	}
	return Flag(created)
}

// runXGroupDelConsumer is XGROUP DELCONSUMER. It removes the entries of a consumer who has many in pieces.
func runXGroupDelConsumer(x *Context) Reply {
	n, name := 0, x.Input.Args[4]
	err := x.onGroup(func(b *groups.Changes) (more bool) {
		c := b.Group().Consumer(name)
		if c != nil && c.Len() > groupPiece {
			n += b.DropSome(c, groupPiece)
			return true
		}
		n += b.DeleteConsumer(name)
		return false
	})
	if err != nil {
		return Fail(err)
	}
	return Count(n)
}
