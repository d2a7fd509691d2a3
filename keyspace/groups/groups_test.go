package groups

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"mayfly/keyspace/streamid"
	"mayfly/test/drill"
)

// model is a group in the simplest form.
type model struct {
	last    streamid.ID
	read    int64
	seen    map[string]int64
	pending map[streamid.ID]modelEntry
}

type modelEntry struct {
	consumer    string
	time, count int64
}

func newModel() *model {
	return &model{read: Unknown, seen: map[string]int64{}, pending: map[streamid.ID]modelEntry{}}
}

// describe returns the state of a group as text.
func describe(g *Group) string {
	var b strings.Builder
	fmt.Fprintf(&b, "last %v read %d pending %d consumers %d\n", g.Last(), g.Read(), g.Len(), g.ConsumersLen())
	for c := range g.Consumers() {
		fmt.Fprintf(&b, "%q seen %d:", c.Name(), c.Seen())
		n := 0
		for e := range c.From(streamid.ID{}) {
			fmt.Fprintf(&b, " %v", e.ID)
			n++
			if e.Consumer() != c.Name() || g.Pending(e.ID) != e {
				fmt.Fprintf(&b, " (of %q)", e.Consumer())
			}
		}
		if n != c.Len() {
			fmt.Fprintf(&b, " (counts %d)", c.Len())
		}
		b.WriteByte('\n')
	}
	for e := range g.From(streamid.ID{}) {
		fmt.Fprintf(&b, "%v %q %d %d\n", e.ID, e.Consumer(), e.Time, e.Count)
	}
	b.WriteString("by time:")
	for e := range g.Oldest(math.MinInt64, streamid.ID{}) {
		fmt.Fprintf(&b, " %v", e.ID)
	}
	return b.String()
}

// describe is describe of a group in the same state.
func (m *model) describe() string {
	var b strings.Builder
	fmt.Fprintf(&b, "last %v read %d pending %d consumers %d\n", m.last, m.read, len(m.pending), len(m.seen))
	ids := slices.SortedFunc(maps.Keys(m.pending), streamid.ID.Compare)
	for _, name := range slices.Sorted(maps.Keys(m.seen)) {
		fmt.Fprintf(&b, "%q seen %d:", name, m.seen[name])
		for _, id := range ids {
			if m.pending[id].consumer == name {
				fmt.Fprintf(&b, " %v", id)
			}
		}
		b.WriteByte('\n')
	}
	for _, id := range ids {
		e := m.pending[id]
		fmt.Fprintf(&b, "%v %q %d %d\n", id, e.consumer, e.time, e.count)
	}
	slices.SortStableFunc(ids, func(a, b streamid.ID) int { return cmp.Compare(m.pending[a].time, m.pending[b].time) })
	b.WriteString("by time:")
	for _, id := range ids {
		fmt.Fprintf(&b, " %v", id)
	}
	return b.String()
}

func itemsOf(g *Group) map[string]string { return maps.Collect(g.Items()) }

// apply applies changes to items, and reports former bodies that were not there.
func apply(t *testing.T, items map[string]string, list []Change) {
	t.Helper()
	for _, c := range list {
		former, existed := items[c.Item]
		if existed != c.Existed || former != c.Former {
			t.Fatalf("%+v: the item was %q, %v", c, former, existed)
		}
		if c.Deleted {
			delete(items, c.Item)
		} else {
			items[c.Item] = c.Body
		}
	}
}

var someConsumers = []string{"", "a", "b b", "c\x00\xff", "last"}

