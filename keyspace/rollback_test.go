package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/expiry/clock"
	"mayfly/keyspace/elements"
	"mayfly/keyspace/memtable"
	"mayfly/test/drill"
)

// inside is the state of a keyspace that a rolled back transaction must leave as it was.
type inside struct {
	Items      map[place]Item
	Order      map[string][]ordered // by container and partition: the insertion orders
	Containers map[string]ContainerStats
	Numbers    map[string]uint32
	Histories  map[string]string
	Used       int64
	Marked     []bool // the watchers
}

type ordered struct {
	seq uint64
	id  string
}

func (o *opened) inside(watchers []*Watcher) inside {
	o.catalogueTx(func(tx *Tx) {
		for _, c := range tx.Containers() {
			tx.Count(c) // removes the dead, which may be in memory or not
		}
	})
	s := inside{
		Items: o.dump(), Order: make(map[string][]ordered), Containers: make(map[string]ContainerStats),
		Numbers: make(map[string]uint32), Histories: make(map[string]string), Used: o.Used(),
	}
	var tx Tx
	o.BeginAll(&tx)
	defer tx.Close()
	for _, c := range tx.Containers() {
		s.Containers[c.name] = tx.Stats(c)
		s.Numbers[c.name] = c.number
		s.Histories[c.name] = fmt.Sprint(c.Etag(), c.history.Load().Entries)
		for i, t := range c.tables {
			if t == nil {
				continue
			}
			at := fmt.Sprint(c.name, "/", i)
			t.Descend(0, func(seq uint64, e *memtable.Entry) bool {
				s.Order[at] = append(s.Order[at], ordered{seq, t.ID(e)})
				return true
			})
		}
	}
	for _, w := range watchers {
		s.Marked = append(s.Marked, w.Set() != nil && w.Set().Mark.IsSet())
	}
	return s
}

func (s inside) compare(t *testing.T, is inside) {
	t.Helper()
	compare(t, "after the rollback", s.Items, is.Items, nil)
	if !maps.EqualFunc(s.Order, is.Order, slices.Equal) {
		t.Errorf("the order was %v, is %v", s.Order, is.Order)
	}
	if !maps.Equal(s.Containers, is.Containers) || !maps.Equal(s.Numbers, is.Numbers) {
		t.Errorf("the containers were %v %v, are %v %v", s.Containers, s.Numbers, is.Containers, is.Numbers)
	}
	if !maps.Equal(s.Histories, is.Histories) {
		t.Errorf("the histories were %v, are %v", s.Histories, is.Histories)
	}
	if s.Used != is.Used {
		t.Errorf("%d bytes were used, %d are", s.Used, is.Used)
	}
	if !slices.Equal(s.Marked, is.Marked) {
		t.Errorf("the watchers were %v, are %v", s.Marked, is.Marked)
	}
}

// TestRollback rolls random transactions back, with others in between. Everything is as before, in memory
// and, after the next checkpoint, on disk.
func TestRollback(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 3, 100, func(t *testing.T, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 7))
		o := open(t, func(opt *Options) { opt.Partitions = 3 })
		names := []string{"a", "b", "c", "d"}
		o.policy("a", 5)
		o.policy("b", expiry.Off)
		var watchers []*Watcher
		for range 40 {
			for range random.IntN(40) { // removals leave holes, and close them
				o.inTx(random, names, 3, (*Tx).Close)
			}
			for len(watchers) < 10 {
				watchers = append(watchers, o.watch(names[random.IntN(2)], fmt.Sprint("id-", random.IntN(40))))
			}
			before := o.inside(watchers)
			o.inTx(random, names, 1+random.IntN(120), (*Tx).Rollback)
			before.compare(t, o.inside(watchers))
			drill.Check(t, o.Check())
			if random.IntN(5) == 0 { // as after a kill: nothing of it was journalled
				left := newDir(o.opt.FS)
				drill.Check(t, o.journal.CommitAll())
				o.storage.Lock() // no checkpoint removes a journal meanwhile
				copyFolder(t, o.opt.FS, o.opt.Dir, left)
				o.storage.Unlock()
				ks, err := Open(Options{FS: o.opt.FS, Dir: left, Clock: clock.NewManual(o.clock.Now()), NoPurge: true})
				drill.Check(t, err)
				killed := &opened{Keyspace: ks, t: t}
				compare(t, "after a kill", before.Items, killed.dump(), func(at place) bool {
					it, s := before.Items[at], before.Containers[at.container]
					return s.Policy.Dead(it.TS, it.ExpireAt, ks.Now()) // time goes on meanwhile
				})
				killed.stop()
			}
			if random.IntN(5) == 0 {
				drill.Check(t, o.Save())
			}
			if random.IntN(8) == 0 {
				for _, w := range watchers {
					o.Unwatch(w)
				}
				watchers = nil
				o.reopen()
			}
			if t.Failed() {
				t.Fatal("seed ", seed)
			}
			o.clock.Advance(3e8)
		}
		for _, w := range watchers {
			o.Unwatch(w)
		}
	})
}

