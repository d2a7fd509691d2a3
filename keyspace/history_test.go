package keyspace

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"
	"mayfly/keyspace/repair"
	"mayfly/keyspace/storage"
	"mayfly/test/drill"
)

// historyOf returns the etag and the history of a container.
func (o *opened) historyOf(name string) (etag uint64, entries []expiry.HistoryEntry) {
	o.t.Helper()
	var tx Tx
	o.BeginNone(&tx)
	c := tx.Container(name)
	o.commit(&tx)
	return c.Etag(), c.history.Load().Entries
}

// by runs a transaction of a client, a second later.
func (o *opened) by(client string, f func(tx *Tx)) {
	o.t.Helper()
	o.clock.Advance(time.Second)
	tx := Tx{By: client}
	o.BeginAll(&tx)
	defer o.commit(&tx)
	f(&tx)
}

// TestHistory changes containers in every way, and holds what of it is kept over a stop, a kill, a backup and
// a repair.
func TestHistory(t *testing.T) {
	t.Parallel()
	o := open(t)
	const ops, app = `127.0.0.1:5001 ("ops")`, "127.0.0.1:5002"
	o.by(app, func(tx *Tx) { tx.CreateContainer("a", 60, expiry.Strict) })
	o.by(ops, func(tx *Tx) { tx.CreateContainer("b", expiry.Off, expiry.Strict) })
	o.by(ops, func(tx *Tx) { tx.SetCounted(tx.Container("a"), 30, expiry.Lenient, 7) })
	o.put("a", "1", "{}", expiry.Inherit)
	o.by(app, func(tx *Tx) { tx.Swap(tx.Container("a"), tx.Container("b")) })
	o.by(app, func(tx *Tx) { tx.Flush(tx.Container("b")) })
	o.by(app, func(tx *Tx) { tx.Flush(tx.Container("b")) }) // empty: nothing

	at := func(second int64) int64 { return epoch + second*1000 }
	want := []expiry.HistoryEntry{
		{At: at(1), What: expiry.Created, Policy: expiry.Policy{Default: 60}, By: app, Kills: -1},
		{At: at(3), What: expiry.Set, Policy: expiry.Policy{Default: 30, Mode: expiry.Lenient, InheritDeadTo: at(3 - 60), OwnDeadTo: at(3)}, By: ops, Kills: 7},
		{At: at(4), What: expiry.Swapped, Policy: expiry.Policy{Default: 30, Mode: expiry.Lenient}, By: app, Kills: -1},
	}
	etag, a := o.historyOf("a")
	for i := range a {
		if i < len(want) {
			want[i].Etag = a[i].Etag
		}
	}
	if !reflect.DeepEqual(a, want) {
		t.Errorf("the history of a is\n%+v, not\n%+v", a, want)
	}
	if a[0].Etag == 0 || a[0].Etag == a[1].Etag || a[1].Etag != a[2].Etag || etag != a[2].Etag {
		t.Errorf("the etag is %x, those of the history are %x, %x and %x", etag, a[0].Etag, a[1].Etag, a[2].Etag)
	}
	_, b := o.historyOf("b")
	if len(b) != 3 || b[1].What != expiry.Swapped || b[1].Policy.OwnDeadTo != at(4) || b[2].What != expiry.Flushed || b[2].Etag != b[0].Etag {
		t.Errorf("the history of b is %+v", b)
	}

	same := func(how string, o *opened) {
		t.Helper()
		for name, want := range map[string][]expiry.HistoryEntry{"a": a, "b": b} {
			got, entries := o.historyOf(name)
			if !reflect.DeepEqual(entries, want) || got != want[len(want)-1].Etag {
				t.Errorf("after %s the history of %s is %x %+v, not %+v", how, name, got, entries, want)
			}
		}
	}
	elsewhere := func(how, dir string) {
		t.Helper()
		clk := clock.NewManual(o.clock.Now())
		ks, err := Open(Options{FS: o.opt.FS, Dir: dir, Clock: clk, NoPurge: true})
		drill.Check(t, err)
		there := &opened{Keyspace: ks, t: t, clock: clk}
		same(how, there)
		there.stop()
	}
	drill.Check(t, o.journal.CommitAll())
	killed, backup, repaired := newDir(o.opt.FS), newDir(o.opt.FS)+"/backup", newDir(o.opt.FS)+"/repaired"
	o.storage.Lock() // no checkpoint removes a journal meanwhile
	copyFolder(t, o.opt.FS, o.opt.Dir, killed)
	o.storage.Unlock()
	drill.Check(t, o.Backup(backup))
	if _, err := repair.Run(o.opt.FS, backup, repaired, 0, func(string, *repair.Report) error { return nil }); err != nil {
		t.Fatal(err)
	}
	elsewhere("a kill", killed)
	elsewhere("a backup", backup)
	elsewhere("a repair", repaired)
	o.reopen()
	same("a stop", o)
	o.policy("a", 31)
	if next, _ := o.historyOf("a"); next <= etag {
		t.Errorf("the etag %x is older than %x", next, etag)
	}
}