// step does a random operation on both.
func step(t *testing.T, random *rand.Rand, g *Group, b *Changes, m *model, now int64) {
	t.Helper()
	name := someConsumers[random.IntN(len(someConsumers))]
	id := func() streamid.ID { return streamid.ID{Ms: 1 + random.Uint64N(8), Seq: random.Uint64N(3)} }
	switch random.IntN(8) {
	case 0:
		_, there := m.seen[name]
		if b.CreateConsumer(name, now) == there {
			t.Fatalf("CreateConsumer(%q) returns %v", name, !there)
		}
		if !there {
			m.seen[name] = now
		}
	case 1:
		want := 0
		for id, e := range m.pending {
			if e.consumer == name {
				delete(m.pending, id)
				want++
			}
		}
		delete(m.seen, name)
		if n := b.DeleteConsumer(name); n != want {
			t.Fatalf("DeleteConsumer(%q) returns %d, want %d", name, n, want)
		}
	case 2, 3:
		ids := []streamid.ID{id(), id(), id()}
		slices.SortFunc(ids, streamid.ID.Compare)
		ids = slices.Compact(ids)
		s := &Stream{Added: 24, Length: 24, First: streamid.ID{Ms: 1}, Last: streamid.ID{Ms: 9}}
		noAck := random.IntN(4) == 0
		b.Deliver(s, ids, name, now, noAck)
		m.seen[name] = now
		for _, id := range ids {
			if m.last.Less(id) {
				m.last = id
				if m.read++; m.read == 0 { // was unknown
					m.read = s.distance(id)
				}
			}
			if !noAck {
				m.pending[id] = modelEntry{name, now, 1}
			}
		}
	case 4:
		ids := []streamid.ID{id(), id()}
		want := 0
		for _, id := range ids {
			if _, ok := m.pending[id]; ok {
				want++
			}
			delete(m.pending, id)
		}
		if n := b.Ack(ids); n != want {
			t.Fatalf("Ack(%v) returns %d, want %d", ids, n, want)
		}
	case 5:
		how := Claim{
			Consumer: name, Now: now, MinIdle: random.Int64N(4), Time: now - random.Int64N(3), Count: random.Int64N(4) - 1,
			KeepCount: random.IntN(2) == 0, Force: random.IntN(2) == 0,
		}
		id := id()
		e, there := m.pending[id]
		want := there && (how.MinIdle == 0 || now-e.time >= how.MinIdle) || !there && how.Force
		if !there {
			e.count = 1
		}
		if got := b.Claim(id, &how); got != want {
			t.Fatalf("Claim(%v, %+v) returns %v, want %v", id, how, got, want)
		}
		if want {
			m.seen[name] = now
			if how.Count >= 0 {
				e.count = how.Count
			} else if !how.KeepCount {
				e.count++
			}
			m.pending[id] = modelEntry{name, how.Time, e.count}
		}
	case 6:
		m.last, m.read = id(), random.Int64N(5)-1
		b.SetID(m.last, m.read)
	case 7:
		ids := []streamid.ID{id(), id(), id()}
		for _, id := range ids {
			if e, ok := m.pending[id]; ok {
				e.time, e.count = now, e.count+1
				m.pending[id] = e
			}
		}
		b.Redeliver(ids, now)
	}
}

// TestModel compares a group with the simplest one, its changes with its items, and a rolled back group with
// the one before.
func TestModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 1))
		g, m := New(streamid.ID{}, Unknown), newModel()
		items := itemsOf(g)
		for now := range int64(150) {
			before, memory := describe(g), g.Memory()
			b := Begin(g)
			if random.IntN(3) == 0 { // taken back
				for range 1 + random.IntN(4) {
					copied := &model{m.last, m.read, maps.Clone(m.seen), maps.Clone(m.pending)}
					*copied = model{g.Last(), g.Read(), map[string]int64{}, map[streamid.ID]modelEntry{}}
					for c := range g.Consumers() {
						copied.seen[c.Name()] = c.Seen()
					}
					for e := range g.From(streamid.ID{}) {
						copied.pending[e.ID] = modelEntry{e.Consumer(), e.Time, e.Count}
					}
					step(t, random, g, b, copied, now)
				}
				b.Rollback(0)
				if after := describe(g); after != before || g.Memory() != memory {
					t.Fatalf("seed %d: a rollback leaves\n%s%d bytes, want\n%s%d bytes", seed, after, g.Memory(), before, memory)
				}
			}
			step(t, random, g, b, m, now)
			if got, want := describe(g), m.describe(); got != want {
				t.Fatalf("seed %d, step %d: got\n%s\nwant\n%s", seed, now, got, want)
			}
			apply(t, items, b.List)
			if !maps.Equal(items, itemsOf(g)) {
				t.Fatalf("seed %d: the changes make %q, the group is %q", seed, items, itemsOf(g))
			}
		}
		loaded, err := Load(maps.All(items))
		drill.Check(t, err)
		if got, want := describe(loaded), describe(g); got != want || loaded.Memory() != g.Memory() {
			t.Fatalf("seed %d: loaded\n%s%d bytes\nwant\n%s%d bytes", seed, got, loaded.Memory(), want, g.Memory())
		}
	}
}

