package tables

import "sync"

// rotation is a list of tables in no order, from which the purge and eviction take their turns. The zero
// value is empty. Safe for concurrent use. Its mutex is held briefly and no other is taken under it.
type rotation[C Container] struct {
	mu   sync.Mutex // protects list and the tables' places
	list []*Table[C]
}

// add adds a table that the list does not have.
func (r *rotation[C]) add(t *Table[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	t.place = len(r.list)
	r.list = append(r.list, t)
}

// remove removes a table in constant time. The last table takes its place.
func (r *rotation[C]) remove(t *Table[C]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	end := len(r.list) - 1
	last := r.list[end]
	r.list[t.place] = last
	last.place = t.place
	r.list[end] = nil
	r.list = r.list[:end]
	if cap(r.list) > 1024 && end < cap(r.list)/4 {
		r.list = append(make([]*Table[C], 0, cap(r.list)/2), r.list...)
	}
}

// Some appends up to n tables to list, each at most once, from a position on that wraps around.
func (r *rotation[C]) Some(list []*Table[C], from, n int) []*Table[C] {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range min(n, len(r.list)) {
		list = append(list, r.list[(from+i)%len(r.list)])
	}
	return list
}

// Len returns the number of tables.
func (r *rotation[C]) Len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.list)
}
