package liveness

import (
	"strings"
	"sync"
	"testing"

	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/store"
	_ "mayfly/test/drill" // its flags
)

// TestTouchedItemInIncompleteStore: a store that lacks what a failed checkpoint has captured may have several headers of a
// large item. No compaction leaves the last of them out: no journal may have it any more.
func TestTouchedItemInIncompleteStore(t *testing.T) {
	t.Parallel()
	shard := &memtable.Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	table := new(memtable.Table)
	table.Init(shard, 7)
	it := record.Item{Kind: record.Document, Body: `{"a":"` + strings.Repeat("x", 2*memtable.LargeBody) + `"}`, TS: 1000, Version: 1}
	key := string(record.AppendKey(nil, 7, "k"))
	var sets []store.Candidate
	stored := func() {
		sets = append(sets, store.Candidate{Key: []byte(key), Rec: record.Append(nil, key, it)})
	}
	table.Insert("k", it, nil)
	stored()
	it.TS, it.Version = 2000, 2 // touched, and stored again
	h, e := table.Lookup("k")
	table.Overwrite(h, e, "k", table.Item(e).Touched(it), nil)
	stored()
	shard.BeginCapture()
	shard.Capture(10, func(string, string, string) {})

	f := New(Options{Lock: new(sync.Mutex), Shard: shard, Incomplete: true})
	if err := f.Mark(sets); err != nil {
		t.Fatal(err)
	}
	if !sets[1].Live {
		t.Error("the last header of a touched item is left out")
	}
}
