package commands

import (
	"strconv"

	"mayfly/commands/redisfmt"
	"mayfly/expiry"
	"mayfly/keyspace"
)

var stringCommands = []Command{
	{
		Name: "append", Syntax: "key value", Since: "2.0.0", Summary: "Append a value to a key",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Access: "RW insert", Walks: always, Parse: parseAppend,
	},
	{
		Name: "decr", Syntax: "key", Since: "1.0.0", Summary: "Decrement the integer value of a key by one",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Parse: noParse(incrBy(-1)),
	},
	{
		Name: "decrby", Syntax: "key decrement", Since: "1.0.0", Summary: "Decrement the integer value of a key by the given number",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Parse: parseDecrBy,
	},
	{
		Name: "get", Syntax: "key", Since: "1.0.0", Summary: "Get the value of a key",
		Differs: "Returns the JSON of a document",
		Flags:   ReadOnly | Fast, Keys: OneKey, Parse: noParse(runGet),
	},
	{
		Name: "getdel", Syntax: "key", Since: "6.2.0", Summary: "Get the value of a key and delete the key",
		Differs: "For plain keys only",
		Flags:   Write | Frees | Fast, Keys: OneKey, Access: "RW access delete", Parse: noParse(runGetDel),
	},
	{
		Name: "getex", Syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
		Since: "6.2.0", Summary: "Get the value of a key and optionally set its expiration",
		Differs: "With options for plain keys only",
		Flags:   Write | Fast, Keys: OneKey, Walks: ifLonger(2), Parse: parseGetEx,
	},
	{
		Name: "getset", Syntax: "key value", Since: "1.0.0", Summary: "Set the string value of a key and return its old value",
		Differs: "For plain keys only",
		Flags:   Write | DenyOOM | Fast, Keys: OneKey, Parse: parseGetSet,
	},
	{
		Name: "incr", Syntax: "key", Since: "1.0.0", Summary: "Increment the integer value of a key by one",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Parse: noParse(incrBy(1)),
	},
	{
		Name: "incrby", Syntax: "key increment", Since: "1.0.0", Summary: "Increment the integer value of a key by the given amount",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Parse: parseIncrBy,
	},
	{
		Name: "incrbyfloat", Syntax: "key increment", Since: "2.6.0", Summary: "Increment the float value of a key by the given amount",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Parse: parseIncrByFloat,
	},
	{
		Name: "mget", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Get the values of all the given keys",
		Differs: "Returns the JSON of documents",
		Flags:   ReadOnly | Fast, Keys: AllKeys, Tips: "request_policy:multi_shard", Parse: noParse(onDatabase(runMGet)),
	},
	{
		Name: "mset", Syntax: "key value [key value ...]", Since: "1.0.1", Summary: "Set multiple keys to multiple values",
		Flags: Write | DenyOOM, Keys: Pairs, Access: "OW update", Tips: "request_policy:multi_shard response_policy:all_succeeded",
		Parse: parseMSet,
	},
	{
		Name: "msetnx", Syntax: "key value [key value ...]", Since: "1.0.1",
		Summary: "Set multiple keys to multiple values, only if none of the keys exist",
		Flags:   Write | DenyOOM, Keys: Pairs, Access: "OW insert", Tips: "request_policy:multi_shard response_policy:agg_min",
		Parse: parseMSetNX,
	},
	{
		Name: "psetex", Syntax: "key milliseconds value", Since: "2.6.0", Summary: "Set the value and expiration in milliseconds of a key",
		Flags: Write | DenyOOM, Keys: OneKey, Access: "OW update",
		Parse: func(in *Input) (Run, error) { return parseSetEx(in, "psetex", milliseconds) },
	},
	{
		Name: "set",
		Syntax: "key value [NX | XX] [GET] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		Since: "1.0.0", Summary: "Set the string value of a key",
		Differs: "Values have at most `max-value-size`, 16 MiB by default; in Redis 512 MB",
		Flags:   Write | DenyOOM, Keys: OneKey, Access: "RW access update variable_flags", Parse: parseSet,
	},
	{
		Name: "setex", Syntax: "key seconds value", Since: "2.0.0", Summary: "Set the value and expiration of a key",
		Flags: Write | DenyOOM, Keys: OneKey, Access: "OW update",
		Parse: func(in *Input) (Run, error) { return parseSetEx(in, "setex", seconds) },
	},
	{
		Name: "setnx", Syntax: "key value", Since: "1.0.0", Summary: "Set the value of a key, only if the key does not exist",
		Flags: Write | DenyOOM | Fast, Keys: OneKey, Access: "OW insert", Parse: parseSetNX,
	},
	{
		Name: "strlen", Syntax: "key", Since: "2.2.0", Summary: "Get the length of the value stored in a key",
		Flags: ReadOnly | Fast, Keys: OneKey, Access: "RO", Parse: noParse(runStrlen),
	},
}

