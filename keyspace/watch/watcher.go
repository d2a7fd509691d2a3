package watch

import (
	"sync"
	"sync/atomic"
)

// Watcher notes whether any of the items it watches is written, deleted, or dies (WATCH). The zero value
// watches nothing. One goroutine uses a watcher; others only mark it.
//
// Writes, deletes and removals of the dead mark the watchers of their id. A change of a whole container marks
// none, however many there are: a watcher remembers the state of the container, and compares at the end.
type Watcher[P, C comparable] struct{ set *Set[P, C] }

// Begin returns what is watched, to add to it.
func (w *Watcher[P, C]) Begin() *Set[P, C] {
	if w.set == nil {
		w.set = new(Set[P, C])
	}
	return w.set
}

// Set returns what is watched, nil if nothing is.
func (w *Watcher[P, C]) Set() *Set[P, C] { return w.set }

// Reset returns what was watched, nil if nothing was. Nothing is from now on.
func (w *Watcher[P, C]) Reset() *Set[P, C] {
	set := w.set
	w.set = nil
	return set
}

// IDs returns the ids under watch.
func (w *Watcher[P, C]) IDs() (ids []string) {
	if w.set != nil {
		for _, k := range w.set.Keys {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// endAtOnce is the number of watches that end at once. More end in the background, unless endersAtMost
// goroutines do that already.
const (
	endAtOnce    = 256
	endersAtMost = 4
)

// Ender ends watches. Safe for concurrent use.
type Ender[P, C comparable] struct {
	Background *sync.WaitGroup // counts its goroutines
	running    atomic.Int32
}

// End calls remove for every key of a set, which may be nil; for those of a large one in the background.
func (e *Ender[P, C]) End(s *Set[P, C], remove func(k Key[P, C], m *Mark)) {
	if !e.EndLater(s, remove) {
		s.each(remove)
	}
}

// EndLater is End for nil and for large sets. For others it does nothing and returns false.
func (e *Ender[P, C]) EndLater(s *Set[P, C], remove func(k Key[P, C], m *Mark)) bool {
	if s == nil {
		return true
	}
	if len(s.Keys) <= endAtOnce {
		return false
	}
	if e.running.Add(1) > endersAtMost {
		e.running.Add(-1)
		return false
	}
	e.Background.Go(func() {
		defer e.running.Add(-1)
		s.each(remove)
	})
	return true
}

func (s *Set[P, C]) each(remove func(k Key[P, C], m *Mark)) {
	for _, k := range s.Keys {
		remove(k, &s.Mark)
	}
}
