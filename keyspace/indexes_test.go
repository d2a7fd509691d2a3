package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/index"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/selection"
	"mayfly/test/drill"
)

func define(t *testing.T, pointers ...string) index.Definition {
	t.Helper()
	geo := pointers[len(pointers)-1] == GeoMark
	if geo {
		pointers = pointers[:len(pointers)-1]
	}
	d, err := index.Define(pointers, geo)
	drill.Check(t, err)
	return d
}

// stepDefinitions are the indexes that random steps create and drop.
var stepDefinitions = [][]string{{"/a"}, {"/a", "/b"}, {"/t/[]"}, {"/p", "geo"}, {"/_ts"}, {"/b", "/_ts", "/a"}}

// stepValues are values of members in random steps; "" is a missing one. Some are cut in keys.
var stepValues = []string{
	"", "null", "true", "1", "2.5", "-7", `"a"`, `"abcdefghij"`, `"abcdefghijk"`, "[1]", `{"x":1}`,
	`"` + strings.Repeat("y", 255) + `"`, `"` + strings.Repeat("y", 256) + `"`, `"` + strings.Repeat("y", 257) + `"`,
}

func stepDocument(random *rand.Rand) string {
	if random.IntN(10) == 0 { // no object
		return []string{"5", `"a"`, "null", "true", `[1,{"a":2}]`, ` [{"t":[1]}] `}[random.IntN(6)]
	}
	var members []string
	for _, name := range []string{"a", "b"} {
		if v := stepValues[random.IntN(len(stepValues))]; v != "" {
			members = append(members, `"`+name+`":`+v)
		}
	}
	if n := random.IntN(5); n > 0 {
		var elements []string
		for range n {
			elements = append(elements, stepValues[1+random.IntN(len(stepValues)-1)])
		}
		members = append(members, `"t":[`+strings.Join(elements, ",")+`]`)
	}
	switch random.IntN(6) {
	case 0, 1:
		members = append(members, fmt.Sprintf(`"p":{"type":"Point","coordinates":[%d,%d]}`, random.IntN(360)-180, random.IntN(180)-90))
	case 2:
		members = append(members, `"pad":"`+strings.Repeat("x", memtable.LargeBody)+`"`)
	}
	return "{" + strings.Join(members, ",") + "}"
}

// indexStep does random operations in a transaction, on items, containers and indexes.
func (o *opened) indexStep(random *rand.Rand, names []string, n int, end func(*Tx) LSN) {
	var tx Tx
	o.BeginAll(&tx)
	defer func() { o.Wait(end(&tx)) }()
	for range n {
		name := names[random.IntN(len(names))]
		c := tx.Container(name)
		if c == nil {
			tx.CreateContainer(name, expiry.TTL(random.IntN(9)+1), expiry.Strict)
			continue
		}
		id := fmt.Sprint("id-", random.IntN(60))
		own := []int64{expiry.Inherit, expiry.Never, tx.Now() + random.Int64N(9000), expiry.CapAt(tx.Now() + random.Int64N(9000))}[random.IntN(4)]
		switch kind := random.IntN(100); {
		case kind == 0:
			if !c.IsDatabase() {
				tx.Drop(c)
			}
		case kind == 1:
			tx.Flush(c)
		case kind < 4:
			if other := tx.Container(names[random.IntN(len(names))]); other != nil {
				tx.Swap(c, other)
			}
		case kind < 6:
			tx.SetPolicy(c, []expiry.TTL{expiry.Off, expiry.Forever, 1, 5}[random.IntN(4)], expiry.Strict)
		case kind == 6:
			tx.Count(c)
		case kind < 11:
			tx.CreateIndex(c, define(o.t, stepDefinitions[random.IntN(len(stepDefinitions))]...))
		case kind < 14:
			tx.DropIndex(c, define(o.t, stepDefinitions[random.IntN(len(stepDefinitions))]...))
		case kind < 24:
			tx.Delete(c, id)
		case kind < 30:
			tx.Get(c, id)
		case kind < 40: // a touch
			if it, ok := tx.Get(c, id); ok {
				tx.Put(c, id, it.Kind, it.Body, own)
			}
		case kind < 50: // a move or a copy
			if it, ok := tx.Get(c, id); ok {
				if kind < 45 {
					tx.Delete(c, id)
				}
				if to := tx.Container(names[random.IntN(len(names))]); to != nil {
					tx.Put(to, fmt.Sprint("id-", random.IntN(60)), it.Kind, it.Body, it.ExpireAt)
				}
			}
		case kind < 60:
			tx.Put(c, id, Plain, stepDocument(random), own)
		default:
			tx.Put(c, id, Document, stepDocument(random), own)
		}
	}
}

