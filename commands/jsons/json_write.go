package jsons

import (
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/commands/items"
	"mayfly/expiry"
	"mayfly/json/jsondoc"
	"mayfly/json/jsonedit"
	"mayfly/json/jsonpath"
	"mayfly/keyspace"
)

// parseJSONOptions reads the options of JSON.SET, each once.
func parseJSONOptions(args []string) (o items.SetOptions, err error) {
	if len(args) == 0 {
		return o, nil
	}
	o, err = items.ParseBlindOptions(args)
	words := 0
	if o.NX || o.XX {
		words++
	}
	switch {
	case o.Expire.Keep:
		words++
	case o.Expire.Unit != 0:
		words += 2
	}
	if err == nil && words != len(args) {
		err = engine.ErrSyntax
	}
	return o, err
}

// parseJSONSet parses JSON.SET.
func parseJSONSet(in *engine.Input) (engine.Run, error) {
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
		in.Put = engine.PutInput{Doc: doc, When: engine.Precondition{Absent: o.NX, Present: o.XX}}
		if !o.Expire.Unset() {
			return jsonSetExpiring(in, &o.Expire)
		}
		return runJSONSet, nil
	}
	if !o.Expire.Unset() {
		return nil, errJSONDeadline
	}
	return editingJSON(in, eventJSONSet, jsonEditor{
		absent: func() (engine.Reply, error) {
			if o.XX {
				return engine.Null, nil
			}
			return engine.Null, errJSONRoot
		},
		apply: func(body string) (string, engine.Reply, error) { return setJSONAt(body, p, doc.JSON, o, maxSize) },
	}), nil
}

// jsonSetExpiring returns the Run of JSON.SET of the root with an end: JSON.SET and PEXPIREAT in one step.
// KEEPTTL keeps the end that the document before had of its own.
func jsonSetExpiring(in *engine.Input, expire *items.ExpireOption) (engine.Run, error) {
	const name = "json.set"
	var m items.ExpireTime
	if !expire.Keep {
		var err error
		if m, err = expire.Time(name); err != nil {
			return nil, err
		}
	}
	e, keeps := items.EditTTL(in.MaxValue), expire.Keep
	return func(x *engine.Context) engine.Reply {
		d, err := jsonTarget(x, x.Input.Args[1])
		if err != nil {
			return engine.Fail(err)
		}
		put, p, now := &x.Input.Put, d.Container.Policy(), x.Now()
		if !put.When.Holds(d.Found, d.Item.Version) {
			return engine.Null
		}
		end, ok := ownEnd(p, d.Item), true
		if !keeps {
			end, ok = m.Deadline(now)
		}
		ttl := expiry.Forever
		if end > 0 {
			ttl = items.CeilSeconds(max(end-now, 1))
		}
		if !ok || ttl > expiry.MaxTTL && put.Doc.IsObject() {
			return engine.Fail(engine.Errorf(engine.ErrInvalidExpire, name))
		}
		if p.Deadline != "" && !items.ReadDeadline(x, &put.Doc, p.Deadline) {
			return engine.Reply{}
		}
		switch {
		case keeps && end == expiry.Inherit:
			return d.PutJSON(x, &put.Doc, eventJSONSet)
		case !keeps && end <= now && p.Hold == "":
			items.PutDead(x, d.Container, d.ID, eventJSONSet, events.Expire)
			return engine.OK
		case !put.Doc.IsObject():
			if d.Item.ExpireAt = end; !keeps {
				d.Item.ExpireAt = max(end, now+1)
			}
			d.StoreJSON(x, &put.Doc, eventJSONSet)
		default:
			if err := put.Doc.CheckDeadline(p, now); err != nil {
				return engine.Fail(err)
			}
			d.Item = keyspace.Item{Body: put.Doc.JSON}
			if keeps {
				e.Until = max(end, 0)
			}
			if reply := e.Set(x, d, ttl, eventJSONSet); x.Outside != nil || reply.Kind == engine.KindError {
				return reply
			}
		}
		if !keeps {
			x.Notify(events.Expire, d.Container, d.ID)
		}
		return engine.OK
	}, nil
}

// ownEnd returns the end that an item has of its own: a moment in ms, expiry.Never or expiry.Inherit.
func ownEnd(p *expiry.Policy, it keyspace.Item) int64 {
	if it.ExpireAt >= expiry.Never {
		return it.ExpireAt
	}
	if end, ends := p.End(it.TS, it.ExpireAt); ends { // the earlier one of its deadline and the default
		return end
	}
	return -it.ExpireAt
}

