package keyspace

import (
	"fmt"
	"testing"
	"time"

	"mayfly/expiry"
)

// TestKeepDeadUntil compares figures and look-ups while the dead stay with those after they are removed.
func TestKeepDeadUntil(t *testing.T) {
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
		tx.Select(c, 0, func(s Slice) bool {
			selected += len(s.Items)
			return true
		})
		if selected != n {
			t.Fatalf("%d items selected, want %d", selected, n)
		}
		all, one = *tx.AllStats()[0], tx.Stats(c)
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
	if err := o.Check(); err != nil {
		t.Fatal(err)
	}
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
