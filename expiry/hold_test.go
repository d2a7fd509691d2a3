package expiry

import (
	"math/rand/v2"
	"testing"
)

// TestHold: in random histories of defaults and holds an item dies when a simulation that judges every ms
// says so, and nothing dies while a hold lasts.
func TestHold(t *testing.T) {
	t.Parallel()
	type item struct {
		ts, expireAt int64
		dead         bool
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	heldBack := 0
	for range 300 {
		p := Policy{Default: TTL(rnd.Int64N(4) - 1)}
		var items []item
		for now := int64(1000); now < 13_000; now += 250 {
			if rnd.IntN(3) == 0 {
				ends := []int64{Inherit, Never, now + 250*(1+rnd.Int64N(12)), CapAt(now + 250*(1+rnd.Int64N(12)))}
				items = append(items, item{ts: now, expireAt: ends[rnd.IntN(4)]})
			}
			for i := range items {
				it := &items[i]
				overdue := it.expireAt > 0 && it.expireAt <= now && p.Default != Off ||
					it.expireAt < Never && -it.expireAt <= now && p.Default != Off ||
					it.expireAt <= Inherit && it.expireAt != Never && p.Default > 0 && it.ts+int64(p.Default)*1000 <= now
				if overdue && p.Hold != "" && !it.dead {
					heldBack++
				}
				it.dead = it.dead || overdue && p.Hold == ""
				if got := p.Dead(it.ts, it.expireAt, now); got != it.dead {
					t.Fatalf("at %d: %+v is dead: %v, under %+v", now, *it, got, p)
				}
				if end, ok := p.End(it.ts, it.expireAt); p.Hold != "" && ok {
					t.Fatalf("an item on hold ends at %d", end)
				}
			}
			switch rnd.IntN(8) {
			case 0:
				p = p.WithHold("case 4711", now)
			case 1, 2:
				p = p.WithHold("", now)
			case 3:
				p = p.Change(TTL(rnd.Int64N(5)-1), Strict, now)
			}
			byDefault, byOwnTTL := p.Expires()
			if p.Hold != "" && (byDefault || byOwnTTL || p.Source(now, Inherit, false) != "hold") {
				t.Fatalf("%+v: items die under a hold", p)
			}
			for i := range items { // a hold that ended kills the overdue in the same ms
				items[i].dead = items[i].dead || p.Dead(items[i].ts, items[i].expireAt, now)
			}
		}
	}
	if heldBack < 1000 {
		t.Errorf("only %d items were held back", heldBack)
	}
}
