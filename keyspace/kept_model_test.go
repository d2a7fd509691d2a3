package keyspace

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"mayfly/expiry"
	"mayfly/keyspace/eviction"
	"mayfly/keyspace/index"
	"mayfly/keyspace/selection"
	"mayfly/test/drill"
)

// keptModel is a container in which policies may rule again, beside a model of it.
type keptModel struct {
	*opened
	random    *rand.Rand
	items     map[string]Item // all that are not purgeable, the dead among them
	policy    expiry.Policy
	retention expiry.Retention
}

func (m *keptModel) now() int64 { return m.clock.Now() }

// livingIDs returns the ids of the living items.
func (m *keptModel) livingIDs() (ids []string) {
	for id, it := range m.items {
		if !m.policy.Dead(it.TS, it.ExpireAt, m.now()) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// forget removes the purgeable items from the model.
func (m *keptModel) forget() {
	l := m.retention.Purgeable(&m.policy, m.now())
	maps.DeleteFunc(m.items, func(_ string, it Item) bool { return l.Select(it.TS, it.ExpireAt) })
}

// rule changes the policy and the retention of the container.
func (m *keptModel) rule(change func(c *Container, tx *Tx)) {
	m.catalogueTx(func(tx *Tx) {
		c := tx.Container("c")
		change(c, tx)
		c.retention = m.retention
		tx.recorded = append(tx.recorded, c) // as if the history had recorded it
		m.policy = *c.Policy()
	})
}

var keptDefaults = []expiry.TTL{expiry.Off, expiry.Forever, 1, 3, 10, 30, 100}

func (m *keptModel) step() {
	id := fmt.Sprint(m.random.IntN(60))
	now := m.now()
	switch m.random.IntN(22) {
	case 0, 1, 2, 3, 4, 5:
		end := []int64{expiry.Inherit, expiry.Inherit, expiry.Never, now + 1000*int64(1+m.random.IntN(40)), expiry.CapAt(now + 1000*int64(1+m.random.IntN(40)))}[m.random.IntN(5)]
		m.items[id] = m.put("c", id, fmt.Sprintf(`{"n":%d}`, m.random.IntN(5)), end)
	case 6:
		it, there := m.items[id]
		lived := there && !m.policy.Dead(it.TS, it.ExpireAt, now)
		if was := m.delete("c", id); was != lived {
			m.t.Fatalf("DEL %s: %v, want %v", id, was, lived)
		}
		if m.retention.Open(now) || lived {
			delete(m.items, id)
		}
	case 7, 8, 9:
		m.clock.Advance(time.Duration(m.random.IntN(4000)) * time.Millisecond)
	case 10:
		m.retention = append(slices.Clone(m.retention), expiry.Retained{Policy: m.policy, Until: now + int64(1+m.random.IntN(60))*1000})
		m.rule(func(c *Container, tx *Tx) {
			tx.SetPolicy(c, keptDefaults[m.random.IntN(len(keptDefaults))], expiry.Strict)
		})
	case 11: // the newest change is taken back
		last := len(m.retention) - 1
		if last < 0 || m.retention[last].Until <= now {
			return
		}
		before := m.retention[last].Policy
		m.retention = slices.Clone(m.retention[:last])
		m.rule(func(c *Container, tx *Tx) {
			tx.writeCatalogue()
			c.policy.Store(&before)
			tx.recordContainer(c)
		})
	case 12:
		m.retention = nil
		m.rule(func(*Container, *Tx) {})
	case 13: // an undone transaction leaves the dead where they lie
		var tx Tx
		m.BeginKey(&tx, id)
		c := tx.Container("c")
		tx.Put(c, id, Document, `{"n":9}`, expiry.Inherit)
		tx.Delete(c, id)
		if m.random.IntN(2) == 0 {
			tx.Put(c, id, Plain, `x`, expiry.Never)
		}
		tx.Rollback()
	case 14:
		m.PurgeOnce()
	case 15:
		m.restart()
	case 16:
		drill.Check(m.t, m.Save())
	case 17:
		m.watch(id)
	case 18:
		m.evictOne()
	case 19: // a write within one transaction that brings the id back, and removes it again
		var tx Tx
		m.BeginKey(&tx, id)
		c := tx.Container("c")
		tx.Put(c, id, Document, `{"n":1}`, expiry.Inherit)
		tx.Delete(c, id)
		m.commit(&tx)
		delete(m.items, id)
	default:
		m.compare()
	}
}

// restart opens the folder anew, or a copy of it as a kill leaves it. The test gives the container the
// retention again: it is not on disk.
func (m *keptModel) restart() {
	if m.random.IntN(2) == 0 {
		m.stop()
		m.start()
	} else {
		m.kill()
	}
	retention := m.retention
	m.rule(func(*Container, *Tx) { m.retention = retention })
}

// kill goes on with a copy of the folder, without a clean stop.
func (o *opened) kill() {
	o.t.Helper()
	drill.Check(o.t, o.Halt())
	dir := newDir(o.opt.FS)
	o.storage.Lock() // no file comes or goes meanwhile
	copyFolder(o.t, o.opt.FS, o.Dir(), dir)
	o.storage.Unlock()
	o.stop()
	o.opt.Dir = dir
	o.start()
}

// watch watches an item across a purge: that of an item that was dead before is no change.
func (m *keptModel) watch(id string) {
	var w Watcher
	var tx Tx
	m.BeginKey(&tx, id)
	tx.Watch(&w, tx.Container("c"), id)
	m.commit(&tx)
	it, there := m.items[id]
	lived := there && !m.policy.Dead(it.TS, it.ExpireAt, m.now())
	m.clock.Advance(time.Duration(m.random.IntN(2000)) * time.Millisecond)
	m.PurgeOnce()
	want := lived && m.policy.Dead(it.TS, it.ExpireAt, m.now())
	m.BeginKeys(&tx, w.IDs())
	if got := tx.Changed(&w); got != want {
		m.t.Fatalf("%s has changed: %v, want %v", id, got, want)
	}
	tx.Unwatch(&w)
	m.commit(&tx)
}

// evictOne evicts one living item, if there is one that may go.
func (m *keptModel) evictOne() {
	living := m.livingIDs()
	policies := []eviction.Policy{
		eviction.AllKeysLRU, eviction.AllKeysLFU, eviction.AllKeysRandom,
		eviction.VolatileLRU, eviction.VolatileLFU, eviction.VolatileRandom, eviction.VolatileTTL,
	}
	policy := policies[m.random.IntN(len(policies))]
	m.evictBy(policy)
	may := func(id string) bool {
		it := m.items[id]
		_, dies := m.policy.End(it.TS, it.ExpireAt)
		return dies || !policy.Volatile()
	}
	m.forget()
	m.count("c") // removes the purgeable: they are drawn as well, and make room
	ids, _ := m.evictAll(m.Used() - 1)
	for id := range ids {
		if !slices.Contains(living, id) || !may(id) {
			m.t.Fatalf("%s by %s was evicted of %v", id, policy, living)
		}
		delete(m.items, id)
	}
	if len(ids) == 0 && slices.ContainsFunc(living, may) {
		m.t.Fatalf("%s has evicted nothing of %v", policy, living)
	}
}

// compare compares all readers with the model.
func (m *keptModel) compare() {
	t, want := m.t, m.livingIDs()
	check := func(reader string, got []string) {
		t.Helper()
		slices.Sort(got)
		if !slices.Equal(got, want) {
			t.Fatalf("%s: %v, want %v", reader, got, want)
		}
	}
	var got []string
	for id, it := range m.items {
		if is, ok := m.get("c", id); ok {
			if it.Version != is.Version || it.TS != is.TS {
				t.Fatalf("%s is %+v, was %+v", id, is, it)
			}
			got = append(got, id)
		}
	}
	check("Get", got)
	if n := m.count("c"); n != len(want) {
		t.Fatalf("Count is %d, want %d", n, len(want))
	}
	var tx Tx
	m.BeginSweep(&tx)
	c := tx.Container("c")
	if s := tx.Stats(c); s.Documents != len(want) {
		t.Fatalf("Stats has %d documents, want %d", s.Documents, len(want))
	}
	if id, _, ok := tx.Random(c); ok != (len(want) > 0) || ok && !slices.Contains(want, id) {
		t.Fatalf("Random is %s, %v, of %v", id, ok, want)
	}
	got = nil
	tx.Scan(c, 0, 1<<30, func(id string, _ Item) { got = append(got, id) })
	check("Scan", got)
	got = nil
	tx.Reader(c).Scan(func(s selection.Slice) bool {
		for _, it := range s.Items {
			got = append(got, it.ID)
		}
		return true
	})
	check("Select", got)
	for _, ordered := range []bool{false, true} {
		p := selection.Plan{Index: c.Indexes()[0]}
		p.Spans, p.Ordered = []index.Span{index.Everything()}, ordered
		got = nil
		drill.Check(t, tx.Reader(c).Index(&p, selection.Place{}, func(s selection.Slice, _ func(int) selection.Place) bool {
			for _, it := range s.Items {
				got = append(got, it.ID)
			}
			return true
		}))
		check("SelectIndex", got)
		counted := 0
		p.Count, p.Proven = true, true
		if err := tx.Reader(c).Index(&p, selection.Place{}, func(s selection.Slice, _ func(int) selection.Place) bool {
			counted += s.Counted
			return true
		}); err != nil || counted != len(want) {
			t.Fatalf("%v: the index counts %d, want %d", err, counted, len(want))
		}
	}
	got = nil
	tx.Reader(c).Ends(selection.EndsRange{High: 1 << 60}, selection.EndPlace{}, func(s selection.Slice, _ func(int) selection.EndPlace) bool {
		for _, it := range s.Items {
			got = append(got, it.ID)
		}
		return true
	})
	want = slices.DeleteFunc(want, func(id string) bool {
		_, ok := m.policy.End(m.items[id].TS, m.items[id].ExpireAt)
		return !ok
	})
	check("SelectEnds", got)
	m.commit(&tx)
	m.compareMemory()
}

// compareMemory verifies that the dead stay while they may live again, and no longer.
func (m *keptModel) compareMemory() {
	m.forget()
	m.count("c")
	var tx Tx
	m.BeginAll(&tx)
	defer m.commit(&tx)
	c, held := tx.Container("c"), 0
	for _, t := range c.tables {
		if t != nil {
			held += t.Len()
		}
	}
	for id, it := range m.items {
		t := c.tables[m.partitionOf(id).Number]
		if t == nil || t.Find(id) == nil || t.Find(id).Version() != it.Version {
			m.t.Fatalf("%s is not in memory any more, but may live again", id)
		}
	}
	if held != len(m.items) {
		m.t.Fatalf("%d items are in memory, want %d", held, len(m.items))
	}
}

// TestKeptModel takes random steps in a container whose former policies may rule again, and compares all
// readers with a model after each.
func TestKeptModel(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 3, 5, 300, func(t *testing.T, seed uint64) {
		m := &keptModel{
			opened: open(t, func(o *Options) { o.Partitions = 1 + int(seed%3) }),
			random: rand.New(rand.NewPCG(seed, 7)), items: make(map[string]Item),
		}
		m.opened.policy("c", 30)
		m.catalogueTx(func(tx *Tx) { tx.CreateIndex(tx.Container("c"), define(t, "/n")) })
		m.BuildIndexes()
		m.rule(func(*Container, *Tx) {})
		for range 400 {
			m.step()
		}
		m.compare()
		m.clock.Advance(time.Hour)
		m.compare()
	})
}
