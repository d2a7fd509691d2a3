package keyspace

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/test/drill"
)

// benchBody is a document of 285 bytes.
var benchBody = `{"v":"` + strings.Repeat("x", 277) + `"}`

func openBench(b *testing.B) *Keyspace {
	b.Helper()
	ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true})
	drill.Check(b, err)
	b.Cleanup(func() { ks.Close() })
	return ks
}

func benchIDs(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprintf("key:%012d", i)
	}
	return ids
}

func benchPut(ks *Keyspace, tx *Tx, id string) LSN {
	ks.BeginKey(tx, id)
	tx.Put(tx.Container("0"), id, Document, benchBody, expiry.ExpireAt(tx.Now(), 3600))
	return tx.Close()
}

// BenchmarkPut overwrites 100,000 ids and commits once in sixteen writes, as a pipeline does.
func BenchmarkPut(b *testing.B) {
	ks, ids := openBench(b), benchIDs(100_000)
	var tx Tx
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		lsn := benchPut(ks, &tx, ids[i*7919%len(ids)])
		if i%16 == 15 {
			drill.Check(b, ks.Wait(lsn))
		}
	}
}

func BenchmarkGet(b *testing.B) {
	ks, ids := openBench(b), benchIDs(100_000)
	var tx Tx
	for _, id := range ids {
		benchPut(ks, &tx, id)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		id := ids[i*7919%len(ids)]
		ks.BeginKey(&tx, id)
		if _, ok := tx.Get(tx.Container("0"), id); !ok {
			b.Fatal("missing")
		}
		tx.Close()
	}
}

// BenchmarkCheckpoint makes checkpoints after 150,000 writes: overwrites of a million items, or new items
// beside a million. Its ns/write is one write's share.
func BenchmarkCheckpoint(b *testing.B) {
	const n, writes = 1_000_000, 150_000
	for _, fresh := range []bool{false, true} {
		b.Run(map[bool]string{false: "overwritten", true: "new"}[fresh], func(b *testing.B) {
			ks := openBench(b)
			var tx Tx
			put := func(id string) {
				if lsn := benchPut(ks, &tx, id); rand.IntN(100) == 0 {
					ks.Wait(lsn)
				}
			}
			for _, id := range benchIDs(n) {
				put(id)
			}
			drill.Check(b, ks.Save())
			b.ReportAllocs()
			next := n
			for b.Loop() {
				b.StopTimer()
				for range writes {
					id := fmt.Sprintf("key:%012d", rand.IntN(n))
					if fresh {
						id = fmt.Sprintf("key:%012d-%d", rand.IntN(n), next)
						next++
					}
					put(id)
				}
				b.StartTimer()
				drill.Check(b, ks.Save())
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/writes, "ns/write")
		})
	}
}

// BenchmarkMemory measures the live heap of a document of 285 bytes with an id of 16 and an end of its own,
// before and after a checkpoint.
func BenchmarkMemory(b *testing.B) {
	const n = 200_000
	heap := func() uint64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	for b.Loop() {
		b.StopTimer()
		ids := benchIDs(n)
		before := heap()
		ks := openBench(b)
		var tx Tx
		for i, id := range ids {
			if lsn := benchPut(ks, &tx, id); i%1000 == 999 {
				ks.Wait(lsn)
			}
		}
		b.ReportMetric(float64(heap()-before)/n, "B/doc-in-journal")
		drill.Check(b, ks.Save())
		b.ReportMetric(float64(heap()-before)/n, "B/doc-stored")
		runtime.KeepAlive(ids)
		b.StartTimer()
	}
}

// BenchmarkSample measures samples of the active purge: one of a pool in which nothing is dead, and the
// removal of one item where many are dead.
func BenchmarkSample(b *testing.B) {
	const n, draws = 100_000, 64
	for _, dead := range []bool{false, true} {
		b.Run(map[bool]string{false: "living", true: "dead"}[dead], func(b *testing.B) {
			clock := clock.NewManual(1)
			ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true, Clock: clock})
			drill.Check(b, err)
			defer ks.Close()
			ids := benchIDs(n)
			var tx Tx
			fill := func() (left int) {
				for i, id := range ids {
					ks.BeginKey(&tx, id)
					end := tx.Now() + int64(n) + 1 // later than the first of all
					if i < 16 || dead {
						end = tx.Now() + 1
					}
					tx.Put(tx.Container("0"), id, Document, benchBody, end)
					if lsn := tx.Close(); i%1000 == 999 {
						ks.Wait(lsn)
					}
				}
				clock.Advance(time.Millisecond)
				return n
			}
			left := fill()
			pools := ks.pools(0, 1024)
			b.ReportAllocs()
			b.ResetTimer()
			for i := 0; i < b.N; {
				if dead && left < len(pools)*draws {
					b.StopTimer()
					left = fill()
					b.StartTimer()
				}
				for _, pool := range pools {
					got := pool.Sample(draws)
					i += max(got.Dead, 1)
					left -= got.Dead
				}
			}
			b.StopTimer() // Close makes a checkpoint
		})
	}
}

// BenchmarkScan visits ten items, as SCAN does by default.
func BenchmarkScan(b *testing.B) {
	ks := openBench(b)
	var tx Tx
	for _, id := range benchIDs(100_000) {
		benchPut(ks, &tx, id)
	}
	b.ReportAllocs()
	cursor, visited := uint64(0), 0
	for b.Loop() {
		ks.BeginSweep(&tx)
		cursor = tx.Scan(tx.Container("0"), cursor, 10, func(string, Item) { visited++ })
		tx.Close()
	}
	b.ReportMetric(float64(visited)/float64(b.N), "items/op")
}
