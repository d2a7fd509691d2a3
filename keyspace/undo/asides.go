package undo

import (
	"cmp"
	"iter"
	"slices"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// Container is what [Asides] lists. Its name and the order of its aside do not change while it is listed.
type Container interface {
	comparable
	Name() string
	Aside() *record.Aside
}

// Asides lists the containers that are set aside by their name, which several may have. The zero value is
// empty. Lists are immutable: a container may be added or removed while they are read.
type Asides[C Container] struct {
	byName map[string][]C
	first  int64 // what First returns; 0: not known
}

// Of returns the containers of a name in the order in which they were set aside.
func (a *Asides[C]) Of(name string) []C { return a.byName[name] }

// Has reports whether a container is there.
func (a *Asides[C]) Has(c C) bool { return slices.Contains(a.byName[c.Name()], c) }

// Empty reports whether there is none.
func (a *Asides[C]) Empty() bool { return len(a.byName) == 0 }

// All returns all containers, those of a name in order.
func (a *Asides[C]) All() iter.Seq[C] {
	return func(yield func(c C) bool) {
		for _, list := range a.byName {
			for _, c := range list {
				if !yield(c) {
					return
				}
			}
		}
	}
}

// Add adds a container.
func (a *Asides[C]) Add(c C) {
	if a.byName == nil {
		a.byName = make(map[string][]C)
	}
	list := append(slices.Clone(a.byName[c.Name()]), c)
	slices.SortFunc(list, func(a, b C) int { return cmp.Compare(a.Aside().Order, b.Aside().Order) })
	a.byName[c.Name()], a.first = list, 0
}

// First returns the first moment in ms at which a container cannot be brought back any more,
// [expiry.NeverDue] without one. It takes time in proportion to them after a change, else none. One goroutine
// calls it at a time.
func (a *Asides[C]) First() int64 {
	if a.first == 0 {
		a.first = expiry.NeverDue
		for c := range a.All() {
			a.first = min(a.first, c.Aside().Until)
		}
	}
	return a.first
}

// EndChanged notes that a container that is set aside cannot be brought back until another moment than
// before.
func (a *Asides[C]) EndChanged() { a.first = 0 }

// Remove removes a container, and reports whether it was there.
func (a *Asides[C]) Remove(c C) bool {
	list := a.byName[c.Name()]
	at := slices.Index(list, c)
	switch {
	case at < 0:
		return false
	case len(list) == 1:
		delete(a.byName, c.Name())
	default:
		a.byName[c.Name()] = slices.Delete(slices.Clone(list), at, at+1)
	}
	a.first = 0
	return true
}

// Ended returns the containers that cannot be brought back any more at a moment in ms.
func (a *Asides[C]) Ended(now int64) (list []C) {
	for c := range a.All() {
		if c.Aside().Until <= now {
			list = append(list, c)
		}
	}
	return list
}
