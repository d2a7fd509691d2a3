package keyspace

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/selection"
	"mayfly/test/drill"
)

// TestKeepDeadUntil compares figures and look-ups while the dead stay with those after they are removed.
func TestKeepDeadUntil(t *testing.T) {
	t.Parallel()
	deaths := 0
	o := open(t, func(opt *Options) { opt.OnDeath = func(*Container, string, LSN) { deaths++ } })
	o.policy("c", 50)
	const n = 300
	for i := range n {
		o.put("c", fmt.Sprint("default-", i), "{}", expiry.Inherit)
		o.putFor("c", fmt.Sprint("own-", i), 20)
		o.put("c", fmt.Sprint("never-", i), "{}", expiry.Never)
	}
	o.KeepDeadUntil(epoch + 100_000)
	stats := func() (all, one ContainerStats) {
		var tx Tx
		o.BeginSweep(&tx)
		defer tx.Close()
		c := tx.Container("c")
		for range 50 {
			if id, _, ok := tx.Random(c); !ok || id[:3] != "nev" {
				t.Fatalf("the random item is %q, %v", id, ok)
			}
		}
		selected := 0
		tx.Reader(c).Scan(func(s selection.Slice) bool {
			selected += len(s.Items)
			return true
		})
		if selected != n {
			t.Fatalf("%d items selected, want %d", selected, n)
		}
		stats, _ := tx.AllStats()
		all, one = *stats[0], tx.Stats(c)
		all.InMemory, one.InMemory, all.Memory, one.Memory = 0, 0, 0, 0
		return all, one
	}
	o.clock.Advance(60 * time.Second)
	o.PurgeOnce()
	all, one := stats()
	if o.lives("c", "own-1") || o.delete("c", "own-2") || o.count("c") != n || deaths != 0 {
		t.Fatalf("%d items, %d deaths", o.count("c"), deaths)
	}
	o.put("c", "own-3", "[]", expiry.Never)
	if !o.lives("c", "own-3") || deaths != 1 || o.count("c") != n+1 {
		t.Fatalf("after a write over a dead item: %d items, %d deaths", o.count("c"), deaths)
	}
	o.delete("c", "own-3")
	drill.Check(t, o.Check())
	o.KeepDeadUntil(0)
	if o.count("c") != n || deaths != 2*n {
		t.Fatalf("afterwards: %d items, %d deaths", o.count("c"), deaths)
	}
	if laterAll, laterOne := stats(); laterAll != all || laterOne != one {
		t.Errorf("figures\n%+v\n%+v, after the removal\n%+v\n%+v", all, one, laterAll, laterOne)
	}
}

// If almost all are dead, chance does not find the one that lives.
func TestRandomAmongTheDeadThatStay(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	o.policy("c", 10)
	o.put("c", "lives", "{}", expiry.Never)
	for i := range 5000 {
		o.put("c", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	o.KeepDeadUntil(epoch + 100_000)
	o.clock.Advance(20 * time.Second)
	var tx Tx
	o.BeginSweep(&tx)
	defer tx.Close()
	if id, _, ok := tx.Random(tx.Container("c")); !ok || id != "lives" {
		t.Errorf("%q, %v", id, ok)
	}
}

// retain has the dead of a container stay for some seconds longer, as if the former policy could rule again.
func (o *opened) retain(container string, seconds int64, former expiry.Policy) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) {
		tx.Container(container).retention = expiry.Retention{{Policy: former, Until: tx.Now() + 1000*seconds}}
	})
}

// TestKeptDeadCostThePurgeNothing has 5000 dead that stay. No sample looks at them, and the figures of the
// purge leave them out; then it removes all.
func TestKeptDeadCostThePurgeNothing(t *testing.T) {
	t.Parallel()
	deaths := 0
	o := open(t, func(opt *Options) {
		opt.Partitions, opt.OnDeath = 1, func(*Container, string, LSN) { deaths++ }
	})
	o.policy("c", 5)
	const n = 5000
	for i := range n {
		o.put("c", fmt.Sprint("default-", i), "{}", expiry.Inherit)
		o.putFor("c", fmt.Sprint("own-", i), 5)
	}
	o.retain("c", 100, expiry.Policy{Default: expiry.Off})
	o.clock.Advance(10 * time.Second)
	for range 10 {
		for _, pool := range o.pools(0, 100) {
			if s := pool.Sample(100); s.Dead != 0 || s.Drawn != 0 || s.Due != 0 || s.More {
				t.Fatalf("a sample is %+v", s)
			}
		}
	}
	if o.count("c") != 0 || deaths != 0 {
		t.Fatalf("%d items live, %d deaths are reported", o.count("c"), deaths)
	}
	o.clock.Advance(100 * time.Second)
	for range 1000 {
		o.PurgeOnce()
	}
	if s := o.Stats(); deaths != 2*n || s.Expiry.RemovedActively != 2*n {
		t.Errorf("%d deaths, %+v", deaths, s.Expiry)
	}
}