// getPlain returns a plain key of the session's database. The error says that the key is a document, or
// that the database was dropped.
func (x *Context) getPlain(key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	c, it, found, err = x.getItem(key)
	if found && it.Kind != keyspace.Plain {
		return nil, keyspace.Item{}, false, errWrongType
	}
	return c, it, found, err
}

// readPlain is getPlain for a read, which it counts.
func (x *Context) readPlain(key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	c, it, found, err = x.getPlain(key)
	if err == nil || err == errWrongType {
		x.countRead(c, key, err != nil || found)
	}
	return c, it, found, err
}

// bulkOrNull returns the body of an item, or null if there is none.
func bulkOrNull(it keyspace.Item, found bool) Reply {
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

// checkLength returns an error if a value is larger than maxSize bytes.
func checkLength(length, maxSize int) error {
	if length > maxSize {
		return errTooLong
	}
	return nil
}

func runGet(x *Context) Reply {
	c, err := x.Database()
	if err != nil {
		return Fail(err)
	}
	return x.readBody(c, x.Input.Args[1])
}

func runMGet(x *Context, c *keyspace.Container) Reply {
	keys := x.Input.Args[1:]
	elems := make([]Reply, len(keys))
	for i, key := range keys {
		elems[i] = x.readBody(c, key)
	}
	return Array(elems...)
}

func runStrlen(x *Context) Reply {
	_, it, _, err := x.readPlain(x.Input.Args[1])
	if err != nil {
		return Fail(err)
	}
	return Count(len(it.Body))
}

func runGetDel(x *Context) Reply {
	key := x.Input.Args[1]
	c, it, found, err := x.readPlain(key)
	if err != nil {
		return Fail(err)
	}
	if found {
		x.remove(c, key)
	}
	return bulkOrNull(it, found)
}

// parseGetEx parses GETEX. Without options it is GET, of documents too. As in Redis an illegal time is no
// error if the key does not exist.
func parseGetEx(in *Input) (Run, error) {
	key := in.Args[1]
	e, err := parseGetexOptions(in.Args[2:])
	switch {
	case err != nil:
		return nil, err
	case e.unset():
		return runGet, nil
	}
	var m expireTime
	var momentErr error
	if !e.persist {
		m, momentErr = e.time("getex")
	}
	return func(x *Context) Reply {
		c, it, found, err := x.readPlain(key)
		switch {
		case err != nil:
			return Fail(err)
		case !found:
			return Null
		case momentErr != nil:
			return Fail(momentErr)
		case e.persist:
			if canExpire(c.Policy(), it) {
				x.put(c, key, keyspace.Plain, it.Body, expiry.Never, eventPersist)
			}
		default:
			end, ok := m.deadline(x.Now())
			if !ok {
				return Fail(errorf(errInvalidExpire, "getex"))
			}
			x.putExpiring(c, key, it, end)
		}
		return Bulk(it.Body)
	}, nil
}

// setCommand is a parsed SET, or one of its older variants.
type setCommand struct {
	key, value string
	options    setOptions
	expireAt   expireTime // if options.expire has a time
	fullName   string
}

// apply sets the key if the conditions hold, and reports in done whether it has. It looks up the old item
// only if the options need it.
func (a setCommand) apply(x *Context) (old keyspace.Item, found, done bool, err error) {
	c, err := x.Database()
	if err != nil {
		return old, false, false, err
	}
	o, end := a.options, expiry.Inherit
	if o.expire.unit != 0 {
		var ok bool
		if end, ok = a.expireAt.deadline(x.Now()); !ok {
			return old, false, false, errorf(errInvalidExpire, a.fullName)
		}
	}
	switch {
	case o.get:
		old, found = x.read(c, a.key)
	case o.nx || o.xx || o.expire.keep:
		old, found = x.Tx.Get(c, a.key)
	}
	switch {
	case o.get && found && old.Kind != keyspace.Plain:
		return old, false, false, errWrongType
	case o.nx && found, o.xx && !found:
		return old, found, false, nil
	case o.expire.unit != 0 && end <= x.Now():
		x.setExpired(c, a.key, a.value, end)
	case o.expire.unit != 0:
		x.put(c, a.key, keyspace.Plain, a.value, end, eventSet)
		x.notify(eventExpire, c, a.key)
	case o.expire.keep && found:
		x.put(c, a.key, keyspace.Plain, a.value, old.ExpireAt, eventSet)
	default:
		x.put(c, a.key, keyspace.Plain, a.value, expiry.Inherit, eventSet)
	}
	return old, found, true, nil
}

// run is the Run of SET.
func (a setCommand) run(x *Context) Reply {
	old, found, done, err := a.apply(x)
	switch {
	case err != nil:
		return Fail(err)
	case a.options.get:
		return bulkOrNull(old, found)
	case !done:
		return Null
	}
	return OK
}

func parseSet(in *Input) (Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	if len(in.Args) == 3 {
		return runSet, nil
	}
	options, err := parseSetOptions(in.Args[3:])
	if err != nil {
		return nil, err
	}
	a := setCommand{key: in.Args[1], value: in.Args[2], options: options, fullName: "set"}
	if options.expire.unit != 0 {
		if a.expireAt, err = options.expire.time(a.fullName); err != nil {
			return nil, err
		}
	}
	return a.run, nil
}

// runSet is SET without options. It needs no closure, which saves 8 % of BenchmarkExecute/SET.
func runSet(x *Context) Reply {
	c, err := x.Database()
	if err != nil {
		return Fail(err)
	}
	x.put(c, x.Input.Args[1], keyspace.Plain, x.Input.Args[2], expiry.Inherit, eventSet)
	return OK
}

func parseSetEx(in *Input, fullName string, u timeUnit) (Run, error) {
	if err := checkLength(len(in.Args[3]), in.MaxValue); err != nil {
		return nil, err
	}
	e := expireOption{text: in.Args[2], base: fromNow, unit: u}
	m, err := e.time(fullName)
	if err != nil {
		return nil, err
	}
	return setCommand{
		key: in.Args[1], value: in.Args[3],
		options: setOptions{expire: e}, expireAt: m, fullName: fullName,
	}.run, nil
}

func parseSetNX(in *Input) (Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	a := setCommand{key: in.Args[1], value: in.Args[2], options: setOptions{nx: true}}
	return func(x *Context) Reply {
		_, _, done, err := a.apply(x)
		if err != nil {
			return Fail(err)
		}
		return Flag(done)
	}, nil
}

func parseGetSet(in *Input) (Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	return setCommand{key: in.Args[1], value: in.Args[2], options: setOptions{get: true}}.run, nil
}

func parseMSet(in *Input) (Run, error) {
	pairs, err := parsePairs(in, "mset")
	if err != nil {
		return nil, err
	}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		x.putPairs(c, pairs)
		return OK
	}), nil
}

