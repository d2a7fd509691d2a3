package keys

import (
	"math"
	"slices"
	"strconv"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

var StringCommands = []engine.Command{
	{
		Name: "append", Syntax: "key value", Since: "2.0.0", Summary: "Append a value to a key",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Access: "RW insert", Walks: engine.Always, Parse: parseAppend,
	},
	{
		Name: "decr", Syntax: "key", Since: "1.0.0", Summary: "Decrement the integer value of a key by one",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: engine.NoParse(incrBy(-1)),
	},
	{
		Name: "decrby", Syntax: "key decrement", Since: "1.0.0", Summary: "Decrement the integer value of a key by the given number",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: parseDecrBy,
	},
	{
		Name: "delex", Syntax: "key [IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest]", Since: "8.4.0",
		Summary: "Conditionally removes the specified key based on value or digest comparison.",
		Flags:   engine.Write | engine.Frees | engine.Fast, Keys: engine.OneKey, Access: "RW access delete variable_flags", Blind: func(args []string) bool { return !readsValue(args[2:]) }, Parse: parseDelEx,
	},
	{
		Name: "delifeq", Syntax: "key value", Since: "Valkey 9.0.0", Summary: "Delete key if value matches string.",
		Flags: engine.Write | engine.Frees, Keys: engine.OneKey, Access: "RM access delete", Parse: engine.NoParse(runDelIfEq),
	},
	{
		Name: "digest", Syntax: "key", Since: "8.4.0", Summary: "Returns the XXH3 hash of a string value.",
		Flags: engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Walks: engine.Always, Parse: engine.NoParse(runDigest),
	},
	{
		Name: "get", Syntax: "key", Since: "1.0.0", Summary: "Get the value of a key",
		Differs: "Returns the JSON of a document",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Parse: engine.NoParse(runGet),
	},
	{
		Name: "getdel", Syntax: "key", Since: "6.2.0", Summary: "Get the value of a key and delete the key",
		Differs: "For plain keys only",
		Flags:   engine.Write | engine.Frees | engine.Fast, Keys: engine.OneKey, Access: "RW access delete", Parse: engine.NoParse(runGetDel),
	},
	{
		Name: "getex", Syntax: "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST]",
		Since: "6.2.0", Summary: "Get the value of a key and optionally set its expiration",
		Differs: "With options for plain keys only",
		Flags:   engine.Write | engine.Fast, Keys: engine.OneKey, Walks: engine.IfLonger(2), Parse: parseGetEx,
	},
	{
		Name: "getset", Syntax: "key value", Since: "1.0.0", Summary: "Set the string value of a key and return its old value",
		Differs: "For plain keys only",
		Flags:   engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: parseGetSet,
	},
	{
		Name: "incr", Syntax: "key", Since: "1.0.0", Summary: "Increment the integer value of a key by one",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: engine.NoParse(incrBy(1)),
	},
	{
		Name: "incrby", Syntax: "key increment", Since: "1.0.0", Summary: "Increment the integer value of a key by the given amount",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: parseIncrBy,
	},
	{
		Name: "incrbyfloat", Syntax: "key increment", Since: "2.6.0", Summary: "Increment the float value of a key by the given amount",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: parseIncrByFloat,
	},
	{
		Name: "increx", Since: "8.8.0",
		Syntax: "key [BYFLOAT float | BYINT integer] [LBOUND lowerbound] [UBOUND upperbound] [SATURATE] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] [ENX]",
		Summary: "Increments the numeric value of a key by a number and sets its expiration time. Uses 0 as initial value if the key doesn't exist.",
		Differs: "ENX sees the container's default, of a key that exists. PERSIST exempts from it",
		Flags:   engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Parse: parseIncrEx,
	},
	{
		Name: "mget", Syntax: "key [key ...]", Since: "1.0.0", Summary: "Get the values of all the given keys",
		Differs: "Returns the JSON of documents",
		Flags:   engine.ReadOnly | engine.Fast, Keys: engine.AllKeys, Tips: "request_policy:multi_shard", Parse: engine.NoParse(items.OnDatabase(runMGet)),
	},
	{
		Name: "mset", Syntax: "key value [key value ...]", Since: "1.0.1", Summary: "Set multiple keys to multiple values",
		Flags: engine.Write | engine.DenyOOM, Keys: engine.Pairs, Access: "OW update", Tips: "request_policy:multi_shard response_policy:all_succeeded",
		Parse: parseMSet,
	},
	{
		Name: "msetex", Since: "8.4.0",
		Syntax: "numkeys key value [key value ...] [NX | XX] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		Summary: "Atomically sets multiple string keys with a shared expiration in a single operation.",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.CountedPairs, Counted: true, Access: "OW update", Parse: parseMSetEx,
	},
	{
		Name: "msetnx", Syntax: "key value [key value ...]", Since: "1.0.1",
		Summary: "Set multiple keys to multiple values, only if none of the keys exist",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.Pairs, Access: "OW insert", Tips: "request_policy:multi_shard response_policy:agg_min",
		Parse: parseMSetNX,
	},
	{
		Name: "psetex", Syntax: "key milliseconds value", Since: "2.6.0", Summary: "Set the value and expiration in milliseconds of a key",
		Flags: engine.Write | engine.DenyOOM, Keys: engine.OneKey, Access: "OW update",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseSetEx(in, "psetex", items.Milliseconds) },
	},
	{
		Name: "set",
		Syntax: "key value [NX | XX | IFEQ ifeq-value | IFNE ifne-value | IFDEQ ifdeq-digest | IFDNE ifdne-digest] [GET] " +
			"[EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		Since: "1.0.0", Summary: "Set the string value of a key",
		Differs: "Values have at most `max-value-size`, 16 MiB by default; in Redis 512 MB. The conditions on the value are those of Redis 8.4; IFEQ is in Valkey 8.1 too",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Access: "RW access update variable_flags", Blind: func(args []string) bool { return !readsValue(args[3:]) }, Parse: parseSet,
	},
	{
		Name: "setex", Syntax: "key seconds value", Since: "2.0.0", Summary: "Set the value and expiration of a key",
		Flags: engine.Write | engine.DenyOOM, Keys: engine.OneKey, Access: "OW update",
		Parse: func(in *engine.Input) (engine.Run, error) { return parseSetEx(in, "setex", items.Seconds) },
	},
	{
		Name: "setnx", Syntax: "key value", Since: "1.0.0", Summary: "Set the value of a key, only if the key does not exist",
		Flags: engine.Write | engine.DenyOOM | engine.Fast, Keys: engine.OneKey, Access: "OW insert", Parse: parseSetNX,
	},
	{
		Name: "strlen", Syntax: "key", Since: "2.2.0", Summary: "Get the length of the value stored in a key",
		Flags: engine.ReadOnly | engine.Fast, Keys: engine.OneKey, Access: "RO", Parse: engine.NoParse(runStrlen),
	},
}

