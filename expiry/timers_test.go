package expiry

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/test/drill"
)

// TestTimersAreAHeap sets, takes and removes timers at random and compares with a list.
func TestTimersAreAHeap(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	s := newSim(1)
	type set struct {
		timer *Timer
		turn  int
	}
	var list []set // of timers that are set
	all := make([]*Timer, 300)
	for i := range all {
		all[i] = s.purge.NewTimer(&simPool{sim: s})
	}
	compare := func(a, b set) int {
		if a.timer.At() != b.timer.At() {
			return int(a.timer.At() - b.timer.At())
		}
		return a.turn - b.turn
	}
	timers := &s.purge.timers
	for turn := range drill.Pick(10_000, 50_000, 50_000) {
		timer := all[rng.IntN(len(all))]
		has := func(l set) bool { return l.timer == timer }
		switch rng.IntN(8) {
		case 0:
			timer.Set(NeverDue)
			list = slices.DeleteFunc(list, has)
		case 1:
			now := rng.Int64N(100)
			var want *Timer
			if len(list) > 0 && list[0].timer.At() <= now {
				want, list = list[0].timer, list[1:]
			}
			if got := timers.take(now); got != want {
				t.Fatalf("step %d: took another timer than the first of %d", turn, len(list))
			}
			if want != nil && want.At() != NeverDue {
				t.Fatal("a timer that was taken is still set")
			}
		case 2:
			at := rng.Int64N(100)
			if at < timer.At() {
				list = append(slices.DeleteFunc(list, has), set{timer, turn})
			}
			timer.Earlier(at)
		default:
			timer.Set(rng.Int64N(100))
			list = append(slices.DeleteFunc(list, has), set{timer, turn})
		}
		slices.SortFunc(list, compare)
		first := NeverDue
		if len(list) > 0 {
			first = list[0].timer.At()
		}
		if timers.first.Load() != first || len(timers.slots) != len(list) {
			t.Fatalf("step %d: first %d of %d, want %d of %d", turn, timers.first.Load(), len(timers.slots), first, len(list))
		}
		for i, slot := range timers.slots {
			if slot.timer.place != i || slot.at != slot.timer.At() {
				t.Fatalf("step %d: a timer does not know its place", turn)
			}
		}
	}
}

// rings reports whether the runner was woken.
func (s *sim) rings() bool {
	return drill.Done(s.purge.timers.ring)
}

// TestEarlierTimersRing: a timer that is due before the runner would wake wakes it, once. Others do not.
func TestEarlierTimersRing(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.now = 10*time.Millisecond + 400*time.Microsecond
	a, b := s.timedPool(), s.timedPool()
	a.put(40)
	if s.rings() {
		t.Error("a timer rings while the runner does not sleep")
	}
	if wait := s.purge.timers.sleep(simClock{s}.Micros(), Interval, 0); wait != 29600*time.Microsecond {
		t.Errorf("sleeps for %v, the first timer is due in 29.6 ms", wait)
	}
	if b.put(50); s.rings() {
		t.Error("a timer rings that is due later")
	}
	if b.put(39); !s.rings() {
		t.Error("a timer does not ring that is due before the runner wakes")
	}
	if b.put(38); s.rings() {
		t.Error("a second timer rings before the runner has woken")
	}
	s.purge.timers.awake()
	if wait := s.purge.timers.sleep(simClock{s}.Micros(), 20*time.Millisecond, 0); wait != 20*time.Millisecond {
		t.Errorf("sleeps for %v, longer than it may", wait)
	}
	if a.put(32); s.rings() {
		t.Error("a timer rings that is due after the runner has woken")
	}
	if a.put(30); !s.rings() {
		t.Error("a timer does not ring that is due in the last part of a millisecond")
	}
	s.now = 60 * time.Millisecond
	if wait := s.purge.timers.sleep(simClock{s}.Micros(), Interval, 0); wait != 0 {
		t.Errorf("sleeps for %v with timers that are due", wait)
	}
	if wait := s.purge.timers.sleep(simClock{s}.Micros(), Interval, time.Millisecond); wait != time.Millisecond {
		t.Errorf("pauses for %v", wait)
	}
}

