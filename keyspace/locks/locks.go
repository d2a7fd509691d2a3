package locks

import (
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Lock is the lock of a partition. The zero value is unlocked.
type Lock struct {
	sync.Mutex
	holder atomic.Uint32 // how long the holder may take
	set    *Set
}

// The values of Lock.holder.
const (
	brief       uint32 = iota
	perhapsLong        // see MarkLong
	long               // see MarkLong
)

// LockUnlessLong locks. It returns false instead of waiting for a holder that is marked as long, or that may
// take long and does not release the lock soon.
func (l *Lock) LockUnlessLong() bool {
	switch {
	case l.TryLock():
		return true
	case l.holder.Load() == long:
		return false
	case l.set == nil || !l.set.unbounded.Load():
		l.Lock()
		return true
	}
	return l.poll()
}

// The steps of poll.
const (
	yields   = 32                    // before the first sleep
	nap      = 50 * time.Microsecond // a sleep
	patience = 400                   // sleeps, while the holder may take long: about 20 ms
)

// poll is LockUnlessLong without parking: the next holder could take long. It waits for a brief holder until
// it is done.
func (l *Lock) poll() bool {
	var w *Waiter
	for i, left := 0, patience; left > 0; i++ {
		switch {
		case i < yields:
			runtime.Gosched()
		case w == nil:
			w = l.set.Wait()
			defer w.End()
		default:
			w.Next(nap)
		}
		if l.TryLock() {
			return true
		}
		switch l.holder.Load() {
		case long:
			return false
		case perhapsLong:
			if i >= yields {
				left--
			}
		}
	}
	return false
}

// Set has the locks of all partitions, by number. It does not change once it is in use.
type Set struct {
	locks     []*Lock
	numbers   []int
	unbounded atomic.Bool // a holder may take seconds: see MarkLong
	rounds    rounds
}

// Add adds the lock of the next partition.
func (s *Set) Add(l *Lock) {
	l.set = s
	s.numbers = append(s.numbers, len(s.locks))
	s.locks = append(s.locks, l)
}

// lockSeveral locks the locks with the numbers, in ascending order. One that takes long keeps waiting who
// needs it, but not who needs the others.
func (s *Set) lockSeveral(numbers []int) {
	for !s.tryLock(numbers) {
	}
}

// tryLock locks the locks with the numbers, or waits for the first that another holds and locks none.
func (s *Set) tryLock(numbers []int) bool {
	unbounded := s.unbounded.Load()
	for i, n := range numbers {
		switch l := s.locks[n]; {
		case !unbounded:
			l.Lock()
		case !l.LockUnlessLong():
			s.unlock(numbers[:i])
			l.Lock()
			l.Unlock() // it has waited for the holder
			return false
		}
	}
	return true
}

// unlock unlocks the locks with the numbers.
func (s *Set) unlock(numbers []int) {
	for _, n := range numbers {
		s.locks[n].Unlock()
	}
}

// Held says which locks of a set a transaction holds. The zero value holds none. It must not be copied. Not
// safe for concurrent use.
type Held struct {
	set     *Set // nil: none are held
	all     bool
	marked  bool   // the locks say how long the holder may take
	numbers []int  // ascending
	one     [1]int // backs numbers for a single one
	many    []int  // backs numbers for several
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
	s.lockSeveral(h.numbers)
}

// TryLock is Lock, but locks nothing and returns false instead of waiting for a holder that is marked as
// long.
func (h *Held) TryLock(s *Set) bool {
	numbers := h.chosen()
	if !s.lockUnlessLong(numbers) {
		h.many = h.many[:0]
		return false
	}
	h.set, h.numbers = s, numbers
	return true
}

// lockUnlessLong locks the locks with the numbers, or none of them.
func (s *Set) lockUnlessLong(numbers []int) bool {
	for i, n := range numbers {
		if !s.locks[n].LockUnlessLong() {
			s.unlock(numbers[:i])
			return false
		}
	}
	return true
}

// TryLockAll is LockAll, but locks nothing and returns false instead of waiting for a holder that is marked
// as long.
func (h *Held) TryLockAll(s *Set) bool {
	if !s.lockUnlessLong(s.numbers) {
		return false
	}
	h.set, h.all, h.numbers = s, true, s.numbers
	return true
}

// LockAll locks every partition.
func (h *Held) LockAll(s *Set) {
	s.lockSeveral(s.numbers)
	h.set, h.all, h.numbers = s, true, s.numbers
}

// LockRest locks the partitions that are not held. It does not note them: UnlockRest ends it.
func (h *Held) LockRest(s *Set) {
	if h.None() {
		s.lockSeveral(s.numbers)
		return
	}
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

// MarkLong notes that the locks may be held for long. If that is not certain yet, they may turn out to be
// held for seconds, and a second call follows. From the first such call on LockUnlessLong parks behind no
// holder, and who needs several locks holds none of them while he waits for one. Release ends that.
func (h *Held) MarkLong(certain bool) {
	switch {
	case h.None():
	case certain:
		h.mark(long)
	default:
		if !h.set.unbounded.Load() {
			h.set.unbounded.Store(true)
		}
		h.mark(perhapsLong)
	}
}

func (h *Held) mark(holder uint32) {
	h.marked = true
	h.setHolder(holder)
}

func (h *Held) setHolder(holder uint32) {
	for _, n := range h.numbers {
		h.set.locks[n].holder.Store(holder)
	}
}

// Release unlocks everything. Held is as new then, but keeps a small buffer.
func (h *Held) Release() {
	const most = 8 << 10 // numbers
	if h.marked {
		h.setHolder(brief)
	}
	for _, n := range h.numbers {
		h.set.locks[n].Unlock()
	}
	if h.marked {
		h.set.rounds.end()
	}
	h.set, h.all, h.marked, h.numbers = nil, false, false, nil
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
