package keyspace

import (
	"slices"

	"mayfly/keyspace/aof"
	"mayfly/keyspace/memtable"
)

// tableEntry is an entry of a table.
type tableEntry struct {
	Table *table
	Entry *memtable.Entry
}

// changeList has the changes of a transaction, in order. The zero value is empty. Not safe for concurrent
// use.
type changeList struct {
	journaled []journaledChange
	inverses  []inverseChange
	was       []memtable.Entry
	removed   []tableEntry
	quiet     int // of the journaled
}

// journaledChange is what the journal gets of an item: the entry that was written, or the key that was
// deleted.
type journaledChange struct {
	tableEntry
	deleted string
	quiet   bool // the journal gets nothing: see Refreshed
}

// inverseChange takes back one change.
type inverseChange struct {
	tableEntry
	was int    // index in changeList.was of the former state, notThere if there was none
	f   func() // instead of all that
}

const notThere = -1

// Grow makes room for n changes.
func (l *changeList) Grow(n int) {
	l.journaled = slices.Grow(l.journaled, n)
	l.inverses = slices.Grow(l.inverses, n)
	l.was = slices.Grow(l.was, n)
}

// Any reports whether the journal gets a change.
func (l *changeList) Any() bool { return len(l.journaled) > 0 }

// Untouched reports whether the list is as new.
func (l *changeList) Untouched() bool {
	return len(l.journaled)+len(l.inverses)+len(l.was)+len(l.removed) == 0
}

// OnRollback has Rollback call f, before the functions that were passed earlier.
func (l *changeList) OnRollback(f func()) { l.inverses = append(l.inverses, inverseChange{f: f}) }

// Before notes the state of an entry before it is changed or removed for the first time.
func (l *changeList) Before(t *table, e *memtable.Entry) {
	l.inverses = append(l.inverses, inverseChange{tableEntry: tableEntry{t, e}, was: len(l.was)})
	l.was = append(l.was, *e)
}

// Inserted notes that an entry was inserted.
func (l *changeList) Inserted(t *table, e *memtable.Entry) {
	l.inverses = append(l.inverses, inverseChange{tableEntry: tableEntry{t, e}, was: notThere})
}

// HasInserted reports whether an entry was inserted.
func (l *changeList) HasInserted(e *memtable.Entry) bool {
	return slices.ContainsFunc(l.inverses, func(u inverseChange) bool { return u.Entry == e && u.was == notThere })
}

// Written has the journal get the last state of an entry, and marks it as changing.
func (l *changeList) Written(t *table, e *memtable.Entry) {
	switch {
	case !e.Changing():
		e.MarkChanging()
		l.journaled = append(l.journaled, journaledChange{tableEntry: tableEntry{t, e}})
	case l.quiet > 0:
		for i := len(l.journaled) - 1; i >= 0; i-- {
			if c := &l.journaled[i]; c.Entry == e && c.quiet {
				c.quiet = false
				l.quiet--
				return
			}
		}
	}
}

// Refreshed notes that pages of an entry are written. The journal gets only these, unless the entry is
// written too. Its state before is noted.
func (l *changeList) Refreshed(t *table, e *memtable.Entry) {
	if !e.Changing() {
		l.Before(t, e)
		e.MarkChanging()
		l.journaled = append(l.journaled, journaledChange{tableEntry: tableEntry{t, e}, quiet: true})
		l.quiet++
	}
}

// IsQuiet reports whether a changing entry has only been refreshed.
func (l *changeList) IsQuiet(e *memtable.Entry) bool {
	return l.quiet > 0 && slices.ContainsFunc(l.journaled, func(c journaledChange) bool { return c.Entry == e && c.quiet })
}

// Deleted has the journal delete the item of an entry, which must not be released before.
func (l *changeList) Deleted(t *table, e *memtable.Entry) {
	l.journaled = append(l.journaled, journaledChange{deleted: t.Key(e)})
}

// Removed notes that an entry has left its table. ReleaseRemoved releases it.
func (l *changeList) Removed(t *table, e *memtable.Entry) {
	l.removed = append(l.removed, tableEntry{t, e})
}

// AppendTo appends the changes as set and del commands. It has only the last state of an item written several
// times: the group is atomic. Of a large item of which only the header was written it has only that: a touch.
func (l *changeList) AppendTo(dst aof.Commands) aof.Commands {
	for _, c := range l.journaled {
		switch {
		case c.Entry == nil:
			dst.Del(c.deleted)
			continue
		case c.Entry.Present() && !c.quiet: // else its delete follows
			dst.Set(c.Table.KeyAndChange(c.Entry))
		}
		c.Entry.ClearChanging()
	}
	return dst
}

// SetLSN notes in the written entries what covers them.
func (l *changeList) SetLSN(lsn uint64) {
	for _, c := range l.journaled {
		if c.Entry != nil {
			c.Entry.SetLSN(lsn)
		}
	}
}

// Rollback takes back all changes. The journal gets none.
func (l *changeList) Rollback() {
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
	l.journaled, l.quiet = l.journaled[:0], 0
}

// FreeReplaced frees the records that Rollback would have restored.
func (l *changeList) FreeReplaced() {
	for i := range l.inverses {
		if u := &l.inverses[i]; u.f == nil && u.was != notThere {
			u.Table.FreeReplaced(u.Entry, &l.was[u.was])
		}
	}
}

// ReleaseRemoved releases the entries that have left their tables, but for those that Rollback has restored.
func (l *changeList) ReleaseRemoved() {
	for _, r := range l.removed {
		if !r.Entry.Present() {
			r.Table.Release(r.Entry)
		}
	}
}

// Reset empties the list. It keeps small buffers.
func (l *changeList) Reset() {
	const most = 1 << 10 // inverses
	// What is kept refers to nothing.
	clear(l.journaled)
	clear(l.inverses)
	clear(l.was)
	clear(l.removed)
	l.quiet = 0
	l.journaled = keep(l.journaled, 8*most)
	l.inverses = keep(l.inverses, most)
	l.was = keep(l.was, most/2)
	l.removed = keep(l.removed, most)
}
