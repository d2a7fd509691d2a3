package streams

import (
	"iter"
	"strconv"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// groupInfoCommands are the subcommands of XINFO on groups.
var groupInfoCommands = []engine.Command{
	{
		Name: "consumers", Syntax: "key groupname", Since: "5.0.0", Summary: "List the consumers in a consumer group",
		Flags: engine.ReadOnly, Keys: engine.OneID, Scope: engine.ScopeSweep, Tips: "nondeterministic_output", Parse: engine.NoParse(runXInfoConsumers),
	},
	{
		Name: "groups", Syntax: "key", Since: "5.0.0", Summary: "List the consumer groups of a stream",
		Flags: engine.ReadOnly, Keys: engine.OneID, Scope: engine.ScopeSweep, Parse: engine.NoParse(runXInfoGroups),
	},
}

func runXInfoConsumers(x *engine.Context) engine.Reply {
	args := x.Input.Args
	container, err := stream(x, args[2])
	if err != nil {
		return engine.Fail(err)
	}
	list := newEntryList(x)
	defer list.release()
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[3])
		switch {
		case c == nil:
			err = engine.ErrNoSuchKey
			return false
		case g == nil:
			err = noGroup(errNoGroupFor, args[3], args[2])
			return false
		}
		for c := range g.Consumers() {
			if !list.add(engine.Map(
				engine.Bulk("name"), engine.Bulk(c.Name()),
				engine.Bulk("pending"), engine.Count(c.Len()),
				engine.Bulk("idle"), engine.Integer(max(0, tx.Now()-c.Seen())),
			)) {
				break
			}
		}
		return false
	})
	return list.wholeReply(err)
}

// runXInfoGroups is XINFO GROUPS. It looks at some groups at a time.
func runXInfoGroups(x *engine.Context) engine.Reply {
	container, err := stream(x, x.Input.Args[2])
	if err != nil {
		return engine.Fail(err)
	}
	var names []string
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		if c := items.LogContainer(tx, container); c != nil {
			names = tx.Groups(c)
		} else {
			err = engine.ErrNoSuchKey
		}
		return false
	})
	list := newEntryList(x)
	defer list.release()
	if len(names) > 0 {
		x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
			c := items.LogContainer(tx, container)
			if c == nil {
				return false
			}
			s := stateOf(tx, c)
			piece := names[:min(len(names), GroupPiece)]
			names = names[len(piece):]
			for _, name := range piece {
				if g := tx.Group(c, name); g != nil && !list.add(describeGroup(name, g, &s)) {
					return false
				}
			}
			return len(names) > 0
		})
	}
	return list.wholeReply(err)
}

// describeGroup returns what XINFO GROUPS says of a group.
func describeGroup(name string, g *groups.Group, s *groups.Stream) engine.Reply {
	return engine.Map(
		engine.Bulk("name"), engine.Bulk(name),
		engine.Bulk("consumers"), engine.Count(g.ConsumersLen()),
		engine.Bulk("pending"), engine.Count(g.Len()),
		engine.Bulk("last-delivered-id"), engine.Bulk(g.Last().String()),
		engine.Bulk("entries-read"), engine.OrNull(g.Read(), g.Read() != groups.Unknown),
		engine.Bulk("lag"), engine.OrNull(g.Lag(s)),
	)
}

// countGroups returns the number of groups that read a container's log.
func countGroups(x *engine.Context, c *keyspace.Container) (n int) {
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		n = len(tx.Groups(c))
		return false
	})
	return n
}

// describeGroups returns what XINFO STREAM FULL says of the groups, with up to count entries of each list; 0:
// all. It looks at some pending entries at a time, so lists of a group that others use may be of different
// moments.
func describeGroups(x *engine.Context, c *keyspace.Container, count int64) engine.Reply {
	var names []string
	x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		names = tx.Groups(c)
		return false
	})
	d := groupDescriber{x: x, c: c, count: count, list: newEntryList(x)}
	defer d.list.release()
	groups := []engine.Reply{}
	for _, name := range names {
		if g, ok := d.describe(name); ok {
			groups = append(groups, g)
		}
	}
	if _, err := d.list.whole(); err != nil {
		return engine.Fail(err)
	}
	return engine.Array(groups...)
}

// groupDescriber describes groups for XINFO STREAM FULL.
type groupDescriber struct {
	x     *engine.Context
	c     *keyspace.Container
	count int64      // of the entries in each list; 0: all
	list  *entryList // reserves the memory of them all
}

