package hashes

import (
	"math"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// EndCommands are the commands on the ends of fields, of Redis 7.4 and 8.0, and of KeyDB.
var EndCommands = []engine.Command{
	member("expiremember", "key element time [s | ms]", "Set the time to live of an element of a key", items.FromNow),
	member("expirememberat", "key element unix-time [s | ms]", "Set the expiration of an element of a key as a UNIX timestamp", items.FromEpoch),
	ends("hexpire", "seconds", "Set expiry for hash field using relative time to expire (seconds)", items.FromNow, items.Seconds),
	ends("hexpireat", "unix-time-seconds", "Set expiry for hash field using an absolute Unix timestamp (seconds)", items.FromEpoch, items.Seconds),
	left("hexpiretime", "Returns the expiration time of a hash field as a Unix timestamp, in seconds.", items.FromEpoch, items.Seconds),
	row("hgetdel", "key FIELDS numfields field [field ...]", "8.0.0", "Returns the value of a field and deletes it from the hash.", frees|fast, "RW access delete", "", parseHGetDel),
	row("hgetex", "key [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | PERSIST] FIELDS numfields field [field ...]", "8.0.0", "Get the value of one or more fields of a given hash key, and optionally set their expiration.", write|fast, "RW access update", "", parseHGetEx),
	row("hpersist", "key FIELDS numfields field [field ...]", "7.4.0", "Removes the expiration time for each specified field", write|fast, "RW update", "", parseHPersist),
	ends("hpexpire", "milliseconds", "Set expiry for hash field using relative time to expire (milliseconds)", items.FromNow, items.Milliseconds),
	ends("hpexpireat", "unix-time-milliseconds", "Set expiry for hash field using an absolute Unix timestamp (milliseconds)", items.FromEpoch, items.Milliseconds),
	left("hpexpiretime", "Returns the expiration time of a hash field as a Unix timestamp, in msec.", items.FromEpoch, items.Milliseconds),
	left("hpttl", "Returns the TTL in milliseconds of a hash field.", items.FromNow, items.Milliseconds),
	row("hsetex", "key [FNX | FXX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL] FIELDS numfields field value [field value ...]", "8.0.0", "Set the value of one or more fields of a given hash key, and optionally set their expiration.", grow|fast, "RW update", "", parseHSetEx),
	left("httl", "Returns the TTL in seconds of a hash field.", items.FromNow, items.Seconds),
}

const (
	errFields       = engine.Error("ERR Mandatory argument FIELDS is missing or not at the right position")
	errFieldCount   = engine.Error("ERR Number of fields must be a positive integer")
	errFieldZero    = engine.Error("ERR Parameter `numFields` should be greater than 0")
	errFieldsGiven  = engine.Error("ERR The `numfields` parameter must match the number of arguments")
	errFieldsEx     = engine.Error("ERR invalid number of fields")
	errNegativeTime = engine.Error("ERR invalid expire time, must be >= 0")
	errNoTime       = engine.Error("ERR missing expire time")
	errOneCondition = engine.Error("ERR Only one of FXX or FNX arguments can be specified")
	errOneTime      = engine.Error("ERR Only one of EX, PX, EXAT, PXAT or KEEPTTL arguments can be specified")
	errUnknown      = "ERR unknown argument: %s"

	// The replies for a field.
	noField, noEnd, unmet, set, deleted = -2, -1, 0, 1, 2
)

func ends(name, unit, summary string, b items.TimeBase, u items.TimeUnit) engine.Command {
	return row(name, "key "+unit+" [NX | XX | GT | LT] FIELDS numfields field [field ...]", "7.4.0", summary, frees|fast, "RW update", "",
		func(in *engine.Input) (engine.Run, error) { return parseHExpire(in, name, b, u) })
}

func left(name, summary string, b items.TimeBase, u items.TimeUnit) engine.Command {
	return row(name, "key FIELDS numfields field [field ...]", "7.4.0", summary, read|fast, "", random,
		func(in *engine.Input) (engine.Run, error) { return parseHTTL(in, b, u) })
}

func member(name, syntax, summary string, b items.TimeBase) engine.Command {
	return row(name, syntax, "KeyDB 5.1.0", summary, frees|fast, "RW update", "",
		func(in *engine.Input) (engine.Run, error) { return parseExpireMember(in, name, b) })
}

// latest is the end that comes last, in ms, as in Redis.
const latest = 1<<46 - 1

// moment is the time of an end as a client gave it.
type moment struct {
	ms   int64
	base items.TimeBase
	name string // of the command
}

// parseMoment reads a time. It may be too far away, which end tells.
func parseMoment(text, name string, b items.TimeBase, u items.TimeUnit) (m moment, err error) {
	n, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return m, engine.ErrNotInteger
	case n < 0:
		return m, errNegativeTime
	case n > latest/int64(u):
		return m, engine.Errorf(engine.ErrInvalidExpire, name)
	}
	return moment{n * int64(u), b, name}, nil
}

