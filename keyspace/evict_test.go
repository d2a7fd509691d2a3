package keyspace

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/memtable"
)

// evictBy sets the policy of eviction. What is drawn by chance is the same in every run.
func (o *opened) evictBy(p eviction.Policy) {
	options := eviction.Defaults
	options.Policy = p
	o.SetEviction(options)
	o.evictor.IntN = rand.New(rand.NewPCG(1, 2)).IntN
}

// draw draws candidates for eviction.
func (o *opened) draw() int {
	return o.evictor.Draw(o.sources)
}

// evictAll evicts until at most limit bytes are used, and returns the ids of the evicted items.
func (o *opened) evictAll(limit int64) (ids map[string]bool, ok bool) {
	ids = make(map[string]bool)
	_, ok = o.Evict(limit, func(_ *Container, id string) { ids[id] = true })
	return ids, ok
}

// TestEvictKeepsTheUsed evicts an eighth of items of which a quarter was not used. By chance 1 of 4 evicted
// would be of these.
func TestEvictKeepsTheUsed(t *testing.T) {
	t.Parallel()
	for _, policy := range []eviction.Policy{eviction.AllKeysLRU, eviction.AllKeysLFU, eviction.VolatileLRU, eviction.VolatileLFU} {
		t.Run(policy.String(), func(t *testing.T) {
			o := open(t)
			o.policy("c", 100_000)
			o.evictBy(policy)
			const n = 4000
			for i := range n {
				o.put("c", fmt.Sprint(i), "{}", expiry.Inherit)
			}
			for range 10 {
				o.clock.Advance(10 * time.Second)
				for i := range n {
					if i%4 != 0 {
						o.get("c", fmt.Sprint(i))
					}
				}
			}
			empty := o.empty("c")
			evicted, ok := o.evictAll(empty + (o.Used()-empty)*7/8)
			unused := 0
			for id := range evicted {
				var i int
				if _, err := fmt.Sscan(id, &i); err == nil && i%4 == 0 {
					unused++
				}
			}
			if !ok || len(evicted) < n/10 || unused < len(evicted)*9/10 {
				t.Errorf("%v: of %d evicted %d were unused", ok, len(evicted), unused)
			}
		})
	}
}

// empty estimates the memory of a container without its items, in bytes.
func (o *opened) empty(container string) int64 {
	var tx Tx
	o.BeginSweep(&tx)
	defer tx.Close()
	return o.Used() - tx.Stats(tx.Container(container)).Memory
}

// A container with many items gives most candidates, even if there are many small ones.
func TestEvictDrawsInProportion(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.evictBy(eviction.AllKeysLRU)
	o.policy("large", expiry.Forever)
	const n, small = 3000, 40
	for i := range n {
		o.put("large", fmt.Sprint("large-", i), "{}", expiry.Inherit)
	}
	o.clock.Advance(time.Minute)
	for i := range small {
		o.policy(fmt.Sprint("small", i), expiry.Forever)
		for j := range 5 {
			o.put(fmt.Sprint("small", i), fmt.Sprint("small-", j), "{}", expiry.Inherit)
		}
	}
	evicted, ok := o.evictAll(o.Used() - n/2*(memtable.ItemOverhead+30))
	if !ok || len(evicted) < n/3 {
		t.Fatalf("%v: %d were evicted", ok, len(evicted))
	}
	for i := range small {
		if got := o.count(fmt.Sprint("small", i)); got != 5 {
			t.Errorf("container %d has %d of 5 items, which are new", i, got)
		}
	}
}

