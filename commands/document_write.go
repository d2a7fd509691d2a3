package commands

import (
	"iter"

	"mayfly/expiry"
	"mayfly/keyspace"
)

func parseDocPut(in *Input) (Run, error) {
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
	in.put = putInput{doc, opt.when}
	return docPut, nil
}

// putInput is what DOC.PUT stores, and when.
type putInput struct {
	doc  body
	when condition
}

// docPut does what onDocument would, but hands on no more of the item than is needed.
func docPut(x *Context) Reply {
	c, id, err := x.placeOfDocument()
	if err != nil {
		return Fail(err)
	}
	it, found := x.Tx.Get(c, id)
	if found && it.Kind != keyspace.Document {
		return Fail(errWrongType)
	}
	doc, when := &x.Input.put.doc, &x.Input.put.when
	if err := doc.refused(c.Policy()); err != nil {
		return Fail(err)
	}
	if !when.holds(found, it.Version) {
		return Null
	}
	putDocument(x, c, id, doc.json, doc.ttl, eventDocPut)
	return OK
}

// putOptions are the options of DOC.PUT.
type putOptions struct {
	withTTL bool
	ttl     expiry.TTL // Absent: the member is removed
	when    condition
}

var putOptionNames = []string{"TTL", "NX", "XX", "IFMATCH"}

func parsePutOptions(args []string) (putOptions, error) {
	var opt putOptions
	var err error
	o := namedOptions{args: args, legal: putOptionNames}
	for o.next() {
		switch o.name {
		case "TTL":
			opt.withTTL = true
			opt.ttl, err = expiry.ParseOption(o.value("-1, seconds or null"))
			o.fail(err)
		case "NX":
			opt.when.absent = true
		case "XX":
			opt.when.present = true
		case "IFMATCH":
			o.fail(opt.when.parseMatch(o.value("an etag or *")))
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

// holds tells it of a document that is there, if found, in a version.
func (w *condition) holds(found bool, version uint64) bool {
	switch {
	case w.absent:
		return !found
	case w.match:
		return found && version == w.version
	case w.present:
		return found
	}
	return true
}

func parseDocSetTTL(in *Input) (Run, error) {
	ttl, err := expiry.ParseOption(in.Args[3])
	if err != nil {
		return nil, err
	}
	most := in.MaxValue
	return onDocument(func(x *Context, d oneDocument) Reply {
		if !d.found {
			return Flag(false)
		}
		if err := setDocumentTTL(x, d.container, d.id, d.item, ttl, most, eventDocSetTTL); err != nil {
			return Fail(err)
		}
		return Flag(true)
	}), nil
}

func parseDocDel(in *Input) (Run, error) {
	return countDocuments(in, func(x *Context, d oneDocument) { x.remove(d.container, d.id) })
}

func parseDocTouch(in *Input) (Run, error) {
	return countDocuments(in, func(x *Context, d oneDocument) {
		ttl, _ := readTTL(d.item.Body) // one that does not count was ignored when it was stored, and is now
		putDocument(x, d.container, d.id, d.item.Body, ttl, eventDocTouch)
	})
}

// countDocuments makes the Run of a command that does the same to each of several documents, and
// whose reply is how many there were.
func countDocuments(in *Input, do func(x *Context, d oneDocument)) (Run, error) {
	return onDocuments(in, func(x *Context, docs iter.Seq[oneDocument]) Reply {
		n := 0
		for d := range docs {
			if d.found {
				do(x, d)
				n++
			}
		}
		return Count(n)
	})
}
