package expiry

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

// The active purge: reclaiming the memory of dead items that nobody meets
//
// A dead item is treated as absent by everybody at once, and whoever meets one may remove it. What
// nobody asks for again would stay in memory for ever; the active purge looks for it. It is
// modelled on activeExpireCycle in Redis' expire.c: it takes small samples from each pool of items
// that could die, removes the dead among them and goes on with a pool as long as there are more. The
// work therefore follows the dying: next to nothing when nothing dies, as much as the budget allows
// when much does.
//
// # What is kept from Redis
//
// The slow cycle runs ten times a second and visits every pool. Fast cycles run in between. The
// effort, 1 to 10, sets with e = effort-1:
//
//	dead items a sample         20 + 5e
//	share of one CPU            25 + 2e percent
//	acceptable share of dead    10 - e  percent
//	longest fast cycle          1000 + 250e µs
//	pause before a fast cycle   10 - e ms, or if time has run out the length of one, if that is less
//
// A cycle that ran out of time is gone on with in the next one, where it stopped. The share of dead
// that remains is estimated by a running average in which each slow cycle weighs 5 percent.
//
// # What is different, and why
//
//  1. Redis does not know when items die: its samples are random, hold few dead if few have died, and
//     tell only how much else there may be. The event of a death among a million that live comes when
//     chance has it. Pools are sorted here, roughly: a sample is of the items that die first, most that
//     it looks at are dead, and the pool knows whether there are more. So no guess is needed whether
//     to go on with a pool, only time.
//
//  2. In Redis fast cycles help out when a slow one ran out of time. But even if it did not, a tenth
//     of a second is long when few items are left and many die: of 20,000, those 16,700 a second are
//     8 percent in one interval. So pools in which dead were found lately, the hot ones, are visited
//     by fast cycles, too. The pause between fast cycles is the acceptable
//     share of an interval: items that die evenly within a time t are dead, in one pause, to the share
//     pause/t, which is acceptable as long as an interval is left to them.
//
//  3. Redis visits one pool until it is clean. Here the pools take turns, one sample each: none
//     waits for the others, and no lock is wanted twice in a row while another pool needs a visit.
//
//  4. There may be very many pools, most of them quiet, and a survey of all of them may cost more
//     than a cycle has. So a slow cycle surveys a limited number, and takes one sample of a hot pool
//     for each one of the survey. The next slow cycle surveys the pools that follow, so that every
//     one has its turn. Fast cycles visit the hot pools only.
//
//  5. In Redis fast cycles come on top of the slow cycle's share of the CPU. Here both draw on one
//     account of time that earns the share as time passes and holds one interval's worth. A fast
//     cycle leaves half of that to the next slow one. So the share is a promise, and the work is
//     spread over the interval instead of done in one long burst.
//
//  6. Redis is one thread; requests wait for the cycle. Here they wait for one sample at most, as a
//     pool is locked for that long only. But they also need a processor, and the system may leave a
//     thread that works without a pause on one for some milliseconds while others wait for it. So a
//     cycle rests for a millisecond after each third or so that it has worked, as the share has it,
//     and a large one takes its interval up evenly. Resting does not count as work.
//
// TestPurgeKeepsItsPromise simulates all this.

const (
	// Interval is the time between slow cycles.
	Interval = 100 * time.Millisecond
	// maxSurvey is the number of pools that a slow cycle surveys at most: some 2 ms of work if none of
	// them is in the processor's cache.
	maxSurvey = 4096
)

// A Pool is a set of items that live and die under one policy and one lock. Pools that are equal
// (==) are one and the same; the dynamic type must be comparable.
//
// The purge may sample a pool a few more times after the owner has ceased to give it.
type Pool interface {
	// Sample looks at the items that die first and removes those that are dead, up to n of them. It
	// locks the pool for as long as that takes, so it looks at a limited number.
	Sample(n int) Sample
}

// Sample is what was found in a pool.
type Sample struct {
	Drawn int  // items looked at
	Dead  int  // those of them that were dead and have been removed
	Due   int  // about how many of the pool's items were dead before
	All   int  // items that could die there were before, the dead among them
	More  bool // whether there may be more dead
}

// Purge is the active purge. Safe for concurrent use; cycles run one at a time.
type Purge struct {
	pools  func(from, n int) []Pool
	effort atomic.Int32
	lazy   atomic.Int64
	mono   func() time.Duration // since any fixed moment
	rest   func(time.Duration)  // leaves the processor to others

	mu     sync.Mutex      // held during a cycle; protects what follows
	hot    []*visit        // of pools in which dead were found lately
	known  map[Pool]*visit // the same by pool
	queue  []*visit        // of a cycle: those that are not done; kept to reuse its memory
	next   int             // where the survey of all pools goes on
	turn   int             // where the turns of the hot pools go on
	funds  time.Duration   // the account of time: what may be spent on cycles now
	asOf   time.Duration   // when funds was brought up to date
	slowAt time.Duration   // when the last slow cycle began
	state  State           // as the last cycle left it

	statsMu sync.Mutex // protects stats; held for moments only, unlike mu
	stats   Stats
}

