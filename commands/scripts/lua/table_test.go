package lua

import "testing"

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
	if n := m.Len(table); n != 3 || len(table.array) != 3 || table.live != 5 || cap(table.entries) > 32 {
		t.Errorf("length %d, %d in the array, %d of %d others", n, len(table.array), table.live, cap(table.entries))
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
