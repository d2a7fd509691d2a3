package clock

import (
	"math"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/test/drill"
)

// machine simulates the clocks of a machine. Tests move them.
type machine struct{ wall, mono time.Duration }

func (m *machine) read() (wall, mono int64) { return int64(m.wall), int64(m.mono) }

func (m *machine) pass(d time.Duration) { m.wall += d; m.mono += d }

func TestClockFollowsTheWallForwardOnly(t *testing.T) {
	m := &machine{wall: 1000 * time.Hour}
	c := SystemReading(0, m.read, m.pass)
	expect := func(want time.Duration) {
		t.Helper()
		if got := c.Now(); got != want.Milliseconds() {
			t.Errorf("it is %d, want %d", got, want.Milliseconds())
		}
		if got := c.Micros(); got != want.Microseconds() {
			t.Errorf("it is %d µs, want %d", got, want.Microseconds())
		}
	}
	expect(1000 * time.Hour)
	m.pass(90 * time.Second)
	expect(1000*time.Hour + 90*time.Second)

	m.wall -= 5 * time.Hour // set back: it goes on as if nothing had happened
	expect(1000*time.Hour + 90*time.Second)
	m.pass(time.Millisecond)
	expect(1000*time.Hour + 90*time.Second + time.Millisecond)
	m.pass(time.Hour)
	expect(1001*time.Hour + 90*time.Second + time.Millisecond)

	m.wall += 5 * time.Hour // set right again: nothing to catch up with
	expect(1001*time.Hour + 90*time.Second + time.Millisecond)

	m.wall += 24 * time.Hour // set forward: it follows
	expect(1025*time.Hour + 90*time.Second + time.Millisecond)
	m.wall -= 24 * time.Hour // and does not return
	m.pass(time.Second)
	expect(1025*time.Hour + 91*time.Second + time.Millisecond)
	m.pass(1234567 * time.Nanosecond)
	expect(1025*time.Hour + 91*time.Second + 2234*time.Microsecond)

	m.mono -= time.Second // asleep, a machine's monotonic clock may stand: then the wall counts
	m.wall = 2000 * time.Hour
	expect(2000 * time.Hour)
}

// TestClockReadsTheWallAtIntervals: a clock that mostly reads the monotonic clock reads the wall clock in
// time.
func TestClockReadsTheWallAtIntervals(t *testing.T) {
	m := &machine{wall: 1000 * time.Hour, mono: time.Hour}
	c := SystemReading(0, m.read, m.pass)
	walls := 0
	c.read = func() (wall, mono int64) {
		walls++
		return m.read()
	}
	c.mono = func() int64 { return int64(m.mono) }
	expect := func(want time.Duration, looks int) {
		t.Helper()
		if got := c.Micros(); got != want.Microseconds() || walls != looks {
			t.Errorf("it is %d µs after %d looks at the wall, want %d after %d", got, walls, want.Microseconds(), looks)
		}
	}
	now := 1000 * time.Hour
	expect(now, 1)
	m.pass(wallInterval / 2)
	now += wallInterval / 2
	expect(now, 1)
	m.wall += time.Hour // set forward
	expect(now, 1)
	m.pass(wallInterval / 2)
	now += time.Hour + wallInterval/2
	expect(now, 2)
	m.wall -= time.Hour // set back
	m.pass(wallInterval)
	now += wallInterval
	expect(now, 3)
	m.mono -= time.Minute // which no machine does: what it says last counts
	m.wall = 2000 * time.Hour
	expect(2000*time.Hour, 4)
	expect(2000*time.Hour, 4)
}

// TestClockCatchesUp: a clock that is a little behind waits, one that is far behind is set.
func TestClockCatchesUp(t *testing.T) {
	for _, tc := range []struct{ behind, waits time.Duration }{
		{-time.Hour, 0}, {0, 0}, {time.Millisecond, time.Millisecond}, {time.Second, time.Second},
		{time.Second + time.Millisecond, 0}, {time.Hour, 0},
	} {
		m := &machine{wall: 1000 * time.Hour}
		c := SystemReading(0, m.read, m.pass)
		floor := c.Now() + tc.behind.Milliseconds()
		c.CatchUp(floor, time.Second)
		if m.mono != tc.waits {
			t.Errorf("%v behind: it waits for %v", tc.behind, m.mono)
		}
		if want := max(floor, 1000*time.Hour.Milliseconds()); c.Now() != want {
			t.Errorf("%v behind: it is %d, want %d", tc.behind, c.Now(), want)
		}
	}
}

func TestClockAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		floor, wall, want time.Duration
	}{
		"first start":               {0, 500 * time.Hour, 500 * time.Hour},
		"wall went on":              {499 * time.Hour, 500 * time.Hour, 500 * time.Hour},
		"wall was set back":         {510 * time.Hour, 500 * time.Hour, 510 * time.Hour},
		"wall lost, a dead battery": {500 * time.Hour, 0, 500 * time.Hour},
	} {
		m := &machine{wall: tc.wall, mono: 7 * time.Minute} // the monotonic clock starts anywhere
		c := SystemReading(tc.floor.Milliseconds(), m.read, m.pass)
		if got := c.Now(); got != tc.want.Milliseconds() {
			t.Errorf("%s: it is %d, want %d", name, got, tc.want.Milliseconds())
		}
		m.pass(3 * time.Second) // it never stops
		if got := c.Now(); got != (tc.want + 3*time.Second).Milliseconds() {
			t.Errorf("%s: 3 s later it is %d, want %d", name, got, (tc.want + 3*time.Second).Milliseconds())
		}
	}
}