// end returns the end in ms.
func (m moment) end(x *engine.Context) (int64, error) {
	if m.base == items.FromEpoch {
		return m.ms, nil
	}
	if m.ms > latest-x.Now() {
		return 0, engine.Errorf(engine.ErrInvalidExpire, m.name)
	}
	return x.Now() + m.ms, nil
}

// parseFields reads FIELDS, a number and that many fields, which end the arguments.
func parseFields(args []string, zero error) ([]string, error) {
	if len(args) < 1 || !redisfmt.EqualFold(args[0], "FIELDS") {
		return nil, errFields
	}
	if len(args) < 2 {
		return nil, errFieldsGiven
	}
	n, ok := redisfmt.ParseInt(args[1])
	switch {
	case !ok || n < 1:
		return nil, zero
	case n != int64(len(args)-2):
		return nil, errFieldsGiven
	}
	return args[2:], nil
}

// endCounts reports whether a field has an end that counts: in a container that is off or on hold it sleeps.
func endCounts(c *keyspace.Container, e keyspace.Element) bool {
	_, ok := c.Policy().End(0, e.End)
	return e.End != 0 && ok
}

// setEnd gives a field an end, or deletes it if that has come, and returns what it has done. A key that is
// missing is made for that, so that its birth and death are told. A container on hold keeps what the same
// transaction has created.
func setEnd(x *engine.Context, h *items.Change, e keyspace.Element, end int64) int {
	if h.C.Policy().Hold != "" {
		end = max(end, x.Now()+1)
	}
	if end > x.Now() {
		h.Put(e.Field, e.Value, end)
		return set
	}
	if !h.Exists() {
		h.Put(e.Field, "", 0)
	}
	h.Delete(e.Field)
	return deleted
}

// event returns the events of changes with these results.
func event(results []engine.Reply) []string {
	events := []string(nil)
	for _, r := range results {
		switch {
		case r.Int == deleted:
			return []string{eventHDel}
		case r.Int == set:
			events = []string{eventHExpire}
		}
	}
	return events
}

func parseHExpire(in *engine.Input, name string, b items.TimeBase, u items.TimeUnit) (engine.Run, error) {
	m, err := parseMoment(in.Args[2], name, b, u)
	at := 3
	word := func(w string) bool { return redisfmt.EqualFold(in.Args[3], w) }
	if word("NX") || word("XX") || word("GT") || word("LT") {
		at = 4
	}
	when, _ := items.ParseExpireCondition(in.Args[3:at])
	var fields []string
	if err == nil {
		fields, err = parseFields(in.Args[at:], errFieldZero)
	}
	return onChange(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		end := int64(0)
		if err == nil {
			end, err = m.end(x)
		}
		if err != nil { // the type of the key comes first
			return engine.Fail(err), nil
		}
		results := make([]engine.Reply, len(fields))
		for i := range h.ByPage(fields, 1) {
			e, found := h.Get(fields[i])
			n := noField
			if found {
				if n = unmet; when.Allows(e.End, endCounts(h.C, e), end) {
					n = setEnd(x, h, e, end)
				}
			}
			results[i] = engine.Count(n)
		}
		return engine.Array(results...), event(results)
	}), nil
}

