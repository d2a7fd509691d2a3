package commands

import (
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
	"mayfly/keyspace/deaths"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
	"strconv"
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
	list := []Reply{}
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
			list = append(list, Map(
				Bulk("name"), Bulk(c.Name()),
				Bulk("pending"), Count(c.Len()),
				Bulk("idle"), Integer(max(0, tx.Now()-c.Seen())),
			))
		}
		return false
	})
	if err != nil {
		return Fail(err)
	}
	return Array(list...)
}

// orNull returns an integer, or null if it is not known.
func orNull(n int64, known bool) Reply {
	if !known {
		return Null
	}
	return Integer(n)
}

func runXInfoGroups(x *Context) Reply {
	container, err := x.stream(x.Input.Args[2])
	if err != nil {
		return Fail(err)
	}
	list := []Reply{}
	x.inPieces(beginLog, func(tx *keyspace.Tx) (more bool) {
		c := logContainer(tx, container)
		if c == nil {
			err = errNoSuchKey
			return false
		}
		s := stateOf(tx, c)
		for _, name := range tx.Groups(c) {
			g := tx.Group(c, name)
			list = append(list, Map(
				Bulk("name"), Bulk(name),
				Bulk("consumers"), Count(g.ConsumersLen()),
				Bulk("pending"), Count(g.Len()),
				Bulk("last-delivered-id"), Bulk(g.Last().String()),
				Bulk("entries-read"), orNull(g.Read(), g.Read() != groups.Unknown),
				Bulk("lag"), orNull(g.Lag(&s)),
			))
		}
		return false
	})
	if err != nil {
		return Fail(err)
	}
	return Array(list...)
}

// countGroups returns the number of groups that read a container's log.
func (x *Context) countGroups(c *keyspace.Container) (n int) {
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		n = len(tx.Groups(c))
		return false
	})
	return n
}

// describeGroups returns what XINFO STREAM FULL says of the groups, with up to count entries of each list; 0: all.
func (x *Context) describeGroups(c *keyspace.Container, s *deaths.State, count int64) Reply {
	list, stream := []Reply{}, streamOf(s)
	x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
		for _, name := range tx.Groups(c) {
			list = append(list, describeGroup(tx.Group(c, name), name, &stream, count))
		}
		return false
	})
	return Array(list...)
}

// describeGroup returns what XINFO STREAM FULL says of a group.
func describeGroup(g *groups.Group, name string, s *groups.Stream, count int64) Reply {
	pending, consumers := []Reply{}, []Reply{}
	for e := range g.From(streamid.ID{}) {
		if count != 0 && int64(len(pending)) >= count {
			break
		}
		pending = append(pending, Array(Bulk(e.ID.String()), Bulk(e.Consumer()), Integer(e.Time), Integer(e.Count)))
	}
	for c := range g.Consumers() {
		own := []Reply{}
		for e := range c.From(streamid.ID{}) {
			if count != 0 && int64(len(own)) >= count {
				break
			}
			own = append(own, Array(Bulk(e.ID.String()), Integer(e.Time), Integer(e.Count)))
		}
		consumers = append(consumers, Map(
			Bulk("name"), Bulk(c.Name()), Bulk("seen-time"), Integer(c.Seen()),
			Bulk("pel-count"), Count(c.Len()), Bulk("pending"), Array(own...),
		))
	}
	return Map(
		Bulk("name"), Bulk(name),
		Bulk("last-delivered-id"), Bulk(g.Last().String()),
		Bulk("entries-read"), orNull(g.Read(), g.Read() != groups.Unknown),
		Bulk("lag"), orNull(g.Lag(s)),
		Bulk("pel-count"), Count(g.Len()),
		Bulk("pending"), Array(pending...),
		Bulk("consumers"), Array(consumers...),
	)
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
		reply, list := Reply{}, []Reply{}
		x.inPieces(beginGroups, func(tx *keyspace.Tx) (more bool) {
			switch _, g := lookGroup(tx, container, args[2]); {
			case g == nil:
				err = noGroup(errNoGroup, args[1], args[2])
			case !q.extended:
				reply = pendingSummary(g)
			default:
				list, more = q.some(list, g, tx.Now())
			}
			return more
		})
		switch {
		case err != nil:
			return Fail(err)
		case q.extended:
			return Array(list...)
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
func (q *pendingQuery) some(list []Reply, g *groups.Group, now int64) (_ []Reply, more bool) {
	entries := g.From(q.from)
	if q.consumer != nil {
		c := g.Consumer(*q.consumer)
		if c == nil {
			return list, false
		}
		entries = c.From(q.from)
	}
	seen := 0
	for e := range entries {
		if q.count <= 0 || q.to.Less(e.ID) {
			return list, false
		}
		if seen++; seen > pendingPiece {
			q.from = e.ID
			return list, true
		}
		if idle := now - e.Time; q.minIdle == 0 || idle >= q.minIdle {
			list = append(list, Array(Bulk(e.ID.String()), Bulk(e.Consumer()), Integer(max(idle, 0)), Integer(e.Count)))
			q.count--
		}
	}
	return list, false
}
