package keyspace

import (
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

// sampleDue samples the tables whose timers are due.
func (o *opened) sampleDue() {
	for !o.purge.Timed() { // the budget is that of real time
	}
}

// TestDeathsAreFoundInTheirMillisecond: whatever moves an end, the timer of the table finds the death when it
// happens, and not a millisecond earlier. No cycle of the purge runs.
func TestDeathsAreFoundInTheirMillisecond(t *testing.T) {
	t.Parallel()
	second := func(n int64) time.Duration { return time.Duration(n) * time.Second }
	for name, tc := range map[string]struct {
		prepare func(o *opened)
		in      time.Duration // after prepare item "x" dies
		end     func(o *opened)
	}{
		"own end":          {func(o *opened) { o.putFor("c", "x", 5) }, second(5), nil},
		"default":          {func(o *opened) { o.put("c", "x", "{}", expiry.Inherit) }, second(10), nil},
		"the default of 0": {func(o *opened) { o.policy("0", 3); o.put("0", "x", "x", expiry.Inherit) }, second(3), nil},
		"the first of many": {func(o *opened) {
			for _, id := range []string{"a", "b", "c", "d"} {
				o.putFor("c", id, 100)
			}
			o.put("c", "never", "{}", expiry.Never)
			o.putFor("c", "x", 5)
		}, second(5), nil},
		"a later end": {func(o *opened) {
			o.putFor("c", "x", 5)
			o.clock.Advance(second(1))
			o.putFor("c", "x", 9)
			o.clock.Advance(second(4))
			o.sampleDue() // the timer was too early
		}, second(5), nil},
		"an earlier end": {func(o *opened) {
			o.putFor("c", "x", 50)
			o.putFor("c", "x", 2)
		}, second(2), nil},
		"its own end instead of the default": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.putFor("c", "x", 2)
		}, second(2), nil},
		"the default instead of its own end": {func(o *opened) {
			o.putFor("c", "x", 100)
			o.put("c", "x", "{}", expiry.Inherit)
		}, second(10), nil},
		"a shorter default": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.policy("c", 4)
		}, second(4), nil},
		"a longer default": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.policy("c", 40)
		}, second(40), nil},
		"a default that has passed": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.clock.Advance(second(9) - time.Millisecond)
		}, time.Millisecond, func(o *opened) { o.policy("c", 9) }},
		"TTL is switched on": {func(o *opened) {
			o.policy("c", expiry.Off)
			o.putFor("c", "x", 5)
			o.clock.Advance(second(2))
			o.policy("c", expiry.Forever)
		}, second(3), nil},
		"a hold ends": {func(o *opened) {
			o.putFor("c", "x", 5)
			o.catalogueTx(func(tx *Tx) { tx.SetHold(tx.Container("c"), "case 1") })
			o.clock.Advance(second(7))
			o.sampleDue()
		}, second(1), func(o *opened) {
			o.catalogueTx(func(tx *Tx) {
				c := tx.Container("c")
				tx.Release(c, c.Policy().Default, c.Policy().Mode, -1)
			})
		}},
		"another container after SWAPDB": {func(o *opened) {
			o.policy("d", 3)
			o.put("c", "x", "{}", expiry.Inherit)
			o.catalogueTx(func(tx *Tx) { tx.Swap(tx.Container("c"), tx.Container("d")) })
		}, second(3), nil},
		"an undone flush": {func(o *opened) {
			o.undoWindow(60)
			o.putFor("c", "x", 5)
			o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) })
			o.clock.Advance(second(2))
			o.undoChange("c")
		}, second(3), nil},
		"an undone drop": {func(o *opened) {
			o.undoWindow(60)
			o.putFor("c", "x", 5)
			o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
			o.clock.Advance(second(2))
			o.undoChange("c")
		}, second(3), nil},
		"the end of a window": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.undoWindow(20)
			o.policy("c", expiry.Forever)
			o.clock.Advance(second(1))
			o.undoWindow(4)
			o.clock.Advance(second(1))
			o.policy("c", 1) // both windows end in 4 s
		}, second(4), nil},
		"windows end at once": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.undoWindow(600)
			o.policy("c", expiry.Forever)
			o.clock.Advance(second(2))
			o.policy("c", 1)
		}, second(1), func(o *opened) { o.EndAllWindows() }},
		"an undone rule": {func(o *opened) {
			o.put("c", "x", "{}", expiry.Inherit)
			o.undoWindow(600)
			o.policy("c", expiry.Forever)
			o.clock.Advance(second(2))
			o.undoChange("c")
		}, second(8), nil},
		"a transaction that is rolled back": {func(o *opened) {
			o.putFor("c", "x", 5)
			var tx Tx
			o.BeginAll(&tx)
			c := tx.Container("c")
			tx.Put(c, "x", Document, "{}", expiry.Never)
			tx.SetPolicy(c, 1, expiry.Strict)
			tx.Delete(c, "x")
			tx.Flush(c)
			tx.Drop(c)
			tx.CreateContainer("c", expiry.Forever, expiry.Strict)
			tx.Rollback()
		}, second(5), nil},
		"a drop that is rolled back": {func(o *opened) {
			o.putFor("c", "x", 5)
			var tx Tx
			o.BeginAll(&tx)
			c := tx.Container("c")
			tx.Put(c, "x", Document, "{}", expiry.Never)
			tx.Drop(c)
			tx.Rollback()
		}, second(5), nil},
		"clients are paused": {func(o *opened) {
			o.putFor("c", "x", 5)
			o.KeepDeadUntil(o.clock.Now() + 8000)
		}, second(8), nil},
		"clients go on": {func(o *opened) {
			o.putFor("c", "x", 5)
			o.KeepDeadUntil(o.clock.Now() + 80_000)
			o.clock.Advance(second(6))
			o.sampleDue()
		}, second(1), func(o *opened) { o.KeepDeadUntil(0) }},
		"the clock is set forward": {func(o *opened) {
			o.putFor("c", "x", 100)
			o.clock.Raise(o.clock.Now() + 99_000)
		}, second(1), nil},
	} {
		t.Run(name, func(t *testing.T) {
			found := make(map[string]int)
			o := open(t, func(opt *Options) { opt.OnDeath = func(_ *Container, id string, _ LSN) { found[id]++ } })
			o.policy("c", 10)
			tc.prepare(o)
			if o.clock.Advance(tc.in - time.Millisecond); found["x"] != 0 {
				t.Fatal("the item is removed before the test begins")
			}
			if o.sampleDue(); found["x"] != 0 {
				t.Fatal("the item is removed a millisecond before its end")
			}
			if o.clock.Advance(time.Millisecond); tc.end != nil {
				tc.end(o)
			}
			if o.sampleDue(); found["x"] != 1 {
				t.Errorf("the death is found %d times in its millisecond", found["x"])
			}
		})
	}
}

