package keyspace

import (
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// benchItems are keys and records for a table, and their ids.
func benchItems(t *table, n int) (ids, keys, recs []string, it Item) {
	it = Item{Kind: Document, Body: benchBody, TS: 1, ExpireAt: expiry.OwnEnd(1, 3600), Version: 1}
	ids = benchIDs(n)
	for _, id := range ids {
		key := string(record.AppendKey(nil, t.number, id))
		keys, recs = append(keys, key), append(recs, string(record.Append(nil, key, it)))
	}
	return ids, keys, recs, it
}

const benchTableSize = 1 << 20

// benchTable is a table that is full of them.
func benchTable(b *testing.B) (t *table, p *partition, ids, keys, recs []string, it Item) {
	t, p = newTestTable()
	ids, keys, recs, it = benchItems(t, benchTableSize)
	for i := range keys {
		t.insert(keys[i], recs[i], it)
	}
	b.ReportAllocs()
	return
}

// at spreads the iterations of a benchmark over all items.
func at(i int) int { return i * 7919 % benchTableSize }

func BenchmarkTableFind(b *testing.B) {
	t, _, ids, _, _, _ := benchTable(b)
	for i := 0; b.Loop(); i++ {
		if t.find(ids[at(i)]) == nil {
			b.Fatal("missing")
		}
	}
}

func BenchmarkTableMiss(b *testing.B) {
	t, _, ids, _, _, _ := benchTable(b)
	missing := make([]string, len(ids))
	for i, id := range ids {
		missing[i] = id + "-"
	}
	for i := 0; b.Loop(); i++ {
		if t.find(missing[at(i)]) != nil {
			b.Fatal("found")
		}
	}
}

func BenchmarkTableReplace(b *testing.B) {
	t, _, ids, keys, recs, it := benchTable(b)
	for i := 0; b.Loop(); i++ {
		n := at(i)
		t.put(ids[n], keys[n], recs[n], it)
		t.p.tidy()
	}
}

// BenchmarkTableInsert fills tables: growth is part of it.
func BenchmarkTableInsert(b *testing.B) {
	t, p := newTestTable()
	_, keys, recs, it := benchItems(t, benchTableSize)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		n := i % benchTableSize
		if n == 0 {
			t = newTable(7, p)
		}
		t.insert(keys[n], recs[n], it)
	}
}

// BenchmarkTableRemove removes an item and puts it back.
func BenchmarkTableRemove(b *testing.B) {
	t, p, ids, keys, recs, it := benchTable(b)
	for i := 0; b.Loop(); i++ {
		n := at(i)
		e := t.find(ids[n])
		t.remove(e)
		p.forget(t, e)
		p.tidy()
		t.insert(keys[n], recs[n], it)
	}
}
