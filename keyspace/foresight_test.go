package keyspace

import (
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/foresight"
	"mayfly/keyspace/selection"
	"mayfly/test/drill"
)

// TestForesightBesideWriters plans, forecasts and lists what is due while others write documents, change the
// mode and empty another container. The plain keys, which nobody writes, count exactly once each time.
func TestForesightBesideWriters(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 86400)
	o.policy("other", 10)
	const stable = 3000
	for i := range stable {
		var tx Tx
		id := fmt.Sprint("key", i)
		o.BeginKey(&tx, id)
		tx.Put(tx.Container("c"), id, Plain, "v", expiry.Inherit)
		tx.Close()
	}
	o.clock.Advance(time.Hour)
	stop := make(chan struct{})
	var writers sync.WaitGroup
	loop := func(f func(tx *Tx, n int)) {
		writers.Go(func() {
			var tx Tx
			for n := 0; !drill.Done(stop); n++ {
				f(&tx, n)
			}
		})
	}
	for w := range 2 {
		loop(func(tx *Tx, n int) {
			id := fmt.Sprint("doc", w, "-", n%2000)
			o.BeginKey(tx, id)
			if c := tx.Container("c"); n%5 == 0 {
				tx.Delete(c, id)
			} else {
				tx.Put(c, id, Document, "{}", expiry.ExpireAt(tx.Now(), expiry.TTL(n%7)))
			}
			tx.Close()
		})
	}
	loop(func(tx *Tx, n int) {
		o.BeginAll(tx)
		tx.SetPolicy(tx.Container("c"), 86400, expiry.Mode(n%2))
		tx.Flush(tx.Container("other"))
		tx.Close()
		o.put("other", fmt.Sprint(n), "{}", expiry.Inherit)
	})
	always := func(int) bool { return true }
	for round := range 30 {
		var tx Tx
		o.BeginSweep(&tx)
		c := tx.Container("c")
		e := foresight.NewEffect(60, tx.Now(), 5)
		if etag := tx.Tally(c, e, always); e.Keys != stable || etag == 0 {
			t.Errorf("round %d: a plan would kill %d keys of %d", round, e.Keys, stable)
		}
		f := foresight.NewForecast(tx.Now(), 3_600_000, 100)
		tx.TallyAll(f, always)
		if n := f.Buckets[22].Items + f.Buckets[23].Items; n < stable {
			t.Errorf("round %d: a forecast has %d of %d keys", round, n, stable)
		}
		keys, last := 0, selection.EndPlace{}
		tx.Reader(c).Ends(selection.EndsRange{Low: tx.Now(), High: math.MaxInt64, Plain: true}, selection.EndPlace{}, func(s selection.Slice, place func(int) selection.EndPlace) bool {
			for i, it := range s.Items {
				if it.Item.Kind == Plain {
					keys++
				}
				at := place(i)
				if at.End < last.End || at.End == last.End && at.ID <= last.ID {
					t.Errorf("round %d: %v comes after %v", round, at, last)
				}
				last = at
			}
			return true
		})
		if keys != stable {
			t.Errorf("round %d: %d keys of %d are due", round, keys, stable)
		}
		o.commit(&tx)
		o.clock.Advance(time.Millisecond)
	}
	close(stop)
	writers.Wait()
}
