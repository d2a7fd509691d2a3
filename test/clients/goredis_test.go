package clients

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// goRedis is the go-redis client of one test, over RESP2 or RESP3.
type goRedis struct {
	*redis.Client
	t        *testing.T
	ctx      context.Context
	protocol int
}

// TestGoRedis uses the server as programs in Go do, through the typed calls of go-redis.
func TestGoRedis(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--requirepass", "secret")
	tests := []struct {
		name string
		run  func(*goRedis)
	}{
		{"handshake", (*goRedis).handshake},
		{"calls", (*goRedis).calls},
		{"json", (*goRedis).json},
		{"keys", (*goRedis).keys},
		{"pipelines", (*goRedis).pipelines},
		{"transactions", (*goRedis).transactions},
		{"errors", (*goRedis).errors},
		{"server", (*goRedis).server},
		{"containers", (*goRedis).containers},
		{"documents", (*goRedis).documents},
	}
	for _, protocol := range []int{2, 3} {
		for _, tt := range tests {
			t.Run(fmt.Sprintf("RESP%d/%s", protocol, tt.name), func(t *testing.T) {
				c := redis.NewClient(&redis.Options{
					Addr: "127.0.0.1:" + p.Port, Password: "secret", Protocol: protocol, DB: 9, ClientName: "the-tests", MaxRetries: -1,
					ReadTimeout: harness.Patience,
				})
				defer c.Close()
				drill.Check(t, c.FlushAll(t.Context()).Err())
				tt.run(&goRedis{c, t, t.Context(), protocol})
			})
		}
	}
}

// is checks what a call has returned.
func is[T any](c *goRedis, got interface{ Result() (T, error) }, want T) {
	c.t.Helper()
	v, err := got.Result()
	if err != nil || !reflect.DeepEqual(v, want) {
		c.t.Errorf("%v\n got %#v, %v\nwant %#v", got, v, err, want)
	}
}

// lives checks how long something lives, give or take the time since it was said.
func (c *goRedis) lives(got *redis.DurationCmd, want time.Duration) {
	c.t.Helper()
	if left, err := got.Result(); err != nil || left > want || left < want-harness.Patience {
		c.t.Errorf("%v: %v, %v, want %v", got, left, err, want)
	}
}

// isNil checks that a call has returned nothing.
func (c *goRedis) isNil(got redis.Cmder) {
	c.t.Helper()
	if !errors.Is(got.Err(), redis.Nil) {
		c.t.Errorf("%v: want nothing, got the error %v", got, got.Err())
	}
}

// fails checks that a call has failed on the server, which has said this.
func (c *goRedis) fails(got redis.Cmder, want string) {
	c.t.Helper()
	var said redis.Error
	if err := got.Err(); !errors.As(err, &said) || err.Error() != want {
		c.t.Errorf("%v\n got %v\nwant %s", got, err, want)
	}
}

func (c *goRedis) handshake() {
	me, err := c.ClientInfo(c.ctx).Result()
	drill.Check(c.t, err)
	if me.Name != "the-tests" || me.DB != 9 || me.Resp != c.protocol || me.User != "default" || !strings.HasPrefix(me.LibName, "go-redis") || me.LibVer != redis.Version() {
		c.t.Errorf("the server knows us as %+v", me)
	}
	is(c, c.ClientGetName(c.ctx), "the-tests")
	is(c, c.ClientID(c.ctx), me.ID)
	if list := c.ClientList(c.ctx).Val(); !strings.Contains(list, fmt.Sprintf("id=%d addr=%s ", me.ID, me.Addr)) {
		c.t.Errorf("CLIENT LIST does not show id %d of %s:\n%s", me.ID, me.Addr, list)
	}

	wrong := *c.Options()
	wrong.Password = "wrong"
	other := redis.NewClient(&wrong)
	defer other.Close()
	if err := other.Ping(c.ctx).Err(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
		c.t.Errorf("with a wrong password: %v", err)
	}
}