// TestIndexSteps does random steps. After them, and in between, the trees hold exactly the keys of the
// documents, and memory is counted to the byte: see Check.
func TestIndexSteps(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	random := rand.New(rand.NewPCG(seed, 12))
	o := open(t, func(opt *Options) { opt.Partitions = 3 })
	names := []string{"0", "1", "a", "b"}
	check := func() {
		t.Helper()
		if err := o.Check(); err != nil {
			t.Fatal("seed ", seed, ": ", err)
		}
	}
	for step := range drill.Pick(500, 1000, 100_000) {
		switch kind := random.IntN(200); {
		case kind < 120:
			o.indexStep(random, names, 1+random.IntN(8), (*Tx).Close)
		case kind < 140:
			o.indexStep(random, names, 1+random.IntN(60), (*Tx).Rollback)
		case kind < 150:
			o.PurgeOnce()
		case kind < 153:
			o.SetEviction(eviction.Options{Policy: eviction.AllKeysRandom, Samples: 5})
			o.Evict(o.Used()*9/10, func(*Container, string) {})
		case kind < 156:
			drill.Check(t, o.Save())
		case kind < 160:
			o.Clean()
		case kind < 164:
			o.BuildIndexes()
		case kind < 170: // as import does
			id := fmt.Sprint("id-", random.IntN(60))
			var tx Tx
			o.BeginKey(&tx, id)
			if c := tx.Container(names[random.IntN(4)]); c != nil {
				tx.Restore(c, id, Item{Kind: Document, Body: stepDocument(random), TS: tx.Now() - random.Int64N(3000), ExpireAt: expiry.Inherit})
			}
			tx.Close()
		case kind < 174:
			o.selectAll(names)
		case kind == 174 && random.IntN(4) == 0:
			o.reopen()
		default:
			o.clock.Advance(time.Duration(random.IntN(800)) * time.Millisecond)
		}
		if step%10 == 0 {
			check()
		}
	}
	o.BuildIndexes()
	check()
}

// selectAll reads all documents in the order of each index, which removes the dead that it meets.
func (o *opened) selectAll(names []string) {
	var tx Tx
	o.BeginSweep(&tx)
	defer tx.Close()
	for _, name := range names {
		c := tx.Container(name)
		if c == nil {
			continue
		}
		tx.Reader(c).Scan(func(selection.Slice) bool { return true })
		for _, ix := range c.Indexes() {
			p := selection.Plan{Index: ix}
			p.Spans = []index.Span{index.Everything()}
			if err := tx.Reader(c).Index(&p, selection.Place{}, func(selection.Slice, func(int) selection.Place) bool { return true }); err != nil && (err != selection.ErrIndexGone || ix.Ready()) {
				o.t.Error(err)
			}
		}
	}
}

