package clock

import (
	"testing"
	"time"
)

// TestLeadersComeBackToTheWallClock: each leader begins a second ahead, as it does after a change, and comes back.
func TestLeadersComeBackToTheWallClock(t *testing.T) {
	m := &machine{wall: 1000 * time.Hour}
	wall := SystemReading(0, m.read, m.pass)
	c := NewReplicated(wall, wall.Now())
	last := c.Now()
	at := func(want time.Duration) {
		t.Helper()
		if now := c.Now(); now != want.Milliseconds() || now < last || c.Micros() != want.Microseconds() {
			t.Errorf("it is %d ms, %d µs after %d ms, want %v", now, c.Micros(), last, want)
		}
		last = c.Now()
	}
	for range 10 {
		began := m.wall
		c.Lead(wall.Now() + 1000)
		at(began + time.Second)
		m.pass(time.Second)
		at(began + 1500*time.Millisecond)
		m.pass(time.Second)
		at(m.wall)
		m.pass(time.Second)
		at(m.wall)
		c.Follow(c.Now())
		at(m.wall)
	}

	c.Lead(wall.Now() + time.Hour.Milliseconds()) // the wall clock was set back
	at(m.wall + time.Hour)
	m.pass(time.Second)
	at(m.wall + time.Hour)
	c.Follow(c.Now())
	m.pass(time.Second)
	c.Lead(0)
	at(m.wall + time.Hour)
}
