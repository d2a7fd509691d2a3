package keyspace

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/datadir"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
	"mayfly/vfs"
	"mayfly/vfs/vfstest"
)

// TestEvictionOfEntries: only volatile-ttl evicts entries of a log, from the oldest. The dead that wait for
// their burial are never drawn.
func TestEvictionOfEntries(t *testing.T) {
	t.Parallel()
	for policy := eviction.None; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			o := open(t)
			o.createLogged("jobs", 10)
			o.evictBy(policy)
			for i := range 1000 {
				o.put("jobs", fmt.Sprint("id", i), `{}`, expiry.Inherit)
			}
			o.elapse(10_000)
			if evicted, ok := o.evictAll(0); ok || len(evicted) != 0 {
				t.Errorf("%d of the dead were evicted", len(evicted))
			}
			o.purge.Drain(func() bool { return false })
			if n := len(o.logged("jobs")); n != 1000 {
				t.Fatalf("%d entries", n)
			}
			used := o.Used()
			evicted, ok := o.evictAll(used - 50*1000)
			s := o.state("jobs")
			if len(evicted) != 0 || s.Added != 1000 {
				t.Errorf("%d entries are reported as evicted; %+v", len(evicted), s)
			}
			if ok != (policy == eviction.VolatileTTL) || ok == (s.Length == 1000) {
				t.Errorf("%v; %d entries are left", ok, s.Length)
			}
			o.reopen()
			if again := o.state("jobs"); again != s {
				t.Errorf("%+v after opening again, it was %+v", again, s)
			}
		})
	}
}

// TestNothingIsBuriedWhileTheDiskFails: the dead stay invisible, and are logged when writing works again.
func TestNothingIsBuriedWhileTheDiskFails(t *testing.T) {
	t.Parallel()
	disk := vfstest.New()
	died := 0
	o := open(t, func(opt *Options) { opt.FS, opt.OnDeath = disk, func(*Container, string, LSN) { died++ } })
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.put("jobs", "b", `{}`, expiry.Inherit)
	disk.FailWrites.Store(true)
	o.elapse(10_000)
	var tx Tx
	o.BeginKey(&tx, "x")
	tx.Put(tx.Container("0"), "x", Plain, "", expiry.Never)
	if err := o.Wait(tx.Close()); err == nil {
		t.Fatal("the disk does not fail")
	}
	o.PurgeOnce()
	o.BeginAll(&tx)
	c := tx.Container("jobs")
	if s, _ := tx.Deaths(c).State(); tx.Delete(c, "b") || tx.Count(c) != 0 || s.Length != 0 || died != 0 {
		t.Errorf("%+v, %d events; %d live", s, died, tx.Count(c))
	}
	tx.Close()
	disk.FailWrites.Store(false)
	o.awaitWritable()
	o.PurgeOnce()
	if n := len(o.logged("jobs")); n != 2 || died != 2 {
		t.Errorf("%d entries, %d events", n, died)
	}
}

// TestDeathsWhilePausedOffOrHeld: nothing is buried while clients are paused, TTL is off or the container is
// on hold; entries age when it is off.
func TestDeathsWhilePausedOffOrHeld(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.KeepDeadUntil(epoch + 60_000)
	o.elapse(20_000)
	o.PurgeOnce()
	if n := len(o.logged("jobs")); n != 0 {
		t.Errorf("%d entries while clients are paused", n)
	}
	o.elapse(40_000)
	o.PurgeOnce()
	if list := o.logged("jobs"); len(list) != 1 || list[0].At != epoch+10_000 {
		t.Errorf("%+v after the pause", list)
	}
	o.put("jobs", "b", `{}`, expiry.Inherit)
	o.policy("jobs", expiry.Off)
	o.elapse(3600_000)
	o.PurgeOnce()
	if list := o.logged("jobs"); len(list) != 0 || o.state("jobs").Added != 1 {
		t.Errorf("%+v while TTL is off", list)
	}
	o.all(func(tx *Tx) { tx.SetHold(tx.Container("jobs"), "case 1") })
	o.policy("jobs", 10)
	o.PurgeOnce()
	var tx Tx
	o.BeginAll(&tx)
	if err := tx.SetLog(tx.Container("jobs"), LogSettings{}); err != nil || tx.Veto() == nil {
		t.Errorf("a hold does not refuse settings of the log: %v", err)
	}
	tx.Rollback()
	if n := len(o.logged("jobs")); n != 0 {
		t.Errorf("%d entries while on hold", n)
	}
	o.all(func(tx *Tx) { tx.Release(tx.Container("jobs"), 10, expiry.Strict, -1) })
	o.PurgeOnce()
	if list := o.logged("jobs"); len(list) != 1 || list[0].Cause != expiry.ByChange || list[0].At != o.Now() {
		t.Errorf("%+v after the hold", list)
	}
}

