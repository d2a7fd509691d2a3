package watch

import (
	"slices"
	"sync/atomic"
)

// Mark is set once an item under watch has changed. Safe for concurrent use.
type Mark struct{ set atomic.Bool }

// Set sets the mark.
func (m *Mark) Set() { m.set.Store(true) }

// IsSet reports whether the mark is set.
func (m *Mark) IsSet() bool { return m.set.Load() }

// Lists has the marks of those who watch an id, by container, and the notes of those who have read one. The
// zero value is empty. Its owner's lock protects it.
type Lists[C comparable] struct {
	marks     map[C]map[string][]*Mark
	notes     Notes[C]
	broadcast bool // someone wants to know all that changes
	heeded    bool // someone wants to know something
}

// Add adds a mark to the list of an id. It reports false if the list has it already.
func (l *Lists[C]) Add(c C, id string, m *Mark) bool {
	if slices.Contains(l.marks[c][id], m) {
		return false
	}
	if l.marks == nil {
		l.marks = make(map[C]map[string][]*Mark)
	}
	if l.marks[c] == nil {
		l.marks[c] = make(map[string][]*Mark)
	}
	l.marks[c][id] = append(l.marks[c][id], m)
	l.heeded = true
	return true
}

// Remove takes a mark off the list of an id.
func (l *Lists[C]) Remove(c C, id string, m *Mark) {
	ids := l.marks[c]
	left := slices.DeleteFunc(ids[id], func(other *Mark) bool { return other == m })
	if len(left) > 0 {
		ids[id] = left
		return
	}
	if delete(ids, id); len(ids) == 0 {
		delete(l.marks, c)
		l.look()
	}
}

// look notes whether someone wants to know something.
func (l *Lists[C]) look() { l.heeded = len(l.marks) > 0 || len(l.notes.groups) > 0 || l.broadcast }

// Notes returns the notes, to read them.
func (l *Lists[C]) Notes() *Notes[C] { return &l.notes }

// ChangeNotes calls f, which may change the notes.
func (l *Lists[C]) ChangeNotes(f func(ns *Notes[C])) {
	f(&l.notes)
	l.look()
}

// Note is [Notes.Add].
func (l *Lists[C]) Note(c C, id string, r Reader, found bool, ts, expireAt int64) *Group {
	l.heeded = true
	return l.notes.Add(c, id, r, found, ts, expireAt)
}

// SetBroadcast says whether someone wants to know all that changes.
func (l *Lists[C]) SetBroadcast(on bool) {
	l.broadcast = on
	l.look()
}

// Tells reports whether someone is to be told that an item has changed.
func (l *Lists[C]) Tells(c C, id string) bool { return l.broadcast || l.notes.Has(c, id) }

// Of returns the marks of an id. They are valid until the next change.
func (l *Lists[C]) Of(c C, id string) []*Mark { return l.marks[c][id] }

// Empty reports whether nothing is watched, and nobody is to be told of changes.
func (l *Lists[C]) Empty() bool { return !l.heeded }
