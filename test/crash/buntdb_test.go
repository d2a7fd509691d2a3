package crash

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"mayfly/keyspace/aof/buntdbtest"
	"mayfly/test/harness"

	"github.com/redis/go-redis/v9"
	"github.com/tidwall/buntdb"
)

// bodies returns the bodies that buntdb finds in a folder, by container and id: "orders/a".
func bodies(t *testing.T, dir string) map[string]string {
	t.Helper()
	db, err := buntdbtest.OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestBuntdbReadsWhatAKillLeaves kills the server under load. buntdb finds in its folder every write that was
// acknowledged, and exactly what the server itself serves when it has started again.
func TestBuntdbReadsWhatAKillLeaves(t *testing.T) {
	const clients, ids = 4, 300
	dir := filepath.Join(t.TempDir(), "data")
	acked := make([][ids]int, clients) // the last write of each id that was acknowledged
	for kill, policy := range []string{"always", "everysec", "no"} {
		p := harness.Start(t, dir, "--appendfsync", policy)
		if err := p.Client().Do(t.Context(), "CONTAINER.SET", "orders", "TTL", "3600").Err(); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for w := range clients {
			wg.Go(func() {
				c := redis.NewClient(&redis.Options{Addr: "127.0.0.1:" + p.Port, MaxRetries: -1, PoolSize: 1, ReadTimeout: harness.Patience})
				defer c.Close()
				for n := kill*1_000_000 + 1; ; n++ {
					id := n % ids
					args := []any{"DOC.PUT", "orders", fmt.Sprintf("doc-%d-%d", w, id), fmt.Sprintf(`{"n": %d}`, n)}
					if id%2 == 1 {
						args = []any{"SET", fmt.Sprintf("key-%d-%d", w, id), fmt.Sprintf("%d\r\n$3\r\n", n)}
					}
					if c.Do(t.Context(), args...).Err() != nil {
						return
					}
					acked[w][id] = n
				}
			})
		}
		time.Sleep(300 * time.Millisecond)
		if kill == 1 {
			if err := p.Client().Save(t.Context()).Err(); err != nil {
				t.Error(err)
			}
			time.Sleep(100 * time.Millisecond)
		}
		p.Signal(syscall.SIGKILL)
		p.Wait()
		wg.Wait()

		found := bodies(t, dir)
		writes := 0
		for w := range clients {
			for id, n := range acked[w] {
				name, format := fmt.Sprintf("orders/doc-%d-%d", w, id), `{"n": %d}`
				if id%2 == 1 {
					name, format = fmt.Sprintf("0/key-%d-%d", w, id), "%d\r\n$3\r\n"
				}
				got := 0
				if _, err := fmt.Sscanf(found[name], format, &got); n > 0 && (err != nil || got < n || found[name] != fmt.Sprintf(format, got)) {
					t.Errorf("%s: %s is %q, acknowledged was %d", policy, name, found[name], n)
				}
				writes = max(writes, n-kill*1_000_000)
			}
		}
		if writes < 10 {
			t.Errorf("%s: %d writes a client test nothing", policy, writes)
		}

		p = harness.Start(t, dir)
		c := p.Client()
		for name, body := range found {
			container, id, _ := strings.Cut(name, "/")
			args := []any{"GET", id}
			if container == "orders" {
				args = []any{"DOC.GET", container, id}
			}
			if got, err := c.Do(t.Context(), args...).Text(); err != nil || got != body {
				t.Errorf("%s: %s is %q to the server (%v), %q to buntdb", policy, name, got, err, body)
			}
		}
		keys, err := c.DBSize(t.Context()).Result()
		documents, err2 := c.Do(t.Context(), "DOC.COUNT", "orders").Int64()
		if err != nil || err2 != nil || keys+documents != int64(len(found)) {
			t.Errorf("%s: the server has %d keys and %d documents (%v, %v), buntdb %d items", policy, keys, documents, err, err2, len(found))
		}
		p.Terminate()
		if stopped := bodies(t, dir); len(stopped) != len(found) {
			t.Errorf("%s: %d items once it has stopped, %d before", policy, len(stopped), len(found))
		}
		if t.Failed() {
			return
		}
	}
}
