package keys

import (
	"cmp"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
)

var ExpireCommands = []engine.Command{
	expireRow("expire", "key seconds", "Set a key's time to live in seconds", "1.0.0", items.FromNow, items.Seconds),
	expireRow("expireat", "key unix-time-seconds", "Set the expiration for a key as a UNIX timestamp", "1.2.0",
		items.FromEpoch, items.Seconds),
	ttlRow("expiretime", "Get the expiration Unix timestamp for a key", "7.0.0", "", items.FromEpoch, items.Seconds),
	{
		Name: "persist", Syntax: "key", Since: "2.2.0", Summary: "Remove the expiration from a key",
		Differs: "Exempts from the container's default too",
		Flags:   engine.Write | engine.Fast, Keys: engine.OneKey, Access: "RW update", Walks: engine.Always, Parse: parsePersist,
	},
	expireRow("pexpire", "key milliseconds", "Set a key's time to live in milliseconds", "2.6.0", items.FromNow, items.Milliseconds),
	expireRow("pexpireat", "key unix-time-milliseconds",
		"Set the expiration for a key as a UNIX timestamp specified in milliseconds", "2.6.0", items.FromEpoch, items.Milliseconds),
	ttlRow("pexpiretime", "Get the expiration Unix timestamp for a key in milliseconds", "7.0.0", "",
		items.FromEpoch, items.Milliseconds),
	ttlRow("pttl", "Get the time to live for a key in milliseconds", "2.6.0", "nondeterministic_output",
		items.FromNow, items.Milliseconds),
	ttlRow("ttl", "Get the time to live for a key in seconds", "1.0.0", "nondeterministic_output", items.FromNow, items.Seconds),
}

// expireRow returns a row of the EXPIRE family, whose commands differ only in base and unit.
func expireRow(name, syntax, summary, since string, b items.TimeBase, u items.TimeUnit) engine.Command {
	return engine.Command{
		Name: name, Syntax: syntax + " [NX | XX | GT | LT]", Since: since, Summary: summary,
		Flags: engine.Write | engine.Frees | engine.Fast, Keys: engine.OneKey, Access: "RW update", Walks: engine.Always,
		Differs: "The conditions see the container's default. On a document it writes the member `ttl`, in seconds, rounded up",
		Parse:   func(in *engine.Input) (engine.Run, error) { return parseExpire(in, name, b, u) },
	}
}

// ttlRow returns a row of the TTL family.
func ttlRow(name, summary, since, tips string, b items.TimeBase, u items.TimeUnit) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key [element]", Since: since, Summary: summary,
		Flags: engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Tips: tips,
		Differs: "Counts the end that follows from the container's default too, and returns -1 while the container is off. " +
			"With an element, as in KeyDB, of that field or member",
		Parse: parseTTL(name, engine.Peeking(runTTL(b, u))),
	}
}

// parseExpire parses the EXPIRE family. As in Redis the time is checked even if the key does not exist.
func parseExpire(in *engine.Input, fullName string, b items.TimeBase, u items.TimeUnit) (engine.Run, error) {
	condition, err := items.ParseExpireCondition(in.Args[3:])
	if err != nil {
		return nil, err
	}
	m, err := items.ParseExpireTime(in.Args[2], b, u, fullName)
	if err != nil {
		return nil, err
	}
	key, e := in.Args[1], items.EditTTL(in.MaxValue)
	return func(x *engine.Context) engine.Reply {
		end, ok := m.Deadline(x.Now())
		if !ok {
			return engine.Fail(engine.Errorf(engine.ErrInvalidExpire, fullName))
		}
		c, it, found, err := items.GetItem(x, key)
		switch {
		case err != nil:
			return engine.Fail(err)
		case !found:
			return engine.Flag(false)
		}
		oldEnd, ends := c.Policy().End(it.TS, it.ExpireAt)
		if !condition.Allows(oldEnd, ends, end) {
			return engine.Flag(false)
		}
		if end > x.Now() {
			if err := x.Engine.DiskRefusal(false); err != nil {
				return engine.Fail(err)
			}
		}
		if !items.HasTTLMember(it) || end <= x.Now() {
			putExpiring(x, c, key, it, end)
			return engine.Flag(true)
		}
		ttl := items.CeilSeconds(end - x.Now())
		if ttl > expiry.MaxTTL {
			return engine.Fail(engine.Errorf(engine.ErrInvalidExpire, fullName))
		}
		return e.Set(x, items.DocTarget{Container: c, ID: key, Item: it, Found: true}, ttl, events.Expire)
	}, nil
}

