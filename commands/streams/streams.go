package streams

import (
	"math"
	"slices"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// StreamCommands read and shorten the logs of deaths. Those on consumer groups are in groups.go.
var StreamCommands = []engine.Command{
	{
		Name: "xadd", Since: "5.0.0", Summary: "Appends a new entry to a stream",
		Syntax:  "key [NOMKSTREAM] [<MAXLEN | MINID> [= | ~] threshold [LIMIT count]] <* | id> field value [field value ...]",
		Differs: "Refused: the server writes all streams",
		Flags:   engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Access: "RW update", Scope: engine.ScopeSweep, Tips: "nondeterministic_output",
		Parse: engine.NoParse(runRefusedStream),
	},
	{
		Name: "xdel", Syntax: "key id [id ...]", Since: "5.0.0",
		Summary: "Removes the specified entries from the stream. Returns the number of items actually deleted, that may be different from the number of IDs passed in case certain IDs do not exist.",
		Differs: "Many entries go in portions, and other commands run in between",
		Flags:   engine.Write | engine.Fast | engine.Frees, Keys: engine.OneKey, Access: "RW delete", Scope: engine.ScopeAll, Parse: ParseXDel,
	},
	{
		Name: "xinfo", Since: "5.0.0", Summary: "A container for stream introspection commands",
		Sub: append([]engine.Command{
			engine.HelpRow("xinfo", "5.0.0"),
			{
				Name: "stream", Syntax: "key [FULL [COUNT count]]", Summary: "Get information about a stream",
				Differs: "There is no radix tree: `radix-tree-keys` is 0, `radix-tree-nodes` 1",
				Flags:   engine.ReadOnly, Keys: engine.Keys{First: 2, Last: 2, Step: 1}, Scope: engine.ScopeSweep,
				Reads: func(args []string) bool { return len(args) > 4 && readsMany(args) }, Parse: parseXInfoStream,
			},
		}, groupInfoCommands...),
	},
	{
		Name: "xlen", Syntax: "key", Since: "5.0.0", Summary: "Return the number of entries in a stream",
		Flags: engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Access: "RO", Scope: engine.ScopeSweep, Parse: engine.NoParse(runXLen),
	},
	{
		Name: "xrange", Syntax: "key start end [COUNT count]", Since: "5.0.0",
		Summary: "Return a range of elements in a stream, with IDs matching the specified IDs interval",
		Flags:   engine.ReadOnly, Keys: engine.OneKey, Scope: engine.ScopeSweep, Reads: readsMany,
		Parse: func(in *engine.Input) (engine.Run, error) { return parseXRange(in.Args[2], in.Args[3], false, in.Args) },
	},
	{
		Name: "xread", Syntax: "[COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]", Since: "5.0.0",
		Summary: "Return never seen elements in multiple streams, with IDs greater than the ones reported by the caller for each stream. Can block.",
		Differs: "The id + is of Redis 7.4",
		Flags:   engine.ReadOnly | engine.Blocking, KeysAfter: engine.Keyword{Word: "STREAMS", From: 1}, Scope: engine.ScopeSweep, Reads: readsMany, Parse: parseRead,
	},
	{
		Name: "xrevrange", Syntax: "key end start [COUNT count]", Since: "5.0.0",
		Summary: "Return a range of elements in a stream, with IDs matching the specified IDs interval, in reverse order (from greater to smaller IDs) compared to XRANGE",
		Flags:   engine.ReadOnly, Keys: engine.OneKey, Scope: engine.ScopeSweep, Reads: readsMany,
		Parse: func(in *engine.Input) (engine.Run, error) { return parseXRange(in.Args[3], in.Args[2], true, in.Args) },
	},
	{
		Name: "xsetid", Since: "5.0.0", Summary: "An internal command for replicating stream values",
		Syntax:  "key last-id [ENTRIESADDED entries_added] [MAXDELETEDID max_deleted_entry_id]",
		Differs: "Refused: the server writes all streams",
		Flags:   engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Access: "RW update", Scope: engine.ScopeSweep, Parse: engine.NoParse(runRefusedStream),
	},
	{
		Name: "xtrim", Syntax: "key <MAXLEN | MINID> [= | ~] threshold [LIMIT count]", Since: "5.0.0",
		Summary: "Trims the stream to (approximately if '~' is passed) a certain size",
		Differs: "With `~` it removes just what is asked for, up to LIMIT. More than 1,000 entries go in portions, and other commands run in between",
		Flags:   engine.Write | engine.Frees, Keys: engine.OneKey, Access: "RW delete", Scope: engine.ScopeAll, Tips: "nondeterministic_output", Parse: parseXTrim,
	},
}

// The errors of commands on streams that name something.
const (
	errStreamWritten = "ERR %s is written by the server"
	errNoStream      = "ERR %s cannot be a stream: the server writes all streams, those of deaths, such as __keyevent@0__:expired"
)

// runRefusedStream is XADD and XSETID.
func runRefusedStream(x *engine.Context) engine.Reply {
	key := x.Input.Args[1]
	container, err := stream(x, key)
	switch {
	case err != nil:
		return engine.Fail(err)
	case container == "":
		return engine.Fail(engine.Errorf(errNoStream, expiry.Quote(engine.Shown(key))))
	}
	return engine.Fail(engine.Errorf(errStreamWritten, expiry.Quote(engine.Shown(key))))
}

func runXLen(x *engine.Context) engine.Reply {
	c, err := log(x, x.Input.Args[1])
	switch {
	case err != nil:
		return engine.Fail(err)
	case c == nil:
		return engine.Integer(0)
	}
	state, _ := x.Tx.Deaths(c).State()
	return engine.Integer(state.Length)
}

// log returns the container whose deaths a stream has, nil if there is no such stream. The error is that of a
// key of the name that is no stream.
func log(x *engine.Context, key string) (*keyspace.Container, error) {
	container, err := stream(x, key)
	if err != nil || container == "" {
		return nil, err
	}
	return items.LogContainer(x.Tx, container), nil
}

// parseXRange parses XRANGE and XREVRANGE, which differ in the order of their bounds and entries.
func parseXRange(start, end string, reverse bool, args []string) (engine.Run, error) {
	from, err := parseIntervalStart(start)
	if err != nil {
		return nil, err
	}
	to, err := parseIntervalEnd(end)
	if err != nil {
		return nil, err
	}
	count := int64(-1)
	for rest := args[4:]; len(rest) > 0; rest = rest[2:] {
		if len(rest) < 2 || !redisfmt.EqualFold(rest[0], "COUNT") {
			return nil, engine.ErrSyntax
		}
		n, ok := redisfmt.ParseInt(rest[1])
		if !ok {
			return nil, engine.ErrNotInteger
		}
		count = max(n, 0)
	}
	return func(x *engine.Context) engine.Reply {
		c, err := log(x, args[1])
		switch {
		case err != nil:
			return engine.Fail(err)
		case c == nil:
			return engine.Array()
		case count == 0:
			return engine.NullArray
		}
		return entries(x, c, from, to, reverse, max(count, 0))
	}, nil
}

// entries returns the entries of a log in an interval of ids, at most count; 0 means all.
func entries(x *engine.Context, c *keyspace.Container, from, to streamid.ID, reverse bool, count int64) engine.Reply {
	list := newEntryList(x)
	list.w.Locked = false // it looks as it goes
	defer list.release()
	if to.Less(from) {
		return engine.Array()
	}
	x.Tx.Deaths(c).Range(from, to, reverse, func(e deathlog.Entry) (more bool) {
		if !list.admits(len(e.Body)) {
			return false
		}
		list.entries = append(list.entries, EntryReply(&e))
		return int64(len(list.entries)) != count
	})
	return list.wholeReply(nil)
}

// The memory of entries in a reply, in bytes.
const (
	entrySize       = 1500    // about that of an entry besides its body
	ReservedEntries = 1 << 20 // reserved at a time while a reply grows
)

// DeletePiece is the number of ids that XDEL looks up with all partitions locked: at most each in every
// partition.
const DeletePiece = 256

// ParseXDel parses XDEL. As in Redis, the ids matter only if there is the stream.
func ParseXDel(in *engine.Input) (engine.Run, error) {
	key, removed := in.Args[1], 0
	ids, errIDs := parseStreamIDs(in.Args[2:])
	slices.SortFunc(ids, streamid.ID.Compare) // so that few partitions have to be searched for those of a piece
	ids = slices.Compact(ids)
	return func(x *engine.Context) engine.Reply {
		c, err := log(x, key)
		switch {
		case err != nil:
			return engine.Fail(err)
		case c == nil:
			return engine.Count(removed)
		case errIDs != nil:
			return engine.Fail(errIDs)
		}
		for {
			n := min(DeletePiece, len(ids))
			removed += x.Tx.Deaths(c).Delete(ids[:n])
			ids = ids[n:]
			switch {
			case len(ids) == 0:
				return engine.Count(removed)
			case !x.Queued:
				x.Outside = func() (engine.Reply, bool) { return engine.Reply{}, true }
				return engine.Reply{}
			}
		}
	}, nil
}

// The errors of XTRIM, in Redis' words.
const (
	errTrimTwice    = engine.Error("ERR syntax error, MAXLEN and MINID options at the same time are not compatible")
	errTrimLength   = engine.Error("ERR The MAXLEN argument must be >= 0.")
	errTrimLimit    = engine.Error("ERR The LIMIT argument must be >= 0.")
	errTrimNoRule   = engine.Error("ERR syntax error, XTRIM must be called with a trimming strategy")
	errLimitNoRule  = engine.Error("ERR syntax error, LIMIT cannot be used without specifying a trimming strategy")
	errLimitExactly = engine.Error("ERR syntax error, LIMIT cannot be used without the special ~ option")
)

// trimOptions are the arguments of XTRIM.
type trimOptions struct {
	length int64       // to leave at most; -1: any
	below  streamid.ID // entries below this id go; zero: none
	limit  int64       // entries to remove at most
}

// TrimPiece is the number of entries that XTRIM removes with all partitions locked.
const TrimPiece = 1000

// approximateLimit is the LIMIT of XTRIM with ~ if none is given, as in Redis.
const approximateLimit = 10_000

func parseTrimOptions(args []string) (o trimOptions, err error) {
	o.length, o.limit = -1, 0
	var given, limited, about bool
	for i := 0; i < len(args); i++ {
		more := len(args) - i - 1
		byLength := redisfmt.EqualFold(args[i], "MAXLEN")
		switch {
		case (byLength || redisfmt.EqualFold(args[i], "MINID")) && more > 0:
			if given {
				return o, errTrimTwice
			}
			given, about = true, false
			if next := redisfmt.CString(args[i+1]); more > 1 && (next == "~" || next == "=") {
				about = next == "~"
				i++
			}
			i++
			if !byLength {
				if o.below, err = parseStreamID(args[i], 0); err != nil {
					return o, err
				}
				break
			}
			var ok bool
			if o.length, ok = redisfmt.ParseInt(args[i]); !ok {
				return o, engine.ErrNotInteger
			}
			if o.length < 0 {
				return o, errTrimLength
			}
		case redisfmt.EqualFold(args[i], "LIMIT") && more > 0:
			i++
			var ok bool
			if o.limit, ok = redisfmt.ParseInt(args[i]); !ok {
				return o, engine.ErrNotInteger
			}
			if o.limit < 0 {
				return o, errTrimLimit
			}
			limited = true
		default:
			return o, engine.ErrSyntax
		}
	}
	switch {
	case o.limit > 0 && !given:
		return o, errLimitNoRule
	case !given:
		return o, errTrimNoRule
	case limited && !about:
		return o, errLimitExactly
	case about && !limited:
		o.limit = approximateLimit
	case o.limit == 0:
		o.limit = math.MaxInt64
	}
	return o, nil
}

func parseXTrim(in *engine.Input) (engine.Run, error) {
	key := in.Args[1]
	o, err := parseTrimOptions(in.Args[2:])
	if err != nil {
		return nil, err
	}
	removed := int64(0)
	run := func(x *engine.Context) engine.Reply {
		c, err := log(x, key)
		switch {
		case err != nil:
			return engine.Fail(err)
		case c == nil:
			return engine.Integer(removed)
		}
		for {
			piece := min(TrimPiece, o.limit-removed)
			n := x.Tx.Deaths(c).Trim(o.length, o.below, piece)
			removed += n
			switch {
			case n < piece || removed == o.limit:
				return engine.Integer(removed)
			case !x.Queued:
				x.Outside = func() (engine.Reply, bool) { return engine.Reply{}, true }
				return engine.Reply{}
			}
		}
	}
	return run, nil
}

func parseXInfoStream(in *engine.Input) (engine.Run, error) {
	args := in.Args
	return func(x *engine.Context) engine.Reply {
		c, err := log(x, args[2])
		switch {
		case err != nil:
			return engine.Fail(err)
		case c == nil:
			return engine.Fail(engine.ErrNoSuchKey)
		}
		count, full, err := parseFull(args)
		if err != nil {
			return engine.Fail(err)
		}
		return describeStream(x, c, full, count)
	}, nil
}

// parseFull reads the options of XINFO STREAM. count is the number of entries that FULL shows, 0 for all.
func parseFull(args []string) (count int64, full bool, err error) {
	const usual = 10
	options := args[3:]
	wrong := engine.Errorf(engine.ErrSubcommandCall, engine.Shown(args[1]), "XINFO")
	switch {
	case len(options) == 0:
		return 0, false, nil
	case len(options) != 1 && len(options) != 3, !redisfmt.EqualFold(options[0], "FULL"):
		return 0, false, wrong
	case len(options) == 1:
		return usual, true, nil
	case !redisfmt.EqualFold(options[1], "COUNT"):
		return 0, false, wrong
	}
	count, ok := redisfmt.ParseInt(options[2])
	switch {
	case !ok:
		return 0, false, engine.ErrNotInteger
	case count < 0:
		count = usual
	}
	return count, true, nil
}

// describeStream is the reply of XINFO STREAM.
func describeStream(x *engine.Context, c *keyspace.Container, full bool, count int64) engine.Reply {
	s, _ := x.Tx.Deaths(c).State()
	list := []engine.Reply{
		engine.Bulk("length"), engine.Integer(s.Length),
		engine.Bulk("radix-tree-keys"), engine.Integer(0),
		engine.Bulk("radix-tree-nodes"), engine.Integer(1),
		engine.Bulk("last-generated-id"), engine.Bulk(s.Last.String()),
		engine.Bulk("max-deleted-entry-id"), engine.Bulk(s.MaxDeleted.String()),
		engine.Bulk("entries-added"), engine.Integer(s.Added),
		engine.Bulk("recorded-first-entry-id"), engine.Bulk(s.First.String()),
	}
	if full {
		entries := entries(x, c, streamid.ID{}, streamid.Max, false, count)
		if entries.Kind == engine.KindError {
			return entries
		}
		groups := describeGroups(x, c, count)
		if groups.Kind == engine.KindError {
			return groups
		}
		return engine.Map(append(list,
			engine.Bulk("entries"), entries,
			engine.Bulk("groups"), groups,
		)...)
	}
	return engine.Map(append(list,
		engine.Bulk("groups"), engine.Count(countGroups(x, c)),
		engine.Bulk("first-entry"), edge(x, c, false),
		engine.Bulk("last-entry"), edge(x, c, true),
	)...)
}

// edge returns the first entry of a log, or the last; null if there is none.
func edge(x *engine.Context, c *keyspace.Container, last bool) engine.Reply {
	if list := entries(x, c, streamid.ID{}, streamid.Max, last, 1).Elems; len(list) > 0 {
		return list[0]
	}
	return engine.Null
}