// runJSONSet is JSON.SET of the root.
func runJSONSet(x *engine.Context) engine.Reply {
	d, err := jsonTarget(x, x.Input.Args[1])
	if err != nil {
		return engine.Fail(err)
	}
	put := &x.Input.Put
	if !put.When.Holds(d.Found, d.Item.Version) {
		return engine.Null
	}
	if d.Container.Policy().Deadline != "" && !items.ReadDeadline(x, &put.Doc, d.Container.Policy().Deadline) {
		return engine.Reply{}
	}
	return d.PutJSON(x, &put.Doc, eventJSONSet)
}

var eventJSONSet = events.JSON("json.set")

// setJSONAt sets the values at a path, or a member that is not there. The reply is null if it changes
// nothing.
func setJSONAt(body string, p jsonPath, value string, o items.SetOptions, maxSize int) (string, engine.Reply, error) {
	if !o.NX {
		text, spans, err := p.find(body)
		if err != nil {
			return "", engine.Null, err
		}
		if len(spans) > 0 {
			text, err = transformJSON(text, outermost(spans), maxSize, func(int, string) (string, error) { return value, nil })
			return text, engine.OK, err
		}
	}
	if o.XX {
		return body, engine.Null, nil
	}
	return addJSONMember(body, p, value)
}

// addJSONMember adds the member that the last step of a path names. The reply is null if there is no object
// for it, or if the object has the member.
func addJSONMember(body string, p jsonPath, value string) (string, engine.Reply, error) {
	if !p.Static() {
		return body, engine.Null, errJSONStatic
	}
	spans, name, ok, err := p.Parents(nil, body)
	switch {
	case err != nil:
		return body, engine.Null, err
	case !ok: // an element
		if _, found, err := p.First(body); found || err != nil {
			return body, engine.Null, err
		}
		return body, engine.Null, errJSONIndex
	case len(spans) == 0:
		return body, engine.Null, nil
	}
	text, err := jsonedit.Transform(body, spans, func(_ int, object string) (string, error) {
		return jsonedit.AddMember(object, name, value), nil
	})
	return text, engine.OK, err
}

// parseJSONMerge parses JSON.MERGE.
func parseJSONMerge(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 4 {
		return nil, engine.ErrSyntax
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
		text, err := patch.Merge(value)
		if err != nil { // it repeats a name
			text, err = patch.Merge(jsonedit.Unrepeated(value))
		}
		return text, err
	}
	e := jsonEditor{apply: func(body string) (string, engine.Reply, error) {
		text, spans, err := p.find(body)
		if err != nil {
			return "", engine.Null, err
		}
		if len(spans) == 0 {
			return addJSONMember(body, p, doc.JSON)
		}
		if patch == nil {
			spans = outermost(spans)
		}
		left := int(jsonpath.BudgetOf(text)) + maxSize
		text, err = transformJSON(text, spans, maxSize, func(_ int, value string) (string, error) {
			merged, err := merge(value)
			// Each match reads the whole patch. What is written of it counts as growth.
			if left -= max(len(doc.JSON)-len(merged), 0); err == nil && left < 0 {
				err = jsonpath.ErrBudget
			}
			return merged, err
		})
		return text, engine.OK, err
	}}
	e.absent = func() (engine.Reply, error) { return engine.Null, errJSONRoot }
	if p.Root() {
		e.whole = &doc
	}
	return editingJSON(in, events.JSON("json.merge"), e), nil
}

// parseJSONDel parses JSON.DEL and JSON.FORGET. An object or array that loses all its members goes with them.
func parseJSONDel(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	key, e := in.Args[1], events.JSON("json.del")
	if p.Root() {
		return func(x *engine.Context) engine.Reply {
			d, err := jsonTarget(x, key)
			if err != nil {
				return engine.Fail(err)
			}
			if !d.Found {
				return engine.Integer(0)
			}
			x.Notify(e, d.Container, d.ID)
			x.Remove(d.Container, d.ID)
			return engine.Integer(1)
		}, nil
	}
	return editingJSON(in, e, jsonEditor{
		absent: func() (engine.Reply, error) { return engine.Integer(0), nil },
		apply: func(body string) (string, engine.Reply, error) {
			text, spans, err := p.find(body)
			if err != nil || len(spans) == 0 {
				return body, engine.Integer(0), err
			}
			text, n := jsonedit.Delete(text, spans)
			if text != "" && jsonedit.Empty(text) {
				text = ""
			}
			return text, engine.Count(n), nil
		},
	}), nil
}

