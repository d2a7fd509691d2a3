package expiry

import (
	"math"
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
// The slow cycle runs ten times a second and visits every pool. Fast cycles run in between. The
// effort, 1 to 10, sets with e = effort-1:
//
//	items a sample              20 + 5e
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
//  1. Redis stops at the first sample with an acceptable number of dead. A sample of twenty says
//     little: where 20 percent are dead, every fifth sample holds but two of them and ends the visit.
//     Sixteen pools in which 16,700 items die a second in all would settle at some 29 percent dead
//     for an acceptable share of 10, and at 7 for 1. So a visit keeps an account of draws: every item
//     drawn costs one, every dead one found earns 1/acceptable more, and the visit ends when the
//     account is empty. Where more than the acceptable share is dead the account grows.
//
//     Each dead one also earns as many draws again later on, over about an interval: what was found
//     lately says how much is dying in a pool now, and chance cannot end the search. The share then
//     settles below the acceptable one, however many pools the items are spread over. The memory is of
//     time, not of visits, because work that follows the finds of a moment swings: much work leaves
//     few dead, few finds make little work, and that leaves many dead. The longer the memory compared
//     with a round over the pool, the sooner this dies down. With one of about 10 ms a hundred thousand
//     items were swept thirty times a second and then hardly at all, and four times the acceptable
//     share was dead in between.
//
//  2. In Redis fast cycles help out when a slow one ran out of time. But even if it did not, a tenth
//     of a second is long when few items are left and many die: of 20,000, those 16,700 a second are
//     8 percent in one interval. So pools in which dead were found lately, the hot ones, are visited
//     by fast cycles whenever they are owed a sample. The pause between fast cycles is the acceptable
//     share of an interval: items that die evenly within a time t are dead, in one pause, to the share
//     pause/t, which is acceptable as long as an interval is left to them.
//
//  3. Redis visits one pool until it is clean. Here the pools take turns, one sample each: none
//     waits for the others, and no lock is wanted twice in a row while another pool needs a visit.
//
//  4. There may be thousands of pools, most of them quiet, and a survey of all of them may cost more
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
//     pool is locked for that long only. Between samples the cycle offers the processor to
//     others every fifth of a millisecond. Waiting for it back does not count as work.
//
// Redis draws by a cursor that walks the table. It can get caught in the wake of whatever else cleans
// the table in the same order, a client's SCAN for one, sees no dead there and takes the whole for
// clean. Pools draw from everywhere at once; see [Spread], which also leaves half as many dead behind
// as independent random draws would for the same work.
//
// TestPurgeKeepsItsPromise simulates all this.

const (
	// Interval is the time between slow cycles.
	Interval = 100 * time.Millisecond
	// maxSurvey is the number of pools that a slow cycle surveys at most: some 2 ms of work if all
	// are full of items that live, and next to none if nothing in them could die.
	maxSurvey = 1024
)

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

// Purge is the active purge. Safe for concurrent use; cycles run one at a time.
type Purge struct {
	pools  func(from, n int) []Pool
	effort atomic.Int32
	lazy   atomic.Int64
	mono   func() time.Duration // since any fixed moment
	yield  func()               // lets others have the processor

	mu     sync.Mutex      // held during a cycle; protects what follows
	hot    []*visit        // of pools in which dead were found lately
	known  map[Pool]*visit // the same by pool
	queue  []*visit        // of a cycle: the hot ones that are not done; kept to reuse its memory
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
	c := cycle{purge: p, pace: pace, slow: slow, limit: limit, began: p.mono()}
	c.now = c.began
	var pools []Pool
	if slow {
		pools = p.pools(p.next, maxSurvey)
	}
	toSurvey := len(pools)

	queue := p.openHot(pace, slow, c.now)
	surveyed, at, turns := 0, 0, 0
	done := func() bool { return surveyed == toSurvey && len(queue) == 0 }
	for !done() && !c.timeUp() {
		if surveyed < toSurvey {
			pool := pools[surveyed]
			surveyed++
			if p.known[pool] == nil {
				if v := c.survey(pool); v != nil {
					p.hot = append(p.hot, v)
					p.known[pool] = v
					queue = append(queue, v)
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
	p.coolDown(pace, queue)
	p.funds -= c.used
	switch {
	case exhausted || c.hot.share() > pace.acceptable:
		p.state = Pressed
	case slices.ContainsFunc(p.hot, func(v *visit) bool { return v.busy(pace) }):
		p.state = Busy
	default:
		p.state = Quiet
	}
	p.book(c, exhausted)
	return p.state
}

// openHot starts a visit of the hot pools that a cycle is for, of all of them if it is a slow one, and
// gives them in the order of their turns.
func (p *Purge) openHot(pace pace, slow bool, now time.Duration) []*visit {
	queue := p.queue[:0]
	for i := range p.hot {
		v := p.hot[(p.turn+i)%len(p.hot)]
		v.open(now, pace)
		if slow {
			v.misses++
		}
		if slow || v.due(pace) {
			queue = append(queue, v)
		}
	}
	return queue
}

// coolDown forgets the pools that are quiet again.
func (p *Purge) coolDown(pace pace, queue []*visit) {
	p.hot = slices.DeleteFunc(p.hot, func(v *visit) bool {
		if !v.quiet(pace) {
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
	s.RemovedActively += int64(c.all.dead)
	s.Sampled += int64(c.all.drawn)
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
