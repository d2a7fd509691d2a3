package keyspace

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// mortal is an item in the plain model of a table.
type mortal struct{ ts, own int64 }

// dyingTable is a table beside a plain model of it: a map through which one looks.
type dyingTable struct {
	tb     testing.TB
	t      *table
	p      *partition
	items  map[string]mortal
	policy expiry.Policy
	now    int64
}

func newDyingTable(tb testing.TB) *dyingTable {
	d := &dyingTable{tb: tb, items: map[string]mortal{}, policy: expiry.Policy{Default: expiry.Forever}, now: epoch}
	d.t, d.p = newTestTable()
	return d
}

func (d *dyingTable) put(id string, own int64) {
	key := string(record.AppendKey(nil, d.t.number, id))
	it := Item{Kind: Document, Body: "{}", TS: d.now, ExpireAt: own, Version: d.p.nextVersion()}
	rec := string(record.Append(nil, key, it))
	d.t.put(id, key, rec, it)
	d.items[id] = mortal{d.now, own}
}

func (d *dyingTable) remove(id string) {
	if d.t.testRemove(d.p, id) {
		delete(d.items, id)
	}
}

// gone is told what the table finds dead.
func (d *dyingTable) gone(e *entry) {
	id := d.t.id(e)
	it, ok := d.items[id]
	if !ok || !d.policy.Dead(it.ts, it.own, d.now) {
		d.tb.Fatalf("%q is found dead: %v at %d by %+v", id, it, d.now, d.policy)
	}
	delete(d.items, id)
	d.p.forget(d.t, e)
}

func (d *dyingTable) dead() (n int) {
	for _, it := range d.items {
		if d.policy.Dead(it.ts, it.own, d.now) {
			n++
		}
	}
	return n
}

func (d *dyingTable) sweep() {
	d.t.sweep(&d.policy, d.now, d.gone)
	if n := d.dead(); n != 0 || d.t.count() != len(d.items) {
		d.tb.Fatalf("after a sweep %d of %d are dead, %d are in the table", n, len(d.items), d.t.count())
	}
}

func (d *dyingTable) sample(n int) expiry.Sample {
	dead, all := d.dead(), d.t.heirs.n+d.t.mortals.n
	got := d.t.sample(&d.policy, d.now, n, d.gone)
	left := d.dead()
	if got.Dead != dead-left || got.Dead > n || got.Drawn < got.Dead || got.All != all || got.Drawn > 4*bucketSize {
		d.tb.Fatalf("%+v: there were %d dead of %d, there are %d", got, dead, all, left)
	}
	if left > 0 && !got.More || got.Drawn == 0 && got.More {
		d.tb.Fatalf("%+v: there are %d dead", got, left)
	}
	return got
}

func (d *dyingTable) check() {
	d.tb.Helper()
	for _, c := range []*class{&d.t.heirs, &d.t.mortals} {
		if err := c.check(&d.t.slab); err != nil {
			d.tb.Fatal(err)
		}
	}
	heirs, mortals := 0, 0
	for id, it := range d.items {
		e := d.t.find(id)
		if e == nil || e.ts != it.ts || e.own != it.own {
			d.tb.Fatalf("%q should be %+v, is %+v", id, it, e)
		}
		switch it.own {
		case expiry.Inherit:
			heirs++
		case expiry.Never:
			if e.rank != noRank {
				d.tb.Fatalf("%q never dies and has a rank", id)
			}
		default:
			mortals++
		}
	}
	if d.t.heirs.n != heirs || d.t.mortals.n != mortals {
		d.tb.Fatalf("%d heirs and %d mortals, want %d and %d", d.t.heirs.n, d.t.mortals.n, heirs, mortals)
	}
}

// Tables find dead what a plain model finds dead, all of it and nothing else, whatever ends items have, however
// these are put off and brought forward, and however the default changes.
func TestClassesAgreeWithAPlainModel(t *testing.T) {
	steps := 60_000
	if testing.Short() {
		steps = 15_000
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			d := newDyingTable(t)
			ids := 1 + rng.IntN(6000)
			pace, span := 1+rng.Int64N(50), 1+rng.Int64N(2_000_000)
			ends := []func() int64{
				func() int64 { return expiry.Inherit },
				func() int64 { return expiry.Never },
				func() int64 { return d.now + span },                      // in order
				func() int64 { return max(d.now+1, epoch+2*span-d.now) },  // in the opposite order, mostly
				func() int64 { return d.now + 1 + rng.Int64N(span) },      // anywhere
				func() int64 { return d.now + 1 + rng.Int64N(span/50+1) }, // soon
				func() int64 { return (d.now/span + 1) * span },           // many at once
				func() int64 { return 1 + rng.Int64N(d.now) },             // in a container that is off
			}
			for step := range steps {
				id := fmt.Sprint(rng.IntN(ids))
				switch what := rng.IntN(1000); {
				case what < 780:
					d.put(id, ends[rng.IntN(len(ends))]())
				case what < 850:
					d.remove(id)
				case what < 990:
					d.now += rng.Int64N(pace)
				case what < 992:
					d.now += rng.Int64N(span)
				case what < 994:
					defaults := []expiry.TTL{expiry.Off, expiry.Forever, 1, expiry.TTL(1 + span/1000), expiry.TTL(1 + rng.Int64N(1+span/100))}
					d.policy = d.policy.Change(defaults[rng.IntN(len(defaults))], expiry.Strict, d.now)
				case what < 999:
					d.sample(1 + rng.IntN(100))
				default:
					d.sweep()
				}
				if step%500 == 0 {
					d.check()
				}
			}
			d.check()
			for d.sample(65).More {
			}
			d.sweep()
			for id := range d.items {
				d.remove(id)
			}
			d.check()
			if c := d.t.heirs; c.order != nil || c.buckets != nil || c.vacant != nil {
				t.Errorf("of an empty class is left %+v", c)
			}
		})
	}
}