// TestDropSome removes the pending entries of a consumer in pieces.
func TestDropSome(t *testing.T) {
	t.Parallel()
	g := New(streamid.ID{}, 0)
	b := Begin(g)
	var ids []streamid.ID
	for i := range uint64(25) {
		ids = append(ids, streamid.ID{Ms: i + 1})
	}
	b.Deliver(&Stream{Added: 25, Length: 25, Last: ids[24]}, ids, "w", 5, false)
	for _, want := range []int{10, 10, 5, 0} {
		if n := b.DropSome(g.Consumer("w"), 10); n != want {
			t.Fatalf("removed %d, want %d", n, want)
		}
	}
	if g.Len() != 0 || g.Consumer("w") == nil {
		t.Errorf("left: %s", describe(g))
	}
}

// TestLag checks the cases of which Redis can tell the lag, and those of which it cannot.
func TestLag(t *testing.T) {
	t.Parallel()
	id := func(ms uint64) streamid.ID { return streamid.ID{Ms: ms} }
	ten := Stream{Added: 10, Length: 10, First: id(1), Last: id(10)}
	trimmed := Stream{Added: 10, Length: 5, First: id(6), Last: id(10)}
	holed := Stream{Added: 10, Length: 9, First: id(1), Last: id(10), MaxDeleted: id(5)}
	empty := Stream{Added: 10, Last: id(10)}
	for _, c := range []struct {
		s    Stream
		last uint64
		read int64
		want int64 // -1: unknown
	}{
		{Stream{}, 7, Unknown, 0},
		{ten, 0, Unknown, 10},
		{ten, 0, 0, 10},
		{ten, 3, 3, 7},
		{ten, 3, Unknown, -1},
		{ten, 1, Unknown, 9},
		{ten, 10, Unknown, 0},
		{ten, 11, Unknown, -1},
		{trimmed, 3, Unknown, 5},
		{trimmed, 6, Unknown, 4},
		{holed, 3, 3, -1},
		{holed, 6, 6, 4},
		{holed, 10, Unknown, 0},
		{empty, 3, Unknown, 0},
		{empty, 11, Unknown, -1},
	} {
		got, ok := New(id(c.last), c.read).Lag(&c.s)
		if !ok {
			got = -1
		}
		if got != c.want {
			t.Errorf("lag of %+v after %d with %d read: %d, want %d", c.s, c.last, c.read, got, c.want)
		}
	}
}

// TestLoadErrors names the item that cannot be read.
func TestLoadErrors(t *testing.T) {
	t.Parallel()
	for item, body := range map[string]string{
		"last":      "1-0 2",
		"{g}last":   "1-0",
		"{g}last ":  "1-0 2",
		"{g}c:w":    "",
		"{g}01-0":   "1 1 w",
		"{g}1-0":    "1 1",
		"{g}2-0":    "1 01 w",
		"{g}3-0":    "x 1 w",
		"{g}":       "1 1 w",
		"{g}+1-0":   "1 1 w",
		"{g}1-0 ":   "1 1 w",
		"{g}c:\xff": "+1",
	} {
		_, err := Load(maps.All(map[string]string{item: body}))
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("%q", item)) {
			t.Errorf("%q = %q: %v", item, body, err)
		}
	}
	g, err := Load(maps.All(map[string]string{"{g}c:w": "1"}))
	if err != nil || !g.Last().IsZero() || g.Read() != Unknown {
		t.Errorf("without the last delivered id: %v, %s", err, describe(g))
	}
}

