package memtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// TestNoneWithin: NoneWithin is true only of limits that select no entry, while items are written again,
// postponed and removed; and it is true of most limits before the first end.
func TestNoneWithin(t *testing.T) {
	t.Parallel()
	table, s := newTestTable()
	random := rand.New(rand.NewPCG(7, 8))
	none, first := 0, 0
	for range 6000 {
		id := fmt.Sprint(random.IntN(1500))
		it := record.Item{Kind: record.Document, Body: "{}", TS: random.Int64N(10_000)}
		switch random.IntN(5) {
		case 0:
			remove(table, s, id)
			continue
		case 1:
			it.ExpireAt = expiry.Never
		case 2, 3:
			it.ExpireAt = 2000 + random.Int64N(10_000)
		}
		put(table, id, it)
		limits := expiry.Limits{ByDefault: random.Int64N(100) - 50, ByOwnTTL: 1950 + random.Int64N(100)}
		selected := 0
		table.Descend(0, func(_ uint64, e *Entry) (more bool) {
			if e.Within(limits) {
				selected++
			}
			return true
		})
		if selected == 0 {
			first++
		}
		if table.NoneWithin(limits) {
			if none++; selected > 0 {
				t.Fatalf("limits %+v select %d entries, but NoneWithin is true", limits, selected)
			}
		}
		if random.IntN(3) == 0 {
			table.RemoveDead(limits, 3, func(e *Entry) {
				table.Remove(e)
				table.Release(e)
			})
			s.Clean()
		}
	}
	if none < first/4 {
		t.Errorf("of %d limits that select no entry NoneWithin knows %d", first, none)
	}
}