// TestOnLogged: OnLogged is called for new entries, and for logs that come and go, once each group.
func TestOnLogged(t *testing.T) {
	t.Parallel()
	told := map[string]int{}
	o := open(t, func(opt *Options) { opt.Partitions, opt.OnLogged = 1, func(name string) { told[name]++ } })
	o.all(func(tx *Tx) { tx.CreateContainer("jobs", 10, expiry.Strict) })
	expect := func(n int, after string) {
		t.Helper()
		if told["jobs"] != n || len(told) > 1 {
			t.Errorf("%v after %s", told, after)
		}
	}
	o.setLog("jobs", anHour)
	expect(1, "the log came")
	o.setLog("jobs", anHour)
	expect(1, "equal settings")
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.put("jobs", "b", `{}`, expiry.Inherit)
	o.put("jobs", "c", `{}`, expiry.Inherit)
	expect(1, "puts")
	o.elapse(10_000)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	expect(2, "a put that buries")
	o.PurgeOnce()
	expect(3, "the purge")
	var tx Tx
	o.BeginAll(&tx)
	tx.Drop(tx.Container("jobs"))
	tx.Rollback()
	expect(3, "a rollback")
	o.setLog("jobs", LogSettings{})
	expect(4, "the log went")
	o.setLog("jobs", anHour)
	o.all(func(tx *Tx) { tx.Drop(tx.Container("jobs")) })
	expect(6, "the container went")
}

// TestBurialsAreCommitted: what the purge buries is in the journal about a second later, though no client
// waits for it.
func TestBurialsAreCommitted(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.PurgeOnce()
	last := o.journal.Last()
	if o.Committed(last) {
		t.Fatal("the purge waits for the disk")
	}
	o.tick()
	if !o.Committed(last) {
		t.Error("the burial is not committed")
	}
}

// TestLogSettings: a change gives the container an etag, its creation with a log one; the settings outlast a
// restart.
func TestLogSettings(t *testing.T) {
	t.Parallel()
	o := open(t)
	s := LogSettings{Seconds: 60, MaxLen: 5, Bodies: false}
	o.all(func(tx *Tx) {
		c := tx.CreateContainer("jobs", 10, expiry.Strict)
		if err := tx.SetLog(c, s); err != nil || len(c.history.Load().Entries) != 1 {
			t.Errorf("%v, %+v", err, c.history.Load())
		}
	})
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.PurgeOnce()
	if list := o.logged("jobs"); len(list) != 1 || list[0].HasBody || list[0].Body != "" {
		t.Errorf("%+v without bodies", list)
	}
	etag := uint64(0)
	for _, change := range []LogSettings{s, {60, 5, true, false}, {60, 6, true, false}, {60, 6, true, true}, {30, 6, true, true}, {}, {}, {Seconds: 1, MaxLen: 1}} {
		o.all(func(tx *Tx) {
			c := tx.Container("jobs")
			was, _ := c.Log()
			etag = c.Etag()
			drill.Check(t, tx.SetLog(c, change))
			if is, on := c.Log(); is != change || on != (change.Seconds > 0) || (c.Etag() == etag) != (was == change) {
				t.Errorf("%+v became %+v", change, is)
			}
		})
		o.reopen()
		o.all(func(tx *Tx) {
			if is, _ := tx.Container("jobs").Log(); is != change {
				t.Errorf("%+v is %+v after opening again", change, is)
			}
		})
	}
}

