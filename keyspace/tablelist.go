package keyspace

import "sync"

// tableList has all attached tables, so that the purge and eviction skip empty containers. Safe for concurrent use.
// Its mutex is held briefly and may be taken under any partition's lock.
type tableList struct {
	mu   sync.Mutex // protects list
	list []*table   // in no order
}

func (l *tableList) add(t *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.listPos = len(l.list)
	l.list = append(l.list, t)
}

// remove puts the last table in the place of the removed one.
func (l *tableList) remove(t *table) {
	l.mu.Lock()
	defer l.mu.Unlock()
	end := len(l.list) - 1
	l.list[t.listPos] = l.list[end]
	l.list[t.listPos].listPos = t.listPos
	l.list[end] = nil
	l.list = l.list[:end]
	if cap(l.list) > 1024 && end < cap(l.list)/4 {
		l.list = append(make([]*table, 0, cap(l.list)/2), l.list...)
	}
}

// some appends up to n tables to list, each at most once, from a position on that wraps around.
func (l *tableList) some(list []*table, from, n int) []*table {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range min(n, len(l.list)) {
		list = append(list, l.list[(from+i)%len(l.list)])
	}
	return list
}
