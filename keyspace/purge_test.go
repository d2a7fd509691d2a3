package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
)

func TestPurgeRemovesOnlyTheDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 10)
	for i := range 500 {
		o.put("c", fmt.Sprint("default-", i), "{}", expiry.Inherit)
		o.put("c", fmt.Sprint("never-", i), "{}", expiry.Never)
		o.putFor("c", fmt.Sprint("longer-", i), 20)
	}
	inMemory := func() int {
		n := 0
		for _, p := range o.partitions {
			var tx Tx
			o.BeginSweep(&tx)
			if table := tx.Container("c").tables[p.Number]; table != nil {
				n += table.Len()
			}
			tx.Close()
		}
		return n
	}
	purgeTo := func(want int) {
		t.Helper()
		for range 1000 {
			if o.PurgeOnce(); inMemory() == want {
				break
			}
		}
		if n := inMemory(); n != want {
			t.Fatalf("%d items are in memory after many cycles, want %d", n, want)
		}
	}
	purgeTo(1500)
	o.clock.Advance(10 * time.Second)
	if inMemory() != 1500 {
		t.Fatal("dead items are removed without a purge")
	}
	purgeTo(1000)
	if s := o.Stats().Expiry; s.RemovedActively == 0 || s.Sampled < s.RemovedActively {
		t.Fatalf("counters: %+v", s)
	}
	o.clock.Advance(10 * time.Second)
	o.policy("c", expiry.Off) // the dead are still dead, and still purged
	purgeTo(500)
}

// TestEmptyContainersAreSkipped: the purge and the eviction skip empty containers, however many there are.
func TestEmptyContainersAreSkipped(t *testing.T) {
	t.Parallel()
	o := open(t)
	empty := o.Used()
	const containers = 3 * eviction.SourcesPerRound
	name := func(i int) string { return fmt.Sprint("c", i) }
	for i := range containers {
		o.policy(name(i), 10)
	}
	if n := o.tables.Len(); n != 0 {
		t.Fatalf("%d tables of empty containers are listed", n)
	}
	for i := range containers {
		o.put(name(i), "never", "{}", expiry.Never)
	}
	o.put(name(77), "dies", "{}", expiry.Inherit)
	o.evictBy(eviction.VolatileTTL)
	if _, ok := o.Evict(0, func(c *Container, id string) {
		if c.Name() != name(77) || id != "dies" {
			t.Errorf("%s/%s was evicted", c.Name(), id)
		}
	}); ok || o.lives(name(77), "dies") {
		t.Error("the item with an end is not found among those without")
	}
	o.put(name(78), "dies", "{}", expiry.Inherit)
	o.clock.Advance(10 * time.Second)
	for range containers/1024 + 2 { // each scans 1024 pools
		o.PurgeOnce()
	}
	if got := o.Stats().Expiry.RemovedActively; got != 1 {
		t.Errorf("%d dead were removed, want 1", got)
	}
	for i := range containers {
		o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container(name(i))) })
	}
	if n := o.tables.Len(); n != 0 || o.Used() != empty {
		t.Errorf("%d tables and %d bytes are left after all containers were dropped", n, o.Used())
	}
}

func TestEveryDeathIsReportedOnce(t *testing.T) {
	t.Parallel()
	reported := make(map[string]int)
	o := open(t, func(opt *Options) {
		opt.OnDeath = func(c *Container, id string, _ LSN) { reported[c.Name()+"/"+id]++ }
	})
	for i := range 300 {
		o.putFor("0", fmt.Sprint(i), 1)
		o.putFor("0", fmt.Sprint("late-", i), 100)
	}
	o.delete("0", "late-0")
	o.clock.Advance(time.Second)
	for i := range 50 {
		o.lives("0", fmt.Sprint(i))          // found dead by a reader,
		o.putFor("0", fmt.Sprint(100+i), 99) // by a writer,
	}
	o.PurgeOnce()
	o.count("0") // or by a count
	for i := range 300 {
		if n := reported[fmt.Sprint("0/", i)]; n != 1 {
			t.Errorf("%d died and was reported %d times", i, n)
		}
	}
	if len(reported) != 300 {
		t.Errorf("%d deaths are reported, 300 happened", len(reported))
	}
}

// TestDeathByTheTransactionItself: Tx.OnDeath reports deaths that a transaction itself causes. After a
// rollback they have not happened.
func TestDeathByTheTransactionItself(t *testing.T) {
	t.Parallel()
	for name, kill := range map[string]func(tx *Tx, c *Container){
		"by a default, found by a reader": func(tx *Tx, c *Container) {
			tx.SetPolicy(c, 3, expiry.Strict)
			tx.Get(c, "a")
		},
		"by a default, found by a count": func(tx *Tx, c *Container) {
			tx.SetPolicy(c, 3, expiry.Strict)
			tx.Count(c)
		},
		"by its own end": func(tx *Tx, c *Container) {
			tx.Put(c, "a", Document, "{}", tx.Now())
			tx.Get(c, "a")
		},
	} {
		t.Run(name, func(t *testing.T) {
			certain, own := 0, 0
			o := open(t, func(opt *Options) {
				opt.OnDeath = func(*Container, string, LSN) { certain++ }
			})
			o.policy("c", expiry.Forever)
			o.put("c", "a", "{}", expiry.Inherit)
			o.clock.Advance(5 * time.Second)
			tx := Tx{OnDeath: func(c *Container, id string) {
				if own++; c.Name() != "c" || id != "a" {
					t.Errorf("the death of %s/%s is reported", c.Name(), id)
				}
			}}
			for i, end := range []func(){func() { tx.Rollback() }, func() { o.commit(&tx) }} {
				o.BeginAll(&tx)
				kill(&tx, tx.Container("c"))
				end()
				if lives := o.lives("c", "a"); lives != (i == 0) || own != i+1 || certain != 0 {
					t.Errorf("reported %d times by the transaction, %d by the keyspace; lives: %t", own, certain, lives)
				}
			}
		})
	}
}
