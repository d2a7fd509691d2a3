package keyspace

import (
	"fmt"
	"math"
	"os"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/foresight"
	"mayfly/keyspace/record"
	"mayfly/keyspace/selection"
	"mayfly/test/drill"
)

// BenchmarkForesight measures what tells the future of a million documents of 285 bytes in 16 partitions,
// which were written 100 in a ms. A third has an end of its own. MAYFLY_BENCH_ITEMS chooses another number.
func BenchmarkForesight(b *testing.B) {
	n := 1_000_000
	if text := os.Getenv("MAYFLY_BENCH_ITEMS"); text != "" {
		if _, err := fmt.Sscan(text, &n); err != nil {
			b.Fatal(err)
		}
	}
	clk := clock.NewManual(epoch)
	ks, err := Open(Options{Dir: b.TempDir(), NoPurge: true, Clock: clk})
	drill.Check(b, err)
	b.Cleanup(func() { ks.Close() })
	var tx Tx
	ks.BeginAll(&tx)
	c := tx.CreateContainer("orders", 86400, expiry.Strict)
	tx.Close()
	for i, id := range benchIDs(n) {
		if i%100 == 0 {
			clk.Advance(time.Millisecond)
		}
		ks.BeginKey(&tx, id)
		own := expiry.Inherit
		if i%3 == 0 {
			own = tx.Now() + 86_000_000
		}
		tx.Put(c, id, Document, benchBody, own)
		if lsn := tx.Close(); i%1000 == 0 {
			drill.Check(b, ks.Wait(lsn))
		}
	}
	clk.Advance(2 * time.Hour)
	always := func(int) bool { return true }

	tally := func(name string, tally func() foresight.Tally) {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				ks.BeginSweep(&tx)
				tx.Tally(c, tally(), always)
				tx.Close()
			}
		})
	}
	tally("PLAN kills two thirds", func() foresight.Tally { return foresight.NewEffect(3600, clk.Now(), 10) })
	tally("PLAN kills none", func() foresight.Tally { return foresight.NewEffect(864000, clk.Now(), 10) })
	tally("FORECAST", func() foresight.Tally { return foresight.NewForecast(clk.Now(), 3_600_000, 24) })

	b.Run("locks of PLAN", func(b *testing.B) {
		held := make([]time.Duration, 0, 1<<20)
		for b.Loop() {
			var walks foresight.Walks
			for t := range c.each {
				walks.Add(t.P.Number, &t.Table)
			}
			effect := foresight.NewEffect(3600, clk.Now(), 10)
			effect.Under(c.Policy())
			walks.Run(effect, func(number int, piece func()) {
				p := ks.partitions[number]
				p.Mu.Lock()
				begin := time.Now()
				piece()
				held = append(held, time.Since(begin))
				p.Mu.Unlock()
			}, always)
		}
		slices.Sort(held)
		b.ReportMetric(float64(held[len(held)*99/100].Microseconds()), "p99-us")
		b.ReportMetric(float64(held[len(held)-1].Microseconds()), "longest-us")
	})
	for _, limit := range []int{1001, math.MaxInt} {
		b.Run(fmt.Sprintf("MAXKILL %d", limit-1), func(b *testing.B) {
			ks.BeginAll(&tx)
			defer tx.Close()
			next := c.Policy().Change(3600, expiry.Strict, tx.Now())
			for b.Loop() {
				if got := tx.CountKills(c, next, limit); got != min(limit, n-(n+2)/3) {
					b.Fatal(got)
				}
			}
		})
	}
	for _, depth := range []int{0, n * 15 / 100} {
		most := 1000
		if depth > 0 {
			most = 100
		}
		b.Run(fmt.Sprintf("DUE %d at depth %d", most, depth), func(b *testing.B) {
			var from selection.EndPlace
			page := func(most int) {
				ks.BeginSweep(&tx)
				defer tx.Close()
				r, seen := selection.EndsRange{Low: tx.Now(), High: math.MaxInt64, Plain: true, First: most}, 0
				tx.Reader(c).Ends(r, from, func(s selection.Slice, place func(int) selection.EndPlace) bool {
					seen += len(s.Items)
					if seen >= most {
						from = place(len(s.Items) - 1)
					}
					return seen < most
				})
			}
			if depth > 0 {
				page(depth)
			}
			at := from
			for b.Loop() {
				from = at
				page(most)
			}
		})
	}
	for _, full := range []bool{false, true} {
		b.Run(fmt.Sprintf("CONTAINER.SET, full history is %v", full), func(b *testing.B) {
			def := expiry.TTL(100_000)
			set := func() {
				def++
				ks.BeginAll(&tx)
				if !full {
					c.history.Store(newestOnly(c))
				}
				tx.SetPolicy(c, def, expiry.Strict)
				drill.Check(b, ks.Wait(tx.Close()))
			}
			for range expiry.MostHistory {
				set()
			}
			for b.Loop() {
				set()
			}
		})
	}
}

// newestOnly returns a history with the newest entry only.
func newestOnly(c *Container) *record.History {
	h := c.history.Load()
	return record.NewHistory(h.Etag, h.Entries[len(h.Entries)-1:])
}
