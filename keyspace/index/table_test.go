package index

import (
	"fmt"
	"testing"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// TestIndexesThatThisVersionDoesNotKnow: a record with such an index opens without it.
func TestIndexesThatThisVersionDoesNotKnow(t *testing.T) {
	t.Parallel()
	set := FromRecord([][]string{{"/a"}, {"status"}, {}, {"/b", "geo"}, {"/c", "fulltext"}})
	if got := fmt.Sprint(set.Recorded()); got != "[[/a] [/b geo]]" {
		t.Error(got)
	}
}

// TestTouchReadsNoIndexedBody: a write that leaves the body as it is does not read it.
func TestTouchReadsNoIndexedBody(t *testing.T) {
	t.Parallel()
	shard := memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	var items memtable.Table
	items.Init(&shard, 1)
	set := FromRecord([][]string{{"/status"}})
	x := Observe(&items, nil, set)
	it := record.Item{Kind: record.Document, Body: `{"status":"open"}`, TS: 1, Version: 1}
	h, e := items.Insert("1", it, nil)
	const other = `{"status":"not read"}`
	want := NewReader(set.definitions).Load(other, 0).Keys(0, nil)
	x.was.Load(other, 0)
	it.TS, it.Version = 2, 2
	items.Replace(h, e, "1", it, nil)
	if got := x.was.Keys(0, nil); len(got) != 1 || !got[0].Equal(&want[0]) {
		t.Error("a touch has read the former body")
	}
}

// TestBecome: indexes whose definition stays are the same, with their trees, and a set with the same indexes
// is the same.
func TestBecome(t *testing.T) {
	t.Parallel()
	var none *Set
	if none.Become(nil) != nil {
		t.Error("no indexes become some")
	}
	set := none.Become([][]string{{"/a"}, {"/b"}})
	if got := fmt.Sprint(set.Recorded()); got != "[[/a] [/b]]" {
		t.Fatal(got)
	}
	if set.Become(set.Recorded()) != set {
		t.Error("a set with the same indexes is another")
	}
	next := set.Become([][]string{{"/b"}, {"/c"}})
	if got := fmt.Sprint(next.Recorded()); got != "[[/b] [/c]]" || next.List()[0] != set.List()[1] || len(next.definitions) != 2 {
		t.Errorf("the set is %s", got)
	}
	if next.Become(nil) != nil {
		t.Error("indexes are left")
	}
}

// TestMarkBuilt: an index is ready once the trees of all tables have their items.
func TestMarkBuilt(t *testing.T) {
	t.Parallel()
	shard := memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	var empty, items memtable.Table
	empty.Init(&shard, 1)
	items.Init(&shard, 2)
	items.Insert("1", record.Item{Kind: record.Document, Body: `{"a":1}`, TS: 1, Version: 1}, nil)
	set := FromRecord([][]string{{"/a"}})
	list := []*Table{Observe(&empty, nil, set), Observe(&items, nil, set)}
	if !set.MarkBuilt(list) || set.List()[0].Ready() {
		t.Error("an index is ready that is not built")
	}
	list[1].BuildAll()
	if set.MarkBuilt(list) || !set.List()[0].Ready() {
		t.Error("an index is not ready that is built")
	}
}
