package lua

import (
	"iter"
	"math"
)

// indexed is how many entries a hash part may have before it gets an index.
const indexed = 8

// Table is a table of Lua. Elements 1 to n are in an array, others in a list in the order of their insertion.
type Table struct {
	array   list[Value]
	entries list[entry] // one whose value is nil has been deleted
	index   map[Value]int32
	live    int // entries whose value is not nil
	meta    *Table
	sealed  bool // scripts cannot change it
	mark    uint32
}

type entry struct{ k, v Value }

// NewTable returns an empty table with room for n elements.
func (m *Machine) NewTable(n int) *Table {
	n = min(n, pieceLen)
	m.Charge(tableSize + slotSize*n)
	t := &Table{}
	if n > 0 {
		t.array.first = make([]Value, 0, n)
	}
	return t
}

// Seal makes a table readonly for scripts.
func (t *Table) Seal() { t.sealed = true }

// position returns the place in an array that a key stands for, or -1.
func position(k Value) int {
	if f, ok := k.(float64); ok && f >= 1 && f < 1<<40 {
		if i := int(f); float64(i) == f {
			return i - 1
		}
	}
	return -1
}

// find returns the place of a key in the list, or -1.
func (t *Table) find(k Value) int {
	if t.index != nil {
		if i, ok := t.index[k]; ok {
			return int(i)
		}
		return -1
	}
	entries := t.entries.first // more have an index
	if s, ok := k.(string); ok {
		for i := range entries {
			if e, ok := entries[i].k.(string); ok && e == s {
				return i
			}
		}
		return -1
	}
	for i := range entries {
		if entries[i].k == k {
			return i
		}
	}
	return -1
}

// Get returns t[k] without metamethods.
func (t *Table) Get(k Value) Value {
	if i := position(k); uint(i) < uint(t.array.len()) {
		return *t.array.at(i)
	}
	if i := t.find(k); i >= 0 {
		return t.entries.at(i).v
	}
	return nil
}

// At returns element i.
func (t *Table) At(i int) Value {
	if uint(i-1) < uint(t.array.len()) {
		return *t.array.at(i - 1)
	}
	if len(t.entries.first) == 0 {
		return nil
	}
	return t.Get(float64(i))
}

// Set does t[k] = v without metamethods. It raises the error of a key that is none.
func (m *Machine) Set(t *Table, k, v Value) {
	switch key := k.(type) {
	case nil:
		m.Raise("table index is nil")
	case float64:
		if math.IsNaN(key) {
			m.Raise("table index is NaN")
		}
		i := position(k)
		if uint(i) < uint(t.array.len()) {
			*t.array.at(i) = v
			return
		}
		if i == t.array.len() && v != nil {
			m.push(t, v)
			return
		}
	case string:
		m.long(key)
	}
	if i := t.find(k); i >= 0 {
		e := t.entries.at(i)
		if (e.v == nil) != (v == nil) {
			if t.live++; v == nil {
				t.live -= 2
			}
		}
		e.v = v
	} else if v != nil {
		m.insert(t, k, v)
	}
}

// push appends an element to the array, and moves those there that come after it.
func (m *Machine) push(t *Table, v Value) {
	for v != nil {
		if n := t.array.wants(4); n > 0 {
			m.Charge(slotSize * n)
			t.array.grow(n)
		}
		t.array.push(v)
		if t.live == 0 {
			return
		}
		// An entry of this number is older; one of the next number is an element now.
		m.Work(2)
		m.remove(t, t.array.len())
		v = m.remove(t, t.array.len()+1)
	}
}

// remove takes the value of a number out of the list.
func (m *Machine) remove(t *Table, n int) Value {
	i := t.find(float64(n))
	if i < 0 || t.entries.at(i).v == nil {
		return nil
	}
	e := t.entries.at(i)
	v := e.v
	e.v = nil
	t.live--
	return v
}

// insert appends an entry. If many have been deleted, it drops those.
func (m *Machine) insert(t *Table, k, v Value) {
	n := t.entries.wants(2)
	if all := t.entries.len(); n > 0 && t.live < all-all/4 {
		m.dropDeleted(t)
		n = t.entries.wants(2)
	}
	if n > 0 {
		m.Charge(entrySize * n)
		t.entries.grow(n)
		if size := t.entries.cap(); size > indexed {
			m.Charge(indexedSize * n)
			if t.index == nil {
				t.makeIndex(size)
			}
		}
	}
	if t.index != nil {
		t.index[k] = int32(t.entries.len())
	}
	t.entries.push(entry{k, v})
	t.live++
}

// dropDeleted drops the entries that have been deleted.
func (m *Machine) dropDeleted(t *Table) {
	old := t.entries
	m.Work(old.len())
	t.entries = list[entry]{first: make([]entry, 0, cap(old.first))}
	for i := range old.len() {
		if e := old.at(i); e.v != nil {
			m.longValue(e.k)
			if n := t.entries.wants(0); n > 0 {
				t.entries.grow(n)
			}
			t.entries.push(*e)
		}
	}
	if t.index != nil {
		t.makeIndex(old.cap())
	}
}

// makeIndex makes an index of the entries, with room for n.
func (t *Table) makeIndex(n int) {
	t.index = make(map[Value]int32, n)
	for i := range t.entries.len() {
		t.index[t.entries.at(i).k] = int32(i)
	}
}

// Len returns a border n of a table: t[n] is not nil, and t[n+1] is.
func (m *Machine) Len(t *Table) int {
	n := t.array.len()
	if n > 0 && *t.array.at(n - 1) == nil {
		low := 0
		for n-low > 1 {
			if middle := (low + n) / 2; *t.array.at(middle - 1) == nil {
				n = middle
			} else {
				low = middle
			}
		}
		return low
	}
	for t.live > 0 && t.Get(float64(n+1)) != nil {
		n++
		m.Work(1)
	}
	return n
}

// next returns the key and the value after a key, nil after the last. ok is false for a key that is none.
func (m *Machine) next(t *Table, k Value) (key, v Value, ok bool) {
	i, at := 0, -1
	if k != nil {
		if i = position(k) + 1; i < 1 || i > t.array.len() {
			m.longValue(k)
			if at = t.find(k); at < 0 {
				return nil, nil, false
			}
			i = t.array.len()
		}
	}
	for ; i < t.array.len(); i++ {
		if v := *t.array.at(i); v != nil {
			return Int(i + 1), v, true
		}
		m.Work(1)
	}
	for at++; at < t.entries.len(); at++ {
		if e := t.entries.at(at); e.v != nil {
			return e.k, e.v, true
		}
		m.Work(1)
	}
	return nil, nil, true
}

// All yields the entries of a table, which must not change meanwhile.
func (m *Machine) All(t *Table) iter.Seq2[Value, Value] {
	return func(yield func(k, v Value) bool) {
		for i := range t.array.len() {
			m.Work(1)
			if v := *t.array.at(i); v != nil && !yield(Int(i+1), v) {
				return
			}
		}
		for i := range t.entries.len() {
			m.Work(1)
			if e := t.entries.at(i); e.v != nil && !yield(e.k, e.v) {
				return
			}
		}
	}
}
