package expiry

import "slices"

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

// Windows returns the changes of a history that can be taken back at the moment now (ms), oldest first. A
// change that cannot be taken back keeps those before it from being so. Holds and deadlines, which are no
// rules, do not.
func Windows(history []HistoryEntry, now int64) (list []Window) {
	for i, h := range slices.Backward(history) {
		if h.Undone || h.What == Undone {
			continue
		}
		former := i - 1
		for former >= 0 && history[former].Undone {
			former--
		}
		if former < 0 {
			break
		}
		if kept := h.What == Set || h.What == Held || h.What == Released; kept && h.Policy.SameRule(&history[former].Policy) {
			continue
		}
		if h.What != Set || h.Undo <= now {
			break
		}
		list = append(list, Window{i, h.Undo, history[former].Policy})
	}
	slices.Reverse(list)
	return list
}

// NewestChange returns the newest change of a history that was not taken back: of the rule, the items or the
// name. What is empty if there is none.
func NewestChange(history []HistoryEntry) HistoryEntry {
	for i, h := range slices.Backward(history) {
		former := i - 1
		for former >= 0 && history[former].Undone {
			former--
		}
		switch {
		case h.Undone || h.What == Undone:
		case former < 0:
			return HistoryEntry{}
		case (h.What == Set || h.What == Held || h.What == Released) && h.Policy.SameRule(&history[former].Policy):
		default:
			return h
		}
	}
	return HistoryEntry{}
}

// EndedEarly is the end in ms of a window that was closed before its time.
const EndedEarly = 1

// Oldest returns the index of the entry that goes from a full history for a new one: the oldest, but not the
// one that has set what still rules. While that would end a window, it is one that says nothing any more: of
// a change that was taken back, or of the undoing. So a rule that is tried and taken back, however often,
// leaves earlier windows open.
func Oldest(history []HistoryEntry, next *HistoryEntry) int {
	if history[0].Etag == next.Etag {
		return 1
	}
	windows := Windows(history, next.At)
	if len(windows) == 0 {
		return 0
	}
	former := windows[0].Entry - 1
	for history[former].Undone {
		former--
	}
	if former > 0 {
		return 0
	}
	last := 0 // of those that were not taken back
	for i := 1; i < len(history); i++ {
		h := &history[i]
		if h.Undone || h.What == Undone && h.Policy == history[last].Policy && h.Etag != next.Etag {
			return i
		}
		last = i
	}
	return 0
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
