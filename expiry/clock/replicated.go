package clock

import "sync/atomic"

// Replicated is the clock of a node of a cluster. While the node follows, it stands at a moment of the leader's past. While it
// leads, it follows the wall clock from the moment on at which it began. It never runs backwards, but for what a leader has
// read beyond the moment at which it follows.
type Replicated struct {
	wall   Clock
	leads  atomic.Bool
	moment atomic.Int64 // ms; of a follower
	floor  atomic.Int64 // ms; of a leader: for a wall clock that cannot be raised
}

// NewReplicated returns the clock of a follower at a moment in ms, over the clock that it will follow as a leader.
func NewReplicated(wall Clock, moment int64) *Replicated {
	c := &Replicated{wall: wall}
	c.Follow(moment)
	return c
}

// Wall returns the clock beneath.
func (c *Replicated) Wall() Clock { return c.wall }

// Follow makes the clock stand at a moment in ms, or where it stands already if that is later.
func (c *Replicated) Follow(moment int64) {
	raise(&c.moment, max(moment, 1))
	c.leads.Store(false)
}

// Lead makes the clock follow the wall clock, from a moment in ms on.
func (c *Replicated) Lead(from int64) {
	from = max(from, c.moment.Load())
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
		return max(c.wall.Now(), c.floor.Load())
	}
	return c.moment.Load()
}

// Micros returns the time in microseconds.
func (c *Replicated) Micros() int64 {
	if c.leads.Load() {
		return max(c.wall.Micros(), c.floor.Load()*1000)
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
