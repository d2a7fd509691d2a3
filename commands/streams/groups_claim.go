package streams

import (
	"math"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// claimOptions are what XCLAIM has besides the group and the ids.
type claimOptions struct {
	groups.Claim
	justID bool
	last   streamid.ID // LASTID
}

// parseClaim reads the arguments of XCLAIM behind the consumer.
func parseClaim(args []string, now int64) (ids []streamid.ID, o claimOptions, err error) {
	minIdle, ok := redisfmt.ParseInt(args[4])
	if !ok {
		return nil, o, engine.Errorf(errMinIdle, "XCLAIM")
	}
	o.Claim = groups.Claim{Consumer: args[3], Now: now, MinIdle: max(minIdle, 0), Time: now, Count: -1}
	rest := args[5:]
	for len(rest) > 0 {
		id, err := parseStreamID(rest[0], 0)
		if err != nil {
			break
		}
		ids, rest = append(ids, id), rest[1:]
	}
	number := func(name string) (n int64, err error) {
		if n, ok = redisfmt.ParseInt(rest[1]); !ok {
			err = engine.Errorf("ERR Invalid %s option argument for XCLAIM", name)
		}
		rest = rest[1:]
		return n, err
	}
	for ; len(rest) > 0 && err == nil; rest = rest[1:] {
		switch word, more := rest[0], len(rest) > 1; {
		case redisfmt.EqualFold(word, "FORCE"):
			o.Force = true
		case redisfmt.EqualFold(word, "JUSTID"):
			o.justID, o.KeepCount = true, true
		case redisfmt.EqualFold(word, "IDLE") && more:
			o.Time, err = number("IDLE")
			o.Time = now - o.Time
		case redisfmt.EqualFold(word, "TIME") && more:
			o.Time, err = number("TIME")
		case redisfmt.EqualFold(word, "RETRYCOUNT") && more:
			o.Count, err = number("RETRYCOUNT")
		case redisfmt.EqualFold(word, "LASTID") && more:
			rest = rest[1:]
			o.last, err = parseStreamID(rest[0], 0)
		default:
			err = engine.Errorf("ERR Unrecognized XCLAIM option '%s'", engine.Shown(word))
		}
	}
	if o.Time < 0 || o.Time > now { // clients may compute it from a clock of their own
		o.Time = now
	}
	return ids, o, err
}

func runXClaim(x *engine.Context) engine.Reply {
	args := x.Input.Args
	container, err := stream(x, args[1])
	if err != nil {
		return engine.Fail(err)
	}
	var ids []streamid.ID
	var o claimOptions
	claimed, parsed := newEntryList(x), false
	defer claimed.release()
	x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[2])
		if g == nil {
			err = noGroup(errNoGroup, args[1], args[2])
			return false
		}
		if !parsed {
			if ids, o, err = parseClaim(args, tx.Now()); err == nil {
				err = checkGroupName("name of a consumer", args[3])
			}
			if err != nil {
				return false
			}
			parsed = true
		}
		piece := ids[:min(len(ids), lookupPiece)]
		tx.ChangeGroup(c, args[2], func(b *groups.Changes) {
			if g.Last().Less(o.last) {
				b.SetID(o.last, g.Read())
			}
			for _, id := range piece {
				if claimed.full {
					return
				}
				if e, ok := tx.Deaths(c).Entry(id); !ok {
					b.Ack([]streamid.ID{id})
				} else if claimed.admitsClaim(&e, o.justID) && b.Claim(id, &o.Claim) {
					claimed.entries = append(claimed.entries, claimedReply(&e, o.justID))
				}
			}
		})
		x.Engine.Waiters.NotePending(groupLine(container, args[2]), o.Time, o.Force || o.Time < tx.Now())
		ids = ids[len(piece):]
		return len(ids) > 0 && !claimed.full
	})
	var list []engine.Reply
	if err == nil {
		list, err = claimed.reply()
	}
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Array(list...)
}

