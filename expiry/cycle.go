package expiry

import "time"

// cycle is the work and the time of one cycle.
type cycle struct {
	purge *Purge
	pace  pace
	slow  bool
	limit time.Duration // of used

	began   time.Duration
	now     time.Duration
	used    time.Duration // spent on samples
	stretch time.Duration // to be spent on samples before the next rest

	drawn, dead int // of all samples

	first tally // of the first sample of each pool: how things stood when the cycle began
	hot   tally // of the first sample of each hot pool
}

// tally counts items and how many of them are dead.
type tally struct{ all, due int }

func (t *tally) add(got Sample) {
	t.all += got.All
	t.due += got.Due
}

func (t tally) share() float64 { return float64(t.due) / float64(max(t.all, 1)) }

// timeUp tells whether the cycle has to end: its budget is spent, or the next slow cycle is due.
func (c *cycle) timeUp() bool { return c.used >= c.limit || c.now-c.began >= Interval }

// survey takes a sample of a pool that is not hot. If it holds dead, the pool is: its visit is returned, and
// whether it needs more.
func (c *cycle) survey(pool Pool) (hot *visit, more bool) {
	got := c.draw(pool)
	c.first.add(got)
	if got.Dead == 0 {
		return nil, false
	}
	c.hot.add(got)
	return &visit{pool: pool}, got.More
}

// visit takes a sample of a hot pool and tells whether it needs more.
func (c *cycle) visit(v *visit) (more bool) {
	got := c.draw(v.pool)
	if v.fresh {
		v.fresh = false
		c.first.add(got)
		c.hot.add(got)
	}
	switch {
	case got.Dead > 0:
		v.misses = 0
	case got.All == 0:
		v.misses = slowMisses
	}
	return got.More
}

func (c *cycle) draw(pool Pool) Sample {
	got := pool.Sample(c.pace.sample)
	c.drawn += got.Drawn
	c.dead += got.Dead

	now := c.purge.mono()
	c.used += now - c.now
	c.stretch -= now - c.now
	c.now = now
	if c.stretch <= 0 {
		c.purge.rest(rest)
		c.now = c.purge.mono()
		c.stretch = c.pace.stretch(c.now - now)
	}
	return got
}

// visit is what the purge knows of a hot pool: one in which dead were found lately.
type visit struct {
	pool   Pool
	fresh  bool // no sample was taken in this cycle yet
	misses int  // slow cycles since the last find
}

// slowMisses is how many slow cycles begin after the last find before a pool counts as quiet again. Then it
// is left to the survey, for fast cycles would mostly visit it in vain.
const slowMisses = 2
