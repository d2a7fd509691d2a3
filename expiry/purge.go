package expiry

import (
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"mayfly/expiry/clock"
)

// The active purge: freeing the memory of dead items that no command meets
//
// A dead item is absent for everybody at once, and a transaction that meets it removes it. An item that no
// command asks for would stay in memory for ever; the active purge looks for it. It is modelled on
// activeExpireCycle in Redis' expire.c: it takes small samples from each pool of items that could die and
// removes the dead among them. It goes on with a pool while there are more. So the work follows the deaths:
// next to none when nothing dies, as much as the budget allows when much does.
//
// # Kept from Redis
//
// The slow cycle runs ten times a second and samples every pool. Fast cycles run in between. The effort, 1 to
// 10, sets with e = effort-1:
//
//	dead items a sample         20 + 5e
//	share of one CPU            25 + 2e percent
//	acceptable share of dead    10 - e  percent
//	longest fast cycle          1000 + 250e µs
//	pause before a fast cycle   10 - e ms; if time has run out, at most the length of one
//
// A cycle that ran out of time is continued by the next one. The share of dead items is estimated by a
// running average in which each slow cycle weighs 5 percent.
//
// # Different, and why
//
//  1. Redis does not know when items die. Its samples are random, contain few dead items if few have died,
//     and only estimate how many there are. Among a million live items the event of a death comes by chance.
//     Pools here are roughly sorted: a sample is of the items that die first, and most of them are dead. The
//     pool knows whether there are more. Whether to go on with a pool is no guess, only a matter of time.
//
//  2. In Redis fast cycles help when a slow one ran out of time. Even if it did not, a tenth of a second is
//     long when few items are left and many die: of 20,000 items, 16,700 deaths a second are 8 percent in one
//     interval. So fast cycles here sample hot pools too, those in which dead items were found lately. The
//     pause between fast cycles is the acceptable share of an interval. Of items that die evenly within a
//     time t, one pause leaves a share of pause/t dead. That is acceptable as long as t is at least an
//     interval.
//
//  3. Redis samples one pool until it is clean. Pools here take turns, one sample each. None waits for the
//     others, and no lock is taken twice in a row while another pool needs a sample.
//
//  4. There may be very many quiet pools, and a scan of all may cost more than a cycle has. So a slow cycle
//     scans a limited number, and samples one hot pool for each pool of the scan. The next slow cycle scans
//     the pools that follow, so that each has its turn. Fast cycles sample hot pools only.
//
//  5. In Redis fast cycles come on top of the slow cycle's share of the CPU. Here both draw on one budget,
//     which earns the share as time passes and holds at most one interval's worth. Fast cycles leave half of
//     that to the next slow one. So the share is an upper bound, and the work is spread over the interval
//     instead of one long burst.
//
//  6. Some pools know when their next item dies, to the millisecond: those with a [Timer]. They are sampled
//     then, and do not wait for a cycle. timers.go explains that.
//
//  7. Redis is one thread; requests wait for the cycle. Here they wait for one sample at most, since a pool
//     is locked only that long. But they need a processor too. The system may leave a thread that never
//     pauses on one for some milliseconds. So a cycle rests for a millisecond after each burst of work, and a
//     large one fills its interval evenly. Rests do not count as work.
//
// TestPurgeBoundsTheDeadShare simulates all this.

const (
	// Interval is the time between slow cycles.
	Interval = 100 * time.Millisecond
	// maxScan is the largest number of pools that a slow cycle scans: about 2 ms of work if none of them is
	// in the processor's cache.
	maxScan = 4096
)

// A Pool is a set of items under one policy and one lock. Equal pools (==) are the same; the dynamic type
// must be comparable.
//
// The purge may sample a pool a few more times after the owner has stopped returning it.
type Pool interface {
	// Sample looks at a limited number of the items that die first and removes up to n dead ones. It locks
	// the pool.
	Sample(n int) Sample
}