// TestIndexBuilding builds indexes beside writers, while containers are dropped, flushed and swapped, and
// indexes dropped. At the end all indexes are ready and hold what is there.
func TestIndexBuilding(t *testing.T) {
	t.Parallel()
	seed := drill.Seed(t)
	o := open(t, func(opt *Options) { opt.Partitions = 4 })
	names := []string{"0", "1", "a"}
	o.policy("a", 3)
	random := rand.New(rand.NewPCG(seed, 1))
	var tx Tx
	o.BeginAll(&tx)
	for i := range 3000 {
		tx.Put(tx.Container(names[i%3]), fmt.Sprint("old-", i), Document, stepDocument(random), expiry.Inherit)
	}
	o.commit(&tx)
	stop := make(chan struct{})
	var writers, builders sync.WaitGroup
	for n := range uint64(3) {
		writers.Go(func() {
			random := rand.New(rand.NewPCG(seed, 2+n))
			var tx Tx
			for !drill.Done(stop) {
				id := fmt.Sprint([]string{"old-", "new-"}[random.IntN(2)], random.IntN(3000))
				o.BeginKey(&tx, id)
				if c := tx.Container(names[random.IntN(3)]); c != nil {
					if random.IntN(4) == 0 {
						tx.Delete(c, id)
					} else {
						tx.Put(c, id, Document, stepDocument(random), expiry.Inherit)
					}
				}
				tx.Close()
			}
		})
	}
	for range 2 { // besides the keyspace's own
		builders.Go(func() {
			for !drill.Done(stop) {
				o.BuildIndexes()
			}
		})
	}
	tick := time.NewTicker(100 * time.Microsecond)
	defer tick.Stop()
	rounds := drill.Pick(15, 30, 500)
	for round := range rounds {
		o.indexChange(random, names, round)
		if round%10 == 0 {
			o.clock.Advance(100 * time.Millisecond)
			o.PurgeOnce()
			if err := o.Check(); err != nil {
				t.Error("round ", round, ": ", err)
				break
			}
		}
		<-tick.C
	}
	close(stop)
	writers.Wait()
	builders.Wait()
	o.BuildIndexes()
	o.catalogueTx(func(tx *Tx) {
		for _, c := range tx.Containers() {
			for _, ix := range c.Indexes() {
				if !ix.Ready() {
					t.Errorf("%s of %s is not ready", ix.Definition.String(), c.Name())
				}
			}
		}
	})
	drill.Report(t, o.Check())
	// A keyspace closes while indexes are built.
	o.catalogueTx(func(tx *Tx) {
		c := tx.Container("1")
		for i := range 3000 {
			tx.Put(c, fmt.Sprint("old-", i), Document, stepDocument(random), expiry.Inherit)
		}
		for _, d := range stepDefinitions {
			tx.CreateIndex(c, define(t, d...))
		}
	})
}

// indexChange changes containers and indexes in one transaction, and rolls some of them back.
func (o *opened) indexChange(random *rand.Rand, names []string, round int) {
	var tx Tx
	o.BeginAll(&tx)
	c := tx.Container(names[random.IntN(3)])
	if c == nil {
		c = tx.CreateContainer("a", 3, expiry.Strict)
	}
	d := define(o.t, stepDefinitions[random.IntN(len(stepDefinitions))]...)
	switch kind := random.IntN(20); {
	case kind == 0 && !c.IsDatabase():
		tx.Drop(c)
	case kind == 1:
		tx.Flush(c)
	case kind < 6:
		if other := tx.Container(names[round%3]); other != nil {
			tx.Swap(c, other)
		}
	case kind < 10:
		tx.DropIndex(c, d)
	case kind == 10:
		for i := range 500 {
			tx.Put(c, fmt.Sprint("old-", i), Document, stepDocument(random), expiry.Inherit)
		}
	default:
		tx.CreateIndex(c, d)
	}
	if random.IntN(4) == 0 {
		tx.Rollback()
	} else {
		o.commit(&tx)
	}
}

// foundBefore is a container of which a builder has found other indexes first.
type foundBefore struct {
	indexed
	first []*Index
}

func (c *foundBefore) Indexes() []*Index {
	if found := c.first; found != nil {
		c.first = nil
		return found
	}
	return c.indexed.Indexes()
}

// TestSwapDuringBuild: an index that SWAPDB moves before it is built is not ready on either side.
func TestSwapDuringBuild(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 2 })
	for i := range 10 * 128 {
		o.put("0", fmt.Sprint(i), fmt.Sprintf(`{"a":%d}`, i), expiry.Inherit)
	}
	var ix *Index
	o.catalogueTx(func(tx *Tx) {
		c := tx.Container("0")
		tx.CreateIndex(c, define(t, "/a"))
		ix = c.Indexes()[0]
		tx.Swap(c, tx.Container("1"))
	})
	var c *Container
	o.catalogueTx(func(tx *Tx) { c = tx.Container("0") })
	list := []index.Container{&foundBefore{indexed{c, o.Keyspace}, []*Index{ix}}}
	index.NewBuilder(len(o.partitions), func() (found []index.Container) {
		found, list = list, nil
		return found
	}, o.Keyspace.stop).Build()
	drill.Report(t, o.Check())
	o.BuildIndexes()
	if !ix.Ready() {
		t.Error("the index is not ready")
	}
}

