package watch

import (
	"math"
	"slices"

	"mayfly/expiry"
)

// Key is an id under watch in a container C and a partition P, whether there is such an item or not.
type Key[P, C comparable] struct {
	Partition P
	Container C
	ID        string
	Lived     bool // when the watch began
	Dead      int  // elements of the item that were dead then
}

// State is the state of a container. A change of all its items at once changes it.
type State struct {
	Policy   *expiry.Policy
	Replaced uint64 // counts how often all items were replaced
	Undone   uint64 // counts how often a former policy was brought back
	Dropped  bool
}

// Set is what a watcher watches until it is reset. The lists of partitions refer to its mark, so a large set
// can be taken off them later.
type Set[P, C comparable] struct {
	Keys []Key[P, C]

	// Mark is set under the lock of the changed partition. It is read under the locks of all the keys'
	// partitions, so a reader sees all changes up to then.
	Mark Mark

	groups []group[C]
}

// group is consecutive keys of one container that were watched in the same state of it.
type group[C comparable] struct {
	container C
	state     State
	from, to  int   // of its keys
	lived     bool  // one of them did when its watch began
	earliest  int64 // ms; when the first of those dies under the policy; math.MaxInt64: never
}

// Never is the end of an item that does not die.
const Never = math.MaxInt64

// Add adds a key in a state of its container. end is when its item dies, in ms.
func (s *Set[P, C]) Add(k Key[P, C], state State, end int64) {
	s.Keys = append(s.Keys, k)
	last := len(s.groups) - 1
	if last < 0 || s.groups[last].container != k.Container || s.groups[last].state != state {
		s.groups = append(s.groups, group[C]{container: k.Container, state: state, from: len(s.Keys) - 1, earliest: Never})
		last++
	}
	g := &s.groups[last]
	g.to = len(s.Keys)
	if k.Lived {
		g.lived, g.earliest = true, min(g.earliest, end)
	}
}

// View is what a set sees of containers and items at its end.
type View[P, C comparable] struct {
	Now     int64 // ms
	State   func(C) State
	Lives   func(Key[P, C]) bool // now
	Brought func(Key[P, C]) bool // it lives, or did when it came with others that replaced all items
	Revived func(Key[P, C]) bool // it lives, and a former policy may have brought it back
}

// Changed reports whether any item under watch has changed since its watch began. An item that lived then and
// is dead now has changed; one that was dead already has not. It looks at the items only if the rules or the
// items of their container were replaced.
func (s *Set[P, C]) Changed(v View[P, C]) bool {
	return s.Mark.IsSet() || slices.ContainsFunc(s.groups, func(g group[C]) bool {
		return v.changed(s.Keys[g.from:g.to], &g)
	}) || s.Mark.IsSet() // by the death of an item that a swap has brought
}

// changed reports whether an item of a group has changed in a way that does not mark its watchers.
//
// If all items were replaced, each that lived when its watch began has been removed, or was dead before. One
// that did not live has changed if the replacement brought it.
func (v *View[P, C]) changed(keys []Key[P, C], g *group[C]) bool {
	switch now := v.State(g.container); {
	case now.Dropped:
		return true // absent ids too: they may appear in another container of this name
	case now.Replaced != g.state.Replaced:
		return g.lived || slices.ContainsFunc(keys, v.Brought)
	case now.Undone != g.state.Undone && slices.ContainsFunc(keys, v.Revived):
		return true
	case now.Policy != g.state.Policy:
		return slices.ContainsFunc(keys, func(k Key[P, C]) bool { return k.Lived && !v.Lives(k) })
	}
	return g.earliest <= v.Now
}
