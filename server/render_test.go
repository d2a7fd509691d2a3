package server

import (
	"reflect"
	"strconv"
	"testing"

	"mayfly/commands/engine"
	"mayfly/test/drill"

	"github.com/redis/go-redis/v9"
)

// A client library understands what the server renders.
func TestRenderForGoRedis(t *testing.T) {
	t.Parallel()
	e := newFakeEngine()
	e.commands = map[string]func(*engine.Session, []string) engine.Reply{
		"HELLO": func(s *engine.Session, args []string) engine.Reply {
			s.Proto, _ = strconv.Atoi(args[1])
			return engine.Map(engine.Bulk("proto"), engine.Integer(int64(s.Proto)))
		},
		"KINDS": func(*engine.Session, []string) engine.Reply {
			return engine.Array(engine.OK, engine.Integer(1), engine.Null, engine.Double(1.5),
				engine.Reply{Kind: engine.KindBool, Int: 1}, engine.Set(engine.Bulk("a")),
				engine.Map(engine.Bulk("k"), engine.Bulk("v")), engine.Verbatim("text"))
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
		drill.Report(t, c.Close())
	}
}
