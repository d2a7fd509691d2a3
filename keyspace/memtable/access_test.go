package memtable

import (
	"fmt"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	_ "mayfly/test/drill" // its flags
)

// TestAccess sets words beside entries, of which some are released and their places reused.
func TestAccess(t *testing.T) {
	t.Parallel()
	s := &Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	var table Table
	table.Init(s, 1)
	handles := make(map[Handle]uint32)
	insert := func(i int) {
		h, _ := table.Insert(fmt.Sprint(i), record.Item{Body: "{}", ExpireAt: expiry.Never, Version: uint64(i + 1)}, nil)
		if word := table.Access(h); word != 0 {
			t.Fatalf("a new entry has the word %d", word)
		}
		handles[h] = uint32(i)
	}
	const n = 1000
	for i := range n {
		insert(i)
	}
	if table.slab.access != nil {
		t.Error("words take memory before one is set")
	}
	for h, i := range handles {
		if i%2 == 0 {
			table.SetAccess(h, i+1)
		}
	}
	for h, i := range handles {
		if want := (i + 1) * (1 - i%2); table.Access(h) != want {
			t.Fatalf("item %d has the word %d", i, table.Access(h))
		}
		if i%3 == 0 || i > n/2 { // whole blocks are freed
			table.Unload(table.slab.at(h))
			delete(handles, h)
		}
	}
	for i := n; i < 2*n; i++ {
		insert(i)
	}
	table.DropAccess()
	for h := range handles {
		if table.Access(h) != 0 {
			t.Fatal("a word is left")
		}
	}
}