// TestExpiredEntriesStayExpired: a shorter time hides entries at once, and a longer one does not bring them
// back.
func TestExpiredEntriesStayExpired(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.PurgeOnce()
	o.elapse(100_000)
	for _, seconds := range []int64{60, 3600} {
		o.setLog("jobs", LogSettings{Seconds: seconds, MaxLen: 10, Bodies: true})
		o.reopen()
		o.all(func(tx *Tx) {
			c := tx.Container("jobs")
			if _, ok := tx.Deaths(c).Newest("a"); ok {
				t.Errorf("an entry that has expired is found, the log keeps %d s", seconds)
			}
			if s, _ := tx.Deaths(c).State(); s.Length != 0 || s.Added != 1 {
				t.Errorf("%+v", s)
			}
			if n := tx.Deaths(c).Delete([]streamid.ID{{Ms: uint64(epoch + 10_000)}}); n != 0 {
				t.Errorf("%d deleted", n)
			}
		})
	}
}

// TestLogWithoutItsRecord: a container whose log has lost its record, as after a repair, goes on with an
// empty one.
func TestLogWithoutItsRecord(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.all(func(tx *Tx) {
		cat, number := tx.writeCatalogue(), tx.Container("jobs").log.Number
		tx.group.Del(record.ContainerKey(number))
		cat.Gone(number)
	})
	for range 2 {
		o.reopen()
		o.put("jobs", "a", `{}`, expiry.Inherit)
		o.elapse(10_000)
		o.PurgeOnce()
	}
	if s := o.state("jobs"); s.Length != 2 || s.Added != 2 {
		t.Errorf("%+v", s)
	}
	o.all(func(tx *Tx) {
		if s, on := tx.Container("jobs").Log(); !on || s != (LogSettings{Seconds: int64(expiry.MaxTTL), MaxLen: anHour.MaxLen, Bodies: true}) {
			t.Errorf("%+v", s)
		}
	})
}

// TestLogsAreNotListed: no list, count or figure of containers and items has a log.
func TestLogsAreNotListed(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	for i := range 100 {
		o.put("jobs", fmt.Sprint(i), `{}`, expiry.Inherit)
	}
	o.elapse(10_000)
	o.PurgeOnce()
	o.put("jobs", "alive", `{}`, expiry.Inherit)
	var tx Tx
	o.BeginAll(&tx)
	if n := len(tx.Containers()); n != Databases+1 {
		t.Errorf("%d containers", n)
	}
	all, _ := tx.AllStats()
	for _, s := range all {
		if s.Container.Name() != "jobs" || s.Documents != 1 {
			t.Errorf("%+v", s)
		}
	}
	items := 0
	for t := range tx.Container("jobs").each {
		items += t.Len()
	}
	if items != 1 {
		t.Errorf("%d items", items)
	}
	tx.FlushAll()
	tx.Close()
	if n := len(o.logged("jobs")); n != 100 {
		t.Errorf("FLUSHALL leaves %d entries", n)
	}
	o.setLog("jobs", LogSettings{Seconds: 3600, MaxLen: 10, Bodies: true})
	o.PurgeOnce()
	if s := o.Stats().Expiry; s.RemovedActively != 100 || o.state("jobs").Length != 10 {
		t.Errorf("%d items have expired, %d entries are left", s.RemovedActively, o.state("jobs").Length)
	}
	o.reopen()
	if n := o.Stats().LoadedItems; n != 0 {
		t.Errorf("%d items were loaded", n)
	}
}

// TestLargeBodiesAreLogged: a body with memory of its own comes whole, after a restart and a checkpoint too.
func TestLargeBodiesAreLogged(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	var bodies []string
	for i, size := range []int{4000, 4096, 5000, 40_000, 1 << 20} {
		bodies = append(bodies, `{"text":"`+strings.Repeat("x", size)+`"}`)
		o.put("jobs", fmt.Sprint(i), bodies[i], expiry.Inherit)
	}
	o.elapse(10_000)
	o.PurgeOnce()
	for range 2 {
		list := o.logged("jobs")
		slices.SortFunc(list, func(a, b deathlog.Entry) int { return strings.Compare(a.Item, b.Item) })
		if len(list) != len(bodies) {
			t.Fatalf("%d entries", len(list))
		}
		for i, e := range list {
			if e.Body != bodies[i] {
				t.Errorf("the body of %s has %d bytes, not %d", e.Item, len(e.Body), len(bodies[i]))
			}
		}
		drill.Check(t, o.Save())
		o.reopen()
	}
}

