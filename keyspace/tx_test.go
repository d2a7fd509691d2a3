package keyspace

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

func TestPutGetDelete(t *testing.T) {
	t.Parallel()
	o := open(t)
	first := o.put("0", "a", `{"n":1}`, expiry.Inherit)
	if it, ok := o.get("0", "a"); !ok || it != first || it.Body != `{"n":1}` || it.TS != epoch {
		t.Fatalf("got %+v %v, want %+v", it, ok, first)
	}
	o.clock.Advance(time.Second)
	second := o.put("0", "a", `{"n":2}`, expiry.Inherit)
	if second.Version == first.Version || second.TS != epoch+1000 {
		t.Fatalf("overwritten: %+v after %+v", second, first)
	}
	if o.count("0") != 1 || o.count("1") != 0 {
		t.Fatal("counts are wrong")
	}
	if !o.delete("0", "a") || o.delete("0", "a") || o.lives("0", "a") {
		t.Fatal("delete")
	}
}

// TestTransactionNeedsLocks: a transaction panics at an item of a partition that it has not locked, whatever
// it has locked before.
func TestTransactionNeedsLocks(t *testing.T) {
	t.Parallel()
	o := open(t)
	const a = "a"
	b := ""
	for i := 0; b == "" || o.partitionOf(b) == o.partitionOf(a); i++ {
		b = fmt.Sprint("b", i)
	}
	var tx Tx
	mustPanic := func(id string) {
		t.Helper()
		defer func() {
			if recover() == nil {
				t.Errorf("%s can be read without its lock", id)
			}
		}()
		tx.Get(tx.Container("0"), id)
	}
	within := func(id string) {
		t.Helper()
		if _, found := tx.Get(tx.Container("0"), id); found {
			t.Errorf("%s is there", id)
		}
	}
	o.BeginKey(&tx, a)
	within(a)
	mustPanic(b)
	tx.Close()

	o.BeginKeys(&tx, []string{b, b + "{" + b + "}"})
	within(b)
	mustPanic(a)
	tx.Close()

	o.BeginKey(&tx, b)
	within(b)
	mustPanic(a)
	tx.Put(tx.Container("0"), b, Plain, "", expiry.Inherit)
	o.commit(&tx)

	o.BeginKeys(&tx, []string{a, b})
	within(a)
	if _, found := tx.Get(tx.Container("0"), b); !found {
		t.Error(b, "is not there")
	}
	tx.Close()
}

func TestStoredValuesAreCopied(t *testing.T) {
	t.Parallel()
	o := open(t)
	buffer := []byte("id-and-body")
	o.put("0", record.View(buffer[:2]), record.View(buffer[7:]), expiry.Inherit)
	copy(buffer, "###########")
	if it, ok := o.get("0", "id"); !ok || it.Body != "body" {
		t.Fatalf("got %+v %v", it, ok)
	}
}

func TestCountOmitsTheDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 10)
	o.putFor("c", "own", 5)
	o.put("c", "default", "{}", expiry.Inherit)
	o.put("c", "never", "{}", expiry.Never)
	for _, step := range []struct {
		at   int64
		want int
	}{{0, 3}, {4999, 3}, {5000, 2}, {9999, 2}, {10_000, 1}, {1 << 40, 1}} {
		o.clock.Raise(epoch + step.at)
		if n := o.count("c"); n != step.want {
			t.Errorf("at %d ms %d are counted, want %d", step.at, n, step.want)
		}
	}
}

func TestNewDefaultAppliesAtOnce(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.put("c", "old", "{}", expiry.Inherit)
	o.clock.Advance(20 * time.Second)
	o.put("c", "young", "{}", expiry.Inherit)
	o.policy("c", 10)
	if o.lives("c", "old") || !o.lives("c", "young") || o.count("c") != 1 {
		t.Fatal("a new default does not apply to earlier writes")
	}
	o.policy("c", 1000)
	if o.lives("c", "old") || o.count("c") != 1 {
		t.Fatal("a dead item lives again under a longer default")
	}
	o.policy("c", expiry.Off)
	o.reopen()
	if o.lives("c", "old") || o.count("c") != 1 {
		t.Fatal("a dead item lives again after a restart")
	}
}

