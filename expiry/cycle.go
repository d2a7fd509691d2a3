package expiry

import "time"

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
	v := &visit{pool: pool}
	v.note(got, c.pace.acceptable)
	return v
}

// visit takes a sample of a hot pool and tells whether it needs another.
func (c *cycle) visit(v *visit) (more bool) {
	got := c.draw(v.pool)
	if v.fresh {
		v.fresh = false
		c.first.add(got)
		c.hot.add(got)
	}
	v.note(got, c.pace.acceptable)
	return v.owed > 0
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
	fresh  bool    // no sample was taken in this cycle yet
	found  float64 // dead found in this visit and, fading, in earlier ones; at most maxFound
	owed   float64 // draws this visit is still good for
	misses int     // visits, this one included, since the last that found dead
}

// maxFound is how many dead finds a visit remembers. It bounds the draws that are spent on making
// sure that a pool is clean again after many have died, to maxFound/acceptable; and it makes it
// unlikely, about 1 in e^maxFound, that a visit ends by chance while twice the acceptable share is
// dead.
const maxFound = 16

// A hot pool is visited by fast cycles until fastMisses visits in a row found no dead, and by slow
// ones, whether the survey reaches it or not, until slowMisses did.
const (
	fastMisses = 8
	slowMisses = 16
)

// open starts a visit: the finds of earlier ones are its credit.
func (v *visit) open(acceptable float64) {
	v.fresh = true
	v.misses++
	v.found /= 2
	v.owed = v.found / acceptable
}

// note books a sample.
func (v *visit) note(got tally, acceptable float64) {
	if got.dead > 0 {
		v.misses = 0
	}
	v.found = min(v.found+float64(got.dead), maxFound)
	v.owed = min(v.owed+float64(got.dead)/acceptable-float64(got.drawn), maxFound/acceptable)
	if got.drawn == 0 {
		v.found, v.owed, v.misses = 0, 0, slowMisses
	}
}

// wants tells whether the pool is to be visited by cycles that give up after so many misses.
func (v *visit) wants(misses int) bool { return v.misses < misses || v.owed > 0 }