// NewPurge makes a purge with an effort of 1 to 10; values outside are moved to the nearest. pools
// is called once each slow cycle and gives up to n of all pools, each once, from a place on that is
// counted round and round: the same place again may be another pool, if pools have come or gone, but
// while they stay every one has its turn. The purge does not change or keep the slice.
func NewPurge(effort int, pools func(from, n int) []Pool) *Purge {
	p := &Purge{pools: pools, mono: clock.Monotonic, rest: time.Sleep, known: map[Pool]*visit{}}
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

// State says how much a cycle has left to do for the next.
type State int

const (
	Quiet   State = iota // hardly anything dies
	Busy                 // items are dying in some pools
	Pressed              // the cycle ran out of time, or began with more than the acceptable share dead
)

// Slow runs a slow cycle and says what is left to do. It takes as long as the account of time allows, half an interval's budget
// at least, if there is that much to do.
func (p *Purge) Slow() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := paceOf(p.Effort())
	p.settle(pace)
	p.slowAt = p.asOf
	return p.run(pace, true, max(p.funds, pace.full()/2))
}

// Fast runs a fast cycle, unless the last cycle left all quiet or the account of time does not allow
// it, and says what is left to do.
func (p *Purge) Fast() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	pace := paceOf(p.Effort())
	p.settle(pace)
	// Half a budget has to be there for the next slow cycle when it is due, not before: so what fast
	// cycles may spend comes evenly.
	reserve := pace.full() / 2 * min(p.asOf-p.slowAt, Interval) / Interval
	if p.state < Busy || p.funds < reserve+pace.fast {
		return p.state
	}
	return p.run(pace, false, pace.fast)
}

// settle credits the account of time with what it has earned. p.mu must be held.
func (p *Purge) settle(pace pace) {
	now := p.mono()
	earned := time.Duration(pace.share * float64(now-p.asOf))
	p.funds, p.asOf = min(p.funds+earned, pace.full()), now
}

// run is a cycle over hot pools and, if it is a slow one, those in the survey. p.mu must be held.
func (p *Purge) run(pace pace, slow bool, limit time.Duration) State {
	c := cycle{purge: p, pace: pace, slow: slow, limit: limit, began: p.mono(), stretch: pace.stretch(rest)}
	c.now = c.began
	var pools []Pool
	if slow {
		pools = p.pools(p.next, maxSurvey)
	}
	toSurvey := len(pools)

	queue := p.openHot(slow)
	surveyed, at, turns := 0, 0, 0
	done := func() bool { return surveyed == toSurvey && len(queue) == 0 }
	for !done() && !c.timeUp() {
		if surveyed < toSurvey {
			pool := pools[surveyed]
			surveyed++
			if p.known[pool] == nil {
				if v, more := c.survey(pool); v != nil {
					p.hot = append(p.hot, v)
					p.known[pool] = v
					if more {
						queue = append(queue, v)
					}
				}
			}
		}
		if len(queue) > 0 {
			turns++
			if at %= len(queue); c.visit(queue[at]) {
				at++
			} else { // the last in the queue takes its place
				queue[at] = queue[len(queue)-1]
				queue = queue[:len(queue)-1]
			}
		}
	}
	exhausted := !done()
	p.next = (p.next + surveyed) & math.MaxInt32
	p.turn += turns
	p.coolDown(queue)
	p.funds -= c.used
	switch {
	case exhausted || c.hot.share() > pace.acceptable:
		p.state = Pressed
	case len(p.hot) > 0:
		p.state = Busy
	default:
		p.state = Quiet
	}
	p.book(c, exhausted)
	return p.state
}

// openHot starts the visits of a cycle to the hot pools and gives them in the order of their turns.
func (p *Purge) openHot(slow bool) []*visit {
	queue := p.queue[:0]
	for i := range p.hot {
		v := p.hot[(p.turn+i)%len(p.hot)]
		v.fresh = true
		if slow {
			v.misses++
		}
		queue = append(queue, v)
	}
	return queue
}

// coolDown forgets the pools that are quiet again.
func (p *Purge) coolDown(queue []*visit) {
	p.hot = slices.DeleteFunc(p.hot, func(v *visit) bool {
		if v.misses < slowMisses {
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
	if c.slow { // fast cycles see hot pools only, which say nothing of the whole
		s.StaleShare = 0.05*c.first.share() + 0.95*s.StaleShare
	}
}
