package expiry

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/test/drill"
)

// timedPool is a simulated pool with a timer. Items die at whole milliseconds.
type timedPool struct {
	sim     *sim
	timer   *Timer
	ends    []int64         // ms, ascending
	late    []time.Duration // of the items that were removed
	samples int
	blocked bool // nothing can be removed
}

func (s *sim) timedPool() *timedPool {
	p := &timedPool{sim: s}
	p.timer = s.purge.NewTimer(p)
	s.pools = append(s.pools, p)
	return p
}

func (p *timedPool) put(end int64) {
	at, _ := slices.BinarySearch(p.ends, end)
	p.ends = slices.Insert(p.ends, at, end)
	p.timer.Earlier(end)
}

func (p *timedPool) Sample(n int) (got Sample) {
	p.samples++
	s := p.sim
	now := s.now.Milliseconds()
	got.All = len(p.ends)
	got.Due, _ = slices.BinarySearch(p.ends, now+1)
	if got.Due > 0 && !p.blocked {
		got.Dead = min(got.Due, n)
		got.Drawn = min(len(p.ends), got.Dead+simBucket)
		got.More = got.Due > got.Dead
		for _, end := range p.ends[:got.Dead] {
			p.late = append(p.late, s.now-time.Duration(end)*time.Millisecond)
		}
		p.ends = p.ends[got.Dead:]
	}
	if len(p.ends) > 0 {
		p.timer.Set(max(p.ends[0], now))
	} else {
		p.timer.Set(NeverDue)
	}
	s.now += s.perSample + time.Duration(got.Drawn)*s.perDraw + time.Duration(got.Dead)*s.perRemoval
	return got
}

// timerGrain is how much later than asked for the runner wakes, at most.
const timerGrain = time.Millisecond

// runTimed is run with a runner that wakes late, as on an idle machine, and that a timer wakes which is set
// meanwhile. act is called for each moment of a list, during cycles too.
func (s *sim) runTimed(until time.Duration, moments []time.Duration, act func()) {
	rng := rand.New(rand.NewPCG(3, 4))
	s.purge.mono = func() time.Duration {
		for len(moments) > 0 && moments[0] <= s.now {
			moments = moments[1:]
			act()
		}
		return s.now
	}
	for s.now < until {
		wake := s.now + s.runner.step() + time.Duration(rng.Int64N(int64(timerGrain)))
		for len(moments) > 0 && moments[0] <= wake {
			s.now = max(s.now, moments[0])
			s.purge.mono()
			if s.rings() {
				wake = s.now
			}
		}
		s.now = max(s.now, wake)
	}
}

// TestTimersArePunctual lets 100,000 items a minute die in pools with timers, alone and beside other work of
// the purge.
func TestTimersArePunctual(t *testing.T) {
	t.Parallel()
	over := drill.Pick[time.Duration](1, 4, 12) * time.Second
	for _, tc := range []struct {
		name     string
		effort   int
		pools    int // with timers
		beside   func(s *sim)
		p50, p99 time.Duration
	}{
		{"alone", 1, 16, nil, 2 * time.Millisecond, 3 * time.Millisecond},
		{"alone, effort 10", 10, 16, nil, 2 * time.Millisecond, 3 * time.Millisecond},
		{"in thousands of containers", 1, 20_000, nil, 2 * time.Millisecond, 5 * time.Millisecond},
		{"beside a million living items", 1, 16, func(s *sim) {
			s.load(4000, 1_000_000, 1)
			for _, p := range s.pools[16:] {
				for i := range p.(*simPool).ends {
					p.(*simPool).ends[i] = time.Hour
				}
			}
		}, 2 * time.Millisecond, 10 * time.Millisecond},
		{"beside a million that die in the same time", 1, 16, func(s *sim) { s.load(16, 1_000_000, over) }, 3 * time.Millisecond, 25 * time.Millisecond},
		{"beside more deaths than the budget allows", 1, 16, func(s *sim) { s.load(256, 4_000_000, 1) }, 5 * time.Millisecond, 25 * time.Millisecond},
		{"beside pools that are to get timers", 1, 16, func(s *sim) {
			s.load(200_000, 0, 1)
			s.purge.Rescan(200_000)
		}, 2 * time.Millisecond, 25 * time.Millisecond},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newSim(tc.effort)
			rng := rand.New(rand.NewPCG(1, 2))
			timed := make([]*timedPool, tc.pools)
			for i := range timed {
				timed[i] = s.timedPool()
			}
			if tc.beside != nil {
				tc.beside(s)
			}
			// Half of the items are known from the start, the others die soon after they are put.
			deaths := int(over.Seconds() * 100_000 / 60)
			for range deaths / 2 {
				p := timed[rng.IntN(len(timed))]
				p.ends = append(p.ends, 1+rng.Int64N(over.Milliseconds()))
			}
			for _, p := range timed {
				if slices.Sort(p.ends); len(p.ends) > 0 {
					p.timer.Set(p.ends[0])
				}
			}
			moments := make([]time.Duration, deaths/2)
			for i := range moments {
				moments[i] = time.Duration(i) * over / time.Duration(len(moments))
			}
			s.runTimed(over+time.Second, moments, func() {
				timed[rng.IntN(len(timed))].put(s.now.Milliseconds() + 1 + rng.Int64N(50))
			})
			var late []time.Duration
			for _, p := range timed {
				late = append(late, p.late...)
			}
			slices.Sort(late)
			if len(late) != deaths/2*2 {
				t.Fatalf("%d of %d were removed", len(late), deaths/2*2)
			}
			p50, p99 := late[len(late)/2], late[len(late)*99/100]
			st := s.purge.Stats()
			t.Logf("lateness p50 %v, p99 %v, max %v; %.1f %% of one CPU, %d cycles", p50, p99, late[len(late)-1],
				100*float64(st.TimeSpent)/float64(s.now), st.Cycles)
			if late[0] < 0 {
				t.Errorf("removed %v before its end", -late[0])
			}
			if p50 > tc.p50 || p99 > tc.p99 {
				t.Errorf("lateness p50 %v, p99 %v; at most %v and %v are allowed", p50, p99, tc.p50, tc.p99)
			}
			s.checkBudget(t)
		})
	}
}
