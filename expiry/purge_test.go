package expiry

import (
	"sync"
	"testing"
	"time"

	"mayfly/expiry/clock"
)

func TestPaceOfEfforts(t *testing.T) {
	t.Parallel()
	for effort, want := range map[int]pace{
		1:  {20, 0.25, 0.10, time.Millisecond, 10 * time.Millisecond},
		2:  {25, 0.27, 0.09, 1250 * time.Microsecond, 9 * time.Millisecond},
		10: {65, 0.43, 0.01, 3250 * time.Microsecond, time.Millisecond},
	} {
		if got := paceOf(effort); got != want {
			t.Errorf("effort %d: %+v, want %+v", effort, got, want)
		}
	}
	if paceOf(0) != paceOf(1) || paceOf(11) != paceOf(10) || paceOf(-5) != paceOf(1) {
		t.Error("efforts out of range are not moved to the nearest")
	}
}

// TestEffortChanges: a change of the effort takes effect in the next cycle.
func TestEffortChanges(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	asked := 0
	pool := poolFunc(func(n int) Sample {
		asked = n
		return Sample{}
	})
	s.pools = []Pool{&pool}
	if s.purge.Slow(); asked != 20 {
		t.Errorf("effort 1 asks a pool for %d", asked)
	}
	s.purge.SetEffort(10)
	if s.purge.Slow(); asked != 65 || s.purge.Effort() != 10 {
		t.Errorf("effort %d asks a pool for %d", s.purge.Effort(), asked)
	}
	s.purge.SetEffort(99)
	if s.purge.Effort() != MaxEffort {
		t.Errorf("effort is %d", s.purge.Effort())
	}
}

// TestOneSlowCycleCleansSmallPools: one cycle finds all dead items among few. Tests that call Slow rely on
// it.
func TestOneSlowCycleCleansSmallPools(t *testing.T) {
	t.Parallel()
	for _, pools := range []int{1, 16, 256} {
		s := newSim(1)
		s.load(pools, 1000, 1)
		s.now = time.Hour
		running{s.purge}.earn(paceOf(1))
		s.purge.Slow()
		if left := len(s.ends) - s.removed; left != 0 {
			t.Errorf("%d pools: %d of 1000 dead items are left", pools, left)
		}
	}
}

// TestFastCycles: fast cycles do not run while nothing dies, come evenly, and leave the next slow one its
// budget.
func TestFastCycles(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.purge.rest = func(time.Duration) {} // only work takes time
	s.load(4, 100_000, 1)
	s.now = -time.Hour
	s.purge.asOf = s.now
	s.purge.Slow()
	if state := s.purge.Fast(); state != Quiet || s.purge.Stats().Cycles != 1 {
		t.Errorf("state %d, %d cycles while all live", state, s.purge.Stats().Cycles)
	}

	s.now = time.Hour
	if state := s.purge.Slow(); state != Pressed {
		t.Errorf("state %d with 100,000 dead", state)
	}
	// The slow cycle has spent the budget of 25 ms. Half of what is earned from then on is for fast cycles of
	// 1 ms: one in 8 ms.
	began, last := s.now-25*time.Millisecond, s.now
	for s.now < began+Interval {
		before := s.purge.Stats()
		s.purge.Fast()
		after := s.purge.Stats()
		if after.Cycles > before.Cycles {
			if pause := s.now - last; pause > 10*time.Millisecond {
				t.Errorf("no fast cycle for %v", pause)
			}
			last = s.now
		}
		if spent := after.TimeSpent - 25*time.Millisecond; spent > (s.now-began)/8+time.Millisecond {
			t.Fatalf("fast cycles took %v in %v: that is for the slow one", spent, s.now-began)
		}
		s.now += time.Millisecond
	}
	if n := s.purge.Stats().Cycles - 2; n < 8 {
		t.Errorf("only %d fast cycles", n)
	}
	before := s.purge.Stats().TimeSpent
	s.purge.Slow()
	if got := s.purge.Stats().TimeSpent - before; got < 12*time.Millisecond {
		t.Errorf("the slow cycle got %v", got)
	}
}

// TestFastCyclesTakeTurns: fast cycles that cannot sample all hot pools sample them in turn.
func TestFastCyclesTakeTurns(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(1000, 1_000_000, 1)
	s.now = time.Hour
	for range 3 {
		s.now += Interval
		s.purge.Slow()
	}
	samples := map[*simPool]int{}
	for _, v := range s.purge.hot {
		samples[v.pool.(*simPool)] = v.pool.(*simPool).samples
	}
	if len(samples) < 500 {
		t.Fatalf("only %d pools are hot", len(samples))
	}
	const perCycle = 30 // samples of 20 dead in a millisecond
	for range 2 * len(samples) / perCycle {
		s.now += Interval
		s.purge.Fast()
	}
	for p, before := range samples {
		if p.samples == before {
			t.Fatal("a pool had no turn in two rounds")
		}
	}
}

