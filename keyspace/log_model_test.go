package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/deathlog"
	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// logModel is what containers with logs should be: it moves items to the dead at once.
type logModel struct {
	*opened
	rand       *rand.Rand
	containers map[string]*loggedContainer
	serial     int
}

type loggedContainer struct {
	def     expiry.TTL
	since   int64                     // ms; the last change of the rule
	deletes bool                      // what is deleted is logged
	items   map[string]deathlog.Entry // that live, with what an entry of theirs would have
	died    map[uint64]deathlog.Entry // by etag
}

func newLogModel(t *testing.T, seed uint64) *logModel {
	m := &logModel{opened: open(t, func(o *Options) { o.Partitions = 4 }), rand: rand.New(rand.NewPCG(seed, 1)), containers: map[string]*loggedContainer{}}
	for _, name := range []string{"a", "b"} {
		m.containers[name] = &loggedContainer{def: 10, since: epoch, deletes: name == "b", items: map[string]deathlog.Entry{}, died: map[uint64]deathlog.Entry{}}
		m.all(func(tx *Tx) {
			c := tx.CreateContainer(name, 10, expiry.Strict)
			drill.Check(t, tx.SetLog(c, LogSettings{Seconds: int64(expiry.MaxTTL), MaxLen: 1 << 30, Bodies: true, Deletes: name == "b"}))
		})
	}
	return m
}

// settle lets items die whose end has come.
func (m *logModel) settle(c *loggedContainer) {
	now := m.Now()
	policy := expiry.Policy{Default: c.def}
	for id, e := range c.items {
		end, ok := policy.End(e.TS, e.Own)
		if !ok || end > now {
			continue
		}
		e.At, e.Cause = end, expiry.ByContainer
		if e.Own != expiry.Inherit {
			e.Cause = expiry.ByDocument
		}
		if end <= c.since {
			e.At, e.Cause = c.since, expiry.ByChange
		}
		c.died[e.Etag] = e
		delete(c.items, id)
	}
}

func (m *logModel) put(tx *Tx, name, id string) {
	m.serial++
	body := fmt.Sprintf(`{"n":%d}`, m.serial)
	own := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, tx.Now() + 1000 + m.rand.Int64N(20_000)}[m.rand.IntN(4)]
	it := tx.Put(tx.Container(name), id, Document, body, own)
	m.containers[name].items[id] = deathlog.Entry{Item: id, TS: it.TS, Own: own, Etag: it.Version, Kind: Document, Body: body, HasBody: true}
}

// step does something at random. With tx it happens there, and the model forgets it later.
func (m *logModel) step(tx *Tx) {
	names := []string{"a", "b"}
	name, id := names[m.rand.IntN(2)], fmt.Sprint("id", m.rand.IntN(40))
	c := m.containers[name]
	switch n := m.rand.IntN(100); {
	case n < 55:
		m.put(tx, name, id)
	case n < 65:
		_, lives := c.items[id]
		if tx.Delete(tx.Container(name), id) != lives {
			m.t.Fatalf("%s lives: %v", id, lives)
		}
		if e := c.items[id]; lives && c.deletes {
			e.At, e.Cause = tx.Now(), deathlog.Deleted
			c.died[e.Etag] = e
		}
		delete(c.items, id)
	case n < 75: // RENAME
		from := fmt.Sprint("id", m.rand.IntN(40))
		it, ok := tx.Get(tx.Container(name), from)
		if _, lives := c.items[from]; ok != lives {
			m.t.Fatalf("%s lives: %v", from, lives)
		}
		if ok && from != id {
			put := tx.Put(tx.Container(name), id, it.Kind, it.Body, it.ExpireAt)
			tx.Remove(tx.Container(name), from)
			e := c.items[from]
			e.Item, e.TS, e.Etag = id, put.TS, put.Version
			c.items[id] = e
			delete(c.items, from)
		}
	case n < 85:
		def := []expiry.TTL{expiry.Off, expiry.Forever, 2, 5, 10, 30}[m.rand.IntN(6)]
		if c.def != def {
			tx.SetPolicy(tx.Container(name), def, expiry.Strict)
			c.def, c.since = def, tx.Now()
			m.settle(c)
		}
	case n < 88:
		tx.Flush(tx.Container(name))
		clear(c.items)
	case n < 92:
		a, b := m.containers["a"], m.containers["b"]
		tx.Swap(tx.Container("a"), tx.Container("b"))
		a.items, b.items = b.items, a.items
		for _, c := range []*loggedContainer{a, b} {
			c.since = tx.Now()
			m.settle(c)
		}
	default:
		if n := tx.Count(tx.Container(name)); n != len(c.items) {
			m.t.Fatalf("%d items live in %s, not %d", n, name, len(c.items))
		}
	}
}

