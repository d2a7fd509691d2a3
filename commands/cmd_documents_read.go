package commands

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"mayfly/commands/jsondoc"
	"mayfly/commands/redisfmt"
	"mayfly/expiry"
	"mayfly/keyspace"
)

// runDocGet is DOC.GET without options. It does what onDocument would, but passes on no more of the item
// than the reply needs. That saves 15 % of BenchmarkExecute/DOC.GET.
func runDocGet(x *Context) Reply {
	c, id, err := x.placeOfDocument()
	if err != nil {
		return Fail(err)
	}
	it, found := x.Tx.Get(c, id)
	if found && it.Kind != keyspace.Document {
		return Fail(errPlainKey)
	}
	x.countRead(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

func parseDocGet(in *Input) (Run, error) {
	if len(in.Args) == 3 {
		return runDocGet, nil
	}
	var show shownParts
	o := namedOptions{args: in.Args[3:], legal: []string{"WITHMETA", "PATH"}, meant: meantPath}
	for o.next() {
		show.parseOption("DOC.GET", &o)
	}
	if o.err != nil {
		return nil, o.err
	}
	return onDocument(func(x *Context, d docTarget) Reply {
		d.countRead(x)
		if !d.found {
			return Null
		}
		return show.reply(x, d.item)
	}), nil
}

// shownParts are the options that say what DOC.GET and DOC.GETTOUCH show of a document: WITHMETA and PATH.
type shownParts struct {
	meta      bool
	paths     []jsondoc.Pointer
	readsMeta bool // a path reads _ts or _etag
}

// parseOption reads the current option of a command if it is one of these.
func (p *shownParts) parseOption(command string, o *namedOptions) {
	switch o.name {
	case "WITHMETA":
		p.meta = true
	case "PATH":
		var err error
		p.paths, err = parsePaths(command, o.values("one or several paths"))
		o.fail(err)
		p.readsMeta = slices.ContainsFunc(p.paths, jsondoc.Pointer.Meta)
	}
}

// reply returns what a command shows of a document.
func (p *shownParts) reply(x *Context, it keyspace.Item) Reply {
	return x.compute(len(it.Body), func() Reply {
		body := it.Body
		if p.meta {
			body = withMeta(body, it)
		}
		if len(p.paths) == 0 {
			return Bulk(body)
		}
		values := jsondoc.Values(body, p.paths)
		if p.readsMeta {
			// The server's members are no part of the stored text.
			for i, value := range jsondoc.Values(withMeta("{}", it), p.paths) {
				if p.paths[i].Meta() {
					values[i] = value
				}
			}
		}
		return valuesReply(values)
	})
}

// withMeta returns an object with the members _ts and _etag of an item.
func withMeta(object string, it keyspace.Item) string {
	return jsondoc.WithMeta(object, it.TS, etag(it.Version))
}

// meantPath returns what a word that is no option of DOC.GET probably means: a path, of JSONPath too.
func meantPath(word string) string {
	if p, ok := jsondoc.SuggestPointer(word); ok && strings.IndexByte("/$.", word[0]) >= 0 {
		return "PATH " + string(p)
	}
	return ""
}

// maxPaths bounds the number of paths of DOC.GET, and so their memory.
const maxPaths = 100

// parsePaths reads the paths of a command.
func parsePaths(command string, args []string) ([]jsondoc.Pointer, error) {
	if len(args) > maxPaths {
		return nil, fmt.Errorf("%d paths: legal are 1 to %d", len(args), maxPaths)
	}
	paths := make([]jsondoc.Pointer, len(args))
	for i, arg := range args {
		var err error
		switch {
		case redisfmt.EqualFold(arg, "WITHMETA"):
			return nil, errorf(errMetaAfterPath, command)
		case redisfmt.EqualFold(arg, "PATH"):
			return nil, errorf(errPathTwice, command)
		}
		if paths[i], err = jsondoc.ParsePointer(arg); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// valuesReply is the reply of DOC.GET with paths: a value for one path, an array for several. A missing
// value is null.
func valuesReply(values []string) Reply {
	replies := make([]Reply, len(values))
	for i, value := range values {
		replies[i] = Null
		if value != "" {
			replies[i] = Bulk(value)
		}
	}
	if len(values) == 1 {
		return replies[0]
	}
	return Array(replies...)
}

// trailingMeta returns the number of arguments that WITHMETA takes at the end of DOC.MGET. An id of that
// name is named alone.
func trailingMeta(args []string) int {
	if last := len(args) - 1; last > 2 && redisfmt.EqualFold(args[last], "WITHMETA") {
		return 1
	}
	return 0
}

func parseDocMget(in *Input) (Run, error) {
	options := trailingMeta(in.Args)
	ids, meta := in.Args[2:len(in.Args)-options], options > 0
	if misplaced(ids, "WITHMETA") {
		return nil, errMetaLast
	}
	return onDocuments(in.Args[1], ids, func(x *Context, docs iter.Seq[docTarget]) Reply {
		var replies []Reply
		var items []keyspace.Item // with WITHMETA: of the documents found, in order
		size := 0
		for d := range docs {
			d.countRead(x)
			if !d.found {
				replies = append(replies, Null)
				continue
			}
			replies = append(replies, Bulk(d.item.Body))
			if meta {
				items = append(items, d.item)
				size += len(d.item.Body)
			}
		}
		if !meta {
			return Array(replies...)
		}
		return x.compute(size, func() Reply {
			for i := range replies {
				if replies[i].Kind == KindNull {
					continue
				}
				replies[i].Str, items = withMeta(replies[i].Str, items[0]), items[1:]
			}
			return Array(replies...)
		})
	})
}

func parseDocExists(in *Input) (Run, error) {
	run, err := onDocuments(in.Args[1], in.Args[2:], func(x *Context, docs iter.Seq[docTarget]) Reply {
		n := 0
		for d := range docs {
			d.countRead(x)
			n += int(Flag(d.found).Int)
		}
		return Count(n)
	})
	if err != nil {
		return nil, err
	}
	return peeking(run), nil
}

// runDocTTL is the Run of DOC.TTL and its family.
func runDocTTL(b timeBase, u timeUnit) Run {
	return onDocument(func(x *Context, d docTarget) Reply {
		d.countRead(x)
		if !d.found {
			return Integer(-2)
		}
		return ttlReply(d.container.Policy(), d.item, x.Now(), b, u)
	})
}

var runDocMeta = onDocument(func(x *Context, d docTarget) Reply {
	d.countRead(x)
	if !d.found {
		return Null
	}
	policy, now := d.container.Policy(), x.Now()
	return x.compute(len(d.item.Body), func() Reply { return describeDocument(policy, d.item, now) })
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
func describeDocument(p *expiry.Policy, it keyspace.Item, now int64) Reply {
	doc := jsondoc.FromValid(it.Body, p.Deadline)
	source := doc.Source(p, it.TS, it.ExpireAt)
	ttl := Null
	switch source {
	case "hold":
		ttl = Integer(int64(expiry.Forever))
	case "document":
		if n, ok := ownTTLOf(&doc, it); ok {
			ttl = Integer(n)
		}
	case "container", "ignored":
		ttl = Integer(int64(p.Default))
	}
	return Map(
		Bulk("ts"), Integer(it.TS),
		Bulk("etag"), Bulk(etag(it.Version)),
		Bulk("ttl"), ttl,
		Bulk("source"), Bulk(source),
		Bulk("expiresat"), ttlReply(p, it, now, fromEpoch, milliseconds),
		Bulk("ttlleft"), ttlReply(p, it, now, fromNow, milliseconds),
		Bulk("size"), Count(len(it.Body)),
	)
}

// ownTTLOf returns the time to live in seconds of a document that has an end of its own; ok is false if that is a moment.
func ownTTLOf(doc *jsondoc.Document, it keyspace.Item) (ttl int64, ok bool) {
	switch {
	case doc.IsObject():
		return int64(doc.TTL), true
	case it.ExpireAt == expiry.Never:
		return int64(expiry.Forever), true
	}
	return 0, false
}

func parseDocCount(in *Input) (Run, error) {
	container := in.Args[1]
	return func(x *Context) Reply {
		c, err := x.Container(container)
		if err != nil {
			return Fail(err)
		}
		return Count(documents(x.Tx.Stats(c)))
	}, nil
}

// meantScanOption returns what a word that is no option of DOC.SCAN probably means.
func meantScanOption(word string) string {
	if _, ok := parseCount(word); ok {
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

func parseDocScan(in *Input) (Run, error) {
	container := in.Args[1]
	cursor, ok := redisfmt.ParseCursor(in.Args[2])
	if !ok {
		return nil, errorf(errScanCursor, expiry.Quote(in.Args[2]))
	}
	options, withDocs, meta := newScanOptions(), false, false
	o := namedOptions{args: in.Args[3:], legal: []string{"MATCH", "COUNT", "WITHDOCS", "WITHMETA"}, meant: meantScanOption}
	for o.next() {
		switch o.name {
		case "MATCH":
			o.fail(options.setPattern(o.value("a pattern")))
		case "COUNT":
			value := o.value("a whole number of at least 1")
			if options.count, ok = parseCount(value); !ok {
				o.fail(errorf(errScanCount, expiry.Quote(value)))
			}
		case "WITHDOCS":
			withDocs = true
		case "WITHMETA":
			meta = true
		}
	}
	if meta && !withDocs {
		o.fail(errMetaNeedsDoc)
	}
	if o.err != nil {
		return nil, o.err
	}
	return func(x *Context) Reply {
		c, err := x.Container(container)
		if err != nil {
			return Fail(err)
		}
		found := []Reply{}
		next := x.scan(c, cursor, options.count, func(id string, it keyspace.Item) {
			if it.Kind != keyspace.Document || !options.selects(id) {
				return
			}
			found = append(found, Bulk(id))
			switch {
			case meta:
				found = append(found, Bulk(withMeta(it.Body, it)))
			case withDocs:
				found = append(found, Bulk(it.Body))
			}
		})
		if x.abandoned {
			return Fail(errAbandoned)
		}
		return Array(Bulk(strconv.FormatUint(next, 10)), Array(found...))
	}, nil
}
