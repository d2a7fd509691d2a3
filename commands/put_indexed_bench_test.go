package commands

import (
	"fmt"
	"syscall"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// BenchmarkPutIndexed overwrites 200,000 documents of 285 bytes one after the other, without and with
// indexes. Sixteen commands share a commit. cpu-ns/op is the processor time of the whole process. The targets
// are ratios to the time without indexes: with one and three indexes 1.15 and 1.3 if nothing indexed changes,
// 1.5 if one of three does, 1.6 and 2.5 if all do.
func BenchmarkPutIndexed(b *testing.B) {
	const documents = 200_000
	paths := []string{"/total", "/customer", "/token"}
	for _, c := range []struct {
		name     string
		indexes  int
		changing func(i, version int) (customer, total, token, note int)
	}{
		{"no index", 0, func(i, v int) (int, int, int, int) { return i + v, i + v, i + v*1_000_000_000, 0 }},
		{"one index, nothing indexed changes", 1, func(i, v int) (int, int, int, int) { return i, i, i, v }},
		{"one index, it changes", 1, func(i, v int) (int, int, int, int) { return i + v, i + v, i + v*1_000_000_000, 0 }},
		{"three indexes, nothing indexed changes", 3, func(i, v int) (int, int, int, int) { return i, i, i, v }},
		{"three indexes, one changes", 3, func(i, v int) (int, int, int, int) { return i, i + v, i, 0 }},
		{"three indexes, all change", 3, func(i, v int) (int, int, int, int) { return i + v, i + v, i + v*1_000_000_000, 0 }},
	} {
		b.Run(c.name, func(b *testing.B) {
			e := newBenchEngine(b)
			s, lsn, buf := engine.NewSession(1, "", "", 0), keyspace.LSN(0), []byte(nil)
			put := func(i, version int) {
				customer, total, token, note := c.changing(i%documents, version)
				buf = fmt.Appendf(buf[:0], `{"id":%d,"customer":"c-%05d","total":%d.%02d,"token":"t-%022d","note":"`, i%documents, customer%99991, total%900, total%100, token)
				for len(buf) < 283 {
					buf = append(buf, "lorem ipsum dolor sit amet "[(note+len(buf))%27])
				}
				buf = append(buf, `"}`...)
				lsn = max(lsn, e.Execute(s, []string{"DOC.PUT", "orders", fmt.Sprintf("doc:%012d", i%documents), string(buf)}).LSN)
				if i%16 == 0 {
					drill.Check(b, e.CommitNow(lsn, 0))
				}
			}
			for _, path := range paths[:c.indexes] {
				e.Execute(s, []string{"INDEX.CREATE", "orders", path})
			}
			e.Keyspace().BuildIndexes()
			for i := range documents {
				put(i, 0)
			}
			b.ReportAllocs()
			before := cpuTime(b)
			for i := documents; b.Loop(); i++ {
				put(i, i/documents%2)
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime returns the processor time that the process has taken, in ns.
func cpuTime(b *testing.B) int64 {
	var u syscall.Rusage
	drill.Check(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}