// jsonTriplet is a key, a path and a value of JSON.MSET.
type jsonTriplet struct {
	key   string
	path  jsonPath
	doc   jsondoc.Document
	steps []jsonpath.Step // of the path, if its place is one of jsonPlaces
}

// parseJSONMSet parses JSON.MSET. A path without a match and without a place for its last name is skipped,
// and so is one whose place a triplet before it has removed.
func parseJSONMSet(in *engine.Input) (engine.Run, error) {
	if len(in.Args)%3 != 1 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.mset")
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
		list = append(list, jsonTriplet{key: in.Args[i], path: p, doc: doc})
	}
	places := jsonPlaces(list)
	return func(x *engine.Context) engine.Reply {
		m := jsonMSet{x: x, places: places, docs: map[string]*jsonMSetDoc{}, left: engine.MaxExecWork(in.MaxValue)}
		for i := range list {
			if err := m.set(&list[i], in.MaxValue); err != nil {
				return engine.Fail(err)
			}
		}
		e := events.JSON("json.mset")
		for _, d := range m.changed {
			doc := jsondoc.FromValid(d.text(), d.Container.Policy().Deadline)
			d.StoreJSON(x, &doc, e)
		}
		return engine.OK
	}, nil
}

// jsonPlaces returns the places of each document that several triplets name, as far as a [jsonedit.Tree] can
// have them.
func jsonPlaces(list []jsonTriplet) map[string]*jsonedit.Places {
	count := make(map[string]int)
	for i := range list {
		count[list[i].key]++
	}
	places := make(map[string]*jsonedit.Places)
	for i := range list {
		t := &list[i]
		if count[t.key] == 1 || !t.path.Static() {
			continue
		}
		// More steps may reach the limit on what a path reads. What nests deeper is judged as a text.
		steps := t.path.Steps()
		if brackets := strings.Count(t.doc.JSON, "{") + strings.Count(t.doc.JSON, "["); len(steps) == 0 || len(steps) > 6 || len(steps)+brackets > jsondoc.MaxNesting {
			continue
		}
		if places[t.key] == nil {
			places[t.key] = new(jsonedit.Places)
		}
		t.steps = steps
		places[t.key].Add(steps)
	}
	return places
}

// jsonMSet is a running JSON.MSET. It stores nothing before all triplets are known to be right.
type jsonMSet struct {
	x       *engine.Context
	places  map[string]*jsonedit.Places
	docs    map[string]*jsonMSetDoc
	changed []*jsonMSetDoc
	left    int64 // bytes of documents that paths may still walk: all of them run under the locks
}

// jsonMSetDoc is a document of a JSON.MSET. item has the new text, unless the tree has it.
type jsonMSetDoc struct {
	items.DocTarget
	before  string         // its text before the command, "" if there was none
	tree    *jsonedit.Tree // nil: not parsed
	initial *jsonedit.Tree // of before
	changed bool
}

// text returns the document as it is now. Further edits parse it anew.
func (d *jsonMSetDoc) text() string {
	if d.tree != nil {
		d.Item.Body, d.tree = d.tree.Text(), nil
	}
	return d.Item.Body
}

// doc returns the document of a key.
func (m *jsonMSet) doc(key string) (*jsonMSetDoc, error) {
	if d := m.docs[key]; d != nil {
		return d, nil
	}
	t, err := jsonTarget(m.x, key)
	d := &jsonMSetDoc{DocTarget: t, before: t.Item.Body}
	m.docs[key] = d
	return d, err
}

// note notes that a document has changed.
func (m *jsonMSet) note(d *jsonMSetDoc) {
	if !d.changed {
		d.changed = true
		m.changed = append(m.changed, d)
	}
}

// set notes what a triplet makes of its document.
func (m *jsonMSet) set(t *jsonTriplet, maxSize int) error {
	d, err := m.doc(t.key)
	if err != nil {
		return err
	}
	doc := t.doc
	if !t.path.Root() {
		if !d.Found {
			return errJSONRoot
		}
		if done, err := m.setInTree(d, t, maxSize); done {
			return err
		}
		body := d.text()
		if err := m.walk(len(body), maxSize); err != nil {
			return err
		}
		text, r, err := setJSONAt(body, t.path, t.doc.JSON, items.SetOptions{}, maxSize)
		if (err == errJSONIndex || err == errJSONStatic) && d.changed && d.before != "" {
			if _, _, err := setJSONAt(d.before, t.path, t.doc.JSON, items.SetOptions{}, maxSize); err == nil {
				return nil
			}
		}
		if err != nil || r.Kind == engine.KindNull {
			return err
		}
		if doc, err = editedJSON(text, maxSize); err != nil {
			return err
		}
	}
	if err := d.JudgeJSON(m.x, &doc, t.path.Root()); err != nil {
		return err
	}
	if !doc.IsObject() && t.path.Root() {
		d.Item.ExpireAt = expiry.Inherit
	}
	d.Item.Body, d.Found, d.tree = doc.JSON, true, nil
	m.note(d)
	return nil
}

