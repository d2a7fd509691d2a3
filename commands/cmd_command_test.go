package commands

import (
	"slices"
	"strings"
	"testing"

	"mayfly/commands/admin"
	"mayfly/commands/engine"
	"mayfly/commands/syntax"
)

// ofElements take an element, as in KeyDB.
var ofElements = map[string]bool{"expiretime": true, "pexpiretime": true, "pttl": true, "ttl": true}

// COMMAND describes a command of Redis as Redis does: arity, flags, positions of keys, ACL categories,
// tips and key specifications.
func TestCommandInfoOnRedis(t *testing.T) {
	conn := startRealRedis(t).dial(t)
	compared := 0
	for _, r := range engine.AllRows {
		theirs := conn.do(t, "COMMAND", "INFO", r.FullName).Elems[0]
		if theirs.Kind != engine.KindArray {
			continue
		}
		compared++
		ours := admin.CommandInfo(r)
		switch r.FullName {
		case "zrank", "zrevrank": // since Redis 7.2
			theirs.Elems[1] = engine.Integer(-3)
		}
		if ofElements[r.FullName] {
			theirs.Elems[1] = engine.Integer(-2)
		}
		for i, what := range []string{"name", "arity", "flags", "first key", "last key", "step", "categories", "tips", "key specifications"} {
			if got, want := notation(ours.Elems[i]), notation(theirs.Elems[i]); got != want {
				t.Errorf("%s: %s:\n%s\nRedis:\n%s", r.FullName, what, got, want)
			}
		}
	}
	if compared < 20 {
		t.Errorf("only %d commands compared", compared)
	}
}

// COMMAND DOCS describes a command as Redis does: summary, since, group and arguments, as far as their
// syntax shows them.
func TestCommandDocsOnRedis(t *testing.T) {
	conn := startRealRedis(t).dial(t)
	differs := map[string]bool{
		"client|kill":             true, // ours has filters of Valkey
		"client|list":             true, // likewise
		"command|getkeys":         true, // Redis does not describe the arguments
		"command|getkeysandflags": true, // likewise
		"hincrbyfloat":            true, // the type of an increment is "double" here only
		"incrbyfloat":             true, // likewise
		"select":                  true, // ours takes names of containers
		"set":                     true, // ours has conditions of Redis 8.4
	}
	newer := map[string]string{ // arguments of Redis 7.2 to 8.4
		"hscan": "NOVALUES", "xreadgroup": "CLAIM", "zrank": "WITHSCORE", "zrevrank": "WITHSCORE",
	}
	for _, r := range engine.AllRows {
		theirs := conn.do(t, "COMMAND", "DOCS", r.FullName)
		if len(theirs.Elems) == 0 {
			continue
		}
		ours := admin.CommandDocs(r)
		for _, name := range []string{"summary", "since", "group"} {
			if got, want := field(ours, name).Str, field(theirs.Elems[1], name).Str; got != want {
				t.Errorf("%s: %s %q, Redis: %q", r.FullName, name, got, want)
			}
		}
		if differs[r.FullName] || ofElements[r.FullName] {
			continue
		}
		got, want := argumentsOf(ours), argumentsOf(theirs.Elems[1])
		if token := newer[r.FullName]; token != "" {
			got = slices.DeleteFunc(got, func(a syntax.Argument) bool { return a.Token == token })
		}
		if writeSyntax(got, " ") != writeSyntax(want, " ") {
			t.Errorf("%s: arguments %s, Redis: %s", r.FullName, writeSyntax(got, " "), writeSyntax(want, " "))
		}
		if got, want := valueKinds(got), valueKinds(want); got != want {
			t.Errorf("%s: types %s, Redis: %s", r.FullName, got, want)
		}
	}
}

// field returns the value of a map under a name; the zero Reply if there is none.
func field(m engine.Reply, name string) engine.Reply {
	for i := 0; i < len(m.Elems); i += 2 {
		if m.Elems[i].Str == name {
			return m.Elems[i+1]
		}
	}
	return engine.Reply{}
}

// argumentsOf reads the arguments that COMMAND DOCS describes.
func argumentsOf(doc engine.Reply) []syntax.Argument {
	var args []syntax.Argument
	for _, e := range field(doc, "arguments").Elems {
		flags := field(e, "flags").Elems
		args = append(args, syntax.Argument{
			Name:         field(e, "name").Str,
			Kind:         field(e, "type").Str,
			Token:        field(e, "token").Str,
			Optional:     slices.ContainsFunc(flags, func(f engine.Reply) bool { return f.Str == "optional" }),
			Multiple:     slices.ContainsFunc(flags, func(f engine.Reply) bool { return f.Str == "multiple" }),
			RepeatsToken: slices.ContainsFunc(flags, func(f engine.Reply) bool { return f.Str == "multiple_token" }),
			Args:         argumentsOf(e),
		})
	}
	return args
}

// valueKinds returns the types of the values among the arguments.
func valueKinds(args []syntax.Argument) string {
	var kinds []string
	for _, a := range args {
		switch a.Kind {
		case syntax.KindToken:
		case syntax.KindOneOf, syntax.KindBlock:
			kinds = append(kinds, valueKinds(a.Args))
		default:
			kinds = append(kinds, a.Name+":"+a.Kind)
		}
	}
	return strings.Join(kinds, " ")
}