// getPlain returns a plain key of the session's database. The error says that the key is a document, or
// that the database was dropped.
func getPlain(x *engine.Context, key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	c, it, found, err = items.GetItem(x, key)
	if found && it.Kind != keyspace.Plain {
		return nil, keyspace.Item{}, false, engine.ErrWrongType
	}
	return c, it, found, err
}

// readPlain is getPlain for a read, which it counts.
func readPlain(x *engine.Context, key string) (c *keyspace.Container, it keyspace.Item, found bool, err error) {
	c, it, found, err = getPlain(x, key)
	if err == nil || err == engine.ErrWrongType {
		x.CountRead(c, key, err != nil || found)
	}
	return c, it, found, err
}

// bulkOrNull returns the body of an item, or null if there is none.
func bulkOrNull(it keyspace.Item, found bool) engine.Reply {
	if !found {
		return engine.Null
	}
	return engine.Bulk(it.Body)
}

// checkLength returns an error if a value is larger than maxSize bytes.
func checkLength(length, maxSize int) error {
	if length > maxSize {
		return errTooLong
	}
	return nil
}

func runGet(x *engine.Context) engine.Reply {
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	return x.ReadBody(c, x.Input.Args[1])
}

func runMGet(x *engine.Context, c *keyspace.Container) engine.Reply {
	keys := x.Input.Args[1:]
	elems := make([]engine.Reply, len(keys))
	for i, key := range keys {
		if elems[i] = x.ReadBody(c, key); elems[i].Kind == engine.KindError { // a key with elements
			elems[i] = engine.Null
		}
	}
	return engine.Array(elems...)
}

