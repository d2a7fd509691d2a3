package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// TestHashOrder: the order of hashes is the same whatever the number of buckets, and goes on behind any id.
func TestHashOrder(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 1))
	shard := Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }, Seed: Seed{1, 2}}
	var table Table
	table.Init(&shard, 1)
	there := map[string]bool{}
	read := func(size int, after string, begin bool) (ids []string) {
		list := make([]*Entry, size)
		for {
			n := table.InHashOrder(after, begin, list)
			for _, e := range list[:n] {
				ids = append(ids, strings.Clone(table.ID(e)))
			}
			if n < size {
				return ids
			}
			after, begin = ids[len(ids)-1], false
		}
	}
	var order []string // of all ids, as far as known
	for round := range 60 {
		grows := round%20 < 12
		for range 1 + random.IntN(200) {
			id := fmt.Sprint("id-", random.IntN(4000))
			switch {
			case grows && !there[id]:
				table.Insert(id, record.Item{Kind: record.Document, Body: "{}", ExpireAt: expiry.Never}, nil)
				there[id] = true
			case !grows && there[id]:
				e := table.Find(id)
				table.Remove(e)
				table.Release(e)
				delete(there, id)
			}
		}
		all := read(1+random.IntN(700), "", true)
		if len(all) != len(there) || len(slices.Compact(slices.Sorted(slices.Values(all)))) != len(all) {
			t.Fatalf("round %d: %d ids of %d", round, len(all), len(there))
		}
		for range 10 { // behind an id that may be gone
			after := fmt.Sprint("id-", random.IntN(4000))
			got := read(1+random.IntN(50), after, false)
			if !slices.Equal(got, all[len(all)-len(got):]) || slices.Contains(got, after) {
				t.Fatalf("round %d: behind %s come %d ids of %d, in another order", round, after, len(got), len(all))
			}
			if at := slices.Index(all, after); at >= 0 && len(got) != len(all)-at-1 {
				t.Fatalf("round %d: behind %s come %d ids, want %d", round, after, len(got), len(all)-at-1)
			}
		}
		both := slices.DeleteFunc(slices.Clone(all), func(id string) bool { return !slices.Contains(order, id) })
		before := slices.DeleteFunc(order, func(id string) bool { return !there[id] })
		if !slices.Equal(both, before) {
			t.Fatalf("round %d: the order has changed", round)
		}
		order = all
	}
}

// TestHashOrderOfEqualHashes: entries of one hash come by id.
func TestHashOrderOfEqualHashes(t *testing.T) {
	t.Parallel()
	shard := Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }, Seed: Seed{1, 2}}
	var table Table
	table.Init(&shard, 1)
	insert := func(id string) {
		table.Insert(id, record.Item{Kind: record.Document, Body: "{}", ExpireAt: expiry.Never}, nil)
	}
	pairs, first := 0, map[uint32]string{}
	for i := range 500_000 {
		id := fmt.Sprint("id-", i)
		h := shard.Seed.hash(id)
		if other, ok := first[h]; ok {
			insert(id)
			insert(other)
			pairs++
		}
		first[h] = id
	}
	if pairs < 5 {
		t.Fatalf("%d pairs of equal hashes are too few", pairs)
	}
	for size := 1; size < 6; size++ {
		list := make([]*Entry, size)
		var hashes []uint32
		var ids []string
		for n := table.InHashOrder("", true, list); n > 0; n = table.InHashOrder(ids[len(ids)-1], false, list) {
			for _, e := range list[:n] {
				hashes, ids = append(hashes, e.hash), append(ids, table.ID(e))
			}
		}
		if len(ids) != 2*pairs {
			t.Fatalf("%d at a time: %d entries, want %d", size, len(ids), 2*pairs)
		}
		for i := 0; i < len(ids); i += 2 {
			if hashes[i] != hashes[i+1] || ids[i] >= ids[i+1] {
				t.Errorf("%d at a time: %s and %s are out of order", size, ids[i], ids[i+1])
			}
		}
	}
}

// TestHashSpreads: hashes of like ids differ in their low and in their high bits, and depend on both halves
// of the seed.
func TestHashSpreads(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"%d", "id-%d", "order:2026-11-22:%08d", "%036d", "user:{42}:%d:profile-of-a-customer-in-vienna"} {
		for _, seed := range []Seed{{0x123456789abcdef, 0xfedcba987654321}, {0, 0}, {1, 0}}[:drill.Pick(1, 3, 3)] {
			var low, high [256]int
			equal := 0
			const n = 1 << 16
			for i := range n {
				h := seed.hash(fmt.Sprintf(form, i))
				low[h&255]++
				high[h>>24]++
				if other := (Seed{seed[0] ^ 1, seed[1]}); other.hash(fmt.Sprintf(form, i)) == h {
					equal++
				}
				if other := (Seed{seed[0], seed[1] ^ 1}); other.hash(fmt.Sprintf(form, i)) == h {
					equal++
				}
			}
			for b := range 256 {
				if low[b] < n/256*3/4 || low[b] > n/256*5/4 || high[b] < n/256*3/4 || high[b] > n/256*5/4 {
					t.Fatalf("%s, seed %x: of %d hashes %d end in %d, %d begin so", form, seed, n, low[b], b, high[b])
				}
			}
			if equal > 3 {
				t.Errorf("%s, seed %x: %d hashes are the same with another seed", form, seed, equal)
			}
		}
	}
}
