package clients

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
)

// TestGoRedisPubSub subscribes as programs in Go do.
func TestGoRedisPubSub(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"), "--notify-keyspace-events", "KEA")
	for _, protocol := range []int{2, 3} {
		t.Run(fmt.Sprintf("RESP%d", protocol), func(t *testing.T) {
			ctx := t.Context()
			c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, Protocol: protocol, MaxRetries: -1, ReadTimeout: harness.Patience})
			defer c.Close()
			sub := c.Subscribe(ctx, "news", "sport")
			defer sub.Close()
			expect := func(want string) {
				t.Helper()
				got, err := sub.ReceiveTimeout(ctx, harness.Patience)
				if err != nil || fmt.Sprint(got) != want {
					t.Fatalf("got %v (%v), want %s", got, err, want)
				}
			}
			expect("subscribe: news")
			expect("subscribe: sport")
			drill.Check(t, sub.PSubscribe(ctx, "__keyspace@0__:item:*", "n*"))
			expect("psubscribe: __keyspace@0__:item:*")
			expect("psubscribe: n*")
			if n, err := c.Publish(ctx, "news", "hello").Result(); n != 2 || err != nil {
				t.Errorf("received by %d (%v)", n, err)
			}
			expect("Message<news: hello>")
			expect("Message<news: hello>") // by the pattern
			drill.Check(t, sub.Ping(ctx, "are you there"))
			expect("Pong<are you there>")
			drill.Check(t, sub.Unsubscribe(ctx, "sport"))
			expect("unsubscribe: sport")

			// What happens to an item, its death last.
			c.Set(ctx, "item:1", "v", 0)
			c.Append(ctx, "item:1", "w")
			c.PExpire(ctx, "item:1", 20*time.Millisecond)
			for _, event := range []string{"set", "append", "expire", "expired"} {
				expect("Message<__keyspace@0__:item:1: " + event + ">")
			}
			counts, err := c.PubSubNumSub(ctx, "news", "none").Result()
			if err != nil || counts["news"] != 1 || counts["none"] != 0 {
				t.Errorf("NUMSUB: %v (%v)", counts, err)
			}
			if n, err := c.PubSubNumPat(ctx).Result(); n != 2 || err != nil {
				t.Errorf("NUMPAT: %d (%v)", n, err)
			}

			shard := c.SSubscribe(ctx, "a shard")
			defer shard.Close()
			if got, err := shard.Receive(ctx); err != nil || fmt.Sprint(got) != "ssubscribe: a shard" {
				t.Errorf("got %v (%v)", got, err)
			}
			if n, err := c.SPublish(ctx, "a shard", "x").Result(); n != 1 || err != nil {
				t.Errorf("received by %d (%v)", n, err)
			}
			if got, err := shard.ReceiveMessage(ctx); err != nil || got.String() != "Message<a shard: x>" {
				t.Errorf("got %v (%v)", got, err)
			}

			// Nothing is left of subscribers that have gone.
			_, _ = shard.Close(), sub.Close()
			harness.WaitFor(t, "the server to forget the subscribers", func() bool {
				n, err1 := c.PubSubNumPat(ctx).Result()
				channels, err2 := c.PubSubChannels(ctx, "*").Result()
				shards, err3 := c.PubSubShardChannels(ctx, "*").Result()
				drill.Check(t, err1, err2, err3)
				return n == 0 && len(channels) == 0 && len(shards) == 0
			})
		})
	}
}

// TestRedisCLISubscribe watches documents die in redis-cli.
func TestRedisCLISubscribe(t *testing.T) {
	harness.Parallel(t)
	p := harness.Start(t, filepath.Join(t.TempDir(), "data"))
	if got := p.CLI("CONFIG", "SET", "notify-keyspace-events", "Exd"); got != "OK" {
		t.Fatal(got)
	}
	lines := linesOf(p, "PSUBSCRIBE", "__keyevent@orders__:*")
	expectLines(t, lines, "psubscribe", `__keyevent@orders__:\*`, "1")
	p.CLI("CONTAINER.SET", "orders", "TTL", "1")
	p.CLI("DOC.PUT", "orders", "1", `{"item":"tea"}`)
	for _, event := range []string{"doc.put", "expired"} {
		expectLines(t, lines, "pmessage", `__keyevent@orders__:\*`, "__keyevent@orders__:"+event, "1")
	}
}
