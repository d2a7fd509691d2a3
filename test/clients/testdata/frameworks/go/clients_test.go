package frameworks

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/cache/v9"
	"github.com/redis/rueidis"
)

// album is what is cached.
type album struct {
	Title string
	Year  int
}

func TestGoRedisCache(t *testing.T) {
	ctx := t.Context()
	albums := cache.New(&cache.Options{Redis: connect(t)})
	var got album
	if err := albums.Get(ctx, "album:1", &got); !errors.Is(err, cache.ErrCacheMiss) {
		t.Fatalf("a miss: %v", err)
	}
	want := album{"Low", 1977}
	if err := albums.Set(&cache.Item{Ctx: ctx, Key: "album:1", Value: want, TTL: time.Hour}); err != nil {
		t.Fatal(err)
	}
	if err := albums.Get(ctx, "album:1", &got); err != nil || got != want {
		t.Errorf("a hit: %+v, %v", got, err)
	}
	if err := albums.Delete(ctx, "album:1"); err != nil || albums.Exists(ctx, "album:1") {
		t.Errorf("deleted: %v", err)
	}
	calls := 0
	once := func() album {
		t.Helper()
		var got album
		if err := albums.Once(&cache.Item{Ctx: ctx, Key: "album:2", Value: &got, TTL: time.Second, Do: func(*cache.Item) (any, error) {
			calls++
			return album{"Heroes", calls}, nil
		}}); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if first, second := once(), once(); first.Year != 1 || second.Year != 1 {
		t.Errorf("once: %+v, %+v", first, second)
	}
	until(t, "the item expires", func() bool { return once().Year == 2 })
}

// TestRueidis uses RESP3, pipelines, transactions, scripts, JSON, messages and the client-side cache.
func TestRueidis(t *testing.T) {
	ctx := t.Context()
	options := rueidis.ClientOption{InitAddress: []string{address(t)}}
	client := must[rueidis.Client](t)(rueidis.NewClient(options))
	defer client.Close()
	if err := client.Do(ctx, client.B().Set().Key("rueidis:k").Value("v").Ex(time.Minute).Build()).Error(); err != nil {
		t.Fatal(err)
	}
	if got := must[string](t)(client.Do(ctx, client.B().Get().Key("rueidis:k").Build()).ToString()); got != "v" {
		t.Errorf("got %q", got)
	}
	if err := client.Do(ctx, client.B().Get().Key("rueidis:none").Build()).Error(); !rueidis.IsRedisNil(err) {
		t.Errorf("a miss: %v", err)
	}
	if ttl := must[int64](t)(client.Do(ctx, client.B().Ttl().Key("rueidis:k").Build()).AsInt64()); ttl < 30 || ttl > 60 {
		t.Errorf("TTL %d", ttl)
	}
	var commands rueidis.Commands
	for i := range 1000 {
		commands = append(commands, client.B().Set().Key(fmt.Sprint("rueidis:", i)).Value(fmt.Sprint(i)).Px(time.Minute).Build(), client.B().Get().Key(fmt.Sprint("rueidis:", i)).Build())
	}
	for i, result := range client.DoMulti(ctx, commands...) {
		if got, err := result.ToString(); err != nil || i%2 == 1 && got != fmt.Sprint(i/2) {
			t.Fatalf("command %d: %q, %v", i, got, err)
		}
	}
	err := client.Dedicated(func(c rueidis.DedicatedClient) error {
		c.Do(ctx, c.B().Watch().Key("rueidis:n").Build())
		replies := c.DoMulti(ctx, c.B().Multi().Build(), c.B().Incr().Key("rueidis:n").Build(), c.B().Incr().Key("rueidis:n").Build(), c.B().Exec().Build())
		got, err := replies[3].AsIntSlice()
		if err == nil && (len(got) != 2 || got[1] != 2) {
			err = fmt.Errorf("EXEC: %v", got)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	script := rueidis.NewLuaScript(`return {KEYS[1], ARGV[1], tostring(redis.call("INCR", KEYS[2]))}`)
	if got := must[[]string](t)(script.Exec(ctx, client, []string{"a", "rueidis:n"}, []string{"x"}).AsStrSlice()); fmt.Sprint(got) != "[a x 3]" {
		t.Errorf("script: %v", got)
	}
	if err := client.Do(ctx, client.B().JsonSet().Key("rueidis:j").Path("$").Value(`{"n":1}`).Build()).Error(); err != nil {
		t.Error(err)
	}
	if err := client.Do(ctx, client.B().JsonNumincrby().Key("rueidis:j").Path("$.n").Value(2).Build()).Error(); err != nil {
		t.Error(err)
	}
	if got := must[string](t)(client.Do(ctx, client.B().JsonGet().Key("rueidis:j").Path("$.n").Build()).ToString()); got != "[3]" {
		t.Errorf("JSON.GET: %q", got)
	}

	messages, ended := make(chan rueidis.PubSubMessage, 10), make(chan error, 1)
	subscriber := must[rueidis.Client](t)(rueidis.NewClient(options))
	go func() {
		ended <- subscriber.Receive(ctx, subscriber.B().Subscribe().Channel("rueidis").Build(), func(m rueidis.PubSubMessage) { messages <- m })
	}()
	until(t, "there is a subscriber", func() bool {
		return must[int64](t)(client.Do(ctx, client.B().Publish().Channel("rueidis").Message("hello").Build()).AsInt64()) == 1
	})
	if m := <-messages; m.Channel != "rueidis" || m.Message != "hello" {
		t.Errorf("message %+v", m)
	}
	subscriber.Close()
	if err := <-ended; !errors.Is(err, rueidis.ErrClosing) {
		t.Errorf("Receive ended with %v", err)
	}

	rueidisCache(t, client)
}

// rueidisCache reads through the cache of rueidis: a second read does not ask the server, until another
// client has changed what was read, or it is dead.
func rueidisCache(t *testing.T, client rueidis.Client) {
	ctx := t.Context()
	other := must[rueidis.Client](t)(rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{address(t)}, DisableCache: true}))
	defer other.Close()
	command := func(words ...string) {
		t.Helper()
		if err := other.Do(ctx, other.B().Arbitrary(words...).Build()).Error(); err != nil {
			t.Fatal(words, err)
		}
	}
	key := func() rueidis.RedisResult {
		return client.DoCache(ctx, client.B().Get().Key("rueidis:cached").Cache(), time.Hour)
	}
	// rueidis takes the first argument of any command for the key: here that is the container.
	document := func() rueidis.RedisResult {
		return client.DoCache(ctx, rueidis.Cacheable(client.B().Arbitrary("DOC.GET").Keys("rueidis").Args("1").ReadOnly()), time.Hour)
	}
	for name, read := range map[string]func() rueidis.RedisResult{"GET": key, "DOC.GET": document} {
		command("SET", "rueidis:cached", "1")
		command("DEL", "rueidis:cached")
		other.Do(ctx, other.B().Arbitrary("CONTAINER.CREATE", "rueidis", "TTL", "-1").Build()) // it may be there
		write := func(n string, end ...string) {
			if name == "GET" {
				command(append([]string{"SET", "rueidis:cached", n}, end...)...)
				return
			}
			command("DOC.PUT", "rueidis", "1", `{"n":`+n+`}`)
		}
		has := func(n string) bool {
			got, err := read().ToString()
			return err == nil && (got == n || strings.HasPrefix(got, `{"n":`+n))
		}
		write("1")
		until(t, name+": the first read", func() bool { return has("1") })
		until(t, name+": a hit", func() bool { r := read(); return r.IsCacheHit() })
		write("2")
		until(t, name+": a change is seen", func() bool { return has("2") })
		if name == "GET" {
			write("3", "PX", "50")
			until(t, name+": the death is seen", func() bool { return rueidis.IsRedisNil(read().Error()) })
			continue
		}
		command("DOC.PUT", "rueidis", "1", `{"n":3,"ttl":1}`)
		until(t, name+": the death is seen", func() bool { return rueidis.IsRedisNil(read().Error()) })
	}
}
