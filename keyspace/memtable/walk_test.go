package memtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// TestWalk walks a table in small pieces while others are inserted, rewritten and removed. It meets what
// nobody writes exactly once.
func TestWalk(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		var s Shard
		s.SetSize = func(key, rec int) int64 { return int64(key + rec) }
		var table Table
		table.Init(&s, 12)
		put := func(id string) { table.Insert(id, record.Item{Kind: record.Document, Body: "{}", TS: 1}, nil) }
		remove := func(id string) {
			e := table.Find(id)
			table.Remove(e)
			table.Release(e)
		}
		const n = 2000
		for i := range 2 * n {
			put(fmt.Sprint("i", i))
		}
		for i := range n / 2 { // holes
			remove(fmt.Sprint("i", i))
		}
		met := map[string]int{}
		others := 2 * n
		for from, more := 0, true; more; {
			from, more = table.Walk(from, 1+rng.IntN(200), func(e *Entry) { met[table.ID(e)]++ })
			for range rng.IntN(20) {
				put(fmt.Sprint("i", others))
				others++
			}
			if i := n + rng.IntN(n); table.Find(fmt.Sprint("i", i)) != nil {
				remove(fmt.Sprint("i", i))
			}
		}
		for i := n / 2; i < n; i++ { // what nobody writes
			if met[fmt.Sprint("i", i)] != 1 {
				t.Fatalf("seed %d: i%d was met %d times", seed, i, met[fmt.Sprint("i", i)])
			}
		}
		for id, times := range met {
			if times != 1 {
				t.Fatalf("seed %d: %s was met %d times", seed, id, times)
			}
		}
	}
}

// TestCountKilled compares the count with a look at every item, for items whose ends were put off in place
// too.
func TestCountKilled(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 4))
	for round := range 200 {
		var s Shard
		s.SetSize = func(key, rec int) int64 { return int64(key + rec) }
		var table Table
		table.Init(&s, 12)
		var items []record.Item
		for i := range 600 {
			ts := 100_000 + rng.Int64N(100_000)
			it := record.Item{Kind: record.Document, Body: "{}", TS: ts, ExpireAt: []int64{
				expiry.Inherit, expiry.Inherit, expiry.Never, ts + 1000*(1+rng.Int64N(60)), expiry.CapAt(ts + 1000*(1+rng.Int64N(60))),
			}[rng.IntN(5)]}
			id := fmt.Sprint("i", i)
			h, e := table.Insert(id, it, nil)
			if rng.IntN(3) == 0 { // a later write
				it.TS += rng.Int64N(50_000)
				table.Overwrite(h, e, id, it, nil)
			}
			items = append(items, it)
		}
		now := 200_000 + rng.Int64N(100_000)
		rule := func() expiry.TTL { return []expiry.TTL{expiry.Off, expiry.Forever, 20, 50, 90, 200}[rng.IntN(6)] }
		by := expiry.Policy{Default: rule(), InheritDeadTo: rng.Int64N(200_000), OwnDeadTo: rng.Int64N(200_000)}
		next := by.Change(rule(), expiry.Strict, now)
		want := 0
		for _, it := range items {
			if !by.Dead(it.TS, it.ExpireAt, now) && next.Dead(it.TS, it.ExpireAt, now) {
				want++
			}
		}
		for _, limit := range []int{0, 1, want, want + 1, 1 << 40} {
			if got := table.CountKilled(&by, &next, now, limit); got != min(want, limit) {
				t.Fatalf("round %d, limit %d: %d, want %d", round, limit, got, want)
			}
		}
	}
}
