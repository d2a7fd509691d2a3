package keyspace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/test/drill"
)

func (o *opened) swap(a, b string) {
	o.t.Helper()
	o.catalogueTx(func(tx *Tx) { tx.Swap(tx.Container(a), tx.Container(b)) })
}

func TestSwap(t *testing.T) {
	t.Parallel()
	for _, stored := range []bool{false, true} { // in the stores already, or in the journal only
		t.Run(fmt.Sprint("stored ", stored), func(t *testing.T) {
			o := open(t)
			o.policy("a", 100)
			o.policy("b", expiry.Off)
			for i := range 50 {
				o.put("a", fmt.Sprint(i), `{"from":"a"}`, expiry.Inherit)
			}
			o.put("b", "7", `{"from":"b"}`, expiry.Inherit)
			if stored {
				o.reopen()
			}
			o.swap("a", "b")
			check := func(when string) {
				if o.count("a") != 1 || o.count("b") != 50 {
					t.Fatalf("%s: a holds %d, b %d", when, o.count("a"), o.count("b"))
				}
				if it, _ := o.get("a", "7"); it.Body != `{"from":"b"}` {
					t.Fatalf("%s: in a is %+v", when, it)
				}
				var tx Tx
				o.BeginNone(&tx)
				a, b := tx.Container("a").Policy().Default, tx.Container("b").Policy().Default
				o.commit(&tx)
				if a != 100 || b != expiry.Off {
					t.Fatalf("%s: the defaults are %v and %v", when, a, b)
				}
			}
			check("after the swap")
			o.reopen()
			check("after a restart")
			o.put("a", "new", "{}", expiry.Inherit)
			o.delete("b", "7")
			o.reopen()
			if o.count("a") != 2 || o.count("b") != 49 || o.lives("b", "new") {
				t.Error("what was written after the swap is elsewhere after a restart")
			}
			o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("a")) })
			o.reopen()
			if o.count("a") != 0 || o.count("b") != 49 {
				t.Error("a flush after the swap has emptied the wrong side")
			}
		})
	}
}

// TestSwapKeepsTheDeadDead: items that have died under one default stay dead under the other's, purged or
// not.
func TestSwapKeepsTheDeadDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("brief", 10)
	o.policy("lasting", expiry.Forever)
	o.put("brief", "dead", "{}", expiry.Inherit)
	o.put("lasting", "old", "{}", expiry.Inherit)
	o.putFor("lasting", "ending", 5)
	o.clock.Advance(11 * time.Second)
	o.put("brief", "young", "{}", expiry.Inherit)
	o.swap("brief", "lasting")
	for i := range 2 {
		if o.lives("lasting", "dead") || !o.lives("lasting", "young") || o.count("lasting") != 1 {
			t.Error("dead items of brief live in lasting")
		}
		if o.lives("brief", "old") || o.lives("brief", "ending") || o.count("brief") != 0 {
			t.Error("the default of brief does not apply to its new items")
		}
		if i == 0 {
			o.reopen()
		}
	}
	o.swap("brief", "lasting")
	if o.lives("lasting", "old") || !o.lives("brief", "young") {
		t.Error("dead items live after a second swap")
	}
}

func TestSwapWithItself(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "k", "{}", expiry.Inherit)
	o.swap("0", "0")
	if !o.lives("0", "k") {
		t.Error("the item is gone")
	}
}