func TestEvictOnlyWhatThePolicyAllows(t *testing.T) {
	t.Parallel()
	for policy := eviction.None; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			o := open(t)
			o.policy("mortal", 500)
			o.policy("off", expiry.Off)
			o.evictBy(policy)
			for i := range 50 {
				o.put("mortal", fmt.Sprint("default-", i), "{}", expiry.Inherit)
				o.putFor("mortal", fmt.Sprint("own-", i), 300)
				o.put("mortal", fmt.Sprint("never-", i), "{}", expiry.Never)
				o.putFor("off", fmt.Sprint("off-", i), 300)
			}
			_, ok := o.evictAll(0)
			mortal, off := 0, 0
			switch {
			case policy == eviction.None:
				mortal, off = 150, 50
			case policy.Volatile():
				mortal, off = 50, 50
			}
			if gotMortal, gotOff := o.count("mortal"), o.count("off"); ok || gotMortal != mortal || gotOff != off {
				t.Errorf("%v: %d and %d are left, want %d and %d", ok, gotMortal, gotOff, mortal, off)
			}
		})
	}
}

// Between the draw and the eviction an item may be used, written or dropped.
func TestEvictLeavesWhatHasChangedSinceTheDraw(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(o *opened){
		"read":    func(o *opened) { o.get("c", "a") },
		"written": func(o *opened) { o.put("c", "a", "[]", expiry.Inherit) },
		"deleted": func(o *opened) { o.delete("c", "a") },
		"dropped": func(o *opened) { o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) }) },
		"no more": func(o *opened) {},
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			o.policy("c", expiry.Forever)
			o.evictBy(eviction.AllKeysLRU)
			o.put("c", "a", "{}", expiry.Inherit)
			if o.draw() == 0 {
				t.Fatal("nothing was drawn")
			}
			o.clock.Advance(time.Second)
			change(o)
			gone := false
			for v, ok := o.evictor.Take(); ok; v, ok = o.evictor.Take() {
				o.evict(v, func(*Container, string) { gone = true })
			}
			if gone != (name == "no more") {
				t.Errorf("evicted: %v", gone)
			}
			if !o.evictor.Empty() {
				t.Error("there are candidates left")
			}
		})
	}
}

// Candidates of a dropped container would keep its memory.
func TestADropForgetsTheCandidates(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.evictBy(eviction.AllKeysLRU)
	o.put("c", "a", "{}", expiry.Inherit)
	o.draw()
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	if !o.evictor.Empty() {
		t.Error("there are candidates left")
	}
}

func TestEvictDeletesTheNearestToDeath(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	o.policy("c", 500)
	o.evictBy(eviction.VolatileTTL)
	const n = 400
	for i := range n {
		o.putFor("c", fmt.Sprint("soon-", i), expiry.TTL(10+i))
		o.put("c", fmt.Sprint("default-", i), "{}", expiry.Inherit) // in 500 s
		o.put("c", fmt.Sprint("never-", i), "{}", expiry.Never)
	}
	full := o.Used()
	nearest := 0
	_, ok := o.Evict(full*5/6, func(c *Container, id string) {
		if c.Name() != "c" || id[:4] == "neve" {
			t.Fatalf("%s/%s was evicted", c.Name(), id)
		}
		var number int
		if _, err := fmt.Sscanf(id, "soon-%d", &number); err == nil && number < n*3/4 {
			nearest++
		}
	})
	evicted := 3*n - o.count("c")
	if !ok || o.Used() > full*5/6 || evicted < n/3 || evicted > n {
		t.Fatalf("%v: %d of %d bytes are used, %d were evicted", ok, o.Used(), full, evicted)
	}
	if nearest < evicted*3/4 {
		t.Errorf("of %d evicted only %d were among the nearest to death", evicted, nearest)
	}
	if _, ok := o.Evict(0, func(*Container, string) {}); ok || o.count("c") != n {
		t.Errorf("%v: %d are left of the %d that never die", ok, o.count("c"), n)
	}
}

// putDying puts a hash of which all fields end after some seconds.
func (o *opened) putDying(container, id string, seconds int64) {
	o.t.Helper()
	var tx Tx
	o.BeginKey(&tx, id)
	x, _ := tx.EditElements(tx.Container(container), id, HashKind)
	x.Set(Element{Field: "f", Value: "v", End: tx.Now() + 1000*seconds})
	x.Close()
	o.commit(&tx)
}

