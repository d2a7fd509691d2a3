package record

import (
	"slices"
	"unsafe"

	"mayfly/expiry"
)

// History is what a container knows of its changes. It is immutable: a change makes a new one.
type History struct {
	Etag    uint64                // of the settings
	Entries []expiry.HistoryEntry // the newest [expiry.MostHistory], oldest first
	Memory  int64                 // bytes, an estimate; see NewHistory

	Retention expiry.Retention // the policies that may rule again
}

// NewHistory returns a history and its size. The first entry, which every container has, counts as part of the
// container.
func NewHistory(etag uint64, entries []expiry.HistoryEntry) *History {
	h := &History{Etag: etag, Entries: entries, Retention: expiry.RetentionOf(entries)}
	for i := 1; i < len(entries); i++ {
		h.Memory += int64(unsafe.Sizeof(entries[i])) + int64(len(entries[i].By)+len(entries[i].Reason))
	}
	return h
}

// With returns the history with an entry at its end, which has the etag of the settings from then on. If it is full, the
// oldest entry goes, but not the one that has set what still rules.
func (h *History) With(e expiry.HistoryEntry) *History {
	entries := append(make([]expiry.HistoryEntry, 0, len(h.Entries)+1), h.Entries...)
	if len(entries) == expiry.MostHistory {
		oldest := 0
		if entries[0].Etag == e.Etag {
			oldest = 1
		}
		entries = slices.Delete(entries, oldest, oldest+1)
	}
	return NewHistory(e.Etag, append(entries, e))
}
