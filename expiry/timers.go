package expiry

import (
	"math"
	"sync"
	"sync/atomic"
	"time"
)

// Punctual deaths
//
// A pool whose deaths are to be found when they happen has a [Timer]: the moment from which its next item may
// be removed. The timers are in a heap. The runner sleeps until the first of them, and a write of an item
// that dies earlier wakes it.
//
//  1. A timer is never later than the first death of its pool. One that is too early costs one sample: the
//     pool then sets it to what it knows by now. So an end that is put off costs at most one sample, however
//     often it is.
//  2. Pools without a timer are found by the scan, as before. A write into such a pool pays for a nil check.
//  3. The cycles of timers draw on the budget of fast cycles. Slow and fast cycles sample pools that are due
//     too, alternating with the others.
//  4. A pool that has more dead items than a sample removes goes behind the others that are due.

// NeverDue is the moment of a pool in which nothing will die.
const NeverDue int64 = math.MaxInt64

// Timer holds the next moment in ms at which items of a pool may be removed. [Purge.NewTimer] makes one. The
// pool sets it, under its own lock: after a sample, and after each change that may have moved the moment.
// Safe for concurrent use.
type Timer struct {
	timers *timers
	pool   Pool
	at     atomic.Int64 // ms; NeverDue: not in the heap
	place  int          // in the heap; protected by timers.mu
}

// Set sets the moment in ms; [NeverDue] for none.
func (t *Timer) Set(at int64) {
	t.timers.mu.Lock()
	defer t.timers.mu.Unlock()
	t.timers.setLocked(t, at)
}

// Earlier sets the moment in ms if it is earlier than the present one. Otherwise it costs one atomic load.
func (t *Timer) Earlier(at int64) {
	if at < t.at.Load() {
		t.Set(at)
	}
}

// At returns the moment in ms; [NeverDue] for none.
func (t *Timer) At() int64 { return t.at.Load() }

// timers is a heap of timers, the earliest first. Of equal moments the one that was set first comes first.
type timers struct {
	first atomic.Int64  // ms; of the first timer, NeverDue without
	held  atomic.Int64  // ms; none is due before
	ring  chan struct{} // wakes the runner; has room for one

	mu     sync.Mutex // protects what follows, and the places of timers; held for moments only
	heap   []timerSlot
	turn   uint64 // of the last timer that was set
	wakeAt int64  // ms; the runner sleeps until then; math.MinInt64 while it does not
}

type timerSlot struct {
	at    int64
	turn  uint64
	timer *Timer
}

func (s *timers) init() {
	s.first.Store(NeverDue)
	s.ring = make(chan struct{}, 1)
	s.wakeAt = math.MinInt64
}

// setLocked gives a timer its place in the heap. s.mu must be held.
func (s *timers) setLocked(t *Timer, at int64) {
	was := t.at.Load()
	at = max(at, 0)
	switch {
	case at == NeverDue && was == NeverDue:
		return
	case at == NeverDue:
		s.removeLocked(t.place)
	case was == NeverDue:
		s.turn++
		t.place = len(s.heap)
		s.heap = append(s.heap, timerSlot{at, s.turn, t})
		s.up(t.place)
	default:
		s.turn++
		s.heap[t.place] = timerSlot{at, s.turn, t}
		s.fix(t.place)
	}
	t.at.Store(at)
	first := NeverDue
	if len(s.heap) > 0 {
		first = s.heap[0].at
	}
	s.first.Store(first)
	if first < s.wakeAt && s.held.Load() < s.wakeAt {
		s.wakeAt = math.MinInt64
		s.wake()
	}
}

// wake wakes the runner, now or when it is about to sleep.
func (s *timers) wake() {
	select {
	case s.ring <- struct{}{}:
	default:
	}
}

// hold makes no timer due before a moment in ms.
func (s *timers) hold(until int64) {
	s.held.Store(until)
	s.wake()
}

// take takes the first timer out of the heap if it is due at a moment in ms, and returns its pool. Its pool
// sets it again when it is sampled.
func (s *timers) take(now int64) *Timer {
	if s.first.Load() > now || s.held.Load() > now {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.heap) == 0 || s.heap[0].at > now {
		return nil
	}
	t := s.heap[0].timer
	s.setLocked(t, NeverDue)
	return t
}

// putOff moves a timer that is due at a moment in ms to a later one.
func (s *timers) putOff(t *Timer, now, to int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t.at.Load() <= now {
		s.setLocked(t, to)
	}
}

// isDue reports whether a timer is due at a moment in ms.
func (s *timers) isDue(now int64) bool { return s.first.Load() <= now && s.held.Load() <= now }

// sleep returns how long the runner sleeps: until the first timer, and at most for a time. Timers that are
// due already wait for pause. From now on an earlier timer wakes the runner. micros is the time of the clock
// in µs.
func (s *timers) sleep(micros int64, most, pause time.Duration) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := max(s.first.Load(), s.held.Load())
	if first <= (micros+most.Microseconds())/1000+1 { // else the difference in µs may not fit
		most = min(most, max(time.Duration(first*1000-micros)*time.Microsecond, pause))
	}
	s.wakeAt = (micros + most.Microseconds() + 999) / 1000
	return most
}

// awake notes that the runner does not sleep.
func (s *timers) awake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeAt = math.MinInt64
}

// less reports whether the timer at place i comes before that at place j.
func (s *timers) less(i, j int) bool {
	a, b := &s.heap[i], &s.heap[j]
	return a.at < b.at || a.at == b.at && a.turn < b.turn
}

func (s *timers) swap(i, j int) {
	s.heap[i], s.heap[j] = s.heap[j], s.heap[i]
	s.heap[i].timer.place, s.heap[j].timer.place = i, j
}

// up brings a timer to its place towards the top, and reports whether it has moved.
func (s *timers) up(i int) (moved bool) {
	for i > 0 && s.less(i, (i-1)/2) {
		s.swap(i, (i-1)/2)
		i, moved = (i-1)/2, true
	}
	return moved
}

// down brings a timer to its place towards the bottom.
func (s *timers) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(s.heap) {
			return
		}
		if right := child + 1; right < len(s.heap) && s.less(right, child) {
			child = right
		}
		if !s.less(child, i) {
			return
		}
		s.swap(i, child)
		i = child
	}
}

// fix brings a timer that has changed to its place.
func (s *timers) fix(i int) {
	if !s.up(i) {
		s.down(i)
	}
}

// removeLocked removes the timer at a place. s.mu must be held.
func (s *timers) removeLocked(i int) {
	last := len(s.heap) - 1
	s.swap(i, last)
	s.heap[last] = timerSlot{}
	if s.heap = s.heap[:last]; i < last {
		s.fix(i)
	}
	if cap(s.heap) > 1024 && last < cap(s.heap)/4 {
		s.heap = append(make([]timerSlot, 0, cap(s.heap)/2), s.heap...)
	}
}