// boundEviction has eviction draw no more, and the test fail, once it has drawn very often.
func (o *opened) boundEviction() {
	draws, intN := 0, o.evictor.IntN
	o.evictor.IntN = func(n int) int {
		if draws++; draws == 100_000 {
			o.t.Error("eviction does not end")
			o.evictor.SetOptions(eviction.Defaults, epoch)
		}
		return intN(n)
	}
}

// TestEvictBuriesKeysWithoutLivingElements: a key whose elements have all died goes where it is drawn. It is
// not evicted, and its end is told as ever.
func TestEvictBuriesKeysWithoutLivingElements(t *testing.T) {
	t.Parallel()
	for _, policy := range []eviction.Policy{eviction.AllKeysLRU, eviction.AllKeysRandom} {
		t.Run(policy.String(), func(t *testing.T) {
			gone := 0
			o := open(t, func(opt *Options) {
				opt.OnShed = func(_ *Container, _ string, _ Kind, whole bool, _ LSN) {
					if whole {
						gone++
					}
				}
			})
			o.policy("c", expiry.Forever)
			o.put("c", "lives", "{}", expiry.Inherit)
			before := o.Used()
			const n = 100
			for i := range n {
				o.putDying("c", fmt.Sprint(i), 10)
			}
			o.clock.Advance(20 * time.Second)
			o.evictBy(policy)
			o.boundEviction()
			evicted, ok := o.evictAll(before / 2)
			if ok || gone != n || len(evicted) != 1 || !evicted["lives"] {
				t.Errorf("%v: of %d keys %d have gone, evicted are %v", ok, n, gone, evicted)
			}
		})
	}
}

// TestEvictLeavesKeysThatAnUndoBringsBack: a former rule may rule again in which all elements of a key live.
func TestEvictLeavesKeysThatAnUndoBringsBack(t *testing.T) {
	t.Parallel()
	for policy := eviction.None + 1; policy <= eviction.AllKeysRandom; policy++ {
		t.Run(policy.String(), func(t *testing.T) {
			o := open(t, func(opt *Options) { opt.Partitions = 1 })
			o.policy("c", 1000)
			for i := range 200 {
				o.putDying("c", fmt.Sprint("dead-", i), 10)
			}
			o.putFor("c", "lives", 100)
			o.retain("c", 1000, expiry.Policy{Default: expiry.Off})
			o.clock.Advance(20 * time.Second)
			o.evictBy(policy)
			o.boundEviction()
			evicted, ok := o.evictAll(0)
			if ok || len(evicted) != 1 || o.count("c") != 0 {
				t.Errorf("%v: %v are evicted, %d live", ok, evicted, o.count("c"))
			}
			o.catalogueTx(func(tx *Tx) {
				if n := tx.Container("c").tables[0].Len(); n != 200 {
					t.Errorf("%d of 200 keys are there", n)
				}
			})
		})
	}
}

func TestUsed(t *testing.T) {
	t.Parallel()
	o := open(t)
	databases := o.Used()
	if databases < Databases*containerOverhead {
		t.Fatalf("an empty keyspace uses %d bytes", databases)
	}
	o.policy("c", expiry.Forever)
	empty := o.Used()
	if empty < databases+containerOverhead {
		t.Fatalf("an empty container takes %d bytes", empty-databases)
	}
	o.put("c", "a", `{"some":"thing"}`, expiry.Inherit)
	one := o.Used()
	if one < empty+memtable.TableOverhead+memtable.ItemOverhead {
		t.Fatalf("%d bytes", one)
	}
	o.put("c", "{a}b", "{}", expiry.Inherit)
	o.delete("c", "{a}b")
	if o.Used() != one {
		t.Fatalf("%d bytes after a put and a delete, %d before", o.Used(), one)
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	if o.Used() != databases {
		t.Fatalf("%d bytes after the drop, %d before the container", o.Used(), databases)
	}
}
