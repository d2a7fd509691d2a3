package record

import (
	"unsafe"

	"mayfly/expiry"
)

// History is what a container knows of its changes. It is immutable: a change makes a new one.
type History struct {
	Etag    uint64                // of the settings
	Entries []expiry.HistoryEntry // the newest [expiry.MostHistory], oldest first
	Memory  int64                 // bytes, an estimate; see NewHistory

	Retention expiry.Retention // the policies that may rule again

	shared   *sharedEntries // Entries are a part of it; nil: not yet
	from, to int            // which part
}

// sharedEntries are entries of histories that follow each other, and their JSON, which each CONTAINER.SET
// writes. Only the history with the last entry adds one, so those before it do not change.
type sharedEntries struct {
	entries []expiry.HistoryEntry
	text    []byte // of each entry a comma and the JSON
	ends    []int  // of each entry, in the text
}

// NewHistory returns a history and its size. The first entry, which every container has, counts as part of
// the container.
func NewHistory(etag uint64, entries []expiry.HistoryEntry) *History {
	h := &History{Etag: etag, Entries: entries, Retention: expiry.RetentionOf(entries)}
	for i := 1; i < len(entries); i++ {
		h.Memory += int64(unsafe.Sizeof(entries[i])) + int64(2*len(entries[i].By)+2*len(entries[i].Reason)) + textSize
	}
	return h
}

const (
	// textSize is about the size in bytes of the JSON of an entry, but for what clients and reasons add.
	textSize = 120
	// mostSpare is the number of entries for which shared entries have room at most when they are made.
	mostSpare = expiry.MostHistory / 4
)

// With returns the history with an entry at its end, which has the etag of the settings from then on. If it
// is full, another goes: see [expiry.Oldest]. Histories that follow each other must not be extended at the
// same time.
func (h *History) With(e expiry.HistoryEntry) *History {
	from, kept := 0, 0
	if len(h.Entries) == expiry.MostHistory {
		kept = expiry.Oldest(h.Entries, &e)
		from = kept + 1
	}
	s, first := h.shared, h.from+from
	if s == nil || kept > 0 || h.to < len(s.entries) || h.to == cap(s.entries) {
		s, first = h.share(kept, from), 0
	}
	s.add(&e)
	next := NewHistory(e.Etag, s.entries[first:len(s.entries):len(s.entries)])
	next.shared, next.from, next.to = s, first, len(s.entries)
	next.Memory += next.Memory / 4 // spare entries, and those that are gone
	return next
}

// share copies the first entries that are kept, and those from an index on.
func (h *History) share(kept, from int) *sharedEntries {
	most := len(h.Entries) + 1 + min(len(h.Entries)/4, mostSpare)
	s := &sharedEntries{entries: make([]expiry.HistoryEntry, 0, most), ends: make([]int, 0, most)}
	if h.shared != nil {
		s.text = make([]byte, 0, (h.shared.end(h.to)-h.shared.end(h.from))*most/len(h.Entries))
	}
	for i := range h.Entries {
		switch {
		case i >= kept && i < from:
		case h.shared != nil:
			s.text = append(s.text, h.shared.part(h.from+i, h.from+i+1)...)
			s.entries, s.ends = append(s.entries, h.Entries[i]), append(s.ends, len(s.text))
		default:
			s.add(&h.Entries[i])
		}
	}
	return s
}

// add adds an entry.
func (s *sharedEntries) add(e *expiry.HistoryEntry) {
	s.entries = append(s.entries, *e)
	s.text = appendEntry(append(s.text, ','), e)
	s.ends = append(s.ends, len(s.text))
}

// part returns the text of the entries from one index to another.
func (s *sharedEntries) part(from, to int) []byte { return s.text[s.end(from):s.end(to)] }

// end returns the end in the text of the entries before an index.
func (s *sharedEntries) end(before int) int {
	if before == 0 {
		return 0
	}
	return s.ends[before-1]
}

// WithHistory returns the description of a container with its history.
func (c Container) WithHistory(h *History) Container {
	c.Etag, c.History = h.Etag, h.Entries
	if h.shared != nil {
		c.text = View(h.shared.part(h.from, h.to))
	}
	return c
}
