package commands

import (
	"mayfly/commands/jsondoc"
	"mayfly/expiry"
	"mayfly/keyspace"
)

var expireCommands = []Command{
	expireRow("expire", "key seconds", "Set a key's time to live in seconds", "1.0.0", fromNow, seconds),
	expireRow("expireat", "key unix-time-seconds", "Set the expiration for a key as a UNIX timestamp", "1.2.0",
		fromEpoch, seconds),
	ttlRow("expiretime", "Get the expiration Unix timestamp for a key", "7.0.0", "", fromEpoch, seconds),
	{
		Name: "persist", Syntax: "key", Since: "2.2.0", Summary: "Remove the expiration from a key",
		Differs: "Exempts from the container's default too",
		Flags:   Write | Fast, Keys: OneKey, Access: "RW update", Walks: always, Parse: parsePersist,
	},
	expireRow("pexpire", "key milliseconds", "Set a key's time to live in milliseconds", "2.6.0", fromNow, milliseconds),
	expireRow("pexpireat", "key unix-time-milliseconds",
		"Set the expiration for a key as a UNIX timestamp specified in milliseconds", "2.6.0", fromEpoch, milliseconds),
	ttlRow("pexpiretime", "Get the expiration Unix timestamp for a key in milliseconds", "7.0.0", "",
		fromEpoch, milliseconds),
	ttlRow("pttl", "Get the time to live for a key in milliseconds", "2.6.0", "nondeterministic_output",
		fromNow, milliseconds),
	ttlRow("ttl", "Get the time to live for a key in seconds", "1.0.0", "nondeterministic_output", fromNow, seconds),
}

// expireRow returns a row of the EXPIRE family, whose commands differ only in base and unit.
func expireRow(name, syntax, summary, since string, b timeBase, u timeUnit) Command {
	return Command{
		Name: name, Syntax: syntax + " [NX | XX | GT | LT]", Since: since, Summary: summary,
		Flags: Write | Frees | Fast, Keys: OneKey, Access: "RW update", Walks: always,
		Differs: "The conditions see the container's default. On a document it writes the member `ttl`, in seconds, rounded up",
		Parse:   func(in *Input) (Run, error) { return parseExpire(in, name, b, u) },
	}
}

// ttlRow returns a row of the TTL family.
func ttlRow(name, summary, since, tips string, b timeBase, u timeUnit) Command {
	return Command{
		Name: name, Syntax: "key", Since: since, Summary: summary,
		Flags: ReadOnly | Fast, Keys: OneKey, Tips: tips,
		Differs: "Counts the end that follows from the container's default too, and returns -1 while the container is off",
		Parse:   noParse(peeking(runTTL(b, u))),
	}
}

// parseExpire parses the EXPIRE family. As in Redis the time is checked even if the key does not exist.
func parseExpire(in *Input, fullName string, b timeBase, u timeUnit) (Run, error) {
	condition, err := parseExpireCondition(in.Args[3:])
	if err != nil {
		return nil, err
	}
	m, err := parseExpireTime(in.Args[2], b, u, fullName)
	if err != nil {
		return nil, err
	}
	key, e := in.Args[1], editTTL(in.MaxValue)
	return func(x *Context) Reply {
		end, ok := m.deadline(x.Now())
		if !ok {
			return Fail(errorf(errInvalidExpire, fullName))
		}
		c, it, found, err := x.getItem(key)
		switch {
		case err != nil:
			return Fail(err)
		case !found:
			return Flag(false)
		}
		oldEnd, ends := c.Policy().End(it.TS, it.ExpireAt)
		if !condition.allows(oldEnd, ends, end) {
			return Flag(false)
		}
		if end > x.Now() {
			if err := x.Engine.diskRefusal(false); err != nil {
				return Fail(err)
			}
		}
		if !hasTTLMember(it) || end <= x.Now() {
			x.putExpiring(c, key, it, end)
			return Flag(true)
		}
		ttl := ceilSeconds(end - x.Now())
		if ttl > expiry.MaxTTL {
			return Fail(errorf(errInvalidExpire, fullName))
		}
		return e.set(x, docTarget{container: c, id: key, item: it, found: true}, ttl, eventExpire)
	}, nil
}

// ceilSeconds converts ms, more than 0, to a time to live, rounded up so that no item dies early.
func ceilSeconds(ms int64) expiry.TTL { return expiry.TTL((ms-1)/1000 + 1) }

// hasTTLMember reports whether an item may have a member ttl: a document that is an object. The end of any other is a
// moment.
func hasTTLMember(it keyspace.Item) bool {
	return it.Kind == keyspace.Document && jsondoc.IsObject(it.Body)
}

// putExpiring stores an item without a member ttl with a time of death (ms). A time in the past deletes the item. A
// container on hold keeps what the same transaction has created until the hold ends.
func (x *Context) putExpiring(c *keyspace.Container, key string, it keyspace.Item, end int64) {
	if c.Policy().Hold != "" {
		end = max(end, x.Now()+1)
	}
	if end <= x.Now() {
		x.remove(c, key)
		return
	}
	x.put(c, key, it.Kind, it.Body, end, eventExpire)
}

// setExpired is a SET with a time of death in the past (ms): it deletes the key. Its events are those of
// Redis, which creates the key and then finds it dead. A container on hold keeps the key until the hold ends.
func (x *Context) setExpired(c *keyspace.Container, key, value string, end int64) {
	if c.Policy().Hold != "" {
		x.put(c, key, keyspace.Plain, value, max(end, x.Now()+1), eventSet)
		return
	}
	x.putDead(c, key, eventSet, eventExpire)
}

// putDead is a write, with its events, of an item that is dead at once: it deletes the item that is there.
func (x *Context) putDead(c *keyspace.Container, id string, events ...eventKind) {
	if !x.Tx.Delete(c, id) {
		x.notify(eventNew, c, id)
	}
	for _, e := range events {
		x.notify(e, c, id)
	}
	x.notify(eventExpired, c, id)
}

func parsePersist(in *Input) (Run, error) {
	key, e := in.Args[1], editTTL(in.MaxValue)
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		it, found := x.Tx.Get(c, key)
		if !found || !canExpire(c.Policy(), it) {
			return Flag(false)
		}
		if !hasTTLMember(it) {
			x.put(c, key, it.Kind, it.Body, expiry.Never, eventPersist)
			return Flag(true)
		}
		return e.set(x, docTarget{container: c, id: key, item: it, found: true}, expiry.Forever, eventPersist)
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

func runTTL(b timeBase, u timeUnit) Run {
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		it, found := x.read(c, x.Input.Args[1])
		if !found {
			return Integer(-2)
		}
		return ttlReply(c.Policy(), it, x.Now(), b, u)
	})
}

// ttlReply is the time of death of an item, relative to base and rounded to unit: -1 if it does not
// expire. now is in ms.
func ttlReply(p *expiry.Policy, it keyspace.Item, now int64, b timeBase, u timeUnit) Reply {
	end, ok := p.End(it.TS, it.ExpireAt)
	if !ok {
		return Integer(-1)
	}
	if b == fromNow {
		end -= now
	}
	return Integer(end/int64(u) + 2*(end%int64(u))/int64(u)) // halves are rounded up
}
