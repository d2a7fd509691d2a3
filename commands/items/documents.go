package items

import (
	"fmt"
	"iter"
	"slices"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// DocTarget is the document that a command names.
type DocTarget struct {
	Container *keyspace.Container
	ID        string
	Item      keyspace.Item // the zero item unless found
	Found     bool          // the document exists
}

// OnDocument returns the Run of a command on one document: it looks the document up and calls do. The
// engine has checked the length of the id.
func OnDocument(do func(x *engine.Context, d DocTarget) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		c, id, err := PlaceOfDocument(x)
		if err != nil {
			return engine.Fail(err)
		}
		it, found := x.Tx.Get(c, id)
		if found && it.Kind != keyspace.Document {
			return engine.Fail(NotADocument(it.Kind))
		}
		return do(x, DocTarget{c, id, it, found})
	}
}

// NotADocument is the error for a command on a document whose id is a key of a kind.
func NotADocument(k keyspace.Kind) error {
	if k.IsCollection() {
		return engine.Errorf("%s: it is a %s, no document", engine.ErrWrongType, TypeName(k))
	}
	return engine.ErrPlainKey
}

// PlaceOfDocument returns the container and the id that a command on one document names.
func PlaceOfDocument(x *engine.Context) (c *keyspace.Container, id string, err error) {
	id = x.Input.Args[2]
	if id == "" {
		return nil, "", errEmptyID
	}
	c, err = x.Container(x.Input.Args[1])
	return c, id, err
}

// OnDocuments returns the Run of a command on several documents. It calls do with an iterator that
// looks them up one by one. name is the container's.
func OnDocuments(name string, ids []string, do func(x *engine.Context, docs iter.Seq[DocTarget]) engine.Reply) (engine.Run, error) {
	if slices.Contains(ids, "") {
		return nil, errEmptyID
	}
	return func(x *engine.Context) engine.Reply {
		c, err := x.Container(name)
		if err != nil {
			return engine.Fail(err)
		}
		return do(x, func(yield func(DocTarget) bool) {
			for _, id := range ids {
				it, found := x.Tx.Get(c, id)
				if !yield(DocTarget{c, id, it, found && it.Kind == keyspace.Document}) {
					return
				}
			}
		})
	}, nil
}

// CountRead counts that a client has asked for the document.
func (d DocTarget) CountRead(x *engine.Context) { x.CountRead(d.Container, d.ID, d.Found) }

// PutDocument stores a document and restarts its clock. One whose deadline has passed is gone at once.
func PutDocument(x *engine.Context, c *keyspace.Container, id string, doc *jsondoc.Document, e events.Kind) {
	if doc.Passed(c.Policy(), x.Now()) {
		PutDead(x, c, id, e)
		return
	}
	storeDocument(x, c, id, doc, doc.ExpireAt(x.Now()), e)
}

// storeDocument stores a document with an end, whatever it says of one itself.
func storeDocument(x *engine.Context, c *keyspace.Container, id string, doc *jsondoc.Document, expireAt int64, e events.Kind) {
	n := keyspace.Chosen
	if doc.Compact {
		n = keyspace.Compact
	}
	x.StoreEncoded(c, id, keyspace.Document, doc.JSON, expireAt, n)
	x.Notify(e, c, id)
}

// PutEdited stores the document that a patch has made of the target. touches reports whether the patch may
// have changed a root member. The container judges only the ttl and the deadline that it has: else one that
// was ignored before stays ignored.
func (d DocTarget) PutEdited(x *engine.Context, doc jsondoc.Document, touches func(member string) bool, e events.Kind) engine.Reply {
	p := d.Container.Policy()
	if touches(jsondoc.TTLMember) {
		if err := doc.CheckTTL(p); err != nil {
			return engine.Fail(err)
		}
	}
	if p.Deadline != "" && touches(p.Deadline) {
		if err := doc.CheckDeadline(p, x.Now()); err != nil {
			return engine.Fail(err)
		}
	}
	PutDocument(x, d.Container, d.ID, &doc, e)
	return engine.OK
}

