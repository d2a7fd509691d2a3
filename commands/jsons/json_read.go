package jsons

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/json/jsonedit"
	"mayfly/json/jsonpath"
	"mayfly/json/jsontext"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// readingJSON returns the Run of a command that reads one document. missing is its reply for a key without
// one. A long document is walked without locks.
func readingJSON(key string, missing engine.Reply, read func(x *engine.Context, doc string) engine.Reply) engine.Run {
	return func(x *engine.Context) engine.Reply {
		d, err := jsonTarget(x, key)
		if d.Container != nil {
			d.CountRead(x)
		}
		switch {
		case err != nil:
			return engine.Fail(err)
		case !d.Found:
			return missing
		}
		return x.Compute(len(d.Item.Body), func() engine.Reply { return read(x, d.Item.Body) })
	}
}

// jsonQuestion is a command that tells something of each value at a path. A JSONPath answers with an array,
// in which a value of another type is null. A legacy path answers for its first match.
type jsonQuestion struct {
	missing engine.Reply                             // of a key without a document
	none    engine.Reply                             // of a legacy path without a match
	tell    func(value string) (engine.Reply, error) // the error is that of a legacy path to a value of another type
}

// run returns the Run of the command.
func (q jsonQuestion) run(key string, p jsonPath) engine.Run {
	return readingJSON(key, q.missing, func(_ *engine.Context, doc string) engine.Reply { return q.answer(p, doc) })
}

// answer is the reply for a document.
func (q jsonQuestion) answer(p jsonPath, doc string) engine.Reply {
	if p.Legacy() {
		return q.first(p, doc)
	}
	doc, spans, err := p.find(doc)
	if err != nil {
		return engine.Fail(err)
	}
	elems := make([]engine.Reply, len(spans))
	for i, s := range spans {
		if elems[i], err = q.tell(s.Text(doc)); err != nil {
			elems[i] = engine.Null
		}
	}
	return engine.Array(elems...)
}

// runWithin is run for a command whose replies may be much longer than the document. tell gets the room for
// them.
func (q jsonQuestion) runWithin(in *engine.Input, p jsonPath, tell func(room *replyRoom, value string) (engine.Reply, error)) engine.Run {
	maxSize := in.MaxValue
	return readingJSON(in.Args[1], q.missing, func(_ *engine.Context, doc string) engine.Reply {
		room := newReplyRoom(maxSize)
		q.tell = func(value string) (engine.Reply, error) {
			if room.left < 0 { // the values that follow may be long
				return engine.Null, nil
			}
			return tell(room, value)
		}
		return room.check(q.answer(p, doc))
	})
}

// replyRoom bounds the size of a reply, which may be much longer than the document: nested values may be in
// it many times, and a small value takes more as a reply.
type replyRoom struct{ left, limit int } // bytes

func newReplyRoom(maxSize int) *replyRoom {
	limit := max(engine.MinQueueLimit, engine.QueueFactor*maxSize)
	return &replyRoom{limit, limit}
}

// take reports whether there is room for some bytes and for some replies.
func (r *replyRoom) take(size, replies int) bool {
	r.left -= size + replies*int(unsafe.Sizeof(engine.Reply{}))
	return r.left >= 0
}

// unquote is jsontext.Unquote, "" if there is no room. The reply has a copy of a string with escapes for each
// time that it shows it.
func (r *replyRoom) unquote(quoted string) string {
	if !r.take(len(quoted), 0) {
		return ""
	}
	return jsontext.Unquote(quoted)
}

// check returns a reply, or the error that there was no room for it.
func (r *replyRoom) check(reply engine.Reply) engine.Reply {
	if r.left < 0 {
		return engine.Fail(engine.Errorf(errJSONReply, r.limit))
	}
	return reply
}

// first is the reply of a legacy path.
func (q jsonQuestion) first(p jsonPath, doc string) engine.Reply {
	doc, s, ok, err := p.first(doc)
	if err == nil && !ok {
		return q.none
	}
	var r engine.Reply
	if err == nil {
		r, err = q.tell(s.Text(doc))
	}
	if err != nil {
		return engine.Fail(err)
	}
	return r
}

