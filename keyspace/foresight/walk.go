package foresight

import (
	"mayfly/expiry"
	"mayfly/keyspace/memtable"
)

// Piece is the number of entries that a piece passes: about 0.1 ms.
const Piece = 4096

// Tally counts entries.
type Tally interface {
	// Under sets the policy by which the entries that follow are judged.
	Under(p *expiry.Policy)
	// Count counts an entry of a table.
	Count(t *memtable.Table, e *memtable.Entry)
}

// Walks are walks through tables, one in each partition. The zero value has none.
type Walks struct {
	walks []walk // by partition

	// Before, if not nil, is called before a piece reads a table: with the partition and the index among its
	// tables.
	Before func(partition, table int)
}

// walk is a walk through the tables of a partition.
type walk struct {
	tables []*memtable.Table
	at     int // index of the table
	block  int // where to go on in it
}

// Add adds a table of a partition and returns its index there.
func (w *Walks) Add(partition int, t *memtable.Table) (index int) {
	for len(w.walks) <= partition {
		w.walks = append(w.walks, walk{})
	}
	one := &w.walks[partition]
	one.tables = append(one.tables, t)
	return len(one.tables) - 1
}

// Run passes the entries to a tally, a piece of each partition in turn, so that others get its lock in
// between. It calls within to lock a partition for each piece, and ends when goesOn returns false. That is
// called without a lock, with the number of entries passed.
func (w *Walks) Run(tally Tally, within func(partition int, piece func()), goesOn func(entries int) bool) {
	for again := true; again; {
		again = false
		for n := range w.walks {
			more, passed := false, 0
			within(n, func() { passed, more = w.next(n, tally) })
			again = again || more
			if !goesOn(passed) {
				return
			}
		}
	}
}

// next passes a piece of a partition. It leaves out tables that were detached: their items were removed. More
// is false at the end.
func (w *Walks) next(partition int, tally Tally) (passed int, more bool) {
	const tableCost = 16 // the time that an empty table takes, in entries
	one := &w.walks[partition]
	for passed < Piece && one.at < len(one.tables) {
		t, left := one.tables[one.at], false
		if passed += tableCost; !t.Detached() {
			if w.Before != nil {
				w.Before(partition, one.at)
			}
			one.block, left = t.Walk(one.block, Piece-passed, func(e *memtable.Entry) {
				passed++
				tally.Count(t, e)
			})
		}
		if !left {
			one.at, one.block = one.at+1, 0
		}
	}
	return passed, one.at < len(one.tables)
}
