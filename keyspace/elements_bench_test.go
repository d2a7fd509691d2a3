package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry/clock"
	"mayfly/test/drill"
)

// BenchmarkElements overwrites elements of a hash of 100,000, and commits once in sixteen writes, as a
// pipeline does.
func BenchmarkElements(b *testing.B) {
	const n = 100_000
	ks := openBench(b)
	drill.Check(b, ks.AllowCollections())
	var tx Tx
	fields := make([]string, n)
	ks.BeginKey(&tx, "h")
	x, _ := tx.EditElements(tx.Container("0"), "h", HashKind)
	for i := range fields {
		fields[i] = fmt.Sprintf("field:%06d", i)
	}
	for i := range x.ByPage(fields, 1) {
		x.Set(Element{Field: fields[i], Value: "a value of 20 bytes."})
	}
	x.Close()
	drill.Check(b, ks.Wait(tx.Close()))
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		ks.BeginKey(&tx, "h")
		x, _ := tx.EditElements(tx.Container("0"), "h", HashKind)
		x.Set(Element{Field: fields[i*7919%n], Value: "a value of 20 bytes."})
		x.Close()
		if lsn := tx.Close(); i%16 == 15 {
			drill.Check(b, ks.Wait(lsn))
		}
	}
}

// BenchmarkDeathsOfElements removes fields of a hash that have died, all at once, in one goroutine, as the
// purge does.
func BenchmarkDeathsOfElements(b *testing.B) {
	const n = 100_000
	c := clock.NewManual(epoch)
	ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true, Clock: c})
	drill.Check(b, err)
	defer ks.Close()
	drill.Check(b, ks.AllowCollections())
	for b.Loop() {
		b.StopTimer()
		var tx Tx
		ks.BeginKey(&tx, "h")
		x, _ := tx.EditElements(tx.Container("0"), "h", HashKind)
		fields := make([]string, n)
		for i := range fields {
			fields[i] = fmt.Sprintf("field:%06d", i)
		}
		for i := range x.ByPage(fields, 1) {
			x.Set(Element{Field: fields[i], Value: "a value of 20 bytes.", End: tx.Now() + 1})
		}
		x.Close()
		drill.Check(b, ks.Wait(tx.Close()))
		c.Advance(time.Second)
		b.StartTimer()
		ks.PurgeAll()
	}
	b.ReportMetric(float64(n*b.N)/b.Elapsed().Seconds(), "deaths/s")
	if died := ks.Stats().ExpiredElements; died != int64(n*b.N) {
		b.Errorf("%d fields were removed, not %d", died, n*b.N)
	}
}