// TestPutOffEndsDoNotSpin: of items whose ends are put off again and again none costs more than one sample
// each time.
func TestPutOffEndsDoNotSpin(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	p := s.timedPool()
	const items, ttl = 50, 100
	for i := range int64(items) {
		p.put(ttl + i*2)
	}
	const over = 10 * time.Second
	var moments []time.Duration
	for at := time.Duration(0); at < over; at += time.Millisecond {
		moments = append(moments, at)
	}
	i := 0
	s.runTimed(over, moments, func() { // each item is touched every 50 ms; the timer stays too early
		for n := range p.ends {
			if (n+i)%50 == 0 {
				p.ends[n] = s.now.Milliseconds() + ttl
			}
		}
		i++
		slices.Sort(p.ends)
	})
	if len(p.ends) != items {
		t.Fatalf("%d of %d are left", len(p.ends), items)
	}
	// One for each slow cycle, and one each time that a timer was too early: at least 50 ms apart.
	if most := int(over/Interval + over/(50*time.Millisecond) + 2); p.samples > most {
		t.Errorf("%d samples in %v, at most %d expected", p.samples, over, most)
	}
}

// TestBlockedPoolsDoNotSpin: a pool that can remove nothing, as while the disk fails, is asked a few times in
// an interval. So is one while timers are held.
func TestBlockedPoolsDoNotSpin(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	p := s.timedPool()
	p.blocked = true
	p.put(10)
	s.runTimed(10*time.Second, nil, nil)
	if p.samples > 310 { // of slow cycles, and of the timer that each of them sets again
		t.Errorf("%d samples in 10 s of a pool that can remove nothing", p.samples)
	}
	p.blocked = false
	s.runTimed(s.now+200*time.Millisecond, nil, nil)
	if len(p.ends) != 0 {
		t.Error("the item is not removed after the pool can remove again")
	}

	before := s.purge.Stats().Cycles
	p.blocked = true
	until := s.now + time.Second
	s.purge.HoldTimers(until.Milliseconds())
	p.put(s.now.Milliseconds() + 10)
	s.runTimed(until-10*time.Millisecond, nil, nil)
	if n := s.purge.Stats().Cycles - before; n > 12 {
		t.Errorf("%d cycles in a second in which nothing may be removed", n)
	}
	p.blocked = false
	s.runTimed(until+3*time.Millisecond, nil, nil)
	if len(p.ends) != 0 {
		t.Error("the item is not removed when timers are not held any more")
	}
	p.put(s.now.Milliseconds() + 500)
	s.purge.HoldTimers(s.now.Milliseconds() + 1_000_000)
	s.runner.step()
	s.rings()
	if s.purge.HoldTimers(0); !s.rings() {
		t.Error("the runner sleeps on when timers are not held any more")
	}
}

// TestTimersShareTheBudget: more deaths in pools with timers than the budget allows neither exceed it, nor
// starve each other, nor the pools without timers.
func TestTimersShareTheBudget(t *testing.T) {
	t.Parallel()
	for _, effort := range []int{1, 10} {
		s := newSim(effort)
		overdue, other := s.timedPool(), s.timedPool()
		s.load(1, 1_000_000, 1)
		plain := s.pools[len(s.pools)-1].(*simPool)
		s.now = time.Second
		for range 1_000_000 {
			overdue.ends = append(overdue.ends, 1)
		}
		overdue.timer.Set(1)
		const over = 5 * time.Second
		var moments []time.Duration
		for at := s.now; at < s.now+over; at += time.Millisecond {
			moments = append(moments, at)
		}
		s.runTimed(s.now+over, moments, func() { other.put(s.now.Milliseconds() + 5) })
		slices.Sort(other.late)
		p99 := other.late[len(other.late)*99/100]
		byTimer, byTurn := 1_000_000-len(overdue.ends), 1_000_000-len(plain.ends)
		st := s.purge.Stats()
		t.Logf("effort %d: %d removed by timers, %d by turns; p99 %v; %.1f %% of one CPU", effort, byTimer, byTurn, p99,
			100*float64(st.TimeSpent)/float64(s.now))
		if p99 > 10*time.Millisecond {
			t.Errorf("effort %d: beside a pool with a million overdue the lateness is p99 %v", effort, p99)
		}
		if byTurn < byTimer/4 || byTimer < byTurn {
			t.Errorf("effort %d: %d removed by timers, %d by turns", effort, byTimer, byTurn)
		}
		s.checkBudget(t)
	}
}

