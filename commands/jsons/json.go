package jsons

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"mayfly/commands/engine"
	"mayfly/commands/items"
	"mayfly/json/jsondoc"
	"mayfly/json/jsonedit"
	"mayfly/json/jsonpath"
	"mayfly/keyspace"
	"mayfly/redisfmt"
)

// The commands of RedisJSON, on the documents of the selected container. Their root may be any JSON value.
// Their Runs are in json_read.go, json_write.go and json_edit.go.
//
// A JSONPath answers with an array, an element for each match. Any other path is legacy: a command changes
// all its matches and answers for one. Errors have the words of RedisJSON.
var JSONCommands = []engine.Command{
	{
		Name: "json.arrappend", Syntax: "key path value [value ...]", Since: "1.0.0", Arity: -3,
		Summary: "Append the JSON values into the array at path after the last element in it",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrAppend,
	},
	{
		Name: "json.arrindex", Syntax: "key path value [start] [stop]", Since: "1.0.0", Arity: -4,
		Summary: "Search for the first occurrence of a JSON value in an array",
		Flags:   engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrIndex,
	},
	{
		Name: "json.arrinsert", Syntax: "key path index value [value ...]", Since: "1.0.0", Arity: -4,
		Summary: "Insert the JSON values into the array at path before the index (shifts to the right)",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrInsert,
	},
	{
		Name: "json.arrlen", Syntax: "key [path]", Since: "1.0.0", Summary: "Report the length of the JSON array at path in key",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrLen,
	},
	{
		Name: "json.arrpop", Syntax: "key [FORMAT <STRINGS | EXPAND1 | EXPAND>] [path] [index]", Since: "1.0.0", Arity: -2,
		Summary: "Remove and return the element at the specified index in the array at path",
		Flags:   engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrPop,
	},
	{
		Name: "json.arrtrim", Syntax: "key path start stop", Since: "1.0.0",
		Summary: "Trim an array so that it contains only the specified inclusive range of elements",
		Flags:   engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONArrTrim,
	},
	{
		Name: "json.clear", Syntax: "key [path]", Since: "2.0.0",
		Summary: "Clear container values (arrays/objects) and set numeric values to 0",
		Flags:   engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONClear,
	},
	{
		Name: "json.debug", Since: "1.0.0", Summary: "This is a container command for debugging related tasks",
		Sub: []engine.Command{
			engine.HelpRow("json.debug", "1.0.0"),
			{
				Name: "memory", Syntax: "key [path]", Since: "1.0.0", Summary: "Report the size in bytes of the value at path",
				Differs: "A value takes as many bytes as its JSON; the root takes also what its entry takes",
				Flags:   engine.ReadOnly, Keys: engine.Keys{First: 2, Last: 2, Step: 1}, Access: "RO", Walks: engine.Always, Parse: parseJSONDebugMemory,
			},
		},
	},
	jsonDelRow("json.del", "Delete a value"),
	jsonDelRow("json.forget", "Delete a value"),
	{
		Name: "json.get", Since: "1.0.0", Summary: "Get JSON value at path", Arity: -2,
		Syntax: "key [INDENT indent] [NEWLINE newline] [SPACE space] [FORMAT <STRING | EXPAND1 | EXPAND>] [path [path ...]]",
		Flags:  engine.ReadOnly, Keys: engine.OneKey, Walks: walksJSONGet, Parse: parseJSONGet,
	},
	{
		Name: "json.merge", Syntax: "key path value", Since: "2.6.0", Arity: -4,
		Summary: "Merge a given JSON value into matching paths. Consequently, JSON values at matching paths are updated, deleted, or expanded with new children",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONMerge,
	},
	{
		Name: "json.mget", Syntax: "key [key ...] path", Since: "1.0.0", Summary: "Return the values at path from multiple key arguments",
		Flags: engine.ReadOnly, Keys: engine.Keys{First: 1, Last: -2, Step: 1}, Walks: engine.Always, Parse: parseJSONMGet,
	},
	{
		Name: "json.mset", Syntax: "key path value [key path value ...]", Since: "2.6.0",
		Summary: "Set or update one or more JSON values according to the specified key-path-value triplets",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.Keys{First: 1, Last: -1, Step: 3}, Walks: engine.Always, Parse: parseJSONMSet,
	},
	{
		Name: "json.numincrby", Syntax: "key path value", Since: "1.0.0", Summary: "Increment the number value stored at path by number",
		Differs: "An integer that would not fit into 64 bits is an error",
		Flags:   engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONNumber(jsonedit.Add, "json.numincrby"),
	},
	{
		Name: "json.nummultby", Syntax: "key path value", Since: "1.0.0", Summary: "Multiply the number value stored at path by number",
		Differs: "An integer that would not fit into 64 bits is an error",
		Flags:   engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONNumber(jsonedit.Multiply, "json.nummultby"),
	},
	{
		Name: "json.objkeys", Syntax: "key [path]", Since: "1.0.0", Summary: "Return the keys in the object that's referenced by path",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONObjKeys,
	},
	{
		Name: "json.objlen", Syntax: "key [path]", Since: "1.0.0", Summary: "Report the number of keys in the JSON object at path in key",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONObjLen,
	},
	{
		Name: "json.resp", Syntax: "key [path]", Since: "1.0.0",
		Summary: "Return the JSON in key in Redis serialization protocol specification form",
		Flags:   engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONResp,
	},
	{
		Name: "json.set", Since: "1.0.0", Summary: "Set the JSON value at path in key",
		Syntax:  "key path value [NX | XX] [EX seconds | PX milliseconds | EXAT unix-time-seconds | PXAT unix-time-milliseconds | KEEPTTL]",
		Differs: "The options of an end are mayfly's own, for the root path only. Without them the container's default or the member `ttl` rules when the document dies. Numbers keep their spelling. Text after the value is an error, as is nesting deeper than 128 levels. Other options do not exist",
		Flags:   engine.Write | engine.DenyOOM, Keys: engine.OneKey, Walks: jsonPathBelowRoot, Parse: parseJSONSet,
	},
	{
		Name: "json.strappend", Syntax: "key [path] value", Since: "1.0.0", Summary: "Append the json-string values to the string at path",
		Flags: engine.Write | engine.DenyOOM, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONStrAppend,
	},
	{
		Name: "json.strlen", Syntax: "key [path]", Since: "1.0.0", Summary: "Report the length of the JSON String at path in key",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONStrLen,
	},
	{
		Name: "json.toggle", Syntax: "key path", Since: "2.0.0", Summary: "Toggle the boolean value stored at path",
		Flags: engine.Write, Keys: engine.OneKey, Walks: engine.Always, Parse: parseJSONToggle,
	},
	{
		Name: "json.type", Syntax: "key [path]", Since: "1.0.0", Summary: "Report the type of JSON value at path",
		Flags: engine.ReadOnly, Keys: engine.OneKey, Walks: engine.IfLonger(2), Parse: parseJSONType,
	},
}