// TestDropLeavesTheStores: the next checkpoint deletes a dropped container's items from the stores, also
// those that the last one has captured.
func TestDropLeavesTheStores(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	fill := func(name string) {
		o.policy(name, expiry.Forever)
		for n := range 20 {
			o.put(name, fmt.Sprint(n), "{}", expiry.Inherit)
		}
	}
	drop := func(name string, stored bool) {
		t.Helper()
		var tx Tx
		o.BeginAll(&tx)
		before := len(o.catalogue.dropped)
		tx.Drop(tx.Container(name))
		if is := len(o.catalogue.dropped) > before; is != stored {
			t.Errorf("the stores have items of %s: %v", name, is)
		}
		tx.Close()
	}
	fill("old")
	drill.Check(t, o.Save())
	fill("young")
	drop("old", true)
	drop("young", false)
	drill.Check(t, o.Save())
	for _, p := range o.partitions {
		if got := storedItems(t, o.opt.FS, o.storage.Store(p.Number)); len(got) > 0 {
			t.Errorf("partition %d holds %v", p.Number, got)
		}
	}
}

func TestDropAndFlush(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", 60)
	for i := range 100 {
		o.put("c", fmt.Sprint(i), "{}", expiry.Inherit)
	}
	o.reopen() // the stores have them then
	o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("c")) })
	o.put("c", "after", "{}", expiry.Inherit)
	if o.count("c") != 1 || o.lives("c", "1") {
		t.Fatal("flush")
	}
	o.reopen()
	if o.count("c") != 1 {
		t.Fatal("flushed items exist again")
	}
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("c")) })
	o.reopen()
	o.catalogueTx(func(tx *Tx) {
		if tx.Container("c") != nil {
			t.Error("dropped container came back")
		}
		if c := tx.CreateContainer("c", expiry.Off, expiry.Strict); tx.Count(c) != 0 {
			t.Error("a new container begins with items of a dropped one")
		}
	})
}

func TestScanVisitsEachOnce(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 3, 5, 400, func(t *testing.T, seed uint64) {
		o := open(t, func(opt *Options) { opt.Partitions = 4 })
		r := rand.New(rand.NewPCG(seed, 1))
		resident := make(map[string]int)
		for i := range 300 {
			id := fmt.Sprint("stay-", i)
			o.put("0", id, "{}", expiry.Inherit)
			resident[id] = 0
			o.put("0", fmt.Sprint("go-", i), "{}", expiry.Inherit)
		}
		seen := make(map[string]int)
		var tx Tx
		for cursor, rounds := uint64(0), 0; ; rounds++ {
			o.BeginSweep(&tx)
			cursor = tx.Scan(tx.Container("0"), cursor, 1+r.IntN(20), func(id string, _ Item) { seen[id]++ })
			o.commit(&tx)
			if cursor == 0 {
				break
			}
			if rounds > 5000 {
				t.Fatal("the scan does not end while items are added")
			}
			for range 10 {
				n := r.IntN(300)
				switch r.IntN(3) {
				case 0:
					o.put("0", fmt.Sprint("new-", rounds, "-", n), "{}", expiry.Inherit)
				case 1:
					o.delete("0", fmt.Sprint("go-", n))
				case 2:
					o.put("0", fmt.Sprint("stay-", n), `{"again":true}`, expiry.Inherit)
				}
			}
		}
		for id := range resident {
			if seen[id] != 1 {
				t.Fatalf("seed %d: %s lived throughout and was visited %d times", seed, id, seen[id])
			}
		}
	})
}

