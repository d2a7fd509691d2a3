package repair

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace"
	"mayfly/keyspace/aof/aoftest"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/groups"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// A clock was set forward by a day for some time. A repair with the corrected clock brings the folder's time
// back: what had died stays dead, what was written meanwhile has the time left that it had, and policies rule
// as before.
func TestRunAtACorrectedClock(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	dir := newDir(t)
	o, err := openIn(t, dir, aoftest.Epoch, 2)
	drill.Check(t, err)
	second := func(n int64) int64 { return o.clock.Now() + n*1000 }
	o.policy("forever", expiry.Forever)
	o.policy("minute", 60)
	o.policy("relaxed", 60)
	o.deadline("sessions", "end")
	o.put("forever", "before", "{}", expiry.Inherit)
	o.put("forever", "distant", "{}", second(7*24*3600))
	o.put("forever", "dead by its own end", "{}", second(3600))
	o.put("minute", "dead by the default", "{}", expiry.Inherit)
	o.put("relaxed", "dead by a former default", "{}", expiry.Inherit)
	o.clock.Advance(day)
	o.policy("relaxed", expiry.Forever) // its mark is a day ahead
	o.checkpoint()
	o.put("forever", "meanwhile", "{}", second(100))
	o.put("forever", "meanwhile for ever", "{}", expiry.Never)
	o.put("minute", "meanwhile by the default", "{}", expiry.Inherit)
	o.put("relaxed", "meanwhile", "{}", expiry.Inherit)
	o.put("sessions", "meanwhile by its deadline", fmt.Sprintf(`{"ttl":-1,"end":%d}`, o.clock.Now()/1000+100), o.clock.Now()/1000*1000+100_000)
	o.put("sessions", "meanwhile by its ttl", fmt.Sprintf(`{"ttl":20,"end":%d}`, o.clock.Now()/1000+100), second(20))
	o.put("sessions", "meanwhile a list", `["end","ttl"]`, second(100))
	o.put("sessions", "meanwhile a number", "5", expiry.Never)
	deadline := o.clock.Now()/1000*1000 + 100_000
	o.stop()

	const now = aoftest.Epoch + 10_000
	to, report := repairedAt(t, dir, now)
	if want := (Redated{Ahead: day.Milliseconds() - 10_000, Dead: 3, Later: 8}); *report.Redated != want {
		t.Errorf("redated: %+v, want %+v", report.Redated, want)
	}
	o, err = openIn(t, to, now, 2)
	drill.Check(t, err)
	if o.Now() != now {
		t.Errorf("the time of the new folder is %d ms ahead", o.Now()-now)
	}
	check := func(want map[place][2]int64) {
		t.Helper()
		got := o.dump()
		for at, times := range want {
			if it, ok := got[at]; !ok || it.TS != times[0] || it.ExpireAt != times[1] {
				t.Errorf("%v is %+v, want the times %d", at, it, times)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d items live, want %d: %v", len(got), len(want), got)
		}
	}
	lives := map[place][2]int64{
		{"forever", "before"}:                  {aoftest.Epoch, expiry.Inherit},
		{"forever", "distant"}:                 {aoftest.Epoch, aoftest.Epoch + 7*day.Milliseconds()},
		{"forever", "meanwhile"}:               {now, now + 100_000},
		{"forever", "meanwhile for ever"}:      {now, expiry.Never},
		{"minute", "meanwhile by the default"}: {now, expiry.Inherit},
		{"relaxed", "meanwhile"}:               {now, expiry.Inherit},

		{"sessions", "meanwhile a list"}:          {now, now + 100_000}, // a moment
		{"sessions", "meanwhile a number"}:        {now, expiry.Never},
		{"sessions", "meanwhile by its deadline"}: {now, deadline}, // which no write puts off
		{"sessions", "meanwhile by its ttl"}:      {now, now + 20_000},
	}
	check(lives)
	o.clock.Advance(time.Minute)
	delete(lives, place{"sessions", "meanwhile by its ttl"})
	delete(lives, place{"minute", "meanwhile by the default"})
	check(lives)
	o.clock.Advance(time.Minute)
	delete(lives, place{"forever", "meanwhile"})
	delete(lives, place{"sessions", "meanwhile a list"})
	check(lives)
	o.put("relaxed", "new", "{}", expiry.Inherit)
	if it := o.dump()[place{"relaxed", "new"}]; it.TS != now+120_000 {
		t.Errorf("a new item is %+v", it)
	}
	o.stop()
}

// repairedAt repairs a folder at a corrected clock, which loses nothing, and returns the new folder.
func repairedAt(t *testing.T, dir string, now int64) (to string, report *Report) {
	t.Helper()
	to = filepath.Join(newDir(t), "new")
	report, err := Run(disk, dir, to, now, func(string, *Report) error { return nil })
	drill.Check(t, err)
	if report.Redated == nil || !report.Clean() {
		t.Fatalf("redated: %+v; clean: %t", report.Redated, report.Clean())
	}
	return to, report
}

// Entries of logs keep their ids over a corrected clock, and later ones follow them. Their age counts from
// the corrected time, to which the folder holds from then on.
func TestRunAtACorrectedClockWithLogs(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	o, err := openIn(t, dir, aoftest.Epoch, 2)
	drill.Check(t, err)
	o.policy("orders", 5)
	o.log("orders", keyspace.LogSettings{Seconds: 100, MaxLen: 10, Bodies: true})
	o.put("orders", "early", "{}", expiry.Inherit)
	o.clock.Advance(5 * time.Second)
	o.PurgeOnce()
	o.clock.Advance(50 * time.Second)
	o.put("orders", "meanwhile", "{}", expiry.Inherit)
	o.clock.Advance(5 * time.Second)
	o.PurgeOnce()
	o.put("orders", "not logged", "{}", expiry.Inherit)
	o.clock.Advance(5 * time.Second)
	o.stop()

	const now = aoftest.Epoch + 20_000
	to, report := repairedAt(t, dir, now)
	if want := (Redated{Ahead: 45_000, Dead: 1, Later: 1 + 2}); report.Redated.Ahead != want.Ahead || report.Redated.Dead != want.Dead {
		t.Errorf("redated: %+v", report.Redated)
	}
	at := int64(now)
	check := func(want ...string) {
		t.Helper()
		o, err := openIn(t, to, at, 2)
		drill.Check(t, err)
		defer o.stop()
		if o.Now() != at {
			t.Fatalf("the time of the folder is %d ms ahead", o.Now()-at)
		}
		o.PurgeOnce() // entries whose ids are ahead are visible until they are removed
		var got []string
		var last streamid.ID
		o.catalogueTx(func(tx *keyspace.Tx) {
			tx.Deaths(tx.Container("orders")).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
				if !last.Less(e.ID) {
					t.Errorf("%v follows %v", e.ID, last)
				}
				last = e.ID
				got = append(got, e.Item)
				return true
			})
		})
		if !slices.Equal(got, want) {
			t.Errorf("at %d the log has %q, want %q", at-now, got, want)
		}
		o.put("orders", fmt.Sprint("at ", at-now), "{}", expiry.Inherit)
		o.clock.Advance(5 * time.Second)
		o.PurgeOnce()
		o.PurgeOnce()
		at = o.clock.Now()
	}
	check("early", "meanwhile")
	check("early", "meanwhile", "at 0")
	at += 75_000 // 100 s after the first
	check("meanwhile", "at 0", "at 5000")
	at += 11_000 // 101 s after the corrected time
	check("at 0", "at 5000", "at 85000")
}

