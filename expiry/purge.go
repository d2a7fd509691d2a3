package expiry

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The active purge: reclaiming the memory of dead items that nobody meets
//
// A dead item is treated as absent by everybody at once, and whoever meets one may remove it. What
// nobody asks for again would stay in memory for ever; the active purge looks for it. It is
// modelled on activeExpireCycle in Redis' expire.c: it does not know when items die, it draws small
// random samples from each pool of items that could die, removes the dead among them and goes on
// with a pool as long as its samples hold more dead than is acceptable. The work therefore follows
// the dying: next to nothing when nothing dies, as much as the budget allows when much does.
//
// # What is kept from Redis
//
// The slow cycle runs ten times a second and visits every pool. Fast cycles run between slow ones
// while those do not suffice. The effort, 1 to 10, sets with e = effort-1:
//
//	items a sample              20 + 5e
//	share of one CPU            25 + 2e percent
//	acceptable share of dead    10 - e  percent
//	longest fast cycle          1000 + 250e µs, after a pause of the same length at least
//
// A cycle that ran out of time is gone on with in the next one, where it stopped. The share of dead
// that remains is estimated by a running average in which each cycle weighs 5 percent.
//
// # What is different, and why
//
//  1. Redis stops at the first sample with an acceptable number of dead. A sample of twenty says
//     little: where 20 percent are dead, every fifth sample holds but two of them and ends the visit.
//     Sixteen pools in which 16,700 items die a second in all would settle at some 27 percent dead
//     for an acceptable share of 10, and at 7 for 1. So a visit keeps an account of draws, see
//     visit.note: every item drawn costs one, every dead one found earns 1/acceptable more, and the
//     visit ends when the account is empty. Where more than the acceptable share is dead the account
//     grows. A pool in which dead were found lately starts its next visit with a credit of as many
//     draws as those have earned it, so that chance cannot end a visit at once. The share then
//     settles somewhat below the acceptable one, however many pools the items are spread over.
//
//  2. Redis visits one pool until it is clean. Here the pools take turns, one sample each: none
//     waits for the others, and no lock is wanted twice in a row while another pool needs a visit.
//
//  3. There may be thousands of pools, most of them quiet, and a survey of all of them may cost more
//     than a cycle has. So the pools in which dead were found lately are kept in a list of their
//     own, and slow cycles take one sample from this list for each one of the survey. The survey
//     goes on in the next cycle from where the time ended, so that every pool has its turn. Fast
//     cycles visit the list only.
//
//  4. In Redis fast cycles come on top of the slow cycle's share of the CPU. Here both draw on one
//     account that earns the share as time passes and holds one interval's worth. A fast cycle
//     leaves half of that to the next slow one. Under pressure this spreads the work evenly instead
//     of in one long burst an interval, and the share is a promise.
//
//  5. Redis is one thread; requests wait for the cycle. Here they wait for one sample at most, as a
//     pool is locked for that long only. Between samples the cycle offers the processor to
//     others every fifth of a millisecond. Waiting for it back does not count as work.
//
// Redis draws by a cursor that walks the table, which stays in the wake of whatever else cleans the
// table in the same order (a client's SCAN), sees few dead there and takes the whole for clean. Pools
// draw from everywhere at once: see [Spread], which also leaves half as many dead behind for the
// same number of draws as independent random draws do.

// Interval is the time between slow cycles.
const Interval = 100 * time.Millisecond

// A Pool is a set of items that live and die under one policy and one lock. Pools that are equal
// (==) are one and the same; the dynamic type must be comparable.
//
// The purge may sample a pool a few more times after the owner has ceased to give it.
type Pool interface {
	// Sample draws n of the items that could die, spread over the whole of them with no regard to
	// age (see [Spread]), and removes those that are dead. It returns how many it has drawn, 0 if
	// there are none, and how many of these were dead. It locks the pool for as long as that takes.
	Sample(n int) (drawn, dead int)
}

// visit is the purge's account of a pool. A pool of which there is none is one in which no dead
// were found lately.
type visit struct {
	pool  Pool
	found float64 // dead found in this visit and, fading, in earlier ones; at most maxFound
	owed  float64 // draws this visit is still good for
}

// maxFound is how many dead finds a visit remembers. It bounds the draws that are spent on making
// sure that a pool is clean again after many have died, to maxFound/acceptable; and it makes it
// unlikely, about 1 in e^maxFound, that a visit ends by chance while twice the acceptable share is
// dead.
const maxFound = 16

// open starts a visit: the finds of earlier ones are its credit.
func (v *visit) open(acceptable float64) {
	v.found /= 2
	v.owed = v.found / acceptable
}

