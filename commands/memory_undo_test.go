package commands

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/keyspace/eviction"
	"mayfly/test/drill"
)

// TestMemoryLimitBesideHoldsAndWindows plays random commands at the memory limit under each policy, with
// changes that can be taken back and containers on hold. What is on hold stays as it is, the limit is kept,
// and nothing hangs.
func TestMemoryLimitBesideHoldsAndWindows(t *testing.T) {
	const oom = "OOM command not allowed when used memory > 'maxmemory'."
	t.Parallel()
	seed := drill.Seed(t)
	var undone atomic.Int64 // of all policies: a full memory often leaves nothing to take back
	t.Cleanup(func() {
		if undone.Load() == 0 {
			t.Error("no change was taken back")
		}
	})
	for policy := eviction.None; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			t.Parallel()
			w := newHarness(t)
			rng := rand.New(rand.NewPCG(seed, uint64(policy)))
			w.expect("OK", "CONFIG", "SET", "undo-window", "3600")
			names := []string{"a", "b", "c", "d"}
			for _, name := range names {
				w.expect("OK", "CONTAINER.CREATE", name, "TTL", "6000")
			}
			const limit = 150_000
			w.limit(limit, policy)
			held := map[string]map[string]string{} // by container and id the documents
			refused, most := 0, int64(0)
			for step := range drill.Pick(1000, 1000, 100_000) {
				name, id := names[rng.IntN(len(names))], fmt.Sprint(rng.IntN(400))
				on := held[name]
				switch n := rng.IntN(100); {
				case n < 70:
					body := `{"v":"` + strings.Repeat("x", rng.IntN(1500)) + `"}`
					if rng.IntN(2) == 0 {
						body = `{"ttl":` + fmt.Sprint(1+rng.IntN(9000)) + `,` + body[1:]
					}
					reply := w.do(1, "DOC.PUT", name, id, body)
					switch text := notation(reply); {
					case text == "OK":
						if on != nil {
							if _, ok := on[id]; ok {
								t.Fatalf("step %d: a document on hold was overwritten", step)
							}
							on[id] = body
						}
						most = max(most, w.engine.Keyspace().Used())
					case strings.Contains(text, oom):
						refused++
					case strings.Contains(text, "unknown container"): // it was dropped, and memory was full
						w.do(1, "CONTAINER.SET", name, "TTL", "6000")
					case on == nil || !strings.Contains(text, "HELD"):
						t.Fatalf("step %d: DOC.PUT: %s", step, text)
					}
				case n < 75:
					w.do(1, "DOC.DEL", name, id)
				case n < 78:
					w.do(1, "CONTAINER.SET", name, "TTL", fmt.Sprint(1+rng.IntN(9000)))
				case n < 79:
					w.do(1, "CONTAINER.DROP", name)
					if on == nil {
						w.do(1, "CONTAINER.SET", name, "TTL", "6000")
					}
				case n == 80 && rng.IntN(4) == 0:
					w.do(1, "FLUSHALL")
				case n < 86:
					if reply := w.do(1, "CONTAINER.UNDO", name); reply.Kind == engine.KindMap {
						undone.Add(1)
					}
				case n < 87 && len(held) < 2 && on == nil:
					if notation(w.do(1, "CONTAINER.SET", name, "HOLD", "case")) != "OK" {
						break
					}
					on = map[string]string{}
					held[name] = on
					for i := range 400 {
						if r := w.do(1, "DOC.GET", name, fmt.Sprint(i)); r.Kind == engine.KindBulk {
							on[fmt.Sprint(i)] = r.Str
						}
					}
				case n < 90 && on != nil:
					delete(held, name)
					w.do(1, "CONTAINER.SET", name, "HOLD", "OFF")
				case n < 95:
					w.clock.Advance(time.Duration(rng.IntN(100_000)) * time.Millisecond)
				case n < 97:
					w.engine.Keyspace().PurgeOnce()
				case n < 98:
					w.engine.Keyspace().EndWindows()
				default:
					w.do(1, "DOC.TOUCH", name, id)
				}
				for name, on := range held {
					w.expect(fmt.Sprintf("(integer) %d", len(on)), "DOC.COUNT", name)
					for id, body := range on {
						if r := w.do(1, "DOC.GET", name, id); r.Str != body {
							t.Fatalf("step %d: %s of %s, on hold, is %.60q, not %.60q", step, id, name, r.Str, body)
						}
						break
					}
				}
				if step%500 == 0 {
					w.check()
				}
			}
			// Chance may have left room until here.
			w.do(1, "CONTAINER.SET", "fills", "TTL", "6000")
			for i := 0; i < 400 && refused+int(w.engine.Memory.Evicted.Load()) == 0; i++ {
				if text := notation(w.do(1, "DOC.PUT", "fills", fmt.Sprint(i), `{"v":"`+strings.Repeat("x", 1500)+`"}`)); strings.Contains(text, oom) {
					refused++
				}
				most = max(most, w.engine.Keyspace().Used())
			}
			if most > limit+8192 {
				t.Errorf("%d bytes were used", most)
			}
			if evicted := w.engine.Memory.Evicted.Load(); refused+int(evicted) == 0 || policy == eviction.None && evicted > 0 {
				t.Errorf("%d writes refused, %d items evicted", refused, evicted)
			}
		})
	}
}
