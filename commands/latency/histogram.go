package latency

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Durations are counted in buckets. The first buckets are 16 ns wide. From 512 ns on an octave has 16, so
// that a bucket is at most a sixteenth of its durations wide. The last one holds 16 seconds and more.
const (
	narrowest = 4 // log2 of ns
	perOctave = 16
	buckets   = 32 + 25*perOctave
)

// bucketOf returns the number of a duration's bucket.
func bucketOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> narrowest
	if units < 2*perOctave {
		return int(units)
	}
	shift := bits.Len64(units) - bits.Len(perOctave)
	return min(shift*perOctave+int(units>>shift), buckets-1)
}

// bucketEnd returns the shortest duration above a bucket.
func bucketEnd(bucket int) time.Duration {
	next := bucket + 1
	if next < 2*perOctave {
		return time.Duration(next << narrowest)
	}
	shift := next/perOctave - 1
	return time.Duration(next-shift*perOctave) << shift << narrowest
}

// Counter counts durations. The zero value is ready. Safe for concurrent use.
type Counter [buckets]atomic.Int64

func (c *Counter) Observe(d time.Duration) { c[bucketOf(d)].Add(1) }

// Histogram is a distribution of durations.
type Histogram struct {
	counts [buckets]int64
	Count  int64
}

// Merge adds the counts of a counter.
func (h *Histogram) Merge(c *Counter) {
	for i := range c {
		n := c[i].Load()
		h.counts[i] += n
		h.Count += n
	}
}

// Percentile returns the duration that percent of all durations do not exceed, to a sixteenth; 0 if there
// is none.
func (h *Histogram) Percentile(percent float64) time.Duration {
	if h.Count == 0 {
		return 0
	}
	rank := max(int64(percent/100*float64(h.Count)+0.5), 1)
	for i, n := range h.counts {
		if rank -= n; rank <= 0 {
			return bucketEnd(i) - 1
		}
	}
	return bucketEnd(buckets - 1)
}

// Shorter returns the number of durations shorter than the end of an octave: 1024 ns, 2048 ns and so on.
func (h *Histogram) Shorter(end time.Duration) int64 {
	var sum int64
	for i := range h.counts {
		if bucketEnd(i) > end {
			break
		}
		sum += h.counts[i]
	}
	return sum
}

// firstOctave is the end of the first octave that users see, about a microsecond.
const firstOctave = 1024 * time.Nanosecond

// Octaves yields the ends of octaves, and the number of shorter durations for each, until that is all of
// them.
func (h *Histogram) Octaves(yield func(end time.Duration, shorter int64) bool) {
	if h.Count == 0 {
		return
	}
	for end := firstOctave; ; end *= 2 {
		shorter := h.Shorter(end)
		last := end >= bucketEnd(buckets-2)
		if last {
			shorter = h.Count
		}
		if !yield(end, shorter) || shorter == h.Count {
			return
		}
	}
}
