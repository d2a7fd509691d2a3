package commands

import (
	"mayfly/expiry"
	"mayfly/keyspace"
)

func parseDocPut(in *Input) (Run, error) {
	container, id, err := documentID(in)
	if err != nil {
		return nil, err
	}
	opt, err := parsePutOptions(in.Args[4:])
	if err != nil {
		return nil, err
	}
	doc, err := parseBody(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	if opt.withTTL {
		if doc, err = doc.set(opt.ttl, in.MaxValue); err != nil {
			return nil, err
		}
	}
	return func(x *Context) Reply {
		c, it, found, err := findDocument(x, container, id)
		if err != nil {
			return Fail(err)
		}
		if err := doc.refused(c.Policy()); err != nil {
			return Fail(err)
		}
		if !opt.when.holds(it, found) {
			return Null
		}
		putDocument(x, c, id, doc.json, doc.ttl)
		return OK
	}, nil
}

// putOptions are the options of DOC.PUT.
type putOptions struct {
	withTTL bool
	ttl     expiry.TTL // Absent: the member is removed
	when    condition
}

func parsePutOptions(args []string) (putOptions, error) {
	var opt putOptions
	var err error
	o := namedOptions{args: args, legal: []string{"TTL", "NX", "XX", "IFMATCH"}}
	for o.next() {
		switch o.name {
		case "TTL":
			opt.withTTL = true
			opt.ttl, err = expiry.ParseOption(o.value())
			o.fail(err)
		case "NX":
			opt.when.absent = true
		case "XX":
			opt.when.present = true
		case "IFMATCH":
			o.fail(opt.when.parseMatch(o.value()))
		}
	}
	o.fail(opt.when.check())
	return opt, o.err
}

// condition is what must hold of the document that is there for a write to take place. The zero
// value always holds.
type condition struct {
	absent, present bool   // NX, XX or IFMATCH *
	match           bool   // IFMATCH: present, and version is
	version         uint64 // this one
}

// parseMatch reads the value of IFMATCH.
func (w *condition) parseMatch(value string) (err error) {
	if value == "*" {
		w.present = true
		return nil
	}
	w.match = true
	w.version, err = parseEtag(value)
	return err
}

// check refuses what can never hold. XX and IFMATCH go together, though the latter says it all.
func (w *condition) check() error {
	if w.absent && (w.present || w.match) {
		return Error("ERR NX and XX or IFMATCH options at the same time are not compatible")
	}
	return nil
}

func (w *condition) holds(it keyspace.Item, found bool) bool {
	switch {
	case w.absent:
		return !found
	case w.match:
		return found && it.Version == w.version
	case w.present:
		return found
	}
	return true
}

func parseDocSetTTL(in *Input) (Run, error) {
	container, id, err := documentID(in)
	if err != nil {
		return nil, err
	}
	ttl, err := expiry.ParseOption(in.Args[3])
	if err != nil {
		return nil, err
	}
	most := in.MaxValue
	return func(x *Context) Reply {
		c, it, found, err := findDocument(x, container, id)
		if err != nil {
			return Fail(err)
		}
		if !found {
			return Flag(false)
		}
		if err := setDocumentTTL(x, c, id, it, ttl, most); err != nil {
			return Fail(err)
		}
		return Flag(true)
	}, nil
}

// parseEachDocument makes the parser of a command that does the same to each of several documents
// and counts them.
func parseEachDocument(do func(x *Context, c *keyspace.Container, id string, it keyspace.Item)) func(*Input) (Run, error) {
	return func(in *Input) (Run, error) {
		container, ids, err := documentIDs(in)
		if err != nil {
			return nil, err
		}
		return func(x *Context) Reply {
			c, err := x.Container(container)
			if err != nil {
				return Fail(err)
			}
			n := 0
			for _, id := range ids {
				if it, ok := x.Tx.Get(c, id); ok && it.Kind == keyspace.Document {
					do(x, c, id, it)
					n++
				}
			}
			return Count(n)
		}, nil
	}
}

func countDocument(*Context, *keyspace.Container, string, keyspace.Item) {}

func deleteDocument(x *Context, c *keyspace.Container, id string, _ keyspace.Item) {
	x.Tx.Delete(c, id)
}

// touchDocument writes a document again as it is.
func touchDocument(x *Context, c *keyspace.Container, id string, it keyspace.Item) {
	ttl, _ := readTTL(it.Body) // one that does not count was ignored when it was stored, and is now
	putDocument(x, c, id, it.Body, ttl)
}
