package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/server"
	"mayfly/server/config"
	"mayfly/test/drill"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// TestStress lets many clients do everything at once and checks what must hold between them. Run with -race
// it looks for data races in the whole server.
func TestStress(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	dir := filepath.Join(t.TempDir(), "data")
	address, stop := startReal(t, dir)
	s := &stress{t: t, addr: address}
	s.prepare()
	var wg sync.WaitGroup
	for n := range 10 {
		c := redis.NewClient(&redis.Options{Addr: s.addr, Protocol: 2 + n%2, MaxRetries: -1, ReadTimeout: drill.Patience})
		defer c.Close()
		w := &stressClient{stress: s, c: c, r: rand.New(rand.NewPCG(seed, uint64(n)))}
		wg.Go(func() {
			for range drill.Pick(30, 100, 3000) { // each client
				w.turn()
			}
		})
	}
	wg.Wait()
	before := s.finish()
	stop()

	s.addr, stop = startReal(t, dir)
	defer stop()
	if after := s.finish(); !maps.Equal(before, after) {
		t.Errorf("after a restart\n got %v\nwant %v", after, before)
	}
}

// startReal starts a server with a keyspace and all commands. It returns its address and what stops it.
func startReal(t *testing.T, dir string) (address string, stop func()) {
	t.Helper()
	options, err := config.Load([]string{"--port", "auto", "--bind", "127.0.0.1", "--dir", dir})
	drill.Check(t, err)
	srv := server.New(options, zerolog.Nop())
	drill.Check(t, srv.Listen())
	ks, err := keyspace.Open(keyspace.Options{Dir: dir, ExpireEffort: 10})
	drill.Check(t, err)
	srv.Start(engine.NewEngine(ks, srv, zerolog.Nop()))
	return strings.TrimPrefix(srv.Addresses()[0], "tcp "), func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), drill.Patience)
		defer cancel()
		drill.Report(t, srv.Stop(ctx), ks.Check(), ks.Close())
	}
}

// stress is what the clients know of the server together.
type stress struct {
	t    *testing.T
	addr string

	incremented atomic.Int64 // times the key counter has been incremented
	matched     atomic.Int64 // times the document matched has been, by optimistic concurrency
	holders     atomic.Int64 // of the key lock
}

const stressResidents = 200 // keys that are there throughout

func (s *stress) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, ReadTimeout: drill.Patience})
}

func (s *stress) prepare() {
	c := s.client()
	defer c.Close()
	ctx := s.t.Context()
	pipe := c.Pipeline()
	for n := range stressResidents {
		pipe.Set(ctx, fmt.Sprint("resident-", n), n, 0)
	}
	pipe.Do(ctx, "CONTAINER.CREATE", "docs", "TTL", -1)
	pipe.Do(ctx, "DOC.PUT", "docs", "matched", `{"n":0}`)
	if _, err := pipe.Exec(ctx); err != nil {
		s.t.Fatal(err)
	}
}

// finish checks the sums when nobody writes any more, and gives what is to outlive a restart.
func (s *stress) finish() map[string]string {
	s.t.Helper()
	c := s.client()
	defer c.Close()
	ctx := s.t.Context()
	drill.Await(s.t, "the end of the dying keys", func() bool { return len(c.Keys(ctx, "dying-*").Val()) == 0 })
	counter, err := c.Get(ctx, "counter").Int64()
	if err != nil || counter != s.incremented.Load() {
		s.t.Errorf("the counter stands at %d (%v) after %d increments", counter, err, s.incremented.Load())
	}
	doc, err := c.Do(ctx, "DOC.GET", "docs", "matched").Text()
	if want := fmt.Sprintf(`{"n":%d}`, s.matched.Load()); err != nil || doc != want {
		s.t.Errorf("the document is %s (%v), want %s", doc, err, want)
	}
	left := map[string]string{"matched": doc}
	keys := c.Keys(ctx, "*").Val()
	for i, value := range c.MGet(ctx, keys...).Val() {
		left[keys[i]] = fmt.Sprint(value)
	}
	if n := c.DBSize(ctx).Val(); n != int64(len(keys)) {
		s.t.Errorf("DBSIZE is %d, KEYS gives %d", n, len(keys))
	}
	return left
}

