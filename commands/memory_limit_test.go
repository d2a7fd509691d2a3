package commands

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/keyspace/eviction"
	"mayfly/test/drill"
)

// Items of the same size take the same memory.
const (
	itemBody  = `{"item":"tea"}`
	itemCount = 400
)

// fill puts documents into a container with a default of 1000 s. Their own times to live are 100 s, 101 s
// and so on. It returns the memory of each.
func (w *harness) fill() (each int64) {
	w.t.Helper()
	w.expect("OK", "CONTAINER.SET", "orders", "TTL", "1000")
	for i := range itemCount {
		w.expect("OK", "DOC.PUT", "orders", fmt.Sprintf("id-%04d", i), itemBody, "TTL", fmt.Sprint(100+i))
	}
	return field(w.do(1, "CONTAINER.GET", "orders"), "memory").Int / itemCount
}

func (w *harness) limit(bytes int64, policy eviction.Policy) {
	w.t.Helper()
	w.expect("OK", "CONFIG", "SET", "maxmemory", fmt.Sprint(bytes), "maxmemory-policy", policy.String())
}

// lower sets a limit without the evictions of CONFIG SET.
func (w *harness) lower(bytes int64, policy eviction.Policy) {
	options := eviction.Defaults
	options.Policy = policy
	w.engine.Keyspace().SetEviction(options)
	w.engine.SetMaxMemory(bytes)
}

// As in Redis, CONFIG SET of maxmemory evicts without waiting for a write. Within EXEC it cannot.
func TestConfigSetEvicts(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "Ee", "maxmemory-policy", "allkeys-lru")
	w.do(2, "PSUBSCRIBE", "*")
	w.received(2)
	w.expect("OK", "SET", "foo", "bar")
	w.expect("OK", "MULTI")
	w.expect("QUEUED", "CONFIG", "SET", "maxmemory", "1")
	w.expect("1) OK", "EXEC")
	w.expect(`"bar"`, "GET", "foo")
	w.expect("OK", "CONFIG", "SET", "maxmemory", "1")
	if events := w.received(2); len(events) != 1 || !strings.Contains(notation(events[0]), "__keyevent@0__:evicted") {
		t.Errorf("%d events came", len(events))
	}
	w.expect("(nil)", "GET", "foo")
	w.limit(0, eviction.None)
}

func TestMaxMemoryRefusesWritesUntilThereIsRoom(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	each := w.fill()
	for _, key := range []string{"k", "k3"} { // the database takes memory, too, once it holds something
		w.do(1, "SET", key, "v")
		w.do(1, "DEL", key)
	}
	limit := w.engine.Keyspace().Used() + each/2
	w.limit(limit, eviction.None)
	w.expect("OK", "DOC.PUT", "orders", "one-more", itemBody) // from below the limit one step beyond it
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	w.expect(oom, "DOC.PUT", "orders", "too-many", itemBody)
	w.expect(oom, "DOC.PUT", "orders", "id-0000", "{}") // that it would shrink is not looked into, as in Redis
	w.expect(oom, "SET", "k", "v")
	w.expect(fmt.Sprintf("(integer) %d", itemCount+1), "DOC.COUNT", "orders")
	w.expect(`"{\"item\":\"tea\",\"ttl\":100}"`, "DOC.GET", "orders", "id-0000")
	w.expect("(integer) 2", "DOC.DEL", "orders", "id-0000", "id-0001")
	w.expect("OK", "SET", "k", "v")
	w.expect("OK", "DOC.PUT", "orders", "too-many", itemBody)

	// A death frees memory, too, once the item is removed.
	w.expect(oom, "SET", "k3", "v")
	w.clock.Advance(2 * time.Minute)
	w.engine.Keyspace().PurgeOnce()
	w.expect("OK", "SET", "k3", "v")

	got := infoFields(t, w.do(1, "INFO"))
	used := fmt.Sprint(w.engine.Keyspace().Used())
	if got["used_memory"] != used || got["maxmemory"] != fmt.Sprint(limit) || got["maxmemory_policy"] != "noeviction" || got["evicted_keys"] != "0" {
		t.Errorf("INFO: used_memory %s (want %s), maxmemory %s, %s, %s evicted", got["used_memory"], used, got["maxmemory"], got["maxmemory_policy"], got["evicted_keys"])
	}
}