// putExpiring stores an item without a member ttl with a time of death (ms). A time in the past deletes the
// item. A container on hold keeps what the same transaction has created until the hold ends.
func putExpiring(x *engine.Context, c *keyspace.Container, key string, it keyspace.Item, end int64) {
	if c.Policy().Hold != "" {
		end = max(end, x.Now()+1)
	}
	if end <= x.Now() {
		x.Remove(c, key)
		return
	}
	x.Put(c, key, it.Kind, it.Body, end, events.Expire)
}

// setExpired is a SET with a time of death in the past (ms): it deletes the key. Its events are those of
// Redis, which creates the key and then finds it dead. A container on hold keeps the key until the hold ends.
func setExpired(x *engine.Context, c *keyspace.Container, key, value string, end int64) {
	if c.Policy().Hold != "" {
		x.Put(c, key, keyspace.Plain, value, max(end, x.Now()+1), events.Set)
		return
	}
	items.PutDead(x, c, key, events.Set, events.Expire)
}

func parsePersist(in *engine.Input) (engine.Run, error) {
	key, e := in.Args[1], items.EditTTL(in.MaxValue)
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		it, found := x.Tx.Get(c, key)
		if !found || !canExpire(c.Policy(), it) {
			return engine.Flag(false)
		}
		if !items.HasTTLMember(it) {
			x.Put(c, key, it.Kind, it.Body, expiry.Never, events.Persist)
			return engine.Flag(true)
		}
		return e.Set(x, items.DocTarget{Container: c, ID: key, Item: it, Found: true}, expiry.Forever, events.Persist)
	}), nil
}

// canExpire reports whether an item has an expiration to remove, its own or the container's default. Its
// own counts even while the container is off, since TTL may be switched on again. Both count on hold.
func canExpire(p *expiry.Policy, it keyspace.Item) bool {
	if p.Hold != "" {
		released := *p
		released.Hold = ""
		p = &released
	}
	_, ends := p.End(it.TS, it.ExpireAt)
	return ends || it.ExpireAt != expiry.Inherit && it.ExpireAt != expiry.Never
}

// parseTTL bounds the number of arguments, which the syntax does not.
func parseTTL(name string, run engine.Run) func(in *engine.Input) (engine.Run, error) {
	return func(in *engine.Input) (engine.Run, error) {
		if len(in.Args) > 3 {
			return nil, engine.Errorf(engine.ErrWrongArity, name)
		}
		return run, nil
	}
}

func runTTL(b items.TimeBase, u items.TimeUnit) engine.Run {
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		if len(x.Input.Args) > 2 {
			return elementTTL(x, c, b, u)
		}
		it, found := x.Read(c, x.Input.Args[1])
		if !found {
			return engine.Integer(-2)
		}
		return items.TTLReply(c.Policy(), it, x.Now(), b, u)
	})
}

// elementTTL is TTL and its relatives of a field of a hash, or of a member of a set or a sorted set.
func elementTTL(x *engine.Context, c *keyspace.Container, b items.TimeBase, u items.TimeUnit) engine.Reply {
	key := x.Input.Args[1]
	h, kind, found := x.Tx.Elements(c, key)
	x.CountRead(c, key, found)
	switch {
	case !found:
		return engine.Integer(-2)
	case !kind.IsCollection() || kind == keyspace.ListKind:
		return engine.Fail(engine.ErrWrongType)
	}
	e, found := h.Get(x.Input.Args[2])
	if !found {
		return engine.Integer(-2)
	}
	return items.TTLReply(c.Policy(), keyspace.Item{ExpireAt: cmp.Or(e.End, expiry.Never)}, x.Now(), b, u)
}
