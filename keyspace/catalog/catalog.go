package catalog

import (
	"iter"
	"sync/atomic"

	"mayfly/keyspace/dbnum"
	"mayfly/keyspace/record"
	"mayfly/keyspace/undo"
)

// Container is what a catalogue lists. What the methods return does not change while it does.
type Container interface {
	comparable
	Name() string
	DB() uint32 // for SELECT
	Aside() *record.Aside
}

// Accessors are what a catalogue needs of containers besides.
type Accessors[C Container] struct {
	Number func(c C) uint32           // prefix of its keys
	Memory func(c C) int64            // bytes without its items
	Record func(c C) record.Container // as it is on disk
	Place  func(c C) *int             // of the catalogue: where it is in the list
}

// Catalog is a set of containers. The maps must not be changed but by methods.
type Catalog[C Container] struct {
	ByName map[string]C
	ByDB   dbnum.Table[C]
	Asides undo.Asides[C] // containers that are set aside
	Hidden map[uint32]C   // logs and groups, by number

	of      Accessors[C]
	list    []C           // the listed ones, in no order
	memory  atomic.Int64  // bytes
	next    atomic.Uint32 // number of the next container
	changed map[uint32]C  // see Changed; the zero value if the container is gone
}

// Init makes the catalogue empty.
func (cat *Catalog[C]) Init(of Accessors[C]) {
	cat.of = of
	cat.ByName, cat.ByDB = make(map[string]C), make(dbnum.Table[C])
	cat.Hidden, cat.changed = make(map[uint32]C), make(map[uint32]C)
}

// Number returns the number of a new container. In a cluster the position in the log has the next: no node uses one again.
func (cat *Catalog[C]) Number() uint32 { return cat.next.Add(1) - 1 }

// Next returns a number that is greater than those of all containers. Safe for concurrent use.
func (cat *Catalog[C]) Next() uint32 { return cat.next.Load() }

// Used notes that numbers below one are used.
func (cat *Catalog[C]) Used(below uint32) { cat.next.Store(max(cat.next.Load(), below)) }

// Memory returns the bytes of the containers without their items, an estimate. Safe for concurrent use.
func (cat *Catalog[C]) Memory() int64 { return cat.memory.Load() }

// AddMemory notes that a container takes more bytes.
func (cat *Catalog[C]) AddMemory(bytes int64) { cat.memory.Add(bytes) }

// Listed reports whether a container is listed.
func (cat *Catalog[C]) Listed(c C) bool { return cat.ByName[c.Name()] == c }

// List returns the listed containers, in no order. The slice must not be changed, and is valid until the catalogue changes.
func (cat *Catalog[C]) List() []C { return cat.list }

// All returns all containers: listed, set aside and hidden.
func (cat *Catalog[C]) All() iter.Seq[C] {
	return func(yield func(C) bool) {
		for _, c := range cat.list {
			if !yield(c) {
				return
			}
		}
		for c := range cat.Asides.All() {
			if !yield(c) {
				return
			}
		}
		for _, c := range cat.Hidden {
			if !yield(c) {
				return
			}
		}
	}
}

// ByNumber returns all containers by their numbers.
func (cat *Catalog[C]) ByNumber() map[uint32]C {
	all := make(map[uint32]C, len(cat.list)+len(cat.Hidden))
	for c := range cat.All() {
		all[cat.of.Number(c)] = c
	}
	return all
}

// Add lists a container.
func (cat *Catalog[C]) Add(c C) {
	cat.ByName[c.Name()] = c
	cat.ByDB[c.DB()] = c
	*cat.of.Place(c) = len(cat.list)
	cat.list = append(cat.list, c)
	cat.memory.Add(cat.of.Memory(c))
}

// Remove ends Add. The last of the list takes its place.
func (cat *Catalog[C]) Remove(c C) {
	delete(cat.ByName, c.Name())
	delete(cat.ByDB, c.DB())
	at, end := *cat.of.Place(c), len(cat.list)-1
	cat.list[at] = cat.list[end]
	*cat.of.Place(cat.list[at]) = at
	clear(cat.list[end:])
	cat.list = cat.list[:end]
	cat.memory.Add(-cat.of.Memory(c))
}

// Hide adds a hidden container.
func (cat *Catalog[C]) Hide(h C) {
	cat.Hidden[cat.of.Number(h)] = h
	cat.memory.Add(cat.of.Memory(h))
}

// Unhide ends Hide.
func (cat *Catalog[C]) Unhide(h C) {
	delete(cat.Hidden, cat.of.Number(h))
	cat.memory.Add(-cat.of.Memory(h))
}

// AddAside adds a container that is set aside.
func (cat *Catalog[C]) AddAside(a C) {
	cat.Asides.Add(a)
	cat.memory.Add(cat.of.Memory(a))
}

// RemoveAside ends AddAside.
func (cat *Catalog[C]) RemoveAside(a C) {
	if cat.Asides.Remove(a) {
		cat.memory.Add(-cat.of.Memory(a))
	}
}

// Changed notes that the files lack what the record of a container says.
func (cat *Catalog[C]) Changed(c C) { cat.changed[cat.of.Number(c)] = c }

// Gone notes that no container has a number, and the files may have its record.
func (cat *Catalog[C]) Gone(number uint32) {
	var none C
	cat.changed[number] = none
}

// IsChanged reports whether the files lack the record of a container, of its present number.
func (cat *Catalog[C]) IsChanged(c C) bool { return cat.changed[cat.of.Number(c)] == c }

// NotesNumber reports whether the files lack what became of the container of a number.
func (cat *Catalog[C]) NotesNumber(number uint32) bool {
	_, ok := cat.changed[number]
	return ok
}

// TakeChanged returns what the files lack, and forgets it.
func (cat *Catalog[C]) TakeChanged() *Changes[C] {
	changed := cat.changed
	cat.changed = make(map[uint32]C)
	return &Changes[C]{cat.of, changed}
}

// Everything returns all containers, as if the files had none.
func (cat *Catalog[C]) Everything() *Changes[C] {
	return &Changes[C]{cat.of, cat.ByNumber()}
}