func (o *opened) watch(container, id string) *Watcher {
	w := new(Watcher)
	var tx Tx
	o.BeginKey(&tx, id)
	if c := tx.Container(container); c != nil {
		tx.Watch(w, c, id)
	}
	o.commit(&tx)
	return w
}

// inTx does n random operations in a transaction and ends it.
func (o *opened) inTx(random *rand.Rand, names []string, n int, end func(*Tx) LSN) {
	var tx Tx
	o.BeginAll(&tx)
	defer func() {
		drill.Report(o.t, o.Wait(end(&tx)))
	}()
	for range n {
		name := names[random.IntN(len(names))]
		c := tx.Container(name)
		id := fmt.Sprint("id-", random.IntN(40))
		kind := random.IntN(40)
		if c == nil {
			tx.CreateContainer(name, expiry.TTL(random.IntN(9)+1), expiry.Strict)
			continue
		}
		switch {
		case kind == 0:
			tx.Drop(c)
		case kind == 1:
			tx.Flush(c)
		case kind == 2:
			if other := tx.Container(names[random.IntN(len(names))]); other != nil {
				tx.Swap(c, other)
			}
		case kind == 3:
			tx.SetPolicy(c, []expiry.TTL{expiry.Off, expiry.Forever, 1, 5}[random.IntN(4)], expiry.Strict)
		case kind == 4:
			tx.Count(c)
		case kind == 5:
			tx.RestoreContainer(ContainerRecord{Name: fmt.Sprint("new-", random.IntN(3)), Policy: expiry.Policy{Default: 3}, Created: 77})
		case kind < 18:
			tx.Delete(c, id)
		case kind < 22:
			tx.Get(c, id)
		default:
			own := []int64{expiry.Inherit, expiry.Never, tx.Now() + random.Int64N(9000), expiry.CapAt(tx.Now() + random.Int64N(9000))}[random.IntN(4)]
			body := fmt.Sprintf(`{"n":%0*d}`, random.IntN(300), n)
			switch random.IntN(6) {
			case 0:
				body = fmt.Sprintf(`{"n":%0*d}`, memtable.LargeBody-8+random.IntN(9), n)
			case 1, 2:
				if it, ok := tx.Get(c, id); ok {
					body = it.Body
				}
			}
			tx.Put(c, id, []Kind{Document, Plain}[random.IntN(2)], body, own)
		}
	}
}

// TestRollbackOfDeaths: an item that has died by the transaction's own rule lives after a rollback. Items
// dead before stay dead.
func TestRollbackOfDeaths(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.policy("c", expiry.Forever)
	o.put("c", "old", "{}", expiry.Inherit)
	o.clock.Advance(5e9)
	o.put("c", "ending", "{}", o.clock.Now()+1000)
	o.clock.Advance(2e9)
	for _, look := range []func(tx *Tx, c *Container){
		func(tx *Tx, c *Container) { tx.Get(c, "old") },
		func(tx *Tx, c *Container) { tx.Count(c) },
	} {
		var tx Tx
		o.BeginAll(&tx)
		c := tx.Container("c")
		tx.SetPolicy(c, 3, expiry.Strict)
		look(&tx, c)
		if _, ok := tx.Get(c, "old"); ok {
			t.Error("it lives")
		}
		tx.Rollback()
		if !o.lives("c", "old") || o.lives("c", "ending") || o.count("c") != 1 {
			t.Errorf("old lives: %v, ending: %v", o.lives("c", "old"), o.lives("c", "ending"))
		}
	}
}

// TestRollbackUsesVersionsUp: the versions of a rolled back transaction are not reused.
func TestRollbackUsesVersionsUp(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.put("0", "a", "{}", expiry.Inherit)
	var tx Tx
	o.BeginKey(&tx, "a")
	seen := tx.Put(tx.Container("0"), "a", Document, `{"n":1}`, expiry.Inherit).Version
	tx.Rollback()
	if it := o.put("0", "a", `{"n":2}`, expiry.Inherit); it.Version <= seen {
		t.Errorf("version %x was given to two states", it.Version)
	}
}

