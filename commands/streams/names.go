package streams

import (
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/access"
	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/commands/waiting"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/redisfmt"
)

// Clients see the log of a container's deaths as a stream of Redis. It is named like the channel of the
// container's expired events, in every database:
//
//  1. A container without a log, and a name that is not of this form, is an absent stream.
//  2. A key of that name in the selected database is what it is everywhere: WRONGTYPE.
//  3. A stream is no item: SCAN, KEYS and TYPE do not show it.
//  4. A command on streams has [ScopeSweep] or [ScopeAll]. Its keys do not say what it locks, so the row
//     locks nothing for them.

// The errors of commands on streams, in Redis' words.
const (
	errStreamID      = engine.Error("ERR Invalid stream ID specified as stream command argument")
	errIntervalStart = engine.Error("ERR invalid start ID for the interval")
	errIntervalEnd   = engine.Error("ERR invalid end ID for the interval")
	errUnbalanced    = engine.Error("ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' must be specified.")
	errReadGroup     = engine.Error("ERR The GROUP option is only supported by XREADGROUP. You called XREAD instead.")
	errReadNoAck     = engine.Error("ERR The NOACK option is only supported by XREADGROUP. You called XREAD instead.")
	errReadClaim     = engine.Error("ERR The CLAIM option is only supported by XREADGROUP. You called XREAD instead.")
	errClaimInteger  = engine.Error("ERR min-idle-time is not an integer or out of range")
	errClaimNegative = engine.Error("ERR min-idle-time must be a positive integer")
	errMissingGroup  = engine.Error("ERR Missing GROUP option for XREADGROUP")
	errReadNew       = engine.Error("ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> <consumer> option.")
)

// stream returns the name of the container whose deaths a stream has, empty if there is no such stream. The
// error is that of a key of the name that is no stream.
func stream(x *engine.Context, key string) (container string, err error) {
	if len(key) > keyspace.MaxIDLength {
		return "", engine.Errorf(engine.ErrTooLongName, "id", len(key), keyspace.MaxIDLength)
	}
	held := false
	look := func(tx *keyspace.Tx) {
		if c := tx.Container(x.Session.Database); c != nil {
			_, held = tx.Get(c, key)
		}
	}
	switch {
	case !x.Sees(x.Session.Database):
	case holdsAll(x):
		look(x.Tx)
	default:
		tx := keyspace.Tx{OnDeath: x.Tx.OnDeath, KeepAccesses: true}
		x.Engine.Keyspace().BeginKey(&tx, key)
		defer func() { x.Pieces = max(x.Pieces, tx.Close()) }()
		look(&tx)
	}
	if held {
		return "", engine.ErrWrongType
	}
	container, _ = access.LogName(key)
	return container, nil
}

// holdsAll reports whether the transaction has locked all partitions.
func holdsAll(x *engine.Context) bool {
	r := x.Session.Current
	return x.Queued || r != nil && r.Scope == engine.ScopeAll
}

// parseStreamID reads an id of an entry. seq completes one without a number.
func parseStreamID(text string, seq uint64) (streamid.ID, error) {
	const longest = 127 // as in Redis, which then reads up to the first zero byte
	if len(text) > longest {
		return streamid.ID{}, errStreamID
	}
	id, ok := streamid.Parse(redisfmt.CString(text), seq)
	if !ok {
		return id, errStreamID
	}
	return id, nil
}

