package expiry

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/test/drill"
)

// A deterministic simulation of the purge. Pools have items with known ends, and each sample has a cost. Only
// simulated work and the runner's pauses move the clock.

// sim is a simulation and its clock.
type sim struct {
	now     time.Duration
	ends    []time.Duration // of all items, ascending
	removed int             // items
	pools   []Pool
	purge   *Purge
	runner  *Runner

	blur time.Duration // moves ends by up to this much either way, as TTLs of whole seconds do

	perSample, perDraw, perRemoval time.Duration
}

func newSim(effort int) *sim {
	s := &sim{perSample: 200 * time.Nanosecond, perDraw: 10 * time.Nanosecond, perRemoval: 1500 * time.Nanosecond}
	s.purge = NewPurge(effort, simClock{s}, s.some)
	s.purge.mono = func() time.Duration { return s.now }
	s.purge.rest = func(d time.Duration) { s.now += d + 60*time.Microsecond }
	s.purge.asOf = 0
	s.runner = NewRunner(s.purge)
	return s
}

// simClock is the clock of the items in a simulation.
type simClock struct{ *sim }

func (c simClock) Now() int64    { return c.now.Milliseconds() }
func (c simClock) Micros() int64 { return c.now.Microseconds() }

// some returns up to n pools from a position on.
func (s *sim) some(from, n int) (list []Pool) {
	for i := range min(n, len(s.pools)) {
		list = append(list, s.pools[(from+i)%len(s.pools)])
	}
	return list
}

// load adds pools and items that die evenly over a time, spread randomly over the pools.
func (s *sim) load(pools, items int, over time.Duration) {
	rng := rand.New(rand.NewPCG(1, 2))
	list := make([]*simPool, pools)
	for i := range list {
		list[i] = &simPool{sim: s}
		s.pools = append(s.pools, list[i])
	}
	for range items {
		end := time.Duration(rng.Int64N(int64(over)))
		if s.blur > 0 {
			end = max(end+time.Duration(rng.Int64N(int64(s.blur))-rng.Int64N(int64(s.blur))), 0)
		}
		p := list[rng.IntN(pools)]
		p.ends = append(p.ends, end)
		s.ends = append(s.ends, end)
	}
	slices.Sort(s.ends)
	for _, p := range list {
		slices.Sort(p.ends)
	}
}

// simPool is a simulated pool. It looks at a bucket of items when one of them may be dead.
type simPool struct {
	sim     *sim
	ends    []time.Duration // ascending
	samples int
}

const simBucket = 200

func (p *simPool) Sample(n int) (got Sample) {
	p.samples++
	s := p.sim
	got.All = len(p.ends)
	got.Due, _ = slices.BinarySearch(p.ends, s.now+1)
	if got.Due > 0 {
		got.Dead = min(got.Due, n)
		got.Drawn = min(len(p.ends), got.Dead+simBucket)
		got.More = got.Due > got.Dead
		p.ends = p.ends[got.Dead:]
		s.removed += got.Dead
	}
	s.now += s.perSample + time.Duration(got.Drawn)*s.perDraw + time.Duration(got.Dead)*s.perRemoval
	return got
}

// run runs cycles until a moment and calls look before each.
func (s *sim) run(until time.Duration, look func()) {
	for s.now < until {
		look()
		s.now += s.runner.step()
	}
}

// deadShare returns the share of dead items among those in memory now.
func (s *sim) deadShare() float64 {
	died, _ := slices.BinarySearch(s.ends, s.now+1)
	return float64(died-s.removed) / float64(max(len(s.ends)-s.removed, 1))
}

// TestPurgeBoundsTheDeadShare lets items die at 16,700 a second, as a million over one minute do. It follows
// the share of dead items in memory until hardly any are left.
func TestPurgeBoundsTheDeadShare(t *testing.T) {
	t.Parallel()
	items, over, begin := 100_000, 6*time.Second, time.Second // the last tenth of the minute, the hardest, and some time before
	if drill.On() {
		items, over, begin = 1_000_000, time.Minute, 0
	}
	const lastMoments = 1200 * time.Millisecond // about 5000 items are left then, and a moment's deaths are a large share
	for _, tc := range []struct {
		name    string
		effort  int
		pools   int
		perDraw time.Duration
		promise float64
	}{
		{"effort 1", 1, 16, 10, 0.10},
		{"effort 1, slow memory", 1, 16, 50, 0.10},
		{"effort 1, 256 pools", 1, 256, 10, 0.10},
		{"effort 10", 10, 16, 10, 0.02},
		{"effort 10, slow memory", 10, 16, 50, 0.02},
		{"effort 10, 1 pool", 10, 1, 10, 0.02},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSim(tc.effort)
			s.perDraw = tc.perDraw
			s.blur = time.Second
			s.load(tc.pools, items, over)
			var worst, sum float64
			looks := 0
			last := s.ends[len(s.ends)-1]
			s.run(last, func() {
				if s.now < begin || last-s.now < lastMoments {
					return
				}
				worst = max(worst, s.deadShare())
				sum += s.deadShare()
				looks++
			})
			st := s.purge.Stats()
			t.Logf("dead in memory: at most %.2f %%, mean %.2f %%; %.1f %% of one CPU, %d draws/s, longest cycle %v",
				100*worst, 100*sum/float64(looks), 100*float64(st.TimeSpent)/float64(s.now),
				st.Sampled*int64(time.Second)/int64(s.now), st.LongestCycle)
			if worst >= tc.promise {
				t.Errorf("%.2f %% were dead, promised is less than %.0f %%", 100*worst, 100*tc.promise)
			}
			s.checkBudget(t)

			s.run(s.now+time.Second, func() {})
			if left := len(s.ends) - s.removed; left != 0 {
				t.Errorf("%d dead items are still there a second after the last died", left)
			}
			if st := s.purge.Stats(); st.RemovedActively != int64(items) {
				t.Errorf("counted %d removals of %d", st.RemovedActively, items)
			}
		})
	}
}