func jsonDelRow(name, summary string) engine.Command {
	return engine.Command{
		Name: name, Syntax: "key [path]", Since: "1.0.0", Summary: summary,
		Differs: "The other members keep their order",
		Flags:   engine.Write | engine.Frees, Keys: engine.OneKey, Access: "RM delete", Walks: engine.IfLonger(2), Parse: parseJSONDel,
	}
}

// The errors of JSON.*, with the words of RedisJSON.
const (
	errJSONType     = engine.Error("WRONGTYPE Existing key has wrong Redis type")
	errJSONMissing  = engine.Error("ERR could not perform this operation on a key that doesn't exist")
	errJSONRoot     = engine.Error("ERR new objects must be created at the root")
	errJSONDeadline = engine.Error("ERR a deadline needs the root path")
	errJSONStatic   = engine.Error("ERR wrong static path: a member is created at one place only")
	errJSONIndex    = engine.Error("ERR array index out of range")
	errJSONBounds   = engine.Error("ERR index out of bounds")
	errJSONNumber   = engine.Error("ERR bad input number")
	errJSONFormat   = engine.Error("ERR wrong reply format")
	errJSONResp2    = engine.Error("ERR FORMAT argument is not supported on RESP2")
	errJSONUTF8     = engine.Error("ERR Couldn't parse as UTF-8 string")
	errJSONLegacy   = engine.Error("ERR Legacy paths are supported only with FORMAT STRINGS")

	errJSONWork     = "ERR the triplets of JSON.MSET walk more than %d bytes of documents"
	errJSONReply    = "ERR the reply takes more than %d bytes"
	errJSONGrowth   = "ERR the document would have more than %d bytes (max-value-size)"
	errJSONPath     = "ERR Path '%s' does not exist"
	errJSONPathOr   = "ERR Path '%s' does not exist or %s"
	errJSONPaths    = "ERR too many paths: legal are up to %d"
	errJSONLayout   = "ERR white space of %d bytes: legal are up to %d"
	errJSONExpected = "WRONGTYPE wrong type of path value - expected %s but found %s"
)