func (o *opened) undoWindow(seconds int64) {
	o.t.Helper()
	drill.Check(o.t, o.SetUndoWindow(seconds))
}

// undoChange takes the newest change of a container back.
func (o *opened) undoChange(name string) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) {
		if done, err := tx.Undo(name, ""); done == nil || err != nil {
			o.t.Fatalf("UNDO %s: %v, %v", name, done, err)
		}
	})
}

// TestLoggedDeathsArePunctual: the deaths of a container with a log are found in their millisecond without
// hearers, also those of items from before the log, and of before the start. Other containers have no timers,
// nor has the log.
func TestLoggedDeathsArePunctual(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.DeathsHeard = nil })
	o.policy("other", 10)
	o.put("other", "x", "{}", expiry.Inherit)
	o.policy("jobs", 10)
	o.put("jobs", "before", "{}", expiry.Inherit)
	o.setLog("jobs", anHour)
	o.clock.Advance(time.Second)
	o.put("jobs", "after", "{}", expiry.Inherit)
	o.putFor("jobs", "later", 30)
	want := func(ids ...string) {
		t.Helper()
		if got := idsOf(o.logged("jobs")); !slices.Equal(got, ids) {
			t.Errorf("%v are logged, want %v", got, ids)
		}
	}
	elapse := func(d time.Duration) {
		o.clock.Advance(d)
		o.sampleDue()
	}
	elapse(9*time.Second - time.Millisecond)
	want()
	elapse(time.Millisecond)
	want("before")
	elapse(time.Second - time.Millisecond)
	want("before")
	elapse(time.Millisecond)
	want("before", "after")
	o.stop()
	o.start()
	elapse(20 * time.Second)
	want("before", "after", "later")
	for _, other := range o.tables.Some(nil, 0, o.tables.Len()) {
		if name := other.C.Name(); other.Timer() != nil && name != "jobs" {
			t.Errorf("a table of container %q has a timer", name)
		}
	}
	o.putFor("jobs", "not logged", 5)
	o.setLog("jobs", LogSettings{})
	for _, table := range o.tables.Some(nil, 0, o.tables.Len()) {
		if table.Timer() != nil {
			t.Error("a table has a timer after the log was ended")
		}
	}
}

// TestTimersOnlyForHearers: tables have timers only while someone hears of deaths, and then all get one.
func TestTimersOnlyForHearers(t *testing.T) {
	t.Parallel()
	heard := false
	o := open(t, func(opt *Options) { opt.DeathsHeard = func() bool { return heard } })
	timers := func() (n int) {
		for _, t := range o.tables.Some(nil, 0, o.tables.Len()) {
			if t.Timer() != nil {
				n++
			}
		}
		return n
	}
	for _, id := range []string{"a", "b", "c", "d", "e", "f"} {
		o.putFor("0", id, 5)
	}
	if n := timers(); n != 0 {
		t.Errorf("%d tables have timers that nobody needs", n)
	}
	heard = true
	o.ListenersChanged()
	for o.purge.Fast() == expiry.Pressed { // it scans as far as the budget, which is that of real time, allows
	}
	if n := timers(); n != o.tables.Len() {
		t.Errorf("%d of %d tables have timers", n, o.tables.Len())
	}
	o.policy("new", 5)
	if o.put("new", "x", "{}", expiry.Inherit); timers() != o.tables.Len() {
		t.Error("a new table has no timer")
	}
	heard = false
	if o.PurgeOnce(); timers() != 0 {
		t.Errorf("%d tables still have timers", timers())
	}
	heard = true
	if o.PurgeOnce(); timers() != o.tables.Len() {
		t.Error("the purge has not learned of the hearer")
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("new")) })
	o.clock.Advance(time.Hour)
	o.sampleDue()
	drill.Report(t, o.Check())
}
