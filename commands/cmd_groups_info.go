package commands

import (
	"iter"
	"strconv"

	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
)

// groupInfoCommands are the subcommands of XINFO on groups.
var groupInfoCommands = []Command{
	{
		Name: "consumers", Syntax: "key groupname", Since: "5.0.0", Summary: "List the consumers in a consumer group",
		Flags: ReadOnly, Keys: OneID, Scope: ScopeSweep, Tips: "nondeterministic_output", Parse: noParse(runXInfoConsumers),
	},
	{
		Name: "groups", Syntax: "key", Since: "5.0.0", Summary: "List the consumer groups of a stream",
		Flags: ReadOnly, Keys: OneID, Scope: ScopeSweep, Parse: noParse(runXInfoGroups),
	},
}

func runXInfoConsumers(x *Context) Reply {
	args := x.Input.Args
	container, err := x.stream(args[2])
	if err != nil {
		return Fail(err)
	}
	list := x.newEntryList()
	defer list.release()
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[3])
		switch {
		case c == nil:
			err = errNoSuchKey
			return false
		case g == nil:
			err = noGroup(errNoGroupFor, args[3], args[2])
			return false
		}
		for c := range g.Consumers() {
			if !list.add(Map(
				Bulk("name"), Bulk(c.Name()),
				Bulk("pending"), Count(c.Len()),
				Bulk("idle"), Integer(max(0, tx.Now()-c.Seen())),
			)) {
				break
			}
		}
		return false
	})
	return list.wholeReply(err)
}

// orNull returns an integer, or null if it is not known.
func orNull(n int64, known bool) Reply {
	if !known {
		return Null
	}
	return Integer(n)
}

// runXInfoGroups is XINFO GROUPS. It looks at some groups at a time.
func runXInfoGroups(x *Context) Reply {
	container, err := x.stream(x.Input.Args[2])
	if err != nil {
		return Fail(err)
	}
	var names []string
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		if c := logContainer(tx, container); c != nil {
			names = tx.Groups(c)
		} else {
			err = errNoSuchKey
		}
		return false
	})
	list := x.newEntryList()
	defer list.release()
	if len(names) > 0 {
		x.inPieces(beginLog, func(tx *keyspace.Tx) (more bool) {
			c := logContainer(tx, container)
			if c == nil {
				return false
			}
			s := stateOf(tx, c)
			piece := names[:min(len(names), groupPiece)]
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
func describeGroup(name string, g *groups.Group, s *groups.Stream) Reply {
	return Map(
		Bulk("name"), Bulk(name),
		Bulk("consumers"), Count(g.ConsumersLen()),
		Bulk("pending"), Count(g.Len()),
		Bulk("last-delivered-id"), Bulk(g.Last().String()),
		Bulk("entries-read"), orNull(g.Read(), g.Read() != groups.Unknown),
		Bulk("lag"), orNull(g.Lag(s)),
	)
}

// countGroups returns the number of groups that read a container's log.
func (x *Context) countGroups(c *keyspace.Container) (n int) {
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		n = len(tx.Groups(c))
		return false
	})
	return n
}

// describeGroups returns what XINFO STREAM FULL says of the groups, with up to count entries of each list; 0: all. It
// looks at some pending entries at a time, so lists of a group that others use may be of different moments.
func (x *Context) describeGroups(c *keyspace.Container, count int64) Reply {
	var names []string
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		names = tx.Groups(c)
		return false
	})
	d := groupDescriber{x: x, c: c, count: count, list: x.newEntryList()}
	defer d.list.release()
	groups := []Reply{}
	for _, name := range names {
		if g, ok := d.describe(name); ok {
			groups = append(groups, g)
		}
	}
	if _, err := d.list.whole(); err != nil {
		return Fail(err)
	}
	return Array(groups...)
}

// groupDescriber describes groups for XINFO STREAM FULL.
type groupDescriber struct {
	x     *Context
	c     *keyspace.Container
	count int64      // of the entries in each list; 0: all
	list  *entryList // reserves the memory of them all
}

