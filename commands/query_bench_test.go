package commands

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/commands/engine"
	"mayfly/keyspace"
	"mayfly/test/drill"
)

// BenchmarkQuery measures queries and indexed writes in the engine, without sockets, over 100,000 documents
// in 16 partitions.
func BenchmarkQuery(b *testing.B) {
	const n = 100_000
	document := func(i, status, total, customer int) string {
		return fmt.Sprintf(`{"id":%d,"status":"s%d","total":%d,"customer":"c-%05d","note":"%0200d"}`, i, status, total, customer, i)
	}
	fill := func(b *testing.B, indexes ...string) (*engine.Engine, *engine.Session) {
		e := newBenchEngine(b)
		s := engine.NewSession(1, "", "", 0)
		lsn := keyspace.LSN(0)
		do := func(args ...string) { lsn = max(lsn, e.Execute(s, args).LSN) }
		do("CONTAINER.SET", "q", "TTL", "3600")
		for _, path := range indexes {
			do("INDEX.CREATE", "q", path)
		}
		for i := range n {
			if do("DOC.PUT", "q", fmt.Sprint("id-", i), document(i, i%5, i, i/10)); i%64 == 0 {
				drill.Check(b, e.CommitNow(lsn, 0))
			}
		}
		e.Keyspace().BuildIndexes()
		return e, s
	}
	run := func(b *testing.B, e *engine.Engine, s *engine.Session, args func() []string) {
		lsn := keyspace.LSN(0)
		b.ReportAllocs()
		for n := 1; b.Loop(); n++ {
			out := e.Execute(s, args())
			if out.Reply.Kind == engine.KindError {
				b.Fatal(out.Reply.Str)
			}
			if lsn = max(lsn, out.LSN); n%16 == 0 {
				drill.Check(b, e.CommitNow(lsn, 0))
			}
		}
	}
	e, s := fill(b, "/status", "/total", "/customer")
	for _, bb := range []struct{ name, query string }{
		{"equality of 10 rows", "WHERE customer = 'c-00123'"},
		{"range, 10 in order", "WHERE total > 5000 ORDER BY total LIMIT 10"},
		{"range, 1000 in order", "WHERE total > 5000 ORDER BY total LIMIT 1000"},
		{"count 10,000 of a range", "SELECT VALUE COUNT(1) WHERE total >= 5000 AND total < 15000"},
		{"count by a scan", "SELECT VALUE COUNT(1) WHERE note = 'x'"},
		{"rows by a scan", "SELECT VALUE id WHERE note = 'x'"},
		{"count all by a scan", "SELECT VALUE COUNT(1)"},
		{"10 next to die", "SELECT _id ORDER BY _expiresat LIMIT 10"},
		{"count of ends", "SELECT VALUE COUNT(1) WHERE _ttlleft < 10000"},
	} {
		b.Run(bb.name, func(b *testing.B) {
			run(b, e, s, func() []string { return []string{"DOC.QUERY", "q", bb.query} })
		})
	}
	for _, indexes := range [][]string{nil, {"/total"}, {"/status", "/total", "/customer"}} {
		e, s := fill(b, indexes...)
		for _, change := range []string{"nothing", "one", "all"} {
			b.Run(fmt.Sprintf("put/%d indexes, %s changes", len(indexes), change), func(b *testing.B) {
				ids, docs := make([]string, 4096), make([]string, 4096)
				for k := range docs {
					i := rand.IntN(n)
					status, total, customer := i%5, i, i/10
					switch change {
					case "one":
						total = rand.IntN(n)
					case "all":
						status, total, customer = rand.IntN(5), rand.IntN(n), rand.IntN(n)
					}
					ids[k], docs[k] = fmt.Sprint("id-", i), document(i, status, total, customer)
				}
				k := 0
				run(b, e, s, func() []string {
					k++
					return []string{"DOC.PUT", "q", ids[k%4096], docs[k%4096]}
				})
			})
		}
	}
}