// describe returns what XINFO STREAM FULL says of a group; false if the group is gone.
func (d *groupDescriber) describe(name string) (reply engine.Reply, ok bool) {
	var head, consumers []engine.Reply
	var names []string
	d.x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if ok = g != nil; !ok {
			return false
		}
		s := stateOf(tx, d.c) // of the same moment: a group is never ahead of its log
		head = []engine.Reply{
			engine.Bulk("name"), engine.Bulk(name),
			engine.Bulk("last-delivered-id"), engine.Bulk(g.Last().String()),
			engine.Bulk("entries-read"), engine.OrNull(g.Read(), g.Read() != groups.Unknown),
			engine.Bulk("lag"), engine.OrNull(g.Lag(&s)),
			engine.Bulk("pel-count"), engine.Count(g.Len()),
		}
		return false
	})
	if !ok {
		return engine.Reply{}, false
	}
	d.x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if ok = g != nil; !ok {
			return false
		}
		for c := range g.Consumers() {
			consumer := engine.Map(engine.Bulk("name"), engine.Bulk(c.Name()), engine.Bulk("seen-time"), engine.Integer(c.Seen()), engine.Bulk("pel-count"), engine.Count(c.Len()))
			if !d.list.reserve(engine.ReplySize(&consumer), 0) {
				break
			}
			names, consumers = append(names, c.Name()), append(consumers, consumer)
		}
		return false
	})
	if !ok {
		return engine.Reply{}, false
	}
	pending := d.pending(name, func(g *groups.Group, from streamid.ID) iter.Seq[*groups.Pending] { return g.From(from) },
		func(e *groups.Pending) engine.Reply {
			return engine.Array(engine.Bulk(e.ID.String()), engine.Bulk(e.Consumer()), engine.Integer(e.Time), engine.Integer(e.Count))
		})
	for i, consumer := range names {
		own := d.pending(name, func(g *groups.Group, from streamid.ID) iter.Seq[*groups.Pending] {
			if c := g.Consumer(consumer); c != nil {
				return c.From(from)
			}
			return func(func(*groups.Pending) bool) {}
		}, func(e *groups.Pending) engine.Reply {
			return engine.Array(engine.Bulk(e.ID.String()), engine.Integer(e.Time), engine.Integer(e.Count))
		})
		consumers[i].Elems = append(consumers[i].Elems, engine.Bulk("pending"), engine.Array(own...))
	}
	return engine.Map(append(head, engine.Bulk("pending"), engine.Array(pending...), engine.Bulk("consumers"), engine.Array(consumers...))...), true
}

// pending shows the pending entries that from yields, some at a time.
func (d *groupDescriber) pending(
	name string, from func(*groups.Group, streamid.ID) iter.Seq[*groups.Pending], show func(*groups.Pending) engine.Reply,
) []engine.Reply {
	rows, next := []engine.Reply{}, streamid.ID{}
	d.x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if g == nil {
			return false
		}
		seen := 0
		for e := range from(g, next) {
			if d.count != 0 && int64(len(rows)) >= d.count {
				return false
			}
			if seen++; seen > PendingPiece {
				next = e.ID
				return true
			}
			row := show(e)
			if !d.list.reserve(engine.ReplySize(&row), 0) {
				return false
			}
			rows = append(rows, row)
		}
		return false
	})
	return rows
}

// pendingQuery is what XPENDING asks for.
type pendingQuery struct {
	extended bool
	minIdle  int64 // ms
	from, to streamid.ID
	count    int64
	consumer *string // nil: all
}

func parseXPending(in *engine.Input) (engine.Run, error) {
	args := in.Args
	q, err := parsePendingQuery(args)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		container, err := stream(x, args[1])
		if err != nil {
			return engine.Fail(err)
		}
		reply, list := engine.Reply{}, newEntryList(x)
		defer list.release()
		x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
			switch _, g := lookGroup(tx, container, args[2]); {
			case g == nil:
				err = noGroup(errNoGroup, args[1], args[2])
			case !q.extended:
				reply = pendingSummary(g)
			default:
				more = q.some(list, g, tx.Now())
			}
			return more
		})
		if err != nil || q.extended {
			return list.wholeReply(err)
		}
		return reply
	}, nil
}

// parsePendingQuery reads the arguments of XPENDING.
func parsePendingQuery(args []string) (q pendingQuery, err error) {
	if len(args) == 3 {
		return q, nil
	}
	if len(args) < 6 || len(args) > 9 {
		return q, engine.ErrSyntax
	}
	q.extended = true
	rest, ok := args[3:], false
	if redisfmt.EqualFold(rest[0], "IDLE") {
		if q.minIdle, ok = redisfmt.ParseInt(rest[1]); !ok {
			return q, engine.ErrNotInteger
		}
		if len(args) < 8 {
			return q, engine.ErrSyntax
		}
		rest = rest[2:]
	}
	if q.count, ok = redisfmt.ParseInt(rest[2]); !ok {
		return q, engine.ErrNotInteger
	}
	if q.from, err = parseIntervalStart(rest[0]); err != nil {
		return q, err
	}
	if q.to, err = parseIntervalEnd(rest[1]); err != nil {
		return q, err
	}
	if len(rest) > 3 {
		q.consumer = &rest[3]
	}
	return q, nil
}

// pendingSummary is the reply of XPENDING key group.
func pendingSummary(g *groups.Group) engine.Reply {
	if g.Len() == 0 {
		return engine.Array(engine.Integer(0), engine.Null, engine.Null, engine.NullArray)
	}
	list := []engine.Reply{}
	for c := range g.Consumers() {
		if n := c.Len(); n > 0 {
			list = append(list, engine.Array(engine.Bulk(c.Name()), engine.Bulk(strconv.Itoa(n))))
		}
	}
	return engine.Array(engine.Count(g.Len()), engine.Bulk(g.First().ID.String()), engine.Bulk(g.End().ID.String()), engine.Array(list...))
}

// some appends some of the entries that the query asks for, and moves on behind them. more reports whether
// there may be others.
func (q *pendingQuery) some(list *entryList, g *groups.Group, now int64) (more bool) {
	entries := g.From(q.from)
	if q.consumer != nil {
		c := g.Consumer(*q.consumer)
		if c == nil {
			return false
		}
		entries = c.From(q.from)
	}
	seen := 0
	for e := range entries {
		if q.count <= 0 || q.to.Less(e.ID) {
			return false
		}
		if seen++; seen > PendingPiece {
			q.from = e.ID
			return true
		}
		if idle := now - e.Time; q.minIdle == 0 || idle >= q.minIdle {
			if !list.add(engine.Array(engine.Bulk(e.ID.String()), engine.Bulk(e.Consumer()), engine.Integer(max(idle, 0)), engine.Integer(e.Count))) {
				return false
			}
			q.count--
		}
	}
	return false
}
