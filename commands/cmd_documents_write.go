package commands

import (
	"iter"
	"math"
	"strings"
	"unsafe"

	"mayfly/commands/jsondoc"
	"mayfly/commands/redisfmt"
	"mayfly/expiry"
	"mayfly/keyspace"
)

func parseDocPut(in *Input) (Run, error) {
	opt, err := parsePutOptions(in.Args[4:])
	if err != nil {
		return nil, err
	}
	doc, err := jsondoc.Parse(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	if opt.withTTL {
		if doc, err = doc.WithTTL(opt.ttl, in.MaxValue); err != nil {
			return nil, err
		}
	}
	in.put = putInput{doc: doc, when: opt.when, ts: opt.ts}
	return runDocPut, nil
}

// putInput is what DOC.PUT stores, and under which condition.
type putInput struct {
	doc  jsondoc.Document
	when precondition
	ts   int64 // when it was written elsewhere, ms; 0: it is written now
}

var runDocPut = onDocument(func(x *Context, d docTarget) Reply {
	doc, when, ts := &x.Input.put.doc, &x.Input.put.when, x.Input.put.ts
	p := d.container.Policy()
	if err := doc.CheckTTL(p); err != nil {
		return Fail(err)
	}
	if p.Deadline != "" && !readDeadline(x, doc, p.Deadline) {
		return Reply{}
	}
	if err := doc.CheckDeadline(p, x.Now()); err != nil {
		return Fail(err)
	}
	if !when.holds(d.found, d.item.Version) {
		return Null
	}
	if !d.found && d.container.IsDatabase() {
		if c := x.Tx.Container(d.id); c != nil && !c.IsDatabase() { // DOC.PUT 1 orders, where orders 1 is meant
			database, name := d.container.Name(), shown(d.id)
			return Fail(errorf(errExchanged, database, name, name, database))
		}
	}
	if ts != 0 {
		return d.restore(x, doc, ts)
	}
	putDocument(x, d.container, d.id, doc, eventDocPut)
	return OK
})

// restore stores a document that was written elsewhere at ts (ms), unless it is dead by now or a later one is here.
func (d docTarget) restore(x *Context, doc *jsondoc.Document, ts int64) Reply {
	ts = min(ts, x.Now())
	it := keyspace.Item{Kind: keyspace.Document, Body: doc.JSON, TS: ts, ExpireAt: doc.ExpireAt(ts)}
	x.work += int64(len(it.Body))
	if x.Tx.Restore(d.container, d.id, it) != keyspace.Stored {
		return Null
	}
	if !d.found {
		x.notify(eventNew, d.container, d.id)
	}
	x.notify(eventDocPut, d.container, d.id)
	return OK
}

// readDeadline reads the deadline of a document, in a long one without locks. It returns false if the Run must return:
// it runs again afterwards.
func readDeadline(x *Context, doc *jsondoc.Document, member string) bool {
	if doc.Deadline != nil && doc.Deadline.Member == member {
		return true
	}
	if len(doc.JSON) < slowBytes || x.queued {
		doc.ReadDeadline(member)
		return true
	}
	x.outside = func() (_ Reply, again bool) {
		doc.ReadDeadline(member)
		return Reply{}, true
	}
	return false
}

// putOptions are the options of DOC.PUT.
type putOptions struct {
	withTTL bool
	ttl     expiry.TTL // if withTTL; Absent removes the member
	when    precondition
	ts      int64 // as in putInput
}

var putOptionNames = []string{"TTL", "NX", "XX", "IFMATCH", "TS"}

func parsePutOptions(args []string) (putOptions, error) {
	var opt putOptions
	var err error
	o := namedOptions{args: args, legal: putOptionNames, meant: meantPutOption}
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
			o.fail(opt.when.parseMatch(o.value("an etag or *"), docEtags))
		case "TS":
			opt.ts = o.number(1, math.MaxInt64)
		}
	}
	o.fail(opt.when.validate())
	return opt, o.err
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

// precondition is the condition under which a write takes place. The zero value always holds.
type precondition struct {
	absent, present bool   // NX; XX or IFMATCH *
	matchVersion    bool   // IFMATCH etag: the document has this version
	version         uint64 // if matchVersion
}

