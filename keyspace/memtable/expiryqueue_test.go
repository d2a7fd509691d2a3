package memtable

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// epoch is where the clock of a test begins, in ms.
const epoch = 1_700_000_000_000

// modelItem is an item in the model of a table.
type modelItem struct{ ts, expireAt int64 }

// modelledTable is a table and a model of it: a map that is searched in full.
type modelledTable struct {
	tb     testing.TB
	t      *Table
	shard  *Shard
	items  map[string]modelItem
	policy expiry.Policy
	now    int64
}

func newModelledTable(tb testing.TB) *modelledTable {
	d := &modelledTable{tb: tb, items: map[string]modelItem{}, policy: expiry.Policy{Default: expiry.Forever}, now: epoch}
	d.t, d.shard = newTestTable()
	return d
}

func (d *modelledTable) put(id string, expireAt int64) {
	put(d.t, id, record.Item{Kind: record.Document, Body: "{}", TS: d.now, ExpireAt: expireAt})
	d.items[id] = modelItem{d.now, expireAt}
}

func (d *modelledTable) remove(id string) {
	if remove(d.t, d.shard, id) {
		delete(d.items, id)
	}
}

// expired takes a dead entry that the table has removed.
func (d *modelledTable) expired(e *Entry) {
	id := d.t.ID(e)
	it, ok := d.items[id]
	if !ok || !d.policy.Dead(it.ts, it.expireAt, d.now) {
		d.tb.Fatalf("%q is found dead: %v at %d by %+v", id, it, d.now, d.policy)
	}
	delete(d.items, id)
	d.t.Release(e)
}

func (d *modelledTable) dead() (n int) {
	for _, it := range d.items {
		if d.policy.Dead(it.ts, it.expireAt, d.now) {
			n++
		}
	}
	return n
}

func (d *modelledTable) sweep() {
	d.t.Sweep(d.policy.DeadLimits(d.now), d.expired)
	if n := d.dead(); n != 0 || d.t.Len() != len(d.items) {
		d.tb.Fatalf("after a sweep %d of %d are dead, %d are in the table", n, len(d.items), d.t.Len())
	}
}

func (d *modelledTable) sample(n int) expiry.Sample {
	dead, all := d.dead(), d.t.Stats().ByDefault+d.t.Stats().ByOwnTTL
	got := d.t.Sample(d.policy.DeadLimits(d.now), n, d.expired)
	left := d.dead()
	if got.Dead != dead-left || got.Dead > n || got.Drawn < got.Dead || got.All != all || got.Drawn > 4*bucketSize {
		d.tb.Fatalf("%+v: there were %d dead of %d, there are %d", got, dead, all, left)
	}
	if left > 0 && !got.More || got.Drawn == 0 && got.More {
		d.tb.Fatalf("%+v: there are %d dead", got, left)
	}
	return got
}

func (d *modelledTable) check() {
	d.tb.Helper()
	drill.Check(d.tb, d.shard.Check())
	byDefault, byOwnTTL := 0, 0
	for id, it := range d.items {
		e := d.t.Find(id)
		if e == nil || e.ts != it.ts || e.expireAt != it.expireAt {
			d.tb.Fatalf("%q should be %+v, is %+v", id, it, e)
		}
		switch it.expireAt {
		case expiry.Inherit:
			byDefault++
		case expiry.Never:
			if e.queuePos != notQueued {
				d.tb.Fatalf("%q never dies and has a queue position", id)
			}
		default:
			byOwnTTL++
			if _, capped := expiry.Cap(it.expireAt); capped {
				byDefault++
			}
		}
	}
	if d.t.byDefault.n != byDefault || d.t.byOwnTTL.n != byOwnTTL {
		d.tb.Fatalf("%d by default and %d by their own TTL, want %d and %d", d.t.byDefault.n, d.t.byOwnTTL.n, byDefault, byOwnTTL)
	}
}