// jsonPath is a path of a command. text is as the client wrote it, "." if it wrote none.
type jsonPath struct {
	*jsonpath.Path
	text  string
	plain bool // it counts as a JSONPath
}

// Legacy reports whether the path is one of RedisJSON 1.
func (p jsonPath) Legacy() bool { return !p.plain && p.Path.Legacy() }

// rootPath is the path "$".
var rootPath, _ = jsonpath.Parse("$")

// parseJSONPath reads the optional path at an index of the arguments.
func parseJSONPath(in *engine.Input, at int) (p jsonPath, err error) {
	p.text = "."
	if at < len(in.Args) {
		p.text = in.Args[at]
	}
	if p.text == "$" {
		p.Path = rootPath
		return p, nil
	}
	p.Path, err = jsonpath.Cached(p.text)
	return p, err
}

// parseJSONKeyPath reads the arguments "key [path]". RedisJSON refuses further ones only in JSON.CLEAR;
// elsewhere it does as if they were not there, which a client that means several paths does not notice.
func parseJSONKeyPath(in *engine.Input) (p jsonPath, err error) {
	if len(in.Args) > 3 {
		return p, engine.Errorf(engine.ErrWrongArity, strings.ToLower(in.Args[0]))
	}
	return parseJSONPath(in, 2)
}

// missing returns the error of a legacy path without a match. or says what else may be wrong; empty: nothing.
func (p *jsonPath) missing(or string) error {
	text := p.text
	if len(text) > maxShownPath {
		text = strings.ToValidUTF8(text[:maxShownPath], "") + "..."
	}
	if or != "" {
		return engine.Errorf(errJSONPathOr, text, or)
	}
	return engine.Errorf(errJSONPath, text)
}

// maxShownPath is the size in bytes of the longest path that an error shows whole.
const maxShownPath = 128

// find returns the matches of a path and the document in which they are: doc, or doc without repeated names
// if older members of a name could be among the matches.
func (p *jsonPath) find(doc string) (text string, spans []jsonpath.Span, err error) {
	budget, repeated := jsonpath.BudgetOf(doc), false
	spans, repeated, err = p.findWithin(&budget, doc)
	if text = doc; repeated {
		if text = jsonedit.Unrepeated(doc); text != doc {
			budget = jsonpath.BudgetOf(text)
			spans, _, err = p.findWithin(&budget, text)
		}
	}
	return text, spans, err
}

// first returns the first match of a path and the document in which it is, as find does.
func (p *jsonPath) first(doc string) (text string, s jsonpath.Span, ok bool, err error) {
	budget, repeated := jsonpath.BudgetOf(doc), false
	s, ok, repeated, err = p.FirstWithin(&budget, doc)
	if text = doc; repeated {
		if text = jsonedit.Unrepeated(doc); text != doc {
			s, ok, err = p.First(text)
		}
	}
	return text, s, ok, err
}

// findWithin returns the matches in a document, within a budget that several paths share. repeated is that of
// [jsonpath.Path.Find].
func (p *jsonPath) findWithin(budget *jsonpath.Budget, doc string) (spans []jsonpath.Span, repeated bool, err error) {
	if !p.Static() {
		return p.Find(budget, nil, doc)
	}
	s, ok, repeated, err := p.FirstWithin(budget, doc)
	if ok {
		spans = []jsonpath.Span{s}
	}
	return spans, repeated, err
}

