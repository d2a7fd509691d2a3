package lua

import (
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"mayfly/test/drill"
)

// Elements come first, in their order, then the others in that of their insertion, whatever was deleted
// between.
func TestTable(t *testing.T) {
	t.Parallel()
	m := New()
	table := m.NewTable(0)
	for _, k := range []Value{2.0, 3.0, 7.0, 1e7, 2.5, "s", true} {
		m.Set(table, k, k)
	}
	for i := range 100 { // deleted ones leave when the list grows
		m.Set(table, float64(-i), true)
		m.Set(table, float64(-i), nil)
	}
	if n := m.Len(table); n != 0 {
		t.Errorf("length %d without the first element", n)
	}
	m.Set(table, 1.0, 1.0)
	if n := m.Len(table); n != 3 || table.array.len() != 3 || table.live != 5 || table.entries.cap() > 32 {
		t.Errorf("length %d, %d in the array, %d of %d others", n, table.array.len(), table.live, table.entries.cap())
	}
	want := []Value{1.0, 2.0, 3.0, 7.0, 1e7, 2.5, "s", true, nil}
	var k, v Value
	for _, w := range want {
		var ok bool
		if k, v, ok = m.next(table, k); !ok || k != w || v != w || table.Get(k) != v {
			t.Fatalf("key %v with %v, %v, want %v", k, v, ok, w)
		}
	}
	if _, _, ok := m.next(table, "none"); ok {
		t.Error("a key that is none has a next one")
	}
	for k := range m.All(table) { // what is deleted meanwhile does not end a walk
		m.Set(table, k, nil)
	}
	if n := m.Len(table); n != 0 || table.live != 0 {
		t.Errorf("length %d, %d others in an empty table", n, table.live)
	}
}

// Elements that have been deleted are work for a walk past them.
func TestDeletedElements(t *testing.T) {
	t.Parallel()
	m := New()
	m.Reset(64<<20, nil)
	table := m.NewTable(0)
	for i := range 10_000 {
		m.Set(table, Int(i+1), true)
	}
	for i := range 10_000 {
		m.Set(table, Int(i+1), nil)
	}
	m.fuel = 1 << 20
	if k, _, ok := m.next(table, nil); k != nil || !ok || m.fuel > 1<<20-10_000 {
		t.Errorf("key %v, %v, %d steps", k, ok, 1<<20-m.fuel)
	}
}

// Long keys are hashed again when those that have been deleted leave.
func TestLongKeysThatStay(t *testing.T) {
	t.Parallel()
	m := New()
	m.Reset(64<<20, nil)
	table := m.NewTable(0)
	for i := range 10 {
		m.Set(table, strings.Repeat("x", 10_000)+strconv.Itoa(i), true)
	}
	m.fuel = 1 << 20
	for i := range 1_000 {
		m.Set(table, float64(-i), true)
		m.Set(table, float64(-i), nil)
	}
	if steps := 1<<20 - m.fuel; steps < 100*10*10_000>>6 {
		t.Errorf("%d steps", steps)
	}
}

// Whatever is set, deleted and set again, a table has what a map has. Keys are few and many enough that lists
// of several pieces grow, lose what was deleted, and stay.
func TestTableIsAMap(t *testing.T) {
	t.Parallel()
	drill.Seeds(t, 2, 4, 100, func(t *testing.T, seed uint64) {
		t.Parallel()
		random := rand.New(rand.NewPCG(seed, 0))
		m := New()
		table, model := m.NewTable(random.IntN(2*pieceLen)), map[Value]Value{}
		key := func(n int) Value {
			if n%2 == 0 {
				return float64(n / 2) // zero is no element
			}
			return strconv.Itoa(n)
		}
		for range 3 {
			keys := 1 + random.IntN(8*pieceLen)
			for n := range keys { // in order, so that elements follow one another
				m.Set(table, key(n), n)
				model[key(n)] = n
			}
			for range random.IntN(4 * keys) {
				k := key(random.IntN(2 * keys))
				if random.IntN(4) > 0 {
					m.Set(table, k, nil)
					delete(model, k)
				} else {
					m.Set(table, k, keys)
					model[k] = keys
				}
			}
			if cap(table.array.first) > pieceLen || cap(table.entries.first) > pieceLen {
				t.Fatalf("pieces of %d elements and %d entries", cap(table.array.first), cap(table.entries.first))
			}
			left := maps.Clone(model)
			for k, v := range m.All(table) {
				if left[k] != v {
					t.Fatalf("%v is %v, want %v", k, v, left[k])
				}
				delete(left, k)
			}
			if len(left) > 0 {
				t.Fatalf("%d of %d keys are not walked", len(left), len(model))
			}
			walked := 0
			for k, _, ok := m.next(table, nil); k != nil; k, _, ok = m.next(table, k) {
				if walked++; !ok || table.Get(k) != model[k] {
					t.Fatalf("%v is %v, want %v", k, table.Get(k), model[k])
				}
			}
			if walked != len(model) {
				t.Fatalf("%d of %d keys come one after the other", walked, len(model))
			}
			if n := m.Len(table); table.At(n+1) != nil || n > 0 && table.At(n) == nil {
				t.Fatalf("length %d, element %v, then %v", n, table.At(n), table.At(n+1))
			}
		}
	})
}