// calls has a typed call for each kind of reply and of time. Transcripts have all replies.
func (c *goRedis) calls() {
	binary := "\x00\r\n$-1\r\n\xff" + strings.Repeat("é", 5000)
	is(c, c.Set(c.ctx, "k", binary, 0), "OK")
	is(c, c.Get(c.ctx, "k"), binary)
	c.isNil(c.Get(c.ctx, "nobody"))
	is(c, c.Set(c.ctx, "", "", 0), "OK")
	is(c, c.Get(c.ctx, ""), "")
	is(c, c.MSet(c.ctx, "a", 1, "b", "two", "c", 3.5), "OK")
	is(c, c.MGet(c.ctx, "a", "nobody", "b", "c"), []any{"1", nil, "two", "3.5"})
	is(c, c.MSetNX(c.ctx, "new", 1, "a", 2), false)
	is(c, c.IncrBy(c.ctx, "a", 40), 41)
	is(c, c.IncrByFloat(c.ctx, "a", 1e20), 100000000000000000041)
	//lint:ignore SA1019 old programs call it
	is(c, c.GetSet(c.ctx, "b", "three"), "two")

	is(c, c.TTL(c.ctx, "fresh"), -2)
	is(c, c.Expire(c.ctx, "fresh", time.Hour), false)
	c.isNil(c.SetArgs(c.ctx, "fresh", "1", redis.SetArgs{Mode: "XX"}))
	c.isNil(c.SetArgs(c.ctx, "fresh", "1", redis.SetArgs{Get: true}))
	is(c, c.SetArgs(c.ctx, "fresh", "2", redis.SetArgs{Get: true, TTL: time.Hour}), "1")
	c.lives(c.TTL(c.ctx, "fresh"), time.Hour)
	at := time.Now().Add(time.Hour).Truncate(time.Second)
	is(c, c.SetArgs(c.ctx, "fresh", "3", redis.SetArgs{ExpireAt: at}), "OK")
	is(c, c.ExpireTime(c.ctx, "fresh"), time.Duration(at.Unix())*time.Second)
	is(c, c.SetXX(c.ctx, "fresh", "4", 90_500*time.Millisecond), true) // in milliseconds on the wire
	is(c, c.Set(c.ctx, "fresh", "5", redis.KeepTTL), "OK")
	c.lives(c.PTTL(c.ctx, "fresh"), 90_500*time.Millisecond)
	is(c, c.ExpireGT(c.ctx, "fresh", time.Minute), false)
	is(c, c.PExpireAt(c.ctx, "fresh", at), true)
	is(c, c.PExpireTime(c.ctx, "fresh"), time.Duration(at.UnixMilli())*time.Millisecond)
	is(c, c.GetEx(c.ctx, "fresh", 0), "5") // PERSIST
	is(c, c.PTTL(c.ctx, "fresh"), -1)

	// The words of newer servers.
	is(c, c.SetNX(c.ctx, "lock", "4711", time.Minute), true)
	c.isNil(c.SetIFEQ(c.ctx, "lock", "0815", "0815", time.Minute))
	is(c, c.SetIFNEGet(c.ctx, "lock", "4712", "0815", 0), "4711")
	is(c, c.DelExArgs(c.ctx, "lock", redis.DelExArgs{Mode: "IFEQ", MatchValue: "4712"}), 1)
	is(c, c.Set(c.ctx, "text", "Hello world", 0), "OK")
	is(c, c.Digest(c.ctx, "text"), 0xb6acb9d84a38ff74)
	is(c, c.SetIFDEQ(c.ctx, "text", "other", 0xb6acb9d84a38ff74, 0), "OK")
	hour := &redis.ExpirationOption{Mode: redis.EX, Value: 3600}
	is(c, c.MSetEX(c.ctx, redis.MSetEXArgs{Condition: redis.NX, Expiration: hour}, "m", 1, "n", 2), 1)
	limit := redis.IncrEXIntArgs{UBound: 2, HasUBound: true, Expiration: hour, ENX: true}
	is(c, c.IncrEXInt(c.ctx, "rate", limit), redis.IncrEXIntResult{Value: 1, AppliedIncrement: 1})
	is(c, c.IncrEXFloat(c.ctx, "rate", redis.IncrEXFloatArgs{By: 0.25, Saturate: true}), redis.IncrEXFloatResult{Value: 1.25, AppliedIncrement: 0.25})
}

