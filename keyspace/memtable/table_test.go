package memtable

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
	"mayfly/test/drill"
)

// newTestTable returns a table in a shard of its own.
func newTestTable() (*Table, *Shard) {
	s := &Shard{SetSize: func(key, rec int) int64 { return int64(key + rec) }}
	t := new(Table)
	t.Init(s, 7)
	return t, s
}

// lastVersion makes the versions of test items unique.
var lastVersion atomic.Uint64

// put inserts or overwrites an item and gives it a new version.
func put(t *Table, id string, it record.Item) *Entry {

	it.Version = lastVersion.Add(1)
	h, e := t.Lookup(id)
	if e == nil {
		_, e = t.Insert(id, it, nil)
	} else {
		t.Overwrite(h, e, id, it, nil)
	}
	return e
}

// putEnd puts a document with an end.
func putEnd(t *Table, s *Shard, id string, expireAt int64) *Entry {
	defer s.Clean()
	return put(t, id, record.Item{Kind: record.Document, Body: "{}", TS: 1, ExpireAt: expireAt})
}

func remove(t *Table, s *Shard, id string) bool {
	e := t.Find(id)
	if e == nil {
		return false
	}
	t.Remove(e)
	t.Release(e)
	s.Clean()
	return true
}

// usedEntries returns how many entries of the slab are in use.
func usedEntries(t *Table) (n int) {
	for _, b := range t.slab.blocks {
		n += int(b.used)
	}
	return n
}

// checkAgainst compares a table with the versions that it should have, by id, and checks its parts.
func checkAgainst(tb testing.TB, table *Table, want map[string]uint64) {
	tb.Helper()
	if used := usedEntries(table); table.Len() != len(want) || used != len(want) {
		tb.Fatalf("%d in the index, %d in the slab, want %d", table.Len(), used, len(want))
	}
	for id, version := range want {
		if e := table.Find(id); e == nil || e.version != version || table.ID(e) != id {
			tb.Fatalf("%q: found %v, want version %d", id, e, version)
		}
	}
	drill.Check(tb, table.shard.Check())
	x := &table.index
	chained := 0
	for b := range x.buckets.n {
		for h := *x.buckets.at(b); h != 0; h = table.slab.at(h).next {
			chained++
			if e := table.slab.at(h); x.bucket(e.hash) != x.buckets.at(b) {
				tb.Fatalf("%q is in bucket %d, where no look-up finds it", table.ID(e), b)
			}
		}
	}
	if chained != len(want) {
		tb.Fatalf("%d entries in the chains, want %d", chained, len(want))
	}
	if n := x.buckets.n; n > minBuckets && (uint32(n-1) > x.mask || uint32(n-1) <= x.mask>>1) {
		tb.Fatalf("mask %x with %d buckets", x.mask, n)
	}
	for _, number := range table.slab.open {
		if c := table.slab.blocks[number]; c.free == 0 && len(c.entries) == cap(c.entries) {
			tb.Fatalf("block %d is open but full", number)
		}
	}
}

// TestTableAgainstMap makes the same random changes in a table and a Go map: growth to thousands, decline to
// nothing, replacements and misses.
func TestTableAgainstMap(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	table, shard := newTestTable()
	want := make(map[string]uint64)
	ends := []int64{expiry.Inherit, expiry.Never, 5_000_000}
	for round := range 12 {
		growing := round%3 != 2 // the third takes away nearly all
		for range 6000 {
			id := fmt.Sprint("k", r.IntN(20_000))
			if growing == (r.IntN(8) > 0) {
				e := putEnd(table, shard, id, ends[r.IntN(3)])
				want[id] = e.version
			} else {
				if _, had := want[id]; remove(table, shard, id) != had {
					t.Fatalf("removal of %q: had %t", id, had)
				}
				delete(want, id)
			}
		}
		checkAgainst(t, table, want)
		if !growing {
			for id := range want {
				remove(table, shard, id)
			}
			clear(want)
			checkAgainst(t, table, want)
			if got := len(table.slab.open); got > 1 {
				t.Errorf("%d blocks left of an empty table", got)
			}
		}
	}
	if table.shard.Memory() != TableOverhead || table.memory != 0 || table.bytes != 0 {
		t.Errorf("an empty table counts %d, %d and %d bytes", table.shard.Memory(), table.memory, table.bytes)
	}
}

// TestIndexCollisions: entries of one hash are told apart by their ids.
func TestIndexCollisions(t *testing.T) {
	t.Parallel()
	var x index
	var s slab
	handles := make(map[Handle]bool)
	for range 100 {
		h, e := s.alloc()
		e.hash = 42
		x.insert(&s, h, e)
		handles[h] = true
	}
	if len(handles) != 100 || handles[0] {
		t.Fatalf("%d different handles of 100", len(handles))
	}
	for h := range handles {
		x.remove(&s, h, s.at(h))
		delete(handles, h)
		n := 0
		for at := *x.bucket(42); at != 0; at = s.at(at).next {
			n++
			if !handles[at] {
				t.Fatalf("%d is still in its chain", at)
			}
		}
		if n != len(handles) || n != x.n {
			t.Fatalf("%d in the chain, want %d", n, len(handles))
		}
	}
}