func TestRandom(t *testing.T) {
	t.Parallel()
	o := open(t)
	draw := func() (id string, ok bool) {
		var tx Tx
		o.BeginSweep(&tx)
		id, _, ok = tx.Random(tx.Container("0"))
		o.commit(&tx)
		return id, ok
	}
	if _, ok := draw(); ok {
		t.Fatal("an empty container has a random item")
	}
	for i := range 20 {
		o.put("0", fmt.Sprint("keep-", i), "{}", expiry.Inherit)
	}
	for i := range 200 {
		o.putFor("0", fmt.Sprint("die-", i), 1)
	}
	o.clock.Advance(time.Second)
	seen := make(map[string]bool)
	for range 2000 {
		id, ok := draw()
		if !ok || id[:4] != "keep" {
			t.Fatalf("drew %q %v", id, ok)
		}
		seen[id] = true
	}
	if len(seen) != 20 {
		t.Fatalf("only %d of 20 were ever drawn", len(seen))
	}
}

// TestAgainstModel compares random histories with a naive model of the rules in docs/ttl.md. The model
// remembers everything and knows of each item whether it has ever been dead.
func TestAgainstModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 4, 6, 600, func(t *testing.T, seed uint64) { playAgainstModel(t, seed) })
}

type modelItem struct {
	ts, own int64
	dead    bool
	body    string
}

func playAgainstModel(t *testing.T, seed uint64) {
	o := open(t, func(opt *Options) { opt.Partitions = 1 + int(seed%5) })
	r := rand.New(rand.NewPCG(seed, 2))
	def := expiry.Forever
	o.policy("c", def)
	model := make(map[string]*modelItem)
	// markDead marks what is dead under the policy in force. It is called after every step, so it misses no
	// item that was dead for a moment.
	markDead := func() {
		now := o.clock.Now()
		for _, it := range model {
			switch {
			case def == expiry.Off || it.own == expiry.Never:
			case it.own <= expiry.Inherit:
				it.dead = it.dead || it.own < expiry.Never && -it.own <= now || def > 0 && it.ts+int64(def)*1000 <= now
			default:
				it.dead = it.dead || it.own <= now
			}
		}
	}
	living := func() (ids []string) {
		for id, it := range model {
			if !it.dead {
				ids = append(ids, id)
			}
		}
		return ids
	}
	for step := range 400 {
		id := fmt.Sprint("id-", r.IntN(40))
		switch r.IntN(12) {
		case 0, 1, 2, 3:
			own := [...]int64{expiry.Inherit, expiry.Never, expiry.ExpireAt(o.clock.Now(), expiry.TTL(1+r.IntN(20))), expiry.CapAt(o.clock.Now() + 1 + r.Int64N(20_000))}[r.IntN(4)]
			body := fmt.Sprintf(`{"step":%d}`, step)
			o.put("c", id, body, own)
			model[id] = &modelItem{ts: o.clock.Now(), own: own, body: body}
		case 4:
			it := model[id]
			if o.delete("c", id) != (it != nil && !it.dead) {
				t.Fatalf("step %d: delete of %s disagrees with the model", step, id)
			}
			delete(model, id)
		case 5, 6:
			o.clock.Advance(time.Duration(r.IntN(4000)) * time.Millisecond)
		case 7:
			def = [...]expiry.TTL{expiry.Off, expiry.Forever, expiry.TTL(1 + r.IntN(15))}[r.IntN(3)]
			o.policy("c", def)
		case 8:
			o.PurgeOnce()
		case 9:
			if r.IntN(10) == 0 {
				o.reopen()
			}
		case 10:
			if n := o.count("c"); n != len(living()) {
				t.Fatalf("step %d: %d are counted, %d live", step, n, len(living()))
			}
		case 11:
			it := model[id]
			got, ok := o.get("c", id)
			if ok != (it != nil && !it.dead) || ok && got.Body != it.body {
				t.Fatalf("step %d: %s is %+v %v, the model says %+v", step, id, got, ok, it)
			}
		}
		markDead()
	}
	var scanned []string
	for at := range o.dump() {
		if at.container == "c" {
			scanned = append(scanned, at.id)
		}
	}
	want := living()
	slices.Sort(want)
	slices.Sort(scanned)
	if !slices.Equal(want, scanned) {
		t.Fatalf("the scan visits %v, the model has %v", scanned, want)
	}
}

