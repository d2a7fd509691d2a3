package commands

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"

	"mayfly/commands/engine"
	"mayfly/test/drill"
)

// TestForecastTellsOwnEnds plays random writes, EXPIRE, PERSIST, changes of the default, UNDO, REVIVE and
// restarts. After every step `own` of a forecast must be what DOC.EXPLAIN says of each item.
func TestForecastTellsOwnEnds(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 1, 3, 100, func(t *testing.T, seed uint64) {
		t.Parallel()
		h, rnd := newHarness(t), rand.New(rand.NewPCG(seed, 17))
		pick := func(of ...string) string { return of[rnd.IntN(len(of))] }
		h.expect("OK", "CONFIG", "SET", "undo-window", "60")
		h.expect("OK", "CONTAINER.CREATE", "c", "TTL", "20", "LOG", "600", "DEADLINE", "until")
		h.expect("OK", "SELECT", "c")
		done := map[string]int{} // of each command, how often it has changed something
		for range 300 {
			id := "i" + strconv.Itoa(rnd.IntN(20))
			fresh := func() {
				if rnd.IntN(2) == 0 { // else what is there
					h.do(1, "DEL", id)
					h.do(1, "DOC.PUT", "c", id, `{}`)
				}
			}
			var r engine.Reply
			name := pick("DOC.PUT", "DOC.PUT", "DOC.PUT", "SET", "EXPIRE", "PERSIST", "DOC.SETTTL", "DOC.TOUCH", "CONTAINER.SET", "CONTAINER.UNDO", "DOC.REVIVE", "DEL", "restart")
			switch name {
			case "DOC.PUT":
				until := fmt.Sprintf(`{"until":%d}`, h.clock.Now()/1000+int64(1+rnd.IntN(30)))
				h.do(1, "DEL", id)
				r = h.do(1, "DOC.PUT", "c", id, pick(`{}`, `{"ttl":7}`, `{"ttl":25}`, `{"ttl":-1}`, until))
			case "SET":
				h.do(1, "DEL", id)
				r = h.do(1, append([]string{"SET", id, "v"}, [][]string{nil, {"PX", "4500"}}[rnd.IntN(2)]...)...)
			case "EXPIRE":
				fresh()
				r = h.do(1, "EXPIRE", id, "9")
			case "PERSIST":
				fresh()
				h.do(1, "EXPIRE", id, "9")
				r = h.do(1, "PERSIST", id)
			case "DOC.SETTTL":
				fresh()
				r = h.do(1, "DOC.SETTTL", "c", id, pick("6", "-1", "NONE"))
			case "CONTAINER.SET":
				r = h.do(1, "CONTAINER.SET", "c", "TTL", pick("off", "-1", "3", "10", "30"))
			case "CONTAINER.UNDO":
				r = h.do(1, "CONTAINER.UNDO", "c")
			case "restart":
				h.restart()
				h.expect("OK", "CONFIG", "SET", "undo-window", "60")
				h.expect("OK", "SELECT", "c")
			case "DOC.REVIVE":
				if rnd.IntN(2) == 0 { // else what is there
					h.do(1, "DEL", id)
					h.do(1, "DOC.PUT", "c", id, `{"ttl":1}`)
					h.clock.Advance(time.Second)
				}
				r = h.do(1, name, "c", id)
			case "DOC.TOUCH":
				r = h.do(1, name, "c", id)
			default:
				r = h.do(1, name, id)
			}
			if r.Kind != engine.KindError && r.Kind != engine.KindNull && !(r.Kind == engine.KindInteger && r.Int == 0) {
				done[name]++
			}
			h.clock.Advance(time.Duration(rnd.IntN(1500)) * time.Millisecond)
			if rnd.IntN(4) == 0 {
				h.engine.Keyspace().PurgeOnce()
			}
			judgeOwnEnds(t, h)
		}
		for _, name := range []string{"EXPIRE", "PERSIST", "DOC.SETTTL", "CONTAINER.SET", "CONTAINER.UNDO", "DOC.REVIVE"} {
			if done[name] == 0 {
				t.Errorf("no %s has changed anything: %v", name, done)
			}
		}
	})
}

// judgeOwnEnds compares the forecast of container c with the explanations of its items.
func judgeOwnEnds(t *testing.T, h *harness) {
	t.Helper()
	const every, buckets = 3, 4
	from := h.clock.Now() / (every * 1000) * every * 1000
	var items, own [buckets]int64
	for i := range 20 {
		e := h.do(1, "DOC.EXPLAIN", "c", "i"+strconv.Itoa(i))
		rule := field(e, "rule").Str
		if field(e, "state").Str != "alive" || field(e, "expiresat").Int < 0 {
			continue
		}
		at := (field(e, "expiresat").Int - from) / (every * 1000)
		if at >= buckets {
			continue
		}
		items[at]++
		switch rule {
		case "document", "key", "deadline":
			own[at]++
		case "container":
		default:
			t.Fatalf("the rule of %s", notation(e))
		}
	}
	f := h.do(1, "CONTAINER.FORECAST", "c", "EVERY", strconv.Itoa(every), "BUCKETS", strconv.Itoa(buckets))
	var gotItems, gotOwn [buckets]int64
	for i := range buckets {
		gotItems[i], gotOwn[i] = field(f, "buckets").Elems[i].Elems[1].Int, field(f, "own").Elems[i].Elems[0].Int
	}
	if gotItems != items || gotOwn != own {
		t.Fatalf("at %d the items explain %v, of these %v by an end of their own; the forecast has %v and %v", h.clock.Now(), items, own, gotItems, gotOwn)
	}
}
