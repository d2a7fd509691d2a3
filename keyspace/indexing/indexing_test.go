package indexing

import (
	"fmt"
	"testing"

	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
)

// TestIndexesThatThisVersionDoesNotKnow: a record with such an index opens without it.
func TestIndexesThatThisVersionDoesNotKnow(t *testing.T) {
	set := FromRecord([][]string{{"/a"}, {"status"}, {}, {"/b", "geo"}, {"/c", "fulltext"}})
	if got := fmt.Sprint(set.Recorded()); got != "[[/a] [/b geo]]" {
		t.Error(got)
	}
}

// TestTouchReadsNoIndexedBody: a write that leaves the body as it is does not read it.
func TestTouchReadsNoIndexedBody(t *testing.T) {
	shard := memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	var items memtable.Table
	items.Init(&shard, 1)
	set := FromRecord([][]string{{"/status"}})
	x := Observe(&items, nil, set)
	it := record.Item{Kind: record.Document, Body: `{"status":"open"}`, TS: 1, Version: 1}
	h, e := items.Insert("1", it, nil)
	const other = `{"status":"not read"}`
	want := index.NewReader(set.definitions).Load(other, 0).Keys(0, nil)
	x.was.Load(other, 0)
	it.TS, it.Version = 2, 2
	items.Replace(h, e, "1", it, nil)
	if got := x.was.Keys(0, nil); len(got) != 1 || !got[0].Equal(&want[0]) {
		t.Error("a touch has read the former body")
	}
}
