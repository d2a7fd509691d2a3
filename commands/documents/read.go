package documents

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// runDocGet is DOC.GET without options. It does what OnDocument would, but passes on no more of the item
// than the reply needs. That saves 15 % of BenchmarkExecute/DOC.GET.
func runDocGet(x *engine.Context) engine.Reply {
	c, id, err := items.PlaceOfDocument(x)
	if err != nil {
		return engine.Fail(err)
	}
	it, found := x.Tx.Get(c, id)
	if found && it.Kind != keyspace.Document {
		return engine.Fail(items.NotADocument(it.Kind))
	}
	x.CountRead(c, id, found)
	if !found {
		return engine.Null
	}
	return engine.Bulk(it.Body)
}

func parseDocGet(in *engine.Input) (engine.Run, error) {
	if len(in.Args) == 3 {
		return runDocGet, nil
	}
	var show shownParts
	o := items.NamedOptions{Args: in.Args[3:], Legal: []string{"WITHMETA", "PATH"}, Meant: meantPath}
	for o.Next() {
		show.parseOption("DOC.GET", &o)
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		d.CountRead(x)
		if !d.Found {
			return engine.Null
		}
		return show.reply(x, d.Item)
	}), nil
}

// shownParts are the options that say what DOC.GET and DOC.GETTOUCH show of a document: WITHMETA and PATH.
type shownParts struct {
	meta      bool
	paths     []jsondoc.Pointer
	readsMeta bool // a path reads _ts or _etag
}

// parseOption reads the current option of a command if it is one of these.
func (p *shownParts) parseOption(command string, o *items.NamedOptions) {
	switch o.Name {
	case "WITHMETA":
		p.meta = true
	case "PATH":
		var err error
		p.paths, err = items.ParsePaths(command, o.Values("one or several paths"))
		o.Fail(err)
		p.readsMeta = slices.ContainsFunc(p.paths, jsondoc.Pointer.Meta)
	}
}

// reply returns what a command shows of a document.
func (p *shownParts) reply(x *engine.Context, it keyspace.Item) engine.Reply {
	return x.Compute(len(it.Body), func() engine.Reply {
		body := it.Body
		if p.meta {
			body = items.WithMeta(body, it)
		}
		if len(p.paths) == 0 {
			return engine.Bulk(body)
		}
		values := jsondoc.Values(body, p.paths)
		if p.readsMeta {
			// The server's members are no part of the stored text.
			for i, value := range jsondoc.Values(items.WithMeta("{}", it), p.paths) {
				if p.paths[i].Meta() {
					values[i] = value
				}
			}
		}
		return valuesReply(values)
	})
}

// meantPath returns what a word that is no option of DOC.GET probably means: a path, of JSONPath too.
func meantPath(word string) string {
	if p, ok := jsondoc.SuggestPointer(word); ok && strings.IndexByte("/$.", word[0]) >= 0 {
		return "PATH " + string(p)
	}
	return ""
}

// valuesReply is the reply of DOC.GET with paths: a value for one path, an array for several. A missing
// value is null.
func valuesReply(values []string) engine.Reply {
	replies := make([]engine.Reply, len(values))
	for i, value := range values {
		replies[i] = engine.Null
		if value != "" {
			replies[i] = engine.Bulk(value)
		}
	}
	if len(values) == 1 {
		return replies[0]
	}
	return engine.Array(replies...)
}

// trailingMeta returns the number of arguments that WITHMETA takes at the end of DOC.MGET. An id of that
// name is named alone.
func trailingMeta(args []string) int {
	if last := len(args) - 1; last > 2 && redisfmt.EqualFold(args[last], "WITHMETA") {
		return 1
	}
	return 0
}

func parseDocMget(in *engine.Input) (engine.Run, error) {
	options := trailingMeta(in.Args)
	ids, meta := in.Args[2:len(in.Args)-options], options > 0
	if items.Misplaced(ids, "WITHMETA") {
		return nil, errMetaLast
	}
	return items.OnDocuments(in.Args[1], ids, func(x *engine.Context, docs iter.Seq[items.DocTarget]) engine.Reply {
		var replies []engine.Reply
		var withBodies []keyspace.Item // with WITHMETA: of the documents found, in order
		size := 0
		for d := range docs {
			d.CountRead(x)
			if !d.Found {
				replies = append(replies, engine.Null)
				continue
			}
			replies = append(replies, engine.Bulk(d.Item.Body))
			if meta {
				withBodies = append(withBodies, d.Item)
				size += len(d.Item.Body)
			}
		}
		if !meta {
			return engine.Array(replies...)
		}
		return x.Compute(size, func() engine.Reply {
			for i := range replies {
				if replies[i].Kind == engine.KindNull {
					continue
				}
				replies[i].Str, withBodies = items.WithMeta(replies[i].Str, withBodies[0]), withBodies[1:]
			}
			return engine.Array(replies...)
		})
	})
}

func parseDocExists(in *engine.Input) (engine.Run, error) {
	run, err := items.OnDocuments(in.Args[1], in.Args[2:], func(x *engine.Context, docs iter.Seq[items.DocTarget]) engine.Reply {
		n := 0
		for d := range docs {
			d.CountRead(x)
			n += int(engine.Flag(d.Found).Int)
		}
		return engine.Count(n)
	})
	if err != nil {
		return nil, err
	}
	return engine.Peeking(run), nil
}

