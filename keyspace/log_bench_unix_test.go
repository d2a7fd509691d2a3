//go:build unix

package keyspace

import (
	"fmt"
	"math"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// logBench is a keyspace with a container c of documents of 285 bytes.
type logBench struct {
	*Keyspace
	clock *clock.Manual
	body  string
}

func newLogBench(b *testing.B, s LogSettings) *logBench {
	l := &logBench{clock: clock.NewManual(epoch), body: `{"text":"` + strings.Repeat("x", 285-len(`{"text":""}`)) + `"}`}
	var err error
	if l.Keyspace, err = Open(Options{Dir: b.TempDir(), Clock: l.clock, NoPurge: true, noCheckpoints: true}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close() })
	var tx Tx
	l.BeginAll(&tx)
	drill.Check(b, tx.SetLog(tx.CreateContainer("c", 10, expiry.Strict), s))
	tx.Close()
	return l
}

func (l *logBench) fill(from, to int) {
	var tx Tx
	for i := from; i < to; i++ {
		id := fmt.Sprint("document-", i)
		l.BeginKey(&tx, id)
		tx.Put(tx.Container("c"), id, Document, l.body, expiry.Inherit)
		tx.Close()
		l.Throttle(0)
	}
}

// die buries everything as the purge does, on one goroutine, and commits it.
func (l *logBench) die() {
	l.clock.Advance(10 * time.Second)
	l.purge.Drain(func() bool { return false })
	l.CommitNow(l.journal.Last())
}

// BenchmarkBurial measures a death with and without a log: its time, with the commit, and its bytes in the
// journal beyond the body.
func BenchmarkBurial(b *testing.B) {
	for _, c := range []struct {
		name string
		LogSettings
	}{{"none", LogSettings{}}, {"bodies", anHour}, {"nobodies", LogSettings{Seconds: 3600, MaxLen: math.MaxInt32}}} {
		b.Run(c.name, func(b *testing.B) {
			const n = 100_000
			l := newLogBench(b, c.LogSettings)
			var took, cpu time.Duration
			written, deaths := int64(0), 0
			for b.Loop() {
				b.StopTimer()
				l.fill(0, n)
				l.CommitNow(l.journal.Last())
				runtime.GC()
				before := l.Stats().JournalBytes
				begin, used := time.Now(), cpuTime()
				b.StartTimer()
				l.die()
				b.StopTimer()
				took += time.Since(begin)
				cpu += cpuTime() - used
				written += l.Stats().JournalBytes - before
				deaths += n
				b.StartTimer()
			}
			b.ReportMetric(float64(cpu.Nanoseconds())/float64(deaths), "cpu-ns/death")
			b.ReportMetric(float64(took.Nanoseconds())/float64(deaths), "ns/death")
			b.ReportMetric(float64(written)/float64(deaths), "journal-B/death")
		})
	}
}

// BenchmarkLogMemory reports how many bytes an entry of the log takes beyond the item that died: as
// used_memory counts, and of the heap.
func BenchmarkLogMemory(b *testing.B) {
	const n = 500_000
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	for b.Loop() {
		l := newLogBench(b, anHour)
		empty, none := heap(), l.Used()
		l.fill(0, n)
		l.CommitNow(l.journal.Last())
		items, used := heap()-empty, l.Used()-none
		l.die()
		l.Clean()
		entries, usedEntries := heap()-empty, l.Used()-none
		b.ReportMetric(float64(used)/n, "used-B/item")
		b.ReportMetric(float64(usedEntries-used)/n, "used-B-more/entry")
		b.ReportMetric(float64(items)/n, "heap-B/item")
		b.ReportMetric(float64(entries-items)/n, "heap-B-more/entry")
	}
}

// BenchmarkLogRange reads 100 entries of a log of 1,000,000, from the front, the middle and the tip.
func BenchmarkLogRange(b *testing.B) {
	const n = 1_000_000
	l := newLogBench(b, anHour)
	for i := range 100 {
		l.fill(i*n/100, (i+1)*n/100)
		l.die()
	}
	var ids []streamid.ID
	var tx Tx
	l.BeginNone(&tx)
	tx.Deaths(tx.Container("c")).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		ids = append(ids, e.ID)
		return true
	})
	tx.Close()
	for _, at := range []struct {
		name string
		from int
	}{{"front", 0}, {"middle", len(ids) / 2}, {"tip", len(ids) - 100}} {
		b.Run(at.name, func(b *testing.B) {
			sum := 0
			for b.Loop() {
				l.BeginNone(&tx)
				count := 0
				tx.Deaths(tx.Container("c")).Range(ids[at.from], streamid.Max, false, func(e deathlog.Entry) bool {
					count++
					sum += len(e.Body)
					return count < 100
				})
				tx.Close()
			}
		})
	}
	b.Run("newest", func(b *testing.B) {
		i := 0
		for b.Loop() {
			id := fmt.Sprint("document-", i%n)
			l.BeginKey(&tx, id)
			if _, ok := tx.Deaths(tx.Container("c")).Newest(id); !ok {
				b.Fatal(id)
			}
			tx.Close()
			i += 7919
		}
	})
}

// cpuTime returns the processor time of the process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