// note books a sample.
func (v *visit) note(drawn, dead int, acceptable float64) {
	if drawn == 0 {
		v.found, v.owed = 0, 0
		return
	}
	v.found = min(v.found+float64(dead), maxFound)
	v.owed = min(v.owed+float64(dead)/acceptable-float64(drawn), maxFound/acceptable)
}

// hot tells whether the next cycle should visit the pool before those it knows nothing of.
func (v *visit) hot() bool { return v.found >= 1 || v.owed > 0 }

// MinEffort and MaxEffort bound active-expire-effort.
const (
	MinEffort = 1
	MaxEffort = 10
)

// pace is what an effort means.
type pace struct {
	sample     int           // items
	share      float64       // of one CPU
	acceptable float64       // share of dead in a sample
	fast       time.Duration // the longest fast cycle, and the shortest pause before one
}

func paceOf(effort int) pace {
	e := min(max(effort, MinEffort), MaxEffort) - 1
	return pace{
		sample:     20 + 5*e,
		share:      float64(25+2*e) / 100,
		acceptable: float64(10-e) / 100,
		fast:       time.Duration(1000+250*e) * time.Microsecond,
	}
}

// full is what the account of time holds at most: the budget of one slow cycle.
func (p pace) full() time.Duration { return time.Duration(p.share * float64(Interval)) }

// Purge is the active purge. Safe for concurrent use; cycles run one at a time.
type Purge struct {
	pools  func() []Pool
	effort atomic.Int32
	lazy   atomic.Int64
	mono   func() time.Duration // since any fixed moment
	yield  func()               // lets others have the processor

	mu      sync.Mutex      // held during a cycle; protects what follows
	hot     []*visit        // of pools in which dead were found lately
	known   map[Pool]*visit // the same by pool
	queue   []*visit        // of a cycle: the hot ones that are not done; kept to reuse its memory
	next    int             // where the survey of all pools goes on
	turn    int             // where the turns of the hot pools go on
	funds   time.Duration   // the account of time: what may be spent on cycles now
	asOf    time.Duration   // when funds was brought up to date
	pressed bool            // the last cycle did not suffice

	statsMu sync.Mutex // protects stats; held for moments only, unlike mu
	stats   Stats
}

// NewPurge makes a purge with an effort of 1 to 10; values outside are moved to the nearest. pools
// is called once each slow cycle and gives all pools; the purge does not change or keep the slice.
func NewPurge(effort int, pools func() []Pool) *Purge {
	p := &Purge{pools: pools, mono: Monotonic, yield: runtime.Gosched, known: map[Pool]*visit{}}
	p.SetEffort(effort)
	p.asOf = p.mono()
	p.funds = paceOf(effort).full()
	return p
}

// SetEffort changes the effort, from the next cycle on.
func (p *Purge) SetEffort(effort int) {
	p.effort.Store(int32(min(max(effort, MinEffort), MaxEffort)))
}

// Effort is the effort as it stands, 1 to 10.
func (p *Purge) Effort() int { return int(p.effort.Load()) }

// CountLazy counts n dead items that were removed by whoever met them.
func (p *Purge) CountLazy(n int) { p.lazy.Add(int64(n)) }

// Stats gives the counters. It does not wait for a cycle.
func (p *Purge) Stats() Stats {
	p.statsMu.Lock()
	s := p.stats
	p.statsMu.Unlock()
	s.RemovedLazily = p.lazy.Load()
	return s
}

// Outcome says what a cycle has found.
type Outcome struct {
	Pressed bool // it ran out of time, or more than the acceptable share of its draws was dead
	Idle    bool // there is nothing in any pool that could die
}

// Slow runs a slow cycle. It takes as long as the account of time allows, half an interval's budget
// at least, if there is that much to do.
func (p *Purge) Slow() Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := paceOf(p.Effort())
	p.settle(pace)
	return p.run(pace, p.pools(), max(p.funds, pace.full()/2))
}

// Fast runs a fast cycle if the last cycle did not suffice and the account of time allows it.
func (p *Purge) Fast() Outcome {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := paceOf(p.Effort())
	p.settle(pace)
	if !p.pressed || p.funds < pace.full()/2+pace.fast {
		return Outcome{Pressed: p.pressed}
	}
	return p.run(pace, nil, pace.fast)
}

// settle credits the account of time with what it has earned. p.mu must be held.
func (p *Purge) settle(pace pace) {
	now := p.mono()
	earned := time.Duration(pace.share * float64(now-p.asOf))
	p.funds, p.asOf = min(p.funds+earned, pace.full()), now
}