func runStrlen(x *engine.Context) engine.Reply {
	_, it, _, err := readPlain(x, x.Input.Args[1])
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Count(len(it.Body))
}

// runDigest is DIGEST. It reads a long value without locks.
func runDigest(x *engine.Context) engine.Reply {
	_, it, found, err := readPlain(x, x.Input.Args[1])
	switch {
	case err != nil:
		return engine.Fail(err)
	case !found:
		return engine.Null
	}
	return x.Compute(len(it.Body), func() engine.Reply { return engine.Bulk(items.Digest(it.Body)) })
}

func runGetDel(x *engine.Context) engine.Reply {
	key := x.Input.Args[1]
	c, it, found, err := readPlain(x, key)
	if err != nil {
		return engine.Fail(err)
	}
	if found {
		x.Remove(c, key)
	}
	return bulkOrNull(it, found)
}

// parseDelEx parses DELEX. Without a condition it is DEL. As in Redis the errors of a condition come after
// those of the key, and a missing key has none.
func parseDelEx(in *engine.Input) (engine.Run, error) {
	switch len(in.Args) {
	case 2:
		return items.OnDatabase(runDel), nil
	case 4:
	default:
		return nil, engine.Errorf(engine.ErrWrongArity, "delex")
	}
	var when items.ValueCondition
	known := when.Parse(in.Args[2:]) > 0
	return func(x *engine.Context) engine.Reply {
		c, it, found, err := getPlain(x, x.Input.Args[1])
		switch {
		case err == engine.ErrWrongType:
			return engine.Fail(errConditionType)
		case err != nil:
			return engine.Fail(err)
		case !found:
			return engine.Flag(false)
		case !known:
			return engine.Fail(errCondition)
		}
		if err := when.Check(); err != nil {
			return engine.Fail(err)
		}
		return engine.Flag(when.Holds(true, it.Body) && x.Remove(c, x.Input.Args[1]))
	}, nil
}

func runDelIfEq(x *engine.Context) engine.Reply {
	c, it, found, err := getPlain(x, x.Input.Args[1])
	if err != nil {
		return engine.Fail(err)
	}
	return engine.Flag(found && it.Body == x.Input.Args[2] && x.Remove(c, x.Input.Args[1]))
}

// parseGetEx parses GETEX. Without options it is GET, of documents too. As in Redis an illegal time is no
// error if the key does not exist.
func parseGetEx(in *engine.Input) (engine.Run, error) {
	key := in.Args[1]
	e, err := items.ParseGetexOptions(in.Args[2:])
	switch {
	case err != nil:
		return nil, err
	case e.Unset():
		return runGet, nil
	}
	var m items.ExpireTime
	var momentErr error
	if !e.Persist {
		m, momentErr = e.Time("getex")
	}
	return func(x *engine.Context) engine.Reply {
		c, it, found, err := readPlain(x, key)
		switch {
		case err != nil:
			return engine.Fail(err)
		case !found:
			return engine.Null
		case momentErr != nil:
			return engine.Fail(momentErr)
		case e.Persist:
			if canExpire(c.Policy(), it) {
				x.Put(c, key, keyspace.Plain, it.Body, expiry.Never, events.Persist)
			}
		default:
			end, ok := m.Deadline(x.Now())
			if !ok {
				return engine.Fail(engine.Errorf(engine.ErrInvalidExpire, "getex"))
			}
			putExpiring(x, c, key, it, end)
		}
		return engine.Bulk(it.Body)
	}, nil
}

