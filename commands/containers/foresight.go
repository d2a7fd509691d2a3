package containers

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/foresight"
	"mayfly/keyspace/selection"
	"mayfly/redisfmt"
)

// ForesightCommands report what becomes of items, and why.
var ForesightCommands = []engine.Command{
	{
		Name: "container.plan", Syntax: "name TTL <OFF | -1 | seconds> [SAMPLE count]", Example: "orders TTL 3600",
		Summary: "Reports what a default TTL would do to a container if it were set now, and changes nothing.",
		Touches: engine.TouchesNamed | engine.ReadsUnnamed, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Parse: parseContainerPlan,
	},
	{
		Name: "container.forecast", Syntax: "<name | *> [TTL <OFF | -1 | seconds>] [EVERY seconds] [BUCKETS count]", Example: "orders EVERY 3600 BUCKETS 24",
		Summary: "Counts how much of a container, or of all (*), dies when. With TTL: if that were the default.",
		Touches: engine.TouchesNamed | engine.TouchesVisible, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Parse: parseContainerForecast,
	},
	{
		Name: "container.due", Syntax: "name cursor [BEFORE milliseconds | WITHIN seconds | NEVER] [COUNT count]", Example: "orders 0 WITHIN 3600",
		Summary: "Lists ids and ends of what dies next, in the exact order of death. With NEVER: ids of what never dies.",
		Touches: engine.TouchesNamed | engine.ReadsUnnamed, Flags: engine.ReadOnly | engine.Slow, Scope: engine.ScopeSweep, Parse: parseContainerDue,
	},
	{
		Name: "container.history", Syntax: "name [COUNT count | CLEAR]",
		Summary: "Lists the newest changes of a container, the newest first: what, when, and by which client. CLEAR erases them, with names of clients and reasons of holds, but for the rule that is in force and since when.",
		Flags:   engine.ReadOnly, Scope: engine.ScopeNone, Parse: parseContainerHistory,
		Clear: &engine.Command{
			Name: "container.set", Touches: engine.TouchesNamed | engine.WritesUnnamed, Flags: engine.Write, Scope: engine.ScopeAll, Parse: parseHistoryClear,
		},
	},
}

// ExplainCommand is DOC.EXPLAIN.
var ExplainCommand = engine.Command{
	Name: "doc.explain", Syntax: "container id",
	Summary: "Explains why a document or plain key lives, and until when.",
	Flags:   engine.ReadOnly | engine.Fast, Keys: engine.OneID, Walks: engine.Always, Parse: engine.NoParse(engine.Peeking(runDocExplain)),
}

// The limits of options.
const (
	mostSample  = 100
	mostEvery   = 31536000 // seconds: a year
	mostBuckets = 1000
	mostDue     = 10000
)

// The errors of these commands.
const (
	errForecastAllTTL = engine.Error("ERR CONTAINER.FORECAST * takes no TTL: each container has its own default")

	errPlanTTL    = "ERR CONTAINER.PLAN needs TTL <off|-1|seconds>; for example CONTAINER.PLAN %s TTL 3600"
	errDueOptions = "ERR options %s and %s exclude each other: legal is one of BEFORE, WITHIN and NEVER"
	errClearUndo  = "ERR changes of %s can be taken back until %s: their history can be erased after that"
	errMaxKill    = "ERR %s would kill more than %d items at once, see CONTAINER.PLAN %s TTL %s; nothing has changed"
)

// entryWork is the work on an entry of a tally, in bytes of [watch.abandoned].
const entryWork = 16

// continues returns a function that reports whether a command goes on after some more entries.
func continues(x *engine.Context) func(entries int) bool {
	w := x.WatchClient()
	return func(entries int) bool { return !w.Abandoned(entryWork * entries) }
}

// meantTTL returns what a word that is no option probably means: a default TTL without TTL before it.
func meantTTL(word string) string {
	if _, err := expiry.ParseDefault(word); err == nil {
		return "TTL " + word
	}
	return ""
}