// Sample is the result of sampling a pool.
type Sample struct {
	Drawn int  // items looked at
	Dead  int  // dead ones among them, which were removed
	Due   int  // dead items in the pool before, an estimate
	All   int  // items in the pool before that could die, with the dead
	More  bool // there may be more dead items

	Locked bool // something keeps the pool locked for long, so nothing was looked at

	Internal bool // the items are no keys of users: statistics leave them out
}

// Purge is the active purge. Safe for concurrent use; cycles run one at a time.
type Purge struct {
	pools  func(from, n int) []Pool
	clock  clock.Clock // that of the items
	timers timers
	effort atomic.Int32
	lazy   atomic.Int64
	unseen atomic.Int64         // pools that are to be scanned soon: see Rescan
	mono   func() time.Duration // since any fixed moment
	rest   func(time.Duration)  // leaves the processor to others

	mu     sync.Mutex        // held during a cycle: see running; protects what follows
	hot    []*hotPool        // pools in which dead items were found lately
	hotBy  map[Pool]*hotPool // the same by pool
	queue  []*hotPool        // of a cycle: those that need more samples; kept to reuse its memory
	next   int               // where the scan of all pools goes on
	turn   int               // where the turns of the hot pools go on
	budget time.Duration     // what cycles may spend now
	asOf   time.Duration     // when budget was brought up to date
	slowAt time.Duration     // when the last slow cycle began
	state  State             // as the last cycle left it

	statsMu sync.Mutex // protects stats; held for moments only, unlike mu
	stats   Stats
}

// NewPurge returns a purge with an effort of 1 to 10; others are moved to the nearest. It calls pools once
// each slow cycle. pools returns up to n of all pools, each once, from a position on that wraps around. If
// pools come or go, a position may become that of another pool; while they stay every one has its turn. The
// purge does not change or keep the slice. c is the clock by which items die.
func NewPurge(effort int, c clock.Clock, pools func(from, n int) []Pool) *Purge {
	p := &Purge{pools: pools, clock: c, mono: clock.Monotonic, rest: time.Sleep, hotBy: map[Pool]*hotPool{}}
	p.timers.init()
	p.SetEffort(effort)
	p.asOf = p.mono()
	p.budget = paceOf(effort).full()
	return p
}

// SetEffort changes the effort, from the next cycle on.
func (p *Purge) SetEffort(effort int) {
	p.effort.Store(int32(min(max(effort, MinEffort), MaxEffort)))
}

// Effort returns the effort, 1 to 10.
func (p *Purge) Effort() int { return int(p.effort.Load()) }

// CountLazy counts n dead items that transactions have removed.
func (p *Purge) CountLazy(n int) { p.lazy.Add(int64(n)) }

// NewTimer returns the timer of a pool, set to [NeverDue].
func (p *Purge) NewTimer(pool Pool) *Timer {
	t := &Timer{timers: &p.timers, pool: pool}
	t.at.Store(NeverDue)
	return t
}

// HoldTimers makes no timer due before a moment in ms: nothing can be removed until then. 0 ends that.
func (p *Purge) HoldTimers(until int64) { p.timers.hold(until) }

// Rescan makes cycles scan the next n pools soon, fast cycles too. So pools that are to have timers get them.
func (p *Purge) Rescan(n int) {
	p.unseen.Store(int64(n))
	p.timers.wake()
}

// TakeRescan reports whether Rescan was called since the last look, for those who run no cycles.
func (p *Purge) TakeRescan() bool { return p.unseen.Swap(0) > 0 }

// Stats returns the counters. It does not wait for a cycle.
func (p *Purge) Stats() Stats {
	p.statsMu.Lock()
	s := p.stats
	p.statsMu.Unlock()
	s.RemovedLazily = p.lazy.Load()
	return s
}

// State says how much work a cycle has left for the next.
type State int

const (
	Quiet   State = iota // hardly anything dies
	Busy                 // items are dying in some pools
	Pressed              // the cycle ran out of time, or began with more than the acceptable share dead
)