// setCommand is a parsed SET, or one of its older variants.
type setCommand struct {
	key, value string
	options    items.SetOptions
	expireAt   items.ExpireTime // if options.expire has a time
	fullName   string
}

// apply sets the key if the conditions hold, and reports in done whether it has. It looks up the old item
// only if the options need it.
func (a setCommand) apply(x *engine.Context) (old keyspace.Item, found, done bool, err error) {
	c, err := x.Database()
	if err != nil {
		return old, false, false, err
	}
	o := a.options
	end, err := a.end(x)
	if err != nil {
		return old, false, false, err
	}
	switch {
	case o.Get:
		old, found = x.Read(c, a.key)
	case o.NX || o.XX || o.If.Given() || o.Expire.Keep:
		old, found = x.Tx.Get(c, a.key)
	}
	switch {
	case (o.Get || o.If.Given()) && found && old.Kind != keyspace.Plain:
		return old, false, false, engine.ErrWrongType
	case o.NX && found, o.XX && !found, !o.If.Holds(found, old.Body):
		return old, found, false, nil
	}
	if o.Expire.Keep && found {
		end = old.ExpireAt
	}
	putValue(x, c, a.key, a.value, &a.options.Expire, end)
	return old, found, true, nil
}

// end returns the time of death that the options give (ms), expiry.Inherit if they give none.
func (a *setCommand) end(x *engine.Context) (int64, error) {
	if a.options.Expire.Unit == 0 {
		return expiry.Inherit, nil
	}
	end, ok := a.expireAt.Deadline(x.Now())
	if !ok {
		return 0, engine.Errorf(engine.ErrInvalidExpire, a.fullName)
	}
	return end, nil
}

// putValue stores a plain key with the end that e, or the key before, has given it.
func putValue(x *engine.Context, c *keyspace.Container, key, value string, e *items.ExpireOption, end int64) {
	if e.Unit != 0 && end <= x.Now() {
		setExpired(x, c, key, value, end)
		return
	}
	x.Put(c, key, keyspace.Plain, value, end, events.Set)
	if e.Unit != 0 {
		x.Notify(events.Expire, c, key)
	}
}

// run is the Run of SET.
func (a setCommand) run(x *engine.Context) engine.Reply {
	old, found, done, err := a.apply(x)
	switch {
	case err != nil:
		return engine.Fail(err)
	case a.options.Get:
		return bulkOrNull(old, found)
	case !done:
		return engine.Null
	}
	return engine.OK
}

func parseSet(in *engine.Input) (engine.Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	if len(in.Args) == 3 {
		return runSet, nil
	}
	options, err := items.ParseSetOptions(in.Args[3:])
	if err != nil {
		return nil, err
	}
	a := setCommand{key: in.Args[1], value: in.Args[2], options: options, fullName: "set"}
	if options.Expire.Unit != 0 {
		if a.expireAt, err = options.Expire.Time(a.fullName); err != nil {
			return nil, err
		}
	}
	return a.run, nil
}

// runSet is SET without options. It needs no closure, which saves 8 % of BenchmarkExecute/SET.
func runSet(x *engine.Context) engine.Reply {
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	x.Put(c, x.Input.Args[1], keyspace.Plain, x.Input.Args[2], expiry.Inherit, events.Set)
	return engine.OK
}

