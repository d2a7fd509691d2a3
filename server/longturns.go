package server

import (
	"slices"
	"sync"
)

// turnQueue shares the processors among long computations of many clients. It grants a number of turns at a
// time, in the order in which they are requested. A client computes only with a turn, and has one request at
// most. So clients with long commands alternate, and a client with many waits for those with one. Safe for
// concurrent use.
type turnQueue struct {
	mu      sync.Mutex  // protects what follows
	free    int         // turns left to grant; 0 while requests wait
	waiting []*longTurn // in the order of their requests
}

// longTurn is a request for a turn, and the turn itself once it is granted.
type longTurn struct {
	queue   *turnQueue
	granted chan struct{}
}

// newTurnQueue returns a queue that grants n turns at a time.
func newTurnQueue(n int) *turnQueue { return &turnQueue{free: n} }

// request requests a turn. The caller must end it with [longTurn.end].
func (q *turnQueue) request() *longTurn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &longTurn{q, make(chan struct{})}
	if q.free > 0 {
		q.free--
		close(t.granted)
	} else {
		q.waiting = append(q.waiting, t)
	}
	return t
}

// contended reports whether a request waits.
func (q *turnQueue) contended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// Granted returns a channel that is closed when the turn is granted.
func (t *longTurn) Granted() <-chan struct{} { return t.granted }

// isGranted reports whether the turn is granted.
func (t *longTurn) isGranted() bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

// end gives a granted turn to the next in the queue, or withdraws the request. It must be called once.
func (t *longTurn) end() {
	q := t.queue
	q.mu.Lock()
	defer q.mu.Unlock()
	switch at := slices.Index(q.waiting, t); {
	case at >= 0:
		q.waiting = slices.Delete(q.waiting, at, at+1)
	case len(q.waiting) > 0:
		close(q.waiting[0].granted)
		q.waiting = slices.Delete(q.waiting, 0, 1)
	default:
		q.free++
	}
}
