package tables

import "mayfly/expiry"

// Punctual deaths
//
// The tables of some containers have timers in the purge: see [expiry.Timer]. A timer is never later than the
// moment from which an item of its table may be removed:
//
//  1. A sample sets it to what the expiry queues of the table know then.
//  2. So does the end of each transaction that has recorded the container: another policy, SWAPDB, Undo, and
//     their rollback. It takes constant time, however many items there are.
//  3. Put makes it earlier if need be. A write that makes an end later leaves it.
//  4. While clients are paused, none is due: see KeepDeadUntil.

// SetTimer sets the timer of the table, and that of its pages, by what is known at a moment in ms.
func (t *Table[C]) SetTimer(now int64) {
	if t.Pages != nil {
		t.Pages.SetTimer(now)
	}
	if t.Gone() || !t.set.host.Punctual(t.C) {
		t.stopTimer()
		return
	}
	if t.timer == nil {
		t.timer = t.set.purge.NewTimer(t)
	}
	byDefault, byOwnTTL := t.Earliest()
	if t.Collections != nil {
		byOwnTTL = t.EarliestWaiting(t.C.Policy())
	}
	t.timer.Set(max(t.set.host.Retention(t.C).EarliestDue(t.C.Policy(), byDefault, byOwnTTL), now))
}

// stopTimer removes the timer of the table.
func (t *Table[C]) stopTimer() {
	if t.timer != nil {
		t.timer.Set(expiry.NeverDue)
		t.timer = nil
	}
}

// NoteDue makes the timer of the table, if it has one, early enough for an item that was written.
func (t *Table[C]) NoteDue(ts, expireAt int64) {
	if t.timer != nil {
		t.timer.Earlier(t.Due(ts, expireAt))
	}
}

// Timer returns the timer of the table, nil for none.
func (t *Table[C]) Timer() *expiry.Timer { return t.timer }

// Due returns the moment in ms from which an item of the table may be removed.
func (t *Table[C]) Due(ts, expireAt int64) int64 {
	return t.set.host.Retention(t.C).Due(t.C.Policy(), ts, expireAt)
}
