package locks

import (
	"slices"
	"sync"
	"sync/atomic"
)

// Lock is the lock of a partition. The zero value is unlocked.
type Lock struct {
	sync.Mutex
	long atomic.Bool // see MarkLong
}

// LockUnlessLong locks. It returns false instead of waiting for a holder that is marked as long.
func (l *Lock) LockUnlessLong() bool {
	if l.TryLock() {
		return true
	}
	if l.long.Load() {
		return false
	}
	l.Lock()
	return true
}

// Set has the locks of all partitions, by number. It does not change once it is in use.
type Set struct {
	locks   []*Lock
	numbers []int
}

// Add adds the lock of the next partition.
func (s *Set) Add(l *Lock) {
	s.numbers = append(s.numbers, len(s.locks))
	s.locks = append(s.locks, l)
}

// Held says which locks of a set a transaction holds. The zero value holds none. It must not be copied. Not safe for
// concurrent use.
type Held struct {
	set       *Set // nil: none are held
	all, long bool
	numbers   []int  // ascending
	one       [1]int // backs numbers for a single one
	many      []int  // backs numbers for several
}

// One notes the lock of a partition, which the caller has locked.
func (h *Held) One(s *Set, number int) {
	h.one[0] = number
	h.set, h.numbers = s, h.one[:]
}

// Choose adds a partition to those that Lock or TryLock will lock.
func (h *Held) Choose(number int) { h.many = append(h.many, number) }

// chosen returns the chosen partitions in ascending order.
func (h *Held) chosen() []int {
	slices.Sort(h.many)
	return slices.Compact(h.many)
}

// Lock locks the chosen partitions.
func (h *Held) Lock(s *Set) {
	h.set, h.numbers = s, h.chosen()
	for _, n := range h.numbers {
		s.locks[n].Lock()
	}
}

// TryLock is Lock, but locks nothing and returns false instead of waiting for a holder that is marked as long.
func (h *Held) TryLock(s *Set) bool {
	numbers := h.chosen()
	for i, n := range numbers {
		if !s.locks[n].LockUnlessLong() {
			for _, n := range numbers[:i] {
				s.locks[n].Unlock()
			}
			h.many = h.many[:0]
			return false
		}
	}
	h.set, h.numbers = s, numbers
	return true
}

// LockAll locks every partition.
func (h *Held) LockAll(s *Set) {
	for _, l := range s.locks {
		l.Lock()
	}
	h.set, h.all, h.numbers = s, true, s.numbers
}

// LockRest locks the partitions that are not held. It does not note them: UnlockRest ends it.
func (h *Held) LockRest(s *Set) {
	for n, l := range s.locks {
		if !h.Has(n) {
			l.Lock()
		}
	}
}

// UnlockRest ends LockRest. It calls before with each partition before it unlocks it.
func (h *Held) UnlockRest(s *Set, before func(number int)) {
	for n, l := range s.locks {
		if !h.Has(n) {
			before(n)
			l.Unlock()
		}
	}
}

// Numbers returns the partitions that are held, in ascending order. The caller must not change it.
func (h *Held) Numbers() []int { return h.numbers }

// Has reports whether a partition is held.
func (h *Held) Has(number int) bool { return h.all || slices.Contains(h.numbers, number) }

// All reports whether all partitions are held.
func (h *Held) All() bool { return h.all }

// None reports whether no partition is held.
func (h *Held) None() bool { return len(h.numbers) == 0 }

// MarkLong notes that the locks may be held for long. Release ends that.
func (h *Held) MarkLong() {
	h.long = true
	h.setLong(true)
}

func (h *Held) setLong(long bool) {
	for _, n := range h.numbers {
		h.set.locks[n].long.Store(long)
	}
}

// Release unlocks everything. Held is as new then, but keeps a small buffer.
func (h *Held) Release() {
	const most = 8 << 10 // numbers
	if h.long {
		h.setLong(false)
	}
	for _, n := range h.numbers {
		h.set.locks[n].Unlock()
	}
	h.set, h.all, h.long, h.numbers = nil, false, false, nil
	if h.many = h.many[:0]; cap(h.many) > most {
		h.many = nil
	}
}

// Some has locks that were taken without waiting. The zero value has none. Not safe for concurrent use.
type Some struct{ locked []*Lock }

// Try locks a lock unless it has done so already. It returns false instead of waiting.
func (s *Some) Try(l *Lock) bool {
	if slices.Contains(s.locked, l) {
		return true
	}
	if !l.TryLock() {
		return false
	}
	s.locked = append(s.locked, l)
	return true
}

// Release unlocks everything.
func (s *Some) Release() {
	for _, l := range s.locked {
		l.Unlock()
	}
	clear(s.locked)
	s.locked = s.locked[:0]
}