func parseContainerPlan(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	def, given, sample := expiry.Off, false, int64(10)
	o := items.NamedOptions{Args: in.Args[2:], Legal: []string{"TTL", "SAMPLE"}, Meant: meantTTL, Err: err}
	for o.Next() {
		switch o.Name {
		case "TTL":
			given = true
			def, err = expiry.ParseDefault(o.Value("off, -1 or seconds"))
			o.Fail(err)
		case "SAMPLE":
			sample = o.Number(0, mostSample)
		}
	}
	if !given {
		o.Fail(engine.Errorf(errPlanTTL, name))
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(name)
		if err != nil {
			return engine.Fail(err)
		}
		effect, goesOn := foresight.NewEffect(def, x.Now(), int(sample)), continues(x)
		version := x.Tx.Tally(c, effect, goesOn)
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		undo := int64(0)
		if def != c.Policy().Default {
			undo = x.Engine.Keyspace().UndoWindow(effect.Items() == 0)
		}
		return describeEffect(def, version, effect, undo)
	}, nil
}

// describeEffect is the reply of CONTAINER.PLAN:
//
//	now        the moment that counts, ms since 1970
//	ttl        the default that would be set
//	etag       of the container's settings, for IFMATCH
//	kills      how many items would die at once: documents and keys
//	documents  that would die at once
//	keys       plain keys that would die at once
//	bytes      of the ids and bodies of both
//	oldest     the first last write among both, ms since 1970; null if there are none
//	newest     the last one
//	sooner     how many survivors would die sooner than now
//	later      or later, or no more
//	same       or when they do now
//	never      how many survivors would never die
//	sample     ids of some that would die at once, the longest overdue first
//	undo       for how many seconds CONTAINER.UNDO could take the change back; 0 if it could not
func describeEffect(def expiry.TTL, version uint64, e *foresight.Effect, undo int64) engine.Reply {
	oldest, newest := engine.Null, engine.Null
	if e.Kills() > 0 {
		oldest, newest = engine.Integer(e.Oldest), engine.Integer(e.Newest)
	}
	return engine.Map(
		engine.Bulk("now"), engine.Integer(e.Now),
		engine.Bulk("ttl"), engine.Bulk(def.String()),
		engine.Bulk("etag"), engine.Bulk(engine.ETag(version)),
		engine.Bulk("kills"), engine.Integer(e.Kills()),
		engine.Bulk("documents"), engine.Integer(e.Documents),
		engine.Bulk("keys"), engine.Integer(e.Keys),
		engine.Bulk("bytes"), engine.Integer(e.Bytes),
		engine.Bulk("oldest"), oldest,
		engine.Bulk("newest"), newest,
		engine.Bulk("sooner"), engine.Integer(e.Sooner),
		engine.Bulk("later"), engine.Integer(e.Later),
		engine.Bulk("same"), engine.Integer(e.Same),
		engine.Bulk("never"), engine.Integer(e.Never),
		engine.Bulk("sample"), engine.Bulks(e.Sample()...),
		engine.Bulk("undo"), engine.Integer(undo),
	)
}

// allContainers is the name that CONTAINER.FORECAST takes for all containers.
const allContainers = "*"

func parseContainerForecast(in *engine.Input) (engine.Run, error) {
	name, err := in.Args[1], error(nil)
	if name != allContainers {
		name, err = containerName(in)
	}
	def, change, every, buckets := expiry.Off, false, int64(3600), int64(24)
	o := items.NamedOptions{Args: in.Args[2:], Legal: []string{"TTL", "EVERY", "BUCKETS"}, Meant: meantTTL, Err: err}
	for o.Next() {
		switch o.Name {
		case "TTL":
			change = true
			def, err = expiry.ParseDefault(o.Value("off, -1 or seconds"))
			o.Fail(err)
			if name == allContainers {
				o.Fail(errForecastAllTTL)
			}
		case "EVERY":
			every = o.Seconds(1, mostEvery)
		case "BUCKETS":
			buckets = o.Number(1, mostBuckets)
		}
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		f, goesOn := foresight.NewForecast(x.Now(), every*1000, int(buckets)), continues(x)
		if change {
			f.Change(def)
		}
		switch {
		case name == allContainers && x.SeesAll():
			x.Tx.TallyAll(f, goesOn)
		case name == allContainers:
			for _, c := range x.Tx.Containers() {
				if x.Sees(c.Name()) {
					x.Tx.Tally(c, f, goesOn)
				}
			}
		default:
			c, err := x.Container(name)
			if err != nil {
				return engine.Fail(err)
			}
			x.Tx.Tally(c, f, goesOn)
		}
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		return describeForecast(f)
	}, nil
}

