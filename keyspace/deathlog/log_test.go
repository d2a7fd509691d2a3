package deathlog

import (
	"slices"
	"strconv"
	"testing"

	"mayfly/expiry"
	"mayfly/keyspace/memtable"
	"mayfly/keyspace/record"
	"mayfly/keyspace/streamid"
)

// fakeSource is a log of 40 entries in three parts, which notes what is locked. An item belongs to the part
// of its number.
type fakeSource struct {
	*parts
	t       *testing.T
	none    bool // there is no log
	held    bool
	expired expiry.Limits
	ids     Generator
	locked  [4]bool
	opened  bool
}

// newSource returns a source. Entry n has the id entryID(n) and the item n%5, and lies in the part of that.
// The fourth part never had an entry.
func newSource(t *testing.T) *fakeSource {
	s := &fakeSource{parts: newParts(4), t: t, expired: expiry.NoLimits}
	for n := range 40 {
		e := Entry{ID: s.ids.Next(epoch + int64(n)), Item: strconv.Itoa(n % 5), Cause: expiry.ByChange, Kind: record.Plain, Etag: uint64(n)}
		s.add(s.PartitionOf(e.Item), e, epoch+int64(n))
	}
	return s
}

func entryID(n int) streamid.ID { return streamid.ID{Ms: uint64(epoch + n)} }

func (s *fakeSource) Partitions() int             { return len(s.locked) }
func (s *fakeSource) PartitionOf(item string) int { return int(item[0]-'0') % 3 }
func (s *fakeSource) Any(f func())                { s.lock(f, 0) }
func (s *fakeSource) All(f func())                { s.lock(f, 0, 1, 2, 3) }

func (s *fakeSource) One(number int, f func(p *Part)) { s.lock(func() { f(s.Part(number)) }, number) }

// lock calls f with partitions locked, unless all are.
func (s *fakeSource) lock(f func(), numbers ...int) {
	s.t.Helper()
	switch s.locked {
	case [4]bool{true, true, true, true}:
		f()
		return
	case [4]bool{}:
	default:
		s.t.Error("a lock is waited for while another is held")
	}
	for _, n := range numbers {
		s.locked[n] = true
	}
	f()
	s.locked = [4]bool{}
}

func (s *fakeSource) Open() bool {
	if s.locked == [4]bool{} {
		s.t.Error("opened without a lock")
	}
	s.opened = true
	return !s.none
}

func (s *fakeSource) IDs() *Generator {
	if !s.opened || s.none {
		s.t.Error("used before it was opened, or without a log")
	}
	return &s.ids
}

func (s *fakeSource) Expired() expiry.Limits { return s.expired }
func (s *fakeSource) Held() bool             { return s.held }

func (s *fakeSource) Part(number int) *Part {
	if !s.opened || s.none || !s.locked[number] {
		s.t.Errorf("part %d is read without a lock or a log", number)
	}
	if number == 3 {
		return nil
	}
	return s.list[number]
}

func (s *fakeSource) Remove(number int, list []*memtable.Entry, deleted streamid.ID) {
	if !s.locked[number] || len(list) == 0 {
		s.t.Errorf("%d entries are removed from part %d", len(list), number)
	}
	p := s.list[number]
	state := p.Stored(deleted)
	h, e := p.table.Lookup(p.StateID())
	p.table.Overwrite(h, e, p.StateID(), state.Item(epoch, 1), nil)
	for _, e := range list {
		p.table.Remove(e)
	}
}

// numbers returns those of the entries between two.
func numbers(l Log, from, to streamid.ID, reverse bool) (list []int) {
	l.Range(from, to, reverse, func(e Entry) bool {
		list = append(list, int(e.Etag))
		return true
	})
	return list
}

// span returns the numbers from one to another, both included.
func span(from, to int) (list []int) {
	for n := from; n <= to; n++ {
		list = append(list, n)
	}
	return list
}