func parseHPersist(in *engine.Input) (engine.Run, error) {
	fields, err := parseFields(in.Args[2:], errFieldCount)
	return onChange(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		if err != nil {
			return engine.Fail(err), nil
		}
		var events []string
		results := make([]engine.Reply, len(fields))
		for i := range h.ByPage(fields, 1) {
			switch e, found := h.Get(fields[i]); {
			case !found:
				results[i] = engine.Integer(noField)
			case e.End == 0:
				results[i] = engine.Integer(noEnd)
			default:
				h.Put(fields[i], e.Value, 0)
				results[i], events = engine.Integer(set), []string{eventHPersist}
			}
		}
		return engine.Array(results...), events
	}), nil
}

func parseHTTL(in *engine.Input, b items.TimeBase, u items.TimeUnit) (engine.Run, error) {
	fields, err := parseFields(in.Args[2:], errFieldCount)
	return func(x *engine.Context) engine.Reply {
		c, h, _, wrong := items.GetElements(x, x.Input.Args[1], keyspace.HashKind)
		switch {
		case wrong != nil:
			return engine.Fail(wrong)
		case err != nil:
			return engine.Fail(err)
		}
		results := make([]engine.Reply, 0, len(fields))
		for _, field := range fields {
			e, found := h.Get(field)
			n := int64(noEnd)
			switch {
			case !found:
				n = noField
			case endCounts(c, e):
				if n = e.End; b == items.FromNow {
					n -= x.Now()
				}
				n = (n + int64(u) - 1) / int64(u)
			}
			results = append(results, engine.Integer(n))
		}
		return engine.Array(results...)
	}, nil
}

func parseHGetDel(in *engine.Input) (engine.Run, error) {
	fields, err := parseFields(in.Args[2:], errFieldCount)
	return onChange(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		if err != nil {
			return engine.Fail(err), nil
		}
		var events []string
		values := make([]engine.Reply, len(fields))
		for i := range h.ByPage(fields, 1) {
			e, found := h.Get(fields[i])
			values[i] = valueOrNull(e, found)
			if h.Delete(fields[i]) {
				events = []string{eventHDel}
			}
		}
		return engine.Array(values...), events
	}), nil
}

// timeOption reads EX, PX, EXAT or PXAT.
func timeOption(word string) (b items.TimeBase, u items.TimeUnit, ok bool) {
	switch {
	case redisfmt.EqualFold(word, "EX"):
		return items.FromNow, items.Seconds, true
	case redisfmt.EqualFold(word, "PX"):
		return items.FromNow, items.Milliseconds, true
	case redisfmt.EqualFold(word, "EXAT"):
		return items.FromEpoch, items.Seconds, true
	case redisfmt.EqualFold(word, "PXAT"):
		return items.FromEpoch, items.Milliseconds, true
	}
	return b, u, false
}

func parseHGetEx(in *engine.Input) (engine.Run, error) {
	at := 2
	var m moment
	var err error
	b, u, timed := timeOption(in.Args[2])
	persist := redisfmt.EqualFold(in.Args[2], "PERSIST")
	switch {
	case timed:
		at = 4
		m, err = parseMoment(in.Args[3], "hgetex", b, u)
	case persist:
		at = 3
	}
	var fields []string
	if err == nil && at+1 == len(in.Args) && redisfmt.EqualFold(in.Args[at], "FIELDS") {
		err = engine.Errorf(engine.ErrWrongArity, "hgetex")
	}
	if err == nil {
		fields, err = parseFields(in.Args[at:], errFieldCount)
	}
	return onChange(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		end := int64(0)
		if err == nil && timed {
			end, err = m.end(x)
		}
		if err != nil {
			return engine.Fail(err), nil
		}
		values, results := make([]engine.Reply, len(fields)), []engine.Reply(nil)
		var events []string
		for i := range h.ByPage(fields, 1) {
			e, found := h.Get(fields[i])
			values[i] = valueOrNull(e, found)
			switch {
			case !found:
			case timed:
				results = append(results, engine.Count(setEnd(x, h, e, end)))
			case persist && e.End != 0:
				h.Put(fields[i], e.Value, 0)
				events = []string{eventHPersist}
			}
		}
		if timed {
			events = event(results)
		}
		return engine.Array(values...), events
	}), nil
}

// setEx is a parsed HSETEX.
type setEx struct {
	fnx, fxx, keep, timed bool
	at                    moment
	pairs                 []string
}

