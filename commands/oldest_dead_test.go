package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"mayfly/commands/admin"
	"mayfly/test/drill"
)

// oldestDead returns oldest_dead_ms of INFO.
func (h *harness) oldestDead(t *testing.T) int64 {
	t.Helper()
	for _, f := range admin.Info(h.engine) {
		if f.Name == "oldest_dead_ms" {
			return f.Value.(int64)
		}
	}
	t.Fatal("INFO has no oldest_dead_ms")
	return 0
}

// TestOldestDeadAgainstModel: while no purge runs, INFO tells how long the oldest dead item has been dead, to
// the millisecond, whether it died by its own end, by the default or by a changed default.
func TestOldestDeadAgainstModel(t *testing.T) {
	type item struct{ ts, own, died int64 } // ms; died 0: lives
	t.Parallel()
	drill.Seeds(t, 1, 2, 200, func(t *testing.T, seed uint64) {
		t.Parallel()
		h, rnd := newHarness(t), rand.New(rand.NewPCG(seed, 19))
		h.expect("OK", "CONFIG", "SET", "undo-window", "0")
		def, items, seen := int64(20), map[string]*item{}, 0
		h.expect("OK", "CONTAINER.CREATE", "c", "TTL", "20")
		die := func(changed int64) { // what has died by now; changed: when the default changed
			now := h.clock.Now()
			for _, it := range items {
				end := it.ts + def*1000
				if it.own > 0 {
					end = it.own
				} else if def < 0 {
					continue
				}
				if def != 0 && it.died == 0 && end <= now {
					it.died = max(end, changed)
				}
			}
		}
		for range 400 {
			switch rnd.IntN(20) {
			default:
				it := &item{ts: h.clock.Now()}
				id, json := "i"+strconv.Itoa(rnd.IntN(400)), "{}"
				if ttl := int64(1 + rnd.IntN(40)); ttl%2 == 0 {
					json, it.own = fmt.Sprintf(`{"ttl":%d}`, ttl), it.ts+ttl*1000
				}
				h.expect("OK", "DOC.PUT", "c", id, json)
				items[id] = it
			case 0:
				def = []int64{0, -1, 3, 10, 30}[rnd.IntN(5)]
				h.expect("OK", "CONTAINER.SET", "c", "TTL", defaultText(def))
				die(h.clock.Now())
			case 1:
				var oldest int64
				for id, it := range items {
					if it.died > 0 {
						oldest = max(oldest, h.clock.Now()-it.died)
						delete(items, id) // INFO removes the dead that it meets
					}
				}
				if got := h.oldestDead(t); got != oldest {
					t.Fatalf("at %d the oldest has been dead for %d ms, INFO says %d", h.clock.Now(), oldest, got)
				}
				if oldest > 0 {
					seen++
				}
			}
			h.clock.Advance(time.Duration(rnd.IntN(3000)) * time.Millisecond)
			die(0)
		}
		if seen < 3 {
			t.Errorf("a dead item was seen %d times", seen)
		}
	})
}

// TestOldestDeadOfKeptItems: what UNDO may bring back does not count, and the dead of a log do until the
// purge logs them.
func TestOldestDeadOfKeptItems(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	h.expect("OK", "CONFIG", "SET", "undo-window", "60")
	h.expect("OK", "CONTAINER.CREATE", "c", "TTL", "1000")
	h.expect("OK", "DOC.PUT", "c", "1", "{}")
	h.clock.Advance(10 * time.Second)
	h.expect("OK", "CONTAINER.SET", "c", "TTL", "5")
	h.clock.Advance(30 * time.Second)
	if got := h.oldestDead(t); got != 0 {
		t.Errorf("in its window it counts as dead for %d ms", got)
	}
	h.clock.Advance(31 * time.Second)
	if got := h.oldestDead(t); got != 61_000 {
		t.Errorf("after its window it has been dead for %d ms, want 61000", got)
	}
	h.expect("OK", "CONTAINER.CREATE", "logged", "TTL", "5", "LOG", "600")
	h.expect("OK", "DOC.PUT", "logged", "1", "{}")
	h.clock.Advance(7 * time.Second)
	for range 2 { // INFO does not remove it
		if got := h.oldestDead(t); got != 2000 {
			t.Errorf("in a container with a log it has been dead for %d ms, want 2000", got)
		}
	}
	h.engine.Keyspace().PurgeOnce()
	if got := h.oldestDead(t); got != 0 {
		t.Errorf("after the purge it has been dead for %d ms", got)
	}
}