// describe returns what XINFO STREAM FULL says of a group; false if the group is gone.
func (d *groupDescriber) describe(name string) (reply Reply, ok bool) {
	var head, consumers []Reply
	var names []string
	d.x.inPieces(beginLog, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if ok = g != nil; !ok {
			return false
		}
		s := stateOf(tx, d.c) // of the same moment: a group is never ahead of its log
		head = []Reply{
			Bulk("name"), Bulk(name),
			Bulk("last-delivered-id"), Bulk(g.Last().String()),
			Bulk("entries-read"), orNull(g.Read(), g.Read() != groups.Unknown),
			Bulk("lag"), orNull(g.Lag(&s)),
			Bulk("pel-count"), Count(g.Len()),
		}
		return false
	})
	if !ok {
		return Reply{}, false
	}
	d.x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if ok = g != nil; !ok {
			return false
		}
		for c := range g.Consumers() {
			consumer := Map(Bulk("name"), Bulk(c.Name()), Bulk("seen-time"), Integer(c.Seen()), Bulk("pel-count"), Count(c.Len()))
			if !d.list.reserve(replySize(&consumer), 0) {
				break
			}
			names, consumers = append(names, c.Name()), append(consumers, consumer)
		}
		return false
	})
	if !ok {
		return Reply{}, false
	}
	pending := d.pending(name, func(g *groups.Group, from streamid.ID) iter.Seq[*groups.Pending] { return g.From(from) },
		func(e *groups.Pending) Reply {
			return Array(Bulk(e.ID.String()), Bulk(e.Consumer()), Integer(e.Time), Integer(e.Count))
		})
	for i, consumer := range names {
		own := d.pending(name, func(g *groups.Group, from streamid.ID) iter.Seq[*groups.Pending] {
			if c := g.Consumer(consumer); c != nil {
				return c.From(from)
			}
			return func(func(*groups.Pending) bool) {}
		}, func(e *groups.Pending) Reply { return Array(Bulk(e.ID.String()), Integer(e.Time), Integer(e.Count)) })
		consumers[i].Elems = append(consumers[i].Elems, Bulk("pending"), Array(own...))
	}
	return Map(append(head, Bulk("pending"), Array(pending...), Bulk("consumers"), Array(consumers...))...), true
}

// pending shows the pending entries that from yields, some at a time.
func (d *groupDescriber) pending(
	name string, from func(*groups.Group, streamid.ID) iter.Seq[*groups.Pending], show func(*groups.Pending) Reply,
) []Reply {
	rows, next := []Reply{}, streamid.ID{}
	d.x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		g := tx.Group(d.c, name)
		if g == nil {
			return false
		}
		seen := 0
		for e := range from(g, next) {
			if d.count != 0 && int64(len(rows)) >= d.count {
				return false
			}
			if seen++; seen > pendingPiece {
				next = e.ID
				return true
			}
			row := show(e)
			if !d.list.reserve(replySize(&row), 0) {
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

func parseXPending(in *Input) (Run, error) {
	args := in.Args
	q, err := parsePendingQuery(args)
	if err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		container, err := x.stream(args[1])
		if err != nil {
			return Fail(err)
		}
		reply, list := Reply{}, x.newEntryList()
		defer list.release()
		x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
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
		return q, errSyntax
	}
	q.extended = true
	rest, ok := args[3:], false
	if redisfmt.EqualFold(rest[0], "IDLE") {
		if q.minIdle, ok = redisfmt.ParseInt(rest[1]); !ok {
			return q, errNotInteger
		}
		if len(args) < 8 {
			return q, errSyntax
		}
		rest = rest[2:]
	}
	if q.count, ok = redisfmt.ParseInt(rest[2]); !ok {
		return q, errNotInteger
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
func pendingSummary(g *groups.Group) Reply {
	if g.Len() == 0 {
		return Array(Integer(0), Null, Null, NullArray)
	}
	list := []Reply{}
	for c := range g.Consumers() {
		if n := c.Len(); n > 0 {
			list = append(list, Array(Bulk(c.Name()), Bulk(strconv.Itoa(n))))
		}
	}
	return Array(Count(g.Len()), Bulk(g.First().ID.String()), Bulk(g.End().ID.String()), Array(list...))
}

// some appends some of the entries that the query asks for, and moves on behind them. more reports whether there may be
// others.
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
		if seen++; seen > pendingPiece {
			q.from = e.ID
			return true
		}
		if idle := now - e.Time; q.minIdle == 0 || idle >= q.minIdle {
			if !list.add(Array(Bulk(e.ID.String()), Bulk(e.Consumer()), Integer(max(idle, 0)), Integer(e.Count))) {
				return false
			}
			q.count--
		}
	}
	return false
}
