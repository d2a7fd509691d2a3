package crash

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"mayfly/keyspace/aof/buntdbtest"
	"mayfly/test/drill"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/buntdb"
)

// bodies returns the bodies that buntdb finds in a folder, by container and id: "orders/a".
func bodies(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := buntdbtest.OpenFolder(dir)
	drill.Check(t, err)
	defer db.Close()
	names, found := make(map[string]string), make(map[string]string)
	body := func(value string) string { return strings.SplitN(value, " ", 7)[6] }
	err = db.View(func(tx *buntdb.Tx) error {
		if err := tx.AscendKeys("container/*", func(key, value string) bool {
			_, name, _ := strings.Cut(body(value), `"name":"`)
			names[strings.TrimPrefix(key, "container/")], _, _ = strings.Cut(name, `"`)
			return true
		}); err != nil {
			return err
		}
		return tx.Ascend("", func(key, value string) bool {
			number, id, _ := strings.Cut(key, ":")
			if name, ok := names[number]; ok {
				found[name+"/"+id] = body(value)
			}
			return true
		})
	})
	drill.Check(t, err)
	return found
}

// TestBuntdbReadsWhatAKillLeaves kills the server under load. buntdb finds in its folder every write that was
// acknowledged, and exactly what the server itself serves when it has started again.
func TestBuntdbReadsWhatAKillLeaves(t *testing.T) {
	drill.Slow(t)
	t.Parallel()
	const clients, ids = 4, 150
	var acked [clients][ids]int // the last write of each id that was acknowledged
	var numbers [clients]int    // of the last write
	found := make(map[string]string)
	k := &killing{t: t, r: drill.Rand(t), dir: dataFolder(t), kills: drill.Pick(0, 2, 50), least: 500, most: 2000}
	k.clients = func(port string, acknowledged func(int)) (list []func()) {
		for w := range clients {
			list = append(list, func() {
				c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + port, MaxRetries: -1, PoolSize: 1, ReadTimeout: harness.Patience})
				defer c.Close()
				for {
					numbers[w]++
					n := numbers[w]
					id := n % ids
					args := []any{"DOC.PUT", "orders", fmt.Sprintf("doc-%d-%d", w, id), fmt.Sprintf(`{"n": %d}`, n)}
					if id%2 == 1 {
						args = []any{"SET", fmt.Sprintf("key-%d-%d", w, id), fmt.Sprintf("%d\r\n$3\r\n", n)}
					}
					if c.Do(t.Context(), args...).Err() != nil {
						return
					}
					acked[w][id] = n
					acknowledged(1)
				}
			})
		}
		return list
	}
	k.dead = func() {
		found = bodies(t, k.dir)
		for w := range clients {
			for id, n := range acked[w] {
				name, format := fmt.Sprintf("orders/doc-%d-%d", w, id), `{"n": %d}`
				if id%2 == 1 {
					name, format = fmt.Sprintf("0/key-%d-%d", w, id), "%d\r\n$3\r\n"
				}
				got := 0
				if _, err := fmt.Sscanf(found[name], format, &got); n > 0 && (err != nil || got < n || found[name] != fmt.Sprintf(format, got)) {
					t.Errorf("%s is %q, acknowledged was %d", name, found[name], n)
				}
			}
		}
	}
	k.check = func(p *harness.Process, kills int) {
		c := p.Client()
		if kills == 0 {
			drill.Check(t, c.Do(t.Context(), "CONTAINER.SET", "orders", "TTL", "3600").Err())
		}
		pipe, replies := c.Pipeline(), make(map[string]*redis.Cmd)
		for name := range found {
			container, id, _ := strings.Cut(name, "/")
			args := []any{"GET", id}
			if container == "orders" {
				args = []any{"DOC.GET", container, id}
			}
			replies[name] = pipe.Do(t.Context(), args...)
		}
		_, _ = pipe.Exec(t.Context()) // each reply is looked at
		for name, body := range found {
			if got, err := replies[name].Text(); err != nil || got != body {
				t.Errorf("%s is %q to the server (%v), %q to buntdb", name, got, err, body)
			}
		}
		keys, err := c.DBSize(t.Context()).Result()
		documents, err2 := c.Do(t.Context(), "DOC.COUNT", "orders").Int64()
		if err != nil || err2 != nil || keys+documents != int64(len(found)) {
			t.Errorf("the server has %d keys and %d documents (%v, %v), buntdb %d items", keys, documents, err, err2, len(found))
		}
		if kills == k.kills {
			p.Terminate()
			if stopped := bodies(t, k.dir); !maps.Equal(stopped, found) {
				t.Errorf("%d items once it has stopped, %d before, or others", len(stopped), len(found))
			}
		}
	}
	k.run()
}
