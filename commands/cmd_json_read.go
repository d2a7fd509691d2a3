package commands

import (
	"slices"
	"strconv"
	"strings"
	"unsafe"

	"mayfly/commands/jsonedit"
	"mayfly/commands/jsonpath"
	"mayfly/commands/redisfmt"
	"mayfly/keyspace"
	"mayfly/query/jsontext"
)

// readingJSON returns the Run of a command that reads one document. missing is its reply for a key without one. A long
// document is walked without locks.
func readingJSON(key string, missing Reply, read func(x *Context, doc string) Reply) Run {
	return func(x *Context) Reply {
		d, err := x.jsonTarget(key)
		if d.container != nil {
			d.countRead(x)
		}
		switch {
		case err != nil:
			return Fail(err)
		case !d.found:
			return missing
		}
		return x.compute(len(d.item.Body), func() Reply { return read(x, d.item.Body) })
	}
}

// jsonQuestion is a command that tells something of each value at a path. A JSONPath answers with an array, in which a
// value of another type is null. A legacy path answers for its first match.
type jsonQuestion struct {
	missing Reply                             // of a key without a document
	none    Reply                             // of a legacy path without a match
	tell    func(value string) (Reply, error) // the error is that of a legacy path to a value of another type
}

// run returns the Run of the command.
func (q jsonQuestion) run(key string, p jsonPath) Run {
	return readingJSON(key, q.missing, func(_ *Context, doc string) Reply { return q.answer(p, doc) })
}

// answer is the reply for a document.
func (q jsonQuestion) answer(p jsonPath, doc string) Reply {
	if p.Legacy() {
		return q.first(p, doc)
	}
	spans, err := p.find(doc)
	if err != nil {
		return Fail(err)
	}
	elems := make([]Reply, len(spans))
	for i, s := range spans {
		if elems[i], err = q.tell(s.Text(doc)); err != nil {
			elems[i] = Null
		}
	}
	return Array(elems...)
}

// runWithin is run for a command whose replies may be much longer than the document. tell gets the room for them.
func (q jsonQuestion) runWithin(in *Input, p jsonPath, tell func(room *replyRoom, value string) (Reply, error)) Run {
	maxSize := in.MaxValue
	return readingJSON(in.Args[1], q.missing, func(_ *Context, doc string) Reply {
		room := newReplyRoom(maxSize)
		q.tell = func(value string) (Reply, error) { return tell(room, value) }
		return room.check(q.answer(p, doc))
	})
}

// replyRoom bounds the size of a reply, which may be much longer than the document: nested values may be in it many times,
// and a small value takes more as a reply.
type replyRoom struct{ left, limit int } // bytes

func newReplyRoom(maxSize int) *replyRoom {
	limit := max(minQueueLimit, queueFactor*maxSize)
	return &replyRoom{limit, limit}
}

// take reports whether there is room for some bytes and for some replies.
func (r *replyRoom) take(size, replies int) bool {
	r.left -= size + replies*int(unsafe.Sizeof(Reply{}))
	return r.left >= 0
}

// check returns a reply, or the error that there was no room for it.
func (r *replyRoom) check(reply Reply) Reply {
	if r.left < 0 {
		return Fail(errorf(errJSONReply, r.limit))
	}
	return reply
}

// first is the reply of a legacy path.
func (q jsonQuestion) first(p jsonPath, doc string) Reply {
	s, ok, err := p.First(doc)
	if err == nil && !ok {
		return q.none
	}
	var r Reply
	if err == nil {
		r, err = q.tell(s.Text(doc))
	}
	if err != nil {
		return Fail(err)
	}
	return r
}

// expectedJSON returns the error for a value of another type than expected.
func expectedJSON(kind, value string) error {
	return errorf(errJSONExpected, kind, jsonedit.Kind(value))
}

// missingUnless returns null for a legacy path and an error for a JSONPath: the replies of a key without a document.
func missingUnless(p jsonPath) Reply {
	if p.Legacy() {
		return Null
	}
	return Fail(errJSONMissing)
}