// fill puts items with the ends that are given.
func (d *dyingTable) fill(n int, end func(i int) int64) {
	for i := range n {
		d.put(fmt.Sprint(i), end(i))
	}
	d.check()
}

// Buckets are well filled, whatever the order in which ends come.
func TestBucketsAreFilled(t *testing.T) {
	const n = 40 * bucketSize
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name  string
		end   func(i int) int64
		share float64 // of the places that hold an item, at least
	}{
		{"in order", func(i int) int64 { return epoch + int64(i) + 1 }, 0.99},
		{"in the opposite order", func(i int) int64 { return epoch + n - int64(i) }, 0.97},
		{"at one moment", func(i int) int64 { return epoch + 1 }, 0.99},
		{"in order in two places", func(i int) int64 { return epoch + int64(i) + 1 + int64(i%2)*1_000_000 }, 0.97},
		{"anywhere", func(i int) int64 { return epoch + 1 + rng.Int64N(1_000_000) }, 0.6},
	} {
		d := newDyingTable(t)
		d.fill(n, tc.end)
		if share := float64(n) / float64(len(d.t.mortals.order)*bucketSize); share < tc.share {
			t.Errorf("%s: %d items take %d buckets", tc.name, n, len(d.t.mortals.order))
		}
		// What goes anywhere takes its room with it.
		for i := range n {
			if i%8 != 0 {
				d.remove(fmt.Sprint(i))
			}
		}
		d.check()
		if most := n / 8 / (sparseBucket / 2); len(d.t.mortals.order) > most {
			t.Errorf("%s: %d items are left in %d buckets", tc.name, n/8, len(d.t.mortals.order))
		}
	}
}

// However many other items there are, who looks for the dead looks at few of them.
func TestTheDeadAreFoundAmongMany(t *testing.T) {
	const n = 50_000
	d := newDyingTable(t)
	rng := rand.New(rand.NewPCG(3, 4))
	d.fill(n, func(int) int64 { return epoch + 1 + rng.Int64N(3_600_000) })
	drawn, dead := 0, 0
	for range 600 {
		d.now += 1000
		for {
			got := d.sample(20)
			drawn, dead = drawn+got.Drawn, dead+got.Dead
			if !got.More {
				break
			}
		}
	}
	// Each look at a bucket that has begun is one at all its items, and a bucket lasts for some ten of them.
	if left := d.dead(); left != 0 || dead < n/8 || drawn > 600*2*bucketSize {
		t.Errorf("%d dead are left, %d were found among %d", left, dead, drawn)
	}
	if got := d.sample(20); got.Drawn != 0 {
		t.Errorf("%+v, though nothing has died meanwhile", got)
	}
}

// A write that puts an end off leaves the item where it is; the purge brings it to where it belongs once.
func TestEndsThatArePutOff(t *testing.T) {
	const n = 10 * bucketSize
	d := newDyingTable(t)
	d.fill(n, func(i int) int64 { return epoch + int64(i) + 1 })
	for i := range n {
		d.put(fmt.Sprint(i), epoch+100_000+int64(i))
	}
	d.now += n + 1
	looks := 0
	for {
		got := d.sample(20)
		looks += got.Drawn
		if !got.More {
			break
		}
	}
	if looks > 2*n || len(d.items) != n {
		t.Errorf("%d looks at %d items, %d are left", looks, n, len(d.items))
	}
	d.check()
	if got := d.sample(20); got.Drawn != 0 {
		t.Errorf("%+v: they are still where they were", got)
	}
	d.now = epoch + 100_000 + n
	for d.sample(20).More {
	}
	if len(d.items) != 0 {
		t.Errorf("%d are left", len(d.items))
	}
}

// What inherits and what has an end of its own are removed in turn.
func TestNeitherClassWaitsForTheOther(t *testing.T) {
	d := newDyingTable(t)
	d.policy.Default = 10
	d.fill(8*bucketSize, func(i int) int64 {
		if i%2 == 0 {
			return expiry.Inherit
		}
		return epoch + 1
	})
	d.now += 10_000
	for range 20 {
		d.sample(20)
	}
	if gone := 4*bucketSize - d.t.heirs.n; gone != 200 {
		t.Errorf("of 400 that were removed %d inherit", gone)
	}
}
