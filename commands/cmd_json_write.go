package commands

import (
	"mayfly/commands/jsondoc"
	"mayfly/commands/jsonedit"
	"mayfly/commands/redisfmt"
	"mayfly/expiry"
)

func eventJSON(name string) eventKind { return eventKind{classDocument, name} }

// judgeJSON returns the error with which the container refuses a document in the place of the target. It judges the member
// ttl and the deadline of a whole document, as those of DOC.PUT. Those that an edit of values leaves as they are it does
// not judge again: what was ignored before stays ignored.
func (d docTarget) judgeJSON(x *Context, doc *jsondoc.Document, whole bool) error {
	p := d.container.Policy()
	doc.ReadDeadline(p.Deadline)
	if whole || !d.found {
		return doc.Check(p, x.Now())
	}
	if doc.TTLErr == nil && doc.Deadline == nil {
		return nil
	}
	was := jsondoc.FromValid(d.item.Body, p.Deadline)
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

// storeJSON stores a document that the container accepts, and restarts its clock. One that is not an object has the end of
// the target.
func (d docTarget) storeJSON(x *Context, doc *jsondoc.Document, e eventKind) {
	if doc.IsObject() {
		putDocument(x, d.container, d.id, doc, e)
		return
	}
	x.storeDocument(d.container, d.id, doc, d.item.ExpireAt, e)
}

// putJSON stores a whole document.
func (d docTarget) putJSON(x *Context, doc *jsondoc.Document, e eventKind) Reply {
	if err := d.judgeJSON(x, doc, true); err != nil {
		return Fail(err)
	}
	d.item.ExpireAt = expiry.Inherit
	d.storeJSON(x, doc, e)
	return OK
}

// putJSONEdit stores the document that an edit of values has made of the target. A document that is not an object keeps
// the end that EXPIRE gave it.
func (d docTarget) putJSONEdit(x *Context, doc *jsondoc.Document, e eventKind) error {
	if err := d.judgeJSON(x, doc, false); err != nil {
		return err
	}
	if jsondoc.IsObject(d.item.Body) {
		d.item.ExpireAt = expiry.Inherit // it was of the member ttl
	}
	d.storeJSON(x, doc, e)
	return nil
}

// jsonOptions are NX and XX.
type jsonOptions struct{ absent, present bool }

func parseJSONOptions(args []string) (o jsonOptions, err error) {
	for _, arg := range args {
		switch {
		case o != jsonOptions{}:
			return o, errSyntax
		case redisfmt.EqualFold(arg, "NX"):
			o.absent = true
		case redisfmt.EqualFold(arg, "XX"):
			o.present = true
		default:
			return o, errSyntax
		}
	}
	return o, nil
}

// parseJSONSet parses JSON.SET.
func parseJSONSet(in *Input) (Run, error) {
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	o, err := parseJSONOptions(in.Args[4:])
	if err != nil {
		return nil, err
	}
	doc, err := parseJSONRoot(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	maxSize := in.MaxValue
	if p.Root() {
		in.put = putInput{doc: doc, when: precondition{absent: o.absent, present: o.present}}
		return runJSONSet, nil
	}
	return editingJSON(in, eventJSONSet, jsonEditor{
		absent: func() (Reply, error) {
			if o.present {
				return Null, nil
			}
			return Null, errJSONRoot
		},
		apply: func(body string) (string, Reply, error) { return setJSONAt(body, p, doc.JSON, o, maxSize) },
	}), nil
}

// runJSONSet is JSON.SET of the root.
func runJSONSet(x *Context) Reply {
	d, err := x.jsonTarget(x.Input.Args[1])
	if err != nil {
		return Fail(err)
	}
	put := &x.Input.put
	if !put.when.holds(d.found, d.item.Version) {
		return Null
	}
	if d.container.Policy().Deadline != "" && !readDeadline(x, &put.doc, d.container.Policy().Deadline) {
		return Reply{}
	}
	return d.putJSON(x, &put.doc, eventJSONSet)
}

var eventJSONSet = eventJSON("json.set")

// setJSONAt sets the values at a path, or a member that is not there. The reply is null if it changes nothing.
func setJSONAt(body string, p jsonPath, value string, o jsonOptions, maxSize int) (string, Reply, error) {
	if !o.absent {
		spans, err := p.find(body)
		if err != nil {
			return "", Null, err
		}
		if len(spans) > 0 {
			text, err := transformJSON(body, outermost(spans), maxSize, func(int, string) (string, error) { return value, nil })
			return text, OK, err
		}
	}
	if o.present {
		return body, Null, nil
	}
	return addJSONMember(body, p, value)
}

// addJSONMember adds the member that the last step of a path names. The reply is null if there is no object for it, or if
// the object has the member.
func addJSONMember(body string, p jsonPath, value string) (string, Reply, error) {
	if !p.Static() {
		return body, Null, errJSONStatic
	}
	spans, name, ok, err := p.Parents(nil, body)
	switch {
	case err != nil:
		return body, Null, err
	case !ok: // an element
		if _, found, err := p.First(body); found || err != nil {
			return body, Null, err
		}
		return body, Null, errJSONIndex
	case len(spans) == 0:
		return body, Null, nil
	}
	text, err := jsonedit.Transform(body, spans, func(_ int, object string) (string, error) {
		return jsonedit.AddMember(object, name, value), nil
	})
	return text, OK, err
}

// parseJSONMerge parses JSON.MERGE.
func parseJSONMerge(in *Input) (Run, error) {
	if len(in.Args) > 4 {
		return nil, errSyntax
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	doc, err := parseJSONRoot(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	var patch *jsondoc.MergePatch
	if doc.IsObject() {
		if patch, err = jsondoc.ParseMergePatch(doc.JSON); err != nil {
			return nil, err
		}
	}
	maxSize := in.MaxValue
	merge := func(value string) (string, error) {
		switch {
		case patch == nil:
			return doc.JSON, nil
		case value[0] != '{':
			return patch.Merge("")
		}
		return patch.Merge(value)
	}
	e := jsonEditor{apply: func(body string) (string, Reply, error) {
		spans, err := p.find(body)
		if err != nil {
			return "", Null, err
		}
		if len(spans) == 0 {
			return addJSONMember(body, p, doc.JSON)
		}
		if patch == nil {
			spans = outermost(spans)
		}
		text, err := transformJSON(body, spans, maxSize, func(_ int, value string) (string, error) { return merge(value) })
		return text, OK, err
	}}
	e.absent = func() (Reply, error) { return Null, errJSONRoot }
	if p.Root() {
		e.whole = &doc
	}
	return editingJSON(in, eventJSON("json.merge"), e), nil
}

// parseJSONDel parses JSON.DEL and JSON.FORGET. An object or array that loses all its members goes with them.
func parseJSONDel(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	key, e := in.Args[1], eventJSON("json.del")
	if p.Root() {
		return func(x *Context) Reply {
			d, err := x.jsonTarget(key)
			if err != nil {
				return Fail(err)
			}
			if !d.found {
				return Integer(0)
			}
			x.notify(e, d.container, d.id)
			x.remove(d.container, d.id)
			return Integer(1)
		}, nil
	}
	return editingJSON(in, e, jsonEditor{
		absent: func() (Reply, error) { return Integer(0), nil },
		apply: func(body string) (string, Reply, error) {
			spans, err := p.find(body)
			if err != nil || len(spans) == 0 {
				return body, Integer(0), err
			}
			text, n := jsonedit.Delete(body, spans)
			if text != "" && (text[0] == '{' || text[0] == '[') && jsonedit.Length(text) == 0 {
				text = ""
			}
			return text, Count(n), nil
		},
	}), nil
}

// jsonTriplet is a key, a path and a value of JSON.MSET.
type jsonTriplet struct {
	key  string
	path jsonPath
	doc  jsondoc.Document
}

// parseJSONMSet parses JSON.MSET. A path without a match and without a place for its last name is skipped, and so is one
// whose place a triplet before it has removed.
func parseJSONMSet(in *Input) (Run, error) {
	if len(in.Args)%3 != 1 {
		return nil, errorf(errWrongArity, "json.mset")
	}
	var list []jsonTriplet
	for i := 1; i < len(in.Args); i += 3 {
		p, err := parseJSONPath(in, i+1)
		if err != nil {
			return nil, err
		}
		doc, err := parseJSONRoot(in.Args[i+2], in.MaxValue)
		if err != nil {
			return nil, err
		}
		list = append(list, jsonTriplet{in.Args[i], p, doc})
	}
	return func(x *Context) Reply {
		m := jsonMSet{x: x, index: map[string]int{}, left: maxExecWork(in.MaxValue)}
		for i := range list {
			if err := m.set(&list[i], in.MaxValue); err != nil {
				return Fail(err)
			}
		}
		e := eventJSON("json.mset")
		for _, d := range m.changed {
			doc := jsondoc.FromValid(d.item.Body, d.container.Policy().Deadline)
			d.storeJSON(x, &doc, e)
		}
		return OK
	}, nil
}

// jsonMSet is a running JSON.MSET. It stores nothing before all triplets are known to be right.
type jsonMSet struct {
	x       *Context
	changed []docTarget    // with the new documents as their items
	index   map[string]int // of changed, by key
	left    int64          // bytes of documents that paths may still walk: all of them run under the locks
}

// set notes what a triplet makes of its document.
func (m *jsonMSet) set(t *jsonTriplet, maxSize int) error {
	d, err := m.x.jsonTarget(t.key)
	if err != nil {
		return err
	}
	before := d.item.Body
	k, again := m.index[t.key]
	if again {
		d = m.changed[k]
	}
	doc := t.doc
	if !t.path.Root() {
		if !d.found {
			return errJSONRoot
		}
		if m.left -= int64(len(d.item.Body)); m.left < 0 {
			return errorf(errJSONWork, maxExecWork(maxSize))
		}
		text, r, err := setJSONAt(d.item.Body, t.path, t.doc.JSON, jsonOptions{}, maxSize)
		if err != nil && again && before != "" {
			if _, _, err := setJSONAt(before, t.path, t.doc.JSON, jsonOptions{}, maxSize); err == nil {
				return nil
			}
		}
		if err != nil || r.Kind == KindNull {
			return err
		}
		if doc, err = editedJSON(text, maxSize); err != nil {
			return err
		}
	}
	if err := d.judgeJSON(m.x, &doc, t.path.Root()); err != nil {
		return err
	}
	if !doc.IsObject() && t.path.Root() {
		d.item.ExpireAt = expiry.Inherit
	}
	d.item.Body, d.found = doc.JSON, true
	if again {
		m.changed[k] = d
	} else {
		m.index[t.key] = len(m.changed)
		m.changed = append(m.changed, d)
	}
	return nil
}

// jsonEditor is what a command makes of a document.
type jsonEditor struct {
	// apply returns the new text, "" to remove the document, and the reply. A text that is the body itself changes
	// nothing. It depends on the body only.
	apply func(body string) (text string, reply Reply, err error)
	// absent is the reply for a key without a document.
	absent func() (Reply, error)
	// whole is the document that a key without one gets; nil: see absent.
	whole *jsondoc.Document
}

// jsonEditing is the run of a command that edits one document.
type jsonEditing struct {
	jsonEditor
	edit
	key           string
	kind          eventKind
	maxSize, size int // of a document, and of the arguments, in bytes

	// of the last edit that was computed
	reply      Reply
	same, gone bool // the document is as it was, or is removed
}

// editingJSON returns the Run of a command that edits one document. It computes the edit without locks if the document is
// long.
func editingJSON(in *Input, kind eventKind, j jsonEditor) Run {
	e := &jsonEditing{jsonEditor: j, key: in.Args[1], kind: kind, maxSize: in.MaxValue, size: sizeOf(in.Args)}
	e.edit.apply = e.applyTo
	return e.run
}

// applyTo is the apply of the edit.
func (e *jsonEditing) applyTo(body, _ string) (jsondoc.Document, error) {
	text, r, err := e.jsonEditor.apply(body)
	if err != nil {
		return jsondoc.Document{}, err
	}
	e.reply, e.same, e.gone = r, text == body, text == ""
	if e.same || e.gone {
		return jsondoc.FromValid(body, ""), nil
	}
	return editedJSON(text, e.maxSize)
}

// editedJSON is jsondoc.Edited with the words of RedisJSON for a document that nests too deep.
func editedJSON(text string, maxSize int) (jsondoc.Document, error) {
	d, err := jsondoc.Edited(text, maxSize)
	if err != nil {
		err = jsonError(err, text)
	}
	return d, err
}

func (e *jsonEditing) run(x *Context) Reply {
	d, err := x.jsonTarget(e.key)
	switch {
	case err != nil:
		return Fail(err)
	case !d.found && e.whole != nil:
		whole := *e.whole
		return d.putJSON(x, &whole, e.kind)
	case !d.found:
		r, err := e.absent()
		if err != nil {
			return Fail(err)
		}
		return r
	}
	if !e.ready(x, d, e.size) {
		return Reply{}
	}
	switch {
	case e.err != nil:
		return Fail(e.err)
	case e.gone:
		x.notify(e.kind, d.container, d.id)
		x.remove(d.container, d.id)
	case !e.same || e.reply.Kind == KindStatus: // SET of an equal value is a write
		if err := d.putJSONEdit(x, &e.doc, e.kind); err != nil {
			return Fail(err)
		}
	}
	return e.reply
}