// stressClient is one of the clients.
type stressClient struct {
	*stress
	c *redis.Client
	r *rand.Rand
}

func (w *stressClient) turn() {
	ctx := w.t.Context()
	switch w.r.IntN(14) {
	case 0, 1:
		w.pair(ctx)
	case 2, 3:
		w.increment(ctx)
	case 4, 5:
		w.match(ctx)
	case 6:
		w.lock(ctx)
	case 7:
		w.scan(ctx)
	case 8:
		w.dying(ctx)
	case 9:
		w.large(ctx)
	case 10:
		w.containers(ctx)
	case 11:
		w.leave()
	default:
		w.lookAround(ctx)
	}
}

func (w *stressClient) must(err error) {
	if err != nil && !errors.Is(err, redis.Nil) {
		w.t.Error(err)
	}
}

// pair: keys that are written together are always seen alike.
func (w *stressClient) pair(ctx context.Context) {
	n := w.r.IntN(5)
	a, b, c := fmt.Sprint("a-", n), fmt.Sprint("b-", n), fmt.Sprint("c-", n)
	switch w.r.IntN(5) {
	case 0:
		w.must(w.c.Del(ctx, c, a, b).Err())
	case 1, 2:
		value := w.r.Uint64()
		w.must(w.c.MSet(ctx, a, value, b, value, c, value).Err())
	default:
		v, err := w.c.MGet(ctx, b, c, a).Result()
		w.must(err)
		if err == nil && (v[0] != v[1] || v[1] != v[2]) {
			w.t.Errorf("what was written together is %v", v)
		}
	}
}

func (w *stressClient) increment(ctx context.Context) {
	pipe := w.c.Pipeline()
	depth := 1 + w.r.IntN(20)
	var replies []*redis.IntCmd
	for range depth {
		replies = append(replies, pipe.Incr(ctx, "counter"))
	}
	_, err := pipe.Exec(ctx)
	w.must(err)
	w.incremented.Add(int64(depth))
	for i := 1; i < depth; i++ {
		if replies[i].Val() <= replies[i-1].Val() {
			w.t.Errorf("the counter went from %d to %d", replies[i-1].Val(), replies[i].Val())
		}
	}
}

// match increments a number in a document unless somebody else has changed it meanwhile.
func (w *stressClient) match(ctx context.Context) {
	text, err := w.c.Do(ctx, "DOC.GET", "docs", "matched", "WITHMETA").Text()
	w.must(err)
	var doc struct {
		N    int64
		Etag string `json:"_etag"`
	}
	w.must(json.Unmarshal([]byte(text), &doc))
	err = w.c.Do(ctx, "DOC.PUT", "docs", "matched", fmt.Sprintf(`{"n":%d}`, doc.N+1), "IFMATCH", doc.Etag).Err()
	w.must(err)
	if err == nil {
		w.matched.Add(1)
	}
}

// lock: of those who set a key that must not be there only one succeeds.
func (w *stressClient) lock(ctx context.Context) {
	got, err := w.c.SetNX(ctx, "lock", "held", 0).Result()
	w.must(err)
	if !got {
		return
	}
	if n := w.holders.Add(1); n != 1 {
		w.t.Errorf("%d hold the lock", n)
	}
	w.must(w.c.Ping(ctx).Err())
	w.holders.Add(-1)
	w.must(w.c.Del(ctx, "lock").Err())
}

func (w *stressClient) scan(ctx context.Context) {
	seen := make(map[string]int)
	it := w.c.Scan(ctx, 0, "resident-*", int64(1+w.r.IntN(100))).Iterator()
	for it.Next(ctx) {
		seen[it.Val()]++
	}
	w.must(it.Err())
	for n := range stressResidents {
		if key := fmt.Sprint("resident-", n); seen[key] != 1 {
			w.t.Errorf("a scan visits %s %d times", key, seen[key])
		}
	}
}

