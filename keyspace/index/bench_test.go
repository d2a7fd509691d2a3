package index

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"

	"mayfly/query"
	_ "mayfly/test/drill" // its flags
)

// BenchmarkTree measures an insert into, and the memory of, a tree of 65,536 items: a partition of a million
// documents. Ids are as load tests make them.
func BenchmarkTree(b *testing.B) {
	const n = 1 << 16
	ids := []string{""}
	for i := range n {
		ids = append(ids, fmt.Sprintf("order-%09d", i*7919%n))
	}
	status := []string{"open", "paid", "shipped", "cancelled", "in progress"}
	for _, tt := range []struct {
		name  string
		value func(i int) query.Value
	}{
		{"number", func(i int) query.Value { return query.NumberValue(rand.Float64()) }},
		{"five strings", func(i int) query.Value { return query.StringValue(status[rand.IntN(len(status))]) }},
		{"unique 24 bytes", func(i int) query.Value { return query.StringValue(fmt.Sprintf("customer-%015d", rand.IntN(1e9))) }},
	} {
		b.Run(tt.name, func(b *testing.B) {
			values := make([]Key, n+1)
			for i := range values {
				values[i], _ = KeyOf(tt.value(i))
			}
			var before, after runtime.MemStats
			runtime.GC()
			runtime.ReadMemStats(&before)
			tree := New(func(h uint32) string { return ids[h] })
			for b.Loop() {
				tree = New(func(h uint32) string { return ids[h] })
				for i := 1; i <= n; i++ {
					tree.Add(values[i], uint32(i))
				}
			}
			runtime.GC()
			runtime.ReadMemStats(&after)
			runtime.KeepAlive(values)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/item")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/item")
			b.ReportMetric(float64(tree.Bytes())/n, "counted-B/item")
		})
	}
}
