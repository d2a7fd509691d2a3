package items

import (
	"math"
	"math/rand/v2"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// HasTTLMember reports whether an item may have a member ttl: a document that is an object. The end of any
// other is a moment.
func HasTTLMember(it keyspace.Item) bool {
	return it.Kind == keyspace.Document && jsondoc.IsObject(it.Body)
}

// PutDead is a write, with its events, of an item that is dead at once: it deletes the item that is there.
func PutDead(x *engine.Context, c *keyspace.Container, id string, kinds ...events.Kind) {
	if !x.Tx.Delete(c, id) {
		x.Notify(events.New, c, id)
	}
	for _, e := range kinds {
		x.Notify(e, c, id)
	}
	x.Notify(events.Expired, c, id)
}

// TTLReply is the time of death of an item, relative to base and rounded to unit: -1 if it does not
// expire. now is in ms.
func TTLReply(p *expiry.Policy, it keyspace.Item, now int64, b TimeBase, u TimeUnit) engine.Reply {
	end, ok := p.End(it.TS, it.ExpireAt)
	if !ok {
		return engine.Integer(-1)
	}
	if b == FromNow {
		end -= now
	}
	return engine.Integer(end/int64(u) + 2*(end%int64(u))/int64(u)) // halves are rounded up
}

// TypeName returns the name that TYPE gives a kind of item. Tools switch on that of RedisJSON.
func TypeName(k keyspace.Kind) string {
	switch k {
	case keyspace.Document:
		return "ReJSON-RL"
	case keyspace.HashKind:
		return "hash"
	case keyspace.SetKind:
		return "set"
	case keyspace.ZSetKind:
		return "zset"
	case keyspace.ListKind:
		return "list"
	}
	return "string"
}

// Chance returns true with the probability of n in all.
func Chance(n, all int64) bool { return rand.Int64N(all) < n }

// OnDatabase returns a Run that calls do with the session's database.
func OnDatabase(do func(x *engine.Context, c *keyspace.Container) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		c, err := x.Database()
		if err != nil {
			return engine.Fail(err)
		}
		return do(x, c)
	}
}

// GetItem returns the item of a key of the session's database. The error says that the database was
// dropped.
func GetItem(x *engine.Context, key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	if c, err = x.Database(); err != nil {
		return nil, it, false, err
	}
	it, found = x.Tx.Get(c, key)
	return c, it, found, nil
}

// Scan is [keyspace.Tx.Scan], but collects items in portions and visits them without locks, unless the
// transaction locks all partitions. So visit delays no other command. It ends early if the command is
// abandoned.
func Scan(x *engine.Context, c *keyspace.Container, cursor uint64, count int, visit func(id string, it keyspace.Item)) uint64 {
	const maxPortion = 1000 // items; bounds the time for which a partition is locked
	type found struct {
		id string
		it keyspace.Item
	}
	var list []found
	watch := x.WatchClient()
	for {
		portion := min(count, maxPortion)
		list = list[:0]
		cursor = x.Tx.Scan(c, cursor, portion, func(id string, it keyspace.Item) { list = append(list, found{id, it}) })
		for i := range list {
			if watch.Abandoned(len(list[i].id)) {
				return 0
			}
			visit(list[i].id, list[i].it)
		}
		if count -= portion; count == 0 || cursor == 0 {
			return cursor
		}
	}
}

// DatabaseByName returns the container that a command names where Redis has the number of a database. A name
// that is a number is also the container's number.
func DatabaseByName(x *engine.Context, name string) (*keyspace.Container, error) {
	if c := x.Tx.Container(name); c != nil {
		return c, nil
	}
	switch n, ok := redisfmt.ParseInt(name); {
	case !ok:
		return nil, engine.ErrNotInteger
	case n < math.MinInt32 || n > math.MaxInt32:
		return nil, errNotInt32
	case n >= 0:
		if c := x.Tx.ContainerOfDB(uint32(n)); c != nil {
			return c, nil
		}
	}
	return nil, engine.ErrDatabase
}
