package index

import (
	"fmt"
	"slices"
	"sync/atomic"
)

// Index is an index of a container. Its trees are in the container's tables. Safe for concurrent use.
type Index struct {
	Definition Definition

	ready atomic.Bool
	built atomic.Int64 // items that the builder has read
	uses  atomic.Int64
	cut   atomic.Int64 // entries of attached tables whose key is cut
}

// Ready reports whether queries can use the index.
func (x *Index) Ready() bool { return x.ready.Load() }

// MarkReady notes that the trees of all tables are built.
func (x *Index) MarkReady() { x.ready.Store(true) }

// Used counts a query that uses the index.
func (x *Index) Used() { x.uses.Add(1) }

// Built returns the number of items that the builder has read.
func (x *Index) Built() int64 { return x.built.Load() }

// Cut returns the number of entries whose key is cut. Without any, the order of the trees is that of the
// values.
func (x *Index) Cut() int { return int(x.cut.Load()) }

// Stats are figures of an index.
type Stats struct {
	Definition Definition
	Ready      bool
	Percent    int // of the building
	Entries    int
	Bytes      int64
	Uses       int64
}

// Describe completes figures to which [Table.AddTo] has added all tables. items is the number of items in
// them.
func (x *Index) Describe(s *Stats, items int) {
	s.Definition, s.Ready, s.Uses, s.Percent = x.Definition, x.Ready(), x.uses.Load(), 100
	if !s.Ready {
		s.Percent = int(min(99, x.built.Load()*100/int64(max(items, 1))))
	}
}

// Set is the indexes of a container, in the order of their creation. It is immutable: other indexes are
// another set. nil is the set of none.
type Set struct {
	list        []*Index
	definitions []Definition // of list
	timed       bool         // one is over the time of the last write
}

// newSet returns nil for an empty list.
func newSet(list []*Index) *Set {
	if len(list) == 0 {
		return nil
	}
	set := &Set{list: list}
	for _, x := range list {
		set.definitions = append(set.definitions, x.Definition)
		set.timed = set.timed || x.Definition.Timed()
	}
	return set
}

// List returns the indexes. It must not be changed.
func (s *Set) List() []*Index {
	if s == nil {
		return nil
	}
	return s.list
}

// Find returns the index of a definition, nil if there is none.
func (s *Set) Find(d Definition) *Index {
	for _, x := range s.List() {
		if x.Definition.Equal(&d) {
			return x
		}
	}
	return nil
}

// With returns the set with one more index, which is to be built.
func (s *Set) With(d Definition) *Set {
	return newSet(append(slices.Clone(s.List()), &Index{Definition: d}))
}

// Without returns the set without an index.
func (s *Set) Without(x *Index) *Set {
	return newSet(slices.DeleteFunc(slices.Clone(s.List()), func(other *Index) bool { return other == x }))
}

// GeoMark ends the paths of an index over points, in the record of a container.
const GeoMark = "geo"

// Recorded returns the paths of all indexes as a container's record has them. [FromRecord] reads them.
func (s *Set) Recorded() (list [][]string) {
	for _, x := range s.List() {
		paths := x.Definition.Pointers()
		if x.Definition.Geo() {
			paths = append(paths, GeoMark)
		}
		list = append(list, paths)
	}
	return list
}

// FromRecord returns the indexes in the record of a container. It leaves out those that this version does not
// know.
func FromRecord(recorded [][]string) *Set {
	var list []*Index
	for _, paths := range recorded {
		if d, err := definitionOf(paths); err == nil {
			list = append(list, &Index{Definition: d})
		}
	}
	return newSet(list)
}

// Become returns the set that a record has. Indexes of the same definition stay. So does the set if all do.
func (s *Set) Become(recorded [][]string) *Set {
	next := FromRecord(recorded)
	same := len(next.List()) == len(s.List())
	for i, x := range next.List() {
		if is := s.Find(x.Definition); is != nil {
			next.list[i] = is
		}
		same = same && next.list[i] == s.list[i]
	}
	if same {
		return s
	}
	return next
}

// MarkBuilt makes the indexes ready whose trees in all tables of their container are built. It reports
// whether others are left.
func (s *Set) MarkBuilt(list []*Table) (left bool) {
	for _, x := range s.List() {
		if !x.Ready() && !slices.ContainsFunc(list, func(t *Table) bool { return !t.Built(x) }) {
			x.MarkReady()
		}
		left = left || !x.Ready()
	}
	return left
}

// CheckRecord checks definitions of indexes as a container's record has them. The error is one line.
func CheckRecord(recorded [][]string) error {
	if n := len(recorded); n > MaxIndexes {
		return fmt.Errorf("%d indexes: legal are at most %d a container", n, MaxIndexes)
	}
	for _, paths := range recorded {
		if _, err := definitionOf(paths); err != nil {
			return fmt.Errorf("index %q: %w", paths, err)
		}
	}
	return nil
}

// definitionOf returns the definition of an index in a record.
func definitionOf(paths []string) (Definition, error) {
	geo := len(paths) > 1 && paths[len(paths)-1] == GeoMark
	if geo {
		paths = paths[:len(paths)-1]
	}
	return Define(paths, geo)
}