func TestClockIsRaised(t *testing.T) {
	m := &machine{wall: time.Hour}
	c := SystemReading(0, m.read, m.pass)
	c.Raise(1000) // in the past
	if got := c.Now(); got != time.Hour.Milliseconds() {
		t.Errorf("it is %d", got)
	}
	c.Raise((2 * time.Hour).Milliseconds())
	if got := c.Now(); got != (2 * time.Hour).Milliseconds() {
		t.Errorf("it is %d", got)
	}
	// A floor that makes no sense must not send it back to before the epoch.
	for _, floor := range []int64{math.MinInt64, -1, math.MaxInt64} {
		c.Raise(floor)
		m.pass(time.Hour)
		if got := c.Now(); got < (3 * time.Hour).Milliseconds() {
			t.Errorf("raised to %d it is %d", floor, got)
		}
	}
	if got := c.Now(); got < maxFloor {
		t.Errorf("raised as far as can be it is %d", got)
	}
}

func TestSystemClockIsTheMachines(t *testing.T) {
	before := time.Now().UnixMilli()
	c := NewSystem(0)
	got := c.Now()
	if after := time.Now().UnixMilli(); got < before || got > after {
		t.Errorf("it is %d, not between %d and %d", got, before, after)
	}
	ahead := time.Now().Add(time.Hour).UnixMilli()
	if got := NewSystem(ahead).Now(); got < ahead {
		t.Errorf("with floor %d it is %d", ahead, got)
	}
}

// TestClockUnderConcurrency: a later reading is never earlier, in any goroutine, while the wall clock jumps.
func TestClockUnderConcurrency(t *testing.T) {
	t.Run("both clocks each time", func(t *testing.T) { testClockUnderConcurrency(t, false) })
	t.Run("the wall clock now and then", func(t *testing.T) { testClockUnderConcurrency(t, true) })
}

func testClockUnderConcurrency(t *testing.T, monoAlone bool) {
	var wall, mono atomic.Int64
	wall.Store(int64(1000 * time.Hour))
	c := SystemReading(0, func() (int64, int64) { return wall.Load(), mono.Add(1000) }, nil)
	if monoAlone {
		c.mono = func() int64 { return mono.Add(1000) }
	}

	var mu sync.Mutex
	var latest int64
	var readers, setter sync.WaitGroup
	stop := make(chan struct{})
	setter.Go(func() {
		for i := int64(0); !drill.Done(stop); i++ {
			wall.Store(int64(1000*time.Hour) + (i%7-3)*int64(time.Hour))
			c.Raise((999 * time.Hour).Milliseconds() + i%5)
		}
	})
	for range 4 {
		readers.Go(func() {
			for range 5000 {
				mu.Lock()
				floor := latest
				mu.Unlock()
				now := c.Now()
				if now < floor {
					t.Errorf("it was %d, it is %d", floor, now)
					return
				}
				mu.Lock()
				latest = max(latest, now)
				mu.Unlock()
			}
		})
	}
	readers.Wait()
	close(stop)
	setter.Wait()
}

func TestManualClock(t *testing.T) {
	c := NewManual(5000)
	c.Advance(1500 * time.Millisecond)
	c.Raise(6000)
	if got := c.Now(); got != 6500 {
		t.Errorf("it is %d", got)
	}
	c.Raise(7000)
	if got := c.Now(); got != 7000 {
		t.Errorf("it is %d", got)
	}
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for j := range 1000 {
				c.Raise(int64(7000 + i*1000 + j))
				c.Advance(time.Millisecond)
			}
		})
	}
	all.Wait()
	if got := c.Now(); got < 14999 || got > 14999+8000 {
		t.Errorf("it is %d", got)
	}
}

func TestMonotonic(t *testing.T) {
	before := Monotonic()
	if after := Monotonic(); before <= 0 || after < before {
		t.Errorf("%v, then %v", before, after)
	}
}

// TestWatch: steps of the wall clock are told once, and how far the clock is ahead after one back.
func TestWatch(t *testing.T) {
	m := &machine{wall: 1000 * time.Hour}
	c := SystemReading(0, m.read, m.pass)
	w := c.Watch()
	expect := func(forward, ahead time.Duration) {
		t.Helper()
		if f, a := w.Look(); f != forward || a != ahead || c.Ahead() != ahead {
			t.Errorf("%v forward, %v ahead; want %v and %v", f, a, forward, ahead)
		}
	}
	expect(0, 0)
	m.pass(time.Minute)
	expect(0, 0)
	m.wall += time.Hour
	expect(time.Hour, 0)
	m.pass(time.Minute)
	expect(0, 0)
	m.wall -= 90 * time.Minute
	m.pass(time.Minute)
	expect(0, 90*time.Minute)
	m.wall += 80 * time.Minute
	expect(0, 10*time.Minute)
	m.wall += 30 * time.Minute
	expect(20*time.Minute, 0)
	c.Raise((m.wall + time.Hour).Milliseconds())
	if got := c.Ahead(); got != time.Hour {
		t.Errorf("after it was raised it is %v ahead", got)
	}
}
