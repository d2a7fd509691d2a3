package keyspace

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// logged returns all entries of a container's log, oldest first.
func (o *opened) logged(container string) (list []deathlog.Entry) {
	o.t.Helper()
	var tx Tx
	o.BeginNone(&tx)
	tx.Deaths(tx.Container(container)).Range(streamid.ID{}, streamid.Max, false, func(e deathlog.Entry) bool {
		list = append(list, e)
		return true
	})
	o.commit(&tx)
	return list
}

// state returns the state of a container's log.
func (o *opened) state(container string) deathlog.State {
	o.t.Helper()
	var tx Tx
	o.BeginNone(&tx)
	s, ok := tx.Deaths(tx.Container(container)).State()
	if o.commit(&tx); !ok {
		o.t.Fatalf("%s has no log", container)
	}
	return s
}

// all runs f in a transaction with all partitions locked.
func (o *opened) all(f func(tx *Tx)) {
	o.t.Helper()
	var tx Tx
	o.BeginAll(&tx)
	f(&tx)
	o.commit(&tx)
}

func (o *opened) setLog(container string, s LogSettings) {
	o.t.Helper()
	o.all(func(tx *Tx) {
		drill.Check(o.t, tx.SetLog(tx.Container(container), s))
	})
}

// anHour are the usual settings of a log.
var anHour = LogSettings{Seconds: 3600, MaxLen: 1_000_000, Bodies: true}

func (o *opened) createLogged(name string, def expiry.TTL) {
	o.t.Helper()
	o.all(func(tx *Tx) { tx.CreateContainer(name, def, expiry.Strict) })
	o.setLog(name, anHour)
}

func idsOf(list []deathlog.Entry) (ids []string) {
	for _, e := range list {
		ids = append(ids, e.Item)
	}
	return ids
}

func TestPurgeBuriesIntoTheLog(t *testing.T) {
	t.Parallel()
	died := 0
	o := open(t, func(opt *Options) { opt.OnDeath = func(*Container, string, LSN) { died++ } })
	o.createLogged("jobs", 10)
	it := o.put("jobs", "7", `{"mail":"a@b.c"}`, expiry.Inherit)
	o.put("jobs", "8", `{}`, epoch+5_000)
	o.elapse(20_000)
	for range 2 {
		o.PurgeOnce()
		list := o.logged("jobs")
		if ids := idsOf(list); len(list) != 2 || !slices.Contains(ids, "7") || !slices.Contains(ids, "8") || died != 2 {
			t.Fatalf("%+v; %d events", list, died)
		}
		for _, e := range list {
			want := deathlog.Entry{ID: e.ID, Item: "7", Cause: expiry.ByContainer, At: epoch + 10_000, TS: epoch, Etag: it.Version, Policy: e.Policy, Kind: Document, Body: `{"mail":"a@b.c"}`, HasBody: true}
			if e.Item == "8" {
				want = deathlog.Entry{ID: e.ID, Item: "8", Cause: expiry.ByDocument, At: epoch + 5_000, TS: epoch, Etag: e.Etag, Own: epoch + 5_000, Policy: e.Policy, Kind: Document, Body: `{}`, HasBody: true}
			}
			if e != want || e.ID.Ms != epoch+20_000 {
				t.Errorf("%+v, want %+v", e, want)
			}
		}
		if s := o.state("jobs"); s.Length != 2 || s.Added != 2 || s.First != list[0].ID || s.Last != list[1].ID || s.Oldest != epoch+20_000 {
			t.Errorf("%+v", s)
		}
		o.reopen()
	}
}

func TestReadersLeaveTheDeadOfALoggedContainer(t *testing.T) {
	t.Parallel()
	died := 0
	o := open(t, func(opt *Options) { opt.OnDeath = func(*Container, string, LSN) { died++ } })
	o.createLogged("jobs", 10)
	for i := range 100 {
		o.put("jobs", fmt.Sprint(i), `{}`, expiry.Inherit)
	}
	o.elapse(20_000)
	var tx Tx
	o.BeginAll(&tx)
	c := tx.Container("jobs")
	if _, ok := tx.Get(c, "1"); ok {
		t.Error("a dead item is read")
	}
	if n := tx.Count(c); n != 0 {
		t.Errorf("%d live", n)
	}
	if s := tx.Stats(c); s.Documents != 0 || s.Bytes != 0 {
		t.Errorf("%+v", s)
	}
	if _, _, ok := tx.Random(c); ok {
		t.Error("a dead item is drawn")
	}
	o.commit(&tx)
	if died != 0 || len(o.logged("jobs")) != 0 {
		t.Fatalf("readers have buried: %d events", died)
	}
	o.PurgeOnce()
	if n := len(o.logged("jobs")); n != 100 || died != 100 {
		t.Fatalf("%d entries, %d events", n, died)
	}
}