func parseSetEx(args []string) (o setEx, err error) {
	for i := 2; i < len(args); i++ {
		b, u, timed := timeOption(args[i])
		keep, fnx, fxx := redisfmt.EqualFold(args[i], "KEEPTTL"), redisfmt.EqualFold(args[i], "FNX"), redisfmt.EqualFold(args[i], "FXX")
		switch {
		case redisfmt.EqualFold(args[i], "FIELDS"):
			if i >= len(args)-3 {
				return o, engine.Errorf(engine.ErrWrongArity, "hsetex")
			}
			n, ok := redisfmt.ParseInt(args[i+1])
			if !ok || n < 1 || n > math.MaxInt32 {
				return o, errFieldsEx
			}
			o.pairs = args[i+2:]
			if len(o.pairs)%2 != 0 || n != int64(len(o.pairs)/2) {
				return o, engine.Errorf(engine.ErrWrongArity, "hsetex")
			}
			return o, nil
		case (timed || keep) && (o.timed || o.keep):
			return o, errOneTime
		case timed && i >= len(args)-1:
			return o, errNoTime
		case timed:
			i++
			if o.at, err = parseMoment(args[i], "hsetex", b, u); err != nil {
				return o, err
			}
			o.timed = true
		case keep:
			o.keep = true
		case (fnx || fxx) && (o.fnx || o.fxx):
			return o, errOneCondition
		case fnx, fxx:
			o.fnx, o.fxx = fnx, fxx
		default:
			return o, engine.Errorf(errUnknown, engine.Shown(args[i]))
		}
	}
	return o, engine.Errorf(engine.ErrWrongArity, "hsetex")
}

func parseHSetEx(in *engine.Input) (engine.Run, error) {
	o, err := parseSetEx(in.Args)
	set := onCreate(func(x *engine.Context, h *items.Change) (engine.Reply, []string) {
		end, _ := o.at.end(x)
		for i := 0; i < len(o.pairs) && (o.fnx || o.fxx); i += 2 {
			if _, found := h.Get(o.pairs[i]); found == o.fnx {
				return engine.Flag(false), nil
			}
		}
		var results []engine.Reply
		for i := range h.ByPage(o.pairs, 2) {
			e := keyspace.Element{Field: o.pairs[i], Value: o.pairs[i+1]}
			switch {
			case o.timed:
				results = append(results, engine.Count(setEnd(x, h, e, end)))
			case o.keep:
				was, _ := h.Get(e.Field)
				h.Put(e.Field, e.Value, was.End)
			default:
				h.Put(e.Field, e.Value, 0)
			}
		}
		return engine.Flag(true), append([]string{eventHSet}, event(results)...)
	})
	return func(x *engine.Context) engine.Reply {
		if o.timed { // the arguments are judged in their order
			if _, err := o.at.end(x); err != nil {
				return engine.Fail(err)
			}
		}
		if err != nil {
			return engine.Fail(err)
		}
		return set(x)
	}, nil
}

func parseExpireMember(in *engine.Input, name string, b items.TimeBase) (engine.Run, error) {
	u := items.Seconds
	switch {
	case len(in.Args) == 5 && redisfmt.EqualFold(in.Args[4], "ms"):
		u = items.Milliseconds
	case len(in.Args) > 5 || len(in.Args) == 5 && !redisfmt.EqualFold(in.Args[4], "s"):
		return nil, engine.ErrSyntax
	}
	m, err := parseMoment(in.Args[3], name, b, u)
	if err != nil {
		return nil, err
	}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		kind, told := keyspace.HashKind, [...]string{set: eventHExpire, deleted: eventHDel}
		switch _, is, _ := x.Tx.Elements(c, x.Input.Args[1]); is {
		case keyspace.SetKind:
			kind, told = is, [...]string{set: "sexpire", deleted: "srem"}
		case keyspace.ZSetKind:
			kind, told = is, [...]string{set: "zexpire", deleted: "zrem"}
		}
		h, err := items.BeginChange(x, c, x.Input.Args[1], kind)
		if err != nil {
			return engine.Fail(err)
		}
		end, err := m.end(x)
		if err != nil {
			return engine.Fail(err)
		}
		e, found := h.Get(x.Input.Args[2])
		if found {
			h.Close(told[setEnd(x, &h, e, end)])
		}
		return engine.Flag(found)
	}), nil
}
