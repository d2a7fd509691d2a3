package clock

import (
	"testing"
	"time"
)

// fixed is a clock that cannot be raised.
type fixed int64

func (f fixed) Now() int64    { return int64(f) }
func (f fixed) Micros() int64 { return int64(f) * 1000 }

func TestReplicated(t *testing.T) {
	wall := NewManual(1000)
	c := NewReplicated(wall, 0)
	expect := func(want int64) {
		t.Helper()
		if c.Now() != want || c.Micros() != want*1000 {
			t.Errorf("it is %d, %d µs; want %d", c.Now(), c.Micros(), want)
		}
	}
	expect(1) // never 0
	c.Follow(500)
	wall.Advance(time.Second)
	expect(500) // it stands
	c.Follow(400)
	expect(500) // and does not go back
	c.Lead(600)
	expect(2000) // the wall clock is later
	wall.Advance(time.Second)
	expect(3000)
	c.Follow(2500) // a lease that ended before
	expect(2500)
	c.Lead(1_000_000) // the last leader's clock was ahead
	expect(1_000_000)
	wall.Advance(time.Second)
	expect(1_001_000) // it goes on at its pace
	c.Follow(2_000_000)
	c.Lead(0)
	expect(2_000_000)

	c = NewReplicated(fixed(100), 50)
	c.Lead(200)
	expect(200)
}

func TestSystemOf(t *testing.T) {
	s := NewSystem(0)
	if SystemOf(s) != s || SystemOf(NewReplicated(s, 5)) != s || SystemOf(NewManual(1)) != nil || SystemOf(NewReplicated(NewManual(1), 1)) != nil {
		t.Error("another clock")
	}
}

// TestWallClockOfAFollower: a wall clock that was ahead for a while, while the node followed, does not age
// anything once it leads.
func TestWallClockOfAFollower(t *testing.T) {
	var wall, mono int64 = int64(time.Hour), 0
	advance := func(d time.Duration) { wall, mono = wall+int64(d), mono+int64(d) }
	s := SystemReading(0, func() (int64, int64) { return wall, mono }, nil)
	c := NewReplicated(s, 0)
	expect := func(what string, want time.Duration) {
		t.Helper()
		if got := time.Duration(c.Now()) * time.Millisecond; got != want {
			t.Errorf("%s it is %v, want %v", what, got, want)
		}
	}
	wall += int64(time.Hour)
	if ahead := s.Ahead(); ahead != 0 { // the server has seen it
		t.Fatal(ahead)
	}
	wall -= int64(time.Hour)
	c.Follow(3_590_000)
	advance(time.Second)
	c.Lead(3_600_000)
	expect("at the beginning", time.Hour+time.Second)
	wall += int64(time.Hour)
	expect("set forward while it leads", 2*time.Hour+time.Second)
	wall -= int64(time.Hour)
	expect("set back while it leads", 2*time.Hour+time.Second)
	c.Lead(3_600_000)
	expect("of a node that leads already", 2*time.Hour+time.Second)
	c.Follow(7_201_000)
	advance(time.Second)
	c.Lead(7_201_500)
	expect("in the next session", 2*time.Hour+1500*time.Millisecond)
}
