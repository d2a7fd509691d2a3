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

	texts []string // the JSON of the entries, as far as it is known: CONTAINER.SET writes all of them
}

// NewHistory returns a history and its size. The first entry, which every container has, counts as part of the
// container.
func NewHistory(etag uint64, entries []expiry.HistoryEntry) *History {
	return newHistory(etag, entries, make([]string, len(entries)))
}

func newHistory(etag uint64, entries []expiry.HistoryEntry, texts []string) *History {
	h := &History{Etag: etag, Entries: entries, Retention: expiry.RetentionOf(entries), texts: texts}
	for i := 1; i < len(entries); i++ {
		h.Memory += int64(unsafe.Sizeof(entries[i])) + int64(2*len(entries[i].By)+2*len(entries[i].Reason)) + textSize
	}
	return h
}

// textSize is about the size in bytes of the JSON of an entry, but for what clients and reasons add.
const textSize = 120

// With returns the history with an entry at its end, which has the etag of the settings from then on. If it is full, the
// oldest entry goes, but not the one that has set what still rules.
func (h *History) With(e expiry.HistoryEntry) *History {
	from, kept := 0, 0
	if full := len(h.Entries) == expiry.MostHistory; full && h.Entries[0].Etag == e.Etag {
		from, kept = 2, 1
	} else if full {
		from = 1
	}
	entries := make([]expiry.HistoryEntry, 0, len(h.Entries)+1)
	entries = append(append(append(entries, h.Entries[:kept]...), h.Entries[from:]...), e)
	texts := make([]string, 0, len(h.texts)+1)
	texts = append(append(append(texts, h.texts[:kept]...), h.texts[from:]...), "")
	for i := range texts {
		if texts[i] == "" {
			texts[i] = string(appendEntry(nil, &entries[i]))
		}
	}
	return newHistory(e.Etag, entries, texts)
}

// WithHistory returns the description of a container with its history.
func (c Container) WithHistory(h *History) Container {
	c.Etag, c.History, c.texts = h.Etag, h.Entries, h.texts
	return c
}