// run is a cycle over the pools to be surveyed and the hot ones. p.mu must be held.
func (p *Purge) run(pace pace, survey []Pool, limit time.Duration) Outcome {
	c := cycle{purge: p, pace: pace, limit: limit}
	c.start()

	queue := p.openHot(pace)
	at, turns, surveyed := 0, 0, 0
	for (surveyed < len(survey) || len(queue) > 0) && !c.timeUp() {
		if surveyed < len(survey) {
			pool := survey[(p.next+surveyed)%len(survey)]
			surveyed++
			if p.known[pool] == nil {
				if v := c.first(pool); v != nil {
					p.hot = append(p.hot, v)
					p.known[pool] = v
					queue = append(queue, v)
				}
			}
		}
		if len(queue) > 0 {
			turns++
			if at %= len(queue); c.again(queue[at]) {
				at++
			} else { // done: the last in the queue takes its place
				queue[at] = queue[len(queue)-1]
				queue = queue[:len(queue)-1]
			}
		}
	}
	exhausted := surveyed < len(survey) || len(queue) > 0
	if surveyed < len(survey) {
		p.next = (p.next + surveyed) % len(survey)
	}
	p.turn += turns
	p.coolDown(queue)
	p.funds -= c.used
	p.pressed = exhausted || float64(c.dead) > pace.acceptable*float64(c.drawn)
	p.book(c, exhausted)
	return Outcome{Pressed: p.pressed, Idle: c.drawn == 0 && !exhausted}
}

// openHot starts a visit of every hot pool and gives them in the order of their turns.
func (p *Purge) openHot(pace pace) []*visit {
	queue := p.queue[:0]
	if len(p.hot) > 0 {
		p.turn %= len(p.hot)
		queue = append(append(queue, p.hot[p.turn:]...), p.hot[:p.turn]...)
	}
	for _, v := range queue {
		v.open(pace.acceptable)
	}
	return queue
}

// coolDown forgets the pools that are quiet again.
func (p *Purge) coolDown(queue []*visit) {
	p.hot = slices.DeleteFunc(p.hot, func(v *visit) bool {
		if v.hot() {
			return false
		}
		delete(p.known, v.pool)
		return true
	})
	p.queue = queue[:cap(queue)]
	clear(p.queue) // of references to pools
}

// book adds a cycle to the statistics.
func (p *Purge) book(c cycle, exhausted bool) {
	p.statsMu.Lock()
	defer p.statsMu.Unlock()
	s := &p.stats
	s.RemovedActively += int64(c.dead)
	s.Sampled += int64(c.drawn)
	s.Cycles++
	s.TimeSpent += c.used
	s.LongestCycle = max(s.LongestCycle, c.used)
	if exhausted {
		s.CapReached++
	}
	found := 0.0
	if c.drawn > 0 {
		found = float64(c.dead) / float64(c.drawn)
	}
	s.StaleShare = 0.05*found + 0.95*s.StaleShare
}

// maxStretch is how long a cycle works before it offers the processor to others.
const maxStretch = 200 * time.Microsecond

// cycle is the work and the time of one cycle.
type cycle struct {
	purge *Purge
	pace  pace
	limit time.Duration // of used

	began   time.Duration
	now     time.Duration
	used    time.Duration // spent on samples
	stretch time.Duration // spent on samples since the processor was last offered
	drawn   int
	dead    int
}

func (c *cycle) start() {
	c.began = c.purge.mono()
	c.now = c.began
}

// timeUp tells whether the cycle has to end: its budget is spent, or others had the processor for so
// long that the next cycle is due.
func (c *cycle) timeUp() bool { return c.used >= c.limit || c.now-c.began >= Interval }

// first takes the first sample of a pool without an account and opens one if dead were found.
func (c *cycle) first(pool Pool) *visit {
	drawn, dead := c.draw(pool)
	if dead == 0 {
		return nil
	}
	v := &visit{pool: pool}
	v.note(drawn, dead, c.pace.acceptable)
	return v
}

// again takes a sample of a pool and tells whether the visit should go on.
func (c *cycle) again(v *visit) (more bool) {
	drawn, dead := c.draw(v.pool)
	v.note(drawn, dead, c.pace.acceptable)
	return v.owed > 0
}

func (c *cycle) draw(pool Pool) (drawn, dead int) {
	drawn, dead = pool.Sample(c.pace.sample)
	c.drawn += drawn
	c.dead += dead

	now := c.purge.mono()
	c.used += now - c.now
	c.stretch += now - c.now
	c.now = now
	if c.stretch >= maxStretch {
		c.purge.yield()
		c.now = c.purge.mono()
		c.stretch = 0
	}
	return drawn, dead
}
