package commands

import (
	"mayfly/commands/redisfmt"
	"mayfly/keyspace/streamid"
)

// blockedCount is the number of entries that XREAD returns of a stream at most, without COUNT, after it has waited. As
// in Redis.
const blockedCount = 1000

// parseRead parses XREAD.
func parseRead(in *Input) (Run, error) {
	o, err := parseXRead(in.Args, false)
	if err != nil {
		return nil, err
	}
	return func(x *Context) Reply {
		if reply, over := x.waitEnded(); over {
			return reply
		}
		after, err := x.readFrom(&o)
		if err != nil {
			return Fail(err)
		}
		count := o.count
		if count == 0 && x.hasWaited() {
			count = blockedCount
		}
		var served []Reply
		for i, key := range o.keys {
			list, err := x.readAfter(key, after[i], count)
			if err != nil {
				return Fail(err)
			}
			if len(list) > 0 {
				served = append(served, Bulk(key), Array(list...))
			}
		}
		if served == nil {
			return x.blockOnStreams(&o, after)
		}
		return streamsReply(x, served)
	}, nil
}

// readAfter returns the entries of a stream behind an id.
func (x *Context) readAfter(key string, after streamid.ID, count int64) ([]Reply, error) {
	c, err := x.log(key)
	if err != nil || c == nil {
		return nil, err
	}
	from, ok := after.Next()
	if !ok || !after.Less(x.Tx.Deaths(c).Last()) {
		return nil, nil
	}
	r := x.entries(c, from, streamid.Max, false, count)
	if r.Kind == KindError {
		return nil, Error(r.Str)
	}
	return r.Elems, nil
}

// readFrom returns the ids behind which XREAD reads. $ stands for the last id of a stream when the command came, also
// when it runs again after it has waited.
func (x *Context) readFrom(o *readOptions) ([]streamid.ID, error) {
	if after := x.waitsAfter(); after != nil {
		return after, nil
	}
	after := make([]streamid.ID, len(o.keys))
	for i, key := range o.keys {
		c, err := x.log(key)
		if err != nil {
			return nil, err
		}
		switch redisfmt.CString(o.ids[i]) {
		case "$":
			if c != nil {
				after[i] = x.Tx.Deaths(c).Last()
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
