package keyspace

import (
	"maps"
	"slices"
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
	containers := slices.Repeat([]string{"0"}, depth)
	for name, warm := range map[string]bool{"cold": false, "warm": true} {
		b.Run(name, func(b *testing.B) {
			var w Prefetcher
			pipeline := make([]string, depth)
			b.ReportAllocs()
			next := 0
			for b.Loop() {
				for i := range pipeline {
					next = (next + 791_909) % len(ids)
					pipeline[i] = ids[next]
				}
				if warm {
					w.Prefetch(ks, containers, pipeline)
				}
				for _, id := range pipeline {
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
	o.clock.Advance(11e9)
	before := o.dump()
	p := o.partitionOf("locked")
	p.Mu.Lock()
	var w Prefetcher
	for range 3 {
		w.Prefetch(o.Keyspace, nil, nil)
		w.Prefetch(o.Keyspace, []string{"0", "0", "1", "none", "0", "0"}, []string{"lives", "dead", "", "lives", "missing", "locked"})
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
