package clock

import (
	"sync/atomic"
	"time"
)

// Replicated is the clock of a node of a cluster. While the node follows, it stands at a moment of the
// leader's past. While it leads, it follows the wall clock from the moment on at which it began. It never
// runs backwards, but for what a leader has read beyond the moment at which it follows.
//
// A leader begins where the lease of the one before ends, which may be ahead of the wall clock. It runs at
// half pace until the wall clock has caught up. Otherwise each change of leaders would set the clock of the
// cluster forward for good.
type Replicated struct {
	wall   Clock
	leads  atomic.Bool
	moment atomic.Int64         // ms; of a follower
	floor  atomic.Int64         // ms; of a leader: for a wall clock that cannot be raised
	slow   atomic.Pointer[slow] // of a leader: how its clock comes back to the wall clock; nil: it is not ahead
}

// slow is a clock that runs at half the pace of the wall clock, from the moment from on, at which that was at
// wall. Both are in µs.
type slow struct{ from, wall int64 }

// mostSlowed is how far ahead a clock may be to be slowed. One that is further ahead, since the wall clock
// was set back, stays ahead: it would be slow for too long.
const mostSlowed = 10 * time.Second

// NewReplicated returns the clock of a follower at a moment in ms, over the clock that it will follow as a
// leader.
func NewReplicated(wall Clock, moment int64) *Replicated {
	c := &Replicated{wall: wall}
	c.Follow(moment)
	return c
}

// Follow makes the clock stand at a moment in ms, or where it stands already if that is later.
func (c *Replicated) Follow(moment int64) {
	raise(&c.moment, max(moment, 1))
	c.leads.Store(false)
}

// Lead makes the clock follow the wall clock as it is now, from a moment in ms on. It does not count that the
// wall clock was ahead while the node followed: nothing has died by that.
func (c *Replicated) Lead(from int64) {
	from = max(from, c.moment.Load())
	c.slow.Store(nil)
	if w, ok := c.wall.(*System); ok {
		if !c.leads.Load() {
			w.Reset()
		}
		if now := w.Micros(); from*1000 > now && from*1000-now <= mostSlowed.Microseconds() {
			c.slow.Store(&slow{from * 1000, now})
			c.leads.Store(true)
			return
		}
	}
	if r, ok := c.wall.(interface{ Raise(int64) }); ok {
		r.Raise(from)
	}
	raise(&c.floor, from)
	c.leads.Store(true)
}

// raise raises a value, unless it is greater.
func raise(v *atomic.Int64, to int64) {
	for {
		now := v.Load()
		if to <= now || v.CompareAndSwap(now, to) {
			return
		}
	}
}

// Now returns the time in milliseconds.
func (c *Replicated) Now() int64 {
	if c.leads.Load() {
		if c.slow.Load() != nil {
			return c.Micros() / 1000
		}
		return max(c.wall.Now(), c.floor.Load())
	}
	return c.moment.Load()
}

// Micros returns the time in microseconds.
func (c *Replicated) Micros() int64 {
	if c.leads.Load() {
		wall := max(c.wall.Micros(), c.floor.Load()*1000)
		if s := c.slow.Load(); s != nil {
			if now := s.from + (wall-s.wall)/2; now > wall {
				return now
			}
			c.slow.CompareAndSwap(s, nil)
		}
		return wall
	}
	return c.moment.Load() * 1000
}

// SystemOf returns the machine's clock that a clock is or follows, nil if it does not.
func SystemOf(c Clock) *System {
	if r, ok := c.(*Replicated); ok {
		c = r.wall
	}
	s, _ := c.(*System)
	return s
}
