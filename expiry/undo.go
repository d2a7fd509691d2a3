package expiry

import (
	"iter"
	"slices"
)

// MostWindows is the number of changes of a container that can be taken back at a time.
const MostWindows = 8

// Window is a change of a rule that can be taken back until a moment.
type Window struct {
	Entry  int    // of the history
	Until  int64  // ms
	Former Policy // rules again
}

// SameRule reports whether two policies have the same default and mode.
func (p *Policy) SameRule(q *Policy) bool { return p.Default == q.Default && p.Mode == q.Mode }

// keepsRule reports whether an entry of a history has changed neither the rule nor the items nor the name: it
// tells of a hold, a deadline or a log. What ruled before an entry is in the one before it, taken back or
// not.
func keepsRule(history []HistoryEntry, i int) bool {
	h := &history[i]
	return (h.What == Set || h.What == Held || h.What == Released) && h.Policy.SameRule(&history[i-1].Policy)
}

// changes yields the changes of a history that were not taken back, of the rule, the items or the name,
// newest first: their indexes.
func changes(history []HistoryEntry) iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := len(history) - 1; i > 0; i-- {
			if h := &history[i]; h.Undone || h.What == Undone || keepsRule(history, i) {
				continue
			}
			if !yield(i) {
				return
			}
		}
	}
}

// Windows returns the changes of a history that can be taken back at the moment now (ms), oldest first. A
// change that cannot be taken back keeps those before it from being so.
func Windows(history []HistoryEntry, now int64) (list []Window) {
	for i := range changes(history) {
		h := &history[i]
		if h.What != Set || h.Undo <= now {
			break
		}
		list = append(list, Window{i, h.Undo, history[i-1].Policy})
	}
	slices.Reverse(list)
	return list
}

// NewestChange returns the newest change of a history that was not taken back: of the rule, the items or the
// name. What is empty if there is none.
func NewestChange(history []HistoryEntry) HistoryEntry {
	for i := range changes(history) {
		return history[i]
	}
	return HistoryEntry{}
}

// EndedEarly is the end in ms of a window that was closed before its time.
const EndedEarly = 1

// Oldest returns the index of the entry that goes from a full history for a new one: the oldest, but not the
// one that has set what still rules. While that would end a window, it is one that says nothing any more: of
// a change that was taken back, of the undoing, of a log. Then holds that have ended go. So a rule that is
// tried and taken back, or a hold, however often, leaves earlier windows open.
func Oldest(history []HistoryEntry, next *HistoryEntry) int {
	if history[0].Etag == next.Etag {
		return 1
	}
	if windows := Windows(history, next.At); len(windows) == 0 || windows[0].Entry > 1 {
		return 0
	}
	for _, spare := range []func(before, h, after *HistoryEntry) bool{saysNothing, endedHold} {
		for i := 1; i < len(history); i++ {
			after := next
			if i+1 < len(history) {
				after = &history[i+1]
			}
			if h := &history[i]; h.Etag != next.Etag && spare(&history[i-1], h, after) {
				return i
			}
		}
	}
	return 0
}

// saysNothing reports whether an entry between two others can go without a change of what they say.
func saysNothing(before, h, after *HistoryEntry) bool {
	if h.Undone {
		return after.Undone || after.What == Undone || before.Policy.SameRule(&h.Policy)
	}
	if h.What == Undone {
		return h.Policy == before.Policy
	}
	return (h.What == Set || h.What == Released) && sameButMarks(&h.Policy, &before.Policy)
}

// endedHold reports whether an entry is of a hold that the next one ends, which then says nothing either.
func endedHold(before, h, after *HistoryEntry) bool {
	return h.What == Held && after.What == Released && sameButMarks(&after.Policy, &before.Policy)
}

// sameButMarks reports whether two policies that follow each other differ in nothing but their marks. Those
// of the later one follow from the rule then.
func sameButMarks(p, q *Policy) bool {
	return p.SameRule(q) && p.Hold == q.Hold && p.Deadline == q.Deadline
}

// RetentionOf returns the policies that a history lets rule again.
func RetentionOf(history []HistoryEntry) (r Retention) {
	for _, w := range Windows(history, EndedEarly) {
		r = append(r, Retained{w.Former, w.Until})
	}
	return r
}

// LimitWindows returns the history with no change that can be taken back after a moment in ms; 0: none at
// all.
func LimitWindows(history []HistoryEntry, until int64) []HistoryEntry {
	until = max(until, EndedEarly)
	open := func(h HistoryEntry) bool { return h.Undo > until && !h.Undone }
	if !slices.ContainsFunc(history, open) {
		return history
	}
	history = slices.Clone(history)
	for i := range history {
		if open(history[i]) {
			history[i].Undo = until
		}
	}
	return history
}

// CloseWindow returns the history with an entry that cannot be taken back any more.
func CloseWindow(history []HistoryEntry, entry int) []HistoryEntry {
	history = slices.Clone(history)
	history[entry].Undo = EndedEarly
	return history
}

// TakeBack returns the history with an entry that was taken back.
func TakeBack(history []HistoryEntry, entry int) []HistoryEntry {
	history = slices.Clone(history)
	history[entry].Undone = true
	return history
}
