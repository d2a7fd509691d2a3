package commands

import (
	"math/bits"
	"sync/atomic"
	"time"
)

// Durations are counted in buckets. The first ones are 16 ns wide; from 512 ns on there are 16 to an
// octave, so that a bucket is at most a sixteenth of what is in it. The last one takes everything
// from 16 seconds on.
const (
	narrowest = 4 // log2 of ns
	perOctave = 16
	buckets   = 32 + 25*perOctave
)

// bucketOf is the number of the bucket of a duration.
func bucketOf(d time.Duration) int {
	units := uint64(max(d, 0)) >> narrowest
	if units < 2*perOctave {
		return int(units)
	}
	shift := bits.Len64(units) - bits.Len(perOctave)
	return min(shift*perOctave+int(units>>shift), buckets-1)
}

// bucketEnd is the shortest duration that is too long for a bucket and all before it.
func bucketEnd(bucket int) time.Duration {
	next := bucket + 1
	if next < 2*perOctave {
		return time.Duration(next << narrowest)
	}
	shift := next/perOctave - 1
	return time.Duration(next-shift*perOctave) << shift << narrowest
}

// counter counts durations. Safe for concurrent use; the zero value is ready.
type durationCounter [buckets]atomic.Int64

func (c *durationCounter) observe(d time.Duration) { c[bucketOf(d)].Add(1) }

// Histogram says how many durations there have been, short and long.
type Histogram struct {
	counts [buckets]int64
	Count  int64
}

// add adds what a counter has counted.
func (h *Histogram) merge(c *durationCounter) {
	for i := range c {
		n := c[i].Load()
		h.counts[i] += n
		h.Count += n
	}
}

// Percentile is a duration that so many percent are not longer than, to a sixteenth; 0 if there is
// none.
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

// Shorter is the number of durations shorter than the end of an octave: 1024 ns, 2048 ns and so on.
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

// firstOctave is the end of the shortest octave that is told apart to users, about a microsecond.
const firstOctave = 1024 * time.Nanosecond

// octaves gives the ends of octaves and how many durations are shorter than each, until these are all.
func (h *Histogram) octaves(yield func(end time.Duration, shorter int64) bool) {
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