func (w *stressClient) dying(ctx context.Context) {
	pipe := w.c.Pipeline()
	for range 50 {
		pipe.Do(ctx, "SET", fmt.Sprint("dying-", w.r.IntN(1000)), "x", "PX", 1+w.r.IntN(20))
		pipe.Do(ctx, "DOC.PUT", "docs", fmt.Sprint("dying-", w.r.IntN(1000)), `{"ttl":1}`)
	}
	_, err := pipe.Exec(ctx)
	w.must(err)
	w.must(w.c.Do(ctx, "DOC.COUNT", "docs").Err())
}

func (w *stressClient) large(ctx context.Context) {
	key, value := fmt.Sprint("large-", w.r.IntN(3)), strings.Repeat(fmt.Sprint(w.r.IntN(10)), 200_000)
	pipe := w.c.Pipeline()
	pipe.Set(ctx, key, value, 0)
	get := pipe.Get(ctx, key)
	pipe.Del(ctx, key)
	_, err := pipe.Exec(ctx)
	w.must(err)
	if got, err := get.Result(); err == nil && (len(got) != len(value) || strings.Trim(got, got[:1]) != "") {
		w.t.Errorf("%s has %d bytes that are mixed of several writes", key, len(got))
	}
}

// containers makes, changes, empties and drops a container that others use, too.
func (w *stressClient) containers(ctx context.Context) {
	name := fmt.Sprint("brief-", w.r.IntN(2))
	conn := w.c.Conn()
	defer conn.Close()
	for range 4 {
		var err error
		switch w.r.IntN(5) {
		case 0:
			err = conn.Do(ctx, "CONTAINER.DROP", name).Err()
		case 1:
			err = conn.Do(ctx, "CONTAINER.SET", name, "TTL", [...]string{"off", "-1", "1"}[w.r.IntN(3)]).Err()
		case 2:
			err = conn.Do(ctx, "DOC.PUT", name, "x", "{}").Err()
		case 3:
			if err = conn.Do(ctx, "SELECT", name).Err(); err == nil {
				err = conn.FlushDB(ctx).Err()
			}
			w.must(conn.Do(ctx, "SELECT", 0).Err())
		case 4:
			err = conn.Do(ctx, "DOC.SCAN", name, 0, "WITHDOCS").Err()
		}
		if err != nil && !strings.Contains(err.Error(), name) { // that it is not there just now
			w.t.Error(err)
		}
	}
}

// leave leaves in the middle of a command, or without taking the replies.
func (w *stressClient) leave() {
	nc, err := net.Dial("tcp", w.addr)
	if err != nil {
		w.t.Error(err)
		return
	}
	defer nc.Close()
	said := [...]string{"*3\r\n$3\r\nSET\r\n$4\r\nhalf\r\n$100\r\nabc", "GET resident-1\r\nSE", strings.Repeat("KEYS *\r\n", 50), "INFO everything\r\n"}[w.r.IntN(4)]
	if _, err := nc.Write([]byte(said)); err != nil {
		w.t.Error(err)
	}
}

func (w *stressClient) lookAround(ctx context.Context) {
	pipe := w.c.Pipeline()
	pipe.Info(ctx)
	pipe.ClientList(ctx)
	pipe.RandomKey(ctx)
	pipe.DBSize(ctx)
	pipe.ConfigSet(ctx, "appendfsync", [...]string{"always", "everysec", "no"}[w.r.IntN(3)])
	pipe.ConfigSet(ctx, "active-expire-effort", fmt.Sprint(1+w.r.IntN(10)))
	pipe.Do(ctx, "CONTAINER.LIST")
	pipe.Do(ctx, "DOC.META", "docs", "matched")
	pipe.Set(ctx, fmt.Sprint("resident-", w.r.IntN(stressResidents)), w.r.Uint64(), 0)
	_, err := pipe.Exec(ctx)
	w.must(err)
}