// expectedJSON returns the error for a value of another type than expected.
func expectedJSON(kind, value string) error {
	return engine.Errorf(errJSONExpected, kind, jsonedit.Kind(value))
}

// missingUnless returns null for a legacy path and an error for a JSONPath: the replies of a key without a
// document.
func missingUnless(p jsonPath) engine.Reply {
	if p.Legacy() {
		return engine.Null
	}
	return engine.Fail(errJSONMissing)
}

func parseJSONStrLen(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: engine.Fail(p.missing("")), tell: func(value string) (engine.Reply, error) {
		if value[0] != '"' {
			return engine.Null, expectedJSON("string", value)
		}
		return engine.Count(len(jsontext.Unquote(value))), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONArrLen(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: engine.Fail(p.missing("")), tell: func(value string) (engine.Reply, error) {
		if value[0] != '[' {
			return engine.Null, p.missing("not an array")
		}
		return engine.Count(jsonedit.Length(value)), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONObjLen(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	missing := engine.Null
	if !p.Legacy() {
		missing = engine.Fail(p.missing("not an object"))
	}
	return jsonQuestion{missing: missing, none: engine.Null, tell: func(value string) (engine.Reply, error) {
		if value[0] != '{' {
			return engine.Null, expectedJSON("object", value)
		}
		return engine.Count(jsonedit.Length(value)), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONObjKeys(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: engine.Null}.runWithin(in, p, func(room *replyRoom, value string) (engine.Reply, error) {
		if value[0] != '{' {
			return engine.Null, p.missing("not an object")
		}
		names := jsonedit.Names(value)
		if !room.take(len(value), len(names)) {
			return engine.Null, nil
		}
		return engine.Bulks(names...), nil
	}), nil
}

func parseJSONArrIndex(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 6 {
		return nil, engine.Errorf(engine.ErrWrongArity, strings.ToLower(in.Args[0]))
	}
	var bounds [2]int
	for i, arg := range in.Args[4:] {
		n, err := jsonInteger(arg)
		if err != nil {
			return nil, err
		}
		bounds[i] = n
	}
	value, err := parseJSONValue(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	sought := jsonedit.Seek(value)
	q := jsonQuestion{missing: engine.Fail(p.missing("")), none: engine.Fail(p.missing(""))}
	return readingJSON(in.Args[1], q.missing, func(_ *engine.Context, doc string) engine.Reply {
		left := maxComparisons*len(doc) + engine.SlowBytes
		q.tell = func(array string) (engine.Reply, error) {
			if array[0] != '[' {
				return engine.Null, expectedJSON("array", array)
			}
			if value[0] == '{' || value[0] == '[' {
				left -= len(array)
			}
			if left < 0 {
				return engine.Null, jsonpath.ErrBudget
			}
			return engine.Count(sought.Index(array, bounds[0], bounds[1])), nil
		}
		if r := q.answer(p, doc); left >= 0 {
			return r
		}
		return engine.Fail(jsonpath.ErrBudget)
	}), nil
}

// maxComparisons bounds how often JSON.ARRINDEX compares a part of the document with an object or array.
// Nested arrays have the same parts.
const maxComparisons = 8

// parseJSONType parses JSON.TYPE. On RESP3 its reply is in an array, as that of RedisJSON.
func parseJSONType(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return inArrayOnRESP3(jsonQuestion{missing: engine.Null, none: engine.Null, tell: func(value string) (engine.Reply, error) {
		return engine.Bulk(jsonedit.Kind(value)), nil
	}}.run(in.Args[1], p)), nil
}

// inArrayOnRESP3 returns a Run with its reply in an array if the connection speaks RESP3.
func inArrayOnRESP3(run engine.Run) engine.Run {
	wrap := func(x *engine.Context, r engine.Reply) engine.Reply {
		if x.Proto() == 3 && r.Kind != engine.KindError {
			return engine.Array(r)
		}
		return r
	}
	return func(x *engine.Context) engine.Reply {
		r := run(x)
		if inner := x.Outside; inner != nil {
			x.Outside = func() (engine.Reply, bool) {
				r, again := inner()
				return wrap(x, r), again
			}
			return r
		}
		return wrap(x, r)
	}
}

func parseJSONResp(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: engine.Null, none: engine.Fail(p.missing(""))}.runWithin(in, p, func(room *replyRoom, value string) (engine.Reply, error) {
		r, _ := typedReply(room, jsonedit.Unrepeated(value), 0, true)
		return r, nil
	}), nil
}

// typedReply is the value at a position as types of RESP, and its end: one pass reads all levels. As
// JSON.RESP shows it, an array begins with [, an object with {, and booleans are words.
func typedReply(room *replyRoom, text string, at int, asResp bool) (r engine.Reply, end int) {
	if c := text[at]; c != '[' && c != '{' {
		end = jsontext.ValueEnd(text, at)
		if asResp && (c == 't' || c == 'f') {
			return engine.Status(text[at:end]), end
		}
		return scalarReply(room, text[at:end]), end
	}
	var elems []engine.Reply
	if asResp {
		elems = append(elems, engine.Status(text[at:at+1]))
	}
	w := jsontext.WalkAt(text, at)
	for room.take(0, 2) && w.Step() {
		if !w.Array {
			elems = append(elems, engine.Bulk(room.unquote(w.Text[w.Start:w.NameEnd])))
		}
		r, w.Pos = typedReply(room, text, w.ValueFrom, asResp)
		elems = append(elems, r)
	}
	if end = w.Start + 1; w.Array || asResp {
		return engine.Array(elems...), end
	}
	return engine.Map(elems...), end
}

// scalarReply is a string, a number, a boolean or null as its own type of RESP.
func scalarReply(room *replyRoom, value string) engine.Reply {
	switch value[0] {
	case '"':
		return engine.Bulk(room.unquote(value))
	case 'n':
		return engine.Null
	case 't', 'f':
		return engine.Reply{Kind: engine.KindBool, Int: engine.Flag(value == "true").Int}
	}
	return numberReply(value)
}

// numberReply is a number as its own type of RESP.
func numberReply(value string) engine.Reply {
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return engine.Integer(n)
	}
	return engine.Double(jsontext.ParseNumber(value))
}

// replyFormat is how replies of RESP3 show values.
type replyFormat uint8

const (
	asText    replyFormat = iota // JSON
	expandOne                    // scalars as types of RESP3, objects and arrays as JSON
	expandAll                    // everything as types of RESP3
)

// parseReplyFormat reads the value of FORMAT. text is the word for JSON.
func parseReplyFormat(word, text string) (replyFormat, error) {
	switch {
	case redisfmt.EqualFold(word, text):
		return asText, nil
	case redisfmt.EqualFold(word, "EXPAND1"):
		return expandOne, nil
	case redisfmt.EqualFold(word, "EXPAND"):
		return expandAll, nil
	}
	return 0, errJSONFormat
}

// reply is a value in the format.
func (f replyFormat) reply(room *replyRoom, value string) engine.Reply {
	scalar := value[0] != '[' && value[0] != '{'
	if f != asText && scalar {
		return scalarReply(room, value)
	}
	if f != expandAll {
		if !room.take(len(value), 1) {
			return engine.Null
		}
		return engine.Bulk(jsonedit.Compact(value))
	}
	r, _ := typedReply(room, value, 0, false)
	return r
}

// jsonGet is a parsed JSON.GET.
type jsonGet struct {
	paths  []jsonPath
	layout jsonedit.Format
	format replyFormat
	early  bool // FORMAT comes before the paths: an error on RESP2, where it is ignored after them

	maxSize int // see Input.MaxValue
}

// parseJSONGet parses JSON.GET. A word that is an option is never a path, as in RedisJSON.
func parseJSONGet(in *engine.Input) (engine.Run, error) {
	if !walksJSONGet(in.Args) {
		return runJSONGet, nil
	}
	g := jsonGet{maxSize: in.MaxValue}
	if err := g.parse(in.Args[2:]); err != nil {
		return nil, err
	}
	if len(g.paths) == 0 {
		root, err := parseJSONPath(in, len(in.Args))
		if err != nil {
			return nil, err
		}
		g.paths = []jsonPath{root}
	}
	return func(x *engine.Context) engine.Reply {
		if x.Proto() != 3 {
			if g.early {
				return engine.Fail(errJSONResp2)
			}
			g.format = asText
		}
		return readingJSON(in.Args[1], engine.Null, g.reply)(x)
	}, nil
}

// parse reads the options and the paths.
func (g *jsonGet) parse(args []string) error {
	for ; len(args) > 0; args = args[1:] {
		formatted := false
		var value *string
		switch word := args[0]; {
		case redisfmt.EqualFold(word, "INDENT"):
			value = &g.layout.Indent
		case redisfmt.EqualFold(word, "NEWLINE"):
			value = &g.layout.Newline
		case redisfmt.EqualFold(word, "SPACE"):
			value = &g.layout.Space
		case redisfmt.EqualFold(word, "FORMAT"):
			value, formatted = new(string), true
			g.early = g.early || len(g.paths) == 0
		case redisfmt.EqualFold(word, "NOESCAPE"): // of RedisJSON 1.0; ignored there, too
			continue
		default:
			path, err := jsonpath.Cached(word)
			if err != nil {
				return err
			}
			if g.paths = append(g.paths, jsonPath{Path: path, text: word}); len(g.paths) > items.MaxPaths {
				return engine.Errorf(errJSONPaths, items.MaxPaths)
			}
			continue
		}
		if args = args[1:]; len(args) == 0 {
			return engine.Errorf(engine.ErrWrongArity, "json.get")
		}
		if *value = args[0]; len(*value) > maxLayout {
			return engine.Errorf(errJSONLayout, len(*value), maxLayout)
		}
		if formatted {
			var err error
			if g.format, err = parseReplyFormat(*value, "STRING"); err != nil {
				return err
			}
		}
	}
	return nil
}

// maxLayout bounds the white space of JSON.GET, which comes as often as the document has brackets.
const maxLayout = 32

// walksJSONGet reports whether JSON.GET reads more than the whole document, as it is.
func walksJSONGet(args []string) bool {
	return len(args) > 3 || len(args) == 3 && args[2] != "$" && args[2] != "."
}

// runJSONGet is JSON.GET of a whole document, without options. The first one notes in the entry of a document
// that it is compact.
func runJSONGet(x *engine.Context) engine.Reply {
	key := x.Input.Args[1]
	c, err := x.Database()
	if err != nil {
		return engine.Fail(err)
	}
	it, encoding, found := x.Tx.GetEncoded(c, key)
	x.CountRead(c, key, found)
	switch {
	case !found:
		return engine.Null
	case it.Kind != keyspace.Document:
		return engine.Fail(errJSONType)
	}
	inArray := len(x.Input.Args) > 2 && x.Input.Args[2] == "$"
	if encoding == keyspace.Compact {
		return wholeReply(it.Body, inArray)
	}
	if len(it.Body) >= engine.SlowBytes {
		return x.Compute(len(it.Body), func() engine.Reply { return wholeReply(jsonedit.Compact(it.Body), inArray) })
	}
	text := jsonedit.Compact(it.Body)
	if text == it.Body {
		x.Tx.SetEncoding(c, key, keyspace.Compact)
	}
	return wholeReply(text, inArray)
}

// wholeReply is the reply with a whole document. A JSONPath has it in an array.
func wholeReply(text string, inArray bool) engine.Reply {
	if inArray {
		return engine.Reply{Kind: engine.KindElement, Str: text}
	}
	return engine.Bulk(text)
}

// reply is the reply for a document: for one path the values, for several an object with the values by path.
func (g *jsonGet) reply(_ *engine.Context, doc string) engine.Reply {
	room := newReplyRoom(g.maxSize)
	return room.check(g.replyWithin(room, doc))
}

func (g *jsonGet) replyWithin(room *replyRoom, doc string) engine.Reply {
	budget := jsonpath.BudgetOf(doc)
	if g.format != asText {
		return g.expanded(room, &budget, jsonedit.Unrepeated(doc))
	}
	text, err := g.find(&budget, doc)
	if text.repeated {
		if unrepeated := jsonedit.Unrepeated(doc); unrepeated != doc {
			doc, budget = unrepeated, jsonpath.BudgetOf(unrepeated)
			text, err = g.find(&budget, doc)
		}
	}
	if err != nil {
		return engine.Fail(err)
	}
	if g.layout == (jsonedit.Format{}) && text.matched < engine.SlowBytes {
		room.take(text.matched, 0)
		return text.reply(text.matched)
	}
	if compact := jsonedit.Compact(doc); compact != doc {
		budget = jsonpath.BudgetOf(compact)
		if text, err = g.find(&budget, compact); err != nil {
			return engine.Fail(err)
		}
	}
	text.compact = true
	count := jsonedit.Writer{Format: g.layout, Count: true, Most: max(room.left, 1)}
	text.write(&count)
	switch {
	case !room.take(count.Size, 0):
		return engine.Null // room.check has the error
	case count.Size < engine.SlowBytes:
		return text.reply(count.Size)
	}
	return engine.Reply{Kind: engine.KindText, Text: &engine.Text{
		Size: count.Size,
		Held: len(text.doc) + text.matches*int(unsafe.Sizeof(jsonpath.Span{})),
		Render: func(send func([]byte) error) error {
			w := jsonedit.Writer{Format: g.layout, Send: send}
			text.write(&w)
			return w.End()
		},
	}}
}

// jsonText is the text of JSON.GET: for one path the first match if all are legacy, else an array of all; for
// several paths an object with these by path.
type jsonText struct {
	layout  jsonedit.Format
	doc     string
	compact bool // the document is
	legacy  bool
	named   bool // the command has several paths, were they the same
	paths   []foundPath

	repeated         bool // that of jsonpath.Path.Find, for any of the paths
	matches, matched int  // of all paths, and their bytes
}

// foundPath has the matches of a path.
type foundPath struct {
	path  string
	spans []jsonpath.Span
}

// find returns the text for a document.
func (g *jsonGet) find(budget *jsonpath.Budget, doc string) (*jsonText, error) {
	t := &jsonText{layout: g.layout, doc: doc, named: len(g.paths) > 1}
	t.legacy = !slices.ContainsFunc(g.paths, func(p jsonPath) bool { return !p.Legacy() })
	for i := range g.paths {
		p := &g.paths[i]
		if slices.ContainsFunc(t.paths, func(f foundPath) bool { return f.path == p.text }) {
			continue // the object has one member of a name
		}
		found := foundPath{path: p.text}
		var repeated bool
		var err error
		if t.legacy {
			var s jsonpath.Span
			var ok bool
			if s, ok, repeated, err = p.FirstWithin(budget, doc); err == nil && !ok {
				err = p.missing("")
			}
			found.spans = []jsonpath.Span{s}
		} else {
			found.spans, repeated, err = p.findWithin(budget, doc)
		}
		if t.repeated = t.repeated || repeated; err != nil {
			return t, err
		}
		for _, s := range found.spans {
			t.matched += s.To - s.From
		}
		t.matches += len(found.spans)
		t.paths = append(t.paths, found)
	}
	return t, nil
}

// reply is the text as a reply, of about size bytes. A single value is not copied.
func (t *jsonText) reply(size int) engine.Reply {
	if t.layout == (jsonedit.Format{}) && !t.named && t.matches == 1 {
		return wholeReply(t.value(t.paths[0].spans[0]), !t.legacy)
	}
	w := jsonedit.Writer{Format: t.layout, Out: make([]byte, 0, size+len("[]")+t.matches)}
	t.write(&w)
	return engine.Bulk(string(w.Out))
}

func (t *jsonText) value(s jsonpath.Span) string {
	if t.compact {
		return s.Text(t.doc)
	}
	return jsonedit.Compact(s.Text(t.doc))
}

func (t *jsonText) write(w *jsonedit.Writer) {
	if !t.named {
		t.writeMatches(w, t.paths[0].spans, 0)
		return
	}
	w.Text("{")
	for i, p := range t.paths {
		if i > 0 {
			w.Text(",")
		}
		w.Line(1)
		w.Text(string(jsontext.AppendString(nil, p.path)))
		w.Text(":")
		w.Text(w.Space)
		t.writeMatches(w, p.spans, 1)
	}
	w.Line(0)
	w.Text("}")
}

func (t *jsonText) writeMatches(w *jsonedit.Writer, spans []jsonpath.Span, depth int) {
	if t.legacy {
		w.Value(t.value(spans[0]), depth)
		return
	}
	w.Text("[")
	for i, s := range spans {
		if i > 0 {
			w.Text(",")
		}
		w.Line(depth + 1)
		if w.Value(t.value(s), depth+1); w.Failed() {
			return
		}
	}
	if len(spans) > 0 {
		w.Line(depth)
	}
	w.Text("]")
}

// expanded is the reply with FORMAT EXPAND or EXPAND1: for each path an array of its matches.
func (g *jsonGet) expanded(room *replyRoom, budget *jsonpath.Budget, doc string) engine.Reply {
	elems := make([]engine.Reply, len(g.paths))
	for i := range g.paths {
		spans, _, err := g.paths[i].findWithin(budget, doc)
		if err != nil {
			return engine.Fail(err)
		}
		if !room.take(0, len(spans)) {
			break
		}
		values := make([]engine.Reply, len(spans))
		for k, s := range spans {
			values[k] = g.format.reply(room, s.Text(doc))
		}
		elems[i] = engine.Array(values...)
	}
	return engine.Array(elems...)
}

// parseJSONMGet parses JSON.MGET. A key without a document, or without a match of a legacy path, is null.
func parseJSONMGet(in *engine.Input) (engine.Run, error) {
	last := len(in.Args) - 1
	p, err := parseJSONPath(in, last)
	if err != nil {
		return nil, err
	}
	keys := in.Args[1:last]
	g := jsonGet{paths: []jsonPath{p}, maxSize: in.MaxValue}
	return items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
		docs := make([]string, len(keys))
		size := 0
		for i, key := range keys {
			it, found := x.Tx.Get(c, key)
			x.CountRead(c, key, found)
			if found && it.Kind == keyspace.Document {
				docs[i] = it.Body
				size += len(it.Body)
			}
		}
		return x.Compute(size, func() engine.Reply {
			room := newReplyRoom(g.maxSize)
			elems := make([]engine.Reply, len(docs))
			first := make(map[string]int, len(docs)) // indices by key: a key that comes again is not read again
			for i, doc := range docs {
				elems[i] = engine.Null
				if doc == "" || room.left < 0 {
					continue
				}
				if k, ok := first[keys[i]]; ok {
					elems[i] = elems[k]
					room.take(engine.ReplySize(&elems[i]), 0)
					continue
				}
				first[keys[i]] = i
				if r := g.replyWithin(room, doc); r.Kind != engine.KindError {
					elems[i] = r
				}
			}
			return room.check(engine.Array(elems...))
		})
	}), nil
}

// parseJSONDebugMemory parses JSON.DEBUG MEMORY.
func parseJSONDebugMemory(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 4 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.debug|memory")
	}
	p, err := parseJSONPath(in, 3)
	if err != nil {
		return nil, err
	}
	missing := engine.Integer(0)
	if !p.Legacy() {
		missing = engine.Array()
	}
	key := in.Args[2]
	if p.Root() {
		return engine.Peeking(items.OnDatabase(func(x *engine.Context, c *keyspace.Container) engine.Reply {
			it, found := x.Tx.Get(c, key)
			switch {
			case !found:
				return missing
			case it.Kind != keyspace.Document:
				return engine.Fail(errJSONType)
			}
			size, _ := x.Tx.Memory(c, key)
			if p.Legacy() {
				return engine.Integer(size)
			}
			return engine.Array(engine.Integer(size))
		})), nil
	}
	return engine.Peeking(jsonQuestion{missing: missing, none: engine.Fail(p.missing("")), tell: func(value string) (engine.Reply, error) {
		return engine.Count(len(value)), nil
	}}.run(key, p)), nil
}