// describeForecast is the reply of CONTAINER.FORECAST:
//
//	now      the moment that counts, ms since 1970
//	every    the width of a bucket, seconds
//	killed   [items, bytes] that would die of the TTL given at once
//	buckets  of each [from, items, bytes]: what dies from that time, ms since 1970, until the next bucket begins
//	later    [items, bytes] that die behind the last bucket
//	never    [items, bytes] that never die
//	own      of each bucket [items, bytes]: what dies by a ttl of its own in it; the rest dies by the container's default
func describeForecast(f *foresight.Forecast) engine.Reply {
	buckets, own := make([]engine.Reply, len(f.Buckets)), make([]engine.Reply, len(f.Own))
	for i, b := range f.Buckets {
		buckets[i] = engine.Array(engine.Integer(f.From+int64(i)*f.Every), engine.Integer(b.Items), engine.Integer(b.Bytes))
		own[i] = engine.Array(engine.Integer(f.Own[i].Items), engine.Integer(f.Own[i].Bytes))
	}
	return engine.Map(
		engine.Bulk("now"), engine.Integer(f.Now),
		engine.Bulk("every"), engine.Integer(f.Every/1000),
		engine.Bulk("killed"), engine.Array(engine.Integer(f.Killed.Items), engine.Integer(f.Killed.Bytes)),
		engine.Bulk("buckets"), engine.Array(buckets...),
		engine.Bulk("later"), engine.Array(engine.Integer(f.Later.Items), engine.Integer(f.Later.Bytes)),
		engine.Bulk("never"), engine.Array(engine.Integer(f.Never.Items), engine.Integer(f.Never.Bytes)),
		engine.Bulk("own"), engine.Array(own...),
	)
}

// dueQuery is a parsed CONTAINER.DUE.
type dueQuery struct {
	name   string
	cursor string
	until  int64 // ms; the last end that counts
	within int64 // ms; -1: not given
	never  bool
	count  int
}

func parseContainerDue(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	q := dueQuery{name: name, cursor: in.Args[2], until: math.MaxInt64, within: -1}
	count, given := int64(100), ""
	o := items.NamedOptions{Args: in.Args[3:], Legal: []string{"BEFORE", "WITHIN", "NEVER", "COUNT"}, Err: err}
	o.Meant = func(word string) string {
		if _, ok := items.ParseCount(word); ok {
			return "COUNT " + word
		}
		return ""
	}
	for o.Next() {
		if o.Name != "COUNT" {
			if given != "" {
				o.Fail(engine.Errorf(errDueOptions, given, o.Name))
			}
			given = o.Name
		}
		switch o.Name {
		case "BEFORE":
			q.until = o.Number(0, math.MaxInt64) - 1
		case "WITHIN":
			q.within = o.Seconds(0, int64(expiry.MaxTTL)) * 1000
		case "NEVER":
			q.never = true
		case "COUNT":
			count = o.Number(1, mostDue)
		}
	}
	if o.Err != nil {
		return nil, o.Err
	}
	q.count = int(count)
	if q.never {
		cursor, ok := redisfmt.ParseCursor(q.cursor)
		if !ok {
			return nil, engine.Errorf(engine.ErrScanCursor, expiry.Quote(q.cursor))
		}
		return func(x *engine.Context) engine.Reply { return q.listNever(x, cursor) }, nil
	}
	from, ok := parseDueCursor(q.cursor)
	if !ok {
		return nil, engine.Errorf(engine.ErrScanCursor, expiry.Quote(q.cursor))
	}
	return func(x *engine.Context) engine.Reply { return q.listDue(x, from) }, nil
}

// parseDueCursor parses "0" or the end in ms and the id of the last item, separated by a colon.
func parseDueCursor(cursor string) (from selection.EndPlace, ok bool) {
	if cursor == "0" {
		return from, true
	}
	end, id, ok := strings.Cut(cursor, ":")
	if !ok {
		return from, false
	}
	from.End, ok = redisfmt.ParseInt(end)
	from.ID, from.Any = strings.Clone(id), true
	return from, ok && from.End > 0
}