// TestStaleHandles: a capture does not confuse a dirty entry that was removed with another that takes its
// place.
func TestStaleHandles(t *testing.T) {
	t.Parallel()
	table, shard := newTestTable()
	put := func(id string) {
		putEnd(table, shard, id, expiry.Never)
	}
	captured := func(want ...string) {
		t.Helper()
		var got []string
		shard.BeginCapture()
		var sets []string
		for more := true; more; {
			var deleted []string
			deleted, more = shard.Capture(256, func(key, _, _ string) { sets = append(sets, "+"+strings.TrimPrefix(key, "7:")) })
			for _, key := range deleted {
				got = append(got, "-"+strings.TrimPrefix(key, "7:"))
			}
		}
		got = append(got, sets...)
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("captured %v, want %v", got, want)
		}
	}
	put("young")
	remove(table, shard, "young") // never stored
	captured()

	put("a")
	captured("+a")
	captured()

	put("a")
	remove(table, shard, "a") // stored and dirty
	put("b")                  // takes the place, which is listed twice now
	if len(table.dirty) != 2 || table.dirty[0] != table.dirty[1] {
		t.Fatalf("places %v: the test needs one that is reused", table.dirty)
	}
	captured("-a", "+b")
	captured()

	put("b")
	remove(table, shard, "b")
	put("b") // as another entry
	captured("-b", "+b")

	put("b")
	remove(table, shard, "b")
	it := record.Item{Kind: record.Plain, ExpireAt: expiry.Never}
	_, e := table.Load("loaded", string(record.Append(nil, "7:loaded", it)), it) // not dirty
	table.MarkStored(e)
	captured("-b")

	// The block of a stale handle was freed.
	for i := range 500 {
		put(fmt.Sprint("n", i))
	}
	for i := range 500 {
		remove(table, shard, fmt.Sprint("n", i))
	}
	captured()
}

// TestInsertionOrderFarApart: sequence numbers keep their order and gaps, however far apart they are.
func TestInsertionOrderFarApart(t *testing.T) {
	t.Parallel()
	r := insertionOrder{next: 1}
	places := make(map[Handle]uint32)
	want := make(map[Handle]uint64)
	for i := range Handle(3000) {
		if i%700 == 0 {
			r.next += 3 << 32
		}
		want[i+1] = r.next
		places[i+1] = r.push(i + 1)
	}
	check := func() {
		t.Helper()
		for h, seq := range want {
			if at, got := r.at(int(places[h])); at != h || got != seq {
				t.Fatalf("at the place of %d there is %d with %d, want %d", h, at, got, seq)
			}
			if at, _ := r.at(r.before(seq + 1)); at != h {
				t.Fatalf("before %d there is %d, want %d", seq+1, at, h)
			}
		}
	}
	check()
	for h := range want {
		if h%100 != 0 {
			r.remove(places[h])
			delete(want, h)
		}
	}
	move := func(h Handle, place uint32) { places[h] = place }
	r.compact(move)
	if r.slots.n > 5*chunkSize || r.sparse() {
		t.Errorf("%d slots for %d, sparse: %t", r.slots.n, len(want), r.sparse())
	}
	check()

	// Back into a hole, and to where there is none any more: in the middle and at the end.
	for _, closed := range []bool{false, true} {
		for _, h := range []Handle{1500, 3000} {
			if h%100 != 0 || want[h] == 0 {
				t.Fatalf("%d is not there to be taken out", h)
			}
			r.remove(places[h])
			if closed {
				r.compact(move)
			}
			places[h] = r.reinsert(h, want[h], move)
			check()
		}
	}
}

func TestChunkedSlice(t *testing.T) {
	t.Parallel()
	var p chunkedSlice[int]
	for _, n := range []int{3, 1, 0, 5000, 4096, 1024, 1025, 1023, 2048, 2047, 0, 1, 3000, 2, 0} {
		for p.n < n {
			p.push(p.n * 7)
		}
		for p.n > n { // one by one and by leaps
			p.truncate(max(n, p.n-1-p.n%5*300))
		}
		for i := range n {
			if got := *p.at(i); got != i*7 {
				t.Fatalf("element %d of %d is %d", i, n, got)
			}
		}
		if most := n/chunkSize + 2; len(p.chunks) > most {
			t.Errorf("%d chunks for %d elements", len(p.chunks), n)
		}
	}
}

// FuzzTable does to a table and a map what the input says: two bytes a step.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x01a\x01b\x00a\x02c\x03b"))
	f.Add([]byte(strings.Repeat("\x01x\x00x\x02y", 50)))
	f.Fuzz(func(t *testing.T, steps []byte) {
		table, shard := newTestTable()
		want := make(map[string]uint64)
		for ; len(steps) >= 2; steps = steps[2:] {
			id := string(steps[1:2])
			if steps[0]&3 == 0 {
				_, had := want[id]
				if remove(table, shard, id) != had {
					t.Fatalf("removal of %q: had %t", id, had)
				}
				delete(want, id)
				continue
			}
			expireAt := []int64{expiry.Inherit, expiry.Never, int64(steps[0])}[steps[0]&3-1]
			want[id] = putEnd(table, shard, id, expireAt).version
		}
		checkAgainst(t, table, want)
	})
}
