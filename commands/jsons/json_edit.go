package jsons

import (
	"slices"
	"strings"

	"mayfly/commands/engine"
	"mayfly/commands/events"
	"mayfly/json/jsonedit"
	"mayfly/json/jsonpath"
	"mayfly/json/jsontext"
	"mayfly/redisfmt"
)

// jsonChange is a command that changes each value at a path. A JSONPath answers with an array, in which a
// value of another type is null. A legacy path changes all its matches and answers for the last one.
type jsonChange struct {
	kind string // of the values, for the error of a legacy path: "not an array"

	// apply returns the value in the place of another, and its reply; ok is false for a value of another
	// type.
	apply func(value string) (text string, r engine.Reply, ok bool, err error)

	// moves says that the command moves elements: a legacy path answers for the match that RedisJSON changes
	// last.
	moves bool
}

// run returns the Run of the command.
func (c jsonChange) run(in *engine.Input, p jsonPath, name string) engine.Run {
	maxSize := in.MaxValue
	return editingJSON(in, events.JSON(name), jsonEditor{
		absent: jsonAbsent,
		apply:  func(body string) (string, engine.Reply, error) { return c.edit(body, p, maxSize) },
	})
}

// runAtOne is run for a path that has at most one match, with half the memory. The reply for a match is not
// in an array.
func (c jsonChange) runAtOne(in *engine.Input, p jsonPath, name string) engine.Run {
	return editingJSON(in, events.JSON(name), jsonEditor{
		absent: jsonAbsent,
		apply: func(body string) (string, engine.Reply, error) {
			doc, s, found, err := p.first(body)
			if err != nil || !found && !p.Legacy() {
				return body, engine.Array(), err
			}
			text, r, ok := "", engine.Null, false
			if found {
				text, r, ok, err = c.apply(s.Text(doc))
			}
			switch {
			case err != nil:
				return "", engine.Null, err
			case !ok && p.Legacy():
				return "", engine.Null, p.missing(c.kind)
			case !ok:
				return body, engine.Array(engine.Null), nil
			}
			return doc[:s.From] + text + doc[s.To:], r, nil
		},
	})
}

// jsonAbsent is the reply of a command that changes values of a document that is not there.
func jsonAbsent() (engine.Reply, error) { return engine.Null, errJSONMissing }

// edit changes all matches of a path.
func (c jsonChange) edit(body string, p jsonPath, maxSize int) (string, engine.Reply, error) {
	doc, spans, err := p.find(body)
	if err != nil {
		return "", engine.Null, err
	}
	elems, changed := make([]engine.Reply, len(spans)), make([]bool, len(spans))
	answer := -1
	text, err := transformJSON(doc, spans, maxSize, func(i int, value string) (string, error) {
		text, r, ok, err := c.apply(value)
		if err != nil {
			return "", err
		}
		if elems[i] = r; !ok {
			elems[i] = engine.Null
			return value, nil
		}
		answer = max(answer, i)
		changed[i] = true
		return text, nil
	})
	switch {
	case err != nil:
		return "", engine.Null, err
	case answer < 0 && !p.Legacy():
		return body, engine.Array(elems...), nil
	case !p.Legacy():
		return text, engine.Array(elems...), nil
	case answer < 0:
		return "", engine.Null, p.missing(c.kind)
	case c.moves && len(spans) > 1:
		answer = changedLast(doc, spans, changed)
	}
	return text, elems[answer], nil
}

// changedLast returns the index of the span that RedisJSON changes last of those that a command changes: an
// outer value after the inner ones, an element after those behind it, a member after those with a lesser
// name.
func changedLast(doc string, spans []jsonpath.Span, changed []bool) int {
	var starts []int // of the values, in order
	index := map[int]int{}
	for i, s := range spans {
		if changed[i] {
			starts = append(starts, s.From)
			index[s.From] = i
		}
	}
	slices.Sort(starts)
	at := jsontext.Skip(doc, 0, ' ')
	for {
		if i, ok := index[at]; ok {
			return i
		}
		last, name := -1, ""
		for w := jsontext.WalkAt(doc, at); w.Next(); {
			k, _ := slices.BinarySearch(starts, w.ValueFrom)
			if k == len(starts) || starts[k] >= w.Pos {
				continue
			}
			if w.Array {
				last = w.ValueFrom
				break
			}
			if n := w.Name(); last < 0 || n >= name {
				last, name = w.ValueFrom, n
			}
		}
		at = last
	}
}