// TestCreateDuringBuild: an index that is being built goes on where it was when another is created.
func TestCreateDuringBuild(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	const items = 10 * 128
	for i := range items {
		o.put("0", fmt.Sprint(i), fmt.Sprintf(`{"a":%d}`, i), expiry.Inherit)
	}
	var ix *Index
	o.catalogueTx(func(tx *Tx) {
		c := tx.Container("0")
		tx.CreateIndex(c, define(t, "/a"))
		ix = c.Indexes()[0]
		if c.tables[0].Indexed.Build(ix) {
			t.Error("all was built at once")
		}
		tx.CreateIndex(c, define(t, "/b"))
	})
	o.BuildIndexes()
	drill.Report(t, o.Check())
	if n := ix.Built(); !ix.Ready() || n != items {
		t.Errorf("the builder has read %d items of %d", n, items)
	}
}

// TestRollbackOfIndexDrop: after a rollback a dropped index is built anew, with what the transaction has
// restored.
func TestRollbackOfIndexDrop(t *testing.T) {
	t.Parallel()
	o := open(t, func(opt *Options) { opt.Partitions = 1 })
	for i := range 500 {
		o.put("0", fmt.Sprint(i), `{"a":1}`, expiry.Inherit)
	}
	d := define(t, "/a")
	o.catalogueTx(func(tx *Tx) { tx.CreateIndex(tx.Container("0"), d) })
	o.BuildIndexes()
	var tx Tx
	o.BeginAll(&tx)
	c := tx.Container("0")
	ix := c.Indexes()[0]
	tx.Put(c, "7", Document, `{"a":2}`, expiry.Inherit)
	tx.DropIndex(c, d)
	tx.Put(c, "7", Document, `{"a":3}`, expiry.Inherit)
	tx.Delete(c, "8")
	tx.Rollback()
	o.BuildIndexes()
	drill.Report(t, o.Check())
	if list := c.Indexes(); len(list) != 1 || list[0] != ix || !ix.Ready() {
		t.Fatal("the index is not back")
	}
	o.BeginAll(&tx)
	defer tx.Close()
	if s := tx.IndexStats(c); s[0].Entries != 500 || s[0].Percent != 100 {
		t.Errorf("%+v", s)
	}
}

// TestSelectIndexKeepsDead: while the dead are kept (CLIENT PAUSE) a query by an index leaves them, and does
// not return them.
func TestSelectIndexKeepsDead(t *testing.T) {
	t.Parallel()
	o := open(t)
	d := define(t, "/a")
	o.catalogueTx(func(tx *Tx) { tx.CreateIndex(tx.Container("0"), d) })
	o.BuildIndexes()
	for i := range 100 {
		o.put("0", fmt.Sprint(i), `{"a":1}`, o.clock.Now()+1000)
	}
	o.clock.Advance(2 * time.Second)
	read := func() (dead, entries int) {
		var tx Tx
		o.BeginSweep(&tx)
		defer tx.Close()
		c := tx.Container("0")
		p := selection.Plan{Index: c.Indexes()[0]}
		p.Spans = []index.Span{index.Everything()}
		tx.Reader(c).Index(&p, selection.Place{}, func(s selection.Slice, _ func(int) selection.Place) bool {
			dead += s.Dead
			if len(s.Items) > 0 {
				t.Error("a dead item is found")
			}
			return true
		})
		return dead, tx.IndexStats(c)[0].Entries
	}
	o.KeepDeadUntil(o.clock.Now() + 1000)
	if dead, entries := read(); dead != 100 || entries != 100 {
		t.Errorf("while the dead are kept, %d are met, %d entries are left", dead, entries)
	}
	o.KeepDeadUntil(0)
	if dead, entries := read(); dead != 100 || entries != 0 {
		t.Errorf("%d are met, %d entries are left", dead, entries)
	}
}