// TestSwapAndWatch: a swap changes a watched id if the item lives on either side, as in Redis.
func TestSwapAndWatch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		before  func(o *opened)
		changed bool
	}{
		{"on neither side", func(*opened) {}, false},
		{"here", func(o *opened) { o.put("0", "k", "{}", expiry.Inherit) }, true},
		{"there", func(o *opened) { o.put("1", "k", "{}", expiry.Inherit) }, true},
		{"on both sides", func(o *opened) {
			o.put("0", "k", "{}", expiry.Inherit)
			o.put("1", "k", "{}", expiry.Inherit)
		}, true},
		{"dead here", func(o *opened) { o.putFor("0", "k", 1); o.clock.Advance(time.Second) }, false},
		{"dead there", func(o *opened) { o.putFor("1", "k", 1); o.clock.Advance(time.Second) }, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := open(t)
			c.before(o)
			var w Watcher
			var tx Tx
			o.BeginKey(&tx, "k")
			tx.Watch(&w, tx.Container("0"), "k")
			o.commit(&tx)
			o.swap("0", "1")
			o.BeginKeys(&tx, w.IDs())
			changed := tx.Changed(&w)
			tx.Unwatch(&w)
			o.commit(&tx)
			if changed != c.changed {
				t.Errorf("changed is %v", changed)
			}
			if len(w.IDs()) > 0 || !o.partitionOf("k").Watchers.Empty() {
				t.Error("a watch is left")
			}
		})
	}
}

// TestSwapModel compares random histories of two containers that are swapped with a model that removes items
// the moment they die.
func TestSwapModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 3, 4, 300, func(t *testing.T, seed uint64) { playSwaps(t, rand.New(rand.NewPCG(seed, 5))) })
}

// swapSide is a container of the model.
type swapSide struct {
	def   expiry.TTL
	items map[string]Item
}

// removeDead removes what is dead under the default.
func (m *swapSide) removeDead(now int64) {
	for id, it := range m.items {
		switch {
		case m.def == expiry.Off || it.ExpireAt == expiry.Never:
		case it.ExpireAt > expiry.Inherit && it.ExpireAt <= now, it.ExpireAt < expiry.Never && -it.ExpireAt <= now,
			it.ExpireAt <= expiry.Inherit && m.def > 0 && it.TS+int64(m.def)*1000 <= now:
			delete(m.items, id)
		}
	}
}

func playSwaps(t *testing.T, r *rand.Rand) {
	o := open(t, func(opt *Options) { opt.Partitions = 3 })
	names := []string{"a", "b"}
	model := map[string]*swapSide{}
	for _, name := range names {
		model[name] = &swapSide{def: expiry.Forever, items: map[string]Item{}}
		o.policy(name, expiry.Forever)
	}
	for range 250 {
		name, id := names[r.IntN(2)], fmt.Sprint("id-", r.IntN(8))
		side := model[name]
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			own := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, o.clock.Now() + 1 + r.Int64N(4000), expiry.CapAt(o.clock.Now() + 1 + r.Int64N(4000))}[r.IntN(5)]
			o.put(name, id, "{}", own)
			side.items[id] = Item{TS: o.clock.Now(), ExpireAt: own}
		case 4:
			_, lives := side.items[id]
			if was := o.delete(name, id); was != lives {
				t.Fatalf("Delete of %s in %s is %v", id, name, was)
			}
			delete(side.items, id)
		case 5, 6:
			o.swap("a", "b")
			model["a"].items, model["b"].items = model["b"].items, model["a"].items
		case 7:
			side.def = []expiry.TTL{expiry.Off, expiry.Forever, 1, 2, 4}[r.IntN(5)]
			o.policy(name, side.def)
		case 8:
			if r.IntN(4) == 0 {
				o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container(name)) })
				clear(side.items)
			}
		case 9:
			switch r.IntN(3) {
			case 0:
				o.reopen()
			case 1:
				drill.Check(t, o.Save())
			case 2:
				o.PurgeOnce()
			}
		default:
			o.clock.Advance(time.Duration(r.IntN(1500)) * time.Millisecond)
		}
		for _, m := range model {
			m.removeDead(o.clock.Now())
		}
		if r.IntN(8) > 0 { // reads remove the dead; mostly these stay
			continue
		}
		for _, name := range names {
			for n := range 8 {
				id := fmt.Sprint("id-", n)
				if _, want := model[name].items[id]; o.lives(name, id) != want {
					t.Fatalf("%s of %s lives: %v, the model says %v", id, name, !want, want)
				}
			}
			if got, want := o.count(name), len(model[name].items); got != want {
				t.Fatalf("%s counts %d, the model %d", name, got, want)
			}
		}
	}
}