func parseJSONToggle(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	return jsonChange{kind: "not a bool", apply: func(value string) (string, engine.Reply, bool, error) {
		if value != "true" && value != "false" {
			return value, engine.Null, false, nil
		}
		text := jsonedit.Toggle(value)
		if p.Legacy() {
			return text, engine.Bulk(text), true, nil
		}
		return text, engine.Flag(text == "true"), true, nil
	}}.run(in, p, "json.toggle"), nil
}

// parseJSONNumber returns the Parse of a command that calculates with numbers. RESP3 has the results as
// numbers, RESP2 as JSON.
func parseJSONNumber(calculate func(value, by jsonedit.Number) (string, error), name string) func(in *engine.Input) (engine.Run, error) {
	return func(in *engine.Input) (engine.Run, error) {
		p, err := parseJSONPath(in, 2)
		if err != nil {
			return nil, err
		}
		arg, err := parseJSONValue(in.Args[3], in.MaxValue)
		if err != nil {
			return nil, err
		}
		if !isJSONNumber(arg) {
			return nil, errJSONNumber
		}
		by := jsonedit.ReadNumber(arg) // once: it may be long, and the matches many
		c := jsonChange{kind: "does not contains a number", apply: func(value string) (string, engine.Reply, bool, error) {
			if !isJSONNumber(value) {
				return value, engine.Null, false, nil
			}
			text, err := calculate(jsonedit.ReadNumber(value), by)
			return text, engine.Bulk(text), true, err
		}}
		change := c.run
		if p.Static() {
			change = c.runAtOne
		}
		run := change(in, p, name)
		resp3 := run
		if p.Legacy() { // as in RedisJSON, that shows in RESP2 only
			plain := p
			plain.plain = true
			resp3 = change(in, plain, name)
		}
		return func(x *engine.Context) engine.Reply {
			if x.Proto() == 3 {
				return numbersReply(x, resp3(x))
			}
			r := run(x)
			if p.Static() && r.Kind == engine.KindBulk && !p.Legacy() && x.Outside == nil {
				return engine.Bulk("[" + r.Str + "]")
			}
			return numbersReply(x, r)
		}, nil
	}
}

func isJSONNumber(value string) bool { return value[0] == '-' || value[0] >= '0' && value[0] <= '9' }

// numbersReply makes the reply of the numbers as JSON in r.
func numbersReply(x *engine.Context, r engine.Reply) engine.Reply {
	switch {
	case x.Outside != nil || r.Kind == engine.KindError:
		return r
	case x.Proto() == 3 && r.Kind == engine.KindArray:
		for i, e := range r.Elems {
			if e.Kind == engine.KindBulk {
				r.Elems[i] = numberReply(e.Str)
			}
		}
		return r
	case x.Proto() == 3 && r.Kind == engine.KindBulk:
		return engine.Array(numberReply(r.Str))
	case r.Kind == engine.KindArray:
		texts := make([]string, len(r.Elems))
		for i, e := range r.Elems {
			if texts[i] = e.Str; e.Kind == engine.KindNull {
				texts[i] = "null"
			}
		}
		return engine.Bulk("[" + strings.Join(texts, ",") + "]")
	}
	return r
}

// parseJSONStrAppend parses JSON.STRAPPEND, whose path is the optional argument before the last.
func parseJSONStrAppend(in *engine.Input) (engine.Run, error) {
	if len(in.Args) > 4 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.strappend")
	}
	last := len(in.Args) - 1
	at := 2
	if last == 2 {
		at = len(in.Args)
	}
	p, err := parseJSONPath(in, at)
	if err != nil {
		return nil, err
	}
	suffix, err := parseJSONValue(in.Args[last], in.MaxValue)
	if err != nil {
		return nil, err
	}
	if suffix[0] != '"' {
		return nil, expectedJSON("string", suffix)
	}
	return jsonChange{kind: "not a string", apply: func(value string) (string, engine.Reply, bool, error) {
		if value[0] != '"' {
			return value, engine.Null, false, nil
		}
		text, length := jsonedit.AppendToString(value, suffix)
		return text, engine.Count(length), true, nil
	}}.run(in, p, "json.strappend"), nil
}

func parseJSONArrAppend(in *engine.Input) (engine.Run, error) {
	if len(in.Args) < 4 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.arrappend")
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	values, err := parseJSONValues(in.Args[3:], in.MaxValue)
	if err != nil {
		return nil, err
	}
	return jsonChange{kind: "not an array", apply: func(value string) (string, engine.Reply, bool, error) {
		if value[0] != '[' {
			return value, engine.Null, false, nil
		}
		text, length := jsonedit.Append(value, values)
		return text, engine.Count(length), true, nil
	}}.run(in, p, "json.arrappend"), nil
}