// TestADeadlineMayBeSetWhileTheDeadLie: a container whose items are dead is empty for everybody.
func TestADeadlineMayBeSetWhileTheDeadLie(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 10)
	o.put("jobs", "a", `{}`, expiry.Inherit)
	o.elapse(10_000)
	o.all(func(tx *Tx) {
		if !tx.DeadlineFree(tx.Container("jobs"), "until") {
			t.Error("a container without living items is not empty")
		}
	})
	drill.Check(t, o.SetUndoWindow(60))
	o.put("jobs", "b", `{}`, expiry.Inherit)
	o.elapse(2_000)
	o.policy("jobs", 1)
	o.all(func(tx *Tx) {
		if tx.DeadlineFree(tx.Container("jobs"), "until") {
			t.Error("an item that may come back does not count")
		}
	})
}

// TestDeletesAreLogged: what a client deletes leaves an entry, which is no death that is published. What goes
// elsewhere, is replaced, flushed, dropped or evicted leaves none.
func TestDeletesAreLogged(t *testing.T) {
	t.Parallel()
	died := 0
	o := open(t, func(opt *Options) { opt.OnDeath = func(*Container, string, LSN) { died++ } })
	o.createLogged("jobs", 10)
	format := func() int {
		t.Helper()
		text, err := vfs.ReadFile(o.opt.FS, filepath.Join(o.opt.Dir, datadir.FormatName))
		_, version, bad := datadir.ReadFormat(string(text))
		drill.Check(t, err, bad)
		return version
	}
	o.put("jobs", "before", `{}`, expiry.Inherit)
	o.delete("jobs", "before")
	if n, f := len(o.logged("jobs")), format(); n != 0 || f != 4 {
		t.Errorf("without the option there are %d entries, the folder has format %d", n, f)
	}
	s := anHour
	s.Deletes = true
	o.setLog("jobs", s)
	if f := format(); f != 6 {
		t.Errorf("the folder has format %d", f)
	}
	o.elapse(1000)
	etag, _ := o.historyOf("jobs")
	it := o.put("jobs", "a", `{"n":1}`, epoch+9000)
	o.put("jobs", "moved", `{}`, expiry.Inherit)
	o.put("jobs", "evicted", `{}`, expiry.Inherit)
	o.elapse(1000)
	var tx Tx
	o.BeginAll(&tx)
	tx.Delete(tx.Container("jobs"), "a")
	tx.Rollback()
	if n := len(o.logged("jobs")); n != 0 || !o.lives("jobs", "a") {
		t.Errorf("after a rollback there are %d entries", n)
	}
	if !o.delete("jobs", "a") || o.delete("jobs", "a") || o.delete("jobs", "never") {
		t.Error("a is not deleted once")
	}
	o.all(func(tx *Tx) { tx.Remove(tx.Container("jobs"), "moved") })
	o.put("jobs", "evicted", `{"n":2}`, expiry.Inherit)
	o.evictBy(eviction.AllKeysRandom)
	o.evictAll(0)
	o.put("jobs", "flushed", `{}`, expiry.Inherit)
	o.flush("jobs")
	for range 2 {
		want := deathlog.Entry{Item: "a", Cause: deathlog.Deleted, At: epoch + 2000, TS: epoch + 1000, Etag: it.Version, Own: epoch + 9000, Policy: etag, Kind: Document, Body: `{"n":1}`, HasBody: true}
		list := o.logged("jobs")
		if len(list) == 1 {
			want.ID = list[0].ID
		}
		if len(list) != 1 || list[0] != want || died != 0 {
			t.Errorf("%+v, want %+v; %d events", list, want, died)
		}
		o.reopen()
	}
	s.Bodies = false
	o.setLog("jobs", s)
	o.put("jobs", "b", `{}`, expiry.Inherit)
	o.delete("jobs", "b")
	if list := o.logged("jobs"); len(list) != 2 || list[1].HasBody || list[1].Cause != deathlog.Deleted {
		t.Errorf("without bodies: %+v", list)
	}
	o.all(func(tx *Tx) { tx.SetHold(tx.Container("jobs"), "case 1") })
	o.put("jobs", "c", `{}`, expiry.Inherit)
	o.BeginKey(&tx, "c")
	if tx.Delete(tx.Container("jobs"), "c") || tx.Veto() == nil {
		t.Error("a delete on hold")
	}
	tx.Rollback()
	if n := len(o.logged("jobs")); n != 2 {
		t.Errorf("%d entries on hold", n)
	}
}