// listDue is CONTAINER.DUE for what dies.
func (q *dueQuery) listDue(x *engine.Context, from selection.EndPlace) engine.Reply {
	c, err := x.Container(q.name)
	if err != nil {
		return engine.Fail(err)
	}
	until := q.until
	if q.within >= 0 {
		until = x.Now() + q.within
	}
	list, more, goesOn := []engine.Reply{}, false, continues(x)
	var last selection.EndPlace
	due := selection.EndsRange{Low: x.Now(), High: until, Plain: true, First: q.count + 1}
	x.Tx.Reader(c).Ends(due, from, func(s selection.Slice, place func(i int) selection.EndPlace) bool {
		for i := range s.Items {
			if more = len(list) == 2*q.count; more {
				return false
			}
			last = place(i)
			list = append(list, engine.Bulk(last.ID), engine.Integer(last.End))
		}
		return goesOn(len(s.Items) + s.Dead + s.Ordered)
	})
	if x.Abandoned {
		return engine.Fail(engine.ErrAbandoned)
	}
	cursor := "0"
	if more {
		cursor = strconv.FormatInt(last.End, 10) + ":" + last.ID
	}
	return engine.Array(engine.Bulk(cursor), engine.Array(list...))
}

// neverWork is the number of items that a page of what never dies looks at, whatever it finds.
const neverWork = 100_000

// listNever is CONTAINER.DUE for what never dies. A page may have fewer ids than asked for, even none.
func (q *dueQuery) listNever(x *engine.Context, cursor uint64) engine.Reply {
	c, err := x.Container(q.name)
	if err != nil {
		return engine.Fail(err)
	}
	ids, policy, goesOn := []engine.Reply{}, c.Policy(), continues(x)
	for looked := 0; looked < neverWork; {
		portion := min(q.count-len(ids), 1000)
		looked += portion
		cursor = x.Tx.Scan(c, cursor, portion, func(id string, it keyspace.Item) {
			if _, ends := policy.End(it.TS, it.ExpireAt); !ends {
				ids = append(ids, engine.Bulk(id))
			}
		})
		if !goesOn(portion) {
			return engine.Fail(engine.ErrAbandoned)
		}
		if cursor == 0 || len(ids) == q.count {
			break
		}
	}
	return engine.Array(engine.Bulk(strconv.FormatUint(cursor, 10)), engine.Array(ids...))
}

func parseContainerHistory(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	count := int64(100)
	o := items.NamedOptions{Args: in.Args[2:], Legal: []string{"COUNT", "CLEAR"}, Err: err}
	o.Meant = func(word string) string { return "COUNT " + word }
	for o.Next() {
		if o.Name == "CLEAR" {
			o.Fail(engine.ErrSyntax) // with other options
			break
		}
		count = o.Number(1, mostDue)
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(name)
		if err != nil {
			return engine.Fail(err)
		}
		entries := x.Tx.History(c)
		list := []engine.Reply{}
		for i := len(entries) - 1; i >= 0 && len(list) < int(count); i-- {
			list = append(list, describeChange(&entries[i], x.Now()))
		}
		return engine.Array(list...)
	}, nil
}

// parseHistoryClear parses CONTAINER.HISTORY name CLEAR.
func parseHistoryClear(in *engine.Input) (engine.Run, error) {
	name, err := containerName(in)
	if err != nil {
		return nil, err
	}
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(name)
		if err != nil {
			return engine.Fail(err)
		}
		if until := x.Tx.ClearHistory(c); until != 0 {
			return engine.Fail(engine.Errorf(errClearUndo, name, time.UnixMilli(until).UTC().Format(time.RFC3339)))
		}
		return engine.OK
	}, nil
}