// parseMatch reads the value of IFMATCH. shownBy is the command that shows such etags, for the error.
func (w *precondition) parseMatch(value, shownBy string) (err error) {
	if value == "*" {
		w.present = true
		return nil
	}
	w.matchVersion = true
	w.version, err = parseEtag(value, shownBy)
	return err
}

// parseMatchOption reads the arguments of a command whose only option is IFMATCH.
func parseMatchOption(args []string) (when precondition, err error) {
	o := namedOptions{args: args, legal: []string{"IFMATCH"}}
	for o.next() {
		o.fail(when.parseMatch(o.value("an etag or *"), docEtags))
	}
	return when, o.err
}

// validate refuses a condition that can never hold. XX with IFMATCH is legal, though redundant.
func (w *precondition) validate() error {
	if w.absent && (w.present || w.matchVersion) {
		return errPutConflict
	}
	return nil
}

// holds reports whether the condition holds for a document of a version, or for none.
func (w *precondition) holds(found bool, version uint64) bool {
	switch {
	case w.absent:
		return !found
	case w.matchVersion:
		return found && version == w.version
	case w.present:
		return found
	}
	return true
}

func parseDocPatch(in *Input) (Run, error) {
	args := in.Args[3:]
	var when precondition
	if redisfmt.EqualFold(args[0], "IFMATCH") {
		if err := when.parseMatch(args[1], docEtags); err != nil {
			return nil, err
		}
		args = args[2:]
	}
	patch, err := jsondoc.ParsePatch(args)
	if err != nil {
		return nil, err
	}
	maxSize := in.MaxValue
	e := edit{apply: func(body, _ string) (jsondoc.Document, error) { return patch.Apply(body, maxSize) }}
	return onDocument(func(x *Context, d docTarget) Reply {
		if !d.found || !when.holds(d.found, d.item.Version) {
			return Null
		}
		if !e.ready(x, d, 0) {
			return Reply{}
		}
		if e.err != nil {
			return Fail(e.err)
		}
		return d.putEdited(x, e.doc, patch.Touches, eventDocPatch)
	}), nil
}

func parseDocMerge(in *Input) (Run, error) {
	when, err := parseMatchOption(in.Args[4:])
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
	e := edit{apply: func(body, _ string) (jsondoc.Document, error) { return patch.Apply(body, maxSize) }}
	return onDocument(func(x *Context, d docTarget) Reply {
		if !when.holds(d.found, d.item.Version) {
			return Null
		}
		if !e.ready(x, d, patchSize) { // without a document the body is empty
			return Reply{}
		}
		if e.err != nil {
			return Fail(e.err)
		}
		return d.putEdited(x, e.doc, patch.Touches, eventDocMerge)
	}), nil
}

// edit computes what a command makes of a document or a plain value, outside of locks if that takes long. Another command
// may change the document meanwhile. Then the edit is computed again, at last under the lock, so that a
// busy document cannot keep it from ever happening.
type edit struct {
	apply func(body, deadline string) (jsondoc.Document, error) // depends on these only
	plain bool                                                  // it edits plain values

	doc jsondoc.Document // the result
	err error            // or why there is none

	tries    int    // computations without locks
	version  uint64 // of the document that the last one has read; 0: there was none
	deadline string // the member that it has read as the deadline
}

// maxTries is how often an edit is computed without locks.
const maxTries = 3

// ready reports whether the edit has been computed from the document as it is. If not, the Run returns: it
// runs again afterwards. size is what the edit reads besides the document, in bytes.
func (e *edit) ready(x *Context, d docTarget, size int) bool {
	deadline := ""
	if !e.plain {
		deadline = d.container.Policy().Deadline
	}
	if e.tries > 0 && e.version == d.item.Version && e.deadline == deadline {
		return true
	}
	body := d.item.Body
	if len(body)+size < slowBytes || x.queued || e.tries == maxTries {
		e.compute(body, deadline)
		return true
	}
	e.tries++
	x.outside = func() (_ Reply, again bool) {
		e.compute(body, deadline)
		e.version, e.deadline = d.item.Version, deadline
		if unsafe.StringData(e.doc.JSON) != unsafe.StringData(body) { // else only the header is written
			x.Tx.Prepare(e.doc.JSON)
		}
		return Reply{}, true
	}
	return false
}