func parseJSONArrInsert(in *engine.Input) (engine.Run, error) {
	if len(in.Args) < 5 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.arrinsert")
	}
	index, err := jsonInteger(in.Args[3])
	if err != nil {
		return nil, err
	}
	values, err := parseJSONValues(in.Args[4:], in.MaxValue)
	if err != nil {
		return nil, err
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	return jsonChange{kind: "not an array", moves: true, apply: func(value string) (string, engine.Reply, bool, error) {
		if value[0] != '[' {
			return value, engine.Null, false, nil
		}
		text, length, ok := jsonedit.Insert(value, index, values)
		if !ok {
			return "", engine.Null, false, errJSONBounds
		}
		return text, engine.Count(length), true, nil
	}}.run(in, p, "json.arrinsert"), nil
}

// parseJSONArrPop parses JSON.ARRPOP. Without an index it pops the last element; as in RedisJSON, also with
// one that is no integer.
func parseJSONArrPop(in *engine.Input) (engine.Run, error) {
	args, format, formatted := in.Args[2:], asText, false
	if len(args) > 1 && redisfmt.EqualFold(args[0], "FORMAT") {
		var err error
		if format, err = parseReplyFormat(args[1], "STRINGS"); err != nil {
			return nil, err
		}
		args, formatted = args[2:], true
	}
	if len(args) > 2 {
		return nil, engine.Errorf(engine.ErrWrongArity, "json.arrpop")
	}
	p, err := parseJSONPath(in, len(in.Args)-len(args))
	if err != nil {
		return nil, err
	}
	index := -1
	if len(args) > 1 {
		if n, err := jsonInteger(args[1]); err == nil {
			index = n
		}
	}
	if format != asText && p.Legacy() {
		return nil, errJSONLegacy
	}
	maxSize := in.MaxValue
	run := editingJSON(in, events.JSON("json.arrpop"), jsonEditor{absent: jsonAbsent, apply: func(body string) (string, engine.Reply, error) {
		room := newReplyRoom(maxSize)
		return jsonChange{kind: "not an array", moves: true, apply: func(value string) (string, engine.Reply, bool, error) {
			if value[0] != '[' {
				return value, engine.Null, false, nil
			}
			text, popped := jsonedit.Pop(value, index)
			switch {
			case popped == "":
				return text, engine.Null, true, nil
			case format == expandAll:
				popped = jsonedit.Unrepeated(popped)
			case p.Legacy(): // of all matches, the last one is answered
				room = newReplyRoom(maxSize)
			}
			r := format.reply(room, popped)
			if room.left < 0 {
				return "", engine.Null, false, engine.Errorf(errJSONReply, room.limit)
			}
			return text, r, true, nil
		}}.edit(body, p, maxSize)
	}})
	return func(x *engine.Context) engine.Reply {
		if formatted && x.Proto() != 3 {
			return engine.Fail(errJSONResp2)
		}
		return run(x)
	}, nil
}

func parseJSONArrTrim(in *engine.Input) (engine.Run, error) {
	start, err := jsonInteger(in.Args[3])
	if err != nil {
		return nil, err
	}
	stop, err := jsonInteger(in.Args[4])
	if err != nil {
		return nil, err
	}
	p, err := parseJSONPath(in, 2)
	if err != nil {
		return nil, err
	}
	return jsonChange{kind: "not an array", moves: true, apply: func(value string) (string, engine.Reply, bool, error) {
		if value[0] != '[' {
			return value, engine.Null, false, nil
		}
		text, length := jsonedit.Trim(value, start, stop)
		return text, engine.Count(length), true, nil
	}}.run(in, p, "json.arrtrim"), nil
}

// parseJSONClear parses JSON.CLEAR, which answers with the number of values that it has changed.
func parseJSONClear(in *engine.Input) (engine.Run, error) {
	p, err := parseJSONKeyPath(in)
	if err != nil {
		return nil, err
	}
	return editingJSON(in, events.JSON("json.clear"), jsonEditor{
		absent: jsonAbsent,
		apply: func(body string) (string, engine.Reply, error) {
			doc, spans, err := p.find(body)
			if err != nil {
				return "", engine.Null, err
			}
			cleared := 0
			text, err := jsonedit.Transform(doc, spans, func(_ int, value string) (string, error) {
				text, changed := jsonedit.Clear(value)
				if changed {
					cleared++
				}
				return text, nil
			})
			if cleared == 0 {
				text = body
			}
			return text, engine.Count(cleared), err
		},
	}), nil
}
