package keyspace

import (
	"fmt"
	"testing"

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