// TestHistoryIsBounded makes more changes than a history keeps, and checks its memory and that equal values
// change nothing.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 1)
	before := o.Used()
	for ttl := expiry.TTL(2); ttl <= 100; ttl++ {
		o.clock.Advance(time.Second)
		o.policy("c", ttl)
		etag, entries := o.historyOf("c")
		o.policy("c", ttl)
		if again, more := o.historyOf("c"); again != etag || len(more) != len(entries) {
			t.Fatal("an equal default is a change")
		}
		if newest := entries[len(entries)-1]; newest.Policy.Default != ttl || newest.At != o.clock.Now() {
			t.Fatalf("the newest entry is %+v", newest)
		}
	}
	_, entries := o.historyOf("c")
	if len(entries) != expiry.MostHistory || entries[0].Policy.Default != 100-expiry.MostHistory+1 {
		t.Errorf("%d entries, the oldest is %+v", len(entries), entries[0])
	}
	if grown := o.Used() - before; grown < 31*80 || grown > 31*500 {
		t.Errorf("31 entries take %d bytes", grown)
	}
	if n := len(o.containerRecord("c").Append(nil)); n > 8<<10 {
		t.Errorf("the record has %d bytes", n)
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	if o.Used() >= before {
		t.Errorf("%d bytes are used without the container, %d were with it", o.Used(), before)
	}
}

func (o *opened) containerRecord(name string) (r record.Container) {
	o.catalogueTx(func(tx *Tx) { r = tx.Container(name).record() })
	return r
}

// TestRecordWithoutHistory loads records as versions before the history wrote them.
func TestRecordWithoutHistory(t *testing.T) {
	t.Parallel()
	o := open(t)
	for number, body := range map[uint32]string{
		900: `{"name":"fresh","ttl":"60","ttlmode":"lenient","inherit_dead_to":0,"own_dead_to":0,"created":1699999999000,"db":900}`,
		901: fmt.Sprintf(`{"name":"changed","ttl":"60","ttlmode":"strict","inherit_dead_to":5,"own_dead_to":%d,"created":1600000000000,"db":901}`, epoch-7),
	} {
		rec := record.Append(nil, record.ContainerKey(number), Item{Kind: record.ContainerKind, Body: body, TS: 1})
		o.catalogueTx(func(tx *Tx) { tx.group.Set(record.ContainerKey(number), string(rec), "") })
	}
	drill.Check(t, o.journal.CommitAll())
	killed := newDir(o.opt.FS) // as an older version, killed, has left it
	o.storage.Lock()           // no checkpoint removes a journal meanwhile
	copyFolder(t, o.opt.FS, o.opt.Dir, killed)
	o.storage.Unlock()
	o = open(t, func(opt *Options) { opt.FS, opt.Dir = o.opt.FS, killed })
	etag, entries := o.historyOf("fresh")
	want := []expiry.HistoryEntry{{At: 1699999999000, What: expiry.Created, Policy: expiry.Policy{Default: 60, Mode: expiry.Lenient}, Kills: -1}}
	if etag != 0 || !reflect.DeepEqual(entries, want) {
		t.Errorf("the history is %x %+v", etag, entries)
	}
	_, entries = o.historyOf("changed")
	if len(entries) != 1 || entries[0].At != epoch-7 || entries[0].What != expiry.Set {
		t.Errorf("the history is %+v", entries)
	}
	o.policy("fresh", 30)
	o.reopen()
	if etag, entries = o.historyOf("fresh"); etag == 0 || len(entries) != 2 || entries[0].Policy.Default != 60 {
		t.Errorf("after a change the history is %x %+v", etag, entries)
	}
}