// describeChange is an element of the reply of CONTAINER.HISTORY:
//
//	at       when, ms since 1970
//	what     created, set, flushed, swapped, restored, undone, dropped, held or released
//	ttl      the default from then on
//	ttlmode  strict or lenient
//	etag     of the settings from then on
//	by       address and name of the client; null: the server itself
//	kills    how many items died at once, if MAXKILL has counted them; else null
//	undo     until when it can be taken back, ms since 1970; else -1
//	reason   of a hold; only there
func describeChange(h *expiry.HistoryEntry, now int64) engine.Reply {
	kills, undo := engine.Null, int64(-1)
	if h.Kills >= 0 {
		kills = engine.Integer(h.Kills)
	}
	if h.Undo > now && !h.Undone {
		undo = h.Undo
	}
	entry := engine.Map(
		engine.Bulk("at"), engine.Integer(h.At),
		engine.Bulk("what"), engine.Bulk(string(h.What)),
		engine.Bulk("ttl"), engine.Bulk(h.Policy.Default.String()),
		engine.Bulk("ttlmode"), engine.Bulk(h.Policy.Mode.String()),
		engine.Bulk("etag"), engine.Bulk(engine.ETag(h.Etag)),
		engine.Bulk("by"), engine.TextOrNull(h.By),
		engine.Bulk("kills"), kills,
		engine.Bulk("undo"), engine.Integer(undo),
	)
	if h.Reason != "" {
		entry.Elems = append(entry.Elems, engine.Bulk("reason"), engine.Bulk(h.Reason))
	}
	return entry
}

func runDocExplain(x *engine.Context) engine.Reply {
	c, id, err := items.PlaceOfDocument(x)
	if err != nil {
		return engine.Fail(err)
	}
	it, found := x.Tx.Get(c, id)
	x.CountRead(c, id, found)
	policy, history, now := *c.Policy(), x.Tx.History(c), x.Now()
	last := engine.Null
	if d, ok := x.Tx.Deaths(c).Newest(id); ok {
		last = describeDeath(d)
	}
	byDefault, earlier := expiry.DefaultBy(history)
	size := 0
	if found && it.Kind == keyspace.Document {
		size = len(it.Body)
	}
	return x.Compute(size, func() engine.Reply {
		e := explanation{
			container: c.Name(), policy: policy, set: expiry.SetBy(history), byDefault: byDefault, earlier: earlier,
			item: it, found: found, now: now, last: last,
		}
		return e.reply()
	})
}

// explanation is what DOC.EXPLAIN says of an item.
type explanation struct {
	container string
	policy    expiry.Policy
	set       expiry.HistoryEntry // the change that set the policy
	byDefault expiry.HistoryEntry // and the one that set its default
	earlier   bool                // an earlier one may have set it
	item      keyspace.Item
	found     bool
	now       int64        // ms
	last      engine.Reply // see describeDeath
}

// reply is the reply of DOC.EXPLAIN. Of an item that does not exist what concerns the item is null.
//
//	state        alive or absent
//	why          a sentence
//	rule         what decides: source as in DOC.META, or never: neither the document nor the container ends it
//	ts           time of the last write, ms since 1970
//	ttl          the time to live in seconds; -1 for ever; null in a container that is off, and of an item with an
//	             absolute end
//	expiresat    time of death, ms since 1970; -1 never
//	ttlleft      time left, ms; -1 for ever
//	policy       etag of the container's settings
//	policysince  since when they rule, ms since 1970
//	policyby     the client that set them; null if it is not known
//	last         its newest death in the container's log, null if there is none: see describeDeath
func (e *explanation) reply() engine.Reply {
	state, rule, ts, ttl, end, left := "alive", engine.Null, engine.Null, engine.Null, engine.Null, engine.Null
	var why string
	if e.found {
		var source string
		source, ttl, why = e.judge()
		rule, ts = engine.Bulk(source), engine.Integer(e.item.TS)
		end = items.TTLReply(&e.policy, e.item, e.now, items.FromEpoch, items.Milliseconds)
		left = items.TTLReply(&e.policy, e.item, e.now, items.FromNow, items.Milliseconds)
	} else {
		state, why = "absent", "no document and no plain key with this id lives in "+e.container
	}
	return engine.Map(
		engine.Bulk("state"), engine.Bulk(state),
		engine.Bulk("why"), engine.Bulk(why),
		engine.Bulk("rule"), rule,
		engine.Bulk("ts"), ts,
		engine.Bulk("ttl"), ttl,
		engine.Bulk("expiresat"), end,
		engine.Bulk("ttlleft"), left,
		engine.Bulk("policy"), engine.Bulk(engine.ETag(e.set.Etag)),
		engine.Bulk("policysince"), engine.Integer(e.set.At),
		engine.Bulk("policyby"), engine.TextOrNull(e.set.By),
		engine.Bulk("last"), e.last,
	)
}

