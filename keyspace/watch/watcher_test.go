package watch

import (
	"fmt"
	"sync"
	"testing"
)

// TestEnd: every key of a set is removed, with its mark, before End returns; those of a large set when the
// background is done. Too many large ones at a time are as small ones.
func TestEnd(t *testing.T) {
	t.Parallel()
	var w Watcher[int, string]
	if w.Set() != nil || w.Reset() != nil || w.IDs() != nil {
		t.Error("the zero value watches something")
	}
	var background sync.WaitGroup
	e := Ender[int, string]{Background: &background}
	fill := func(n int) *Set[int, string] {
		for i := range n {
			w.Begin().Add(Key[int, string]{Container: "c", ID: fmt.Sprint(i)}, State{}, Never)
		}
		if ids := w.IDs(); len(ids) != n || ids[n-1] != fmt.Sprint(n-1) {
			t.Errorf("%d ids are watched, want %d", len(ids), n)
		}
		set := w.Reset()
		if w.Set() != nil || set.Mark.IsSet() {
			t.Error("a watcher still watches after Reset")
		}
		return set
	}
	var mu sync.Mutex
	removed := 0
	remove := func(k Key[int, string], m *Mark) {
		mu.Lock()
		defer mu.Unlock()
		removed++
		m.Set()
	}
	if !e.EndLater(nil, remove) {
		t.Error("nil is not ended")
	}
	e.End(nil, remove)
	small := fill(endAtOnce)
	if e.EndLater(small, remove) || removed != 0 {
		t.Error("a small set ends in the background")
	}
	if e.End(small, remove); removed != endAtOnce || !small.Mark.IsSet() {
		t.Errorf("%d keys are removed", removed)
	}
	mu.Lock()
	for range endersAtMost {
		e.End(fill(endAtOnce+1), remove) // waits for mu in the background
	}
	if e.EndLater(fill(endAtOnce+1), remove) {
		t.Errorf("%d goroutines are not enough", endersAtMost)
	}
	mu.Unlock()
	background.Wait()
	if want := endAtOnce + endersAtMost*(endAtOnce+1); removed != want || e.running.Load() != 0 {
		t.Errorf("%d keys are removed, want %d", removed, want)
	}
}