// running is a purge whose mutex is held, as during a cycle.
type running struct{ *Purge }

func (p *Purge) begin() running {
	p.mu.Lock()
	return running{p}
}

func (p running) end() { p.mu.Unlock() }

// Slow runs a slow cycle and returns what is left to do. It may spend the budget, at least half of a full
// one.
func (p *Purge) Slow() State {
	r := p.begin()
	defer r.end()
	pace := paceOf(p.Effort())
	r.earn(pace)
	p.slowAt = p.asOf
	return r.run(pace, true, max(p.budget, pace.full()/2))
}

// Whole runs a slow cycle to its end, however long it takes.
func (p *Purge) Whole() {
	r := p.begin()
	defer r.end()
	r.run(paceOf(p.Effort()), true, unlimited)
}

// Fast runs a fast cycle and returns what is left to do. It runs none if the last cycle left all quiet or the
// budget does not allow it.
func (p *Purge) Fast() State {
	r := p.begin()
	defer r.end()
	pace := paceOf(p.Effort())
	if p.unseen.Load() > 0 {
		p.state = Pressed
	}
	if p.state < Busy || r.spare(pace) < pace.fast {
		return p.state
	}
	return r.run(pace, false, pace.fast)
}

// NextDue returns the moment in ms at which the first timer is due; [NeverDue] without. A pause does not
// change it: who moves the clock waits for its end.
func (p *Purge) NextDue() int64 { return p.timers.first.Load() }

// Due does what timers are due at this moment, without a budget, for a clock that is moved step by step. It
// calls first with their pools, which may remove some of the dead before, and then samples each to its end. A
// pool in which nothing can be removed now is due again at the moment later (ms).
func (p *Purge) Due(later int64, first func(pools []Pool)) {
	now := p.clock.Now()
	var due []*Timer
	var pools []Pool
	for t := p.timers.take(now); t != nil; t = p.timers.take(now) {
		due, pools = append(due, t), append(pools, t.pool)
	}
	if due == nil {
		return
	}
	first(pools) // may take long
	r := p.begin()
	defer r.end()
	r.drain(pools)
	for _, t := range due {
		p.timers.putOff(t, now, later)
	}
}

// All samples all pools to their ends, without a budget.
func (p *Purge) All() {
	r := p.begin()
	defer r.end()
	r.drain(p.pools(0, math.MaxInt))
}

// drain samples pools to their ends, as one cycle without rests.
func (p running) drain(pools []Pool) {
	c := p.newCycle(paceOf(p.Effort()), false, unlimited)
	c.burst, c.pace.sample = unlimited, drainSample
	for _, pool := range pools {
		for got := c.draw(pool); got.More || got.Locked; got = c.draw(pool) {
			if got.Locked {
				p.rest(rest)
			}
		}
	}
	p.count(c, false)
}

// drainSample is the number of items that Drain removes from a pool at a time.
const drainSample = 256

// Drain removes the dead from all pools, beside the cycles and without a budget, until enough returns true or
// none has any left. It reports the latter.
func (p *Purge) Drain(enough func() bool) (drained bool) {
	for !enough() {
		found := false
		for _, pool := range p.pools(0, math.MaxInt) {
			for more := true; more && !enough(); {
				s := pool.Sample(drainSample)
				more = s.More
				found = found || s.Dead > 0
			}
		}
		if !found {
			return true
		}
	}
	return false
}

// spare returns what cycles may spend before the next slow one. That needs half a budget when it is
// due, not before. So they can spend evenly.
func (p running) spare(pace pace) time.Duration {
	p.earn(pace)
	return p.budget - pace.full()/2*min(p.asOf-p.slowAt, Interval)/Interval
}