// checkBudget checks that all cycles, and each cycle, used at most the share of the CPU that the effort
// allows.
func (s *sim) checkBudget(t *testing.T) {
	t.Helper()
	pace := paceOf(s.purge.Effort())
	sample := s.perSample + simBucket*s.perDraw + time.Duration(pace.sample)*(s.perDraw+s.perRemoval)
	st := s.purge.Stats()
	if most := time.Duration(pace.share*float64(s.now)) + pace.full() + sample; st.TimeSpent > most {
		t.Errorf("spent %v of %v, allowed are %v", st.TimeSpent, s.now, most)
	}
	if st.LongestCycle > pace.full()+sample {
		t.Errorf("a cycle took %v, allowed are %v", st.LongestCycle, pace.full())
	}
}

// TestMillionAtOnce: when a million items die at once, the purge works at its full share, without long
// cycles.
func TestMillionAtOnce(t *testing.T) {
	t.Parallel()
	for _, effort := range []int{1, 10} {
		s := newSim(effort)
		s.load(16, 1_000_000, 1)
		s.now = time.Hour
		began := s.now
		var done time.Duration
		s.run(began+20*time.Second, func() {
			if done == 0 && s.removed == len(s.ends) {
				done = s.now - began
			}
		})
		// The removals alone at the share of the CPU, and a quarter for everything else.
		most := time.Duration(1.25 * float64(len(s.ends)) * float64(s.perRemoval+s.perDraw) / paceOf(effort).share)
		if done == 0 || done > most {
			t.Errorf("effort %d: took %v, expected %v at most", effort, done, most)
		}
		t.Logf("effort %d: removed after %v", effort, done)
		st := s.purge.Stats()
		if most := time.Duration(paceOf(effort).share*float64(done)) + 2*paceOf(effort).full(); st.TimeSpent > most {
			t.Errorf("effort %d: spent %v, allowed are %v", effort, st.TimeSpent, most)
		}
		if quiet := s.purge.state; quiet != Quiet {
			t.Errorf("effort %d: state %d when all is removed", effort, quiet)
		}
	}
}

func TestIdlePurgeIsCheap(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name         string
		pools, items int
		most         float64 // share of a CPU
	}{
		{"databases whose items never die", 256, 0, 0.001},
		{"thousands of containers whose items never die", 160_000, 0, 0.01},
		{"a million items that live", 256, 1_000_000, 0.015},
		{"thousands of containers with items that live", 16_000, 1_000_000, 0.05},
	} {
		s := newSim(1)
		s.load(tc.pools, tc.items, 1)
		s.now = -10 * time.Second // all die at 0
		s.purge.asOf, s.runner.slowAt = s.now, s.now
		s.run(-time.Second, func() {})
		if share := s.purge.Stats().TimeSpent.Seconds() / 9; share > tc.most {
			t.Errorf("%s: %.2f %% of a CPU, at most %.2f expected", tc.name, 100*share, 100*tc.most)
		}
	}
}

// TestNoPoolStarves has more pools than a cycle can sample.
func TestNoPoolStarves(t *testing.T) {
	t.Parallel()
	const pools = 16_000
	t.Run("all die", func(t *testing.T) {
		s := newSim(1)
		s.load(pools, 500_000, 1)
		s.now = time.Hour
		s.run(s.now+5*time.Second, func() {})
		for i, p := range s.pools {
			if p.(*simPool).samples == 0 {
				t.Fatalf("pool %d was never sampled", i)
			}
		}
		s.run(s.now+15*time.Second, func() {})
		if left := len(s.ends) - s.removed; left != 0 {
			t.Errorf("%d left", left)
		}
	})
	t.Run("few pools with deaths among many without", func(t *testing.T) {
		s := newSim(1)
		s.load(16, 250_000, 15*time.Second)
		for range pools - 16 {
			ends := make([]time.Duration, 30)
			for i := range ends {
				ends[i] = time.Hour
			}
			s.pools = append(s.pools, &simPool{sim: s, ends: ends})
		}
		rand.New(rand.NewPCG(5, 6)).Shuffle(pools, func(i, j int) { s.pools[i], s.pools[j] = s.pools[j], s.pools[i] })
		var worst float64
		s.run(14*time.Second, func() {
			if s.now > 2*time.Second { // once the scan has seen all pools
				worst = max(worst, s.deadShare())
			}
		})
		t.Logf("at most %.2f %% dead", 100*worst)
		if worst >= 0.10 {
			t.Errorf("%.2f %% were dead", 100*worst)
		}
		s.checkBudget(t)
	})
}
