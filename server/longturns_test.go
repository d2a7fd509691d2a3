package server

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

func TestTurnsAreGrantedInOrder(t *testing.T) {
	t.Parallel()
	q := newTurnQueue(2)
	var list []*longTurn
	for range 5 {
		list = append(list, q.request())
	}
	expect := func(granted ...bool) {
		t.Helper()
		var got []bool
		for _, turn := range list {
			got = append(got, turn.isGranted())
		}
		if !slices.Equal(got, granted) {
			t.Fatalf("granted: %v, want %v", got, granted)
		}
	}
	expect(true, true, false, false, false)
	if !q.contended() {
		t.Error("nothing waits")
	}
	list[3].end() // is withdrawn
	expect(true, true, false, false, false)
	list[1].end()
	expect(true, true, true, false, false)
	list[0].end()
	expect(true, true, true, false, true)
	if q.contended() {
		t.Error("something waits")
	}
	list[2].end()
	list[4].end()
	if a, b, c := q.request(), q.request(), q.request(); !a.isGranted() || !b.isGranted() || c.isGranted() {
		t.Error("two turns are free, not one or three")
	}
}

// A client with many requests waits for one with a single request, and no more than n have a turn.
func TestTurnsAreBounded(t *testing.T) {
	t.Parallel()
	const n, clients, rounds = 3, 20, 200
	q := newTurnQueue(n)
	var at, most atomic.Int64
	var all sync.WaitGroup
	for range clients {
		all.Go(func() {
			for range rounds {
				turn := q.request()
				<-turn.Granted()
				now := at.Add(1)
				for old := most.Load(); now > old && !most.CompareAndSwap(old, now); old = most.Load() {
				}
				at.Add(-1)
				turn.end()
			}
		})
	}
	all.Wait()
	if got := most.Load(); got > n {
		t.Errorf("%d had a turn at a time; at most %d may", got, n)
	}
	if q.free != n || q.contended() {
		t.Errorf("at the end %d turns are free, want %d", q.free, n)
	}
}