// check purges and compares the logs.
func (m *logModel) check() {
	m.t.Helper()
	m.purge.Drain(func() bool { return false })
	for name, c := range m.containers {
		list := m.logged(name)
		last, newest, seen := streamid.ID{}, map[string]int64{}, map[uint64]bool{}
		for _, e := range list {
			want, ok := c.died[e.Etag]
			if !ok || seen[e.Etag] || e.At < newest[e.Item] {
				m.t.Fatalf("%s logs %+v, which has not died, or twice, or in the wrong order", name, e)
			}
			if want.ID, want.Policy = e.ID, e.Policy; e != want || !last.Less(e.ID) || e.Policy == 0 {
				m.t.Fatalf("%s logs %+v\nwant %+v", name, e, want)
			}
			last, newest[e.Item], seen[e.Etag] = e.ID, e.At, true
		}
		s := m.state(name)
		if len(list) != len(c.died) || s.Length != int64(len(list)) || s.Added != s.Length {
			m.t.Fatalf("%s: %d died, %d are logged, the state is %+v", name, len(c.died), len(list), s)
		}
	}
}

// clone returns a copy of the model's containers.
func (m *logModel) clone() map[string]*loggedContainer {
	all := map[string]*loggedContainer{}
	for name, c := range m.containers {
		all[name] = &loggedContainer{c.def, c.since, c.deletes, maps.Clone(c.items), maps.Clone(c.died)}
	}
	return all
}

// TestLoggedIsWhatDied: under random writes, changes, clocks, rollbacks and restarts, what is logged is what
// has died by a rule, or was deleted if the log has that, exactly once, in order, at its true moment and by
// its true cause.
func TestLoggedIsWhatDied(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 4, 100, func(t *testing.T, seed uint64) {
		m := newLogModel(t, seed)
		for range 1500 {
			if m.rand.IntN(4) == 0 {
				m.elapse(m.rand.Int64N(4000))
				for _, c := range m.containers {
					m.settle(c)
				}
			}
			var tx Tx
			m.BeginAll(&tx)
			if m.rand.IntN(10) == 0 {
				before := m.clone()
				for range 1 + m.rand.IntN(5) {
					m.step(&tx)
				}
				tx.Rollback()
				m.containers = before
			} else {
				for range 1 + m.rand.IntN(3) {
					m.step(&tx)
				}
				m.commit(&tx)
			}
			switch m.rand.IntN(60) {
			case 0:
				m.reopen()
			case 1:
				m.PurgeOnce()
			case 2:
				m.check()
			case 3:
				drill.Check(t, m.Save())
			}
		}
		m.check()
		m.reopen()
		m.check()
	})
}

