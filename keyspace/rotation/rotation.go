package rotation

import "sync"

// Member is what a list can have. It keeps its own place in the list, so that its removal takes constant
// time.
type Member interface {
	comparable
	Place() *int // for the list only
}

// List has members in no order. The zero value is an empty list. Safe for concurrent use. Its mutex is held
// briefly and no other is taken under it.
type List[M Member] struct {
	mu   sync.Mutex // protects list and the members' places
	list []M
}

// Add adds a member that the list does not have.
func (l *List[M]) Add(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*m.Place() = len(l.list)
	l.list = append(l.list, m)
}

// Remove removes a member. The last member takes its place.
func (l *List[M]) Remove(m M) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end, place := len(l.list)-1, *m.Place()
	last := l.list[end]
	l.list[place] = last
	*last.Place() = place
	clear(l.list[end:])
	l.list = l.list[:end]
	if cap(l.list) > 1024 && end < cap(l.list)/4 {
		l.list = append(make([]M, 0, cap(l.list)/2), l.list...)
	}
}

// Some appends up to n members to list, each at most once, from a position on that wraps around.
func (l *List[M]) Some(list []M, from, n int) []M {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range min(n, len(l.list)) {
		list = append(list, l.list[(from+i)%len(l.list)])
	}
	return list
}

// Len returns the number of members.
func (l *List[M]) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list)
}
