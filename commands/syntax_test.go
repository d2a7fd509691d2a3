package commands

import (
	"reflect"
	"strings"
	"testing"
)

func TestParseSyntax(t *testing.T) {
	t.Parallel()
	token := func(s string) argument {
		return argument{name: strings.ToLower(s), kind: kindToken, token: s}
	}
	value := func(name string) argument { return argument{name: name, kind: kindString} }
	optional := func(a argument) argument { a.optional = true; return a }
	multiple := func(a argument) argument { a.multiple = true; return a }
	with := func(token string, a argument) argument { a.token = token; return a }
	block := func(name string, args ...argument) argument {
		return argument{name: name, kind: kindBlock, args: args}
	}
	oneof := func(name string, args ...argument) argument {
		return argument{name: name, kind: kindOneOf, args: args}
	}
	seconds := argument{name: "seconds", kind: "integer"}
	milliseconds := argument{name: "milliseconds", kind: "integer"}
	id := argument{name: "client-id", kind: "integer"}
	prefix := multiple(with("PREFIX", value("prefix")))
	prefix.repeatsToken = true

	for _, c := range []struct {
		syntax string
		want   []argument
	}{
		{"", nil},
		{"key value", []argument{value("key"), value("value")}},
		{"[message]", []argument{optional(value("message"))}},
		{"key [key ...]", []argument{multiple(value("key"))}},
		{"[section ...]", []argument{multiple(optional(value("section")))}},
		{"[section [section ...]]", []argument{optional(multiple(value("section")))}},
		{"key value [key value ...]", []argument{multiple(block("key_value", value("key"), value("value")))}},
		{"op path [value] [op path [value] ...]", []argument{
			multiple(block("op_path_value", value("op"), value("path"), optional(value("value"))))}},
		{"key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]", []argument{
			value("key"), value("value"),
			optional(oneof("nx_xx", token("NX"), token("XX"))),
			optional(token("GET")),
			optional(oneof("seconds_milliseconds_keepttl", with("EX", seconds), with("PX", milliseconds), token("KEEPTTL"))),
		}},
		{"name TTL <OFF | -1 | seconds> [TTLMODE <STRICT | LENIENT>]", []argument{
			value("name"),
			with("TTL", oneof("off_-1_seconds", token("OFF"), token("-1"), seconds)),
			optional(with("TTLMODE", oneof("strict_lenient", token("STRICT"), token("LENIENT")))),
		}},
		{"[TYPE <NORMAL | PUBSUB>] [ID client-id [client-id ...]]", []argument{
			optional(with("TYPE", oneof("normal_pubsub", token("NORMAL"), token("PUBSUB")))),
			optional(with("ID", multiple(id))),
		}},
		{"name cursor", []argument{value("name"), value("cursor")}},
		{"container cursor", []argument{value("container"), {name: "cursor", kind: "integer"}}},
		{"query [COUNT count] [CURSOR cursor]", []argument{
			value("query"),
			optional(with("COUNT", argument{name: "count", kind: "integer"})),
			optional(with("CURSOR", value("cursor"))),
		}},
		{"[protover [AUTH username password] [SETNAME clientname]]", []argument{
			optional(block("protover_username_password_clientname",
				argument{name: "protover", kind: "integer"},
				optional(with("AUTH", block("username_password", value("username"), value("password")))),
				optional(with("SETNAME", value("clientname"))))),
		}},
		{"PREFIX prefix [PREFIX prefix ...]", []argument{prefix}},
	} {
		got, err := parseSyntax(c.syntax)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.syntax, got, err, c.want)
		}
	}
}

func TestParseSyntaxRefuses(t *testing.T) {
	t.Parallel()
	for _, syntax := range []string{"[", "]", "key [key", "<a | b", "a | | b", "[]", "<>", "a >", "a ...", "[...]", "[a ... b]", "<a ...>", "|", "a |"} {
		if args, err := parseSyntax(syntax); err == nil {
			t.Errorf("%q was taken as %+v", syntax, args)
		}
	}
}

// Writing the parsed syntax of a row again gives the same text.
func TestSyntaxOfRows(t *testing.T) {
	t.Parallel()
	var check func([]*row)
	check = func(list []*row) {
		for _, r := range list {
			args, err := parseSyntax(r.Syntax)
			if err != nil {
				t.Errorf("%s: %v", r.full, err)
			} else if got := writeSyntax(args, " "); got != r.Syntax {
				t.Errorf("%s: the syntax\n%s\nreads as\n%s", r.full, r.Syntax, got)
			}
			check(r.sorted)
		}
	}
	check(tableSorted)
}

func writeSyntax(args []argument, between string) string {
	var out []string
	for _, a := range args {
		text := a.name
		switch a.kind {
		case kindToken:
			text = a.token
		case kindOneOf:
			if text = writeSyntax(a.args, " | "); !a.optional || a.token != "" {
				text = "<" + text + ">"
			}
		case kindBlock:
			text = writeSyntax(a.args, " ")
		}
		if a.token != "" && a.kind != kindToken && !a.repeatsToken {
			text, a.token = a.token+" "+withRepeats(text, a), ""
		} else {
			if a.repeatsToken {
				text = a.token + " " + text
			}
			text = withRepeats(text, a)
		}
		if a.optional {
			text = "[" + text + "]"
		}
		out = append(out, text)
	}
	return strings.Join(out, between)
}

func withRepeats(text string, a argument) string {
	if a.multiple {
		return text + " [" + text + " ...]"
	}
	return text
}