// TestDeletesOnAFullDisk: a delete whose entry has the body frees no room, so a full disk vetoes it. The
// others go on.
func TestDeletesOnAFullDisk(t *testing.T) {
	t.Parallel()
	o, disk := openOnSmallDisk(t, Options{Partitions: 2, Reserve: 256 << 10, noCheckpoints: true})
	s := LogSettings{Seconds: 60, MaxLen: 10, Bodies: true, Deletes: true}
	o.setLog("c", s)
	o.fill("k", 3)
	o.storage.Lock() // against checkpoints of the background
	disk.Take(0)
	made := o.storage.Disk.MakeRoom(o.storage.Disk.Releases())
	o.storage.Unlock()
	if !made || o.Writable() == nil {
		t.Fatal("the disk is not full")
	}
	deletes := func(id string) bool {
		t.Helper()
		var tx Tx
		o.BeginKey(&tx, id)
		gone := tx.Delete(tx.Container("c"), id)
		if err := tx.Veto(); gone == (err != nil) {
			t.Errorf("%s is deleted: %v, the veto is %v", id, gone, err)
		}
		if !gone {
			tx.Rollback()
			return false
		}
		o.commit(&tx)
		return true
	}
	if deletes("k0") {
		t.Error("k0 is deleted, and logged with its body")
	}
	s.Bodies = false
	o.setLog("c", s)
	if !deletes("k1") || len(o.logged("c")) != 1 {
		t.Error("k1 is not deleted, and logged without its body")
	}
	s.Bodies, s.Deletes = true, false
	o.setLog("c", s)
	if !deletes("k2") || len(o.logged("c")) != 1 {
		t.Error("k2 is not deleted without an entry")
	}
}

// RENAME may take a collection's dead elements along, and puts it in place of another with dead elements of
// its own: each death is logged once. What goes along within a partition is logged under the new key.
func TestRenameLogsDeadElementsOnce(t *testing.T) {
	t.Parallel()
	for _, samePartition := range []bool{true, false} {
		for _, copied := range []bool{false, true} {
			o := open(t)
			const source = "source"
			to := "to"
			for n := 0; (o.partitionOf(to) == o.partitionOf(source)) != samePartition; n++ {
				to = fmt.Sprint("to-", n)
			}
			drill.Check(t, o.AllowCollections())
			o.createLogged("jobs", expiry.Forever)
			o.all(func(tx *Tx) {
				for _, id := range []string{source, to} {
					x, _ := tx.EditElements(tx.Container("jobs"), id, HashKind)
					x.Set(Element{Field: "lives", Value: "1"})
					x.Set(Element{Field: "of " + id, Value: "2", End: epoch + 1000})
					x.Close()
				}
			})
			o.elapse(2000)
			o.all(func(tx *Tx) {
				c := tx.Container("jobs")
				tx.Move(c, source, c, to, expiry.Inherit, copied)
				if !copied {
					tx.Remove(c, source)
				}
			})
			o.PurgeOnce()
			var got []string
			for _, e := range o.logged("jobs") {
				got = append(got, e.Item+" "+e.Field)
			}
			slices.Sort(got)
			want := []string{source + " of " + source, to + " of " + to}
			if samePartition && !copied {
				want[0] = to + " of " + source
			}
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Errorf("in the same partition %v, copied %v: %q, want %q", samePartition, copied, got, want)
			}
		}
	}
}