// Timed samples the pools whose timers are due, as far as the budget allows, and reports whether none is
// left.
func (p *Purge) Timed() (done bool) {
	if !p.timers.isDue(p.clock.Now()) {
		return true
	}
	r := p.begin()
	defer r.end()
	pace := paceOf(p.Effort())
	limit := min(r.spare(pace), pace.fast)
	if limit <= 0 {
		return false
	}
	c := p.newCycle(pace, false, limit)
	for done = !c.sampleDue(); !done && !c.timeUp(); {
		done = !c.sampleDue()
	}
	p.budget -= c.used
	p.count(c, !done)
	return done
}

// newCycle returns a cycle that begins now.
func (p *Purge) newCycle(pace pace, slow bool, limit time.Duration) cycle {
	c := cycle{purge: p, pace: pace, slow: slow, limit: limit, began: p.mono(), burst: pace.burst(rest)}
	c.now = c.began
	return c
}

// earn adds to the budget what has been earned.
func (p running) earn(pace pace) {
	now := p.mono()
	earned := time.Duration(pace.share * float64(now-p.asOf))
	p.budget, p.asOf = min(p.budget+earned, pace.full()), now
}

// run runs a cycle over the hot pools, and over those of the scan if it is a slow one.
func (p running) run(pace pace, slow bool, limit time.Duration) State {
	c := p.newCycle(pace, slow, limit)
	var pools []Pool
	toSee := p.unseen.Load()
	if slow || toSee > 0 {
		pools = p.pools(p.next, maxScan)
	}
	toScan := len(pools)

	queue := p.hotQueue(slow)
	scanned, at, turns := 0, 0, 0
	due := true
	done := func() bool { return !due && scanned == toScan && len(queue) == 0 }
	for !done() && !c.timeUp() {
		if due = c.sampleDue(); c.timeUp() {
			break
		}
		if scanned < toScan {
			pool := pools[scanned]
			scanned++
			if p.hotBy[pool] == nil {
				if h, more := c.scan(pool); h != nil {
					p.hot = append(p.hot, h)
					p.hotBy[pool] = h
					if more {
						queue = append(queue, h)
					}
				}
			}
		}
		if len(queue) > 0 {
			turns++
			if at %= len(queue); c.sample(queue[at]) {
				at++
			} else { // the last of the queue takes its place
				queue[at] = queue[len(queue)-1]
				queue = queue[:len(queue)-1]
			}
		}
	}
	exhausted := !done()
	p.next = (p.next + scanned) & math.MaxInt32
	left := max(toSee-int64(scanned), 0)
	if scanned == toScan && toScan < maxScan {
		left = 0 // those are all pools: some are gone since Rescan
	}
	p.unseen.CompareAndSwap(toSee, left) // else Rescan has been called
	unseen := p.unseen.Load() > 0
	p.turn += turns
	p.cool(queue)
	p.budget -= c.used
	switch {
	case exhausted || unseen || c.hot.share() > pace.acceptable:
		p.state = Pressed
	case len(p.hot) > 0:
		p.state = Busy
	default:
		p.state = Quiet
	}
	p.count(c, exhausted)
	return p.state
}

// hotQueue returns the hot pools in the order of their turns in a new cycle.
func (p running) hotQueue(slow bool) []*hotPool {
	queue := p.queue[:0]
	for i := range p.hot {
		h := p.hot[(p.turn+i)%len(p.hot)]
		h.fresh = true
		if slow {
			h.misses++
		}
		queue = append(queue, h)
	}
	return queue
}

// cool removes the pools that are no longer hot.
func (p running) cool(queue []*hotPool) {
	p.hot = slices.DeleteFunc(p.hot, func(h *hotPool) bool {
		if h.misses < maxMisses {
			return false
		}
		delete(p.hotBy, h.pool)
		return true
	})
	p.queue = queue[:cap(queue)]
	clear(p.queue) // of references to pools
}

// count adds a cycle to the statistics.
func (p *Purge) count(c cycle, exhausted bool) {
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
	if c.slow { // fast cycles sample hot pools only, which are not representative
		s.StaleShare = 0.05*c.first.share() + 0.95*s.StaleShare
	}
}
