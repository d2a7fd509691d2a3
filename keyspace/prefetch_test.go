package keyspace

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// BenchmarkGets reads pipelines of 16 ids of a million, prefetched or not. Its time is that of a pipeline.
func BenchmarkGets(b *testing.B) {
	const depth = 16
	ks, ids := openBench(b), benchIDs(1_000_000)
	var tx Tx
	for i, id := range ids {
		if lsn := benchPut(ks, &tx, id); i%1000 == 0 {
			drill.Check(b, ks.Wait(lsn))
		}
	}
	for name, warm := range map[string]bool{"cold": false, "warm": true} {
		b.Run(name, func(b *testing.B) {
			var w Prefetcher
			pipeline := make([]Lookup, depth)
			b.ReportAllocs()
			next := 0
			for b.Loop() {
				for i := range pipeline {
					next = (next + 791_909) % len(ids)
					pipeline[i] = Lookup{Container: "0", ID: ids[next]}
				}
				if warm {
					w.Prefetch(ks, pipeline)
				}
				for i := range pipeline {
					id := pipeline[i].ID
					ks.BeginKey(&tx, id)
					if it, ok := tx.Get(tx.Container("0"), id); !ok || it.Body[len(it.Body)-1] != '}' {
						b.Fatal("missing")
					}
					tx.Close()
				}
			}
		})
	}
}

// TestPrefetchOnlyReads: prefetching changes nothing, whatever the ids, the containers and the locks are.
func TestPrefetchOnlyReads(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "lives", `{"a":1}`, expiry.Never)
	o.putFor("0", "dead", 10)
	o.putFor("1", "", 10)
	var tx Tx
	o.BeginAll(&tx)
	hash, _ := tx.EditElements(tx.Container("0"), "hash", HashKind)
	for i := range 1000 {
		hash.Set(Element{Field: fmt.Sprint(i), Value: "value"})
	}
	hash.Close()
	list, _ := tx.EditList(tx.Container("0"), "list")
	list.Push(false, strings.Repeat("x", 2000))
	list.Close()
	tx.Close()
	o.clock.Advance(11e9)
	before := o.dump()
	p := o.partitionOf("locked")
	p.Mu.Lock()
	var w Prefetcher
	for range 3 {
		w.Prefetch(o.Keyspace, nil)
		w.Prefetch(o.Keyspace, []Lookup{{"0", "lives", "f"}, {"0", "dead", ""}, {"1", "", "f"}, {"none", "lives", ""}, {"0", "missing", "f"},
			{"0", "locked", "f"}, {"0", "hash", "7"}, {"0", "hash", "none"}, {"0", "list", "f"}})
	}
	p.Mu.Unlock()
	for _, p := range o.partitions {
		if !p.Mu.TryLock() {
			t.Fatalf("partition %d is kept", p.Number)
		}
		p.Mu.Unlock()
	}
	if after := o.dump(); !maps.Equal(before, after) {
		t.Errorf("there was %v, now there is %v", before, after)
	}
}
