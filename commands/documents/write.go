package documents

import (
	"iter"
	"math"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

func parseDocPut(in *engine.Input) (engine.Run, error) {
	opt, err := parsePutOptions(in.Args[4:])
	if err != nil {
		return nil, err
	}
	parse := jsondoc.Parse
	if opt.ts != 0 && !opt.withTTL { // what JSON.SET has stored elsewhere
		parse = jsondoc.ParseValue
	}
	doc, err := parse(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	if opt.withTTL {
		if doc, err = doc.WithTTL(opt.ttl, in.MaxValue); err != nil {
			return nil, err
		}
	}
	in.Put = engine.PutInput{Doc: doc, When: opt.when, TS: opt.ts}
	return runDocPut, nil
}

var runDocPut = items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
	doc, when, ts := &x.Input.Put.Doc, &x.Input.Put.When, x.Input.Put.TS
	p := d.Container.Policy()
	if err := doc.CheckTTL(p); err != nil {
		return engine.Fail(err)
	}
	if p.Deadline != "" && !items.ReadDeadline(x, doc, p.Deadline) {
		return engine.Reply{}
	}
	if err := doc.CheckDeadline(p, x.Now()); err != nil {
		return engine.Fail(err)
	}
	if !when.Holds(d.Found, d.Item.Version) {
		return engine.Null
	}
	if !d.Found && d.Container.IsDatabase() {
		if c := x.Tx.Container(d.ID); c != nil && !c.IsDatabase() && x.Sees(c.Name()) { // DOC.PUT 1 orders, where orders 1 is meant
			database, name := d.Container.Name(), engine.Shown(d.ID)
			return engine.Fail(engine.Errorf(errExchanged, database, name, name, database))
		}
	}
	if ts != 0 {
		return restore(d, x, doc, ts)
	}
	items.PutDocument(x, d.Container, d.ID, doc, events.DocPut)
	return engine.OK
})

// restore stores a document that was written elsewhere at ts (ms), unless it is dead by now or a later one is
// here.
func restore(d items.DocTarget, x *engine.Context, doc *jsondoc.Document, ts int64) engine.Reply {
	ts = min(ts, x.Now())
	it := keyspace.Item{Kind: keyspace.Document, Body: doc.JSON, TS: ts, ExpireAt: doc.ExpireAt(ts)}
	x.Work += int64(len(it.Body))
	if x.Tx.Restore(d.Container, d.ID, it) != keyspace.Stored {
		return engine.Null
	}
	if !d.Found {
		x.Notify(events.New, d.Container, d.ID)
	}
	x.Notify(events.DocPut, d.Container, d.ID)
	return engine.OK
}

// putOptions are the options of DOC.PUT.
type putOptions struct {
	withTTL bool
	ttl     expiry.TTL // if withTTL; Absent removes the member
	when    engine.Precondition
	ts      int64 // as in PutInput
}

var putOptionNames = []string{"TTL", "NX", "XX", "IFMATCH", "TS"}

func parsePutOptions(args []string) (putOptions, error) {
	var opt putOptions
	var err error
	o := items.NamedOptions{Args: args, Legal: putOptionNames, Meant: meantPutOption}
	for o.Next() {
		switch o.Name {
		case "TTL":
			opt.withTTL = true
			opt.ttl, err = expiry.ParseOption(o.Value("-1, seconds or null"))
			o.Fail(err)
		case "NX":
			opt.when.Absent = true
		case "XX":
			opt.when.Present = true
		case "IFMATCH":
			o.Fail(opt.when.ParseMatch(o.Value("an etag or *"), engine.DocETags))
		case "TS":
			opt.ts = o.Number(1, math.MaxInt64)
		}
	}
	o.Fail(opt.when.Validate())
	return opt, o.Err
}

// meantPutOption returns what a word that is no option of DOC.PUT probably means.
func meantPutOption(word string) string {
	if redisfmt.EqualFold(word, "EX") {
		return "TTL"
	}
	if _, err := expiry.ParseOption(word); err == nil {
		return "TTL " + word
	}
	return ""
}

