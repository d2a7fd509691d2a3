package locks

import (
	"sync"
	"sync/atomic"
	"time"
)

// Who waits without parking tries now and then, so who takes the locks again and again would win each time.
// Waiters join a round. It ends when locks are released that were held for long, or when a holder gives way:
// then all of the round try.

// rounds is the rounds of a set. The zero value is ready.
type rounds struct {
	waiters atomic.Int64
	mu      sync.Mutex // protects what follows
	now     *round     // nil if nobody has joined
	last    *round     // the one that was over last; nil if there was none
}

// round is those who wait from the end of one round to the end of this one.
type round struct {
	over    chan struct{}
	untried sync.WaitGroup // those who have not tried since the end
}

// join joins the present round.
func (rs *rounds) join() *round {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.now == nil {
		rs.now = &round{over: make(chan struct{})}
	}
	rs.now.untried.Add(1)
	return rs.now
}

// end ends the present round, and returns the one that was over last; nil if nobody waits.
func (rs *rounds) end() *round {
	if rs.waiters.Load() == 0 {
		return nil
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	if rs.now != nil {
		close(rs.now.over)
		rs.now, rs.last = nil, rs.now
	}
	return rs.last
}

// Waiter waits for locks without parking. The caller tries after Wait and after each Next, and calls End at
// last.
type Waiter struct {
	rounds       *rounds
	before, next *round // the one that is over, nil at first, and the one to wait for
}

// Wait begins to wait.
func (s *Set) Wait() *Waiter {
	s.rounds.waiters.Add(1)
	return &Waiter{rounds: &s.rounds, next: s.rounds.join()}
}

// Next waits until it is time to try again, at most d.
func (w *Waiter) Next(d time.Duration) {
	w.tried()
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-w.next.over:
	case <-timer.C:
	}
	w.before, w.next = w.next, w.rounds.join()
}

// tried notes that the waiter has tried since the last round was over.
func (w *Waiter) tried() {
	if w.before != nil {
		w.before.untried.Done()
		w.before = nil
	}
}

// End ends the wait.
func (w *Waiter) End() {
	w.tried()
	w.next.untried.Done()
	w.rounds.waiters.Add(-1)
}

// GiveWay returns when all who wait without parking have tried to lock. Who does work in pieces calls it
// between two of them, without locks.
func (s *Set) GiveWay() {
	if r := s.rounds.end(); r != nil {
		r.untried.Wait()
	}
}
