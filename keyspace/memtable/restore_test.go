package memtable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// state is what Restore has to bring back: the items in the order of their creation, and the totals.
type state struct {
	items         []string
	stats         Stats
	memory, store int64
}

func stateOf(t *Table, s *Shard) (all state) {
	t.Descend(0, func(seq uint64, e *Entry) (more bool) {
		all.items = append(all.items, fmt.Sprint(seq, t.ID(e), t.Item(e)))
		return true
	})
	all.stats, all.memory, all.store = t.Stats(), s.Memory(), s.LiveBytes()
	return all
}

// TestRestore replaces, removes and inserts random items as transactions do, and restores all of them or
// keeps all.
func TestRestore(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	table, shard := newTestTable()
	ends := []int64{expiry.Inherit, expiry.Never, 5_000_000, 7_000_000}
	for round := range 400 {
		type undo struct {
			e        *Entry
			was      Entry
			inserted bool
		}
		var undos []undo
		var removed []*Entry
		before := stateOf(table, shard)
		touched := make(map[string]bool)
		for range r.IntN(60) {
			id := strings.Repeat("i", r.IntN(3)) + fmt.Sprint(r.IntN(80))
			if touched[id] {
				continue // Tx has one undo an item, for its first change
			}
			touched[id] = true
			it := record.Item{Kind: record.Plain, Body: strings.Repeat("b", r.IntN(500)), TS: int64(round), ExpireAt: ends[r.IntN(4)], Version: lastVersion.Add(1)}
			h, e := table.Lookup(id)
			if e == nil {
				_, e = table.Insert(id, it, nil)
				undos = append(undos, undo{e: e, inserted: true})
				continue
			}
			undos = append(undos, undo{e: e, was: *e})
			if r.IntN(3) > 0 {
				table.Replace(h, e, id, it, nil)
				if r.IntN(4) == 0 {
					it.ExpireAt, it.Version = ends[r.IntN(4)], lastVersion.Add(1)
					table.Overwrite(h, e, id, it, nil)
				}
			}
			if r.IntN(3) == 0 {
				table.Remove(e)
				removed = append(removed, e)
			}
		}
		if r.IntN(2) == 0 {
			for i := len(undos) - 1; i >= 0; i-- {
				if u := undos[i]; u.inserted {
					table.Remove(u.e)
					table.Release(u.e)
				} else {
					table.Restore(u.e, &u.was)
				}
			}
			if got := stateOf(table, shard); fmt.Sprint(got) != fmt.Sprint(before) {
				t.Fatalf("round %d: restored\n%v\nwant\n%v", round, got, before)
			}
		} else {
			for _, u := range undos {
				if !u.inserted {
					table.FreeReplaced(u.e, &u.was)
				}
			}
			for _, e := range removed {
				table.Release(e)
			}
		}
		shard.Clean()
		if err := shard.Check(); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
	}
}

// TestEncodedRecord: the key and the record of an inserted item are those that package record writes, also
// with the longest id.
func TestEncodedRecord(t *testing.T) {
	t.Parallel()
	table, _ := newTestTable()
	for _, id := range []string{"a", "", strings.Repeat("x", record.MaxIDLength)} {
		it := record.Item{Kind: record.Document, Body: `{"a":1}`, TS: 1_700_000_000_000, ExpireAt: expiry.Never, Version: 1 << 62}
		key := string(record.AppendKey(nil, 7, id))
		rec := string(record.Append(nil, key, it))
		_, e := table.Insert(id, it, nil)
		if gotKey, gotRec, _ := table.KeyAndRecord(e); gotKey != key || gotRec != rec {
			t.Errorf("%.20q and %q, want %.20q and %q", gotKey, gotRec, key, rec)
		}
		if got := table.Item(e); got != it || table.ID(e) != id {
			t.Errorf("%.20q is %+v, want %.20q, %+v", table.ID(e), got, id, it)
		}
	}
}
