package memtable

import (
	"maps"
	"slices"
	"sync/atomic"
)

// Shard has the tables of one partition and their totals. The owner's lock protects it, but for Memory and
// Garbage.
type Shard struct {
	// SetSize returns the bytes that an item takes in a store, from the lengths of its key and record. It is
	// set before the first table is made.
	SetSize func(key, rec int) int64
	// Seed is that of the hashes of ids. It is set before the first table is made.
	Seed Seed

	memory  atomic.Int64 // bytes, an estimate
	garbage atomic.Int64 // bytes of dead allocations in the tables' arenas

	tables  map[uint32]*Table // the attached ones, by container
	pages   map[uint32]*Table // of their collections, likewise
	live    int64             // bytes that the items take in a store of nothing else
	unclean []*Table          // those with wasteful arenas

	dirty    []*Table // those with dirty items
	captured []*Table // those of them that the capture under way has not finished
	deleted  []string // keys of items that the store has and must delete

	overwrites bool // see Overwrites
}

func (s *Shard) attach(t *Table) {
	if s.tables == nil {
		s.tables, s.pages = make(map[uint32]*Table), make(map[uint32]*Table)
	}
	if t.pages {
		s.pages[t.number] = t
	} else {
		s.tables[t.number] = t
	}
}

func (s *Shard) detach(t *Table) {
	if t.pages {
		delete(s.pages, t.number)
	} else {
		delete(s.tables, t.number)
	}
}

// Table returns the attached table of a container, nil if there is none.
func (s *Shard) Table(container uint32) *Table { return s.tables[container] }

// Tables returns the attached tables in no order, those of pages too.
func (s *Shard) Tables() []*Table {
	return slices.AppendSeq(slices.Collect(maps.Values(s.tables)), maps.Values(s.pages))
}

// Memory estimates the memory of the attached tables in bytes. It needs no lock.
func (s *Shard) Memory() int64 { return s.memory.Load() }

// Garbage returns the bytes of memory that replaced and removed items still take. It needs no lock.
func (s *Shard) Garbage() int64 { return s.garbage.Load() }

// LiveBytes returns the bytes that the items take in a store of nothing else.
func (s *Shard) LiveBytes() int64 { return s.live }
