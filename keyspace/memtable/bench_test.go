package memtable

import (
	"fmt"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

const benchTableSize = 1 << 20

// benchItems are ids and encoded records for a table. All records have the same item.
type benchItems struct {
	ids, recs []string
	it        record.Item
}

func newBenchItems(t *Table) benchItems {
	body := `{"v":"` + strings.Repeat("x", 277) + `"}`
	items := benchItems{it: record.Item{Kind: record.Document, Body: body, TS: 1, ExpireAt: expiry.ExpireAt(1, 3600), Version: 1}}
	for i := range benchTableSize {
		id := fmt.Sprintf("key:%012d", i)
		key := string(record.AppendKey(nil, t.number, id))
		items.ids, items.recs = append(items.ids, id), append(items.recs, string(record.Append(nil, key, items.it)))
	}
	return items
}

// insertEncoded inserts an item whose record is encoded already.
func (t *Table) insertEncoded(id, rec string, it record.Item) {
	h, e := t.slab.alloc()
	t.insert(h, e, id, it, t.copyIn(h, id, rec, it), len(rec))
}

// newBenchTable returns a full table.
func newBenchTable(b *testing.B) (*Table, *Shard, benchItems) {
	t, s := newTestTable()
	items := newBenchItems(t)
	for i, id := range items.ids {
		t.insertEncoded(id, items.recs[i], items.it)
	}
	b.ReportAllocs()
	return t, s, items
}

// spread spreads the iterations of a benchmark over all items.
func spread(i int) int { return i * 7919 % benchTableSize }

func BenchmarkTableFind(b *testing.B) {
	t, _, items := newBenchTable(b)
	for i := 0; b.Loop(); i++ {
		if t.Find(items.ids[spread(i)]) == nil {
			b.Fatal("missing")
		}
	}
}

func BenchmarkTableMiss(b *testing.B) {
	t, _, items := newBenchTable(b)
	missing := make([]string, benchTableSize)
	for i, id := range items.ids {
		missing[i] = id + "-"
	}
	for i := 0; b.Loop(); i++ {
		if t.Find(missing[spread(i)]) != nil {
			b.Fatal("found")
		}
	}
}

// BenchmarkTableReplace overwrites items with encoded records.
func BenchmarkTableReplace(b *testing.B) {
	t, s, items := newBenchTable(b)
	for i := 0; b.Loop(); i++ {
		n := spread(i)
		t.Load(items.ids[n], items.recs[n], items.it)
		s.Clean()
	}
}

// BenchmarkTableEncode overwrites items whose records it encodes.
func BenchmarkTableEncode(b *testing.B) {
	t, s, items := newBenchTable(b)
	for i := 0; b.Loop(); i++ {
		id := items.ids[spread(i)]
		h, e := t.Lookup(id)
		t.Overwrite(h, e, id, items.it, nil)
		s.Clean()
	}
}

// BenchmarkTableInsert fills tables, growth included.
func BenchmarkTableInsert(b *testing.B) {
	t, s := newTestTable()
	items := newBenchItems(t)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % benchTableSize
		if n == 0 {
			t = new(Table)
			t.Init(s, 7)
		}
		t.insertEncoded(items.ids[n], items.recs[n], items.it)
	}
}

// BenchmarkTableRemove removes an item and puts it back.
func BenchmarkTableRemove(b *testing.B) {
	t, s, items := newBenchTable(b)
	for i := 0; b.Loop(); i++ {
		n := spread(i)
		e := t.Find(items.ids[n])
		t.Remove(e)
		t.Release(e)
		s.Clean()
		t.insertEncoded(items.ids[n], items.recs[n], items.it)
	}
}