func parseSetEx(in *engine.Input, fullName string, u items.TimeUnit) (engine.Run, error) {
	if err := checkLength(len(in.Args[3]), in.MaxValue); err != nil {
		return nil, err
	}
	e := items.ExpireOption{Text: in.Args[2], Base: items.FromNow, Unit: u}
	m, err := e.Time(fullName)
	if err != nil {
		return nil, err
	}
	return setCommand{
		key: in.Args[1], value: in.Args[3],
		options: items.SetOptions{Expire: e}, expireAt: m, fullName: fullName,
	}.run, nil
}

func parseSetNX(in *engine.Input) (engine.Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	a := setCommand{key: in.Args[1], value: in.Args[2], options: items.SetOptions{NX: true}}
	return func(x *engine.Context) engine.Reply {
		_, _, done, err := a.apply(x)
		if err != nil {
			return engine.Fail(err)
		}
		return engine.Flag(done)
	}, nil
}

func parseGetSet(in *engine.Input) (engine.Run, error) {
	if err := checkLength(len(in.Args[2]), in.MaxValue); err != nil {
		return nil, err
	}
	return setCommand{key: in.Args[1], value: in.Args[2], options: items.SetOptions{Get: true}}.run, nil
}

func parseMSet(in *engine.Input) (engine.Run, error) {
	pairs, err := parsePairs(in.Args[1:], in.MaxValue, "mset")
	if err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		putPairs(x, c, pairs)
		return engine.OK
	}), nil
}

func parseMSetNX(in *engine.Input) (engine.Run, error) {
	pairs, err := parsePairs(in.Args[1:], in.MaxValue, "msetnx")
	if err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		for i := 0; i < len(pairs); i += 2 {
			if _, found := x.Tx.Get(c, pairs[i]); found {
				return engine.Flag(false)
			}
		}
		putPairs(x, c, pairs)
		return engine.Flag(true)
	}), nil
}

// parseMSetEx parses MSETEX. Its numbers are judged as in Redis: more pairs than an int has is an error of
// its own.
func parseMSetEx(in *engine.Input) (engine.Run, error) {
	n, ok := redisfmt.ParseInt(in.Args[1])
	args := in.Args[2:]
	switch {
	case !ok || n < 1 || n > math.MaxInt32:
		return nil, errKeyNumber
	case n > int64(len(args)/2):
		return nil, errKeyPairs
	}
	pairs, err := parsePairs(args[:2*n], in.MaxValue, "msetex")
	if err != nil {
		return nil, err
	}
	a := setCommand{fullName: "msetex"}
	if a.options, err = items.ParseBlindOptions(args[2*n:]); err != nil {
		return nil, err
	}
	if a.options.Expire.Unit != 0 {
		if a.expireAt, err = a.options.Expire.Time(a.fullName); err != nil {
			return nil, err
		}
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		end, err := a.end(x)
		if err != nil {
			return engine.Fail(err)
		}
		o := &a.options
		for i := 0; i < len(pairs) && (o.NX || o.XX); i += 2 {
			if _, found := x.Tx.Get(c, pairs[i]); found == o.NX {
				return engine.Flag(false)
			}
		}
		for i := 0; i < len(pairs); i += 2 {
			if o.Expire.Keep {
				old, _ := x.Tx.Get(c, pairs[i])
				end = old.ExpireAt // the zero item of a missing key inherits its expiration
			}
			putValue(x, c, pairs[i], pairs[i+1], &o.Expire, end)
		}
		return engine.Flag(true)
	}), nil
}

// parsePairs checks the keys and values of MSET, alternating, and returns them.
func parsePairs(pairs []string, maxValue int, fullName string) ([]string, error) {
	if len(pairs)%2 != 0 {
		return nil, engine.Errorf(engine.ErrWrongArity, fullName)
	}
	for i := 1; i < len(pairs); i += 2 {
		if err := checkLength(len(pairs[i]), maxValue); err != nil {
			return nil, err
		}
	}
	return pairs, nil
}

