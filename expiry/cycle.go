package expiry

import (
	"math"
	"time"
)

// cycle is the work and the time of one cycle.
type cycle struct {
	purge *Purge
	pace  pace
	slow  bool
	limit time.Duration // of used

	began time.Duration
	now   time.Duration
	used  time.Duration // spent on samples
	burst time.Duration // left to spend on samples before the next rest

	drawn, dead int // of all samples

	first tally // of the first sample of each pool: the state when the cycle began
	hot   tally // of the first sample of each hot pool
}

// tally counts items and the dead among them.
type tally struct{ all, due int }

func (t *tally) add(got Sample) {
	t.all += got.All
	t.due += got.Due
}

func (t tally) share() float64 { return float64(t.due) / float64(max(t.all, 1)) }

// timeUp reports whether the cycle has to end: its budget is spent, or the next slow cycle is due.
func (c *cycle) timeUp() bool {
	return c.limit != unlimited && (c.used >= c.limit || c.now-c.began >= Interval)
}

// unlimited is the limit of a cycle that goes on to its end.
const unlimited = math.MaxInt64

// sampleDue samples the pool of a timer that is due and reports whether there was one.
func (c *cycle) sampleDue() bool {
	timers := &c.purge.timers
	if timers.first.Load() == NeverDue {
		return false
	}
	now := c.purge.clock.Now()
	t := timers.take(now)
	if t == nil {
		return false
	}
	switch got := c.draw(t.pool); {
	case got.Locked:
		t.Earlier(now + lockedPause)
	case got.Drawn == 0:
		timers.putOff(t, now, now+Interval.Milliseconds()) // nothing can be removed now
	}
	return true
}

// lockedPause is the time in ms after which to try a pool again that was locked for long.
const lockedPause = 10

// scan samples a pool that is not hot. If it finds dead items it returns the pool as a hot one, and whether
// there are more.
func (c *cycle) scan(pool Pool) (hot *hotPool, more bool) {
	got := c.draw(pool)
	c.first.add(got)
	if got.Dead == 0 {
		return nil, false
	}
	c.hot.add(got)
	return &hotPool{pool: pool}, got.More
}

// sample samples a hot pool and reports whether it needs more.
func (c *cycle) sample(h *hotPool) (more bool) {
	got := c.draw(h.pool)
	if h.fresh {
		h.fresh = false
		c.first.add(got)
		c.hot.add(got)
	}
	switch {
	case got.Dead > 0:
		h.misses = 0
	case got.All == 0:
		h.misses = maxMisses
	}
	return got.More
}

// draw samples a pool and rests when the burst is over.
func (c *cycle) draw(pool Pool) Sample {
	got := pool.Sample(c.pace.sample)
	if !got.Internal {
		c.drawn += got.Drawn
		c.dead += got.Dead
	}

	now := c.purge.mono()
	c.used += now - c.now
	c.burst -= now - c.now
	c.now = now
	if c.burst <= 0 {
		c.purge.rest(rest)
		c.now = c.purge.mono()
		c.burst = c.pace.burst(c.now - now)
	}
	return got
}

// hotPool is a pool in which dead items were found lately.
type hotPool struct {
	pool   Pool
	fresh  bool // not sampled yet in this cycle
	misses int  // slow cycles since the last find
}

// maxMisses is the number of slow cycles without a find after which a pool is no longer hot. Fast cycles
// would mostly sample it in vain, so it is left to the scan of all pools.
const maxMisses = 2
