package keyspace

import (
	"iter"
	"sync/atomic"

	"mayfly/keyspace/undo"
)

// catalogue is the set of containers. It is read while any partition is locked and changed while all are. The
// maps must not be changed but by methods.
type catalogue struct {
	ByName map[string]*Container
	ByDB   numberTable
	Asides undo.Asides[*Container] // containers that are set aside
	Hidden map[uint32]*Container   // logs and groups, by number

	lsn LSN // covers all changes of the catalogue
	// dropped are the tables of dropped containers of which the stores may have items.
	dropped []*table
	// unnumbered are containers without a number while the data is loaded.
	unnumbered []*Container

	list    []*Container          // the listed ones, in no order
	memory  atomic.Int64          // bytes
	next    atomic.Uint32         // number of the next container
	changed map[uint32]*Container // see Changed; nil if the container is gone
}

func (cat *catalogue) init() {
	cat.ByName, cat.ByDB = make(map[string]*Container), make(numberTable)
	cat.Hidden, cat.changed = make(map[uint32]*Container), make(map[uint32]*Container)
}

// Number returns the number of a new container. In a cluster the position in the log has the next: no node
// uses one again.
func (cat *catalogue) Number() uint32 { return cat.next.Add(1) - 1 }

// Next returns a number that is greater than those of all containers. Safe for concurrent use.
func (cat *catalogue) Next() uint32 { return cat.next.Load() }

// Used notes that numbers below one are used.
func (cat *catalogue) Used(below uint32) { cat.next.Store(max(cat.next.Load(), below)) }

// Memory returns the bytes of the containers without their items, an estimate. Safe for concurrent use.
func (cat *catalogue) Memory() int64 { return cat.memory.Load() }

// AddMemory notes that a container takes more bytes.
func (cat *catalogue) AddMemory(bytes int64) { cat.memory.Add(bytes) }

// Listed reports whether a container is listed.
func (cat *catalogue) Listed(c *Container) bool { return cat.ByName[c.name] == c }

// List returns the listed containers, in no order. The slice must not be changed, and is valid until the
// catalogue changes.
func (cat *catalogue) List() []*Container { return cat.list }

// All returns all containers: listed, set aside and hidden.
func (cat *catalogue) All() iter.Seq[*Container] {
	return func(yield func(*Container) bool) {
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
func (cat *catalogue) ByNumber() map[uint32]*Container {
	all := make(map[uint32]*Container, len(cat.list)+len(cat.Hidden))
	for c := range cat.All() {
		all[c.number] = c
	}
	return all
}

// Add lists a container.
func (cat *catalogue) Add(c *Container) {
	cat.ByName[c.name] = c
	cat.ByDB[c.db] = c
	c.listPos = len(cat.list)
	cat.list = append(cat.list, c)
	cat.memory.Add(c.memory())
}

// Remove takes a container out of the list. The last one there takes its place.
func (cat *catalogue) Remove(c *Container) {
	delete(cat.ByName, c.name)
	delete(cat.ByDB, c.db)
	at, end := c.listPos, len(cat.list)-1
	cat.list[at] = cat.list[end]
	cat.list[at].listPos = at
	clear(cat.list[end:])
	cat.list = cat.list[:end]
	cat.memory.Add(-c.memory())
}

// Hide adds a hidden container.
func (cat *catalogue) Hide(h *Container) {
	cat.Hidden[h.number] = h
	cat.memory.Add(h.memory())
}

// Unhide removes a hidden container.
func (cat *catalogue) Unhide(h *Container) {
	delete(cat.Hidden, h.number)
	cat.memory.Add(-h.memory())
}

// AddAside adds a container that is set aside.
func (cat *catalogue) AddAside(a *Container) {
	cat.Asides.Add(a)
	cat.memory.Add(a.memory())
}

// RemoveAside removes a container that is set aside, if it is there.
func (cat *catalogue) RemoveAside(a *Container) {
	if cat.Asides.Remove(a) {
		cat.memory.Add(-a.memory())
	}
}

// Changed notes that the files lack what the record of a container says.
func (cat *catalogue) Changed(c *Container) { cat.changed[c.number] = c }

// Gone notes that no container has a number, and the files may have its record.
func (cat *catalogue) Gone(number uint32) { cat.changed[number] = nil }

// IsChanged reports whether the files lack the record of a container, of its present number.
func (cat *catalogue) IsChanged(c *Container) bool { return cat.changed[c.number] == c }

// NotesNumber reports whether the files lack what became of the container of a number.
func (cat *catalogue) NotesNumber(number uint32) bool {
	_, ok := cat.changed[number]
	return ok
}

// TakeChanged returns what the files lack, and forgets it.
func (cat *catalogue) TakeChanged() catalogChanges {
	changed := cat.changed
	cat.changed = make(map[uint32]*Container)
	return catalogChanges(changed)
}

// Everything returns all containers, as if the files had none.
func (cat *catalogue) Everything() catalogChanges {
	return catalogChanges(cat.ByNumber())
}
