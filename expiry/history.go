package expiry

// MostHistory is the number of entries that a container's history keeps: the newest.
const MostHistory = 32

// Action is what a history entry says was done to a container.
type Action string

// The actions.
const (
	Created  Action = "created"
	Set      Action = "set"      // a new default or mode
	Flushed  Action = "flushed"  // all items were removed
	Swapped  Action = "swapped"  // the items were exchanged for those of another container
	Restored Action = "restored" // the policy came from another data folder
	Dropped  Action = "dropped"
	Undone   Action = "undone"
	Held     Action = "held"
	Released Action = "released"
)

// HistoryEntry is one change of a container. From At on, until the At of the next entry, its policy rules. A
// history is a slice of entries, oldest first. It is immutable: a change makes a new slice. All moments are
// in ms.
type HistoryEntry struct {
	At     int64
	What   Action
	Policy Policy // with the marks as of At
	Etag   uint64 // of the settings from At on
	By     string // address and name of the client, at most [MostBy] bytes; empty: the server itself
	Kills  int64  // items that the change killed at once; -1: not counted
	Reason string // of a hold
	Undo   int64  // until when the change can be taken back; 0: it never could; see EndedEarly
	Undone bool   // the change was taken back: its rule has killed nothing
}

// MostBy is the length in bytes of the longest [HistoryEntry.By].
const MostBy = 128

// Cause is what an item has died of.
type Cause string

// The causes. The zero value means that the item lives.
const (
	ByDocument  Cause = "document"  // its own end, or its cap
	ByContainer Cause = "container" // the container's default
	ByChange    Cause = "change"    // a changed default, at once
)

// Death returns when an item died by now (ms), of what, and the etag of the settings that ruled then. The
// item was last written at ts with an expireAt. The cause is empty if it lives. The history must not be
// empty.
//
// An item dies in an era, the time of an entry's rule, if its end by that rule is before, or at, the change
// that ends the era. If the end is before, or at, the change that begins the era, the item dies of that
// change. What died before the history begins, or before a swap, counts as dead at that entry: only marks are
// left of it.
func Death(ts, expireAt int64, history []HistoryEntry, now int64) (at int64, cause Cause, policy uint64) {
	first := 0
	for history[first].Undone {
		first++ // the entry of the undoing follows at the latest
	}
	for i := range history {
		if h := &history[i]; !h.Undone && (h.What == Swapped || h.What == Restored) {
			first = i
		}
	}
	era := &history[first]
	if (&Policy{InheritDeadTo: era.Policy.InheritDeadTo, OwnDeadTo: era.Policy.OwnDeadTo}).Dead(ts, expireAt, now) {
		return era.At, ByChange, era.Etag
	}
	for i := first; i < len(history); {
		era, i = &history[i], i+1
		for i < len(history) && history[i].Undone {
			i++
		}
		to := now
		if i < len(history) {
			to = min(history[i].At, now)
		}
		end, by := era.Policy.Ending(ts, expireAt)
		switch {
		case by == "" || end > to:
		case end <= era.At:
			return era.At, ByChange, era.Etag
		default:
			return end, by, era.Etag
		}
	}
	return 0, "", 0
}

// DefaultBy returns the oldest entry since which the default of the last one has ruled. earlier reports that
// it may have ruled before, as the history does not reach back. The history must not be empty.
func DefaultBy(history []HistoryEntry) (e HistoryEntry, earlier bool) {
	at := len(history) - 1
	for i := at - 1; i >= 0; i-- {
		switch h := &history[i]; {
		case h.Undone:
		case h.Policy.Default != history[at].Policy.Default:
			return history[at], false
		default:
			at = i
		}
	}
	e = history[at]
	return e, len(history) == MostHistory && e.What != Created && e.What != Restored
}

// Cleared returns what a history has to tell if nobody asks who changed the container before, and why: the
// policy of the last entry, and since when its default has ruled. The history must not be empty. The causes
// of deaths that come are the same.
func Cleared(history []HistoryEntry) HistoryEntry {
	e, _ := DefaultBy(history)
	last := &history[len(history)-1]
	return HistoryEntry{At: e.At, What: e.What, Policy: last.Policy, Etag: last.Etag, Kills: -1}
}

// SetBy returns the entry that has set the policy of the last one. The history must not be empty.
func SetBy(history []HistoryEntry) HistoryEntry {
	at := len(history) - 1
	for at > 0 && history[at-1].Etag == history[at].Etag {
		at--
	}
	return history[at]
}