// transformJSON is jsonedit.Transform for a document of at most maxSize bytes. It ends when the values grow
// by more than that: a long value at many places would fill the memory before the document is judged.
func transformJSON(doc string, spans []jsonpath.Span, maxSize int, f func(i int, value string) (string, error)) (string, error) {
	left := len(doc) + maxSize
	return jsonedit.Transform(doc, spans, func(i int, value string) (string, error) {
		text, err := f(i, value)
		if left -= max(len(text)-len(value), 0); err == nil && left < 0 {
			err = engine.Errorf(errJSONGrowth, maxSize)
		}
		return text, err
	})
}

// outermost returns the spans that are in no other.
func outermost(spans []jsonpath.Span) []jsonpath.Span {
	if len(spans) < 2 {
		return spans
	}
	sorted := slices.Clone(spans)
	slices.SortFunc(sorted, func(a, b jsonpath.Span) int { return cmp.Compare(a.From, b.From) })
	end := -1
	return slices.DeleteFunc(sorted, func(s jsonpath.Span) bool {
		if s.From < end {
			return true
		}
		end = s.To
		return false
	})
}

// jsonPathBelowRoot reports whether a path of JSON.SET is not the root, so that the command reads the
// document.
func jsonPathBelowRoot(args []string) bool {
	return len(args) > 2 && args[2] != "$" && args[2] != "."
}

// parseJSONValue reads a value that a command stores: compact, so that what clients read does not depend on
// how it was written.
func parseJSONValue(text string, maxSize int) (string, error) {
	d, err := parseJSONRoot(text, maxSize)
	return d.JSON, err
}

// parseJSONRoot is parseJSONValue for a whole document.
func parseJSONRoot(text string, maxSize int) (jsondoc.Document, error) {
	d, err := jsondoc.ParseValue(text, maxSize)
	if err != nil {
		return d, jsonError(err, text)
	}
	if compact := jsonedit.Compact(d.JSON); len(compact) != len(d.JSON) {
		d = jsondoc.FromValid(compact, "")
	}
	d.Compact = true
	return d, nil
}

// jsonError returns the error of a text that is no value or no document, with the words of RedisJSON that
// clients look for.
func jsonError(err error, text string) error {
	if !utf8.ValidString(text) {
		return errJSONUTF8
	}
	var nesting *jsondoc.NestingError
	if errors.As(err, &nesting) {
		return engine.Errorf("ERR recursion limit exceeded: %s", nesting)
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		for _, e := range jsonExpected {
			if strings.HasSuffix(syntax.Error(), e.after) {
				return engine.Errorf("ERR %s, expected %s", err, e.expected)
			}
		}
	}
	return err
}

// jsonExpected says what may stand where the reader of JSON stops. Only the text of a json.SyntaxError says
// where that is.
var jsonExpected = []struct{ after, expected string }{
	{" after object key:value pair", "',' or '}'"},
	{" after array element", "',' or ']'"},
	{" after object key", "':'"},
	{" after top-level value", "the end"},
	{" looking for beginning of value", "a value"},
	{" looking for beginning of object key string", "a name in quotes"},
}

// parseJSONValues reads several values.
func parseJSONValues(texts []string, maxSize int) ([]string, error) {
	values := make([]string, len(texts))
	for i, text := range texts {
		var err error
		if values[i], err = parseJSONValue(text, maxSize); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// jsonTarget returns the document of a key of the session's database.
func jsonTarget(x *engine.Context, key string) (items.DocTarget, error) {
	c, it, found, err := items.GetItem(x, key)
	if err == nil && found && it.Kind != keyspace.Document {
		err = errJSONType
	}
	return items.DocTarget{Container: c, ID: key, Item: it, Found: found}, err
}

// jsonInteger reads an integer argument.
func jsonInteger(text string) (int, error) {
	n, ok := redisfmt.ParseInt(text)
	if !ok {
		return 0, engine.ErrNotInteger
	}
	return int(n), nil
}