// Every row has what COMMAND and COMMAND DOCS need, without contradictions.
func TestRowsAreComplete(t *testing.T) {
	t.Parallel()
	for _, r := range engine.AllRows {
		if r.Name != strings.ToLower(r.Name) || r.Summary == "" || r.Group == "" || r.Since == "" || r.Arity == 0 {
			t.Errorf("%s: name, summary, group, since or arity is missing: %+v", r.FullName, *r.Command)
		}
		if (r.Parse == nil) != (len(r.Sub) > 0) && r.FullName != "command" {
			t.Errorf("%s: needs either Parse or subcommands", r.FullName)
		}
		if r.Flags&engine.Write != 0 && r.Flags&engine.ReadOnly != 0 {
			t.Errorf("%s: both write and readonly", r.FullName)
		}
		if r.Items.First > 0 && (r.Scope != engine.ScopeNone || r.Keys.Step < 1 || r.Flags&(engine.Write|engine.ReadOnly) == 0 && r.FullName != "watch") {
			t.Errorf("%s: has keys, but also a scope, or no step, or neither reads nor writes", r.FullName)
		}
		for _, c := range strings.Fields(r.Categories) {
			if !slices.Contains(admin.CategoryOrder, c) {
				t.Errorf("%s: unknown category %s", r.FullName, c)
			}
		}
		if group := admin.Categories(r); r.Parse != nil && r.Group != "server" && r.Group != "cluster" && r.FullName != "pubsub|help" && len(group) < 2 {
			t.Errorf("%s: group %q gives no category", r.FullName, r.Group)
		}
	}
}

func TestCommandDocsArguments(t *testing.T) {
	t.Parallel()
	r := &engine.Row{FullName: "doc.put", Items: engine.OneID, Command: &engine.Command{
		Summary: "Stores", Since: "mayfly 1", Group: "document", Keys: engine.OneID,
		Syntax: "container id json [TTL <-1 | seconds | NULL>] [NX | XX]",
	}}
	want := strings.TrimPrefix(`
1# "summary" => "Stores"
2# "since" => "mayfly 1"
3# "group" => "document"
4# "arguments" =>
   1) 1# "name" => "container"
      2# "type" => "string"
   2) 1# "name" => "id"
      2# "type" => "key"
      3# "key_spec_index" => (integer) 0
   3) 1# "name" => "json"
      2# "type" => "string"
   4) 1# "name" => "-1_seconds_null"
      2# "type" => "oneof"
      3# "token" => "TTL"
      4# "flags" => 1~ optional
      5# "arguments" =>
         1) 1# "name" => "-1"
            2# "type" => "pure-token"
            3# "token" => "-1"
         2) 1# "name" => "seconds"
            2# "type" => "integer"
         3) 1# "name" => "null"
            2# "type" => "pure-token"
            3# "token" => "NULL"
   5) 1# "name" => "nx_xx"
      2# "type" => "oneof"
      3# "flags" => 1~ optional
      4# "arguments" =>
         1) 1# "name" => "nx"
            2# "type" => "pure-token"
            3# "token" => "NX"
         2) 1# "name" => "xx"
            2# "type" => "pure-token"
            3# "token" => "XX"`, "\n")
	if got := notation(admin.CommandDocs(r)); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

// ACL CAT lists the categories and the commands of one, and COMMAND LIST the same commands by category and by
// module.
func TestACLCat(t *testing.T) {
	redis, h := startRealRedis(t).dial(t), newHarness(t)
	for _, call := range [][]string{{"ACL", "CAT", "nix"}, {"ACL", "CAT", "a", "b"}, {"ACL", "CAT", ""}} {
		if got, want := notation(h.do(1, call...)), notation(redis.do(t, call...)); got != want {
			t.Errorf("%q: %s, Redis: %s", call, got, want)
		}
	}
	texts := func(r engine.Reply) (list []string) {
		for _, elem := range r.Elems {
			list = append(list, elem.Str)
		}
		return list
	}
	known := texts(redis.do(t, "ACL", "CAT"))
	for _, category := range texts(h.do(1, "ACL", "CAT")) {
		ours := texts(h.do(1, "ACL", "CAT", strings.ToUpper(category)))
		if len(ours) == 0 && !slices.Contains(known, category) { // of Redis' there are all
			t.Errorf("%s: no commands", category)
		}
		if listed := texts(h.do(1, "COMMAND", "LIST", "FILTERBY", "ACLCAT", category)); !slices.Equal(ours, listed) {
			t.Errorf("%s: ACL CAT lists %q, COMMAND LIST %q", category, ours, listed)
		}
		if !slices.Contains(known, category) {
			continue
		}
		theirs := texts(redis.do(t, "ACL", "CAT", category))
		for _, name := range ours {
			if r := admin.FindByFullName(name); redis.do(t, "COMMAND", "INFO", r.FullName).Elems[0].Kind == engine.KindArray && !slices.Contains(theirs, name) {
				t.Errorf("%s: has %s, Redis' has not", category, name)
			}
		}
	}
	module := texts(h.do(1, "COMMAND", "LIST", "FILTERBY", "MODULE", "ReJSON"))
	if !slices.Contains(module, "json.debug|memory") || slices.Contains(module, "get") || slices.Contains(module, "doc.get") {
		t.Errorf("commands of the module: %q", module)
	}
	if none := h.do(1, "COMMAND", "LIST", "FILTERBY", "MODULE", "search"); len(none.Elems) != 0 {
		t.Errorf("commands of a module that is not there: %s", notation(none))
	}
}
