package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Clock returns the time since the epoch, which is always positive. It never runs backwards. Safe for
// concurrent use.
type Clock interface {
	Now() int64    // ms; decides which items live
	Micros() int64 // µs; for commands that return the time
}

// System is the machine's clock under rule 8: it never runs backwards and never stops.
//
// It follows the wall clock when that is set forward. When that is set back, it goes on at the pace of the
// monotonic clock. Formally it is m + max(w - m) over all readings, of the wall clock w and the monotonic
// clock m. Most readings read the monotonic clock alone. The wall clock is read once in wallInterval and
// followed that much later.
type System struct {
	lead   atomic.Int64              // ns; the greatest w - m seen
	readAt atomic.Int64              // ns; m when w was last read
	read   func() (wall, mono int64) // ns
	mono   func() int64              // ns; monotonic time alone; nil: both are always read
	sleep  func(time.Duration)
}

// wallInterval is short against the milliseconds of expiry and long against a command. Reading both clocks
// takes twice as long as reading one.
const wallInterval = 200 * time.Microsecond

// NewSystem starts a clock that is never behind floor (ms): the last moment known from an earlier run, or 0.
func NewSystem(floor int64) *System {
	start := time.Now()
	read := func() (wall, mono int64) {
		t := time.Now()
		return t.UnixNano(), int64(t.Sub(start))
	}
	c := SystemReading(floor, read, time.Sleep)
	c.mono = func() int64 { return int64(time.Since(start)) }
	return c
}

// SystemReading returns a clock that takes wall and monotonic time, in ns, from read and waits with sleep.
// read must be safe for concurrent use. Tests set a machine's clocks with it.
func SystemReading(floor int64, read func() (wall, mono int64), sleep func(time.Duration)) *System {
	c := &System{read: read, sleep: sleep}
	c.readAt.Store(-int64(wallInterval))
	c.Raise(floor)
	return c
}

// Now returns the time in milliseconds.
func (c *System) Now() int64 { return c.nanos() / int64(time.Millisecond) }

// Micros returns the time in microseconds.
func (c *System) Micros() int64 { return c.nanos() / int64(time.Microsecond) }

func (c *System) nanos() int64 {
	if c.mono != nil {
		mono := c.mono()
		if since := mono - c.readAt.Load(); since >= 0 && since < int64(wallInterval) {
			return mono + c.lead.Load()
		}
	}
	wall, mono := c.read()
	now := mono + c.raise(wall-mono)
	c.readAt.Store(mono) // after lead: a reader that sees readAt sees lead too
	return now
}

// maxFloor is the greatest moment in ms to which the clock can be raised, in the year 2262: a year before
// nanoseconds would wrap around.
const maxFloor = (math.MaxInt64 - int64(365*24*time.Hour)) / int64(time.Millisecond)

// Raise makes sure that the clock is not behind floor (ms).
func (c *System) Raise(floor int64) {
	_, mono := c.read()
	c.raise(min(floor, maxFloor)*int64(time.Millisecond) - mono)
}

// Reset sets the clock to the wall clock, back too. Nothing may rely on a time that it has told.
func (c *System) Reset() {
	wall, mono := c.read()
	c.lead.Store(wall - mono)
}

// CatchUp makes sure that the clock is not behind floor (ms). If the clock reaches floor within patience,
// CatchUp waits for that. So the clock does not get ahead of the wall clock.
func (c *System) CatchUp(floor int64, patience time.Duration) {
	if behind := floor - c.Now(); behind > 0 && behind <= patience.Milliseconds() {
		c.sleep(time.Duration(behind) * time.Millisecond)
	}
	c.Raise(floor)
}

// Ahead returns how far the clock is ahead of the wall clock, which was set back.
func (c *System) Ahead() time.Duration {
	wall, mono := c.read()
	return time.Duration(mono + c.raise(wall-mono) - wall)
}

// Watch tells when the wall clock was set, to a caller that looks now and then. Not safe for concurrent use.
type Watch struct {
	clock *System
	lead  int64
}

// Watch begins to watch the wall clock.
func (c *System) Watch() *Watch {
	c.Ahead()
	return &Watch{c, c.lead.Load()}
}

// Look returns how far the wall clock was set forward since the last look, and how far the clock is ahead of
// it. A machine that sleeps may look as if its clock was set forward.
func (w *Watch) Look() (forward, ahead time.Duration) {
	ahead = w.clock.Ahead()
	lead := w.clock.lead.Load()
	forward, w.lead = time.Duration(lead-w.lead), lead
	return forward, ahead
}

func (c *System) raise(lead int64) int64 {
	for {
		old := c.lead.Load()
		if lead <= old {
			return old
		}
		if c.lead.CompareAndSwap(old, lead) {
			return lead
		}
	}
}

// Deadline returns the moment d from now for the deadline of a socket. It follows the wall clock and does not
// affect expiry.
func Deadline(d time.Duration) time.Time { return time.Now().Add(d) }

// Until returns how long it takes until a deadline, negative if it has passed.
func Until(deadline time.Time) time.Duration { return time.Until(deadline) }

// Manual is a clock that a test moves. Safe for concurrent use.
type Manual struct{ ms atomic.Int64 }

// NewManual returns a clock at ms, which must be positive.
func NewManual(ms int64) *Manual {
	c := &Manual{}
	c.ms.Store(ms)
	return c
}

// Now returns the time in milliseconds.
func (c *Manual) Now() int64 { return c.ms.Load() }

// Micros returns the time in microseconds.
func (c *Manual) Micros() int64 { return c.Now() * 1000 }

// Raise moves the clock to at least floor (ms).
func (c *Manual) Raise(floor int64) {
	for {
		now := c.ms.Load()
		if floor <= now || c.ms.CompareAndSwap(now, floor) {
			return
		}
	}
}

// CatchUp is Raise: a wait would not end.
func (c *Manual) CatchUp(floor int64, _ time.Duration) { c.Raise(floor) }

// Advance moves the clock forward; parts of a millisecond are dropped.
func (c *Manual) Advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }

var processStart = time.Now()

// Monotonic returns the time since the program started, to measure durations. It does not follow the wall
// clock.
func Monotonic() time.Duration { return time.Since(processStart) }
