package expiry

import (
	"math"
	"time"
)

// maxStretch is how long a cycle works before it offers the processor to others.
const maxStretch = 200 * time.Microsecond

// cycle is the work and the time of one cycle.
type cycle struct {
	purge *Purge
	pace  pace
	slow  bool
	limit time.Duration // of used

	began   time.Duration
	now     time.Duration
	used    time.Duration // spent on samples
	stretch time.Duration // spent on samples since the processor was last offered

	all   tally // of all samples
	first tally // of the first sample of each pool: how things stood when the cycle began
	hot   tally // of the first sample of each hot pool
}

// tally counts items drawn and the dead among them.
type tally struct{ drawn, dead int }

func (t *tally) add(u tally) {
	t.drawn += u.drawn
	t.dead += u.dead
}

func (t tally) share() float64 { return float64(t.dead) / float64(max(t.drawn, 1)) }

// timeUp tells whether the cycle has to end: its budget is spent, or others had the processor for so
// long that the next slow cycle is due.
func (c *cycle) timeUp() bool { return c.used >= c.limit || c.now-c.began >= Interval }

// survey takes a sample of a pool that is not hot. If it holds dead, the pool is, and its visit is
// returned.
func (c *cycle) survey(pool Pool) (hot *visit) {
	got := c.draw(pool)
	c.first.add(got)
	if got.dead == 0 {
		return nil
	}
	c.hot.add(got)
	v := &visit{pool: pool, asOf: c.now}
	v.note(got, c.pace)
	return v
}

// visit takes a sample of a hot pool and tells whether it is owed another.
func (c *cycle) visit(v *visit) (more bool) {
	got := c.draw(v.pool)
	if v.fresh {
		v.fresh = false
		c.first.add(got)
		c.hot.add(got)
	}
	v.note(got, c.pace)
	return v.due(c.pace)
}

func (c *cycle) draw(pool Pool) tally {
	var got tally
	got.drawn, got.dead = pool.Sample(c.pace.sample)
	c.all.add(got)

	now := c.purge.mono()
	c.used += now - c.now
	c.stretch += now - c.now
	c.now = now
	if c.stretch >= maxStretch {
		c.purge.yield()
		c.now = c.purge.mono()
		c.stretch = 0
	}
	return got
}

// visit is the purge's account of a hot pool. One of which there is none is a pool in which no dead
// were found lately.
type visit struct {
	pool   Pool
	fresh  bool          // no sample was taken in this cycle yet
	found  float64       // dead finds that are remembered; at most maxFound
	owed   float64       // draws that the pool is good for
	asOf   time.Duration // when what is remembered was last turned into draws
	misses int           // slow cycles since the last find
}

const (
	// maxFound is how many finds a visit remembers. It bounds the draws that are spent on making sure
	// that a pool is clean again after many have died, to maxFound/acceptable.
	maxFound = 256
	// slowMisses is how many slow cycles in a row visit a pool, whether the survey reaches it or not,
	// and find no dead before it counts as quiet again.
	slowMisses = 16
)

// open starts the visit of a cycle. Finds are forgotten evenly, nearly two thirds of them in an
// interval, and each one forgotten earns the pool draws.
func (v *visit) open(now time.Duration, pace pace) {
	forgotten := v.found * -math.Expm1(-float64(now-v.asOf)/float64(Interval))
	v.asOf = now
	v.found -= forgotten
	v.owed = min(max(v.owed, 0)+forgotten/pace.acceptable, maxFound/pace.acceptable)
	v.fresh = true
}

// note books a sample.
func (v *visit) note(got tally, pace pace) {
	if got.dead > 0 {
		v.misses = 0
	}
	v.found = min(v.found+float64(got.dead), maxFound)
	v.owed = min(v.owed+float64(got.dead)/pace.acceptable-float64(got.drawn), maxFound/pace.acceptable)
	if got.drawn == 0 {
		v.found, v.owed, v.misses = 0, 0, slowMisses
	}
}

// due tells whether the pool is owed a sample.
func (v *visit) due(pace pace) bool { return v.owed >= float64(pace.sample) }

// busy tells whether it will be, if no more is found.
func (v *visit) busy(pace pace) bool { return v.owed+v.found/pace.acceptable >= float64(pace.sample) }

// quiet tells whether the pool can be left to the survey.
func (v *visit) quiet(pace pace) bool { return v.misses >= slowMisses && !v.due(pace) }
