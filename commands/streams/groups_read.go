package streams

import (
	"math"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/commands/waiting"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
)

// readGroupCommand is XREADGROUP.
var readGroupCommand = engine.Command{
	Name: "xreadgroup", Since: "5.0.0",
	Syntax:  "GROUP group consumer [COUNT count] [BLOCK milliseconds] [CLAIM min-idle-time] [NOACK] STREAMS key [key ...] id [id ...]",
	Summary: "Return new entries from a stream using a consumer group, or access the history of the pending entries for a given consumer. Can block.",
	Differs: "`CLAIM` is that of Redis 8.4, but entries that are gone from the log use up no `COUNT`, and ids other than `>` do not end it for other streams. More than 100 entries go in portions, and other consumers may take entries in between",
	Flags:   engine.Write | engine.Blocking, KeysAfter: engine.Keyword{Word: "STREAMS", From: 4}, Access: "RO access", Scope: engine.ScopeSweep, Reads: readsMany, Parse: parseXReadGroup,
}

// errGroupDollar is the error of $ as an id.
const errGroupDollar = engine.Error("ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the history of this consumer by specifying a proper ID, or use the > ID to get new messages. The $ ID would just return an empty result set.")

// The errors of a command that has waited.
const (
	errStreamGone = engine.Error("UNBLOCKED the stream key no longer exists")
	errGroupGone  = engine.Error("NOGROUP the consumer group this client was blocked on no longer exists")
)

// errNoGroupRead is noGroup of XREADGROUP.
const errNoGroupRead = "NOGROUP No such key '%s' or consumer group '%s' in XREADGROUP with GROUP option"

// groupSource is a stream that XREADGROUP reads.
type groupSource struct {
	key, container string
	after          streamid.ID
	fresh          bool // >: what was never delivered
}

func parseXReadGroup(in *engine.Input) (engine.Run, error) {
	o, err := parseXRead(in.Args, true)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		if reply, over := x.WaitEnded(); over {
			return reply
		}
		if err := o.blocksInScript(x); err != nil {
			return engine.Fail(err)
		}
		if o.block >= 0 && x.HeldByClock() {
			return engine.Reply{}
		}
		waited := x.HasWaited()
		sources, err := groupSources(x, &o, waited)
		if err != nil {
			return engine.Fail(err)
		}
		if waited && o.count == 0 {
			o.count = BlockedCount
		}
		var served []engine.Reply
		oldest := nothingPending
		for i := range sources {
			if waited && served != nil {
				break // as in Redis, one stream ends the wait
			}
			entries, pending, err := readGroup(x, &o, &sources[i])
			if err != nil && served == nil {
				return engine.Fail(err)
			}
			oldest = min(oldest, pending)
			if entries != nil {
				served = append(served, engine.Bulk(sources[i].key), engine.Array(entries...))
			}
		}
		if served == nil {
			return blockOnStreams(x, &o, nil, oldest)
		}
		return StreamsReply(x, served)
	}, nil
}

// groupSources looks up the streams and groups, and reads the ids, in the order in which Redis reports
// errors. waited says that the command has waited for them.
func groupSources(x *engine.Context, o *readOptions, waited bool) (list []groupSource, err error) {
	if err := checkGroupName("name of a consumer", o.consumer); err != nil {
		return nil, err
	}
	for i, key := range o.keys {
		s := groupSource{key: key}
		if s.container, err = stream(x, key); err != nil {
			return nil, err
		}
		x.InPieces(items.BeginGroups, func(tx *keyspace.Tx) (more bool) {
			switch c, g := lookGroup(tx, s.container, o.group); {
			case g != nil:
			case !waited:
				err = noGroup(errNoGroupRead, key, o.group)
			case c == nil:
				err = errStreamGone
			default:
				err = errGroupGone
			}
			return false
		})
		if err != nil {
			return nil, err
		}
		switch id := o.ids[i]; id {
		case "$":
			return nil, errGroupDollar
		case ">":
			s.fresh = true
		default:
			if s.after, err = parseStreamID(id, 0); err != nil {
				return nil, err
			}
			s.fresh = s.after == streamid.Max // as in Redis, where > stands for it
		}
		list = append(list, s)
	}
	return list, nil
}

// readGroup reads a stream for a group. It returns nil if there is nothing to deliver. With CLAIM, oldest is
// then when what is pending longest was delivered, in ms.
func readGroup(x *engine.Context, o *readOptions, s *groupSource) (entries []engine.Reply, oldest int64, err error) {
	list := newEntryList(x)
	defer list.release()
	if !s.fresh {
		readHistory(x, o, s, list)
		entries, err = list.reply()
		return entries, nothingPending, err
	}
	oldest = nothingPending
	if o.claim >= 0 {
		oldest = claimIdle(x, o, s, list)
	}
	if !o.filled(list) {
		deliver(x, o, s, list)
	}
	if entries, err = list.reply(); len(entries) == 0 {
		entries = nil
	}
	return entries, oldest, err
}

// nothingPending stands for the time of what is pending longest.
const nothingPending int64 = math.MaxInt64

// filled reports whether a reply takes no more entries of a stream.
func (o *readOptions) filled(list *entryList) bool {
	return list.full || o.count > 0 && int64(len(list.entries)) >= o.count
}