// Groups have no time that is ahead of a corrected clock: what is pending can be claimed by its age.
func TestRunAtACorrectedClockWithGroups(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	o, err := openIn(t, dir, aoftest.Epoch, 2)
	drill.Check(t, err)
	o.policy("orders", 5)
	o.log("orders", keyspace.LogSettings{Seconds: 1 << 20, MaxLen: 10, Bodies: true})
	o.put("orders", "early", "{}", expiry.Inherit)
	o.clock.Advance(5 * time.Second)
	o.PurgeOnce()
	deliver := func(consumer string) {
		o.catalogueTx(func(tx *keyspace.Tx) {
			c := tx.Container("orders")
			if tx.Group(c, "g") == nil {
				tx.CreateGroup(c, "g", streamid.ID{}, 0)
			}
			state, _ := tx.Deaths(c).State()
			tx.ChangeGroup(c, "g", func(b *groups.Changes) {
				s := groups.Stream{Added: state.Added, Length: state.Length, First: state.First, Last: state.Last}
				b.Deliver(&s, []streamid.ID{state.Last}, consumer, tx.Now(), false)
			})
		})
	}
	deliver("early worker")
	o.put("orders", "meanwhile", "{}", expiry.Inherit)
	o.clock.Advance(time.Hour)
	o.PurgeOnce()
	deliver("worker")
	o.stop()

	const now = aoftest.Epoch + 20_000
	to, _ := repairedAt(t, dir, now)
	o, err = openIn(t, to, now, 2)
	drill.Check(t, err)
	defer o.stop()
	o.catalogueTx(func(tx *keyspace.Tx) {
		g := tx.Group(tx.Container("orders"), "g")
		for name, want := range map[string]int64{"early worker": aoftest.Epoch + 5_000, "worker": now} {
			c := g.Consumer(name)
			if c == nil || c.Len() != 1 || c.Seen() != want {
				t.Fatalf("%s is %+v, want one that was seen at %d", name, c, want)
			}
			for e := range c.From(streamid.ID{}) {
				if e.Time != want || e.Count != 1 {
					t.Errorf("%s has %v since %d, want %d", name, e.ID, e.Time, want)
				}
			}
		}
	})
}