// compute applies the edit.
func (e *edit) compute(body, deadline string) {
	if e.doc, e.err = e.apply(body, deadline); e.err == nil {
		e.doc.ReadDeadline(deadline)
	}
}

// editOf returns the edit of a plain value.
func editOf(apply func(value string) string) edit {
	return edit{plain: true, apply: func(value, _ string) (jsondoc.Document, error) {
		return jsondoc.Document{JSON: apply(value)}, nil
	}}
}

// ttlEdit sets the member ttl of a document.
type ttlEdit struct {
	edit
	ttl     expiry.TTL // of the last computation
	maxSize int        // of a document, bytes
}

func editTTL(maxSize int) *ttlEdit {
	e := &ttlEdit{maxSize: maxSize}
	e.apply = func(body, _ string) (jsondoc.Document, error) {
		return jsondoc.Document{JSON: body}.WithTTL(e.ttl, e.maxSize)
	}
	return e
}

// set sets the member, or removes it for Absent, and restarts the clock. It returns 1 or an error.
func (e *ttlEdit) set(x *Context, d docTarget, ttl expiry.TTL, kind eventKind) Reply {
	if e.ttl != ttl && e.tries > 0 { // a time that was given as a moment is nearer now
		e.tries = maxTries
		e.version = d.item.Version + 1
	}
	e.ttl = ttl
	if !e.ready(x, d, 0) {
		return Reply{}
	}
	if e.err != nil {
		return Fail(e.err)
	}
	putDocument(x, d.container, d.id, &e.doc, kind)
	return Flag(true)
}

func parseDocSetTTL(in *Input) (Run, error) {
	ttl, err := expiry.ParseOption(in.Args[3])
	if err != nil {
		return nil, err
	}
	when, err := parseMatchOption(in.Args[4:])
	if err != nil {
		return nil, err
	}
	e := editTTL(in.MaxValue)
	return onDocument(func(x *Context, d docTarget) Reply {
		if !d.found || !when.holds(d.found, d.item.Version) {
			return Flag(false)
		}
		return e.set(x, d, ttl, eventDocSetTTL)
	}), nil
}

func parseDocDel(in *Input) (Run, error) {
	remove := func(x *Context, d docTarget) { x.remove(d.container, d.id) }
	return countDocuments(in, "doc.del", remove, func(x *Context, d docTarget) {
		if _, plain := x.Tx.Get(d.container, d.id); !plain {
			remove(x, d) // what is dead here does not come back
		}
	})
}

func parseDocTouch(in *Input) (Run, error) {
	e := touchEdit()
	single := len(in.Args)-trailingMatch(in.Args) == 3
	return countDocuments(in, "doc.touch", func(x *Context, d docTarget) {
		if !single {
			e = edit{apply: e.apply, tries: maxTries}
		}
		if e.ready(x, d, 0) {
			d.storeJSON(x, &e.doc, eventDocTouch)
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

// countDocuments returns the Run of a command that calls do for each of several documents, or for one
// that IFMATCH has compared. It calls missing, if not nil, for each that does not exist. The reply is how many of them exist and match.
func countDocuments(in *Input, command string, do, missing func(x *Context, d docTarget)) (Run, error) {
	end := len(in.Args) - trailingMatch(in.Args)
	ids := in.Args[2:end]
	when, err := parseMatchOption(in.Args[end:])
	switch {
	case err != nil:
		return nil, err
	case end < len(in.Args) && len(ids) > 1, misplaced(ids, "IFMATCH"):
		return nil, errorf(errMatchOneID, strings.ToUpper(command))
	}
	return onDocuments(in.Args[1], ids, func(x *Context, docs iter.Seq[docTarget]) Reply {
		n := 0
		for d := range docs {
			switch {
			case d.found && when.holds(d.found, d.item.Version):
				do(x, d)
				n++
			case !d.found && missing != nil && end == len(in.Args):
				missing(x, d)
			}
		}
		return Count(n)
	})
}