// TestRestoredHistory restores containers from another folder.
func TestRestoredHistory(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("there", 10)
	state := record.Container{Policy: expiry.Policy{Default: 60, InheritDeadTo: 5}, Created: 1}
	for _, name := range []string{"there", "missing"} {
		o.by("", func(tx *Tx) {
			state.Name = name
			if _, err := tx.RestoreContainer(state); err != nil {
				t.Fatal(err)
			}
		})
	}
	for name, n := range map[string]int{"there": 2, "missing": 1} {
		etag, entries := o.historyOf(name)
		if len(entries) != n || entries[n-1].What != expiry.Restored || entries[n-1].Policy != state.Policy || entries[n-1].Etag != etag || etag == 0 {
			t.Errorf("the history of %s is %x %+v", name, etag, entries)
		}
	}
}

// TestRestoredPolicyRevivesNothing: the files have items that died before their container was restored to an
// earlier state of its policy. A kill brings none back.
func TestRestoredPolicyRevivesNothing(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 1)
	o.put("c", "a", "{}", expiry.Inherit)
	o.elapse(5000)
	if n := o.count("c"); n != 0 {
		t.Fatalf("%d items live", n)
	}
	o.all(func(tx *Tx) {
		if _, err := tx.RestoreContainer(ContainerRecord{Name: "c", Created: 1, Policy: expiry.Policy{Default: expiry.Forever}}); err != nil {
			t.Fatal(err)
		}
	})
	o.kill()
	if o.lives("c", "a") {
		t.Error("a dead item lives again")
	}
}

// TestClearHistory: the rule that is in force stays, with its etag and since when, and the deaths so far are
// logged as they were. Nothing names clients and reasons, in files too. It waits for windows, and a hold
// vetoes it.
func TestClearHistory(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	o.SetEraseWithin(eraseWithin)
	o.undoWindow(10)
	o.by("canary-1-", func(tx *Tx) { tx.CreateContainer("a", 60, expiry.Strict) })
	o.setLog("a", anHour)
	o.by("canary-2-", func(tx *Tx) { tx.SetPolicy(tx.Container("a"), 5, expiry.Strict) })
	since := o.Now()
	o.put("a", "dies", "{}", expiry.Inherit)
	o.put("a", "stays", "{}", o.Now()+1<<40)
	ruled, _ := o.historyOf("a")
	clear := func() (until int64, veto error) {
		t.Helper()
		var tx Tx
		o.BeginAll(&tx)
		until, veto = tx.ClearHistory(tx.Container("a")), tx.Veto()
		tx.Close()
		return until, veto
	}
	if until, err := clear(); until != since+10_000 || err != nil {
		t.Errorf("with a window until %d: %d, %v", since+10_000, until, err)
	}
	o.elapse(10_000)
	o.by("canary-3-", func(tx *Tx) { tx.SetHold(tx.Container("a"), "canary-4-") })
	if until, err := clear(); until != 0 || err == nil {
		t.Errorf("on hold: %d, %v", until, err)
	}
	o.by("canary-5-", func(tx *Tx) { tx.Release(tx.Container("a"), 5, expiry.Strict, -1) })
	etag, before := o.historyOf("a")
	drill.Check(t, o.Save())
	var tx Tx
	o.BeginAll(&tx)
	tx.ClearHistory(tx.Container("a"))
	tx.Rollback()
	if is, entries := o.historyOf("a"); is != etag || !reflect.DeepEqual(entries, before) || len(o.logged("a")) != 0 {
		t.Errorf("after a rollback: %+v", entries)
	}
	lsn := o.journal.Last()
	for n := range 2 {
		if until, err := clear(); until != 0 || err != nil {
			t.Errorf("%d, %v", until, err)
		}
		last := before[len(before)-1]
		want := []expiry.HistoryEntry{{At: since, What: expiry.Set, Policy: last.Policy, Etag: etag, Kills: -1}}
		if is, entries := o.historyOf("a"); is != etag || !reflect.DeepEqual(entries, want) {
			t.Errorf("etag %d, %+v, want %d, %+v", is, entries, etag, want)
		}
		if list := o.logged("a"); len(list) != 1 || list[0].Item != "dies" || list[0].At != since+5000 || list[0].Policy != ruled {
			t.Errorf("%+v", list)
		}
		if at := o.journal.Last(); n > 0 && at != lsn {
			t.Error("clearing again writes")
		} else {
			lsn = at
		}
	}
	if !o.lives("a", "stays") {
		t.Error("a living item is gone")
	}
	var c storage.Cadence
	o.pass(&c, eraseWithin)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left)+len(copied) != 0 {
		t.Errorf("the files hold %v, a backup %v", left, copied)
	}
	o.reopen()
	if is, entries := o.historyOf("a"); is != etag || len(entries) != 1 || entries[0].By != "" {
		t.Errorf("after opening again: %+v", entries)
	}
}