// JudgeJSON returns the error with which the container refuses a document in the place of the target. It
// judges the member ttl and the deadline of a whole document, as those of DOC.PUT. Those that an edit of
// values leaves as they are it does not judge again: what was ignored before stays ignored.
func (d DocTarget) JudgeJSON(x *engine.Context, doc *jsondoc.Document, whole bool) error {
	p := d.Container.Policy()
	doc.ReadDeadline(p.Deadline)
	if whole || !d.Found {
		return doc.Check(p, x.Now())
	}
	if doc.TTLErr == nil && doc.Deadline == nil {
		return nil
	}
	was := jsondoc.FromValid(d.Item.Body, p.Deadline)
	if was.TTL != doc.TTL || (was.TTLErr == nil) != (doc.TTLErr == nil) {
		if err := doc.CheckTTL(p); err != nil {
			return err
		}
	}
	if doc.Deadline != nil && was.Deadline.Raw != doc.Deadline.Raw {
		return doc.CheckDeadline(p, x.Now())
	}
	return nil
}

// StoreJSON stores a document that the container accepts, and restarts its clock. One that is not an object
// has the end of the target.
func (d DocTarget) StoreJSON(x *engine.Context, doc *jsondoc.Document, e events.Kind) {
	if doc.IsObject() {
		PutDocument(x, d.Container, d.ID, doc, e)
		return
	}
	storeDocument(x, d.Container, d.ID, doc, d.Item.ExpireAt, e)
}

// PutJSON stores a whole document.
func (d DocTarget) PutJSON(x *engine.Context, doc *jsondoc.Document, e events.Kind) engine.Reply {
	if err := d.JudgeJSON(x, doc, true); err != nil {
		return engine.Fail(err)
	}
	d.Item.ExpireAt = expiry.Inherit
	d.StoreJSON(x, doc, e)
	return engine.OK
}

// PutJSONEdit stores the document that an edit of values has made of the target. A document that is not an
// object keeps the end that EXPIRE gave it.
func (d DocTarget) PutJSONEdit(x *engine.Context, doc *jsondoc.Document, e events.Kind) error {
	if err := d.JudgeJSON(x, doc, false); err != nil {
		return err
	}
	if jsondoc.IsObject(d.Item.Body) {
		d.Item.ExpireAt = expiry.Inherit // it was of the member ttl
	}
	d.StoreJSON(x, doc, e)
	return nil
}

// WithMeta returns an object with the members _ts and _etag of an item.
func WithMeta(object string, it keyspace.Item) string {
	return jsondoc.WithMeta(object, it.TS, engine.ETag(it.Version))
}

// MaxPaths bounds the number of paths of DOC.GET, and so their memory.
const MaxPaths = 100

// ParsePaths reads the paths of a command.
func ParsePaths(command string, args []string) ([]jsondoc.Pointer, error) {
	if len(args) > MaxPaths {
		return nil, fmt.Errorf("%d paths: legal are 1 to %d", len(args), MaxPaths)
	}
	paths := make([]jsondoc.Pointer, len(args))
	for i, arg := range args {
		var err error
		switch {
		case redisfmt.EqualFold(arg, "WITHMETA"):
			return nil, engine.Errorf(errMetaAfterPath, command)
		case redisfmt.EqualFold(arg, "PATH"):
			return nil, engine.Errorf(errPathTwice, command)
		}
		if paths[i], err = jsondoc.ParsePointer(arg); err != nil {
			return nil, err
		}
	}
	return paths, nil
}

// OwnTTLOf returns the time to live in seconds of a document that has an end of its own; ok is false if that
// is a moment.
func OwnTTLOf(doc *jsondoc.Document, it keyspace.Item) (ttl int64, ok bool) {
	switch {
	case doc.IsObject():
		return int64(doc.TTL), true
	case it.ExpireAt == expiry.Never:
		return int64(expiry.Forever), true
	}
	return 0, false
}

// Documents returns the number of a container's living documents.
func Documents(s keyspace.ContainerStats) int { return s.Documents - s.Plain }