func putPairs(x *engine.Context, c *keyspace.Container, pairs []string) {
	for i := 0; i < len(pairs); i += 2 {
		x.Put(c, pairs[i], keyspace.Plain, pairs[i+1], expiry.Inherit, events.Set)
	}
}

func parseAppend(in *engine.Input) (engine.Run, error) {
	key, tail, maxSize := in.Args[1], in.Args[2], in.MaxValue
	e := items.EditOf(func(value string) string { return value + tail })
	return func(x *engine.Context) engine.Reply {
		c, it, found, err := getPlain(x, key)
		if err != nil {
			return engine.Fail(err)
		}
		if err := checkLength(len(it.Body)+len(tail), maxSize); err != nil {
			return engine.Fail(err)
		}
		if !e.Ready(x, items.DocTarget{Container: c, ID: key, Item: it, Found: found}, len(tail)) {
			return engine.Reply{}
		}
		// The zero item of a missing key inherits its expiration, as a new key does.
		x.Put(c, key, keyspace.Plain, e.Doc.JSON, it.ExpireAt, events.Append)
		if found {
			x.Tx.SetEncoding(c, key, keyspace.Raw)
		}
		return engine.Count(len(e.Doc.JSON))
	}, nil
}

func parseIncrBy(in *engine.Input) (engine.Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[2])
	if !ok {
		return nil, engine.ErrNotInteger
	}
	return incrBy(by), nil
}

func parseDecrBy(in *engine.Input) (engine.Run, error) {
	by, ok := redisfmt.ParseInt(in.Args[2])
	switch {
	case !ok:
		return nil, engine.ErrNotInteger
	case by == -by && by != 0: // the smallest integer has no negation
		return nil, errDecrement
	}
	return incrBy(-by), nil
}

// incrBy returns a Run that adds to the integer of a key, 0 if missing, and keeps the key's expiration.
func incrBy(by int64) engine.Run {
	return func(x *engine.Context) engine.Reply {
		key := x.Input.Args[1]
		c, it, found, err := getPlain(x, key)
		if err != nil {
			return engine.Fail(err)
		}
		var n int64
		if found {
			var ok bool
			if n, ok = redisfmt.ParseInt(it.Body); !ok {
				return engine.Fail(engine.ErrNotInteger)
			}
		}
		n, ok := redisfmt.AddInt(n, by)
		if !ok {
			return engine.Fail(engine.ErrOverflow)
		}
		x.Put(c, key, keyspace.Plain, strconv.FormatInt(n, 10), it.ExpireAt, events.IncrBy)
		return engine.Integer(n)
	}
}

// parseIncrByFloat parses INCRBYFLOAT. As in Redis, errors of the key come before those of the increment.
func parseIncrByFloat(in *engine.Input) (engine.Run, error) {
	key := in.Args[1]
	by, byOK := redisfmt.ParseFloat(in.Args[2])
	return func(x *engine.Context) engine.Reply {
		c, it, found, err := getPlain(x, key)
		if err != nil {
			return engine.Fail(err)
		}
		text := "0"
		if found {
			text = it.Body
		}
		n, ok := redisfmt.ParseFloat(text)
		if !ok || !byOK {
			return engine.Fail(engine.ErrNotFloat)
		}
		sum, ok := redisfmt.AddFloat(n, by)
		if !ok {
			return engine.Fail(engine.ErrNotFinite)
		}
		text = redisfmt.FormatFloat(sum)
		x.Put(c, key, keyspace.Plain, text, it.ExpireAt, events.IncrByFloat)
		x.Tx.SetEncoding(c, key, keyspace.Text)
		return engine.Bulk(text)
	}, nil
}

// readsValue reports whether an option of SET or DELEX reads the value of the key.
func readsValue(options []string) bool {
	return slices.ContainsFunc(options, func(arg string) bool { return redisfmt.EqualFold(arg, "GET") || items.ReadsValue(arg) })
}
