package lua

import (
	"iter"
	"math"
	"slices"
)

// indexed is how many entries a hash part may have before it gets an index.
const indexed = 8

// Table is a table of Lua. Elements 1 to n are in an array, others in a list in the order of their insertion.
type Table struct {
	array   []Value
	entries []entry // one whose value is nil has been deleted
	index   map[Value]int32
	live    int // entries whose value is not nil
	meta    *Table
	sealed  bool // scripts cannot change it
	mark    uint32
}

type entry struct{ k, v Value }

// NewTable returns an empty table with room for n elements.
func (m *Machine) NewTable(n int) *Table {
	m.Charge(tableSize + slotSize*n)
	t := &Table{}
	if n > 0 {
		t.array = make([]Value, 0, n)
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
	if s, ok := k.(string); ok {
		for i := range t.entries {
			if e, ok := t.entries[i].k.(string); ok && e == s {
				return i
			}
		}
		return -1
	}
	for i := range t.entries {
		if t.entries[i].k == k {
			return i
		}
	}
	return -1
}

// Get returns t[k] without metamethods.
func (t *Table) Get(k Value) Value {
	if i := position(k); uint(i) < uint(len(t.array)) {
		return t.array[i]
	}
	if i := t.find(k); i >= 0 {
		return t.entries[i].v
	}
	return nil
}

// At returns element i.
func (t *Table) At(i int) Value {
	if uint(i-1) < uint(len(t.array)) {
		return t.array[i-1]
	}
	if len(t.entries) == 0 {
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
		if uint(i) < uint(len(t.array)) {
			t.array[i] = v
			return
		}
		if i == len(t.array) && v != nil {
			m.push(t, v)
			return
		}
	case string:
		m.long(key)
	}
	if i := t.find(k); i >= 0 {
		e := &t.entries[i]
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

// movedAtOnce is how many elements are moved at once: the collector waits for that, and everybody with it.
const movedAtOnce = 1 << 12

// push appends an element to the array, and moves those there that come after it.
func (m *Machine) push(t *Table, v Value) {
	for v != nil {
		if n := cap(t.array); len(t.array) == n {
			grown := max(4, 2*n)
			if grown > 1<<16 {
				grown = n + n>>2
			}
			m.Charge(slotSize * (grown - n))
			array := make([]Value, 0, grown)
			for piece := range slices.Chunk(t.array, movedAtOnce) {
				array = append(array, piece...)
			}
			t.array = array
		}
		t.array = append(t.array, v)
		if t.live == 0 {
			return
		}
		// An entry of this number is older; one of the next number is an element now.
		m.Work(2)
		m.remove(t, len(t.array))
		v = m.remove(t, len(t.array)+1)
	}
}

// remove takes the value of a number out of the list.
func (m *Machine) remove(t *Table, n int) Value {
	i := t.find(float64(n))
	if i < 0 || t.entries[i].v == nil {
		return nil
	}
	v := t.entries[i].v
	t.entries[i].v = nil
	t.live--
	return v
}

// insert appends an entry. If many have been deleted, it drops those.
func (m *Machine) insert(t *Table, k, v Value) {
	if n := len(t.entries); n == cap(t.entries) {
		size := max(2, 2*n)
		if t.live < n-n/4 {
			size = max(n, 2)
		}
		m.Work(n)
		m.Charge(entrySize * (size - n))
		entries := make([]entry, 0, size)
		for _, e := range t.entries {
			if e.v != nil {
				entries = append(entries, e)
			}
		}
		t.entries = entries
		if size > indexed {
			m.Charge(indexedSize * (size - n))
			t.index = make(map[Value]int32, size)
			for i, e := range entries {
				t.index[e.k] = int32(i)
			}
		}
	}
	if t.index != nil {
		t.index[k] = int32(len(t.entries))
	}
	t.entries = append(t.entries, entry{k, v})
	t.live++
}

// Len returns a border n of a table: t[n] is not nil, and t[n+1] is.
func (m *Machine) Len(t *Table) int {
	n := len(t.array)
	if n > 0 && t.array[n-1] == nil {
		low := 0
		for n-low > 1 {
			if middle := (low + n) / 2; t.array[middle-1] == nil {
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
		if i = position(k) + 1; i < 1 || i > len(t.array) {
			if at = t.find(k); at < 0 {
				return nil, nil, false
			}
			i = len(t.array)
		}
	}
	for ; i < len(t.array); i++ {
		if v := t.array[i]; v != nil {
			return Int(i + 1), v, true
		}
		m.Work(1)
	}
	for at++; at < len(t.entries); at++ {
		if e := &t.entries[at]; e.v != nil {
			return e.k, e.v, true
		}
		m.Work(1)
	}
	return nil, nil, true
}

// All yields the entries of a table, which must not change meanwhile.
func (m *Machine) All(t *Table) iter.Seq2[Value, Value] {
	return func(yield func(k, v Value) bool) {
		for i, v := range t.array {
			m.Work(1)
			if v != nil && !yield(Int(i+1), v) {
				return
			}
		}
		for _, e := range t.entries {
			m.Work(1)
			if e.v != nil && !yield(e.k, e.v) {
				return
			}
		}
	}
}