// TestPurgeBecomesQuiet: when all dead items are removed, the purge stops looking.
func TestPurgeBecomesQuiet(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(1, 100_000, 1)
	ends := s.pools[0].(*simPool).ends
	for i := range ends[:50_000] {
		ends[50_000+i] = 2 * time.Hour
	}
	s.now = time.Hour
	s.run(s.now+2*time.Second, func() {})
	if left := len(s.pools[0].(*simPool).ends); left != 50_000 {
		t.Errorf("%d items are left, 50,000 of them alive", left)
	}
	before := s.purge.Stats()
	s.run(s.now+time.Second, func() {})
	if after := s.purge.Stats(); after.Sampled != before.Sampled || after.Cycles > before.Cycles+11 || s.purge.state != Quiet {
		t.Errorf("state %d; %d draws and %d cycles in a second in which nothing dies", s.purge.state,
			after.Sampled-before.Sampled, after.Cycles-before.Cycles)
	}
}

// TestBurst: bursts and rests give a cycle its share, also if rests take longer than asked for. No burst is
// longer than a fast cycle.
func TestBurst(t *testing.T) {
	t.Parallel()
	for effort := MinEffort; effort <= MaxEffort; effort++ {
		pace := paceOf(effort)
		for _, rest := range []time.Duration{rest, 2 * rest, 4 * rest} {
			work := pace.burst(rest)
			if share := float64(work) / float64(work+rest); share > pace.share || share < pace.share-0.01 && work < pace.fast {
				t.Errorf("effort %d: %v of work after a rest of %v: a share of %.3f, want %.3f", effort, work, rest, share, pace.share)
			}
		}
		if work := pace.burst(time.Hour); work != pace.fast {
			t.Errorf("effort %d: %v of work in a burst", effort, work)
		}
	}
}

// TestCyclesRest: a cycle rests at times, and ends if a rest takes too long.
func TestCyclesRest(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(16, 100_000, 1)
	s.now = time.Hour
	rests := 0
	s.purge.rest = func(d time.Duration) { rests, s.now = rests+1, s.now+d }
	s.purge.Slow()
	if used := s.purge.Stats().TimeSpent; rests < int(used/paceOf(1).burst(rest))*3/4 {
		t.Errorf("%d rests in %v of work", rests, used)
	}
	s.now += time.Second
	s.purge.rest = func(time.Duration) { s.now += 10 * time.Millisecond }
	began := s.now
	s.purge.Slow()
	if took := s.now - began; took > Interval+20*time.Millisecond {
		t.Errorf("a cycle took %v", took)
	}
}

// TestDroppedHotPools: the purge releases a pool that is dropped while it is hot.
func TestDroppedHotPools(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(8, 100_000, 1)
	s.now = time.Hour
	s.purge.Slow()
	if len(s.purge.hot) != 8 || len(s.purge.hotBy) != 8 {
		t.Fatalf("%d hot pools, want 8", len(s.purge.hot))
	}
	for _, p := range s.pools {
		p.(*simPool).ends = nil
	}
	s.pools = nil
	s.now += time.Second
	s.purge.Slow()
	if len(s.purge.hot) != 0 || len(s.purge.hotBy) != 0 {
		t.Errorf("%d dropped pools are still known", len(s.purge.hot))
	}
	for _, v := range s.purge.queue[:cap(s.purge.queue)] {
		if v != nil {
			t.Error("the queue still holds a dropped pool")
		}
	}
	s.purge.Slow() // no pools at all
}

// TestStaleShareIsEstimated: while items die at random, the estimate is close to the truth.
func TestStaleShareIsEstimated(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(16, 500_000, 30*time.Second)
	var truth float64
	looks := 0
	s.run(20*time.Second, func() {
		if s.now > 10*time.Second {
			truth += s.deadShare()
			looks++
		}
	})
	truth /= float64(looks)
	if got := s.purge.Stats().StaleShare; got < truth/2 || got > truth*2 {
		t.Errorf("estimated %.3f, it was %.3f on average", got, truth)
	}
	s.run(40*time.Second, func() {})
	if got := s.purge.Stats().StaleShare; got > 0.001 {
		t.Errorf("estimated %.3f long after all is removed", got)
	}
}

// lockedPool is a pool as in use: a mutex, a list and a clock.
type lockedPool struct {
	mu   sync.Mutex // protects what follows
	ends []int64

	clock *clock.Manual
	empty chan<- struct{}
}

func (p *lockedPool) add(end int64) {
	p.mu.Lock()
	p.ends = append(p.ends, end)
	p.mu.Unlock()
}

func (p *lockedPool) Sample(n int) (got Sample) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.clock.Now()
	got.All = len(p.ends)
	for i := 0; i < len(p.ends); {
		got.Drawn++
		switch {
		case p.ends[i] > now:
			i++
			continue
		case got.Dead == n:
			got.More = true
			return got
		}
		last := len(p.ends) - 1
		p.ends[i] = p.ends[last]
		p.ends = p.ends[:last]
		got.Dead++
		if last == 0 {
			p.empty <- struct{}{}
		}
	}
	got.Due = got.Dead
	return got
}