func parseDocPatch(in *engine.Input) (engine.Run, error) {
	args := in.Args[3:]
	var when engine.Precondition
	if redisfmt.EqualFold(args[0], "IFMATCH") {
		if err := when.ParseMatch(args[1], engine.DocETags); err != nil {
			return nil, err
		}
		args = args[2:]
	}
	patch, err := jsondoc.ParsePatch(args)
	if err != nil {
		return nil, err
	}
	maxSize := in.MaxValue
	e := items.Edit{Apply: func(body, _ string) (jsondoc.Document, error) { return patch.Apply(body, maxSize) }}
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		if !d.Found || !when.Holds(d.Found, d.Item.Version) {
			return engine.Null
		}
		if !e.Ready(x, d, 0) {
			return engine.Reply{}
		}
		if e.Err != nil {
			return engine.Fail(e.Err)
		}
		return d.PutEdited(x, e.Doc, patch.Touches, events.DocPatch)
	}), nil
}

func parseDocMerge(in *engine.Input) (engine.Run, error) {
	when, err := items.ParseMatchOption(in.Args[4:])
	if err != nil {
		return nil, err
	}
	doc, err := jsondoc.Parse(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	patch, err := jsondoc.ParseMergePatch(doc.JSON)
	if err != nil {
		return nil, err
	}
	maxSize, patchSize := in.MaxValue, len(in.Args[3])
	e := items.Edit{Apply: func(body, _ string) (jsondoc.Document, error) { return patch.Apply(body, maxSize) }}
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		if !when.Holds(d.Found, d.Item.Version) {
			return engine.Null
		}
		if !e.Ready(x, d, patchSize) { // without a document the body is empty
			return engine.Reply{}
		}
		if e.Err != nil {
			return engine.Fail(e.Err)
		}
		return d.PutEdited(x, e.Doc, patch.Touches, events.DocMerge)
	}), nil
}

func parseDocSetTTL(in *engine.Input) (engine.Run, error) {
	ttl, err := expiry.ParseOption(in.Args[3])
	if err != nil {
		return nil, err
	}
	when, err := items.ParseMatchOption(in.Args[4:])
	if err != nil {
		return nil, err
	}
	e := items.EditTTL(in.MaxValue)
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		if !d.Found || !when.Holds(d.Found, d.Item.Version) {
			return engine.Flag(false)
		}
		return e.Set(x, d, ttl, events.DocSetTTL)
	}), nil
}

func parseDocDel(in *engine.Input) (engine.Run, error) {
	remove := func(x *engine.Context, d items.DocTarget) { x.Remove(d.Container, d.ID) }
	return countDocuments(in, "doc.del", remove, func(x *engine.Context, d items.DocTarget) {
		if _, plain := x.Tx.Get(d.Container, d.ID); !plain {
			remove(x, d) // what is dead here does not come back
		}
	})
}

func parseDocTouch(in *engine.Input) (engine.Run, error) {
	e := touchEdit()
	single := len(in.Args)-trailingMatch(in.Args) == 3
	return countDocuments(in, "doc.touch", func(x *engine.Context, d items.DocTarget) {
		if !single {
			e = items.Edit{Apply: e.Apply, Tries: items.MaxTries}
		}
		if e.Ready(x, d, 0) {
			d.StoreJSON(x, &e.Doc, events.DocTouch)
		}
	}, nil)
}

// trailingMatch returns the number of arguments that IFMATCH takes at the end of DOC.DEL and DOC.TOUCH.
func trailingMatch(args []string) int {
	if at := len(args) - 2; at > 2 && redisfmt.EqualFold(args[at], "IFMATCH") {
		return 2
	}
	return 0
}

// countDocuments returns the Run of a command that calls do for each of several documents, or for one that
// IFMATCH has compared. It calls missing, if not nil, for each that does not exist. The reply is how many of
// them exist and match.
func countDocuments(in *engine.Input, command string, do, missing func(x *engine.Context, d items.DocTarget)) (engine.Run, error) {
	end := len(in.Args) - trailingMatch(in.Args)
	ids := in.Args[2:end]
	when, err := items.ParseMatchOption(in.Args[end:])
	switch {
	case err != nil:
		return nil, err
	case end < len(in.Args) && len(ids) > 1, items.Misplaced(ids, "IFMATCH"):
		return nil, engine.Errorf(errMatchOneID, strings.ToUpper(command))
	}
	return items.OnDocuments(in.Args[1], ids, func(x *engine.Context, docs iter.Seq[items.DocTarget]) engine.Reply {
		n := 0
		for d := range docs {
			switch {
			case d.Found && when.Holds(d.Found, d.Item.Version):
				do(x, d)
				n++
			case !d.Found && missing != nil && end == len(in.Args):
				missing(x, d)
			}
		}
		return engine.Count(n)
	})
}
