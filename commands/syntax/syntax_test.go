package syntax

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	token := func(s string) Argument {
		return Argument{Name: strings.ToLower(s), Kind: KindToken, Token: s}
	}
	value := func(name string) Argument { return Argument{Name: name, Kind: kindString} }
	optional := func(a Argument) Argument { a.Optional = true; return a }
	multiple := func(a Argument) Argument { a.Multiple = true; return a }
	with := func(token string, a Argument) Argument { a.Token = token; return a }
	block := func(name string, args ...Argument) Argument {
		return Argument{Name: name, Kind: KindBlock, Args: args}
	}
	oneof := func(name string, args ...Argument) Argument {
		return Argument{Name: name, Kind: KindOneOf, Args: args}
	}
	seconds := Argument{Name: "seconds", Kind: "integer"}
	milliseconds := Argument{Name: "milliseconds", Kind: "integer"}
	id := Argument{Name: "client-id", Kind: "integer"}
	prefix := multiple(with("PREFIX", value("prefix")))
	prefix.RepeatsToken = true

	for _, c := range []struct {
		syntax string
		want   []Argument
	}{
		{"", nil},
		{"key value", []Argument{value("key"), value("value")}},
		{"[message]", []Argument{optional(value("message"))}},
		{"key [key ...]", []Argument{multiple(value("key"))}},
		{"[section ...]", []Argument{multiple(optional(value("section")))}},
		{"[section [section ...]]", []Argument{optional(multiple(value("section")))}},
		{"key value [key value ...]", []Argument{multiple(block("key_value", value("key"), value("value")))}},
		{"op path [value] [op path [value] ...]", []Argument{
			multiple(block("op_path_value", value("op"), value("path"), optional(value("value"))))}},
		{"key value [NX | XX] [GET] [EX seconds | PX milliseconds | KEEPTTL]", []Argument{
			value("key"), value("value"),
			optional(oneof("nx_xx", token("NX"), token("XX"))),
			optional(token("GET")),
			optional(oneof("seconds_milliseconds_keepttl", with("EX", seconds), with("PX", milliseconds), token("KEEPTTL"))),
		}},
		{"name TTL <OFF | -1 | seconds> [TTLMODE <STRICT | LENIENT>]", []Argument{
			value("name"),
			with("TTL", oneof("off_-1_seconds", token("OFF"), token("-1"), seconds)),
			optional(with("TTLMODE", oneof("strict_lenient", token("STRICT"), token("LENIENT")))),
		}},
		{"[TYPE <NORMAL | PUBSUB>] [ID client-id [client-id ...]]", []Argument{
			optional(with("TYPE", oneof("normal_pubsub", token("NORMAL"), token("PUBSUB")))),
			optional(with("ID", multiple(id))),
		}},
		{"name cursor", []Argument{value("name"), value("cursor")}},
		{"container cursor", []Argument{value("container"), {Name: "cursor", Kind: "integer"}}},
		{"query [COUNT count] [CURSOR cursor]", []Argument{
			value("query"),
			optional(with("COUNT", Argument{Name: "count", Kind: "integer"})),
			optional(with("CURSOR", value("cursor"))),
		}},
		{"[protover [AUTH username password] [SETNAME clientname]]", []Argument{
			optional(block("protover_username_password_clientname",
				Argument{Name: "protover", Kind: "integer"},
				optional(with("AUTH", block("username_password", value("username"), value("password")))),
				optional(with("SETNAME", value("clientname"))))),
		}},
		{"PREFIX prefix [PREFIX prefix ...]", []Argument{prefix}},
	} {
		got, err := Parse(c.syntax)
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s:\n got %+v, %v\nwant %+v", c.syntax, got, err, c.want)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for _, syntax := range []string{"[", "]", "key [key", "<a | b", "a | | b", "[]", "<>", "a >", "a ...", "[...]", "[a ... b]", "<a ...>", "|", "a |"} {
		if args, err := Parse(syntax); err == nil {
			t.Errorf("%q was taken as %+v", syntax, args)
		}
	}
}
