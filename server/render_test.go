package server

import (
	"reflect"
	"strconv"
	"testing"

	"mayfly/commands"

	"github.com/redis/go-redis/v9"
)

// A client library understands what the server renders.
func TestRenderForGoRedis(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.commands = map[string]func(*commands.Session, []string) commands.Reply{
		"HELLO": func(s *commands.Session, args []string) commands.Reply {
			s.Proto, _ = strconv.Atoi(args[1])
			return commands.Map(commands.Bulk("proto"), commands.Integer(int64(s.Proto)))
		},
		"KINDS": func(*commands.Session, []string) commands.Reply {
			return commands.Array(commands.OK, commands.Integer(1), commands.Null, commands.Double(1.5),
				commands.Reply{Kind: commands.KindBool, Int: 1}, commands.Set(commands.Bulk("a")),
				commands.Map(commands.Bulk("k"), commands.Bulk("v")), commands.Verbatim("text"))
		},
	}
	address := newTestServer(t).run(t, e, nil)
	for proto, want := range map[int][]any{
		2: {"OK", int64(1), nil, "1.5", int64(1), []any{"a"}, []any{"k", "v"}, "text"},
		3: {"OK", int64(1), nil, 1.5, true, []any{"a"}, map[any]any{"k": "v"}, "text"},
	} {
		c := redis.NewClient(&redis.Options{Addr: address, Protocol: proto, DisableIdentity: true})
		got, err := c.Do(t.Context(), "KINDS").Result()
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("RESP%d: got %#v, %v", proto, got, err)
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