// TestUndoneDeathsAreNotLogged: a death that can be taken back is logged when it cannot any more, or when its
// id is written.
func TestUndoneDeathsAreNotLogged(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 4, 100, func(t *testing.T, seed uint64) {
		m := newLogModel(t, seed)
		drill.Check(t, m.SetUndoWindow(30))
		c := m.containers["a"]
		get := func(tx *Tx, id string) bool {
			_, ok := tx.Get(tx.Container("a"), id)
			return ok
		}
		certain := func(tx *Tx, id string) { // the item is about to be overwritten or deleted
			if e, ok := c.items[id]; ok && !get(tx, id) {
				c.died[e.Etag] = e
			}
			delete(c.items, id)
		}
		for range 800 {
			m.elapse(m.rand.Int64N(2000))
			var tx Tx
			m.BeginAll(&tx)
			before := m.clone()
			id := fmt.Sprint("id", m.rand.IntN(40))
			switch n := m.rand.IntN(20); {
			case n < 12:
				certain(&tx, id)
				m.put(&tx, "a", id)
			case n < 14:
				certain(&tx, id)
				tx.Delete(tx.Container("a"), id)
			case n < 17:
				tx.SetPolicy(tx.Container("a"), []expiry.TTL{expiry.Off, expiry.Forever, 2, 20, 60}[m.rand.IntN(5)], expiry.Strict)
			default:
				if _, err := tx.Undo("a", ""); err != nil && !nothingToUndo(err) {
					t.Fatal(err)
				}
			}
			if m.rand.IntN(10) == 0 {
				tx.Rollback()
				m.containers["a"].items, m.containers["a"].died = before["a"].items, before["a"].died
			} else {
				m.commit(&tx)
			}
			if m.rand.IntN(50) == 0 {
				m.reopen()
			}
			m.purge.Drain(func() bool { return false })
		}
		m.all(func(tx *Tx) { tx.SetPolicy(tx.Container("a"), expiry.Off, expiry.Strict) })
		m.elapse(31_000)
		m.purge.Drain(func() bool { return false })
		m.all(func(tx *Tx) {
			for _, id := range slices.Collect(maps.Keys(c.items)) {
				if e := c.items[id]; !get(tx, id) {
					c.died[e.Etag] = e
				}
			}
		})
		logged := map[uint64]bool{}
		for _, e := range m.logged("a") {
			if _, ok := c.died[e.Etag]; !ok || logged[e.Etag] {
				t.Errorf("logged, or twice: %+v", e)
			}
			logged[e.Etag] = true
		}
		if len(logged) != len(c.died) || len(logged) == 0 {
			t.Errorf("%d died, %d are logged", len(c.died), len(logged))
		}
	})
}

// TestNothingAppearsBehindACursor: readers at the tip of a log, beside all partitions that bury, see every
// entry.
func TestNothingAppearsBehindACursor(t *testing.T) {
	t.Parallel()
	o := open(t)
	o.createLogged("jobs", 1)
	n := drill.Pick(10_000, 10_000, 40_000)
	for i := range n {
		var tx Tx
		id := fmt.Sprint("id", i)
		o.BeginKey(&tx, id)
		tx.Put(tx.Container("jobs"), id, Document, `{}`, epoch+1+rand.Int64N(2000))
		tx.Close()
	}
	var purging, reading sync.WaitGroup
	var done atomic.Bool
	var tx Tx
	o.BeginNone(&tx)
	c := tx.Container("jobs")
	tx.Close()
	for t := range c.each {
		purging.Go(func() {
			for t.Stats().Items > 0 {
				o.clock.Advance(time.Millisecond)
				t.Sample(1 + rand.IntN(30))
			}
		})
	}
	read := make([][]streamid.ID, 3)
	for i := range read {
		reading.Go(func() {
			var tx Tx
			cursor := streamid.ID{}
			for last := false; ; {
				last = done.Load()
				from, _ := cursor.Next()
				o.BeginNone(&tx)
				count := 0
				tx.Deaths(c).Range(from, streamid.Max, false, func(e deathlog.Entry) bool {
					cursor = e.ID
					read[i] = append(read[i], e.ID)
					count++
					return count < 100
				})
				tx.Close()
				if last && count == 0 {
					return
				}
			}
		})
	}
	purging.Wait()
	done.Store(true)
	reading.Wait()
	list := o.logged("jobs")
	for i := range read {
		if len(read[i]) != n || len(list) != n {
			t.Fatalf("reader %d has read %d of %d", i, len(read[i]), len(list))
		}
		for at, e := range list {
			if read[i][at] != e.ID {
				t.Fatalf("entry %d is %v, reader %d has read %v", at, e.ID, i, read[i][at])
			}
		}
	}
}