// judge returns the rule that decides about a living item, its time to live, and both in words.
func (e *explanation) judge() (rule string, ttl engine.Reply, why string) {
	var doc jsondoc.Document
	rule = e.policy.Source(e.item.TS, e.item.ExpireAt, false)
	plain := !items.HasTTLMember(e.item) // its own end is a moment
	own := e.keyWords()
	if !plain {
		doc = jsondoc.FromValid(e.item.Body, e.policy.Deadline)
		rule, own = doc.Source(&e.policy, e.item.TS, e.item.ExpireAt), documentWords(&doc)
	}
	def := e.policy.Default
	switch {
	case rule == "hold":
		return rule, engine.Integer(-1), "never dies: " + e.container + " is on hold" + since(&e.set) + ": " + e.policy.Hold
	case rule == "off":
		return rule, engine.Null, "never dies: " + own + "; TTL of " + e.container + " is off" + e.sinceDefault()
	case rule == "deadline", rule == "document" && plain && e.item.ExpireAt != expiry.Never:
		end, _ := e.policy.End(e.item.TS, e.item.ExpireAt)
		why = "dies at " + utc(end) + ": " + own
		if _, capped := expiry.Cap(e.item.ExpireAt); capped && def > 0 {
			why += fmt.Sprintf("; default %d of %s%s, comes later", def, e.container, e.sinceDefault())
		}
		return rule, engine.Null, why
	case rule == "document" && e.item.ExpireAt == expiry.Never:
		return rule, engine.Integer(-1), "never dies: " + own
	case rule == "document":
		return rule, engine.Integer(int64(doc.TTL)), fmt.Sprintf("dies %d s after its last write: %s", doc.TTL, own)
	case def == expiry.Forever:
		if rule == "container" {
			rule = "never"
		}
		return rule, engine.Integer(-1), "never dies: " + own + "; default -1 of " + e.container + e.sinceDefault()
	}
	return rule, engine.Integer(int64(def)), fmt.Sprintf("dies %d s after its last write: %s; default of %s%s", def, own, e.container, e.sinceDefault())
}

// sinceDefault says since when the default rules, and which client set it.
func (e *explanation) sinceDefault() string {
	if e.earlier {
		return " since " + utc(e.byDefault.At) + " or before"
	}
	return since(&e.byDefault)
}

// since says when a change was made, and by which client.
func since(h *expiry.HistoryEntry) string {
	text := " since " + utc(h.At)
	if h.By != "" {
		text += ", set by " + h.By
	}
	return text
}

// keyWords names the end that a plain key has of its own.
func (e *explanation) keyWords() string {
	switch e.item.ExpireAt {
	case expiry.Inherit:
		return "no expiration of its own"
	case expiry.Never:
		return "it is persisted"
	}
	return "an expiration of its own"
}

// documentWords names the ends that a document has of its own.
func documentWords(doc *jsondoc.Document) string {
	own := "no ttl of its own"
	switch {
	case doc.TTLErr != nil:
		own = "its own ttl does not count"
	case doc.TTL != expiry.Absent:
		own = fmt.Sprintf("its own ttl is %d", doc.TTL)
	}
	switch d := doc.Deadline; {
	case d == nil:
	case d.Err != nil:
		own += ", its deadline " + expiry.Quote(d.Member) + " does not count"
	case d.At != 0:
		own += ", its deadline " + expiry.Quote(d.Member) + " is " + utc(d.At)
	}
	return own
}

// utc writes a moment in ms for people.
func utc(ms int64) string {
	return time.UnixMilli(ms).UTC().Format(time.RFC3339)
}

// describeDeath is the field last of DOC.EXPLAIN:
//
//	entry   the id of the entry in the log
//	cause   document, container, change or deleted
//	at      the moment of death, ms since 1970
//	ts      the last write, ms since 1970
//	etag    of what died
//	policy  etag of the container's settings that ruled
func describeDeath(d deathlog.Entry) engine.Reply {
	return engine.Map(
		engine.Bulk("entry"), engine.Bulk(d.ID.String()),
		engine.Bulk("cause"), engine.Bulk(string(d.Cause)),
		engine.Bulk("at"), engine.Integer(d.At),
		engine.Bulk("ts"), engine.Integer(d.TS),
		engine.Bulk("etag"), engine.Bulk(engine.ETag(d.Etag)),
		engine.Bulk("policy"), engine.Bulk(engine.ETag(d.Policy)),
	)
}
