package keyspace

import (
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/query"
)

// TestTouchReadsNoIndexedBody: a write that leaves the body as it is does not read it for the indexes, unless one is over
// the time of the write.
func TestTouchReadsNoIndexedBody(t *testing.T) {
	o := open(t)
	o.policy("orders", expiry.Forever)
	o.createIndex("orders", false, "/status")
	o.put("orders", "1", `{"status":"open"}`, expiry.Inherit)
	indexed := func() *indexedTable {
		var tx Tx
		o.BeginKey(&tx, "1")
		defer tx.Close()
		return tx.Container("orders").tables[o.partitionOf("1").number].indexed
	}
	was := indexed().was.Load(`{"status":"not read"}`, 0)
	o.touch("orders", "1", o.clock.Now()+100_000)
	if k, _ := index.KeyOf(query.StringValue("not read")); !was.Keys(0, nil)[0].Equal(&k) {
		t.Error("a touch has read the former body")
	}

	o.createIndex("orders", false, "/_ts")
	for range 3 {
		o.clock.Advance(time.Second)
		o.touch("orders", "1", o.clock.Now()+100_000)
		k, _ := index.KeyOf(query.NumberValue(float64(o.clock.Now() / 1000)))
		tree := indexed().trees[1]
		if _, ok := tree.Range(&index.Bound{Key: k}, &index.Bound{Key: k, After: true}, false); !ok || tree.Len() != 1 {
			t.Errorf("the index over the time of the write has %d entries, of the last write: %t", tree.Len(), ok)
		}
	}
}
