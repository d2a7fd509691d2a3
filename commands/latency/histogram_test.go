package latency

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The buckets are adjacent. None is wider than 16 ns or a sixteenth of its durations.
func TestBuckets(t *testing.T) {
	t.Parallel()
	from := time.Duration(0)
	for i := range buckets - 1 {
		end := bucketEnd(i)
		if bucketOf(from) != i || bucketOf(end-1) != i || bucketOf(end) != i+1 {
			t.Fatalf("bucket %d is to hold %d to %d ns, which are in %d and %d; the next is %d",
				i, from, end-1, bucketOf(from), bucketOf(end-1), bucketOf(end))
		}
		if width := end - from; width > max(from/16, 16) {
			t.Errorf("bucket %d, from %v, is %v wide", i, from, width)
		}
		from = end
	}
	for _, d := range []time.Duration{from, time.Hour, math.MaxInt64} {
		if bucketOf(d) != buckets-1 {
			t.Errorf("%v is in bucket %d, not in the last", d, bucketOf(d))
		}
	}
	if bucketOf(-1) != 0 {
		t.Error("a clock that stands still is not in the first bucket")
	}
}

func TestPercentiles(t *testing.T) {
	t.Parallel()
	var h Histogram
	if got := h.Percentile(99); got != 0 {
		t.Errorf("the percentile of nothing is %v", got)
	}
	var c Counter
	random := rand.New(rand.NewPCG(1, 2))
	var all []time.Duration
	for range 10_000 {
		d := time.Duration(random.ExpFloat64() * float64(50*time.Microsecond))
		all = append(all, d)
		c.Observe(d)
	}
	h.Merge(&c)
	slices.Sort(all)
	for _, percent := range []float64{0, 50, 90, 99, 99.9, 100} {
		exact := all[max(int(percent/100*float64(len(all))+0.5), 1)-1]
		if got := h.Percentile(percent); got < exact || got > exact+max(exact/16, 16) {
			t.Errorf("p%v is %v, want %v", percent, got, exact)
		}
	}
}
