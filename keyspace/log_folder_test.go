package keyspace

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/storage"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// A backup has the log, and the dead whose death is not logged yet: the server that starts on it logs them.
func TestBackupOfALog(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	o.createLogged("orders", 10)
	o.policy("carts", 10)
	o.put("orders", "logged", "{}", expiry.Inherit)
	o.clock.Advance(10 * time.Second)
	o.PurgeOnce()
	dead := o.put("orders", "dead", `{"text":"canary-1-"}`, expiry.Inherit)
	o.put("carts", "dead", `{"text":"canary-2-"}`, expiry.Inherit)
	o.clock.Advance(10 * time.Second)
	dir := o.backUp()
	if left := canaries(t, o.opt.FS, dir); left["canary-1-"] == nil || left["canary-2-"] != nil {
		t.Errorf("a backup has %v", left)
	}
	there := open(t, func(opt *Options) { opt.FS, opt.Dir, opt.Clock = o.opt.FS, dir, o.opt.Clock })
	if got := there.logged("orders"); !slices.Equal(idsOf(got), []string{"logged"}) || !reflect.DeepEqual(got, o.logged("orders")) {
		t.Errorf("the log of the backup has %+v", got)
	}
	there.PurgeOnce()
	got := there.logged("orders")
	if !slices.Equal(idsOf(got), []string{"logged", "dead"}) || got[1].Etag != dead.Version || got[1].At != dead.TS+10_000 || got[1].Body != dead.Body {
		t.Errorf("then it has %+v", got)
	}
	if s := there.state("orders"); s.Added != 2 || s.Length != 2 {
		t.Errorf("the state is %+v", s)
	}
}

// The log is in the files as long as it keeps an entry. Then the body leaves the folder within erase-within,
// as one does that is deleted from the log, or whose log is switched off.
func TestErasureOfEntries(t *testing.T) {
	t.Parallel()
	o := open(t, byHand)
	o.SetEraseWithin(eraseWithin)
	for n, name := range []string{"aged", "deleted", "trimmed", "off", "without bodies"} {
		o.createLogged(name, 10)
		o.setLog(name, LogSettings{Seconds: 1800, MaxLen: 10, Bodies: name != "without bodies"})
		o.put(name, "id", fmt.Sprintf(`{"text":"canary-%d-"}`, n), expiry.Inherit)
	}
	var c storage.Cadence
	o.pass(&c, 15*time.Minute)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left) != 4 || len(copied) != 4 {
		t.Errorf("the files hold %v, a backup %v", left, copied)
	}
	o.all(func(tx *Tx) {
		newest, _ := tx.Deaths(tx.Container("deleted")).Newest("id")
		if n := tx.Deaths(tx.Container("deleted")).Delete([]streamid.ID{newest.ID}); n != 1 {
			t.Errorf("%d entries are deleted", n)
		}
		tx.Deaths(tx.Container("trimmed")).Trim(0, streamid.ID{}, 0)
	})
	o.setLog("off", LogSettings{})
	o.pass(&c, eraseWithin)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left) != 1 || len(copied) != 1 || left["canary-0-"] == nil {
		t.Errorf("then the files hold %v, a backup %v", left, copied)
	}
	o.pass(&c, 5*time.Minute+10*time.Second+eraseWithin)
	if left, copied := canaries(t, o.opt.FS, o.opt.Dir), canaries(t, o.opt.FS, o.backUp()); len(left)+len(copied) != 0 {
		t.Errorf("at last the files hold %v, a backup %v", left, copied)
	}
}

// A log survives checkpoints, compactions and restarts in any order: its entries with their order, its state,
// and its ids.
func TestLogsInFiles(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	r := rand.New(rand.NewPCG(seed, 0))
	o := open(t, byHand, func(opt *Options) { opt.Partitions = 5 })
	o.createLogged("orders", 10)
	var want []deathlog.Entry
	var state deathlog.State
	for n := range 100 {
		switch r.IntN(12) {
		case 0:
			drill.Check(t, o.Save())
		case 1:
			drill.Check(t, o.Save(), o.storage.CompactAll())
		case 2:
			o.reopen()
		case 3:
			o.all(func(tx *Tx) {
				tx.Deaths(tx.Container("orders")).Trim(int64(r.IntN(60)), streamid.ID{}, int64(r.IntN(30)))
			})
		case 4:
			o.all(func(tx *Tx) {
				if list := want; len(list) > 0 {
					tx.Deaths(tx.Container("orders")).Delete([]streamid.ID{list[r.IntN(len(list))].ID})
				}
			})
		default:
			for i := range r.IntN(20) {
				o.put("orders", fmt.Sprint("id-", n%7, i), fmt.Sprintf(`{"n":%d}`, n), o.clock.Now()+1+r.Int64N(3000))
			}
			o.clock.Advance(time.Duration(r.IntN(2000)) * time.Millisecond)
			o.PurgeOnce()
		}
		want, state = o.logged("orders"), o.state("orders")
		o.reopen()
		got := o.logged("orders")
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("step %d: after opening again the log has %d entries, had %d:\n%+v\n%+v", n, len(got), len(want), got, want)
		}
		if is := o.state("orders"); is != state {
			t.Fatalf("step %d: after opening again the state is %+v, was %+v", n, is, state)
		}
	}
	if state.Added < 100 || state.MaxDeleted.IsZero() {
		t.Errorf("the state is %+v", state)
	}
}

// The record of a log names the container to which it belongs, also after changes of its number, on disk too.
func TestRecordsOfLogsNameTheirContainers(t *testing.T) {
	t.Parallel()
	o := open(t)
	for _, name := range []string{"a", "b"} {
		o.createLogged(name, 10)
		o.put(name, "id", "{}", expiry.Never)
	}
	check := func(what string) {
		t.Helper()
		for range 2 {
			o.all(func(tx *Tx) {
				for _, name := range []string{"a", "b"} {
					c := tx.Container(name)
					if h := c.deaths.c; h.record().Hidden.LogOf != c.number || c.log.Number != h.number {
						t.Errorf("%s: the log of %s, number %d, names %+v", what, name, c.number, h.record().Hidden)
					}
				}
			})
			o.reopen()
		}
	}
	check("at the beginning")
	drill.Check(t, o.SetUndoWindow(3600))
	o.flush("a")
	check("after a flush")
	o.catalogueTx(func(tx *Tx) {
		if done, err := tx.Undo("a", ""); done == nil || err != nil {
			t.Errorf("Undo: %v, %v", done, err)
		}
	})
	check("after an undo")
	var tx Tx
	o.BeginAll(&tx)
	tx.Swap(tx.Container("a"), tx.Container("b"))
	tx.Rollback()
	tx.Close()
	check("after a rollback")
	o.swap("a", "b")
	check("after a swap")
}