// A collection with pages that is dead by the folder's time stays dead as a whole, and so do its elements.
func TestRunAtACorrectedClockWithPages(t *testing.T) {
	t.Parallel()
	const day = 24 * time.Hour
	dir := newDir(t)
	o, err := openIn(t, dir, aoftest.Epoch, 2)
	drill.Check(t, err)
	drill.Check(t, o.AllowCollections())
	set := func(container, id string, expireAt int64, fields ...keyspace.Element) {
		t.Helper()
		o.key(id, func(tx *keyspace.Tx) {
			x, _ := tx.EditElements(tx.Container(container), id, record.Hash)
			x.End = expireAt
			for i := range 20 { // which take several pages
				x.Set(keyspace.Element{Field: fmt.Sprint("field-", i), Value: strings.Repeat("v", 100)})
			}
			for _, e := range fields {
				x.Set(e)
			}
			x.Close()
		})
	}
	soon, late := o.clock.Now()+3_600_000, o.clock.Now()+2*day.Milliseconds()
	o.policy("relaxed", 60)
	o.policy("forever", expiry.Forever)
	set("relaxed", "dead by a former default", expiry.Inherit)
	set("relaxed", "renewed", expiry.Inherit)
	set("forever", "dead by its own end", soon)
	set("forever", "before", expiry.Inherit, keyspace.Element{Field: "dead", Value: "1", End: soon}, keyspace.Element{Field: "ends", Value: "1", End: late})
	o.key("hollow", func(tx *keyspace.Tx) {
		x, _ := tx.EditElements(tx.Container("forever"), "hollow", record.Hash)
		x.Set(keyspace.Element{Field: "dead", Value: "1", End: soon})
		x.Close()
	})
	o.clock.Advance(30 * time.Second)
	o.key("renewed", func(tx *keyspace.Tx) { // one of its pages alone is younger
		x, _ := tx.EditElements(tx.Container("relaxed"), "renewed", record.Hash)
		x.Set(keyspace.Element{Field: "field-0", Value: "w"})
		x.Close()
	})
	o.clock.Advance(45 * time.Second)
	o.policy("relaxed", expiry.Forever)
	o.clock.Advance(day)
	set("relaxed", "meanwhile", expiry.Inherit, keyspace.Element{Field: "ends", Value: "1", End: o.clock.Now() + 100_000})
	o.stop()

	const now = aoftest.Epoch + 10_000
	to, report := repairedAt(t, dir, now)
	if report.Redated.Dead != 3 || report.Items != 3 {
		t.Errorf("%d items, redated: %+v", report.Items, report.Redated)
	}
	o, err = openIn(t, to, now, 2)
	drill.Check(t, err)
	defer o.stop()
	if got := o.dump(); len(got) != 3 {
		t.Errorf("%d items live, want 3: %v", len(got), got)
	}
	check := func(container, id string, length int, ends int64) {
		t.Helper()
		o.key(id, func(tx *keyspace.Tx) {
			h, _, found := tx.Elements(tx.Container(container), id)
			if !found || h.Len() != length {
				t.Errorf("%q has %d elements, want %d; found: %t", id, h.Len(), length, found)
			} else if e, _ := h.Get("ends"); e.End != ends {
				t.Errorf("%q has %+v, want the end %d", id, e, ends)
			}
		})
	}
	check("relaxed", "renewed", 20, 0)
	check("forever", "before", 21, late)
	check("relaxed", "meanwhile", 21, now+100_000)
}

// Without a folder that is ahead, a repair with a clock is one without.
func TestRunAtAClockThatIsRight(t *testing.T) {
	t.Parallel()
	dir := newDir(t)
	o, err := openIn(t, dir, aoftest.Epoch, 2)
	drill.Check(t, err)
	o.put("0", "a", "{}", expiry.Inherit)
	o.clock.Advance(time.Hour)
	o.stop()
	to := filepath.Join(newDir(t), "new")
	report, err := Run(disk, dir, to, aoftest.Epoch+2*time.Hour.Milliseconds(), func(string, *Report) error { return nil })
	if err != nil || report.Redated != nil || report.Items != 1 {
		t.Fatalf("%+v, %v", report, err)
	}
	o, err = openIn(t, to, aoftest.Epoch, 2)
	drill.Check(t, err)
	defer o.stop()
	if it := o.dump()[place{"0", "a"}]; it != (record.Item{Kind: record.Document, Body: "{}", TS: aoftest.Epoch, Version: it.Version}) || o.Now() != aoftest.Epoch+time.Hour.Milliseconds() {
		t.Errorf("%+v at %d", it, o.Now())
	}
}