// claimIdle claims what is pending for long enough, a piece at a time: what waits longest comes first. It
// returns when the next was delivered, in ms. What the log no longer has is pending no more, as after XCLAIM.
func claimIdle(x *engine.Context, o *readOptions, s *groupSource, list *entryList) (next int64) {
	next = nothingPending
	var until int64
	begun, from := false, groups.Pending{Time: math.MinInt64}
	claimed := map[streamid.ID]bool{} // they sort anew, and CLAIM 0 meets them again
	x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, s.container, o.group)
		if g == nil {
			return false
		}
		if !begun {
			until, begun = tx.Now()-o.claim, true // later deliveries are for the next call
		}
		var piece []groups.Pending
		for e := range g.Oldest(from.Time, from.ID) {
			if more = len(piece) == lookupPiece; more {
				break
			}
			piece = append(piece, *e)
		}
		tx.ChangeGroup(c, o.group, func(b *groups.Changes) {
			how := groups.Claim{Consumer: o.consumer, Now: tx.Now(), MinIdle: o.claim, Time: tx.Now(), Count: -1}
			for i := range piece {
				e := &piece[i]
				if from = *e; claimed[e.ID] {
					continue
				}
				entry, there := tx.Deaths(c).Entry(e.ID)
				switch {
				case !there:
					b.Ack([]streamid.ID{e.ID})
					continue
				case e.Time > until:
					next, more = e.Time, false
					return
				case o.filled(list) || !list.admits(len(entry.Body)):
					more = false
					return
				}
				b.Claim(e.ID, &how)
				if o.claim == 0 {
					claimed[e.ID] = true
				}
				list.entries = append(list.entries, deliveredReply(&entry, tx.Now()-e.Time, e.Count))
			}
		})
		if more {
			from.ID, more = from.ID.Next()
		}
		return more
	})
	return next
}

// deliveredReply is EntryReply with how long ago in ms, and how often, the entry was delivered before.
func deliveredReply(e *deathlog.Entry, idle, count int64) engine.Reply {
	r := EntryReply(e)
	r.Elems = append(r.Elems, engine.Integer(idle), engine.Integer(count))
	return r
}

// deliver delivers what is new, a piece at a time. Other consumers may take entries between two pieces.
func deliver(x *engine.Context, o *readOptions, s *groupSource, list *entryList) {
	last, begun := streamid.ID{}, false
	x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, s.container, o.group)
		if g == nil {
			return false
		}
		state := stateOf(tx, c)
		if !begun {
			last, begun = state.Last, true // what dies later is for the next call
		}
		from, ok := g.Last().Next()
		if !ok || !g.Last().Less(last) {
			return false
		}
		most := GroupPiece
		if left := o.count - int64(len(list.entries)); o.count > 0 && left < GroupPiece {
			most = int(left)
		}
		var ids []streamid.ID
		tx.Deaths(c).Range(from, last, false, func(e deathlog.Entry) (more bool) {
			if !list.admits(len(e.Body)) {
				return false
			}
			reply := EntryReply(&e)
			if o.claim >= 0 {
				reply = deliveredReply(&e, 0, 0)
			}
			list.entries, ids = append(list.entries, reply), append(ids, e.ID)
			return len(ids) < most
		})
		if len(ids) == 0 {
			return false
		}
		tx.ChangeGroup(c, o.group, func(b *groups.Changes) { b.Deliver(&state, ids, o.consumer, tx.Now(), o.noAck) })
		if !o.noAck {
			x.Engine.Waiters.NotePending(groupLine(s.container, o.group), tx.Now(), false)
		}
		return len(ids) == GroupPiece && !o.filled(list)
	})
}

// groupLine names the line of those who wait for a group.
func groupLine(container, group string) waiting.Key {
	return waiting.Key{Container: container, Group: group, Grouped: true}
}

// readHistory returns the entries that are pending for the consumer, and counts one more delivery of each. Of
// one that is gone only the id is left.
func readHistory(x *engine.Context, o *readOptions, s *groupSource, list *entryList) {
	after, _ := s.after.Next() // the greatest id is not history
	x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, s.container, o.group)
		if g == nil {
			return false
		}
		tx.ChangeGroup(c, o.group, func(b *groups.Changes) {
			b.See(o.consumer, tx.Now())
			var ids []streamid.ID
			for e := range g.Consumer(o.consumer).From(after) {
				if more = len(ids) == lookupPiece; more || o.count > 0 && int64(len(list.entries)+len(ids)) == o.count {
					break
				}
				ids = append(ids, e.ID)
			}
			var there []streamid.ID
			for _, id := range ids {
				e, ok := tx.Deaths(c).Entry(id)
				if !list.admits(len(e.Body)) {
					more = false
					break
				}
				if !ok {
					list.entries = append(list.entries, engine.Array(engine.Bulk(id.String()), engine.NullArray))
					continue
				}
				there = append(there, id)
				list.entries = append(list.entries, EntryReply(&e))
			}
			b.Redeliver(there, tx.Now())
			if more {
				after, more = ids[len(ids)-1].Next()
			}
		})
		return more
	})
}