func (c *goRedis) keys() {
	c.isNil(c.RandomKey(c.ctx))
	var all, some []string
	pipe := c.Pipeline()
	for n := range 1000 {
		key := fmt.Sprintf("key:%03d", n)
		pipe.Set(c.ctx, key, n, 0)
		all = append(all, key)
		if strings.HasPrefix(key, "key:7") {
			some = append(some, key)
		}
	}
	if _, err := pipe.Exec(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	is(c, c.DBSize(c.ctx), 1000)
	is(c, c.Type(c.ctx, all[0]), "string")
	is(c, c.Type(c.ctx, "nobody"), "none")
	c.lists("SCAN", c.Scan(c.ctx, 0, "", 0), all)
	c.lists("SCAN MATCH COUNT", c.Scan(c.ctx, 0, "key:7*", 77), some)
	c.lists("SCAN TYPE", c.ScanType(c.ctx, 0, "", 10_000, "string"), all)
	c.lists("SCAN TYPE", c.ScanType(c.ctx, 0, "", 0, "list"), nil)
	keys := c.Keys(c.ctx, "key:7??").Val()
	slices.Sort(keys)
	if !slices.Equal(keys, some) {
		c.t.Errorf("KEYS finds %v, want %v", keys, some)
	}
	if key := c.RandomKey(c.ctx).Val(); !slices.Contains(all, key) {
		c.t.Errorf("RANDOMKEY gives %q", key)
	}
	is(c, c.Del(c.ctx, all[0], all[0], "nobody", all[1]), 2)
	is(c, c.Unlink(c.ctx, all[2]), 1)
	is(c, c.DBSize(c.ctx), 997)
	is(c, c.FlushDB(c.ctx), "OK")
	is(c, c.DBSize(c.ctx), 0)
}

// lists checks what a scan lists, each once.
func (c *goRedis) lists(what string, first *redis.ScanCmd, want []string) {
	c.t.Helper()
	var got []string
	it := first.Iterator()
	for it.Next(c.ctx) {
		got = append(got, it.Val())
	}
	slices.Sort(got)
	if it.Err() != nil || !slices.Equal(got, want) {
		c.t.Errorf("%s lists %d keys, %v, want %d: %q", what, len(got), it.Err(), len(want), got)
	}
}

// pipelines sends many commands at a time; one that fails does not keep the others from it.
func (c *goRedis) pipelines() {
	for _, depth := range []int{1, 2, 100, drill.Pick(0, 2000, 20_000)} {
		pipe := c.Pipeline()
		for n := range depth {
			key := fmt.Sprint("p", n%100)
			pipe.Set(c.ctx, key, n, 0)
			pipe.Get(c.ctx, key)
			pipe.Incr(c.ctx, "q")
		}
		replies, err := pipe.Exec(c.ctx)
		if err != nil || len(replies) != 3*depth {
			c.t.Fatalf("depth %d: %d replies, %v", depth, len(replies), err)
		}
		for n := range depth {
			if got := replies[3*n+1].(*redis.StringCmd).Val(); got != fmt.Sprint(n) {
				c.t.Fatalf("depth %d: command %d reads %q", depth, n, got)
			}
		}
		is(c, c.GetDel(c.ctx, "q"), fmt.Sprint(depth))
	}
	pipe := c.Pipeline()
	set := pipe.Set(c.ctx, "word", "text", 0)
	incr := pipe.Incr(c.ctx, "word")
	nobody := pipe.Get(c.ctx, "nobody")
	get := pipe.Get(c.ctx, "word")
	if _, err := pipe.Exec(c.ctx); err == nil {
		c.t.Error("a pipeline of which one command fails reports nothing")
	}
	is(c, set, "OK")
	c.fails(incr, "ERR value is not an integer or out of range")
	c.isNil(nobody)
	is(c, get, "text")

	large := strings.Repeat("0123456789abcdef", 1<<16)
	pipe = c.Pipeline()
	pipe.Set(c.ctx, "large", large, 0)
	for range 20 {
		get = pipe.Get(c.ctx, "large")
	}
	if _, err := pipe.Exec(c.ctx); err != nil || get.Val() != large {
		c.t.Errorf("twenty times a value of a megabyte: %v", err)
	}
}

// transactions goes through MULTI and WATCH as go-redis puts them to use.
func (c *goRedis) transactions() {
	pipe := c.TxPipeline()
	set := pipe.Set(c.ctx, "a", "1", 0)
	incr := pipe.Incr(c.ctx, "a")
	nobody := pipe.Get(c.ctx, "nobody")
	config := pipe.ConfigGet(c.ctx, "appendfsync")
	if _, err := pipe.Exec(c.ctx); !errors.Is(err, redis.Nil) { // that of nobody
		c.t.Error(err)
	}
	is(c, set, "OK")
	is(c, incr, 2)
	c.isNil(nobody)
	is(c, config, map[string]string{"appendfsync": "everysec"})

	// A command that fails leaves the others; one that is refused leaves none.
	pipe = c.TxPipeline()
	pipe.Set(c.ctx, "a", "text", 0)
	incr = pipe.Incr(c.ctx, "a")
	_, _ = pipe.Exec(c.ctx)
	c.fails(incr, "ERR value is not an integer or out of range")
	is(c, c.Get(c.ctx, "a"), "text")
	pipe = c.TxPipeline()
	pipe.Set(c.ctx, "a", "other", 0)
	pipe.Do(c.ctx, "NO.SUCH")
	if _, err := pipe.Exec(c.ctx); err == nil || !strings.HasPrefix(err.Error(), "EXECABORT") {
		c.t.Errorf("a transaction with an unknown command: %v", err)
	}
	is(c, c.Get(c.ctx, "a"), "text")

	watch := func(meanwhile func()) error {
		return c.Watch(c.ctx, func(tx *redis.Tx) error {
			meanwhile()
			_, err := tx.TxPipelined(c.ctx, func(pipe redis.Pipeliner) error {
				pipe.Set(c.ctx, "a", "watched", 0)
				return nil
			})
			return err
		}, "a")
	}
	if err := watch(func() { is(c, c.Set(c.ctx, "a", "changed", 0), "OK") }); !errors.Is(err, redis.TxFailedErr) {
		c.t.Errorf("a watched key was changed: %v", err)
	}
	is(c, c.Get(c.ctx, "a"), "changed")
	if err := watch(func() {}); err != nil {
		c.t.Errorf("a watched key was left alone: %v", err)
	}
	is(c, c.Get(c.ctx, "a"), "watched")
}

func (c *goRedis) errors() {
	c.fails(c.Do(c.ctx, "NO.SUCH", "a", "b"), "ERR unknown command 'NO.SUCH', with args beginning with: 'a' 'b' ")
	c.fails(c.Do(c.ctx, "GET"), "ERR wrong number of arguments for 'get' command")
	c.fails(c.Do(c.ctx, "SET", "k", "v", "EX", "0"), "ERR invalid expire time in 'set' command")
	c.fails(c.Do(c.ctx, "SELECT", "16"), "ERR DB index is out of range")
	c.fails(c.Do(c.ctx, "DOC.GET", "nowhere", "1"), "ERR unknown container 'nowhere'; create it with CONTAINER.SET nowhere TTL <off|-1|seconds>")
	is(c, c.Ping(c.ctx), "PONG") // the connection is still good
}

func (c *goRedis) server() {
	is(c, c.Echo(c.ctx, "héllo"), "héllo")
	is(c, c.ConfigGet(c.ctx, "appendfsyn?"), map[string]string{"appendfsync": "everysec"})
	is(c, c.ConfigSet(c.ctx, "appendfsync", "always"), "OK")
	is(c, c.ConfigGet(c.ctx, "appendfsync"), map[string]string{"appendfsync": "always"})
	is(c, c.ConfigSet(c.ctx, "appendfsync", "everysec"), "OK")
	info := c.InfoMap(c.ctx).Val()
	if info["Server"]["redis_version"] == "" || info["Server"]["redis_mode"] != "standalone" || info["Keyspace"] != nil && info["Keyspace"]["db9"] != "" {
		c.t.Errorf("INFO of an empty database: %v", info)
	}
	is(c, c.Set(c.ctx, "k", "v", time.Hour), "OK")
	if db := c.InfoMap(c.ctx, "keyspace").Val()["Keyspace"]["db9"]; !strings.HasPrefix(db, "keys=1,expires=1,avg_ttl=") {
		c.t.Errorf("INFO keyspace of a database of one key: %q", db)
	}
	commands, err := c.Command(c.ctx).Result()
	if get := commands["get"]; err != nil || get == nil || get.Arity != 2 || !get.ReadOnly || get.FirstKeyPos != 1 || get.LastKeyPos != 1 || get.StepCount != 1 {
		c.t.Errorf("COMMAND describes GET as %+v, %v", get, err)
	}
	if put := commands["doc.put"]; put == nil || put.Arity != -4 || put.ReadOnly || put.FirstKeyPos != 2 {
		c.t.Errorf("COMMAND describes DOC.PUT as %+v", put)
	}
	var list []string // without subcommands
	for _, name := range c.CommandList(c.ctx, nil).Val() {
		if !strings.Contains(name, "|") {
			list = append(list, name)
		}
	}
	if want := slices.Sorted(maps.Keys(commands)); !slices.Equal(slices.Sorted(slices.Values(list)), want) {
		c.t.Errorf("COMMAND LIST gives %v, COMMAND %v", list, want)
	}
}

// isMap checks a map as Do returns it: in RESP3 a map, in RESP2 a list of keys and values. What
// differs from run to run is left out unless it is wanted.
func (c *goRedis) isMap(got *redis.Cmd, want map[any]any) {
	c.t.Helper()
	v, err := got.Result()
	if c.protocol == 2 {
		list, _ := v.([]any)
		m := make(map[any]any)
		for pair := range slices.Chunk(list, 2) {
			m[pair[0]] = pair[1]
		}
		v = m
	}
	if m, _ := v.(map[any]any); m != nil {
		for _, volatile := range []any{"created", "memory", "ts", "etag", "expiresat", "ttlleft", "number"} {
			if want[volatile] == nil {
				delete(m, volatile)
			}
		}
	}
	if err != nil || !reflect.DeepEqual(v, any(want)) {
		c.t.Errorf("%v\n got %#v, %v\nwant %#v", got.Args(), v, err, want)
	}
}

func (c *goRedis) containers() {
	do := func(args ...any) *redis.Cmd { return c.Do(c.ctx, args...) }
	name := c.t.Name() // has slashes, which a container's name may not
	c.fails(do("CONTAINER.CREATE", name), "ERR invalid container name "+name+": legal are 1 to 255 of letters, digits, _ . : -")
	name = strings.ReplaceAll(name, "/", ":")
	c.isNil(do("CONTAINER.GET", name))
	is(c, do("CONTAINER.CREATE", name, "TTLMODE", "lenient"), any("OK"))
	c.fails(do("CONTAINER.CREATE", name), "ERR container '"+name+"' exists already; change it with CONTAINER.SET")
	c.isMap(do("CONTAINER.GET", name), map[any]any{"name": name, "ttl": "off", "ttlmode": "lenient", "documents": int64(0), "keys": int64(0), "bytes": int64(0), "indexes": int64(0), "indexbytes": int64(0), "deadline": nil, "hold": nil, "log": nil})
	is(c, do("CONTAINER.SET", name, "TTL", 3600), any("OK"))
	is(c, do("DOC.PUT", name, "1", `{"a":1}`), any("OK"))
	c.isMap(do("CONTAINER.GET", name), map[any]any{"name": name, "ttl": "3600", "ttlmode": "lenient", "documents": int64(1), "keys": int64(0), "bytes": int64(8), "indexes": int64(0), "indexbytes": int64(0), "deadline": nil, "hold": nil, "log": nil})
	is(c, do("CONTAINER.LIST", "MATCH", name+"*"), any([]any{name}))
	is(c, do("CONTAINER.DROP", name), any(int64(1)))
	is(c, do("CONTAINER.DROP", name), any(int64(0)))
	c.fails(do("DOC.COUNT", name), "ERR unknown container '"+name+"'; create it with CONTAINER.SET "+name+" TTL <off|-1|seconds>")

	// Plain keys of a container that is selected by its name.
	is(c, do("CONTAINER.SET", "sessions", "TTL", 60), any("OK"))
	conn := c.Conn()
	defer conn.Close()
	is(c, conn.Do(c.ctx, "SELECT", "sessions"), any("OK"))
	is(c, conn.Set(c.ctx, "u", "v", 0), "OK")
	c.lives(conn.TTL(c.ctx, "u"), time.Minute)
	is(c, conn.DBSize(c.ctx), 1)
	is(c, do("CONTAINER.DROP", "sessions"), any(int64(1)))
	if err := conn.Get(c.ctx, "u").Err(); err == nil || errors.Is(err, redis.Nil) {
		c.t.Errorf("GET in a selected container that has been dropped: %v", err)
	}
}

func (c *goRedis) documents() {
	do := func(args ...any) *redis.Cmd { return c.Do(c.ctx, args...) }
	is(c, do("CONTAINER.SET", "orders", "TTL", 3600), any("OK"))
	defer do("CONTAINER.DROP", "orders")
	tea := `{ "item" : "tea ☕", "price": 1.50, "ttl": 60 }`
	is(c, do("DOC.PUT", "orders", "1", tea, "NX"), any("OK"))
	c.isNil(do("DOC.PUT", "orders", "1", "{}", "NX"))
	c.isNil(do("DOC.PUT", "orders", "2", "{}", "XX"))
	is(c, do("DOC.GET", "orders", "1"), any(tea))
	c.isNil(do("DOC.GET", "orders", "2"))
	is(c, do("DOC.MGET", "orders", "2", "1"), any([]any{nil, tea}))
	is(c, do("DOC.TTL", "orders", "2"), any(int64(-2)))
	is(c, do("DOC.EXISTS", "orders", "1", "1", "2"), any(int64(2)))
	c.isMap(do("DOC.META", "orders", "1"), map[any]any{"ttl": int64(60), "source": "document", "size": int64(len(tea))})
	if left, err := do("DOC.TTL", "orders", "1").Int(); err != nil || left < 30 || left > 60 {
		c.t.Errorf("DOC.TTL of a minute: %d, %v", left, err)
	}
	is(c, do("DOC.SETTTL", "orders", "1", "null"), any(int64(1)))
	if left, err := do("DOC.TTL", "orders", "1").Int(); err != nil || left < 3570 || left > 3600 {
		c.t.Errorf("DOC.TTL of an hour: %d, %v", left, err)
	}

	var meta struct {
		Item string
		Etag string `json:"_etag"`
		TS   int64  `json:"_ts"`
	}
	text, err := do("DOC.GET", "orders", "1", "WITHMETA").Text()
	if err = errors.Join(err, json.Unmarshal([]byte(text), &meta)); err != nil || meta.Item != "tea ☕" || time.Since(time.Unix(meta.TS, 0)) > time.Minute {
		c.t.Errorf("WITHMETA gives %s, %v", text, err)
	}
	is(c, do("DOC.PUT", "orders", "1", `{"v":2}`, "IFMATCH", meta.Etag), any("OK"))
	c.isNil(do("DOC.PUT", "orders", "1", `{"v":3}`, "IFMATCH", meta.Etag))
	c.isNil(c.Get(c.ctx, "1")) // another container

	pipe := c.Pipeline()
	want := make(map[string]string)
	for n := range 100 {
		id, doc := fmt.Sprint("id-", n), fmt.Sprintf(`{"n":%d}`, n)
		pipe.Do(c.ctx, "DOC.PUT", "orders", id, doc)
		want[id] = doc
	}
	if _, err := pipe.Exec(c.ctx); err != nil {
		c.t.Fatal(err)
	}
	is(c, do("DOC.COUNT", "orders"), any(int64(101)))
	got := make(map[string]string)
	for cursor := "0"; ; {
		page, err := do("DOC.SCAN", "orders", cursor, "MATCH", "id-*", "COUNT", 30, "WITHDOCS").Slice()
		drill.Check(c.t, err)
		for pair := range slices.Chunk(page[1].([]any), 2) {
			got[pair[0].(string)] = pair[1].(string)
		}
		if cursor = page[0].(string); cursor == "0" {
			break
		}
	}
	if !maps.Equal(got, want) {
		c.t.Errorf("DOC.SCAN gives %v, want %v", got, want)
	}
	is(c, do("DOC.DEL", "orders", "id-1", "id-2", "nobody"), any(int64(2)))
	is(c, do("DOC.TOUCH", "orders", "id-2", "id-3"), any(int64(1)))

	// The JSON of a document is there for plain reads in its container, but not for plain writes.
	conn := c.Conn()
	defer conn.Close()
	is(c, conn.Do(c.ctx, "SELECT", "orders"), any("OK"))
	is(c, conn.Get(c.ctx, "id-3"), `{"n":3}`)
	c.fails(conn.Incr(c.ctx, "id-3"), "WRONGTYPE Operation against a key holding the wrong kind of value")
}
