package keyspace

import "mayfly/expiry"

// Punctual deaths
//
// The tables of some containers have timers in the purge: see [expiry.Timer]. A timer is never later than the moment from
// which an item of its table may be removed:
//
//  1. A sample sets it to what the expiry queues of the table know then.
//  2. So does the end of each transaction that has recorded the container: another policy, SWAPDB, Undo, and their
//     rollback. It takes constant time, however many items there are.
//  3. Put makes it earlier if need be. A write that makes an end later leaves it.
//  4. While clients are paused, none is due: see KeepDeadUntil.

// punctual reports whether the deaths of a container are to be found when they happen: they are logged, or someone hears
// of them.
func (ks *Keyspace) punctual(c *Container) bool {
	return c.deaths != nil || c.hidden == nil && ks.heard.Load()
}

// ListenersChanged looks whether someone hears of deaths: see Options.DeathsHeard. The purge looks ten times a second too.
// It is cheap.
func (ks *Keyspace) ListenersChanged() {
	heard := ks.opt.DeathsHeard != nil && ks.opt.DeathsHeard()
	if was := ks.heard.Swap(heard); heard && !was {
		ks.purge.Rescan(ks.tables.Len())
	}
}

// setTimerLocked sets the timer of the table by what is known now. The lock of its partition must be held.
func (t *table) setTimerLocked(now int64) {
	if t.gone() || !t.ks.punctual(t.c) {
		t.stopTimerLocked()
		return
	}
	if t.timer == nil {
		t.timer = t.ks.purge.NewTimer(t)
	}
	byDefault, byOwnTTL := t.Earliest()
	t.timer.Set(max(t.c.retention.EarliestDue(t.c.Policy(), byDefault, byOwnTTL), now))
}

// stopTimerLocked removes the timer of the table. The lock of its partition must be held.
func (t *table) stopTimerLocked() {
	if t.timer != nil {
		t.timer.Set(expiry.NeverDue)
		t.timer = nil
	}
}

// noteDueLocked makes the timer of the table, which has one, early enough for an item that was written. The lock of its
// partition must be held.
func (t *table) noteDueLocked(ts, expireAt int64) { t.timer.Earlier(t.dueLocked(ts, expireAt)) }

// dueLocked returns the moment in ms from which an item of the table may be removed. The lock of its partition must be held.
func (t *table) dueLocked(ts, expireAt int64) int64 {
	return t.c.retention.Due(t.c.Policy(), ts, expireAt)
}

// beginTimersLocked sets the timers after the start. The locks of all partitions must be held.
func (ks *Keyspace) beginTimersLocked(now int64) {
	for _, c := range ks.catalogue.List() {
		if ks.punctual(c) {
			setTimersLocked([]*Container{c}, now)
		}
	}
}

// setTimersLocked sets the timers of containers that may have changed. The locks of all partitions must be held.
func setTimersLocked(list []*Container, now int64) {
	for _, c := range list {
		for t := range c.each {
			t.setTimerLocked(now)
		}
	}
}
