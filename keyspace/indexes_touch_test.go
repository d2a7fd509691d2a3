package keyspace

import (
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/index"
	"mayfly/query"
)

// TestTouchMovesTimes: a write that leaves the body as it is moves the item in an index over the time of the
// write.
func TestTouchMovesTimes(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("orders", expiry.Forever)
	o.createIndex("orders", false, "/_ts")
	o.put("orders", "1", `{"status":"open"}`, expiry.Inherit)
	var tree *index.Tree
	o.catalogueTx(func(tx *Tx) {
		c := tx.Container("orders")
		tree = c.tables[o.partitionOf("1").Number].Indexed.Tree(c.Indexes()[0])
	})
	for range 3 {
		o.clock.Advance(time.Second)
		o.touch("orders", "1", o.clock.Now()+100_000)
		k, _ := index.KeyOf(query.NumberValue(float64(o.clock.Now() / 1000)))
		if _, ok := tree.Range(&index.Bound{Key: k}, &index.Bound{Key: k, After: true}, false); !ok || tree.Len() != 1 {
			t.Errorf("the index over the time of the write has %d entries, of the last write: %t", tree.Len(), ok)
		}
	}
}