// walk notes that bytes of a document are walked.
func (m *jsonMSet) walk(bytes, maxSize int) error {
	if m.left -= int64(bytes); m.left < 0 {
		return engine.Errorf(errJSONWork, engine.MaxExecWork(maxSize))
	}
	return nil
}

// setInTree is set with the document parsed, which takes no time in proportion to it after the first triplet.
// It leaves to set what needs the text to judge: the members that decide about the end, and documents that
// may become too long.
func (m *jsonMSet) setInTree(d *jsonMSetDoc, t *jsonTriplet, maxSize int) (done bool, err error) {
	if t.steps == nil {
		return false, nil
	}
	last := t.steps[len(t.steps)-1]
	name := t.steps[0].Name
	if name == jsondoc.TTLMember || name != "" && name == d.Container.Policy().Deadline {
		return false, nil
	}
	if d.tree == nil {
		d.tree = jsonedit.NewTree(jsonedit.Unrepeated(d.Item.Body), m.places[t.key])
	}
	if d.tree.Size()+len(t.doc.JSON)+6*len(last.Name)+len(`,"":`) > maxSize {
		return false, nil
	}
	read := d.tree.Read
	outcome := d.tree.Set(t.steps, t.doc.JSON)
	if err := m.walk(d.tree.Read-read, maxSize); err != nil {
		return true, err
	}
	switch {
	case outcome == jsonedit.Changed:
		m.note(d)
	case outcome == jsonedit.NoElement && !(d.changed && d.before != "" && m.hadPlace(d, t)):
		return true, errJSONIndex
	}
	return true, nil
}

// hadPlace reports whether the document had the element of a triplet before the command.
func (m *jsonMSet) hadPlace(d *jsonMSetDoc, t *jsonTriplet) bool {
	if d.initial == nil {
		d.initial = jsonedit.NewTree(d.before, m.places[t.key])
	}
	return d.initial.Has(t.steps)
}

// jsonEditor is what a command makes of a document.
type jsonEditor struct {
	// apply returns the new text, "" to remove the document, and the reply. A text that is the body itself
	// changes nothing. It depends on the body only.
	apply func(body string) (text string, reply engine.Reply, err error)
	// absent is the reply for a key without a document.
	absent func() (engine.Reply, error)
	// whole is the document that a key without one gets; nil: see absent.
	whole *jsondoc.Document
}

// jsonEditing is the run of a command that edits one document.
type jsonEditing struct {
	jsonEditor
	items.Edit
	key           string
	kind          events.Kind
	maxSize, size int // of a document, and of the arguments, in bytes

	// of the last edit that was computed
	reply      engine.Reply
	same, gone bool // the document is as it was, or is removed
}

// editingJSON returns the Run of a command that edits one document. It computes the edit without locks if the
// document is long.
func editingJSON(in *engine.Input, kind events.Kind, j jsonEditor) engine.Run {
	e := &jsonEditing{jsonEditor: j, key: in.Args[1], kind: kind, maxSize: in.MaxValue, size: engine.SizeOf(in.Args)}
	e.Edit.Apply = e.applyTo
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

func (e *jsonEditing) run(x *engine.Context) engine.Reply {
	d, err := jsonTarget(x, e.key)
	switch {
	case err != nil:
		return engine.Fail(err)
	case !d.Found && e.whole != nil:
		whole := *e.whole
		return d.PutJSON(x, &whole, e.kind)
	case !d.Found:
		r, err := e.absent()
		if err != nil {
			return engine.Fail(err)
		}
		return r
	}
	if !e.Ready(x, d, e.size) {
		return engine.Reply{}
	}
	switch {
	case e.Err != nil:
		return engine.Fail(e.Err)
	case e.gone:
		x.Notify(e.kind, d.Container, d.ID)
		x.Remove(d.Container, d.ID)
	case !e.same || e.reply.Kind == engine.KindStatus: // SET of an equal value is a write
		if err := d.PutJSONEdit(x, &e.Doc, e.kind); err != nil {
			return engine.Fail(err)
		}
	}
	return e.reply
}
