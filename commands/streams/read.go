package streams

import (
	"mayfly/commands/engine"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// BlockedCount is the number of entries that XREAD returns of a stream at most, without COUNT, after it has
// waited. As in Redis.
const BlockedCount = 1000

// parseRead parses XREAD.
func parseRead(in *engine.Input) (engine.Run, error) {
	o, err := parseXRead(in.Args, false)
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
		after, err := readFrom(x, &o)
		if err != nil {
			return engine.Fail(err)
		}
		count := o.count
		if count == 0 && x.HasWaited() {
			count = BlockedCount
		}
		var served []engine.Reply
		for i, key := range o.keys {
			list, err := readAfter(x, key, after[i], count)
			if err != nil {
				return engine.Fail(err)
			}
			if len(list) > 0 {
				served = append(served, engine.Bulk(key), engine.Array(list...))
			}
		}
		if served == nil {
			return blockOnStreams(x, &o, after, nothingPending)
		}
		return StreamsReply(x, served)
	}, nil
}

// readAfter returns the entries of a stream behind an id.
func readAfter(x *engine.Context, key string, after streamid.ID, count int64) ([]engine.Reply, error) {
	c, err := log(x, key)
	if err != nil || c == nil {
		return nil, err
	}
	from, ok := after.Next()
	if !ok || !after.Less(x.Tx.Deaths(c).Last()) {
		return nil, nil
	}
	r := entries(x, c, from, streamid.Max, false, count)
	if r.Kind == engine.KindError {
		return nil, engine.Error(r.Str)
	}
	return r.Elems, nil
}

// readFrom returns the ids behind which XREAD reads. $ stands for the last id of a stream when the command
// came, also when it runs again after it has waited, + for the id before that of its last entry.
func readFrom(x *engine.Context, o *readOptions) ([]streamid.ID, error) {
	if after := x.WaitsAfter(); after != nil {
		return after, nil
	}
	after := make([]streamid.ID, len(o.keys))
	for i, key := range o.keys {
		c, err := log(x, key)
		if err != nil {
			return nil, err
		}
		switch redisfmt.CString(o.ids[i]) {
		case "$":
			if c != nil {
				after[i] = x.Tx.Deaths(c).Last()
			}
		case "+": // the last entry, if one is left
			if c != nil {
				x.Tx.Deaths(c).Range(streamid.ID{}, streamid.Max, true, func(e deathlog.Entry) (more bool) {
					after[i], _ = e.ID.Prev()
					return false
				})
			}
		case ">":
			return nil, errReadNew
		default:
			if after[i], err = parseStreamID(o.ids[i], 0); err != nil {
				return nil, err
			}
		}
	}
	return after, nil
}