// TestElementsOfKeptDeadKeysStay: what ends in keys that are dead, but stay, does not die. The purge does not
// look at it again and again, and finds what ends in a living key in its millisecond.
func TestElementsOfKeptDeadKeysStay(t *testing.T) {
	t.Parallel()
	var shed []string
	o := open(t, func(opt *Options) {
		opt.Partitions = 1
		opt.OnShed = func(_ *Container, id string, _ Kind, _ bool, _ LSN) { shed = append(shed, id) }
	})
	o.policy("c", 1000)
	for i := range 1000 {
		o.putDying("c", fmt.Sprint("dead-", i), 30)
	}
	var tx Tx
	o.BeginKey(&tx, "lives")
	x, _ := tx.EditElements(tx.Container("c"), "lives", HashKind)
	x.End = expiry.Never
	x.Set(Element{Field: "stays", Value: "v"})
	x.Set(Element{Field: "dies", Value: "v", End: epoch + 40_000})
	x.Close()
	o.commit(&tx)
	o.clock.Advance(20 * time.Second)
	o.policy("c", 10)
	o.retain("c", 1000, expiry.Policy{Default: 1000})
	o.clock.Advance(15 * time.Second)
	for range 2 {
		for _, pool := range o.pools(0, 100) {
			if s := pool.Sample(100); s.Drawn != 0 || s.Dead != 0 || s.More {
				t.Fatalf("a sample is %+v", s)
			}
		}
	}
	pages := o.catalogue.ByName["c"].tables[0].Pages
	if at := pages.Timer().At(); at <= o.clock.Now() || at > epoch+40_000 {
		t.Errorf("the timer is set to %d ms after the beginning", at-epoch)
	}
	o.clock.Advance(5 * time.Second)
	o.PurgeOnce()
	if !slices.Equal(shed, []string{"lives"}) || pages.Len() != 1001 {
		t.Errorf("elements have died in %v, %d pages are left", shed, pages.Len())
	}
}

// TestTimersOfElementsFollowThePolicy: elements that were asleep die in their millisecond once they wake.
func TestTimersOfElementsFollowThePolicy(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	o.policy("c", expiry.Off)
	o.putDying("c", "h", 10)
	o.PurgeOnce()
	o.policy("c", expiry.Forever)
	if at := o.catalogue.ByName["c"].tables[0].Pages.Timer().At(); at > epoch+10_000 {
		t.Errorf("the timer is set to %d ms", at)
	}
}

// TestEvictLeavesTheKeptDead evicts from containers with nothing but dead that stay, from one with some that
// live among many dead, and from a small one. It must end, and find all that may go.
func TestEvictLeavesTheKeptDead(t *testing.T) {
	t.Parallel()
	for policy := eviction.None + 1; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			o := open(t, func(opt *Options) { opt.Partitions = 2 })
			o.evictBy(policy)
			for _, name := range []string{"dead", "some", "few"} {
				o.policy(name, 5)
			}
			for i := range 6000 {
				o.put("dead", fmt.Sprint("default-", i), "{}", expiry.Inherit)
				o.putFor("some", fmt.Sprint("own-", i%3000), 4)
			}
			o.putFor("few", "lives", 100)
			const living = 7
			for i := range living {
				o.putFor("some", fmt.Sprint("lives-", i), 100)
			}
			o.retain("dead", 1000, expiry.Policy{Default: expiry.Off})
			o.retain("some", 1000, expiry.Policy{Default: expiry.Off})
			o.clock.Advance(10 * time.Second)
			ids, ok := o.evictAll(o.Used() - 1)
			if !ok || len(ids) == 0 {
				t.Errorf("%v: %d are evicted", ok, len(ids))
			}
			more, ok := o.evictAll(0)
			if ok || len(ids)+len(more) != living+1 || o.count("some")+o.count("few") != 0 {
				t.Errorf("%v: %d and %d are evicted of %d", ok, len(ids), len(more), living+1)
			}
		})
	}
}