// TestVersionsAreNotReused: a version is never reused, even if nothing is left of its item when the server
// starts.
func TestVersionsAreNotReused(t *testing.T) {
	t.Parallel()
	o := open(t)
	used := make(map[uint64]bool)
	for range 3 {
		for range 3 {
			it := o.put("0", "k", "{}", expiry.Inherit)
			if used[it.Version] {
				t.Fatalf("version %x is reused", it.Version)
			}
			used[it.Version] = true
		}
		o.delete("0", "k")
		o.reopen()
	}
}

// TestCountAndRandomAreOfOneMoment: an item that moves between partitions is counted once and always drawn.
func TestCountAndRandomAreOfOneMoment(t *testing.T) {
	t.Parallel()
	o := open(t)
	ids := []string{"", ""} // in the first partition and in the last
	for i := 0; ids[0] == "" || ids[1] == ""; i++ {
		id := fmt.Sprint(i)
		switch o.partitionOf(id).Number {
		case 0:
			ids[0] = id
		case len(o.partitions) - 1:
			ids[1] = id
		}
	}
	o.put("0", ids[0], "{}", expiry.Inherit)
	stop := make(chan struct{})
	var mover sync.WaitGroup
	mover.Go(func() {
		var tx Tx
		for from := 0; !drill.Done(stop); from = 1 - from {
			o.BeginKeys(&tx, ids)
			tx.Put(tx.Container("0"), ids[1-from], Document, "{}", expiry.Inherit)
			tx.Delete(tx.Container("0"), ids[from])
			tx.Close()
		}
	})
	for range drill.Pick(5000, 5000, 20_000) {
		var tx Tx
		o.BeginSweep(&tx)
		c := tx.Container("0")
		n, documents := tx.Count(c), tx.Stats(c).Documents
		_, _, drawn := tx.Random(c)
		tx.Close()
		if n != 1 || documents != 1 || !drawn {
			t.Errorf("%d are counted, %d in the figures, drawn: %v", n, documents, drawn)
			break
		}
	}
	close(stop)
	mover.Wait()
}

// TestChangesHoldTheLastStateOnly: the journal does not get the states of an item within a transaction.
func TestChangesHoldTheLastStateOnly(t *testing.T) {
	t.Parallel()
	o := open(t)
	var tx Tx
	o.BeginKeys(&tx, []string{"a", "b"})
	c := tx.Container("0")
	for i := range 1000 {
		tx.Put(c, "a", Plain, fmt.Sprint(i), expiry.Inherit)
	}
	tx.Put(c, "b", Plain, "gone", expiry.Inherit)
	tx.Delete(c, "b")
	before := o.journal.Waiting()
	tx.Close()
	if size := o.journal.Waiting() - before; size > 200 {
		t.Errorf("the changes have %d bytes", size)
	}
	if it, ok := o.get("0", "a"); !ok || it.Body != "999" {
		t.Errorf("%+v %v", it, ok)
	}
	o.reopen() // compares
}

// TestMicros: Micros goes on within a transaction, Now does not. No start is before either.
func TestMicros(t *testing.T) {
	t.Parallel()
	var passed atomic.Int64 // ns
	clock := clock.SystemReading(0, func() (wall, mono int64) { return epoch*1e6 + passed.Load(), passed.Load() },
		func(d time.Duration) { passed.Add(int64(d)) })
	o := open(t, func(opt *Options) { opt.Clock = clock })
	var tx Tx
	for _, step := range []int64{1_500, 999_000, 1_000, 5_000_000_000, 250} { // ns
		passed.Add(step)
		o.BeginNone(&tx)
		now := tx.Now()
		for range 2 {
			passed.Add(2_000_400)
			if got, want := tx.Micros(), epoch*1000+passed.Load()/1000; got != want || tx.Now() != now {
				t.Errorf("it is %d µs, want %d; for items %d, was %d", got, want, tx.Now(), now)
			}
		}
		last := tx.Micros()
		o.commit(&tx)
		if leased := o.lease.End(); leased*1000 < last {
			t.Errorf("Micros returned %d µs, the clock is leased to %d ms", last, leased)
		}
	}
}