func parseMSetNX(in *Input) (Run, error) {
	pairs, err := parsePairs(in, "msetnx")
	if err != nil {
		return nil, err
	}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		for i := 0; i < len(pairs); i += 2 {
			if _, found := x.Tx.Get(c, pairs[i]); found {
				return Flag(false)
			}
		}
		x.putPairs(c, pairs)
		return Flag(true)
	}), nil
}

// parsePairs returns the keys and values of MSET, alternating.
func parsePairs(in *Input, fullName string) ([]string, error) {
	pairs := in.Args[1:]
	if len(pairs)%2 != 0 {
		return nil, errorf(errWrongArity, fullName)
	}
	for i := 1; i < len(pairs); i += 2 {
		if err := checkLength(len(pairs[i]), in.MaxValue); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

func (x *Context) putPairs(c *keyspace.Container, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		x.put(c, pairs[i], keyspace.Plain, pairs[i+1], expiry.Inherit, eventSet)
	}
}

func parseAppend(in *Input) (Run, error) {
	key, tail, maxSize := in.Args[1], in.Args[2], in.MaxValue
	e := editOf(func(value string) string { return value + tail })
	return func(x *Context) Reply {
		c, it, found, err := x.getPlain(key)
		if err != nil {
			return Fail(err)
		}
		if err := checkLength(len(it.Body)+len(tail), maxSize); err != nil {
			return Fail(err)
		}
		if !e.ready(x, docTarget{container: c, id: key, item: it, found: found}, len(tail)) {
			return Reply{}
		}
		// The zero item of a missing key inherits its expiration, as a new key does.
		x.put(c, key, keyspace.Plain, e.doc.JSON, it.ExpireAt, eventAppend)
		if found {
			x.Tx.SetEncoding(c, key, keyspace.Raw)
		}
		return Count(len(e.doc.JSON))
	}, nil
}

func parseIncrBy(in *Input) (Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, errNotInteger
	}
	return incrBy(by), nil
}

