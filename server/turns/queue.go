package turns

import (
	"slices"
	"sync"
)

// Queue grants turns. Safe for concurrent use.
type Queue struct {
	mu      sync.Mutex // protects what follows
	free    int        // turns left to grant; 0 while requests wait
	waiting []*Turn    // in the order of their requests
}

// Turn is a request for a turn, and the turn itself once it is granted.
type Turn struct {
	queue   *Queue
	granted chan struct{}
}

// NewQueue returns a queue that grants n turns at a time.
func NewQueue(n int) *Queue { return &Queue{free: n} }

// Request requests a turn. The caller must end it with [Turn.End].
func (q *Queue) Request() *Turn {
	q.mu.Lock()
	defer q.mu.Unlock()
	t := &Turn{q, make(chan struct{})}
	if q.free > 0 {
		q.free--
		close(t.granted)
	} else {
		q.waiting = append(q.waiting, t)
	}
	return t
}

// Contended reports whether a request waits.
func (q *Queue) Contended() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) > 0
}

// Granted returns a channel that is closed when the turn is granted.
func (t *Turn) Granted() <-chan struct{} { return t.granted }

// IsGranted reports whether the turn is granted.
func (t *Turn) IsGranted() bool {
	select {
	case <-t.granted:
		return true
	default:
		return false
	}
}

// End gives a granted turn to the next in the queue, or withdraws the request. It must be called once.
func (t *Turn) End() {
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
