package memtable

import (
	"fmt"
	"testing"

	"mayfly/expiry"
)

// TestPrefetcher: a prefetcher reads present and missing ids of several tables, changes nothing and keeps
// nothing.
func TestPrefetcher(t *testing.T) {
	t.Parallel()
	full, shard := newTestTable()
	empty, _ := newTestTable()
	want := make(map[string]uint64)
	for i := range 1000 {
		id := fmt.Sprint(i)
		want[id] = putEnd(full, shard, id, expiry.Never).version
	}
	var p Prefetcher
	p.Run(384)
	for range 2 {
		for i := range 2000 {
			p.Add(full, fmt.Sprint(i))
			p.Add(empty, fmt.Sprint(i))
		}
		p.Run(384)
		if len(p.lookups) != 2000 || p.lookups[1999].e != nil || p.lookups[7].e != full.Find("7") {
			t.Fatalf("%d look-ups, the last found %v", len(p.lookups), p.lookups[1999].e)
		}
		p.Reset()
		if len(p.lookups) != 0 || p.lookups[:cap(p.lookups)][0] != (lookup{}) {
			t.Error("Reset keeps references")
		}
	}
	checkAgainst(t, full, want)
}