// runDocTTL is the Run of DOC.TTL and its family.
func runDocTTL(b items.TimeBase, u items.TimeUnit) engine.Run {
	return items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
		d.CountRead(x)
		if !d.Found {
			return engine.Integer(-2)
		}
		return items.TTLReply(d.Container.Policy(), d.Item, x.Now(), b, u)
	})
}

var runDocMeta = items.OnDocument(func(x *engine.Context, d items.DocTarget) engine.Reply {
	d.CountRead(x)
	if !d.Found {
		return engine.Null
	}
	policy, now := d.Container.Policy(), x.Now()
	return x.Compute(len(d.Item.Body), func() engine.Reply { return describeDocument(policy, d.Item, now) })
})

// describeDocument is the reply of DOC.META:
//
//	ts         time of the last write, ms since 1970
//	etag       as in WITHMETA and IFMATCH
//	ttl        the effective time to live in seconds; -1 for ever; null if a deadline comes first, for a document that is
//	           not an object and has a moment, and in a container that is off
//	source     its origin: document, deadline, container, off, hold, or ignored. The last is the container,
//	           because the document's own ttl or deadline does not count
//	expiresat  time of death, ms since 1970; -1 never
//	ttlleft    time left, ms; -1 for ever
//	size       of the JSON, bytes
func describeDocument(p *expiry.Policy, it keyspace.Item, now int64) engine.Reply {
	doc := jsondoc.FromValid(it.Body, p.Deadline)
	source := doc.Source(p, it.TS, it.ExpireAt)
	ttl := engine.Null
	switch source {
	case "hold":
		ttl = engine.Integer(int64(expiry.Forever))
	case "document":
		if n, ok := items.OwnTTLOf(&doc, it); ok {
			ttl = engine.Integer(n)
		}
	case "container", "ignored":
		ttl = engine.Integer(int64(p.Default))
	}
	return engine.Map(
		engine.Bulk("ts"), engine.Integer(it.TS),
		engine.Bulk("etag"), engine.Bulk(engine.ETag(it.Version)),
		engine.Bulk("ttl"), ttl,
		engine.Bulk("source"), engine.Bulk(source),
		engine.Bulk("expiresat"), items.TTLReply(p, it, now, items.FromEpoch, items.Milliseconds),
		engine.Bulk("ttlleft"), items.TTLReply(p, it, now, items.FromNow, items.Milliseconds),
		engine.Bulk("size"), engine.Count(len(it.Body)),
	)
}

func parseDocCount(in *engine.Input) (engine.Run, error) {
	container := in.Args[1]
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(container)
		if err != nil {
			return engine.Fail(err)
		}
		return engine.Count(items.Documents(x.Tx.Stats(c)))
	}, nil
}

// meantScanOption returns what a word that is no option of DOC.SCAN probably means.
func meantScanOption(word string) string {
	if _, ok := items.ParseCount(word); ok {
		return "COUNT " + word
	}
	if strings.ContainsAny(word, "*?[") {
		return "MATCH " + word
	}
	if first, _, _ := strings.Cut(word, " "); redisfmt.EqualFold(first, "WHERE") {
		return "DOC.QUERY"
	}
	return ""
}

func parseDocScan(in *engine.Input) (engine.Run, error) {
	container := in.Args[1]
	cursor, ok := redisfmt.ParseCursor(in.Args[2])
	if !ok {
		return nil, engine.Errorf(engine.ErrScanCursor, expiry.Quote(in.Args[2]))
	}
	options, withDocs, meta := items.NewScanOptions(), false, false
	o := items.NamedOptions{Args: in.Args[3:], Legal: []string{"MATCH", "COUNT", "WITHDOCS", "WITHMETA"}, Meant: meantScanOption}
	for o.Next() {
		switch o.Name {
		case "MATCH":
			o.Fail(options.SetPattern(o.Value("a pattern")))
		case "COUNT":
			value := o.Value("a whole number of at least 1")
			if options.Count, ok = items.ParseCount(value); !ok {
				o.Fail(engine.Errorf(errScanCount, expiry.Quote(value)))
			}
		case "WITHDOCS":
			withDocs = true
		case "WITHMETA":
			meta = true
		}
	}
	if meta && !withDocs {
		o.Fail(errMetaNeedsDoc)
	}
	if o.Err != nil {
		return nil, o.Err
	}
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(container)
		if err != nil {
			return engine.Fail(err)
		}
		found := engine.List{Memory: x.Session.Memory}
		next := items.Scan(x, c, cursor, options.Count, func(id string, it keyspace.Item) {
			if it.Kind != keyspace.Document || !options.Selects(id) {
				return
			}
			found.Add(engine.Bulk(id))
			switch {
			case meta:
				found.Add(engine.Bulk(items.WithMeta(it.Body, it)))
			case withDocs:
				found.Add(engine.Bulk(it.Body))
			}
		})
		if x.Abandoned {
			return engine.Fail(engine.ErrAbandoned)
		}
		return found.After(engine.Bulk(strconv.FormatUint(next, 10)))
	}, nil
}
