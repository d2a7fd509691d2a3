package access

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// Context is where a refused command was to run.
type Context uint8

const (
	TopLevel Context = iota
	InMulti
	InScript
)

// String returns the word of ACL LOG.
func (c Context) String() string { return [...]string{"toplevel", "multi", "lua"}[c] }

// Entry is an entry of the log.
type Entry struct {
	ID               int64
	Count            int64 // how often it happened
	Reason           Reason
	Context          Context
	Object, User     string
	Client           string // the line of CLIENT LIST, of the last time
	Created, Updated int64  // ms
}

const (
	// DefaultLogLength is the default of acllog-max-len, MostLogged the largest.
	DefaultLogLength = 128
	MostLogged       = 10_000

	mostLoggedText = 1 << 10 // bytes of an object, and of the line of a client
	groupedFor     = 60_000  // ms
	groupedAmong   = 10      // entries
)

// Log is the log of what was refused (ACL LOG). The zero value keeps [DefaultLogLength] entries. Safe for
// concurrent use.
type Log struct {
	denied [reasons]atomic.Int64 // since the start

	mu      sync.Mutex // protects what follows
	length  int        // how many entries are kept, if hasLen
	hasLen  bool
	nextID  int64
	entries []*Entry // the newest first
}

// Denied returns how often there was a reason since the start.
func (l *Log) Denied(r Reason) int64 { return l.denied[r].Load() }

// ResetDenied begins to count anew.
func (l *Log) ResetDenied() {
	for i := range l.denied {
		l.denied[i].Store(0)
	}
}

// SetLength sets how many entries are kept from the next one on, as in Redis.
func (l *Log) SetLength(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.length, l.hasLen = n, true
}

func (l *Log) trimLocked() {
	length := l.length
	if !l.hasLen {
		length = DefaultLogLength
	}
	if len(l.entries) > length {
		clear(l.entries[length:])
		l.entries = l.entries[:length]
	}
}

// Count counts that something was refused, without an entry.
func (l *Log) Count(r Reason) { l.denied[r].Add(1) }

// Add notes that something was refused at e.Updated. An entry that is like it, and at most a minute old,
// counts up instead. The entry's texts are copied.
func (l *Log) Add(e Entry) {
	l.Count(e.Reason)
	e.Object = strings.Clone(e.Object[:min(len(e.Object), mostLoggedText)])
	e.Client = strings.Clone(e.Client[:min(len(e.Client), mostLoggedText)])
	e.User = strings.Clone(e.User[:min(len(e.User), mostLoggedText)])
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, old := range l.entries[:min(len(l.entries), groupedAmong)] {
		age := e.Updated - old.Updated
		if old.Reason == e.Reason && old.Context == e.Context && old.Object == e.Object && old.User == e.User && max(age, -age) <= groupedFor {
			old.Count++
			old.Client, old.Updated = e.Client, e.Updated
			copy(l.entries[1:i+1], l.entries[:i])
			l.entries[0] = old
			return
		}
	}
	e.ID, e.Count, e.Created = l.nextID, 1, e.Updated
	l.nextID++
	l.entries = slices.Insert(l.entries, 0, &e)
	l.trimLocked()
}

// Entries returns up to n entries, the newest first.
func (l *Log) Entries(n int) []Entry {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := make([]Entry, 0, min(n, len(l.entries)))
	for _, e := range l.entries[:min(n, len(l.entries))] {
		list = append(list, *e)
	}
	return list
}

// Reset drops all entries.
func (l *Log) Reset() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = nil
}