// TestExpiryAgainstModel: a table finds exactly those items dead that the model finds. Items have all kinds
// of ends, ends move, and the default changes.
func TestExpiryAgainstModel(t *testing.T) {
	t.Parallel()
	steps := 60_000
	if testing.Short() {
		steps = 15_000
	}
	for seed := range uint64(6) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 7))
			d := newModelledTable(t)
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
				func() int64 { return expiry.CapAt(d.now + 1 + rng.Int64N(span)) },
				func() int64 { return expiry.CapAt((d.now/span + 1) * span) },
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
			if q := d.t.byDefault; q.order != nil || q.buckets != nil || q.vacant != nil {
				t.Errorf("of an empty queue is left %+v", q)
			}
		})
	}
}

// fill puts n items with the given ends.
func (d *modelledTable) fill(n int, end func(i int) int64) {
	for i := range n {
		d.put(fmt.Sprint(i), end(i))
	}
	d.check()
}

// TestBucketsAreFilled: buckets are well filled, in whatever order ends come.
func TestBucketsAreFilled(t *testing.T) {
	t.Parallel()
	const n = 40 * bucketSize
	rng := rand.New(rand.NewPCG(1, 2))
	for _, tc := range []struct {
		name  string
		end   func(i int) int64
		share float64 // of the places in buckets that have an item, at least
	}{
		{"in order", func(i int) int64 { return epoch + int64(i) + 1 }, 0.99},
		{"in the opposite order", func(i int) int64 { return epoch + n - int64(i) }, 0.97},
		{"at one moment", func(i int) int64 { return epoch + 1 }, 0.99},
		{"in order in two places", func(i int) int64 { return epoch + int64(i) + 1 + int64(i%2)*1_000_000 }, 0.97},
		{"anywhere", func(i int) int64 { return epoch + 1 + rng.Int64N(1_000_000) }, 0.6},
	} {
		d := newModelledTable(t)
		d.fill(n, tc.end)
		if share := float64(n) / float64(len(d.t.byOwnTTL.order)*bucketSize); share < tc.share {
			t.Errorf("%s: %d items take %d buckets", tc.name, n, len(d.t.byOwnTTL.order))
		}
		// Removals anywhere free their room.
		for i := range n {
			if i%8 != 0 {
				d.remove(fmt.Sprint(i))
			}
		}
		d.check()
		if most := n / 8 / (sparseBucket / 2); len(d.t.byOwnTTL.order) > most {
			t.Errorf("%s: %d items are left in %d buckets", tc.name, n/8, len(d.t.byOwnTTL.order))
		}
	}
}

// TestTheDeadAreFoundAmongMany: a search for the dead looks at few other items, however many there are.
func TestTheDeadAreFoundAmongMany(t *testing.T) {
	t.Parallel()
	const n = 50_000
	d := newModelledTable(t)
	rng := rand.New(rand.NewPCG(3, 4))
	d.fill(n, func(int) int64 { return epoch + 1 + rng.Int64N(3_600_000) })
	drawn, dead := 0, 0
	rounds := drill.Pick(150, 600, 600) // of a second
	for range rounds {
		d.now += 1000
		for {
			got := d.sample(20)
			drawn, dead = drawn+got.Drawn, dead+got.Dead
			if !got.More {
				break
			}
		}
	}
	// A sample looks at all items of a bucket, and a bucket lasts for about ten samples.
	if left := d.dead(); left != 0 || dead < n*rounds/4800 || drawn > rounds*2*bucketSize {
		t.Errorf("%d dead are left, %d were found among %d", left, dead, drawn)
	}
	if got := d.sample(20); got.Drawn != 0 {
		t.Errorf("%+v, though nothing has died meanwhile", got)
	}
}

// TestPostponedEnds: a write that postpones an end leaves the item in place. A sample moves it once.
func TestPostponedEnds(t *testing.T) {
	t.Parallel()
	const n = 10 * bucketSize
	d := newModelledTable(t)
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
		t.Errorf("%+v: they have not moved", got)
	}
	d.now = epoch + 100_000 + n
	for d.sample(20).More {
	}
	if len(d.items) != 0 {
		t.Errorf("%d are left", len(d.items))
	}
}

// TestQueuesTakeTurns: items that inherit and items with an end of their own are removed in turn.
func TestQueuesTakeTurns(t *testing.T) {
	t.Parallel()
	d := newModelledTable(t)
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
	if removed := 4*bucketSize - d.t.byDefault.n; removed != 200 {
		t.Errorf("of 400 that were removed %d inherit", removed)
	}
}