// TestFoundDeadAfterWrite: in a container that is off, a transaction overwrites an item with an end that has
// passed. Then it switches TTL on and finds the item dead. The overwritten item must not exist after a kill.
func TestFoundDeadAfterWrite(t *testing.T) {
	t.Parallel()
	for name, find := range map[string]func(*Tx, *Container){
		"get":   func(tx *Tx, c *Container) { tx.Get(c, "id") },
		"count": func(tx *Tx, c *Container) { tx.Count(c) },
	} {
		t.Run(name, func(t *testing.T) {
			o := open(t)
			o.policy("a", expiry.Off)
			o.put("a", "id", "old", expiry.Never)
			o.catalogueTx(func(tx *Tx) {
				c := tx.Container("a")
				tx.Put(c, "id", Plain, "new", tx.Now()-1)
				tx.SetPolicy(c, expiry.Forever, expiry.Strict)
				find(tx, c)
			})
			left := newDir(o.opt.FS)
			o.storage.Lock() // no checkpoint removes a journal meanwhile
			copyFolder(t, o.opt.FS, o.opt.Dir, left)
			o.storage.Unlock()
			ks, err := Open(Options{FS: o.opt.FS, Dir: left, Clock: clock.NewManual(o.clock.Now()), NoPurge: true})
			drill.Check(t, err)
			killed := &opened{Keyspace: ks, t: t}
			defer killed.stop()
			if it, ok := killed.get("a", "id"); ok {
				t.Errorf("after a kill there is %+v", it)
			}
		})
	}
}

// TestRollbackOfADropSetsTimers: the tables of a container with a log have timers again when its drop is
// taken back.
func TestRollbackOfADropSetsTimers(t *testing.T) {
	t.Parallel()
	for _, window := range []int64{0, 60} {
		o := open(t)
		drill.Check(t, o.SetUndoWindow(window))
		o.createLogged("jobs", 10)
		o.put("jobs", "a", "{}", expiry.Inherit)
		var tx Tx
		o.BeginAll(&tx)
		tx.Drop(tx.Container("jobs"))
		tx.Rollback()
		if err := o.Check(); err != nil {
			t.Errorf("window %d: %v", window, err)
		}
	}
}

// A rename whose second half is vetoed, or never comes, leaves the collection as it was. Within a partition
// both keys have it for a moment.
func TestRollbackOfARename(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.AllowCollections())
	o.policy("c", expiry.Forever)
	to := "to"
	for n := 0; o.partitionOf(to) != o.partitionOf("key"); n++ {
		to = fmt.Sprint("to-", n)
	}
	o.all(func(tx *Tx) {
		x, _ := tx.EditElements(tx.Container("c"), "key", ZSetKind)
		for n := range 500 {
			e := elements.Scored{Score: float64(n)}.Element()
			e.Field = fmt.Sprint("member-", n)
			x.Set(e)
		}
		x.Close()
	})
	o.all(func(tx *Tx) { tx.SetHold(tx.Container("c"), "case 4711") })
	for _, vetoed := range []bool{true, false} {
		var tx Tx
		o.BeginAll(&tx)
		c := tx.Container("c")
		tx.Move(c, "key", c, to, expiry.Inherit, false)
		if vetoed {
			tx.Remove(c, "key")
			if tx.Veto() == nil {
				t.Fatal("what is on hold is removed")
			}
		}
		tx.Rollback()
		tx.Close()
		o.PurgeOnce() // which removes the pages of collections without a key
		o.BeginAll(&tx)
		h, _, found := tx.Elements(tx.Container("c"), "key")
		if n := h.Len(); !found || n != 500 {
			t.Errorf("vetoed %v: %d elements are left, %v", vetoed, n, found)
		}
		tx.Close()
	}
}

// Two changes of a name are taken back, and that is taken back: what was dropped is set aside as before, with
// its items.
func TestRollbackOfTwoUndos(t *testing.T) {
	t.Parallel()
	o := open(t)
	drill.Check(t, o.SetUndoWindow(60))
	o.policy("a", expiry.Forever)
	o.put("a", "flushed", "{}", expiry.Inherit)
	o.catalogueTx(func(tx *Tx) { tx.Flush(tx.Container("a")) })
	o.put("a", "dead", "{}", o.clock.Now()+1000)
	o.catalogueTx(func(tx *Tx) { tx.Drop(tx.Container("a")) })
	o.clock.Advance(2 * time.Second)
	undo := func(tx *Tx) {
		t.Helper()
		if done, err := tx.Undo("a", ""); err != nil || done == nil {
			t.Fatalf("%+v, %v", done, err)
		}
	}
	var tx Tx
	o.BeginAll(&tx)
	undo(&tx)
	undo(&tx)
	tx.Rollback()
	drill.Check(t, o.Check())
	o.catalogueTx(undo)
	o.catalogueTx(undo)
	if _, ok := o.dump()[place{"a", "flushed"}]; !ok {
		t.Errorf("what lives is %v", o.dump())
	}
}
