package expiry

import (
	"container/heap"
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
	slots  timerHeap
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
		heap.Remove(&s.slots, t.place)
	case was == NeverDue:
		s.turn++
		heap.Push(&s.slots, timerSlot{at, s.turn, t})
	default:
		s.turn++
		s.slots[t.place] = timerSlot{at, s.turn, t}
		heap.Fix(&s.slots, t.place)
	}
	t.at.Store(at)
	first := NeverDue
	if len(s.slots) > 0 {
		first = s.slots[0].at
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
	if len(s.slots) == 0 || s.slots[0].at > now {
		return nil
	}
	t := s.slots[0].timer
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

// timerHeap implements [heap.Interface]. The lock of its timers is held.
type timerHeap []timerSlot

func (h timerHeap) Len() int { return len(h) }

func (h timerHeap) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].turn < h[j].turn
}

func (h timerHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].timer.place, h[j].timer.place = i, j
}

func (h *timerHeap) Push(x any) {
	slot := x.(timerSlot)
	slot.timer.place = len(*h)
	*h = append(*h, slot)
}

func (h *timerHeap) Pop() any {
	last := len(*h) - 1
	slot := (*h)[last]
	(*h)[last] = timerSlot{}
	if *h = (*h)[:last]; cap(*h) > 1024 && last < cap(*h)/4 {
		*h = append(make([]timerSlot, 0, cap(*h)/2), *h...)
	}
	return slot
}