func TestLogReads(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	l := New(s)
	s.expired.ByDefault = epoch + 9 // ten entries
	if got := numbers(l, streamid.ID{}, streamid.Max, false); !slices.Equal(got, span(10, 39)) {
		t.Errorf("all: %v", got)
	}
	want := span(12, 20)
	slices.Reverse(want)
	if got := numbers(l, entryID(12), entryID(20), true); !slices.Equal(got, want) {
		t.Errorf("12 to 20 in reverse: %v", got)
	}
	if got := numbers(l, entryID(20), entryID(12), false); got != nil {
		t.Errorf("20 to 12: %v", got)
	}
	if st, ok := l.State(); !ok || st.Length != 30 || st.First != entryID(10) || st.Last != entryID(39) || st.Added != 40 {
		t.Errorf("state %+v, %v", st, ok)
	}
	if l.Last() != entryID(39) {
		t.Errorf("last %v", l.Last())
	}
	if e, ok := l.Entry(entryID(17)); !ok || e.Item != "2" || e.Etag != 17 {
		t.Errorf("entry 17 is %+v, %v", e, ok)
	}
	if e, ok := l.Entry(entryID(9)); ok {
		t.Errorf("the expired entry 9 is %+v", e)
	}
	var of []int
	l.Of("3", func(e Entry) bool {
		of = append(of, int(e.Etag))
		return len(of) < 4
	})
	if !slices.Equal(of, []int{38, 33, 28, 23}) {
		t.Errorf("of item 3: %v", of)
	}
	if e, ok := l.Newest("3"); !ok || e.Etag != 38 {
		t.Errorf("newest of item 3: %+v, %v", e, ok)
	}
	if cut, n := l.Oldest(4); cut != entryID(3) || n != 4 {
		t.Errorf("the oldest four, with the expired: up to %v, %d", cut, n)
	}
	if cut, n := l.Oldest(100); cut != entryID(39) || n != 40 {
		t.Errorf("the oldest hundred: up to %v, %d", cut, n)
	}
}

// TestRangeEnds: entries that are added while a range is read do not belong to it.
func TestRangeEnds(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	n, added := 0, 40
	New(s).Range(streamid.ID{}, streamid.Max, false, func(e Entry) bool {
		for range 2 {
			s.add(added%3, Entry{ID: s.ids.Next(epoch + int64(added)), Item: "0", Cause: expiry.ByChange, Kind: record.Plain}, epoch)
			added++
		}
		n++
		return n < 1000
	})
	if n != 40 {
		t.Errorf("%d of 40 entries are read", n)
	}
}

func TestNoLog(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	s.none = true
	l := New(s)
	if got := numbers(l, streamid.ID{}, streamid.Max, false); got != nil {
		t.Errorf("entries %v", got)
	}
	_, state := l.State()
	_, entry := l.Entry(entryID(1))
	_, newest := l.Newest("1")
	if state || entry || newest || !l.Last().IsZero() {
		t.Errorf("state %v, entry %v, newest %v, last %v", state, entry, newest, l.Last())
	}
	s.All(func() {
		_, oldest := l.Oldest(5)
		if n, trimmed := l.Delete([]streamid.ID{entryID(1)}), l.Trim(0, streamid.ID{}, 0); n != 0 || trimmed != 0 || oldest != 0 {
			t.Errorf("%d deleted, %d trimmed, %d are the oldest", n, trimmed, oldest)
		}
	})
}

func TestLogRemoves(t *testing.T) {
	t.Parallel()
	s := newSource(t)
	l := New(s)
	check := func(what string, n, want int64, left ...[]int) {
		t.Helper()
		if got := numbers(l, streamid.ID{}, streamid.Max, false); n != want || !slices.Equal(got, slices.Concat(left...)) {
			t.Errorf("%s: %d are removed, want %d; left are %v", what, n, want, got)
		}
	}
	s.All(func() {
		s.expired.ByDefault = epoch // entry 0
		twice := []streamid.ID{entryID(5), entryID(9), entryID(5), entryID(0), entryID(99), {}, streamid.Max}
		s.held = true
		check("delete on hold", int64(l.Delete(twice)), 0, span(1, 39))
		check("trim on hold", l.Trim(0, streamid.ID{}, 0), 0, span(1, 39))
		s.held = false
		check("delete", int64(l.Delete(twice)), 2, span(1, 4), span(6, 8), span(10, 39))
		check("below 3", l.Trim(-1, entryID(3), 0), 2, span(3, 4), span(6, 8), span(10, 39))
		check("at most 31", l.Trim(31, streamid.ID{}, 0), 4, span(8, 8), span(10, 39))
		check("at most 20, five at a time", l.Trim(20, streamid.ID{}, 5), 5, span(14, 39))
		check("at most 26", l.Trim(26, streamid.ID{}, 0), 0, span(14, 39))
		check("below 30, three at a time", l.Trim(-1, entryID(30), 3), 3, span(17, 39))
		check("all", l.Trim(0, streamid.ID{}, 0), 23)
	})
	if st, ok := l.State(); !ok || st.Length != 0 || st.Added != 40 || st.Last != entryID(39) || st.MaxDeleted != entryID(9) {
		t.Errorf("state %+v, %v", st, ok)
	}
}