// parseStreamIDs reads ids of entries.
func parseStreamIDs(texts []string) ([]streamid.ID, error) {
	ids := make([]streamid.ID, len(texts))
	for i, text := range texts {
		var err error
		if ids[i], err = parseStreamID(text, 0); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// parseIntervalStart reads the first id of an interval: an id, - and + for the least and the greatest, or (
// and an id for what follows it.
func parseIntervalStart(text string) (streamid.ID, error) {
	return parseBound(text, 0, streamid.ID.Next, errIntervalStart)
}

// parseIntervalEnd is parseIntervalStart for the last id: ( stands for what precedes an id.
func parseIntervalEnd(text string) (streamid.ID, error) {
	return parseBound(text, streamid.Max.Seq, streamid.ID.Prev, errIntervalEnd)
}

func parseBound(text string, seq uint64, step func(streamid.ID) (streamid.ID, bool), impossible error) (streamid.ID, error) {
	if len(text) > 1 && text[0] == '(' {
		id, err := parseStreamID(text[1:], seq)
		if err != nil {
			return id, err
		}
		id, ok := step(id)
		if !ok {
			return id, impossible
		}
		return id, nil
	}
	if word := redisfmt.CString(text); len(text) <= len("-")+126 {
		switch word {
		case "-":
			return streamid.ID{}, nil
		case "+":
			return streamid.Max, nil
		}
	}
	return parseStreamID(text, seq)
}

// readOptions are the arguments of XREAD and XREADGROUP.
type readOptions struct {
	group, consumer string
	noAck           bool
	count           int64 // entries of a stream at most; 0: all
	block           int64 // ms to wait, 0 for ever; -1: do not wait
	claim           int64 // ms; claim what was delivered no later than that ago; -1: claim nothing
	keys, ids       []string
}

// parseXRead reads the arguments of XREAD, and of XREADGROUP if group is set.
func parseXRead(args []string, group bool) (o readOptions, err error) {
	o.block, o.claim = -1, -1
	grouped := false
	for i := 1; i < len(args); i++ {
		more := len(args) - i - 1
		switch word := args[i]; {
		case redisfmt.EqualFold(word, "CLAIM") && more > 0:
			if !group {
				return o, errReadClaim
			}
			i++
			if o.claim, err = parseIdle(args[i]); err != nil {
				return o, err
			}
		case redisfmt.EqualFold(word, "BLOCK") && more > 0:
			i++
			if o.block, err = items.ParseTimeout(args[i]); err != nil {
				return o, err
			}
		case redisfmt.EqualFold(word, "COUNT") && more > 0:
			i++
			count, ok := redisfmt.ParseInt(args[i])
			if !ok {
				return o, engine.ErrNotInteger
			}
			o.count = max(count, 0)
		case redisfmt.EqualFold(word, "STREAMS") && more > 0:
			if more%2 != 0 {
				return o, errUnbalanced
			}
			rest := args[i+1:]
			o.keys, o.ids = rest[:more/2], rest[more/2:]
			if group && !grouped {
				return o, errMissingGroup
			}
			return o, nil
		case redisfmt.EqualFold(word, "GROUP") && more >= 2:
			if !group {
				return o, errReadGroup
			}
			o.group, o.consumer, grouped = args[i+1], args[i+2], true
			i += 2
		case redisfmt.EqualFold(word, "NOACK"):
			if !group {
				return o, errReadNoAck
			}
			o.noAck = true
		default:
			return o, engine.ErrSyntax
		}
	}
	return o, engine.ErrSyntax
}

// blocksInScript is the error of a script that wants to wait, nil for others.
func (o *readOptions) blocksInScript(x *engine.Context) error {
	if o.block < 0 || !x.Queued || x.Session.Multi.Open {
		return nil
	}
	return engine.Errorf("ERR %s command is not allowed with BLOCK option from scripts", x.Input.Args[0])
}

// parseIdle reads the min-idle-time of CLAIM.
func parseIdle(text string) (ms int64, err error) {
	ms, ok := redisfmt.ParseInt(text)
	switch {
	case !ok:
		return 0, errClaimInteger
	case ms < 0:
		return 0, errClaimNegative
	}
	return ms, nil
}

// blockOnStreams ends the run of XREAD or XREADGROUP that has nothing to return: it waits, if it may. after
// is what the ids of XREAD stand for, oldest when what CLAIM found pending longest was delivered, in ms.
func blockOnStreams(x *engine.Context, o *readOptions, after []streamid.ID, oldest int64) engine.Reply {
	if o.block < 0 || x.Queued {
		return engine.NullArray
	}
	return x.Block(engine.Wait{
		Time: o.block, After: after, MinIdle: o.claim, Oldest: oldest, Lines: func() []waiting.Key { return o.lines(after == nil) },
	})
}

// lines returns the lines in which a command waits: those of the streams' logs, or of its group at each.
func (o *readOptions) lines(grouped bool) (lines []waiting.Key) {
	for _, key := range o.keys {
		container, ok := access.LogName(key)
		if !ok {
			continue
		}
		line := waiting.Key{Container: strings.Clone(container)}
		if grouped {
			line.Group, line.Grouped = strings.Clone(o.group), true
		}
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// StreamsReply is the reply of XREAD: names of streams, each followed by an array of its entries.
func StreamsReply(x *engine.Context, served []engine.Reply) engine.Reply {
	if x.Proto() == 3 {
		return engine.Map(served...)
	}
	list := make([]engine.Reply, 0, len(served)/2)
	for i := 0; i < len(served); i += 2 {
		list = append(list, engine.Array(served[i:i+2:i+2]...))
	}
	return engine.Array(list...)
}

// mostFields is the number of fields and values of an entry at most.
const mostFields = 2 * 8

// EntryReply shows an entry: its id and its fields, which are strings:
//
//	id      of the item that died
//	cause   document, container, change or deleted; field: the key lives, and one of its fields has died
//	at      the moment of death, ms since 1970
//	ts      the item's last write, ms since 1970
//	etag    of the item
//	ttl     the document's own, in seconds; absent if it had none
//	policy  etag of the container's settings that ruled
//	doc     the document; of a plain key its value is the field value. Absent if the log keeps no bodies
//	field   with the cause field: the one that has died, and its value as that of a plain key
//	type    of a key with fields in place of a body: hash; elements: how many it had
func EntryReply(e *deathlog.Entry) engine.Reply {
	// One piece of memory has all texts, another all values. That saves seven allocations.
	var buffer [160]byte
	var ends [6]int
	text := buffer[:0]
	text = e.ID.Append(text)
	ends[0] = len(text)
	text = strconv.AppendInt(text, e.At, 10)
	ends[1] = len(text)
	text = strconv.AppendInt(text, e.TS, 10)
	ends[2] = len(text)
	text = engine.AppendETag(text, e.Etag)
	ends[3] = len(text)
	text = engine.AppendETag(text, e.Policy)
	ends[4] = len(text)
	ttl := ownTTL(e)
	text = strconv.AppendInt(text, int64(ttl), 10)
	ends[5] = len(text)
	all, from := string(text), 0
	next := func() string {
		word := all[from:ends[0]]
		from = ends[0]
		copy(ends[:], ends[1:])
		return word
	}

	elems := make([]engine.Reply, 2, 2+mostFields)
	elems[0] = engine.Bulk(next())
	elems = append(elems,
		engine.Bulk("id"), engine.Bulk(e.Item), engine.Bulk("cause"), engine.Bulk(string(e.Cause)),
		engine.Bulk("at"), engine.Bulk(next()), engine.Bulk("ts"), engine.Bulk(next()), engine.Bulk("etag"), engine.Bulk(next()))
	policy := next()
	if ttl != expiry.Absent {
		elems = append(elems, engine.Bulk("ttl"), engine.Bulk(next()))
	}
	elems = append(elems, engine.Bulk("policy"), engine.Bulk(policy))
	switch e.Cause {
	case deathlog.ByElement:
		elems = append(elems, engine.Bulk("field"), engine.Bulk(e.Field))
	default:
		if e.Kind.IsCollection() {
			elems = append(elems, engine.Bulk("type"), engine.Bulk(items.TypeName(e.Kind)), engine.Bulk("elements"), engine.Bulk(strconv.FormatInt(e.Elements, 10)))
		}
	}
	switch {
	case e.HasBody && e.Kind == keyspace.Document:
		elems = append(elems, engine.Bulk("doc"), engine.Bulk(e.Body))
	case e.HasBody:
		elems = append(elems, engine.Bulk("value"), engine.Bulk(e.Body))
	}
	elems[1] = engine.Array(elems[2:]...)
	return engine.Array(elems[:2:2]...)
}

// ownTTL returns the ttl of the document that died, [expiry.Absent] if it had none. Without the document its
// own end tells.
func ownTTL(e *deathlog.Entry) expiry.TTL {
	switch {
	case e.Kind != keyspace.Document || e.Own == expiry.Inherit:
		return expiry.Absent
	case e.HasBody:
		return jsondoc.FromValid(e.Body, "").TTL
	case e.Own == expiry.Never:
		return expiry.Forever
	case (e.Own-e.TS)%1000 != 0:
		return expiry.Absent
	}
	return expiry.TTL((e.Own - e.TS) / 1000)
}

// manyEntries is the number of entries from which a read of a log computes for long.
const manyEntries = 1000

// readsMany is the Reads of a command on a log: it may return many entries, as COUNT does not forbid it.
func readsMany(args []string) bool {
	for i := 2; i < len(args); i++ {
		if n, ok := redisfmt.ParseInt(args[i]); ok && redisfmt.EqualFold(args[i-1], "COUNT") {
			return n < 1 || n > manyEntries
		}
	}
	return true
}