// admitsClaim reports whether there is room for an entry that may be claimed.
func (l *entryList) admitsClaim(e *deathlog.Entry, justID bool) bool {
	if justID {
		return l.reserve(idSize, 0)
	}
	return l.admits(len(e.Body))
}

// idSize is about the size in bytes of an id in a reply.
const idSize = 128

// claimedReply is the reply of an entry that was claimed.
func claimedReply(e *deathlog.Entry, justID bool) engine.Reply {
	if justID {
		return engine.Bulk(e.ID.String())
	}
	return EntryReply(e)
}

// The defaults and limits of XAUTOCLAIM, as in Redis.
const (
	claimCount    = 100
	claimAttempts = 10 // looked at for each that is to be claimed
	mostClaims    = math.MaxInt64 / 16
)

func parseXAutoClaim(in *engine.Input) (engine.Run, error) {
	args := in.Args
	minIdle, ok := redisfmt.ParseInt(args[4])
	if !ok {
		return nil, engine.Errorf(errMinIdle, "XAUTOCLAIM")
	}
	start, err := parseIntervalStart(args[5])
	if err != nil {
		return nil, err
	}
	count, justID := int64(claimCount), false
	for i := 6; i < len(args); i++ {
		switch {
		case redisfmt.EqualFold(args[i], "COUNT") && i+1 < len(args):
			i++
			if count, ok = redisfmt.ParseInt(args[i]); !ok || count < 1 || count > mostClaims {
				return nil, errClaimCount
			}
		case redisfmt.EqualFold(args[i], "JUSTID"):
			justID = true
		default:
			return nil, engine.ErrSyntax
		}
	}
	return func(x *engine.Context) engine.Reply {
		return autoClaim(x, args, groups.Claim{Consumer: args[3], MinIdle: max(minIdle, 0), Count: -1, KeepCount: justID}, start, count, justID)
	}, nil
}

// errClaimCount is the error of Redis.
const errClaimCount = engine.Error("ERR COUNT must be > 0")

// autoClaim is XAUTOCLAIM. It looks at a piece of the pending entries at a time.
func autoClaim(x *engine.Context, args []string, how groups.Claim, start streamid.ID, count int64, justID bool) engine.Reply {
	container, err := stream(x, args[1])
	if err != nil {
		return engine.Fail(err)
	}
	claimed, deleted := newEntryList(x), []engine.Reply{}
	defer claimed.release()
	attempts := count * claimAttempts
	next := streamid.ID{}
	x.InPieces(items.BeginLog, func(tx *keyspace.Tx) (more bool) {
		c, g := lookGroup(tx, container, args[2])
		if g == nil {
			err = noGroup(errNoGroup, args[1], args[2])
			return false
		}
		if err = checkGroupName("name of a consumer", args[3]); err != nil {
			return false
		}
		how.Now, how.Time = tx.Now(), tx.Now()
		var piece []streamid.ID
		for e := range g.From(start) {
			if len(piece) == lookupPiece {
				more = true
				break
			}
			piece = append(piece, e.ID)
		}
		tx.ChangeGroup(c, args[2], func(b *groups.Changes) {
			for i, id := range piece {
				if attempts == 0 || count == 0 {
					next, more = id, false
					return
				}
				attempts--
				e, ok := tx.Deaths(c).Entry(id)
				switch {
				case !claimed.admitsClaim(&e, justID || !ok):
					next, more = id, false
					return
				case !ok:
					b.Ack(piece[i : i+1])
					deleted = append(deleted, engine.Bulk(id.String()))
					count--
				case b.Claim(id, &how):
					claimed.entries = append(claimed.entries, claimedReply(&e, justID))
					count--
				}
			}
		})
		if more {
			start, _ = piece[len(piece)-1].Next()
		}
		return more
	})
	if err == nil && len(deleted) == 0 { // else the reply tells what it has removed, which there was room for
		_, err = claimed.reply()
	}
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Array(engine.Bulk(next.String()), engine.Array(claimed.entries...), engine.Array(deleted...))
}