func parseDecrBy(in *Input) (Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[2])
	switch {
	case !ok:
		return nil, errNotInteger
	case by == -by && by != 0: // the smallest integer has no negation
		return nil, errDecrement
	}
	return incrBy(-by), nil
}

// incrBy returns a Run that adds to the integer of a key, 0 if missing, and keeps the key's expiration.
func incrBy(by int64) Run {
	return func(x *Context) Reply {
		key := x.Input.Args[1]
		c, it, found, err := x.getPlain(key)
		if err != nil {
			return Fail(err)
		}
		var n int64
		if found {
			var ok bool
			if n, ok = redisfmt.ParseInt(it.Body); !ok {
				return Fail(errNotInteger)
			}
		}
		n, ok := redisfmt.AddInt(n, by)
		if !ok {
			return Fail(errOverflow)
		}
		x.put(c, key, keyspace.Plain, strconv.FormatInt(n, 10), it.ExpireAt, eventIncrBy)
		return Integer(n)
	}
}

// parseIncrByFloat parses INCRBYFLOAT. As in Redis, errors of the key come before those of the increment.
func parseIncrByFloat(in *Input) (Run, error) {
	key := in.Args[1]
	by, byOK := redisfmt.ParseFloat(in.Args[2])
	return func(x *Context) Reply {
		c, it, found, err := x.getPlain(key)
		if err != nil {
			return Fail(err)
		}
		text := "0"
		if found {
			text = it.Body
		}
		n, ok := redisfmt.ParseFloat(text)
		if !ok || !byOK {
			return Fail(errNotFloat)
		}
		sum, ok := redisfmt.AddFloat(n, by)
		if !ok {
			return Fail(errNotFinite)
		}
		text = redisfmt.FormatFloat(sum)
		x.put(c, key, keyspace.Plain, text, it.ExpireAt, eventIncrByFloat)
		x.Tx.SetEncoding(c, key, keyspace.Text)
		return Bulk(text)
	}, nil
}