func parseJSONStrLen(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: Fail(p.missing("")), tell: func(value string) (Reply, error) {
		if value[0] != '"' {
			return Null, expectedJSON("string", value)
		}
		return Count(len(jsontext.Unquote(value))), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONArrLen(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: Fail(p.missing("")), tell: func(value string) (Reply, error) {
		if value[0] != '[' {
			return Null, p.missing("not an array")
		}
		return Count(jsonedit.Length(value)), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONObjLen(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	missing := Null
	if !p.Legacy() {
		missing = Fail(p.missing("not an object"))
	}
	return jsonQuestion{missing: missing, none: Null, tell: func(value string) (Reply, error) {
		if value[0] != '{' {
			return Null, expectedJSON("object", value)
		}
		return Count(jsonedit.Length(value)), nil
	}}.run(in.Args[1], p), nil
}

func parseJSONObjKeys(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: missingUnless(p), none: Null}.runWithin(in, p, func(room *replyRoom, value string) (Reply, error) {
		if value[0] != '{' {
			return Null, p.missing("not an object")
		}
		names := jsonedit.Names(value)
		if !room.take(len(value), len(names)) {
			return Null, nil
		}
		return Bulks(names...), nil
	}), nil
}

func parseJSONArrIndex(in *Input) (Run, error) {
	if len(in.Args) > 6 {
		return nil, errorf(errWrongArity, strings.ToLower(in.Args[0]))
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	value, err := parseJSONValue(in.Args[3], in.MaxValue)
	if err != nil {
		return nil, err
	}
	var bounds [2]int
	for i, arg := range in.Args[4:] {
		if bounds[i], err = jsonInteger(arg); err != nil {
			return nil, err
		}
	}
	q := jsonQuestion{missing: Fail(p.missing("")), none: Fail(p.missing(""))}
	return readingJSON(in.Args[1], q.missing, func(_ *Context, doc string) Reply {
		left := maxComparisons*len(doc) + slowBytes
		q.tell = func(array string) (Reply, error) {
			if array[0] != '[' {
				return Null, expectedJSON("array", array)
			}
			if value[0] == '{' || value[0] == '[' {
				left -= len(array)
			}
			if left < 0 {
				return Null, jsonpath.ErrBudget
			}
			return Count(jsonedit.Index(array, value, bounds[0], bounds[1])), nil
		}
		if r := q.answer(p, doc); left >= 0 {
			return r
		}
		return Fail(jsonpath.ErrBudget)
	}), nil
}

// maxComparisons bounds how often JSON.ARRINDEX compares a part of the document with an object or array. Nested arrays have
// the same parts.
const maxComparisons = 8

// parseJSONType parses JSON.TYPE. On RESP3 its reply is in an array, as that of RedisJSON.
func parseJSONType(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return inArrayOnRESP3(jsonQuestion{missing: Null, none: Null, tell: func(value string) (Reply, error) {
		return Bulk(jsonedit.Kind(value)), nil
	}}.run(in.Args[1], p)), nil
}

// inArrayOnRESP3 returns a Run with its reply in an array if the connection speaks RESP3.
func inArrayOnRESP3(run Run) Run {
	wrap := func(x *Context, r Reply) Reply {
		if x.proto() == 3 && r.Kind != KindError {
			return Array(r)
		}
		return r
	}
	return func(x *Context) Reply {
		r := run(x)
		if inner := x.outside; inner != nil {
			x.outside = func() (Reply, bool) {
				r, again := inner()
				return wrap(x, r), again
			}
			return r
		}
		return wrap(x, r)
	}
}

func parseJSONResp(in *Input) (Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return jsonQuestion{missing: Null, none: Fail(p.missing(""))}.runWithin(in, p, func(room *replyRoom, value string) (Reply, error) {
		return respOfJSON(room, value), nil
	}), nil
}

// respOfJSON is a value as JSON.RESP shows it: an array begins with [, an object with {, booleans are words.
func respOfJSON(room *replyRoom, value string) Reply {
	switch value[0] {
	case '[', '{':
		elems := []Reply{Status(value[:1])}
		for w := jsontext.WalkAt(value, 0); room.take(0, 2) && w.Next(); {
			if !w.Array {
				elems = append(elems, Bulk(w.Name()))
			}
			elems = append(elems, respOfJSON(room, w.Value()))
		}
		return Array(elems...)
	case 't', 'f':
		return Status(value)
	}
	return scalarReply(value)
}

// scalarReply is a string, a number, a boolean or null as its own type of RESP.
func scalarReply(value string) Reply {
	switch value[0] {
	case '"':
		return Bulk(jsontext.Unquote(value))
	case 'n':
		return Null
	case 't', 'f':
		return Reply{Kind: KindBool, Int: Flag(value == "true").Int}
	}
	if n, err := strconv.ParseInt(value, 10, 64); err == nil {
		return Integer(n)
	}
	return Double(jsontext.ParseNumber(value))
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
func (f replyFormat) reply(room *replyRoom, value string) Reply {
	scalar := value[0] != '[' && value[0] != '{'
	if f != asText && scalar {
		return scalarReply(value)
	}
	if f != expandAll {
		if !room.take(len(value), 1) {
			return Null
		}
		return Bulk(jsonedit.Compact(value))
	}
	var elems []Reply
	w := jsontext.WalkAt(value, 0)
	for room.take(0, 2) && w.Next() {
		if !w.Array {
			elems = append(elems, Bulk(w.Name()))
		}
		elems = append(elems, f.reply(room, w.Value()))
	}
	if w.Array {
		return Array(elems...)
	}
	return Map(elems...)
}

// jsonGet is a parsed JSON.GET.
type jsonGet struct {
	paths  []jsonPath
	layout jsonedit.Format
	plain  bool // the layout adds nothing
	format replyFormat
	early  bool // FORMAT comes before the paths: an error on RESP2, where it is ignored after them

	maxSize int // see Input.MaxValue
}

// parseJSONGet parses JSON.GET. A word that is an option is never a path, as in RedisJSON.
func parseJSONGet(in *Input) (Run, error) {
	if !walksJSONGet(in.Args) {
		return runJSONGet, nil
	}
	g := jsonGet{maxSize: in.MaxValue}
	if err := g.parse(in.Args[2:]); err != nil {
		return nil, err
	}
	g.plain = g.layout == jsonedit.Format{}
	if len(g.paths) == 0 {
		root, err := parseJSONPath(in, len(in.Args))
		if err != nil {
			return nil, err
		}
		g.paths = []jsonPath{root}
	}
	return func(x *Context) Reply {
		if x.proto() != 3 {
			if g.early {
				return Fail(errJSONResp2)
			}
			g.format = asText
		}
		return readingJSON(in.Args[1], Null, g.reply)(x)
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
			if g.paths = append(g.paths, jsonPath{path, word}); len(g.paths) > maxPaths {
				return errorf(errJSONPaths, maxPaths)
			}
			continue
		}
		if args = args[1:]; len(args) == 0 {
			return errorf(errWrongArity, "json.get")
		}
		if *value = args[0]; len(*value) > maxLayout {
			return errorf(errJSONLayout, len(*value), maxLayout)
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

// runJSONGet is JSON.GET of a whole document, without options. The first one notes in the entry of a document that it is
// compact.
func runJSONGet(x *Context) Reply {
	key := x.Input.Args[1]
	c, err := x.Database()
	if err != nil {
		return Fail(err)
	}
	it, encoding, found := x.Tx.GetEncoded(c, key)
	x.countRead(c, key, found)
	switch {
	case !found:
		return Null
	case it.Kind != keyspace.Document:
		return Fail(errJSONType)
	}
	inArray := len(x.Input.Args) > 2 && x.Input.Args[2] == "$"
	if encoding == keyspace.Compact {
		return wholeReply(it.Body, inArray)
	}
	if len(it.Body) >= slowBytes {
		return x.compute(len(it.Body), func() Reply { return wholeReply(jsonedit.Compact(it.Body), inArray) })
	}
	text := jsonedit.Compact(it.Body)
	if text == it.Body {
		x.Tx.SetEncoding(c, key, keyspace.Compact)
	}
	return wholeReply(text, inArray)
}

// wholeReply is the reply with a whole document. A JSONPath has it in an array.
func wholeReply(text string, inArray bool) Reply {
	if inArray {
		return Reply{Kind: KindElement, Str: text}
	}
	return Bulk(text)
}

// reply is the reply for a document: for one path the values, for several an object with the values by path.
func (g *jsonGet) reply(_ *Context, doc string) Reply {
	room := newReplyRoom(g.maxSize)
	return room.check(g.replyWithin(room, doc))
}

func (g *jsonGet) replyWithin(room *replyRoom, doc string) Reply {
	budget := jsonpath.BudgetOf(doc)
	legacy := !slices.ContainsFunc(g.paths, func(p jsonPath) bool { return !p.Legacy() })
	if g.format != asText {
		return g.expanded(room, &budget, doc)
	}
	if len(g.paths) == 1 {
		text, err := g.values(room, &budget, nil, &g.paths[0], doc, legacy)
		if err != nil {
			return Fail(err)
		}
		return g.spaced(room, text)
	}
	out := []byte{'{'}
	for i := range g.paths {
		p := &g.paths[i]
		if slices.ContainsFunc(g.paths[:i], func(q jsonPath) bool { return q.text == p.text }) {
			continue // the object has one member of a name
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(jsontext.AppendString(out, p.text), ':')
		var err error
		if out, err = g.values(room, &budget, out, p, doc, legacy); err != nil {
			return Fail(err)
		}
	}
	return g.spaced(room, append(out, '}'))
}

// spaced is a compact text in the layout of the command.
func (g *jsonGet) spaced(room *replyRoom, text []byte) Reply {
	if !g.plain && room.left >= 0 {
		g.layout.Limit = room.limit
		text = g.layout.Append(nil, string(text))
		room.take(len(text), 0)
	}
	return Bulk(string(text))
}

// values appends the first match of a path if legacy, else an array of all matches.
func (g *jsonGet) values(room *replyRoom, budget *jsonpath.Budget, out []byte, p *jsonPath, doc string, legacy bool) ([]byte, error) {
	if legacy {
		s, ok, err := p.FirstWithin(budget, doc)
		if err == nil && !ok {
			err = p.missing("")
		}
		if err != nil {
			return nil, err
		}
		if !room.take(s.To-s.From, 0) {
			return out, nil
		}
		return append(out, jsonedit.Compact(s.Text(doc))...), nil
	}
	spans, err := p.findWithin(budget, doc)
	if err != nil {
		return nil, err
	}
	return append(appendJSONArray(room, append(out, '['), doc, spans), ']'), nil
}

// appendJSONArray appends the values at spans, with commas.
func appendJSONArray(room *replyRoom, out []byte, doc string, spans []jsonpath.Span) []byte {
	for i, s := range spans {
		if !room.take(s.To-s.From, 0) {
			break
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, jsonedit.Compact(s.Text(doc))...)
	}
	return out
}

// expanded is the reply with FORMAT EXPAND or EXPAND1: for each path an array of its matches.
func (g *jsonGet) expanded(room *replyRoom, budget *jsonpath.Budget, doc string) Reply {
	elems := make([]Reply, len(g.paths))
	for i := range g.paths {
		spans, err := g.paths[i].findWithin(budget, doc)
		if err != nil {
			return Fail(err)
		}
		if !room.take(0, len(spans)) {
			break
		}
		values := make([]Reply, len(spans))
		for k, s := range spans {
			values[k] = g.format.reply(room, s.Text(doc))
		}
		elems[i] = Array(values...)
	}
	return Array(elems...)
}

// parseJSONMGet parses JSON.MGET. A key without a document, or without a match of a legacy path, is null.
func parseJSONMGet(in *Input) (Run, error) {
	last := len(in.Args) - 1
	p, err := parseJSONPath(in, last)
	if err != nil {
		return nil, err
	}
	keys := in.Args[1:last]
	g := jsonGet{plain: true, maxSize: in.MaxValue}
	return onDatabase(func(x *Context, c *keyspace.Container) Reply {
		docs := make([]string, len(keys))
		size := 0
		for i, key := range keys {
			it, found := x.Tx.Get(c, key)
			x.countRead(c, key, found)
			if found && it.Kind == keyspace.Document {
				docs[i] = it.Body
				size += len(it.Body)
			}
		}
		return x.compute(size, func() Reply {
			room := newReplyRoom(g.maxSize)
			elems := make([]Reply, len(docs))
			first := make(map[string]int, len(docs)) // indices by key: a key that comes again is not read again
			for i, doc := range docs {
				elems[i] = Null
				if doc == "" || room.left < 0 {
					continue
				}
				if k, ok := first[keys[i]]; ok {
					elems[i] = elems[k]
					room.take(len(elems[i].Str), 0)
					continue
				}
				first[keys[i]] = i
				budget := jsonpath.BudgetOf(doc)
				if text, err := g.values(room, &budget, nil, &p, doc, p.Legacy()); err == nil {
					elems[i] = Bulk(string(text))
				}
			}
			return room.check(Array(elems...))
		})
	}), nil
}

// parseJSONDebugMemory parses JSON.DEBUG MEMORY.
func parseJSONDebugMemory(in *Input) (Run, error) {
	if len(in.Args) > 4 {
		return nil, errorf(errWrongArity, "json.debug|memory")
	}
	p, err := parseJSONPath(in, 3)
	if err != nil {
		return nil, err
	}
	missing := Integer(0)
	if !p.Legacy() {
		missing = Array()
	}
	key := in.Args[2]
	if p.Root() {
		return peeking(onDatabase(func(x *Context, c *keyspace.Container) Reply {
			it, found := x.Tx.Get(c, key)
			switch {
			case !found:
				return missing
			case it.Kind != keyspace.Document:
				return Fail(errJSONType)
			}
			size, _ := x.Tx.Memory(c, key)
			if p.Legacy() {
				return Integer(size)
			}
			return Array(Integer(size))
		})), nil
	}
	return peeking(jsonQuestion{missing: missing, none: Fail(p.missing("")), tell: func(value string) (Reply, error) {
		return Count(len(value)), nil
	}}.run(key, p)), nil
}
