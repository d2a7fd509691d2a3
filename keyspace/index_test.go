package keyspace

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/record"
)

// newTestTable is a table on its own.
func newTestTable() (*table, *partition) {
	p := &partition{}
	return newTable(7, p), p
}

func (t *table) testPut(p *partition, id string, own int64) (handle, *entry) {
	key := string(record.AppendKey(nil, t.number, id))
	it := Item{Kind: Document, Body: "{}", TS: 1, ExpireAt: own, Version: p.nextVersion()}
	rec := string(record.Append(nil, key, it))
	defer p.tidy()
	return t.put(id, key, rec, it)
}

func (t *table) testRemove(p *partition, id string) bool {
	e := t.find(id)
	if e == nil {
		return false
	}
	t.remove(e)
	p.forget(t, e)
	p.tidy()
	return true
}

// checkAgainst compares a table with what it should hold, and looks its parts over.
func checkAgainst(tb testing.TB, table *table, want map[string]uint64) {
	tb.Helper()
	if table.count() != len(want) || table.slab.used() != len(want) {
		tb.Fatalf("%d in the index, %d in the slab, want %d", table.count(), table.slab.used(), len(want))
	}
	for id, version := range want {
		if e := table.find(id); e == nil || e.version != version || table.id(e) != id {
			tb.Fatalf("%q: found %v, want version %d", id, e, version)
		}
	}
	if err := table.arena.check(&table.slab); err != nil {
		tb.Fatal(err)
	}
	x := &table.index
	chained := 0
	for b := range x.buckets.n {
		for h := *x.buckets.at(b); h != 0; h = table.slab.at(h).next {
			chained++
			if e := table.slab.at(h); x.bucket(e.hash) != x.buckets.at(b) {
				tb.Fatalf("%q is in bucket %d, where nobody looks for it", table.id(e), b)
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
		if c := table.slab.chunks[number]; c.free == 0 && len(c.entries) == cap(c.entries) {
			tb.Fatalf("chunk %d is open but full", number)
		}
	}
}

// TestTableAgainstMap does the same at random to a table and a Go map: growth to thousands, decline
// to nothing, replacements and misses.
func TestTableAgainstMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	table, p := newTestTable()
	want := make(map[string]uint64)
	owns := []int64{expiry.Inherit, expiry.Never, 5_000_000}
	for round := range 12 {
		growing := round%3 != 2 // the third takes away nearly all
		for range 6000 {
			id := fmt.Sprint("k", r.IntN(20_000))
			if growing == (r.IntN(8) > 0) {
				_, e := table.testPut(p, id, owns[r.IntN(3)])
				want[id] = e.version
			} else {
				if _, had := want[id]; table.testRemove(p, id) != had {
					t.Fatalf("removal of %q: had %t", id, had)
				}
				delete(want, id)
			}
		}
		checkAgainst(t, table, want)
		if !growing {
			for id := range want {
				table.testRemove(p, id)
			}
			clear(want)
			checkAgainst(t, table, want)
			if got := len(table.slab.open); got > 1 {
				t.Errorf("%d chunks left of an empty table", got)
			}
		}
	}
	if table.p.used.Load() != 0 || table.memory != 0 || table.bytes != 0 {
		t.Errorf("an empty table counts %d, %d and %d bytes", table.p.used.Load(), table.memory, table.bytes)
	}
}

// TestIndexCollisions: entries of one hash are told apart by their ids.
func TestIndexCollisions(t *testing.T) {
	var x index
	var s slab
	handles := make(map[handle]bool)
	for range 100 {
		h, e := s.take()
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

// TestStaleHandles: an entry that leaves while the store has still to learn of it, and another that
// takes its place, are not taken for each other.
func TestStaleHandles(t *testing.T) {
	table, p := newTestTable()
	put := func(id string) {
		h, e := table.testPut(p, id, expiry.Never)
		p.touch(table, h, e)
	}
	captured := func(want ...string) {
		t.Helper()
		var got []string
		ops, _ := p.capture(capturePieces)
		for _, o := range ops {
			sign := "+"
			if o.del {
				sign = "-"
			}
			got = append(got, sign+strings.TrimPrefix(o.key, "7:"))
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("captured %v, want %v", got, want)
		}
	}
	put("young")
	table.testRemove(p, "young") // never stored
	captured()

	put("a")
	captured("+a")
	captured()

	put("a")
	table.testRemove(p, "a") // stored and dirty
	put("b")                 // takes the place, and is on the list twice with that
	if len(table.dirty) != 2 || table.dirty[0] != table.dirty[1] {
		t.Fatalf("places %v: the test needs one that is used again", table.dirty)
	}
	captured("-a", "+b")
	captured()

	put("b")
	table.testRemove(p, "b")
	put("b") // as another entry
	captured("-b", "+b")

	put("b")
	table.testRemove(p, "b")
	_, e := table.testPut(p, "clean", expiry.Never) // as if it had been loaded: not dirty
	e.mark(stored)
	captured("-b")

	// The chunk of a stale handle has been let go.
	for i := range 500 {
		put(fmt.Sprint("n", i))
	}
	for i := range 500 {
		table.testRemove(p, fmt.Sprint("n", i))
	}
	captured()
}

// TestRosterFarApart: sequence numbers keep their order and their gaps, however far apart they are.
func TestRosterFarApart(t *testing.T) {
	r := roster{next: 1}
	places := make(map[handle]uint32)
	want := make(map[handle]uint64)
	for i := range handle(3000) {
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
			r.leave(places[h])
			delete(want, h)
		}
	}
	move := func(h handle, place uint32) { places[h] = place }
	r.compact(move)
	if r.berths.n > 5*pieceSize || r.sparse() {
		t.Errorf("%d berths for %d, sparse: %t", r.berths.n, len(want), r.sparse())
	}
	check()

	// Back into a hole, and to where there is none any more: in the middle and at the end.
	for _, closed := range []bool{false, true} {
		for _, h := range []handle{1500, 3000} {
			if h%100 != 0 || want[h] == 0 {
				t.Fatalf("%d is not there to be taken out", h)
			}
			r.leave(places[h])
			if closed {
				r.compact(move)
			}
			places[h] = r.refill(h, want[h], move)
			check()
		}
	}
}

func TestPile(t *testing.T) {
	var p pile[int]
	for _, n := range []int{3, 1, 0, 5000, 4096, 1024, 1025, 1023, 2048, 2047, 0, 1, 3000, 2, 0} {
		for p.n < n {
			p.push(p.n * 7)
		}
		for p.n > n { // one by one and by leaps
			p.cut(max(n, p.n-1-p.n%5*300))
		}
		for i := range n {
			if got := *p.at(i); got != i*7 {
				t.Fatalf("element %d of %d is %d", i, n, got)
			}
		}
		if most := n/pieceSize + 2; len(p.pieces) > most {
			t.Errorf("%d pieces for %d elements", len(p.pieces), n)
		}
	}
}

// FuzzTable does to a table and a map what the input says: two bytes a step.
func FuzzTable(f *testing.F) {
	f.Add([]byte("\x01a\x01b\x00a\x02c\x03b"))
	f.Add([]byte(strings.Repeat("\x01x\x00x\x02y", 50)))
	f.Fuzz(func(t *testing.T, steps []byte) {
		table, p := newTestTable()
		want := make(map[string]uint64)
		for ; len(steps) >= 2; steps = steps[2:] {
			id := string(steps[1:2])
			if steps[0]&3 == 0 {
				_, had := want[id]
				if table.testRemove(p, id) != had {
					t.Fatalf("removal of %q: had %t", id, had)
				}
				delete(want, id)
				continue
			}
			own := []int64{expiry.Inherit, expiry.Never, int64(steps[0])}[steps[0]&3-1]
			h, e := table.testPut(p, id, own)
			p.touch(table, h, e)
			want[id] = e.version
		}
		checkAgainst(t, table, want)
	})
}