// TestRunner runs the goroutine while others write, change the effort, count and read statistics.
func TestRunner(t *testing.T) {
	t.Parallel()
	const pools, items = 16, 2000
	clock := clock.NewManual(1)
	empty := make(chan struct{}, pools*items)
	var list []Pool
	for range pools {
		list = append(list, &lockedPool{clock: clock, empty: empty})
	}
	p := NewPurge(1, clock, func(int, int) []Pool { return list })
	r := NewRunner(p)
	r.Start()

	var work sync.WaitGroup
	for i, pool := range list {
		work.Go(func() {
			for n := range items {
				pool.(*lockedPool).add(int64(1000 + n))
				if n%100 == 0 {
					p.CountLazy(2)
					p.SetEffort(1 + (i+n/100)%10)
					if s := p.Stats(); s.RemovedActively != 0 {
						t.Errorf("%d living items were removed", s.RemovedActively)
					}
				}
			}
		})
	}
	work.Wait()
	clock.Advance(time.Hour)
	for range pools {
		<-empty
	}
	r.Stop()
	s := p.Stats()
	if s.RemovedActively != pools*items || s.RemovedLazily != pools*items/100*2 {
		t.Errorf("removed %d actively, %d lazily", s.RemovedActively, s.RemovedLazily)
	}
	if s.Sampled < s.RemovedActively || s.Cycles == 0 || s.TimeSpent <= 0 || s.LongestCycle <= 0 || s.LongestCycle > s.TimeSpent {
		t.Errorf("inconsistent statistics: %+v", s)
	}
	if again := p.Stats(); again != s {
		t.Errorf("it goes on after Stop: %+v, then %+v", s, again)
	}
}

func TestStopWithoutStart(t *testing.T) {
	t.Parallel()
	NewRunner(NewPurge(1, clock.NewManual(1), func(int, int) []Pool { return nil })).Stop()
}

// TestStatsDoNotWait: Stats returns during a cycle.
func TestStatsDoNotWait(t *testing.T) {
	t.Parallel()
	p := NewPurge(1, clock.NewManual(1), nil)
	inside := poolFunc(func(int) Sample {
		p.CountLazy(1)
		if s := p.Stats(); s.RemovedLazily != 1 || s.Cycles != 0 {
			t.Errorf("during the first cycle: %+v", s)
		}
		return Sample{}
	})
	p.pools = func(int, int) []Pool { return []Pool{&inside} }
	p.Slow()
	if s := p.Stats(); s.RemovedLazily != 1 || s.Cycles != 1 {
		t.Errorf("after the first cycle: %+v", s)
	}
}

type poolFunc func(n int) Sample

func (f *poolFunc) Sample(n int) Sample { return (*f)(n) }

// BenchmarkSlowAtRest measures a slow cycle when nothing could die.
func BenchmarkSlowAtRest(b *testing.B) {
	nothing := poolFunc(func(int) Sample { return Sample{} })
	list := make([]Pool, 256)
	for i := range list {
		list[i] = &nothing
	}
	p := NewPurge(1, clock.NewManual(1), func(int, int) []Pool { return list })
	for range b.N {
		p.Slow()
	}
}

// TestDrain: Drain removes the dead of all pools, however many, and stops as soon as that is enough. A pool
// is asked again while it says that it has more.
func TestDrain(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(3, 5000, 2*time.Hour)
	s.now = time.Hour
	dead := 0
	for _, end := range s.ends {
		if end <= s.now {
			dead++
		}
	}
	if s.purge.Drain(func() bool { return s.removed > 0 }) || s.removed == 0 || s.removed > drainSample {
		t.Errorf("%d are removed where one is enough", s.removed)
	}
	if !s.purge.Drain(func() bool { return false }) || s.removed != dead {
		t.Errorf("%d of %d dead are removed", s.removed, dead)
	}
	if !s.purge.Drain(func() bool { return s.removed > dead }) {
		t.Error("pools without dead are not drained")
	}
	if s.purge.Drain(func() bool { return true }) {
		t.Error("what is enough at once counts as drained")
	}
}

// TestDueBetweenCycles: while someone takes long with the pools that are due, cycles run.
func TestDueBetweenCycles(t *testing.T) {
	t.Parallel()
	c := clock.NewManual(1)
	sampled := 0
	pool := poolFunc(func(int) Sample {
		sampled++
		return Sample{}
	})
	p := NewPurge(1, c, func(int, int) []Pool { return []Pool{&pool} })
	p.NewTimer(&pool).Set(1)
	p.Due(2, func(pools []Pool) {
		p.Slow()
		if len(pools) != 1 || sampled != 1 {
			t.Errorf("%d pools are due, %d samples in a cycle", len(pools), sampled)
		}
	})
	if sampled != 2 || p.NextDue() != NeverDue {
		t.Errorf("%d samples, the next is due at %d", sampled, p.NextDue())
	}
}