// TestHerdOfTimers: hundreds of thousands of pools with one item each that die in the same ms. The budget
// holds, and none is forgotten.
func TestHerdOfTimers(t *testing.T) {
	t.Parallel()
	pools := drill.Pick(50_000, 50_000, 300_000)
	s := newSim(1)
	for range pools {
		s.timedPool().put(1000)
	}
	s.runTimed(900*time.Millisecond, nil, nil)
	idle := s.purge.Stats().TimeSpent
	s.runTimed(30*time.Second, nil, nil)
	for i, p := range s.pools {
		if len(p.(*timedPool).ends) != 0 {
			t.Fatalf("pool %d still has its dead item", i)
		}
	}
	var last time.Duration
	for _, p := range s.pools {
		last = max(last, p.(*timedPool).late[0])
	}
	work := time.Duration(pools) * (s.perSample + s.perDraw + s.perRemoval)
	t.Logf("the last of %d after %v, %v of work; %v of work before", pools, last, work, idle)
	if most := time.Duration(1.5*float64(work)/paceOf(1).share) + time.Second; last > most {
		t.Errorf("the last is removed after %v, expected are %v", last, most)
	}
	s.checkBudget(t)
}

// TestTimersFollowTheClock: the clock of the items may be set forward. The runner learns it within an
// interval.
func TestTimersFollowTheClock(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	shifted := &shiftedClock{sim: s}
	s.purge.clock = shifted
	p := s.timedPool()
	p.put(int64(time.Hour / time.Millisecond))
	s.runTimed(time.Second+time.Millisecond, nil, nil)
	shifted.ahead = time.Hour
	p.ends[0] = 1 // dead by the clock of the pool
	before := s.now
	for len(p.ends) > 0 {
		s.now += s.runner.step()
		if s.now > before+Interval+time.Millisecond {
			t.Fatal("the runner sleeps on")
		}
	}
}

type shiftedClock struct {
	*sim
	ahead time.Duration
}

func (c *shiftedClock) Now() int64    { return (c.now + c.ahead).Milliseconds() }
func (c *shiftedClock) Micros() int64 { return (c.now + c.ahead).Microseconds() }

// TestRescan: the next pools are scanned soon, within the budget, and then no more than before.
func TestRescan(t *testing.T) {
	t.Parallel()
	s := newSim(1)
	s.load(100_000, 0, 1)
	s.runTimed(time.Second, nil, nil)
	for _, p := range s.pools {
		p.(*simPool).samples = 0
	}
	s.purge.Rescan(len(s.pools))
	if !s.rings() {
		t.Error("the runner sleeps on")
	}
	s.runTimed(s.now+600*time.Millisecond, nil, nil)
	for i, p := range s.pools {
		if p.(*simPool).samples == 0 {
			t.Fatalf("pool %d was not scanned", i)
		}
	}
	s.runTimed(s.now+time.Second, nil, nil)
	before := s.purge.Stats().Cycles
	s.runTimed(s.now+time.Second, nil, nil)
	if n := s.purge.Stats().Cycles - before; n > 11 {
		t.Errorf("%d cycles in a second afterwards", n)
	}
	s.checkBudget(t)
}

// TestRescanOfFewer: pools that are gone when their turn comes do not keep cycles going.
func TestRescanOfFewer(t *testing.T) {
	t.Parallel()
	for _, left := range []int{0, 1, 3} {
		s := newSim(1)
		s.load(left, 0, 1)
		s.purge.Rescan(4)
		if state := s.purge.Slow(); state != Quiet {
			t.Errorf("%d of 4 pools are left: state %d", left, state)
		}
	}
}