func TestWritersBury(t *testing.T) {
	t.Parallel()
	var events []LSN
	o := open(t, func(opt *Options) {
		opt.OnDeath = func(_ *Container, _ string, lsn LSN) { events = append(events, lsn) }
	})
	o.createLogged("jobs", 10)
	first := o.put("jobs", "a", `{"n":1}`, expiry.Inherit)
	o.elapse(20_000)
	second := o.put("jobs", "a", `{"n":2}`, expiry.Inherit)
	o.elapse(20_000)
	var tx Tx
	o.BeginKey(&tx, "a")
	if tx.Delete(tx.Container("jobs"), "a") {
		t.Error("a dead item is deleted")
	}
	lsn := tx.Close()
	list := o.logged("jobs")
	if len(list) != 2 || list[0].Etag != first.Version || list[1].Etag != second.Version || list[0].Body != `{"n":1}` {
		t.Fatalf("%+v", list)
	}
	if len(events) != 2 || events[1] != lsn {
		t.Errorf("events after %v, the last group is %d", events, lsn)
	}
	o.BeginKey(&tx, "a")
	if e, ok := tx.Deaths(tx.Container("jobs")).Newest("a"); !ok || e != list[1] {
		t.Errorf("the newest is %+v", e)
	}
	tx.Close()
	o.PurgeOnce()
	if n := len(o.logged("jobs")); n != 2 {
		t.Errorf("%d entries", n)
	}
}

