package locks

import (
	"runtime"
	"slices"
	"testing"
	"time"

	_ "mayfly/test/drill" // its flags
)

func newSet(n int) *Set {
	s := &Set{}
	for range n {
		s.Add(new(Lock))
	}
	return s
}

// locked returns the numbers of the locks that are locked.
func (s *Set) locked() (list []int) {
	for n, l := range s.locks {
		if l.TryLock() {
			l.Unlock()
		} else {
			list = append(list, n)
		}
	}
	return list
}

// A holder has what it has chosen, in ascending order and once each, and nothing after Release.
func TestHeld(t *testing.T) {
	t.Parallel()
	s, h := newSet(4), Held{}
	for _, n := range []int{3, 1, 3} {
		h.Choose(n)
	}
	h.Lock(s)
	if want := []int{1, 3}; !slices.Equal(h.Numbers(), want) || !slices.Equal(s.locked(), want) || !h.Has(3) || h.Has(2) || h.All() {
		t.Errorf("held are %v, locked %v; want %v", h.Numbers(), s.locked(), want)
	}
	h.LockRest(s)
	if got := s.locked(); len(got) != 4 {
		t.Errorf("with the rest, %v are locked", got)
	}
	var before []int
	h.UnlockRest(s, func(n int) { before = append(before, n) })
	if want := []int{0, 2}; !slices.Equal(before, want) || !slices.Equal(s.locked(), []int{1, 3}) {
		t.Errorf("unlocked are %v, want %v; locked stay %v", before, want, s.locked())
	}
	h.Release()
	h.LockAll(s)
	if !h.All() || !h.Has(0) || len(s.locked()) != 4 {
		t.Errorf("of all, %v are locked", s.locked())
	}
	h.Release()
	h.Release() // again: nothing
	if !h.None() || h.All() || len(s.locked()) != 0 {
		t.Errorf("after the release, %v are locked", s.locked())
	}
}

// TryLock does not wait for a holder that is marked as long, and locks nothing then.
func TestTryLock(t *testing.T) {
	t.Parallel()
	s, long, h := newSet(3), Held{}, Held{}
	s.locks[2].Lock()
	long.One(s, 2)
	long.MarkLong(true)
	for _, n := range []int{0, 2} {
		h.Choose(n)
	}
	if h.TryLock(s) || !h.None() || !slices.Equal(s.locked(), []int{2}) {
		t.Errorf("held are %v, locked %v", h.Numbers(), s.locked())
	}
	long.Release()
	for _, n := range []int{0, 2} {
		h.Choose(n)
	}
	if !h.TryLock(s) || !slices.Equal(s.locked(), []int{0, 2}) {
		t.Errorf("held are %v, locked %v", h.Numbers(), s.locked())
	}
	h.Release()
}

// Some locks only what is free, and each once.
func TestSome(t *testing.T) {
	t.Parallel()
	s, some := newSet(2), Some{}
	s.locks[1].Lock()
	if some.Try(s.locks[1]) || !some.Try(s.locks[0]) || !some.Try(s.locks[0]) {
		t.Error("it locks what is locked, or not what is free or its own")
	}
	some.Release()
	if got := s.locked(); !slices.Equal(got, []int{1}) {
		t.Errorf("locked are %v", got)
	}
}

// After a holder that may take long, LockUnlessLong does not park: it returns when the holder marks itself as
// long, and soon when it does not. Who needs several locks holds none while he waits for one.
func TestHolderThatMayTakeLong(t *testing.T) {
	t.Parallel()
	s, holder := newSet(3), Held{}
	holder.Choose(1)
	holder.Lock(s)
	holder.MarkLong(false)
	if s.locks[1].LockUnlessLong() {
		t.Error("it waits for a holder that may take long")
	}
	var all, some, none Held
	got := make(chan bool)
	go func() {
		got <- false
		all.LockAll(s)
		all.Release()
		got <- true
	}()
	go func() {
		some.Choose(0)
		some.Choose(1)
		got <- false
		some.Lock(s)
		some.Release()
		got <- true
	}()
	<-got
	<-got
	for range 1000 {
		runtime.Gosched() // to those who try to lock
	}
	holder.MarkLong(true)
	for range 100 { // others get what is not locked
		for _, n := range []int{0, 2} {
			if !s.locks[n].LockUnlessLong() {
				t.Fatalf("lock %d is held by who waits for another", n)
			}
			s.locks[n].Unlock()
		}
	}
	if none.TryLockAll(s) {
		t.Error("all are locked beside the holder")
	}
	holder.Release()
	<-got
	<-got
	if list := s.locked(); len(list) > 0 {
		t.Errorf("locked are %v", list)
	}
}

// Who locks again and again, for long, gives way to who waits without parking: he has tried before GiveWay
// returns.
func TestGiveWay(t *testing.T) {
	t.Parallel()
	s, busy := newSet(1), Held{}
	s.GiveWay() // nobody waits
	busy.LockAll(s)
	busy.MarkLong(true)
	joined, got := make(chan bool), false
	go func() {
		var h Held
		w := s.Wait()
		defer w.End()
		close(joined)
		for !h.TryLockAll(s) {
			w.Next(time.Hour)
		}
		got = true
		h.Release()
	}()
	<-joined
	busy.Release()
	s.GiveWay()
	busy.LockAll(s)
	if !got {
		t.Error("the waiter has not tried")
	}
	busy.Release()
}