// An empty server takes memory, too: its databases. So a limit below that refuses the first write, as in
// Redis.
func TestMaxMemoryOfAnEmptyServer(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	for _, policy := range []eviction.Policy{eviction.None, eviction.AllKeysLRU, eviction.VolatileTTL} {
		w.limit(1, policy)
		w.expect(oom, "SET", "k", "v")
		if got := notation(w.do(1, "EVAL", "return redis.call('set', KEYS[1], 'v')", "1", "k")); !strings.HasPrefix(got, oom) {
			t.Errorf("a script gets %s", got)
		}
		w.expect("(nil)", "GET", "k")
		w.expect("(integer) 0", "DEL", "k")
	}
	empty := w.engine.Keyspace().Used()
	w.limit(empty, eviction.None)
	w.expect("OK", "SET", "k", "v")
	w.expect(oom, "SET", "k", "v")
	w.expect("(integer) 1", "DEL", "k")
	w.limit(0, eviction.None)
	w.expect("OK", "SET", "k", "v")
}

// Containers take memory, too. The policy of one can change nevertheless.
func TestMaxMemoryRefusesContainers(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	empty := w.engine.Keyspace().Used()
	w.fill()
	w.limit(empty, eviction.None)
	const oom = "(error) OOM command not allowed when used memory > 'maxmemory'."
	w.expect(oom, "CONTAINER.CREATE", "another")
	w.expect(oom, "CONTAINER.SET", "another", "TTL", "10")
	w.expect("(nil)", "CONTAINER.GET", "another")
	w.expect("OK", "CONTAINER.SET", "orders", "TTL", "10")
	w.expect("(integer) 1", "CONTAINER.DROP", "orders")
	w.expect("OK", "CONTAINER.SET", "another", "TTL", "10") // after the end of what UNDO could bring back
}

func TestVolatileTTLEvictsTheNearestToDeath(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "for-ever", "v")
	each := w.fill()
	w.expect("OK", "CONFIG", "SET", "notify-keyspace-events", "Ee")
	w.do(2, "SUBSCRIBE", "__keyevent@orders__:evicted")
	w.received(2)
	most := each * itemCount
	w.limit(most, eviction.VolatileTTL)
	for i := range itemCount / 2 {
		w.expect("OK", "DOC.PUT", "orders", fmt.Sprintf("new-%04d", i), itemBody, "TTL", "5000")
	}
	if used := w.engine.Keyspace().Used(); used > most+2*each {
		t.Errorf("%d bytes are used, the limit is %d", used, most)
	}
	w.expect(`"v"`, "GET", "for-ever")

	var evicted, near int
	for i := range itemCount {
		if w.do(1, "DOC.EXISTS", "orders", fmt.Sprintf("id-%04d", i)).Int == 0 {
			evicted++
			if i < itemCount*3/4 {
				near++
			}
		}
	}
	if evicted < itemCount/3 || near < evicted*9/10 {
		t.Errorf("of %d evicted %d were among the nearest to death", evicted, near)
	}
	got := infoFields(t, w.do(1, "INFO", "stats"))["evicted_keys"]
	events := w.received(2)
	if got != fmt.Sprint(len(events)) || len(events) < evicted {
		t.Errorf("%d documents are gone, evicted_keys is %s, %d events came", evicted, got, len(events))
	}
	if first := notation(events[0]); !strings.Contains(first, "__keyevent@orders__:evicted") || !strings.Contains(first, `"id-`) {
		t.Errorf("an event says %s", first)
	}
	w.expect("OK", "CONFIG", "RESETSTAT")
	if got := infoFields(t, w.do(1, "INFO", "stats"))["evicted_keys"]; got != "0" {
		t.Errorf("after RESETSTAT evicted_keys is %s", got)
	}
	w.limit(0, eviction.None)
}

// TestEvictionIsWaitedFor: even an error leaves only after the evictions of its command are committed.
func TestEvictionIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	w.expect("OK", "SET", "for-ever", "v")
	w.expect("OK", "SET", "dying", "v", "EX", "100")
	w.lower(1, eviction.VolatileTTL)
	out := w.engine.Execute(w.session(1), []string{"SET", "k", "v"})
	if out.Reply.Kind != engine.KindError {
		t.Fatal(notation(out.Reply))
	}
	if out.LSN == 0 {
		t.Error("the reply waits for nothing")
	}
	w.limit(0, eviction.None)
	w.restart()
	w.expect("(nil)", "GET", "dying")
}

