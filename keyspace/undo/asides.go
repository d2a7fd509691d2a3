package undo

import (
	"cmp"
	"iter"
	"slices"

	"mayfly/keyspace/record"
)

// Container is what [Asides] lists. Its name and the order of its aside do not change while it is listed.
type Container interface {
	comparable
	Name() string
	Aside() *record.Aside
}

// Asides lists the containers that are set aside by their name, which several may have. The zero value is empty. Lists
// are immutable: a container may be added or removed while they are read.
type Asides[C Container] struct{ byName map[string][]C }

// Of returns the containers of a name in the order in which they were set aside.
func (a *Asides[C]) Of(name string) []C { return a.byName[name] }

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
	a.byName[c.Name()] = list
}

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