func TestRollbackTakesBurialsBack(t *testing.T) {
	t.Parallel()
	died := 0
	o := open(t, func(opt *Options) { opt.OnDeath = func(*Container, string, LSN) { died++ } })
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{"n":1}`, expiry.Inherit)
	o.put("jobs", "b", `{"n":1}`, expiry.Inherit)
	o.elapse(20_000)
	var tx Tx
	o.BeginAll(&tx)
	c := tx.Container("jobs")
	tx.Put(c, "a", Document, `{"n":2}`, expiry.Inherit)
	tx.Delete(c, "b")
	drill.Check(t, tx.SetLog(c, LogSettings{}))
	tx.Rollback()
	if n := len(o.logged("jobs")); n != 0 || died != 0 {
		t.Fatalf("%d entries, %d events", n, died)
	}
	o.PurgeOnce()
	if n := len(o.logged("jobs")); n != 2 || died != 2 {
		t.Fatalf("%d entries, %d events", n, died)
	}
	before := o.state("jobs")
	for _, f := range []func(tx *Tx, c *Container){
		func(tx *Tx, c *Container) { tx.Deaths(c).Delete([]streamid.ID{before.First, before.Last}) },
		func(tx *Tx, c *Container) { tx.Deaths(c).Trim(0, streamid.ID{}, 0) },
		func(tx *Tx, c *Container) { _ = tx.SetLog(c, LogSettings{}) },
		func(tx *Tx, c *Container) { tx.Drop(c) },
		func(tx *Tx, c *Container) { tx.Flush(c) },
	} {
		o.BeginAll(&tx)
		f(&tx, tx.Container("jobs"))
		tx.Rollback()
		if s := o.state("jobs"); s != before || len(o.logged("jobs")) != 2 {
			t.Errorf("%+v, want %+v", s, before)
		}
		drill.Check(t, o.Check())
	}
}

func TestLogRangeMergesPartitions(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	const n = 1000
	for i := range n {
		o.put("jobs", fmt.Sprint("id", i), fmt.Sprintf(`{"n":%d}`, i), expiry.Inherit)
		o.elapse(1)
	}
	for range 20 {
		o.elapse(900)
		o.PurgeOnce()
	}
	list := o.logged("jobs")
	if len(list) != n || !slices.IsSortedFunc(list, func(a, b deathlog.Entry) int { return a.ID.Compare(b.ID) }) {
		t.Fatalf("%d entries, or out of order", len(list))
	}
	check := func() {
		t.Helper()
		for _, at := range [][2]int{{0, n - 1}, {0, 0}, {n - 1, n - 1}, {17, 400}, {500, 499}} {
			for _, reverse := range []bool{false, true} {
				var got []deathlog.Entry
				var tx Tx
				o.BeginNone(&tx)
				tx.Deaths(tx.Container("jobs")).Range(list[at[0]].ID, list[at[1]].ID, reverse, func(e deathlog.Entry) bool {
					got = append(got, e)
					return true
				})
				o.commit(&tx)
				if reverse {
					slices.Reverse(got)
				}
				if want := list[min(at[0], at[1]+1) : at[1]+1]; !slices.Equal(got, want) {
					t.Errorf("from %d to %d, %v: %d entries, want %d", at[0], at[1], reverse, len(got), len(want))
				}
			}
		}
	}
	check()
	o.reopen()
	check()
	s := o.state("jobs")
	if s.Length != n || s.Added != n || s.First != list[0].ID || s.Last != list[n-1].ID {
		t.Errorf("%+v", s)
	}
}

func TestRetentionAndMaxLen(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	die := func(from, to int) {
		for i := from; i < to; i++ {
			o.put("jobs", fmt.Sprint("id", i), `{}`, expiry.Inherit)
		}
		o.elapse(10_000)
		o.PurgeOnce()
	}
	die(0, 300)
	o.elapse(1800_000)
	die(300, 500)
	o.setLog("jobs", LogSettings{Seconds: 3600, MaxLen: 150, Bodies: true})
	o.PurgeOnce()
	last := o.state("jobs").Last
	if s := o.state("jobs"); s.Length != 150 || s.Added != 500 {
		t.Errorf("%+v", s)
	}
	if ids := idsOf(o.logged("jobs")); len(ids) != 150 || strings.TrimPrefix(ids[0], "id") < "300" {
		t.Errorf("%d entries, from %s", len(ids), ids[0])
	}
	o.reopen()
	o.elapse(3600_000)
	if s := o.state("jobs"); s.Length != 0 || s.Added != 500 || s.Last != last || s.Bytes != 0 || !s.First.IsZero() {
		t.Errorf("expired entries count: %+v", s)
	}
	if list := o.logged("jobs"); len(list) != 0 {
		t.Errorf("%d expired entries are visible", len(list))
	}
	o.PurgeOnce()
	o.reopen()
	if s := o.state("jobs"); s.Length != 0 || s.Added != 500 || s.Last != last {
		t.Errorf("%+v", s)
	}
}

// TestHoldKeepsTheLog holds a container beyond the time of its log's entries, by a command and by an import
// into an empty one.
func TestHoldKeepsTheLog(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]func(tx *Tx){
		"set": func(tx *Tx) { tx.SetHold(tx.Container("jobs"), "case 4711") },
		"restored": func(tx *Tx) {
			_, err := tx.RestoreContainer(ContainerRecord{Name: "jobs", Created: 1, Policy: expiry.Policy{Default: 10, Hold: "case 4711"}})
			drill.Check(t, err)
		},
	} {
		o := open(t)
		o.createLogged("jobs", 10)
		o.put("jobs", "gone", `{}`, expiry.Inherit)
		o.elapse(10_000)
		o.PurgeOnce()
		o.elapse(3600_000)
		o.put("jobs", "kept", `{}`, expiry.Inherit)
		o.elapse(10_000)
		if name == "restored" { // into an empty one
			o.PurgeOnce()
		}
		o.all(hold)
		o.PurgeOnce()
		for range 2 {
			o.elapse(7200_000)
			o.PurgeOnce()
			if ids := idsOf(o.logged("jobs")); !slices.Equal(ids, []string{"kept"}) {
				t.Errorf("%s: on hold the log has %q", name, ids)
			}
			o.reopen()
		}
		o.all(func(tx *Tx) { tx.Release(tx.Container("jobs"), 10, expiry.Strict, -1) })
		if ids := idsOf(o.logged("jobs")); len(ids) != 0 {
			t.Errorf("%s: after the hold the log has %q", name, ids)
		}
		o.PurgeOnce()
		if s := o.state("jobs"); s.Length != 0 || s.Added != 2 {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

// TestHoldKeepsWhatWasChosen: a hold keeps entries that MAXLEN or eviction was about to remove when it came.
func TestHoldKeepsWhatWasChosen(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.put("jobs", "7", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.PurgeOnce()
	p, h := o.partitionOf("7"), o.catalogue.ByName["jobs"].deaths
	table, id := h.c.tables[p.Number], ""
	table.Descend(0, func(_ uint64, e *memtable.Entry) bool {
		id = strings.Clone(table.ID(e))
		return false
	})
	chosen := evictable{t: table, id: id, version: table.Find(id).Version()}
	o.all(func(tx *Tx) { tx.SetHold(tx.Container("jobs"), "case 4711") })
	if n := o.trimPart(h, p, streamid.Max); n != 0 {
		t.Errorf("MAXLEN removes %d entries", n)
	}
	o.evictEntry(chosen)
	if ids := idsOf(o.logged("jobs")); !slices.Equal(ids, []string{"7"}) {
		t.Errorf("on hold the log has %q", ids)
	}
}

func TestLogDeleteAndTrim(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	for i := range 100 {
		o.put("jobs", fmt.Sprint("id", i), `{}`, expiry.Inherit)
	}
	o.elapse(10_000)
	o.PurgeOnce()
	list := o.logged("jobs")
	o.all(func(tx *Tx) {
		c := tx.Container("jobs")
		ids := []streamid.ID{list[50].ID, list[60].ID, list[50].ID, {Ms: 1}}
		if n := tx.Deaths(c).Delete(ids); n != 2 {
			t.Errorf("%d deleted", n)
		}
		if n := tx.Deaths(c).Delete(ids); n != 0 {
			t.Errorf("%d deleted again", n)
		}
		if n := tx.Deaths(c).Trim(-1, list[10].ID, 0); n != 10 {
			t.Errorf("%d trimmed by id", n)
		}
		if n := tx.Deaths(c).Trim(80, streamid.ID{}, 5); n != 5 {
			t.Errorf("%d trimmed up to a limit", n)
		}
		if n := tx.Deaths(c).Trim(80, streamid.ID{}, 0); n != 3 {
			t.Errorf("%d trimmed by number", n)
		}
	})
	for range 2 {
		if s := o.state("jobs"); s.Length != 80 || s.Added != 100 || s.MaxDeleted != list[60].ID || s.First != list[18].ID || s.Last != list[99].ID {
			t.Errorf("%+v", s)
		}
		o.reopen()
	}
}

func TestLogOffDropFlushSwap(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("a", 10)
	o.createLogged("b", 10)
	o.put("a", "1", `{}`, expiry.Inherit)
	o.put("b", "2", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.all(func(tx *Tx) { tx.Swap(tx.Container("a"), tx.Container("b")) })
	o.put("a", "3", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.all(func(tx *Tx) { tx.Flush(tx.Container("a")) })
	o.put("a", "4", `{}`, expiry.Inherit)
	o.all(func(tx *Tx) { tx.Swap(tx.Container("a"), tx.Container("b")) })
	o.elapse(10_000)
	o.PurgeOnce()
	for range 2 {
		if a, b := idsOf(o.logged("a")), idsOf(o.logged("b")); !slices.Equal(a, []string{"1", "3"}) || !slices.Equal(b, []string{"2", "4"}) {
			t.Errorf("%v, %v", a, b)
		}
		o.reopen()
	}
	used := o.Used()
	o.setLog("a", LogSettings{})
	o.all(func(tx *Tx) {
		if _, ok := tx.Deaths(tx.Container("a")).State(); ok {
			t.Error("there is a log")
		}
		tx.Drop(tx.Container("b"))
	})
	if now := o.Used(); now >= used || len(o.catalogue.Hidden) != 0 {
		t.Errorf("%d bytes used, before %d; %d hidden containers", now, used, len(o.catalogue.Hidden))
	}
	o.reopen()
	o.setLog("a", anHour)
	if s := o.state("a"); s != (deathlog.State{}) {
		t.Errorf("a new log is %+v", s)
	}
}

func TestUndoOfADropBringsTheLogBack(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.SetUndoWindow(60))
	o.createLogged("a", 10)
	o.put("a", "1", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.PurgeOnce()
	o.put("a", "2", `{}`, expiry.Inherit)
	o.elapse(5_000)
	o.all(func(tx *Tx) { tx.Drop(tx.Container("a")) })
	o.all(func(tx *Tx) {
		if memory := tx.UndoMemory(); memory < 3*memtable.TableOverhead {
			t.Errorf("%d bytes can be brought back; the log is among them", memory)
		}
	})
	o.reopen()
	o.elapse(10_000)
	o.PurgeOnce()
	o.all(func(tx *Tx) {
		if _, err := tx.Undo("a", ""); err != nil {
			t.Fatal(err)
		}
	})
	o.PurgeOnce()
	for range 2 {
		if ids := idsOf(o.logged("a")); !slices.Equal(ids, []string{"1", "2"}) {
			t.Errorf("%v", ids)
		}
		o.reopen()
	}
	o.all(func(tx *Tx) { tx.Drop(tx.Container("a")) })
	o.elapse(70_000)
	o.EndWindows()
	if len(o.catalogue.Hidden) != 0 {
		t.Errorf("%d hidden containers", len(o.catalogue.Hidden))
	}
}

// elapse lets ms pass.
func (o *opened) elapse(ms int64) { o.clock.Advance(time.Duration(ms) * time.Millisecond) }