// TestALoweredLimitIsReachedStepByStep: no single command evicts all of the excess.
func TestALoweredLimitIsReachedStepByStep(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	for i := range 10 * itemCount {
		w.expect("OK", "SET", fmt.Sprint("k", i), "v", "EX", "1000")
	}
	full := w.engine.Keyspace().Used()
	w.lower(full/2, eviction.VolatileTTL)
	w.expect("OK", "SET", "a", "v")
	if used := w.engine.Keyspace().Used(); used > full-engine.EvictAtMost/2 || used < full-2*engine.EvictAtMost {
		t.Errorf("the first command evicted from %d to %d bytes", full, used)
	}
	for i := 0; w.engine.Keyspace().Used() > full/2+engine.EvictAtMost/2; i++ {
		if i > 100 {
			t.Fatalf("%d bytes are still used, the limit is %d", w.engine.Keyspace().Used(), full/2)
		}
		w.expect("OK", "SET", "a", "v")
	}
	w.limit(0, eviction.None)
}

func TestRestartWithMoreThanMaxMemory(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	each := w.fill()
	w.limit(each*itemCount/2, eviction.None)
	w.restart()
	w.expect(fmt.Sprintf("(integer) %d", itemCount), "DOC.COUNT", "orders")
	w.expect("(error) OOM command not allowed when used memory > 'maxmemory'.", "SET", "k", "v")
	w.limit(each*itemCount/2, eviction.VolatileTTL)
	w.expect("OK", "SET", "k", "v")
	w.limit(0, eviction.None)
}

// TestManyWriteAtTheLimit: sessions write, read and delete beside evictions. Run with -race.
func TestManyWriteAtTheLimit(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	each := w.fill()
	most := each * itemCount / 2
	w.limit(most, eviction.VolatileTTL)
	var wg sync.WaitGroup
	const writers = 4
	for n := range writers {
		s := w.session(n + 2)
		wg.Go(func() {
			for i := range 500 {
				id, lsn := fmt.Sprintf("w%d-%04d", n, i), keyspace.LSN(0)
				for _, args := range [][]string{
					{"DOC.PUT", "orders", id, itemBody}, {"MULTI"}, {"SET", id, "v", "EX", "50"}, {"EXEC"}, {"DOC.GET", "orders", id}, {"DEL", id},
				} {
					out := w.engine.Execute(s, args)
					if out.Reply.Kind == engine.KindError {
						t.Errorf("%q: %s", args, out.Reply.Str)
					}
					lsn = max(lsn, out.LSN)
				}
				drill.Report(t, w.engine.Keyspace().Wait(lsn))
			}
		})
	}
	wg.Wait()
	if used := w.engine.Keyspace().Used(); used > most+2*writers*each {
		t.Errorf("%d bytes are used, the limit is %d", used, most)
	}
	w.limit(0, eviction.None)
}

func TestMemoryStats(t *testing.T) {
	t.Parallel()
	w := newHarness(t)
	used := func() int64 { return w.engine.Keyspace().Used() }
	if got := w.do(1, "MEMORY", "STATS"); field(got, "keys.bytes-per-key").Int != 0 || field(got, "dataset.bytes").Int != 0 ||
		field(got, "total.allocated").Int != used() || field(got, "overhead.total").Int != used() {
		t.Errorf("an empty server has %s", notation(got))
	}
	each := w.fill()
	got := w.do(1, "MEMORY", "STATS")
	if field(got, "keys.count").Int != itemCount || field(got, "keys.bytes-per-key").Int != used()/itemCount ||
		field(got, "total.allocated").Int != used() || used() < each*itemCount || field(got, "allocator.allocated").Int == 0 {
		t.Errorf("MEMORY STATS: %s", notation(got))
	}
	if got := w.do(1, "MEMORY", "MALLOC-STATS").Str; !strings.Contains(got, "/memory/classes/heap/objects:bytes ") {
		t.Errorf("MEMORY MALLOC-STATS: %s", got)
	}
	w.expect("OK", "SELECT", "orders")
	w.expect(fmt.Sprintf("(integer) %d", each), "MEMORY", "USAGE", "id-0000", "SAMPLES", "5")
	w.clock.Advance(100 * time.Second)
	w.expect("(nil)", "MEMORY", "USAGE", "id-0000")
}