// FuzzLoad loads items from text, one a line with a tab between id and body. What is loaded has the same
// items.
func FuzzLoad(f *testing.F) {
	f.Add("{g}last\t1-0 2\n{g}c:w\t5\n{g}1-0\t5 1 w")
	f.Add("{g}last\t1-0 -1\n{g}18446744073709551615-0\t-5 9223372036854775807 a b")
	f.Add("{g}last\t1 2\n{g}c:\t0")
	f.Fuzz(func(t *testing.T, text string) {
		items := map[string]string{}
		for line := range strings.Lines(text) {
			item, body, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
			items[item] = body
		}
		g, err := Load(maps.All(items))
		if err != nil {
			return
		}
		got := itemsOf(g)
		for item, body := range items {
			if got[item] != body {
				t.Errorf("item %q: loaded %q, want %q", item, got[item], body)
			}
			delete(got, item)
		}
		for item := range got { // a consumer of whom only a pending entry tells
			if !strings.HasPrefix(item, consumerPrefix) && item != lastItem {
				t.Errorf("item %q was not there", item)
			}
		}
	})
}

// TestApply: a group follows another by the changes of its items, each in its last state and in an order of
// its own.
func TestApply(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 5))
		leader, follower := New(streamid.ID{}, 0), New(streamid.ID{}, 0)
		items := maps.Collect(leader.Items())
		for range 30 {
			b := Begin(leader)
			for range 1 + random.IntN(4) {
				name, id := string(rune('a'+random.IntN(3))), streamid.ID{Ms: uint64(1 + random.IntN(8))}
				switch random.IntN(6) {
				case 0, 1:
					b.Deliver(&Stream{Added: 8, Length: 8, First: streamid.ID{Ms: 1}, Last: streamid.ID{Ms: 8}}, []streamid.ID{id}, name, int64(random.IntN(9)), false)
				case 2:
					b.Claim(id, &Claim{Consumer: name, Now: 10, Time: 10, Count: -1, Force: true})
				case 3:
					b.Ack([]streamid.ID{id})
				case 4:
					b.DeleteConsumer(name)
				case 5:
					b.CreateConsumer(name, 3)
				}
			}
			changed, last := []string{}, map[string]Change{}
			for _, c := range b.List {
				if _, again := last[c.Item]; !again {
					changed = append(changed, c.Item)
				}
				last[c.Item] = c
			}
			reload := false
			for _, item := range changed {
				c := last[item]
				if delete(items, item); !c.Deleted {
					items[item] = c.Body
				}
				gone, err := follower.Apply(item, c.Body, c.Deleted)
				drill.Check(t, err)
				reload = reload || gone
			}
			if reload {
				var err error
				if follower, err = Load(maps.All(items)); err != nil {
					t.Fatal(err)
				}
			}
			if want, got := maps.Collect(leader.Items()), maps.Collect(follower.Items()); !maps.Equal(want, got) || leader.Memory() != follower.Memory() {
				t.Fatalf("seed %d: the leader has %q, the follower %q", seed, want, got)
			}
			for c := range leader.Consumers() {
				if is := follower.Consumer(c.Name()); is == nil || is.Len() != c.Len() {
					t.Fatalf("seed %d: consumer %s has %d pending entries", seed, c.Name(), c.Len())
				}
			}
		}
	}
	if _, err := New(streamid.ID{}, 0).Apply("{g}x", "y", false); err == nil {
		t.Error("an item that cannot be read is applied")
	}
}
