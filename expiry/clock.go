package expiry

import (
	"sync/atomic"
	"time"
)

// Clock tells the time in milliseconds since the epoch. It never runs backwards. Safe for
// concurrent use.
type Clock interface {
	Now() int64
}

// SystemClock is the machine's clock under rule 8: it never runs backwards and never stops.
//
// It follows the wall clock when that is set forward, and goes on at the pace of the monotonic
// clock when it is set back. Formally it is m + max(w - m) over all readings so far, where w is the
// wall and m the monotonic clock.
type SystemClock struct {
	start time.Time
	lead  atomic.Int64 // ns; the greatest w - m seen
	read  func() (wall, mono int64)
}

// NewSystemClock starts a clock that is never behind floor (ms), the last moment known from an
// earlier run; 0 if there was none.
func NewSystemClock(floor int64) *SystemClock {
	c := &SystemClock{start: time.Now()}
	c.read = func() (wall, mono int64) {
		t := time.Now()
		return t.UnixNano(), int64(t.Sub(c.start))
	}
	c.Raise(floor)
	return c
}

// Now gives the time in milliseconds.
func (c *SystemClock) Now() int64 {
	wall, mono := c.read()
	return (mono + c.raise(wall-mono)) / int64(time.Millisecond)
}

// Raise makes sure that the clock is not behind floor (ms).
func (c *SystemClock) Raise(floor int64) {
	_, mono := c.read()
	c.raise(floor*int64(time.Millisecond) - mono)
}

func (c *SystemClock) raise(lead int64) int64 {
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

// ManualClock is a clock that a test moves.
type ManualClock struct{ ms atomic.Int64 }

// NewManualClock gives a clock that stands at ms.
func NewManualClock(ms int64) *ManualClock {
	c := &ManualClock{}
	c.ms.Store(ms)
	return c
}

// Now gives the time in milliseconds.
func (c *ManualClock) Now() int64 { return c.ms.Load() }

// Raise moves the clock to at least floor (ms).
func (c *ManualClock) Raise(floor int64) {
	if floor > c.ms.Load() {
		c.ms.Store(floor)
	}
}

// Advance moves the clock forward.
func (c *ManualClock) Advance(d time.Duration) { c.ms.Add(d.Milliseconds()) }
