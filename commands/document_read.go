package commands

import (
	"iter"
	"strconv"

	"mayfly/commands/redisfmt"
	"mayfly/expiry"
	"mayfly/keyspace"
)

// getWhole is DOC.GET without options. It does what onDocument would, but hands on no more of the item than
// the reply needs.
func getWhole(x *Context) Reply {
	c, id, err := x.placeOfDocument()
	if err != nil {
		return Fail(err)
	}
	it, found := x.Tx.Get(c, id)
	if found && it.Kind != keyspace.Document {
		return Fail(errWrongType)
	}
	x.asked(c, id, found)
	if !found {
		return Null
	}
	return Bulk(it.Body)
}

func parseDocGet(in *Input) (Run, error) {
	if len(in.Args) == 3 {
		return getWhole, nil
	}
	meta := false
	var paths []pointer
	var err error
	o := namedOptions{args: in.Args[3:], legal: []string{"WITHMETA", "PATH"}}
	for o.next() {
		switch o.name {
		case "WITHMETA":
			meta = true
		case "PATH":
			paths, err = parsePaths(o.values("one or several paths"))
			o.fail(err)
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return onDocument(func(x *Context, d oneDocument) Reply {
		d.asked(x)
		if !d.found {
			return Null
		}
		json := d.item.Body
		if meta {
			json = withMeta(json, d.item.TS, etag(d.item.Version))
		}
		return selectPaths(json, paths)
	}), nil
}

func parseDocMget(in *Input) (Run, error) {
	return onDocuments(in, func(x *Context, docs iter.Seq[oneDocument]) Reply {
		var replies []Reply
		for d := range docs {
			d.asked(x)
			if d.found {
				replies = append(replies, Bulk(d.item.Body))
			} else {
				replies = append(replies, Null)
			}
		}
		return Array(replies...)
	})
}

func parseDocExists(in *Input) (Run, error) {
	return onDocuments(in, func(x *Context, docs iter.Seq[oneDocument]) Reply {
		n := 0
		for d := range docs {
			d.asked(x)
			n += int(Flag(d.found).Int)
		}
		return Count(n)
	})
}

// docEnd is DOC.TTL and its kin.
func docEnd(b base, u unit) Run {
	return onDocument(func(x *Context, d oneDocument) Reply {
		d.asked(x)
		if !d.found {
			return Integer(-2)
		}
		return endReply(d.container.Policy(), d.item, x.Now(), b, u)
	})
}

var docMeta = onDocument(func(x *Context, d oneDocument) Reply {
	d.asked(x)
	if !d.found {
		return Null
	}
	return describeDocument(d.container.Policy(), d.item, x.Now())
})

// describeDocument is the reply of DOC.META:
//
//	ts         time of the last write, ms since 1970
//	etag       as in WITHMETA and IFMATCH
//	ttl        the time to live that rules it, in seconds; -1 for ever; null in a container that is off
//	source     where that comes from: document, container, off, or ignored: the container, because
//	           the document's own does not count
//	expiresat  when it dies, ms since 1970; -1 never
//	ttlleft    how long it has left, ms; -1 for ever
//	size       of the JSON, bytes
func describeDocument(p *expiry.Policy, it keyspace.Item, now int64) Reply {
	own, bad := readTTL(it.Body)
	source := p.Source(it.ExpireAt, bad != nil)
	ttl := Null
	switch source {
	case "document":
		ttl = Integer(int64(own))
	case "container", "ignored":
		ttl = Integer(int64(p.Default))
	}
	return Map(
		Bulk("ts"), Integer(it.TS),
		Bulk("etag"), Bulk(etag(it.Version)),
		Bulk("ttl"), ttl,
		Bulk("source"), Bulk(source),
		Bulk("expiresat"), endReply(p, it, now, fromEpoch, milliseconds),
		Bulk("ttlleft"), endReply(p, it, now, fromNow, milliseconds),
		Bulk("size"), Count(len(it.Body)),
	)
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

func parseDocScan(in *Input) (Run, error) {
	container := in.Args[1]
	cursor, ok := redisfmt.ParseCursor(in.Args[2])
	if !ok {
		return nil, errInvalidCursor
	}
	options, withDocs := newScanOptions(), false
	for args := in.Args[3:]; len(args) > 0; {
		used, err := options.parseOption(args)
		switch {
		case err != nil:
			return nil, err
		case used == 0 && redisfmt.EqualFold(args[0], "WITHDOCS"):
			withDocs, used = true, 1
		case used == 0:
			return nil, errSyntax
		}
		args = args[used:]
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
			if withDocs {
				found = append(found, Bulk(it.Body))
			}
		})
		return Array(Bulk(strconv.FormatUint(next, 10)), Array(found...))
	}, nil
}