// A dead item that stays is no change for those who watch its id, whatever becomes of it.
func TestWatchAmongTheKeptDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 5)
	o.put("c", "k", "{}", expiry.Inherit)
	o.retain("c", 20, expiry.Policy{Default: expiry.Off})
	watch := func() (w Watcher) {
		var tx Tx
		o.BeginKey(&tx, "k")
		tx.Watch(&w, tx.Container("c"), "k")
		o.commit(&tx)
		return w
	}
	changed := func(w *Watcher) bool {
		var tx Tx
		o.BeginKeys(&tx, w.IDs())
		defer o.commit(&tx)
		return tx.Changed(w)
	}
	lived := watch()
	o.clock.Advance(10 * time.Second)
	dead, written := watch(), watch()
	o.clock.Advance(20 * time.Second)
	o.PurgeOnce()
	if !changed(&lived) || changed(&dead) {
		t.Errorf("after the removal: %v for a watch from before the death, %v for a later one", changed(&lived), changed(&dead))
	}
	o.put("c", "k", "{}", expiry.Inherit)
	if !changed(&written) {
		t.Error("a write is no change")
	}
}

// TestKeptDeadAreBuriedOnDisk deletes and overwrites dead items that may live again. After a restart only
// those live again that nothing has written.
func TestKeptDeadAreBuriedOnDisk(t *testing.T) {
	t.Parallel()
	var deaths []string
	o := open(t, func(opt *Options) { opt.OnDeath = func(_ *Container, id string, _ LSN) { deaths = append(deaths, id) } })
	o.policy("c", 5)
	for _, id := range []string{"left", "deleted", "written", "gone"} {
		o.put("c", id, `{"old":1}`, expiry.Inherit)
	}
	drill.Check(t, o.Save())
	former := expiry.Policy{Default: expiry.Off}
	o.retain("c", 1000, former)
	o.clock.Advance(10 * time.Second)
	if o.delete("c", "deleted") || o.delete("c", "absent") {
		t.Error("a dead item was deleted as a living one")
	}
	o.put("c", "written", `{"new":1}`, expiry.Inherit)
	o.put("c", "gone", `{"new":1}`, expiry.Inherit)
	o.delete("c", "gone")
	if !slices.Equal(deaths, []string{"deleted", "written", "gone"}) {
		t.Errorf("deaths are %v", deaths)
	}
	o.kill()
	o.retain("c", 1000, former)
	if n := o.count("c"); n != 1 {
		t.Errorf("%d items live", n)
	}
	o.catalogueTx(func(tx *Tx) { tx.Container("c").policy.Store(&former) })
	if it, ok := o.get("c", "left"); !ok || it.Body != `{"old":1}` || o.count("c") != 2 || o.lives("c", "deleted") || o.lives("c", "gone") {
		t.Errorf("%d live again", o.count("c"))
	}
	if it, _ := o.get("c", "written"); it.Body != `{"new":1}` {
		t.Errorf("the written item is %+v", it)
	}
	o.catalogueTx(func(tx *Tx) { tx.recordContainer(tx.Container("c")) })
}

// A transaction that is rolled back has buried nothing.
func TestRollbackLeavesTheKeptDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 5)
	was := o.put("c", "k", `{"old":1}`, expiry.Inherit)
	former := expiry.Policy{Default: expiry.Off}
	o.retain("c", 1000, former)
	o.clock.Advance(10 * time.Second)
	for _, f := range []func(tx *Tx, c *Container){
		func(tx *Tx, c *Container) { tx.Delete(c, "k") },
		func(tx *Tx, c *Container) { tx.Put(c, "k", Plain, "new", expiry.Never) },
		func(tx *Tx, c *Container) {
			tx.Put(c, "k", Plain, "new", expiry.Never)
			tx.Delete(c, "k")
			tx.Put(c, "k", Plain, "newer", expiry.Never)
		},
	} {
		var tx Tx
		o.BeginKey(&tx, "k")
		f(&tx, tx.Container("c"))
		tx.Rollback()
		drill.Check(t, o.Check())
	}
	o.catalogueTx(func(tx *Tx) {
		c := tx.Container("c")
		tx.writeCatalogue()
		c.policy.Store(&former)
		tx.recordContainer(c)
	})
	if it, ok := o.get("c", "k"); !ok || it != was {
		t.Errorf("%+v lives, want %+v", it, was)
	}
}
