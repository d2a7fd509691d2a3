package memtable

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// TestChains adds, removes and restores entries of a log at random, and compares chains and searches with a
// list.
func TestChains(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := &Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
		var table Table
		table.InitLog(s, 41)
		var ids []string // in order
		next := 0
		items := 1 + r.IntN(300)
		item := func() string { return fmt.Sprint("item", r.IntN(items)) }
		insert := func(id string) {
			_, e := table.Insert(id, record.Item{Kind: record.Entry, TS: 1_700_000_000_000, Body: "x"}, nil)
			e.SetLSN(1)
		}
		for step := range 3000 {
			switch n := r.IntN(10); {
			case n < 6 || len(ids) == 0:
				next++
				id := fmt.Sprintf("%024x:%s", next, item())
				insert(id)
				ids = append(ids, id)
			case n < 8: // the oldest go
				for range min(1+r.IntN(10), len(ids)) {
					e := table.Find(ids[0])
					table.Remove(e)
					table.Release(e)
					ids = ids[1:]
				}
			default: // one goes, and may come back
				at := r.IntN(len(ids))
				e := table.Find(ids[at])
				was := *e
				table.Remove(e)
				if r.IntN(2) == 0 {
					table.Restore(e, &was)
				} else {
					table.Release(e)
					ids = slices.Delete(ids, at, at+1)
				}
			}
			if step%50 != 0 {
				continue
			}
			if err := s.Check(); err != nil {
				t.Fatal(seed, step, err)
			}
			of, want := item(), []string(nil)
			for _, id := range slices.Backward(ids) {
				if strings.HasSuffix(id, ":"+of) {
					want = append(want, id)
				}
			}
			var got []string
			table.Deaths(of, func(e *Entry) bool { got = append(got, table.ID(e)); return true })
			if !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d: %s has %v, want %v", seed, step, of, got, want)
			}
			bound := fmt.Sprintf("%024x:", 1+r.IntN(next+1))
			at, _ := slices.BinarySearch(ids, bound)
			first := table.First(0)
			up, down := []string(nil), []string(nil)
			table.Ascend(bound, first, func(_ Handle, e *Entry) bool { up = append(up, table.ID(e)); return true })
			table.DescendFrom(bound, first, func(_ Handle, e *Entry) bool { down = append(down, table.ID(e)); return true })
			slices.Reverse(down)
			if !slices.Equal(up, ids[at:]) || !slices.Equal(down, ids[:at]) {
				t.Fatalf("seed %d, step %d: %d entries from %s and %d before it, want %d and %d", seed, step, len(up), bound, len(down), len(ids)-at, at)
			}
		}
		for _, id := range ids {
			e := table.Find(id)
			table.Remove(e)
			table.Release(e)
		}
		if err := s.Check(); err != nil || table.chains.n != 0 || table.extra != 0 {
			t.Fatal(err, table.chains.n, table.extra)
		}
	}
}

// TestReorder: entries that were loaded in another order are found, and chained in the order of their ids.
func TestReorder(t *testing.T) {
	t.Parallel()
	s := &Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	var table Table
	table.InitLog(s, 41)
	handles := map[string]Handle{}
	var ids []string
	for _, n := range rand.Perm(500) {
		id := fmt.Sprintf("%024x:%d", n+1, n%7)
		handles[id], _ = table.Insert(id, record.Item{Kind: record.Entry, TS: 1_700_000_000_000, ExpireAt: expiry.Inherit}, nil)
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var list []Handle
	for _, id := range ids {
		list = append(list, handles[id])
	}
	table.Reorder(list)
	var got []string
	table.Ascend("", 0, func(_ Handle, e *Entry) bool { got = append(got, table.ID(e)); return true })
	if err := s.Check(); err != nil || !slices.Equal(got, ids) {
		t.Fatal(err, len(got))
	}
}
