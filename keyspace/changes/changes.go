package changes

import (
	"slices"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/memtable"
)

// Table is a table of items with its partition. [memtable.Table] says what the methods do.
type Table interface {
	Key(e *memtable.Entry) string
	KeyAndChange(e *memtable.Entry) (key, rec, body string)
	Remove(e *memtable.Entry)
	Release(e *memtable.Entry)
	Restore(e, was *memtable.Entry)
	FreeReplaced(e, was *memtable.Entry)
}

// Item is an entry of a table.
type Item[T Table] struct {
	Table T
	Entry *memtable.Entry
}

// List has the changes of a transaction, in order. The zero value is empty. Not safe for concurrent use.
type List[T Table] struct {
	journaled []change[T]
	inverses  []inverse[T]
	was       []memtable.Entry
	removed   []Item[T]
}

// change is what the journal gets of an item: the entry that was written, or the key that was deleted.
type change[T Table] struct {
	Item[T]
	deleted string
}

// inverse takes back one change.
type inverse[T Table] struct {
	Item[T]
	was int    // index in List.was of the former state, notThere if there was none
	f   func() // instead of all that
}

const notThere = -1

// Grow makes room for n changes.
func (l *List[T]) Grow(n int) {
	l.journaled = slices.Grow(l.journaled, n)
	l.inverses = slices.Grow(l.inverses, n)
	l.was = slices.Grow(l.was, n)
}

// Any reports whether the journal gets a change.
func (l *List[T]) Any() bool { return len(l.journaled) > 0 }

// Untouched reports whether the list is as new.
func (l *List[T]) Untouched() bool {
	return len(l.journaled)+len(l.inverses)+len(l.was)+len(l.removed) == 0
}

// OnRollback has Rollback call f, before the functions that were passed earlier.
func (l *List[T]) OnRollback(f func()) { l.inverses = append(l.inverses, inverse[T]{f: f}) }

// Before notes the state of an entry before it is changed or removed for the first time.
func (l *List[T]) Before(t T, e *memtable.Entry) {
	l.inverses = append(l.inverses, inverse[T]{Item: Item[T]{t, e}, was: len(l.was)})
	l.was = append(l.was, *e)
}

// Inserted notes that an entry was inserted.
func (l *List[T]) Inserted(t T, e *memtable.Entry) {
	l.inverses = append(l.inverses, inverse[T]{Item: Item[T]{t, e}, was: notThere})
}

// HasInserted reports whether an entry was inserted.
func (l *List[T]) HasInserted(e *memtable.Entry) bool {
	return slices.ContainsFunc(l.inverses, func(u inverse[T]) bool { return u.Entry == e && u.was == notThere })
}

// Written has the journal get the last state of an entry, and marks it as changing.
func (l *List[T]) Written(t T, e *memtable.Entry) {
	if !e.Changing() {
		e.MarkChanging()
		l.journaled = append(l.journaled, change[T]{Item: Item[T]{t, e}})
	}
}

// Deleted has the journal delete the item of an entry, which must not be released before.
func (l *List[T]) Deleted(t T, e *memtable.Entry) {
	l.journaled = append(l.journaled, change[T]{deleted: t.Key(e)})
}

// Removed notes that an entry has left its table. ReleaseRemoved releases it.
func (l *List[T]) Removed(t T, e *memtable.Entry) { l.removed = append(l.removed, Item[T]{t, e}) }

// AppendTo appends the changes as set and del commands. It has only the last state of an item written several
// times: the group is atomic. Of a large item of which only the header was written it has only that: a touch.
func (l *List[T]) AppendTo(dst aof.Commands) aof.Commands {
	for _, c := range l.journaled {
		switch {
		case c.Entry == nil:
			dst.Del(c.deleted)
			continue
		case c.Entry.Present(): // else its delete follows
			dst.Set(c.Table.KeyAndChange(c.Entry))
		}
		c.Entry.ClearChanging()
	}
	return dst
}

// SetLSN notes in the written entries what covers them.
func (l *List[T]) SetLSN(lsn uint64) {
	for _, c := range l.journaled {
		if c.Entry != nil {
			c.Entry.SetLSN(lsn)
		}
	}
}

// Rollback takes back all changes. The journal gets none.
func (l *List[T]) Rollback() {
	for _, u := range slices.Backward(l.inverses) {
		switch {
		case u.f != nil:
			u.f()
		case u.was != notThere:
			u.Table.Restore(u.Entry, &l.was[u.was])
		case u.Entry.Present():
			u.Table.Remove(u.Entry)
			u.Table.Release(u.Entry)
		}
	}
	clear(l.journaled)
	l.journaled = l.journaled[:0]
}

// FreeReplaced frees the records that Rollback would have restored.
func (l *List[T]) FreeReplaced() {
	for i := range l.inverses {
		if u := &l.inverses[i]; u.f == nil && u.was != notThere {
			u.Table.FreeReplaced(u.Entry, &l.was[u.was])
		}
	}
}

// ReleaseRemoved releases the entries that have left their tables, but for those that Rollback has restored.
func (l *List[T]) ReleaseRemoved() {
	for _, r := range l.removed {
		if !r.Entry.Present() {
			r.Table.Release(r.Entry)
		}
	}
}

// Reset empties the list. It keeps small buffers.
func (l *List[T]) Reset() {
	const most = 1 << 10 // inverses
	l.journaled = keep(l.journaled, 8*most)
	l.inverses = keep(l.inverses, most)
	l.was = keep(l.was, most/2)
	l.removed = keep(l.removed, most)
}

// keep empties a slice for reuse, or drops it if it has grown beyond most.
func keep[T any](s []T, most int) []T {
	if cap(s) > most {
		return nil
	}
	clear(s)
	return s[:0]
}
